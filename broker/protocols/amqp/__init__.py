"""AMQP 1.0 on the engine of Qpid Proton: frames and links there, calls of a session here."""
