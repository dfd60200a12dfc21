"""HTTP connections that clients cannot hold for ever, so that probes always get an answer.

accepted ── header_timeout ──▶ request ── answer_timeout ──▶ answered ── keep-alive ──▶ closed
    └─ one connection more than `connections_max`: the oldest that waits for its client is ended
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

__all__ = ["WebConnection"]


class WebConnection(H11Protocol):
    """One connection of uvicorn's, with limits.

    Attributes:
        connections_max: that are open at a time; a new one takes the place of the oldest one that
            has not sent a whole request, or of the oldest one at all.
        header_timeout_s: seconds in which a request must be complete, from its first byte, or from
            the connection on.
        answer_timeout_s: seconds in which its answer must be taken.
    """

    connections_max: ClassVar[int] = 64
    header_timeout_s: ClassVar[float] = 10.0
    answer_timeout_s: ClassVar[float] = 60.0

    _limit: asyncio.TimerHandle | None = None
    _since = 0.0
    _is_answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, and give it its time."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.connections_max:
            others = [
                one for one in cast("set[WebConnection]", self.connections) if one is not self
            ]
            min(others, key=lambda one: (one._is_answering, one._since)).end()
        self._arm(self.header_timeout_s)

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request; what is not whole has to be so in time."""
        super().data_received(data)
        self._is_answering = self._has_request()
        if self._is_answering:
            self._arm(self.answer_timeout_s)
        elif self._limit is None:
            self._arm(self.header_timeout_s)

    def on_response_complete(self) -> None:
        """Leave the rest to the keep-alive time."""
        self._is_answering = False
        self._since = self.loop.time()
        self._disarm()
        super().on_response_complete()
        # A request that came behind this one is being answered already.
        self._is_answering = self._has_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget its time."""
        self._disarm()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        # uvicorn's types leave out that there is none before the first request.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def end(self) -> None:
        """Close it at once, whatever has not been sent."""
        self.connections.discard(cast("Any", self))
        self._disarm()
        self.transport.abort()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._limit = self.loop.call_later(seconds, self.end)

    def _disarm(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
