"""Journal files: pre-created, pooled and written through one of four kinds of I/O."""
