"""Commands for stores in a database; `journal` finds them by entry point."""
