"""Bytes on a Core connection that are not a packet. What is refused stands in `broker.errors`."""

from __future__ import annotations

__all__ = ["PacketFormatError"]


class PacketFormatError(ValueError):
    """The peer sent an invalid frame or packet; its connection must be closed.

    Whose fault: the peer's. The message names the packet and the place.
    """
