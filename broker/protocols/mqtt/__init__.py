"""MQTT 3.1, 3.1.1 and 5: packets, sessions, subscriptions; bytes in, calls of a session out."""
