"""Where a message has been: what records say, what queues have, put together."""
