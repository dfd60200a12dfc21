"""One consumer over all nodes of a cluster: a connection, session and consumer for each of them.

    topology of the client ─▶ a `_Stay` for each member ─▶ its AsyncConsumer ─▶ take(), in turn

A stay is one task: it connects, consumes, waits until that has ended, and tries again. It ends when
its node has left and its connection is lost. A node's departure alone does not end it: where two
nodes have lost each other, each tells that the other one has gone, and both serve on.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections import deque
from typing import TYPE_CHECKING, Final

from broker.client.aio.connection import AsyncConnection
from broker.client.aio.receiving import Receiving
from broker.client.errors import (
    BrokerRefused,
    ClientError,
    ClosedError,
    NotConnected,
    QueueMissing,
)
from broker.client.session_state import AckMode
from broker.client.topology import Member, distinct
from broker.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.client.aio.connection import ConnectingClient
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.session import AsyncSession
    from broker.client.options import ClientOptions, ClientSettings
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["AsyncEverywhereConsumer", "Wanted"]

_OF_TRANSACTIONS: Final = (AckMode.TRANSACTED, AckMode.XA, AckMode.XA_CLIENT)


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What is consumed of each node.

    Attributes:
        queue: its name, or `address::queue`.
        selector: only messages for which this holds.
        mode: who acknowledges, and when.
        priority: consumers of a higher one are served first.
        changes: options of the sessions that differ from the client's.

    Raises:
        ValueError: the mode is one of transactions.
    """

    queue: str
    selector: str | None
    mode: AckMode
    priority: int
    changes: ClientSettings

    def __post_init__(self) -> None:
        if self.mode in _OF_TRANSACTIONS:
            raise ValueError(
                f"{self.mode} cannot be used on all nodes at once: a transaction belongs to the "
                "session of one node. Use AckMode.CLIENT or INDIVIDUAL, or a consumer of one node"
            )


