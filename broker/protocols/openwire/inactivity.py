"""Silence: how long a client may say nothing, and that it hears from us meanwhile."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.ports import Timer, Timers
    from broker.protocols.openwire.wire_format import Agreement
    from broker.protocols.peer import Peer, Sessions

__all__ = ["Inactivity"]

log = logging.getLogger("broker")

# Of a client that has not said yet what it can do.
_UNKNOWN_MS: Final = 60_000


class Inactivity:
    """See the module's text.

    Args:
        peer: the socket.
        sessions: the broker.
        timers: of the event loop.
        keep_alive: says that we are there.
        parameters: of the acceptor.

    Attributes:
        waiting_count: messages that wait for room: their client is silent because of us.
    """

    __slots__ = (
        "_armed_s",
        "_begun_s",
        "_clock",
        "_is_on",
        "_keep_alive",
        "_override_ms",
        "_partial_s",
        "_peer",
        "_timer",
        "_timers",
        "_ttl_ms",
        "_wrote_s",
        "waiting_count",
    )

    def __init__(
        self,
        peer: Peer,
        sessions: Sessions,
        timers: Timers,
        keep_alive: Callable[[], object],
        parameters: Mapping[str, Any],
    ) -> None:
        self._peer = peer
        self._clock = sessions.clock
        self._timers = timers
        self._keep_alive = keep_alive
        self._is_on: bool = parameters["useKeepAlive"]
        self._override_ms = sessions.connection_ttl_override_ms
        self._ttl_ms = _UNKNOWN_MS
        self._armed_s = 0.0
        self._begun_s = self._clock.monotonic_s()
        self._wrote_s = self._begun_s
        self._timer: Timer | None = None
        # Since when a frame of a client that has not logged in is incomplete.
        self._partial_s: float | None = None
        self.waiting_count = 0

    def agreed(self, agreement: Agreement) -> None:
        """Both sides have said how long silence may last."""
        ttl_ms = agreement.max_inactivity_ms if self._is_on else 0
        if self._override_ms > 0 and ttl_ms > 0:
            ttl_ms = self._override_ms
        self._ttl_ms = ttl_ms
        self._armed_s = self._clock.monotonic_s() + agreement.initial_delay_ms / 1000
        if ttl_ms > 0:
            self._wait()

    def _wait(self) -> None:
        self._timer = self._timers.call_later(self._ttl_ms / 2000, self._due)

    def _due(self) -> None:
        # A little early counts: the next look is half a time to live away.
        if self._clock.monotonic_s() - self._wrote_s >= self._ttl_ms / 4000:
            self._keep_alive()
        self._wait()

    def wrote(self) -> None:
        """Something was written."""
        self._wrote_s = self._clock.monotonic_s()

    def stop(self) -> None:
        """The connection ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, *, has_partial: bool) -> None:
        """Bytes have come of a client that has not logged in; maybe of a frame that goes on."""
        if not has_partial:
            self._partial_s = None
        elif self._partial_s is None:
            self._partial_s = self._clock.monotonic_s()

    def known(self) -> None:
        """The client has logged in."""
        self._partial_s = None

    def is_over(self, *, is_known: bool) -> bool:
        """Whether the connection has to end.

        Args:
            is_known: its client has logged in; others may not be silent for more than a minute.
        """
        now_s = self._clock.monotonic_s()
        limit_s = self._peer.handshake_timeout_s
        if not is_known and self._partial_s is not None and 0 < limit_s <= now_s - self._partial_s:
            log.warning(
                "AMQ224088: %s did not end its handshake in %.0f s: closed",
                self._peer.remote,
                limit_s,
            )
            return True
        ttl_ms = self._ttl_ms
        if not is_known:
            ttl_ms = min(ttl_ms or _UNKNOWN_MS, _UNKNOWN_MS)
        if ttl_ms <= 0 or self.waiting_count or now_s < self._armed_s:
            return False
        if self._peer.silent_s * 1000 < ttl_ms:
            return False
        log.warning(
            "AMQ229014: Did not receive data from %s within the %dms connection TTL. The "
            "connection will now be closed.",
            self._peer.remote,
            ttl_ms,
        )
        return True
