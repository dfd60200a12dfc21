"""The command lines `journal` and `journal-bench`."""
