"""The error for an invalid configuration: one line with file and line number."""

from __future__ import annotations

__all__ = ["ConfigError"]


class ConfigError(ValueError):
    """A configuration that cannot be used: `FILE:LINE: what, and what to write instead`."""
