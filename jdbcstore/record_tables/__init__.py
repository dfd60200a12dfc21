"""What the table of one journal can do, as fast as each database's driver allows."""
