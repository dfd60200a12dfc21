"""Core bridges: from a queue of this broker to an address of another one, by the Core protocol."""
