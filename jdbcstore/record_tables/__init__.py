"""Reading and writing a journal's table, as fast as each database's driver allows."""
