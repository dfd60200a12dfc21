"""What is wrong with a configuration, in one line with its place."""

from __future__ import annotations

__all__ = ["ConfigError"]


class ConfigError(ValueError):
    """A configuration that cannot be used: `FILE:LINE: what, and what to write instead`."""
