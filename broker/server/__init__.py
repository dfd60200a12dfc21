"""The process's lifecycle: composed, started, reloaded, stopped."""
