"""The broker's records: encoded and decoded."""
