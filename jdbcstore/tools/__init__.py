"""The work of commands on the tables of a database, as functions that return data."""
