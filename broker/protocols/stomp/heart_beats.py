"""How long a client may be silent, and how often it hears from us: the header heart-beat.

client   cx,cy    sends something every cx ms at least, wants something every cy ms; 0 is never
server   sx,sy    likewise
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.protocols.stomp.errors import StompError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from broker.ports import Timer, Timers

__all__ = ["Agreement", "HeartBeats", "agree"]

# We send no more often, whatever a client wants (MIN_SERVER_PING).
PERIOD_MS_MIN: Final = 500
# A year: beyond it a timer is of no use, and its seconds have no bounds.
PERIOD_MS_MAX: Final = 365 * 24 * 3600 * 1000
_HEADER: Final = re.compile(r"\s*(\d{1,19})\s*,\s*(\d{1,19})\s*", re.ASCII)
_LONG_MAX: Final = 2**63 - 1


class Agreement(NamedTuple):
    """What both sides keep to.

    Attributes:
        answer: the header heart-beat of CONNECTED.
        period_ms: between what we send; 0 is never.
        ttl_ms: silence that ends the connection.
    """

    answer: str
    period_ms: int
    ttl_ms: int


def agree(header: str, ttl_ms: int, parameters: Mapping[str, Any]) -> Agreement:
    """Give what follows from a client's heart-beat, by Artemis's rules.

    A client that sends nothing by itself is told how often it has to: the TTL stays as it is. For
    one that does, the TTL is a multiple of its interval, between the bounds of the acceptor.

    Args:
        header: of CONNECT.
        ttl_ms: that holds without it.
        parameters: of the acceptor.

    Raises:
        StompError: the header is not two numbers.

    >>> bounds = {
    ...     "heartBeatToConnectionTtlModifier": 2.0,
    ...     "connectionTtlMin": 1000,
    ...     "connectionTtlMax": 60000,
    ... }
    >>> agree("0,0", 60000, bounds)
    Agreement(answer='0,30000', period_ms=0, ttl_ms=60000)
    >>> agree("100,200", 60000, bounds)
    Agreement(answer='500,500', period_ms=500, ttl_ms=1000)
    """
    found = _HEADER.fullmatch(header)
    if found is None:
        raise StompError(f"Incorrect heartbeat header {header[:40]}")
    client_ms, wanted_ms = int(found[1]), int(found[2])
    modifier: float = parameters["heartBeatToConnectionTtlModifier"]
    period_ms = min(max(wanted_ms, PERIOD_MS_MIN), PERIOD_MS_MAX) if wanted_ms else 0
    if not client_ms:
        return Agreement(f"{period_ms},{int(ttl_ms / modifier)}", period_ms, ttl_ms)
    wished_ms = min(int(client_ms * modifier), _LONG_MAX)
    ttl_ms = min(max(wished_ms, parameters["connectionTtlMin"]), parameters["connectionTtlMax"])
    answer_ms = client_ms if ttl_ms == wished_ms else int(ttl_ms / modifier)
    return Agreement(f"{period_ms},{answer_ms}", period_ms, ttl_ms)


class HeartBeats:
    """Calls `beat()` every so often, from start() to stop().

    Args:
        timers: of the event loop.
        beat: sends something.
    """

    __slots__ = (
        "_beat",
        "_period_s",
        "_timer",
        "_timers",
    )

    def __init__(self, timers: Timers, beat: Callable[[], object]) -> None:
        self._timers = timers
        self._beat = beat
        self._period_s = 0.0
        self._timer: Timer | None = None

    def start(self, period_ms: int) -> None:
        """Begin; 0 does nothing."""
        if period_ms:
            self._period_s = period_ms / 1000
            self._timer = self._timers.call_later(self._period_s, self._due)

    def _due(self) -> None:
        self._timer = self._timers.call_later(self._period_s, self._due)
        self._beat()

    def stop(self) -> None:
        """End. Idempotent."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
