"""A connection to a broker that is made again while the broker restarts.

    run()     do work on a session; where the connection is lost, do it again over a new one
    lost()    the same for callers that keep their own place: wait, then use `session` again
    works()   the broker has answered: the next outage gets the whole of its time

Every outage, also that of the first connect, may take `reconnectTimeoutMs`. Requests over such a
connection must be idempotent: the connection cannot tell whether an interrupted request was carried
out. A refusal by the broker is not an outage.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final, Self, TypeVar

from broker.client.errors import ClientError, NotConnected
from broker.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from broker.client import Client, Session
    from broker.client.blocking.producer import Producer
    from pipeline.broker_options import BrokerOptions

__all__ = ["BrokerConnection", "is_transient"]

log: Final = logging.getLogger("pipeline.broker")

T = TypeVar("T")

# Waits between attempts to connect, seconds: at once, then this, then each twice as long.
RETRY_FIRST_S: Final = 0.1
RETRY_MAX_S: Final = 2.0
# The broker is not there, or accepts no sessions yet, or the connection is lost. A closed session
# belongs to a lost connection: no other code closes it.
_TRANSIENT: Final = frozenset(
    {
        ErrorCode.NOT_CONNECTED,
        ErrorCode.CONNECTION_TIMEDOUT,
        ErrorCode.DISCONNECTED,
        ErrorCode.UNBLOCKED,
        ErrorCode.OBJECT_CLOSED,
        ErrorCode.SESSION_CREATION_REJECTED,
        ErrorCode.REMOTE_DISCONNECT,
        ErrorCode.SHUTDOWN_ERROR,
    }
)


def is_transient(error: ClientError) -> bool:
    """Whether the same request may succeed once the broker is back.

    >>> is_transient(NotConnected("connection refused"))
    True
    """
    return error.code in _TRANSIENT


class BrokerConnection:
    """One session of one client at a time, replaced when it is lost; for one thread.

    Nothing is connected before it is needed.

    Args:
        options: whom to connect to, and how long an outage may take.

    Attributes:
        count: of connections made so far.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._client: Client | None = None
        self._session: Session | None = None
        self._producer: Producer | None = None
        self.count = 0
        # Of the outage that is on: when it was noticed, and attempts since.
        self._lost_at: float | None = None
        self._attempts = 0

    @property
    def session(self) -> Session:
        """The session; made where there is none.

        Raises:
            ClientError: no broker could be reached, or it refuses.
        """
        if self._session is None:
            self._client = self._options.client()
            self._session = self._client.session()
            self.count += 1
        return self._session

    @property
    def producer(self) -> Producer:
        """A producer of the session, for any address.

        Raises:
            ClientError: as for session.
        """
        if self._producer is None:
            self._producer = self.session.producer()
        return self._producer

    def run(self, work: Callable[[Session], T]) -> T:
        """Do work that may be done twice, and give its result.

        Raises:
            NotConnected: the outage took too long.
            ClientError: the broker refuses it.
        """
        while True:
            try:
                result = work(self.session)
            except ClientError as error:
                self.lost(error)
            else:
                self.works()
                return result

    def lost(self, error: ClientError) -> None:
        """Drop the connection, and wait until it is time to use `session` again.

        Args:
            error: what was raised over it.

        Raises:
            NotConnected: the outage took too long.
            ClientError: `error` itself, if it is not an outage.
        """
        if not is_transient(error):
            raise error
        self.close()
        timeout_s = self._options.reconnect_timeout_ms / 1000
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at, self._attempts = now, 0
            if timeout_s:
                log.warning(
                    "%s: %s; trying again for %g s (reconnectTimeoutMs)",
                    *(self._options.node, error, timeout_s),
                )
        wait_s = min(RETRY_FIRST_S * 2.0 ** min(self._attempts - 1, 10), RETRY_MAX_S)
        if self._attempts == 0:
            wait_s = 0.0
        self._attempts += 1
        if now - self._lost_at + wait_s >= timeout_s:
            raise NotConnected(
                f"{self._options.node}: {error}; the broker was not back in {timeout_s:g} s"
                " (reconnectTimeoutMs)"
            ) from error
        time.sleep(wait_s)

    def works(self) -> None:
        """Note that the broker has answered."""
        if self._lost_at is not None:
            took_s = time.monotonic() - self._lost_at
            log.warning("%s: the broker is back after %.1f s", self._options.node, took_s)
            self._lost_at = None

    def close(self) -> None:
        """Let the connection go; `session` makes another one."""
        client, self._client = self._client, None
        self._session = self._producer = None
        if client is not None:
            with contextlib.suppress(ClientError):
                client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
