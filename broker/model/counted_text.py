"""How many of something there are, for people."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """Say how many there are of what this noun is for.

    >>> counted(1, "message"), counted(0, "message"), counted(2, "other node")
    ('1 message', '0 messages', '2 other nodes')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
