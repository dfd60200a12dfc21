"""What a consumer over all nodes has at one of them: connection, session and consumer.

    connect ─▶ session ─▶ consumer ─▶ its end ─▶ wait `retry_interval` ─▶ connect …

One task does this. It ends when the node is given up, or refuses for good. A queue that is missing
is asked for again by the same session: its connection tells of the cluster's members meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Final, Protocol

from broker.client.aio.connection import AsyncConnection
from broker.client.errors import (
    BrokerRefused,
    ClientError,
    ClosedError,
    NotConnected,
    QueueMissing,
)
from broker.client.session_state import AckMode
from broker.client.topology import distinct
from broker.errors import ErrorCode

if TYPE_CHECKING:
    from broker.client.aio.connection import ConnectingClient
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.session import AsyncSession
    from broker.client.options import ClientOptions, ClientSettings
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["NodeConsumer", "NodeOwner", "Wanted"]

_OF_TRANSACTIONS: Final = (AckMode.TRANSACTED, AckMode.XA, AckMode.XA_CLIENT)
_PASSING: Final = (ErrorCode.SESSION_CREATION_REJECTED, ErrorCode.ROUTING_EXCEPTION)


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


class NodeOwner(Protocol):
    """Whom a node's consumer tells."""

    def consumes(self, node: NodeConsumer) -> None:
        """Take its messages from now on."""

    def consumes_no_more(self, node: NodeConsumer) -> None:
        """Take no messages of it any more. Idempotent."""

    def refused(self, error: BrokerRefused) -> None:
        """The node refused for good."""

    def arrived(self) -> None:
        """The node has a message, or its consumer has ended."""

    def changed(self) -> None:
        """The node is connected, or no longer."""


class NodeConsumer:
    """See the module's text. It is the client of its connection.

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
        owner: NodeOwner,
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
    def is_consumed(self) -> bool:
        """Whether messages come from it now."""
        return self.is_connected and self.consumer is not None and self.consumer.error is None

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
        """Whether its connection leads to another node: that one is consumed by another one."""
        if self.connection is None:
            return False
        found = self.topology.member_at(self.connection.connector)
        return found is not None and found.node_id != self._node_id

    # Receiving.

    def take(self) -> AsyncReceived | None:
        """Give the node's next message if one is here."""
        # A consumer that has ended has none, and its task sees to that.
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
                    await self._leave()
                    self.problem = error
                    if isinstance(error, BrokerRefused) and not _may_change(error):
                        self._owner.refused(error)
                        return
                self._tried()
                await self._pause()
        finally:
            try:
                await self._leave()
            finally:
                self._tried()

    async def _pause(self) -> None:
        await asyncio.sleep(self.options.retry_delay_s(self._attempt))
        self._attempt += 1

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
                await self._wait_for_end(self.consumer)
            except QueueMissing as error:
                self.problem = error
            self._tried()
            await self._pause()

    async def _wait_for_end(self, consumer: AsyncConsumer) -> None:
        """Wait until a consumer has ended; raise why, unless the broker has closed it alone."""
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
        self._owner.changed()

    async def _leave(self) -> None:
        self.consumer = None
        if self.connection is not None:
            await self.connection.close()
            self.connection = None


def _may_change(error: BrokerRefused) -> bool:
    """Whether a refusal may be over soon: no queue yet, a broker that starts, a router's choice."""
    return isinstance(error, QueueMissing) or error.code in _PASSING
