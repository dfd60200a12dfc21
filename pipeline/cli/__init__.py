"""The command line `pipeline`."""
