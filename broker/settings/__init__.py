"""Address settings, and what is looked up by the name of an address."""
