"""A connection that is held until its connection router can answer: quorum-timeout at most.

    first bytes ─▶ HeldConnection ─▶ (the pool has its quorum, or the time is over) ─▶ handler

Protocols know nothing of it: their handler is made when it ends, and is given what came meanwhile.
That is little, since nothing more is read from the socket.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.peer import Peer, Receiver

__all__ = ["held_or_connected"]

log = logging.getLogger("broker")


def held_or_connected(
    peer: Peer,
    connect: Callable[[Peer], Receiver],
    wait: Callable[[Callable[[], object]], Callable[[], object] | None],
) -> Receiver:
    """Make the handler of a connection, now or later.

    Args:
        peer: the socket.
        connect: makes the handler.
        wait: has a callback called later, and gives what cancels that; None where there is nothing
            to wait for.
    """
    held = HeldConnection(peer, connect)
    cancel = wait(held.release)
    if cancel is None:
        return connect(peer)
    held.hold(cancel)
    return held


class HeldConnection:
    """See the module's text. Implements `broker.protocols.peer.Receiver`."""

    def __init__(self, peer: Peer, connect: Callable[[Peer], Receiver]) -> None:
        self._peer = peer
        self._connect = connect
        self._handler: Receiver | None = None
        self._cancel: Callable[[], object] | None = None
        self._data = b""

    def hold(self, cancel: Callable[[], object]) -> None:
        """Read nothing more for now."""
        self._cancel = cancel
        self._peer.hold_reading()

    def release(self) -> None:
        """Let the protocol begin."""
        data, self._data = self._data, b""
        try:
            handler = self._handler = self._connect(self._peer)
            if self._peer.is_paused:
                handler.pause()
            handler.receive(data)
        except Exception as error:
            # As the socket does with what a handler raises.
            log.warning("%s: closed: %s: %s", self._peer.remote, type(error).__name__, error)
            log.debug("%s", self._peer.remote, exc_info=error)
            self._peer.abort()
        else:
            self._peer.release_reading()

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._handler is None:
            self._data += data
        else:
            self._handler.receive(data)

    def pause(self) -> None:
        """The peer does not read."""
        if self._handler is not None:
            self._handler.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        if self._handler is not None:
            self._handler.go_on()

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self._handler is not None:
            self._handler.lost(error)
        elif self._cancel is not None:
            self._cancel()
