"""The client for threads: the same as in asyncio, with calls that return when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from broker.client.aio.client import AsyncClient
from broker.client.blocking.consumer import Consumer, Received
from broker.client.blocking.runner import Runner
from broker.client.blocking.session import Session
from broker.client.blocks import Block
from broker.client.session_state import AckMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.aio.connection import AsyncConnection
    from broker.client.balancing import BalancingPolicy
    from broker.client.options import ClientOptions, ClientSettings


class Client(Block):
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
        """Take whom to connect to; nothing is connected yet.

        Args:
            uri: `tcp://HOST:PORT?PARAMETER=VALUE&...`, `(tcp://A,tcp://B)?...` for several, or
                `udp://GROUP:PORT` for those that are heard there (docs/guide/discovery.md).
            policy: your own, in place of the URI's.
            **options: options by their names in `ClientOptions`; what the URI says counts more.

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

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Those that were opened and are not closed, the oldest first."""
        return tuple(Connection(self._runner, one) for one in self._client.connections)

    def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> Session:
        """Create a session on the client's first connection.

        Args:
            mode: who acknowledges, and when.
            start: whether messages come at once; else `start()` lets them.
            **changes: options that differ from the client's, by their names in `ClientOptions`.

        Raises:
            BrokerRefused: such as `SecurityRefused`.
            NotConnected: no broker could be reached, or the connection is lost for good.
        """
        work = self._client.session(mode, start=start, **changes)
        return Session(self._runner, self._runner.wait(work))

    def consume_everywhere(
        self,
        queue: str,
        selector: str | None = None,
        *,
        mode: AckMode = AckMode.AUTO,
        priority: int = 0,
        listener: Callable[[Received], object] | None = None,
        **changes: Unpack[ClientSettings],
    ) -> Consumer:
        """Consume from all nodes of the cluster at once, and from those that join later.

        Nodes with messages take turns, and a message is acknowledged at the node that it came
        from. Each has a connection, a session and a consumer of its own, so the window of
        `consumer_window_size` is per node. A node that leaves is dropped without an error, and
        consumed again once it is back.

        No queue is made, as `Session.consumer()` makes none. A node without the queue is skipped,
        and tried again every `retry_interval`, as one that cannot be reached.

        `receive` raises what a node refuses for good once, and the other nodes go on. When no node
        is left, and the rounds of `reconnect_attempts` are used up, it raises NotConnected.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds; JMS names are understood.
            mode: who acknowledges, and when; none of transactions.
            priority: consumers of a higher one are served first by their node.
            listener: called with each message, in a thread of its own.
            **changes: options of its sessions that differ from the client's.

        Raises:
            ValueError: the mode is one of transactions, which belong to one node.
            BrokerRefused: a node refused for good, such as `SecurityRefused`, or a wrong selector.
            NotConnected: no node could be reached.
            ClosedError: the client is closed.
        """
        work = self._client.consume_everywhere(
            queue, selector, mode=mode, priority=priority, **changes
        )
        return Consumer(self._runner, self._runner.wait(work), listener)

    def connect(self) -> Connection:
        """Open a connection to the broker that the policy chooses, or to another.

        Raises:
            NotConnected: no broker could be reached in the attempts that the options allow.
            ClosedError: the client is closed.
        """
        return Connection(self._runner, self._runner.wait(self._client.connect()))

    def close(self) -> None:
        """Close all connections; the client cannot be used any more."""
        if not self._client.is_closed and self._runner.is_own_process:
            self._runner.wait(self._client.close())
            self._runner.close()

    def __repr__(self) -> str:
        return "<" + repr(self._client).removeprefix("<Async")


class Connection(Block):
    """One TCP connection, and whatever replaces it. Made by `Client.connect()`.

    What happens to it is told to functions that are set here. They are called in the client's own
    thread, so they must not call what waits: set an event, or put a note into a queue.
    """

    def __init__(self, runner: Runner, connection: AsyncConnection) -> None:
        self._runner = runner
        self._connection = connection

    @property
    def host(self) -> str:
        """The host of the broker that it leads to."""
        return self._connection.connector.host

    @property
    def port(self) -> int:
        """The port of the broker that it leads to."""
        return self._connection.connector.port

    @property
    def is_connected(self) -> bool:
        """Whether its sessions work now."""
        return self._connection.is_connected

    @property
    def on_failure(self) -> Callable[[Exception], None]:
        """Called with the error when the connection is lost, before anything is tried."""
        return self._connection.on_failure

    @on_failure.setter
    def on_failure(self, call: Callable[[Exception], None]) -> None:
        self._connection.on_failure = call

    @property
    def on_reconnected(self) -> Callable[[], None]:
        """Called when its sessions work again."""
        return self._connection.on_reconnected

    @on_reconnected.setter
    def on_reconnected(self, call: Callable[[], None]) -> None:
        self._connection.on_reconnected = call

    @property
    def on_ended(self) -> Callable[[Exception], None]:
        """Called with the error when no attempt is left."""
        return self._connection.on_ended

    @on_ended.setter
    def on_ended(self, call: Callable[[Exception], None]) -> None:
        self._connection.on_ended = call

    def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> Session:
        """Create a session.

        Args:
            mode: who acknowledges, and when.
            start: whether messages come at once; else `start()` lets them.
            **changes: options that differ from the client's, by their names in `ClientOptions`.

        Raises:
            BrokerRefused: such as `SecurityRefused`.
            NotConnected: the connection is lost for good.
        """
        work = self._connection.session(mode, start=start, **changes)
        return Session(self._runner, self._runner.wait(work))

    def close(self) -> None:
        """Close its sessions and the connection; nothing is reconnected."""
        self._runner.wait(self._connection.close())

    def __repr__(self) -> str:
        return "<" + repr(self._connection).removeprefix("<Async")
