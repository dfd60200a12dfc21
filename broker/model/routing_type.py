"""How an address hands a message to its queues."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["RoutingType"]


class RoutingType(IntEnum):
    """How an address hands a message to its queues; the last two belong to diverts and bridges."""

    MULTICAST = 0
    ANYCAST = 1
    STRIP = 2
    PASS = 3
