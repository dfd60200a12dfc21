"""What prints, exports and describes records for people."""
