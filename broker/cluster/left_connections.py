"""Store-and-forward queues of cluster connections that are not in use.

    broker.xml: <cluster-connection name="old"> is renamed, or removed
        ─▶ $.artemis.internal.sf.old.NODE stays, with what waited for the node

Nothing comes into such a queue, and no bridge takes from it: an operator moves what is in there,
and has the queue forgotten.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from broker.cluster.peer_rows import nodes_with_queues, row_of_queue
from broker.cluster.unanswered import Unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.cluster.peer_bridge import PeerBridge
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCaches

__all__ = ["LeftConnection"]


class LeftConnection:
    """What is there of a cluster connection that is not in use.

    Args:
        name: of it.
        queues: of the broker, by name.
        own_node: node id of the broker.
        duplicates: ids that are kept over restarts.

    Attributes:
        name: as given.
        peers: none.
    """

    def __init__(
        self, name: str, queues: Mapping[str, Queue], own_node: str, duplicates: DuplicateCaches
    ) -> None:
        self.name = name
        self.peers: dict[str, PeerBridge] = {}
        self._queues = queues
        self._own_node = UUID(own_node).bytes
        self._duplicates = duplicates

    def queue_of(self, node_id: str) -> Queue | None:
        """Give the store-and-forward queue of a node; None where there is none."""
        return nodes_with_queues(self._queues, self.name).get(node_id)

    def unanswered(self, node_id: str, queue: Queue) -> Unanswered:
        """Give what a node may have of its store-and-forward queue."""
        return Unanswered(queue, node_id, self._own_node, self._duplicates)

    def peer_rows(self) -> list[dict[str, object]]:
        """Give what waits for each node, as values for JSON."""
        reason = f"no cluster-connection {self.name} is in use"
        return [
            row_of_queue(node_id, queue, -1, reason, is_stranded=queue.message_count > 0)
            for node_id, queue in nodes_with_queues(self._queues, self.name).items()
        ]

    def forget(self, node_id: str) -> None:
        """Nothing is known of a node but its queue."""
