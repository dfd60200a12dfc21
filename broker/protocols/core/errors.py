"""Bytes on a Core connection that are no packet. What is refused stands in `broker.errors`."""

from __future__ import annotations

__all__ = ["PacketFormatError"]


class PacketFormatError(ValueError):
    """The peer sent what is no frame or no packet; its connection must be closed.

    Whose fault: the peer's. The message names the packet and the place.
    """