class AsyncEverywhereConsumer(Receiving):
    """Receives the messages of one queue of every node. Made by `AsyncClient.consume_everywhere()`.

    Nodes with messages take turns: a busy one does not keep a quiet one waiting. A message is
    acknowledged at the node that it came from; in mode CLIENT that is all up to it of that node.
    Each node has a consumer of its own, so `consumer_window_size` bytes may be sent ahead by each.

    Messages of a node whose connection is lost come again when it is back, unless they were
    acknowledged. `receive` waits for the nodes that are there, and raises what a node refused for
    good, such as a permission, once: the other nodes go on. When no node is left, and all rounds
    of `reconnect_attempts` over them and the URI's brokers are used up, it raises NotConnected.

    Attributes:
        on_error: called with what a listener raised; the message is not acknowledged, and the
            listener is not called again.
    """

    def __init__(
        self,
        client: ConnectingClient,
        wanted: Wanted,
        on_closed: Callable[[AsyncEverywhereConsumer], object],
    ) -> None:
        super().__init__(wanted.queue)
        self._client = client
        self._wanted = wanted
        self._on_closed = on_closed
        self._stays: dict[str, _Stay] = {}
        # Those that have a consumer; the next one to take from is the first.
        self._turns: deque[_Stay] = deque()
        self._refusals: deque[BrokerRefused] = deque()
        self._failure: ClientError | None = None
        # Stays, and those that are ending; and the search for a node where none is left.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_open = False
        self._seeking: asyncio.Task[None] | None = None
        self._has_sought = False

    async def open(self, reached: TransportConfiguration) -> None:
        """Consume from all nodes that are known; each of them was tried when this returns.

        Args:
            reached: by which the topology was learned.

        Raises:
            BrokerRefused: a node refused for good.
            NotConnected: no node could be reached.
        """
        self._reached = reached
        self._client.topology.listen(self._follow)
        self._follow()
        stays = tuple(self._stays.values())
        for stay in stays:
            await stay.is_tried.wait()
        if self._refusals:
            raise self._refusals.popleft()
        if not any(stay.is_connected for stay in self._stays.values()):
            raise NotConnected(_problems(stays) or "no broker says how it is reached")
        self._is_open = True
        self._look()

    @property
    def connections(self) -> tuple[AsyncConnection, ...]:
        """Those to the nodes, the one that was heard of first is the first."""
        found = (stay.connection for stay in self._stays.values())
        return tuple(one for one in found if one is not None and not one.is_ended)

    # Receiving.

    def take(self) -> AsyncReceived | None:
        """Give the next message of the next node that has one here; it is not acknowledged by that.

        Raises:
            ClosedError: the consumer was closed.
            BrokerRefused: a node refused for good, since the last call.
            NotConnected: no node is left.
        """
        self._check_open()
        if self._refusals:
            raise self._refusals.popleft()
        for _ in range(len(self._turns)):
            stay = self._turns[0]
            self._turns.rotate(-1)
            if (received := stay.take()) is not None:
                return received
        if self._failure is not None:
            raise self._failure
        return None

    def ask(self) -> None:
        """Let a message come from each node, where it waits to be asked for."""
        for stay in self._turns:
            if stay.consumer is not None:
                stay.consumer.ask()

    def stop_asking(self) -> None:
        """No call waits for a message any more."""
        for stay in self._turns:
            if stay.consumer is not None:
                stay.consumer.stop_asking()

    async def force(self) -> None:
        """Wait until what the nodes that are connected have now is here."""
        await asyncio.gather(*(stay.force() for stay in tuple(self._turns) if stay.is_connected))

    async def done_with(self, received: AsyncReceived) -> None:
        """Acknowledge a message at its node, in the modes where the client does.

        Args:
            received: what `next_unacknowledged` gave.
        """
        await received.consumer.done_with(received)

    async def done_with_all(self, found: list[AsyncReceived]) -> None:
        """Acknowledge messages at their nodes, in the modes where the client does.

        Args:
            found: in the order in which they were handed over.
        """
        for consumer in dict.fromkeys(one.consumer for one in found):
            await consumer.done_with_all([one for one in found if one.consumer is consumer])

    # What the stays tell.

    def consumes(self, stay: _Stay) -> None:
        """Take messages of a node from now on."""
        self._turns.append(stay)
        self.changed()

    def consumes_no_more(self, stay: _Stay) -> None:
        """Take no messages of a node any more. Idempotent."""
        with contextlib.suppress(ValueError):
            self._turns.remove(stay)

    def refused(self, error: BrokerRefused) -> None:
        """Have the next call of `receive` raise what a node refused for good."""
        self._refusals.append(error)
        self._arrived.set()

    def arrived(self) -> None:
        """A node has a message, or its consumer has ended."""
        self._arrived.set()

    def changed(self) -> None:
        """A node is connected, or no longer."""
        self._arrived.set()
        self._follow()

    # Following the topology.

    def _follow(self) -> None:
        """Have a stay with every member, and none with those that have left."""
        if self._is_closed or self._failure is not None:
            return
        for member in self._members():
            if member.node_id not in self._stays:
                found = tuple(distinct([self._reached, *self._client.connectors]))
                stay = _Stay(self, self._client, self._wanted, member.node_id, found)
                self._stays[member.node_id] = stay
                stay.task = self._spawn(stay.run())
        for node_id, stay in tuple(self._stays.items()):
            if stay.is_over:
                del self._stays[node_id]
                stay.end()
        self._look()

    def _members(self) -> list[Member]:
        """Give those to consume from."""
        members = self._client.topology.members
        named = [one for one in members if one.primary is not None]
        if named or self._stays:
            return named
        # A lone broker need not say how it is reached. It may have had other node ids before.
        return list(members[-1:])

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def _look(self) -> None:
        """Where no node is connected, seek one; where that has found none, end."""
        stays = tuple(self._stays.values())
        if not self._is_open or any(stay.is_connected for stay in stays):
            self._has_sought = False
        elif self._seeking is None and not self._has_sought:
            self._seeking = self._spawn(self._seek())
        elif self._seeking is None and not any(stay.is_trying for stay in stays):
            self._fail(NotConnected(f"no node is left: {_problems(stays)}"))

    async def _seek(self) -> None:
        """Ask the brokers of the URI for the cluster's members, as often as for a lost connection.

        A node that has left and comes back is told of by those that are connected: here none is.
        """
        options = self._client.options
        attempt = 0
        while attempt < options.reconnect_attempts or options.reconnect_attempts == -1:
            await asyncio.sleep(options.retry_delay_s(attempt))
            if any(stay.is_connected for stay in self._stays.values()):
                break
            for connector in self._client.connectors:
                connection = AsyncConnection(self._client, connector)
                # One that is not there is asked again in the next round.
                with contextlib.suppress(NotConnected):
                    await connection.open_to(connector)
                await connection.close()
            attempt += 1
        self._seeking = None
        self._has_sought = True
        self._look()

    def _fail(self, error: ClientError) -> None:
        self._failure = error
        self._is_open = False
        self._end_tasks()
        self._arrived.set()

    def _end_tasks(self) -> None:
        self._client.topology.unlisten(self._follow)
        for stay in self._stays.values():
            stay.end()
        if self._seeking is not None:
            self._seeking.cancel()

    # Closing.

    async def close(self) -> None:
        """Stop consuming; what was not acknowledged goes back to the queues. Cancelled, it aborts.

        It ends the connections to the nodes.
        """
        if self._is_closed:
            return
        await self.stop_listening()
        self._is_closed = True
        self._is_open = False
        self._end_tasks()
        self._arrived.set()
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self.abort()

    def abort(self) -> None:
        """End at once, without a word to the nodes. Idempotent."""
        self._is_closed = True
        self._is_open = False
        self._end_tasks()
        for connection in self.connections:
            connection.abort()
        self._arrived.set()
        self._on_closed(self)

    def __repr__(self) -> str:
        """Its queue, its selector, and how many nodes it consumes from."""
        where = repr(self._queue)
        if self._wanted.selector is not None:
            where += f" where {self._wanted.selector}"
        state = "closed"
        if not self._is_closed and self._failure is None:
            state = f"open, {len(self._turns)} of {len(self._stays)} nodes"
        return f"<AsyncEverywhereConsumer {where}: {state}>"


