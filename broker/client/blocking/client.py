"""The client for threads: the same as in asyncio, with calls that return when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

from broker.client.aio.client import AsyncClient
from broker.client.blocking.runner import Runner
from broker.client.blocking.session import Session
from broker.client.session_state import AckMode

if TYPE_CHECKING:
    from types import TracebackType

    from broker.client.aio.connection import AsyncConnection
    from broker.client.balancing import BalancingPolicy
    from broker.client.options import ClientOptions, ClientSettings


class Client:
    """A client of one broker or of a cluster.

        with Client("tcp://localhost:61616?reconnectAttempts=5") as client:
            client.session().producer("orders").send("hello")

    May be used by many threads; a session by one at a time.
    """

    def __init__(
        self,
        uri: str = "tcp://localhost:61616",
        *,
        policy: BalancingPolicy | None = None,
        **options: Unpack[ClientSettings],
    ) -> None:
        """Take in whom to connect to, as `AsyncClient` does; nothing is connected yet.

        Raises:
            ValueError: the URI or an option is wrong.
        """
        # Read before the thread is started, so that a wrong URI leaves none behind.
        AsyncClient(uri, policy=policy, **options)
        self._runner = Runner("broker-client")
        self._client = self._runner.call(lambda: AsyncClient(uri, policy=policy, **options))

    @property
    def options(self) -> ClientOptions:
        """What the URI and the arguments say."""
        return self._client.options

    def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> Session:
        """Create a session on the client's first connection; as `AsyncConnection.session`."""
        work = self._client.session(mode, start=start, **changes)
        return Session(self._runner, self._runner.wait(work))

    def connect(self) -> Connection:
        """Open a connection to the broker that the policy chooses, or to another."""
        return Connection(self._runner, self._runner.wait(self._client.connect()))

    def close(self) -> None:
        """Close all connections; the client cannot be used any more."""
        if not self._client.is_closed and self._runner.is_own_process:
            self._runner.wait(self._client.close())
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Connection:
    """One TCP connection, and whatever replaces it. Made by `Client.connect()`."""

    def __init__(self, runner: Runner, connection: AsyncConnection) -> None:
        self._runner = runner
        self._connection = connection

    @property
    def host(self) -> str:
        """Where it leads."""
        return self._connection.connector.host

    @property
    def port(self) -> int:
        """And on which port."""
        return self._connection.connector.port

    def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> Session:
        """Create a session; as `AsyncConnection.session`."""
        work = self._connection.session(mode, start=start, **changes)
        return Session(self._runner, self._runner.wait(work))

    def close(self) -> None:
        """Close its sessions and the connection."""
        self._runner.wait(self._connection.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
