"""Source and target of a JMS bridge by AMQP 1.0 (python-qpid-proton)."""
