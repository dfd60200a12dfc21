"""`broker`: create an instance, run it, talk to it. One file a command."""
