"""What commands do with the tables of a database, as functions that return data."""
