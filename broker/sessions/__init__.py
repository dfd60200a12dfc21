"""One client's work with the broker: the one API that protocols use."""
