"""The client in asyncio: whom to connect to, and one connection or many."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Final, Unpack

from broker.client.aio.connection import AsyncConnection
from broker.client.aio.everywhere import AsyncEverywhereConsumer
from broker.client.aio.node_consumer import Wanted
from broker.client.balancing import BalancingPolicy, policy_named
from broker.client.blocks import AsyncBlock
from broker.client.errors import ClosedError, NotConnected
from broker.client.options import ClientOptions
from broker.client.session_state import AckMode
from broker.client.topology import Topology
from broker.client.uri import parse_uri
from broker.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.session import AsyncSession
    from broker.client.options import ClientSettings
    from broker.discovery.group import DiscoveryGroup
    from broker.model.transport_configuration import TransportConfiguration


_DEFAULTS: Final = ClientOptions()


class AsyncClient(AsyncBlock):
    """A client of one broker or of a cluster.

        async with AsyncClient("tcp://localhost:61616?reconnectAttempts=5") as client:
            session = await client.session()
            await session.producer("orders").send("hello")

    Belongs to one event loop. `session()` uses one connection for all sessions; `connect()` makes
    more, each to the broker that the balancing policy chooses.

    Attributes:
        options: what the URI and the arguments say.
        environment: clock, ids, chance and network.
        topology: the members of the cluster, as far as brokers have told them.
    """

    def __init__(
        self,
        uri: str = "tcp://localhost:61616",
        *,
        policy: BalancingPolicy | None = None,
        environment: Environment | None = None,
        **options: Unpack[ClientSettings],
    ) -> None:
        """Take whom to connect to; nothing is connected yet.

        Args:
            uri: `tcp://HOST:PORT?PARAMETER=VALUE&...`, `(tcp://A,tcp://B)?...` for several, or
                `udp://GROUP:PORT` for those that are heard there (docs/guide/discovery.md).
            policy: your own, in place of the URI's.
            environment: clock, ids, chance and network; None is the machine's.
            **options: options by their names in `ClientOptions`; what the URI says counts more.

        Raises:
            ValueError: the URI or an option is wrong.
        """
        given = parse_uri(uri, _with(_DEFAULTS, options))
        self.options = given.options
        self._named = given.connectors
        self._discovery = given.discovery
        self._group: DiscoveryGroup | None = None
        self.topology = Topology()
        self.environment = environment or Environment()
        self._policy = policy or policy_named(
            self.options.balancing_policy, self.environment.chance
        )
        self._connections: list[AsyncConnection] = []
        self._first: AsyncConnection | None = None
        self._everywhere: dict[AsyncEverywhereConsumer, None] = {}
        self._connecting = asyncio.Lock()
        self._is_closed = False

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the client's options with some changed.

        Args:
            changes: by their names in `ClientOptions`.

        Raises:
            ValueError: no option has such a name, or a value is out of its range.
        """
        return _with(self.options, changes)

    async def connect(self) -> AsyncConnection:
        """Open a connection to the broker that the policy chooses, or to another.

        Raises:
            NotConnected: no broker could be reached in the attempts that the options allow.
            ClosedError: the client is closed.
        """
        if self._is_closed:
            raise ClosedError("the client is closed")
        attempts = self.options.initial_connect_attempts
        attempt = 0
        problems: list[str] = []
        while attempt < max(1, attempts) or attempts == -1:
            if attempt:
                await asyncio.sleep(self.options.retry_delay_s(attempt - 1))
            problem = await self._discover()
            problems = [] if problem is None else [problem]
            targets = self._targets()
            first = self._policy.select(len(targets)) if targets else 0
            for index in range(len(targets)):
                connector = targets[(first + index) % len(targets)]
                connection = AsyncConnection(self, connector)
                try:
                    await connection.open_to(connector)
                except NotConnected as error:
                    problems.append(str(error))
                    continue
                self._connections.append(connection)
                return connection
            attempt += 1
        raise NotConnected("; ".join(problems))

    @property
    def connectors(self) -> tuple[TransportConfiguration, ...]:
        """The brokers of the URI, or those that discovery hears now; their backups behind them."""
        if self._group is None:
            return self._named
        entries = self._group.entries
        return (
            *(entry.connectors[0] for entry in entries),
            *(connector for entry in entries for connector in entry.connectors[1:]),
        )

    async def _discover(self) -> str | None:
        """Wait until discovery has found a broker; what is wrong if it has not."""
        if self._discovery is None:
            return None
        if self._group is None:
            self._group = self._discovery.group(self.options, self.environment)
        try:
            await self._group.start()
        except OSError as error:
            return f"{self._discovery.text}: {error}"
        timeout_ms = self.options.initial_wait_timeout
        if self._known() or await self._group.wait_for_broadcast(timeout_ms):
            return None
        return f"{self._discovery.text}: no broker was heard in {timeout_ms} ms"

    def _known(self) -> list[TransportConfiguration]:
        """Give the members of the cluster, where these are to be chosen from."""
        if not self.options.use_topology:
            return []
        return [item.primary for item in self.topology.members if item.primary is not None]

    def _targets(self) -> list[TransportConfiguration]:
        """Give the brokers to choose from: the cluster's members once they are known."""
        return self._known() or list(self.connectors)

    async def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> AsyncSession:
        """Create a session on the client's first connection.

        Args:
            mode: who acknowledges, and when.
            start: whether messages come at once; else `start()` lets them.
            **changes: options that differ from the client's, by their names in `ClientOptions`.

        Raises:
            BrokerRefused: such as `SecurityRefused`.
            NotConnected: no broker could be reached, or the connection is lost for good.
        """
        async with self._connecting:
            if self._first is None:
                self._first = await self.connect()
        return await self._first.session(mode, start=start, **changes)

    async def consume_everywhere(
        self,
        queue: str,
        selector: str | None = None,
        *,
        mode: AckMode = AckMode.AUTO,
        priority: int = 0,
        listener: Callable[[AsyncReceived], object] | None = None,
        **changes: Unpack[ClientSettings],
    ) -> AsyncEverywhereConsumer:
        """Consume from all nodes of the cluster at once, and from those that join later.

        Each node has a connection, a session and a consumer of its own, so the window of
        `consumer_window_size` is per node. A connection goes to its node, and that one's backup.
        A node that leaves is dropped without an error, and consumed again once it is back.

        No queue is made, as `AsyncSession.consumer()` makes none. A node without the queue is
        skipped, and tried again every `retry_interval`, as one that cannot be reached.

        Args:
            queue: its name, or `address::queue`.
            selector: only messages for which this holds; JMS names are understood.
            mode: who acknowledges, and when; none of transactions.
            priority: consumers of a higher one are served first by their node.
            listener: called with each message; a coroutine function is awaited.
            **changes: options of its sessions that differ from the client's.

        Raises:
            ValueError: the mode is one of transactions, which belong to one node.
            BrokerRefused: a node refused for good, such as `SecurityRefused`, or a wrong selector.
            NotConnected: no node could be reached.
            ClosedError: the client is closed.
        """
        wanted = Wanted(queue, selector, mode, priority, changes)
        # An option that is none is an error here, not at every node.
        self.options_with(changes)
        first = await self.connect()
        consumer = AsyncEverywhereConsumer(self, wanted, first.connector, self._forget_everywhere)
        self._everywhere[consumer] = None
        try:
            await consumer.open()
            # It was there for the topology, and could be sent on to another node.
            await first.close()
        except BaseException:
            first.abort()
            await consumer.close()
            raise
        if listener is not None:
            consumer.listen(listener)
        return consumer

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def connections(self) -> tuple[AsyncConnection, ...]:
        """The connections that are open; not those of `consume_everywhere`."""
        return tuple(self._connections)

    def forget(self, connection: AsyncConnection) -> None:
        """Drop a connection that was closed; the connection calls it.

        Args:
            connection: that was closed.
        """
        if connection in self._connections:
            self._connections.remove(connection)
        if connection is self._first:
            self._first = None

    def _forget_everywhere(self, consumer: AsyncEverywhereConsumer) -> None:
        self._everywhere.pop(consumer, None)

    async def close(self) -> None:
        """Close all connections, cancelled at once; the client cannot be used any more."""
        self._is_closed = True
        try:
            for consumer in tuple(self._everywhere):
                await consumer.close()
            for connection in tuple(self._connections):
                await connection.close()
        finally:
            for consumer in tuple(self._everywhere):
                consumer.abort()
            for connection in tuple(self._connections):
                connection.abort()
            if self._group is not None:
                self._group.stop()

    def __repr__(self) -> str:
        """Whom it connects to, without users and passwords."""
        brokers = ",".join(f"{one.host}:{one.port}" for one in self.connectors)
        if self._discovery is not None:
            brokers = f"{self._discovery.text} ({brokers})"
        state = "closed" if self._is_closed else f"{len(self._connections)} connections"
        return f"<AsyncClient {brokers}: {state}>"


def _with(options: ClientOptions, changes: ClientSettings) -> ClientOptions:
    if not changes:
        return options
    known = {item.name for item in dataclasses.fields(ClientOptions)}
    unknown = sorted(set(changes) - known)
    if unknown:
        raise ValueError(f"no option {unknown[0]!r}")
    return dataclasses.replace(options, **changes)
