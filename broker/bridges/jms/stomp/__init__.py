"""Source and target of a JMS bridge by STOMP 1.2 (stomp.py)."""
