"""The work of the commands, as functions that return data."""