class _Stay:
    """What one node has: see the module's text. It is the client of its connection.

    Attributes:
        options: of the connection. It never goes to another node, which has a consumer of its own.
        is_tried: set once the first attempt has come to something.
        connection: to the node; None before and between attempts.
        consumer: at the node; None as long as there is none.
        problem: what the last attempt failed with.
        task: that runs it.
    """

    def __init__(
        self,
        owner: AsyncEverywhereConsumer,
        client: ConnectingClient,
        wanted: Wanted,
        node_id: str,
        named: tuple[TransportConfiguration, ...],
    ) -> None:
        self._owner = owner
        self._client = client
        self._wanted = wanted
        self._node_id = node_id
        self._connectors = named
        self.options: ClientOptions = dataclasses.replace(client.options, failover_attempts=0)
        self.environment = client.environment
        self.topology = client.topology
        self.is_tried = asyncio.Event()
        self.connection: AsyncConnection | None = None
        self.consumer: AsyncConsumer | None = None
        self.problem: ClientError | None = None
        self.task: asyncio.Task[None] | None = None
        self._is_opening = True
        # Attempts since there was a consumer.
        self._attempt = 0
        self._has_ended = asyncio.Event()

    # What its connection asks.

    @property
    def connectors(self) -> tuple[TransportConfiguration, ...]:
        """The node, and its backup; where they were last, if they are not known any more."""
        member = self.topology.member(self._node_id)
        if member is not None and member.primary is not None:
            pair = (member.primary, member.backup)
            self._connectors = tuple(distinct([one for one in pair if one is not None]))
        return self._connectors

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the client's options with some changed."""
        return self._client.options_with(changes)

    def forget(self, connection: AsyncConnection) -> None:
        """Drop a connection that was closed."""
        if connection is self.connection:
            self.connection = None

    # How it is.

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection that works now."""
        return self._is_there and self.connection is not None and self.connection.is_connected

    @property
    def is_trying(self) -> bool:
        """Whether an attempt is under way, or a lost connection is being taken up again."""
        return self._is_opening or self._is_there

    @property
    def _is_there(self) -> bool:
        return self.connection is not None and not self.connection.is_ended

    @property
    def is_over(self) -> bool:
        """Whether its node has left, and is not connected or has handed over to another one."""
        if self.topology.member(self._node_id) is not None:
            return False
        return not self.is_connected or self._is_elsewhere

    @property
    def _is_elsewhere(self) -> bool:
        """Whether its connection leads to another node: that one has a stay of its own."""
        if self.connection is None:
            return False
        found = self.topology.member_at(self.connection.connector)
        return found is not None and found.node_id != self._node_id

    # Receiving.

    def take(self) -> AsyncReceived | None:
        """Give the node's next message if one is here."""
        # A consumer that has ended has none, and the stay is told.
        if self.consumer is None or self.consumer.error is not None:
            return None
        return self.consumer.take()

    async def force(self) -> None:
        """Wait until what the node has now is here; of one that is lost, nothing comes."""
        if self.consumer is not None:
            with contextlib.suppress(ClientError):
                await self.consumer.force_once()

    # Its life.

    async def run(self) -> None:
        """Consume, again and again, until it is ended or refused for good."""
        try:
            while True:
                self._is_opening = True
                try:
                    await self._consume(await self._open())
                except ClientError as error:
                    self.problem = error
                self._tried()
                await self._leave()
                if isinstance(self.problem, BrokerRefused) and not _may_change(self.problem):
                    self._owner.refused(self.problem)
                    return
                self._owner.changed()
                await asyncio.sleep(self.options.retry_delay_s(self._attempt))
                self._attempt += 1
        finally:
            self._tried()
            await self._leave()
            self._owner.changed()

    def end(self) -> None:
        """Give the node up."""
        if self.task is not None:
            self.task.cancel()

    async def _open(self) -> AsyncSession:
        problem: ClientError | None = None
        for connector in self.connectors:
            connection = AsyncConnection(self, connector)
            # A router would send it to another node.
            connection.follows_redirects = False
            self.connection = connection
            try:
                await connection.open_to(connector)
            except NotConnected as error:
                problem = error
                await connection.close()
                continue
            self._check_place()
            connection.on_failure = lambda error: self._owner.changed()
            connection.on_reconnected = self._reconnected
            return await connection.session(self._wanted.mode, **self._wanted.changes)
        raise problem or NotConnected(f"node {self._node_id} does not say how it is reached")

    async def _consume(self, session: AsyncSession) -> None:
        """Consume until the connection has ended; what ends it is raised."""
        wanted = self._wanted
        while True:
            try:
                self.consumer = await session.consumer(
                    wanted.queue, wanted.selector, priority=wanted.priority
                )
                await self._stay_with(self.consumer)
            except QueueMissing as error:
                self.problem = error
            self._tried()
            await asyncio.sleep(self.options.retry_delay_s(self._attempt))
            self._attempt += 1

    async def _stay_with(self, consumer: AsyncConsumer) -> None:
        """Wait until a consumer has ended; unless the broker has closed it alone, that is raised."""
        self._attempt = 0
        self._has_ended.clear()
        consumer.watch(self._arrived)
        self._owner.consumes(self)
        self._tried()
        try:
            if consumer.error is None:
                await self._has_ended.wait()
        finally:
            self._owner.consumes_no_more(self)
        self._check_place()
        if consumer.error is not None and not (
            self._is_there and isinstance(consumer.error, ClosedError)
        ):
            raise consumer.error

    def _arrived(self) -> None:
        if self.consumer is not None and self.consumer.error is not None:
            self._has_ended.set()
        self._owner.arrived()

    def _reconnected(self) -> None:
        if self._is_elsewhere:
            self._has_ended.set()
        self._owner.changed()

    def _check_place(self) -> None:
        if self._is_elsewhere and self.connection is not None:
            connector = self.connection.connector
            raise NotConnected(f"{connector.host}:{connector.port} is another node")

    def _tried(self) -> None:
        self._is_opening = False
        self.is_tried.set()

    async def _leave(self) -> None:
        self.consumer = None
        if self.connection is not None:
            await self.connection.close()
            self.connection = None


def _may_change(error: BrokerRefused) -> bool:
    """Whether a refusal may be over soon: no queue yet, or a broker that is starting."""
    is_starting = error.code == ErrorCode.SESSION_CREATION_REJECTED
    return is_starting or isinstance(error, QueueMissing)


def _problems(stays: tuple[_Stay, ...]) -> str:
    return "; ".join(str(stay.problem) for stay in stays if stay.problem is not None)
