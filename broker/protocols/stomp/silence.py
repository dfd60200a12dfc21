"""How long a connection may be silent, and a client take until it has logged in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.protocols.peer import Peer, Sessions

__all__ = ["TTL_MS_DEFAULT", "Silence"]

log = logging.getLogger("broker")

TTL_MS_DEFAULT: Final = 60_000  # As of Core.


class Silence:
    """See the module's text.

    Args:
        peer: the socket.
        sessions: the broker.
        ttl_ms: the acceptor's connectionTtl; None takes connection-ttl-override, else a minute.

    Attributes:
        ttl_ms: silence that ends the connection; a client's heart-beat changes it.
    """

    __slots__ = ("_clock", "_partial_s", "_peer", "ttl_ms")

    def __init__(self, peer: Peer, sessions: Sessions, ttl_ms: int | None) -> None:
        self._peer = peer
        self._clock = sessions.clock
        override_ms = sessions.connection_ttl_override_ms
        if ttl_ms is None:
            ttl_ms = override_ms if override_ms > 0 else TTL_MS_DEFAULT
        self.ttl_ms = ttl_ms
        # Since when a frame of a client that has not logged in is incomplete.
        self._partial_s: float | None = None

    def note(self, *, has_partial: bool) -> None:
        """Bytes have come of a client that has not logged in; maybe of a frame that goes on."""
        if not has_partial:
            self._partial_s = None
        elif self._partial_s is None:
            self._partial_s = self._clock.monotonic_s()

    def is_too_slow(self) -> bool:
        """Whether its first frame does not get complete."""
        limit_s = self._peer.handshake_timeout_s
        if self._partial_s is None or limit_s <= 0:
            return False
        if self._clock.monotonic_s() - self._partial_s < limit_s:
            return False
        log.warning(
            "AMQ224088: %s did not end its handshake in %.0f s: closed", self._peer.remote, limit_s
        )
        return True

    def too_long(self, *, is_known: bool) -> str | None:
        """Give what to tell a client that was silent for too long; None where it was not.

        Args:
            is_known: it has logged in; others may not be silent for more than a minute.
        """
        ttl_ms = self.ttl_ms if is_known else min(self.ttl_ms, TTL_MS_DEFAULT)
        if self._peer.silent_s * 1000 < ttl_ms:
            return None
        text = (
            f"AMQ229014: Did not receive data from {self._peer.remote} within the {ttl_ms}ms "
            "connection TTL. The connection will now be closed."
        )
        log.warning("%s", text)
        return text
