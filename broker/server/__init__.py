"""The process's life: composed, started, reloaded, stopped."""
