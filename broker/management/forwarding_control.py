"""What waits for other nodes, managed: of a cluster connection, and of one that is not in use.

An operator sends it elsewhere, deletes it, and has a node forgotten that is gone for good.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from broker.management.contents import remove_all
from broker.management.errors import ManagementError
from broker.management.forwarded_messages import move_all, return_all
from broker.management.invocation import BOOLEAN, NAME, Control, operation
from broker.management.json_texts import json_text
from broker.management.transactions import open_transactions
from broker.management.waiting import awaited
from broker.model.counted_text import counted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from broker.cluster.left_connections import LeftConnection
    from broker.cluster.peer_bindings import PeerBindings
    from broker.cluster.peer_bridge import PeerBridge
    from broker.cluster.unanswered import Unanswered
    from broker.management.access import ManagedBroker
    from broker.management.forwarded_messages import Moved
    from broker.management.invocation import Getters
    from broker.queues.queue import Queue

__all__ = ["ForwardingControl", "LeftConnectionControl"]

log = logging.getLogger("broker.cluster")

T = TypeVar("T")


class Forwarding(Protocol):
    """Store-and-forward queues of one connection."""

    @property
    def name(self) -> str:
        """Of the connection."""

    @property
    def peers(self) -> Mapping[str, PeerBridge]:
        """Bridges by the ids of their nodes."""

    def queue_of(self, node_id: str) -> Queue | None:
        """Give the queue of a node; None where there is none."""

    def unanswered(self, node_id: str, queue: Queue) -> Unanswered:
        """Give what a node may have of its queue."""

    def peer_rows(self) -> list[dict[str, object]]:
        """Give what is known of each node, as values for JSON."""

    def forget(self, node_id: str) -> None:
        """Know nothing of a node any more; its bridge has stopped."""


class ForwardingControl(Control):
    """See the module's text.

    Args:
        broker: that it belongs to.
        connection: whose queues they are.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self._connection.name,
        "getStatusAsJSON": lambda self: json_text(self._rows),
    }

    def __init__(self, broker: ManagedBroker, connection: Forwarding) -> None:
        self._broker = broker
        self._connection = connection

    @property
    def _rows(self) -> list[dict[str, object]]:
        """Each other node, those that are gone and for which messages wait too."""
        return self._connection.peer_rows()

    def _queue(self, node_id: str) -> Queue:
        found = self._connection.queue_of(node_id)
        if found is None:
            raise ManagementError(
                f"nothing waits for node {node_id}: it has no store-and-forward queue here"
            )
        return found

    def _bindings(self, node_id: str) -> PeerBindings | None:
        peer = self._connection.peers.get(node_id)
        return None if peer is None else peer.bindings

    def _is_target(self, node_id: str, target_id: str) -> bool:
        """Whether what waits for a node may wait for this one."""
        return node_id != target_id

    def _released(
        self, node_id: str, work: Generator[float | None, None, T]
    ) -> Generator[float | None, None, T]:
        """Do something with all that waits for a node.

        What is on its way to one that is not there comes back first.
        """
        peer = self._connection.peers.get(node_id)
        if peer is None or peer.is_connected or not peer.is_started:
            return (yield from work)
        yield from awaited(peer.stop(within_s=0))
        try:
            return (yield from work)
        finally:
            peer.start()

    @operation("returnMessages", NAME)
    @operation("returnMessages", NAME, BOOLEAN)
    def return_messages(
        self, node_id: str, uncertain: bool = False
    ) -> Generator[float | None, None, int]:
        """Let other queues take what waits for a node, here or elsewhere; how many.

        What finds none stays, and what is on its way to the node does. What the node may have,
        since it was sent and never answered, stays unless `uncertain`: then it is marked.
        """
        queue = self._queue(node_id)
        work = return_all(
            queue,
            self._connection.unanswered(node_id, queue),
            self._broker.parts.dead_letters,
            known=self._bindings(node_id),
            uncertain=uncertain,
        )
        return (yield from self._moved(node_id, work, uncertain=uncertain))

    @operation("moveMessages", NAME, NAME)
    @operation("moveMessages", NAME, NAME, BOOLEAN)
    def move_messages(
        self, node_id: str, target_id: str, uncertain: bool = False
    ) -> Generator[float | None, None, int]:
        """Let what waits for a node wait for another one; how many.

        What has no queue there stays; else as returnMessages.
        """
        queue, target = self._queue(node_id), self._bindings(target_id)
        if target is None or not target.is_told or not self._is_target(node_id, target_id):
            raise ManagementError(f"node {target_id} is not connected: see `broker cluster status`")
        work = move_all(
            queue,
            self._connection.unanswered(node_id, queue),
            self._broker.parts.dead_letters,
            known=self._bindings(node_id),
            target=target,
            uncertain=uncertain,
        )
        return (yield from self._moved(node_id, work, uncertain=uncertain))

    def _moved(
        self, node_id: str, work: Generator[float | None, None, Moved], *, uncertain: bool
    ) -> Generator[float | None, None, int]:
        found = yield from (self._released(node_id, work) if uncertain else work)
        if found.uncertain:
            log.warning(
                "cluster-connection %s: %d messages stay, node %s may have them: they were sent, "
                "and never answered",
                *(self._connection.name, found.uncertain, node_id),
            )
        return found.moved

    @operation("dropMessages", NAME)
    def drop_messages(self, node_id: str) -> Generator[float | None, None, int]:
        """Delete what waits for a node; how many. What is on its way to one that is there stays."""
        return (yield from self._released(node_id, remove_all(self._queue(node_id))))

    @operation("forgetNode", NAME)
    def forget_node(self, node_id: str) -> Generator[float | None, None, None]:
        """Delete the empty queue of a node that is not there."""
        queue = self._queue(node_id)
        self._ensure_unused(node_id, queue)
        peer = self._connection.peers.get(node_id)
        if peer is not None:
            yield from awaited(peer.stop(within_s=0))
            try:
                self._ensure_unused(node_id, queue, is_back=peer.is_started)
            except ManagementError:
                peer.start()
                raise
        self._connection.forget(node_id)
        addresses = self._broker.parts.postoffice.addresses
        addresses.delete_queue(queue.name)
        # What was recorded of its messages goes with its address.
        addresses.delete(queue.binding.address)
        log.info("cluster-connection %s: node %s is forgotten", self._connection.name, node_id)

    def _ensure_unused(self, node_id: str, queue: Queue, *, is_back: bool = False) -> None:
        peer = self._connection.peers.get(node_id)
        if is_back or (peer is not None and peer.is_connected):
            raise ManagementError(
                f"node {node_id} is connected: stop it for good, then forget it; "
                "see `broker cluster status`"
            )
        count = queue.message_count
        if count:
            raise ManagementError(
                f"{counted(count, 'message')} for node {node_id}: first "
                f"`broker cluster sf return {node_id}`, `move` or `drop`"
            )
        for name, tx in open_transactions(self._broker):
            if any(one.queue is queue for one in tx.sends):
                raise ManagementError(
                    f"a transaction sends to node {node_id}, {name}: commit it or roll it back"
                )


class LeftConnectionControl(ForwardingControl):
    """What waits for the nodes of a cluster connection that is not in use.

    A node may be reached by another connection: what it has is known from there.

    Args:
        broker: that it belongs to.
        connection: that is not in use.
    """

    def __init__(self, broker: ManagedBroker, connection: LeftConnection) -> None:
        super().__init__(broker, connection)

    def _bindings(self, node_id: str) -> PeerBindings | None:
        for connection in self._broker.cluster.connections.values():
            peer = connection.peers.get(node_id)
            if peer is not None:
                return peer.bindings
        return None

    def _is_target(self, node_id: str, target_id: str) -> bool:
        """Whether it may: the same node too, by a connection that is in use."""
        return True
