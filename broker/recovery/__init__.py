"""What a start finds in the store, and makes of it."""
