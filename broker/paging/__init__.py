"""Addresses whose messages wait in pages on the disk, because memory is full."""
