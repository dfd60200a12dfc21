"""Frames to a client, one behind another: none begins within the body of another.

While a large body is being written, other frames wait here; deliveries are paused meanwhile. If
more waits than a client may have waiting, nothing is read from it until the body has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.protocols.peer import Peer

__all__ = ["Output"]

_WAITING_MAX: Final = 64 * 1024


class Output:
    """See the module's text.

    Args:
        peer: the socket.
    """

    __slots__ = ("_closes", "_is_closed", "_is_open", "_peer", "_waiting", "_waiting_size")

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        # A frame is being written in parts.
        self._is_open = False
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._closes = self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether a frame is being written in parts."""
        return self._is_open

    def write(self, frame: bytes) -> None:
        """Write a whole frame, once that is possible; nothing behind close()."""
        if self._is_closed:
            return
        if not self._is_open:
            self._peer.write(frame)
            return
        self._waiting.append(frame)
        was_full = self._waiting_size > _WAITING_MAX
        self._waiting_size += len(frame)
        if not was_full and self._waiting_size > _WAITING_MAX:
            self._peer.hold_reading()

    def beat(self) -> None:
        """Say that we are alive, unless something else is on its way."""
        if not (self._is_open or self._is_closed or self._peer.is_paused):
            self._peer.write(b"\n")

    def begin(self) -> None:
        """A frame follows in parts, by part()."""
        assert not self._is_open, "one at a time"
        self._is_open = True

    def part(self, data: bytes) -> None:
        """Write some bytes of it."""
        self._peer.write(data)

    def end(self) -> None:
        """It is complete: what waited is written."""
        self._is_open = False
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            self._peer.write(frame)
        if self._waiting_size > _WAITING_MAX:
            self._peer.release_reading()
        self._waiting_size = 0
        if self._closes:
            self._peer.close()

    def close(self) -> None:
        """Close the connection behind all that was written."""
        if self._is_open:
            self._closes = True
        else:
            self._peer.close()
        self._is_closed = True
