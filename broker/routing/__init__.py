"""Where a message goes: addresses, the post office, diverts, duplicate ids, dead letters."""
