"""Connection routers: which broker serves a client that connects here."""
