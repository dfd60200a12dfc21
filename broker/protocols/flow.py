"""The flow of a connection: frames come, one after another, and deliveries go.

    frames       taken in order; none while one of them is held
    deliveries   paused while the peer does not read

    open ──hold()──▶ held ──resume()──▶ open ──is_ending──▶ ending ──lost()──▶ lost

A frame that has to wait holds its connection: for room at an address, or until a body is written.
Nothing is read from the socket then, and no later frame is taken, so the order of frames stays.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.peer import Peer

__all__ = ["Flow", "Flowing"]

log = logging.getLogger("broker")


class Deliveries(Protocol):
    """What consumers of a connection are given."""

    def pause(self) -> None:
        """The peer does not read."""

    def go_on(self) -> None:
        """The peer reads again."""


class Flow:
    """See the module's text.

    Args:
        peer: the socket.
        take: takes the next frame of what has come; False where none is complete.
        attempt: does a step of a frame that was held, or refuses the frame.

    Attributes:
        deliveries: of the connection; None until its client has logged in.
        is_ending: no frame is taken any more; the protocol sets it.
        is_lost: the socket is gone.
    """

    __slots__ = (
        "_attempt",
        "_is_taking",
        "_peer",
        "_take",
        "_then",
        "deliveries",
        "is_ending",
        "is_lost",
    )

    def __init__(
        self,
        peer: Peer,
        take: Callable[[], bool],
        attempt: Callable[[Callable[[], object]], object],
    ) -> None:
        self._peer = peer
        self._take = take
        self._attempt = attempt
        # What to begin with after a hold; None while nothing is held.
        self._then: Callable[[], object] | None = None
        self._is_taking = False
        self.deliveries: Deliveries | None = None
        self.is_ending = False
        self.is_lost = False

    def take_all(self) -> None:
        """Take frames as long as there are, and nothing is held."""
        if self._is_taking:
            return
        self._is_taking = True
        try:
            while self._then is None and not self.is_ending and self._take():
                pass
        finally:
            self._is_taking = False

    def hold(self, then: Callable[[], object]) -> None:
        """Take no frame until resume(), which begins by calling `then()`."""
        assert self._then is None, "one thing at a time"
        self._then = then
        self._peer.hold_reading()

    def resume(self) -> None:
        """Go on with the frame that was held, and with those that came; not where it is lost."""
        then, self._then = self._then, None
        if self.is_lost or then is None:
            return
        self._peer.release_reading()
        if self.is_ending:
            return
        self._attempt(then)
        self.take_all()

    def pause(self) -> None:
        """The peer does not read."""
        if self.deliveries is not None:
            self.deliveries.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        if self.deliveries is not None:
            self.deliveries.go_on()

    def lost(self, error: Exception | None) -> None:
        """The socket is gone: take no frame any more.

        Args:
            error: why; None where either side closed it in good order.
        """
        self.is_lost = self.is_ending = True
        if error is not None:
            log.info("AMQ222061: %s: connection lost: %s", self._peer.remote, error)


class Flowing:
    """A connection of which its flow takes care.

    Methods bound once for each connection would take a quarter of a KiB of it.
    """

    __slots__ = ()

    _flow: Flow

    def hold(self, then: Callable[[], object]) -> None:
        """Take no frame until resume(), which begins by calling `then()`."""
        self._flow.hold(then)

    def resume(self) -> None:
        """Go on with the frame that was held."""
        self._flow.resume()

    def pause(self) -> None:
        """The peer does not read."""
        self._flow.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        self._flow.go_on()
