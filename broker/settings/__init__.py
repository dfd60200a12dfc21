"""Address settings, and repositories that are searched by the name of an address."""
