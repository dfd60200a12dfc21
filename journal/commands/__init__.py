"""Shared by all command lines: exit statuses, options, progress, SOURCE and TARGET."""
