"""Ids for messages, as UUIDs of version 1: what Artemis's client takes every JMSMessageID for."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.environment import Clock, Ids

__all__ = ["MessageIds"]

# From the UUID's own beginning of time, 1582, to 1970; in its unit of 100 ns.
_EPOCH: Final = 0x01B21DD213814000
_PER_MS: Final = 10_000
_TIME: Final = struct.Struct(">IHH")
_VERSION: Final = 0x1000
_VARIANT: Final = 0x8000
# The node is drawn, not that of a network card (RFC 4122, 4.5): no two makers have the same.
_DRAWN: Final = 1 << 40


class MessageIds:
    """Makes them: node and clock sequence are drawn once, the time goes on with each id.

    uuid.uuid1() asks the system for each, which costs more than to receive and send a message.

    Args:
        ids: give what is drawn.
        clock: tells the time.
    """

    def __init__(self, ids: Ids, clock: Clock) -> None:
        node = int(ids.token(6), 16) | _DRAWN
        sequence = int(ids.token(2), 16) & 0x3FFF | _VARIANT
        self._rest = (sequence << 48 | node).to_bytes(8, "big")
        self._clock = clock
        self._time = 0

    def make(self) -> bytes:
        """Give the next one, 16 bytes."""
        self._time = time = max(self._time + 1, self._clock.now_ms() * _PER_MS + _EPOCH)
        low, middle, high = time & 0xFFFF_FFFF, time >> 32 & 0xFFFF, time >> 48
        return _TIME.pack(low, middle, high | _VERSION) + self._rest
