"""STOMP 1.0, 1.1 and 1.2: frames, subscriptions, transactions; bytes in, calls of a session out."""
