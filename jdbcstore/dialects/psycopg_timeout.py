"""psycopg connections that give up when the server falls silent.

libpq notices a peer that is gone (tcp_user_timeout, keepalives), not one whose machine answers
while the server is stopped or stuck; JDBC has setNetworkTimeout() for that, psycopg has nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

__all__ = ["TimedConnection", "connect"]

RV = TypeVar("RV")


class TimedConnection(psycopg.Connection[Any]):
    """A connection whose every wait ends after `network_timeout_s` seconds of silence."""

    network_timeout_s: float | None = None

    def wait(self, gen: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - psycopg's own types are private.
        """Wait as psycopg does, but not for ever; it looks every 0.1 s, its own interval."""
        if self.network_timeout_s is not None:
            gen = _bounded(gen, self.network_timeout_s, self._give_up)
        return super().wait(gen, *args, **named)

    def _give_up(self) -> None:
        # A late answer may still come; no caller waits for it any more.
        self.pgconn.finish()


def connect(
    network_timeout_ms: int, args: Sequence[object], named: Mapping[str, object]
) -> TimedConnection:
    """A new connection with the time-out; -1 ms waits for ever.

    Raises:
        psycopg.OperationalError: none can be had.
    """
    arguments: dict[str, Any] = dict(named)
    conninfo: Any = args[0] if args else ""
    connection = TimedConnection.connect(conninfo, **arguments)
    if network_timeout_ms > 0:
        connection.network_timeout_s = network_timeout_ms / 1000
    return connection


def _bounded(
    inner: Generator[Any, Any, RV], timeout_s: float, give_up: Callable[[], None]
) -> Generator[Any, Any, RV]:
    """What `inner` does, ended when the socket was not ready for that many seconds in a row."""
    since = time.monotonic()
    try:
        wanted = next(inner)
        while True:
            ready = yield wanted
            if ready:
                since = time.monotonic()
            elif time.monotonic() - since > timeout_s:
                give_up()
                raise psycopg.OperationalError(f"the server was silent for {timeout_s} s")
            wanted = inner.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result
