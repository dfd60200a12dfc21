"""One consumer over all nodes of a cluster: a connection, session and consumer for each of them.

    topology of the client ─▶ a NodeConsumer for each member ─▶ take(), in turn

A node's departure alone does not end its consumer, if its connection is there: where two nodes have
lost each other, each tells that the other one has left, and both serve on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from broker.client.aio.connection import AsyncConnection
from broker.client.aio.node_consumer import NodeConsumer
from broker.client.aio.receiving import Receiving
from broker.client.errors import NotConnected
from broker.client.topology import distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.client.aio.connection import ConnectingClient
    from broker.client.aio.node_consumer import Wanted
    from broker.client.aio.received import AsyncReceived
    from broker.client.errors import BrokerRefused, ClientError
    from broker.client.topology import Member
    from broker.model.transport_configuration import TransportConfiguration


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
        reached: TransportConfiguration,
        on_closed: Callable[[AsyncEverywhereConsumer], object],
    ) -> None:
        super().__init__(wanted.queue)
        self._client = client
        self._wanted = wanted
        # The connector by which the topology was learned.
        self._reached = reached
        self._on_closed = on_closed
        self._nodes: dict[str, NodeConsumer] = {}
        # Those that have a consumer; the next one to take from is the first.
        self._turns: deque[NodeConsumer] = deque()
        self._refusals: deque[BrokerRefused] = deque()
        self._failure: ClientError | None = None
        # Of nodes, also of those that are being left; and the search where none is left.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_open = False
        self._seeking: asyncio.Task[None] | None = None
        self._has_sought = False

    async def open(self) -> None:
        """Consume from all nodes that are known; each of them was tried when this returns.

        Raises:
            BrokerRefused: a node refused for good.
            NotConnected: no node could be reached.
        """
        self._client.topology.listen(self._follow)
        self._follow()
        nodes = tuple(self._nodes.values())
        for node in nodes:
            await node.is_tried.wait()
        if self._refusals:
            raise self._refusals.popleft()
        if not any(node.is_connected for node in self._nodes.values()):
            raise NotConnected(_problems(nodes) or "no broker says how it is reached")
        self._is_open = True
        self._look()

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The nodes that it consumes from now; the one that was heard of first is the first."""
        return tuple(node_id for node_id, node in self._nodes.items() if node.is_consumed)

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
            node = self._turns[0]
            self._turns.rotate(-1)
            if (received := node.take()) is not None:
                return received
        if self._failure is not None:
            raise self._failure
        return None

    def ask(self) -> None:
        """Let a message come from each node, where it waits to be asked for."""
        for node in self._turns:
            if node.consumer is not None:
                node.consumer.ask()

    def stop_asking(self) -> None:
        """No call waits for a message any more."""
        for node in self._turns:
            if node.consumer is not None:
                node.consumer.stop_asking()

    async def force(self) -> None:
        """Wait until what the nodes that are connected have now is here."""
        await asyncio.gather(*(node.force() for node in tuple(self._turns) if node.is_connected))

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

    # What the nodes tell.

    def consumes(self, node: NodeConsumer) -> None:
        """Take messages of a node from now on.

        Args:
            node: that has a consumer.
        """
        self._turns.append(node)
        self.changed()

    def consumes_no_more(self, node: NodeConsumer) -> None:
        """Take no messages of a node any more. Idempotent.

        Args:
            node: whose consumer has ended.
        """
        with contextlib.suppress(ValueError):
            self._turns.remove(node)

    def refused(self, error: BrokerRefused) -> None:
        """Have the next call of `receive` raise what a node refused for good.

        Args:
            error: what it said.
        """
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
        """Have a consumer at every member, and none with those that have left."""
        if self._is_closed or self._failure is not None:
            return
        for member in self._members():
            if member.node_id not in self._nodes:
                found = tuple(distinct([self._reached, *self._client.connectors]))
                node = NodeConsumer(self, self._client, self._wanted, member.node_id, found)
                self._nodes[member.node_id] = node
                node.task = self._spawn(node.run())
        for node_id, node in tuple(self._nodes.items()):
            if node.is_over:
                del self._nodes[node_id]
                node.end()
        self._look()

    def _members(self) -> list[Member]:
        """Give those to consume from."""
        members = self._client.topology.members
        named = [one for one in members if one.primary is not None]
        if named or self._nodes:
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
        nodes = tuple(self._nodes.values())
        if not self._is_open or any(node.is_connected for node in nodes):
            self._has_sought = False
        elif self._seeking is None and not self._has_sought:
            self._seeking = self._spawn(self._seek())
        elif self._seeking is None and not any(node.is_trying for node in nodes):
            self._fail(NotConnected(f"no node is left: {_problems(nodes)}"))

    async def _seek(self) -> None:
        """Ask the brokers of the URI for the cluster's members, as often as for a lost connection.

        A node that has left and comes back is told of by those that are connected: here none is.
        """
        options = self._client.options
        attempt = 0
        while attempt < options.reconnect_attempts or options.reconnect_attempts == -1:
            await asyncio.sleep(options.retry_delay_s(attempt))
            if any(node.is_connected for node in self._nodes.values()):
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
        for node in self._nodes.values():
            node.end()
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
        for task in tuple(self._tasks):
            task.cancel()
        for node in self._nodes.values():
            if node.connection is not None:
                node.connection.abort()
        self._arrived.set()
        self._on_closed(self)

    def __repr__(self) -> str:
        """Its queue, its selector, and how many nodes it consumes from."""
        where = repr(self._queue)
        if self._wanted.selector is not None:
            where += f" where {self._wanted.selector}"
        state = "closed"
        if not self._is_closed and self._failure is None:
            state = f"open, {len(self.node_ids)} of {len(self._nodes)} nodes"
        return f"<AsyncEverywhereConsumer {where}: {state}>"


def _problems(nodes: tuple[NodeConsumer, ...]) -> str:
    return "; ".join(str(node.problem) for node in nodes if node.problem is not None)
