"""Queues, the references that wait in them, and the consumers that take them."""
