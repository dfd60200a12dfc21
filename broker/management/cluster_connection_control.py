"""A cluster connection, managed: `clusterconnection.NAME` (ClusterConnectionControl)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, TypeVar

from broker.management.contents import remove_all
from broker.management.errors import ManagementError
from broker.management.forwarded_messages import move_all, return_all
from broker.management.invocation import BOOLEAN, NAME, Control, operation
from broker.management.json_texts import json_text
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.cluster.peer_bindings import PeerBindings
    from broker.management.access import ManagedBroker
    from broker.management.forwarded_messages import Moved
    from broker.management.invocation import Getters
    from broker.queues.queue import Queue

__all__ = ["ClusterConnectionControl"]

log = logging.getLogger("broker.cluster")

T = TypeVar("T")


class ClusterConnectionControl(Control):
    """See the module's text.

    Args:
        broker: that it belongs to.
        connection: to manage.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self._config.name,
        "getAddress": lambda self: self._config.address,
        "getNodeID": lambda self: self._connection.topology.node_id,
        "getMaxHops": lambda self: self._config.max_hops,
        "getRetryInterval": lambda self: self._config.retry_interval_ms,
        "getProducerWindowSize": lambda self: self._config.producer_window_size_bytes,
        "isDuplicateDetection": lambda self: self._config.use_duplicate_detection,
        "getMessageLoadBalancingType": lambda self: self._config.load_balancing.value,
        "getDiscoveryGroupName": lambda self: self._config.discovery_group_ref,
        "getStaticConnectors": lambda self: self._static,
        "getStaticConnectorsAsJSON": lambda self: json_text(self._static),
        "getTopology": lambda self: json_text(
            [one.node_id for one in self._connection.topology.members]
        ),
        "getNodes": lambda self: {
            row["nodeID"]: row["target"] for row in self._rows if row["connected"]
        },
        "isStarted": lambda self: self._connection.is_started,
        "getMessagesPendingAcknowledgement": lambda self: self._sum("pending"),
        "getMessagesAcknowledged": lambda self: self._sum("acknowledged"),
        "getMetrics": lambda self: {
            "messagesPendingAcknowledgement": self._sum("pending"),
            "messagesAcknowledged": self._sum("acknowledged"),
        },
        "getStatusAsJSON": lambda self: json_text(self._rows),
    }

    def __init__(self, broker: ManagedBroker, connection: ClusterConnection) -> None:
        self._broker = broker
        self._connection = connection
        self._config = connection.config

    @property
    def _static(self) -> list[str]:
        static = self._config.static_connectors
        return [] if static is None else list(static.connector_refs)

    @property
    def _rows(self) -> list[dict[str, object]]:
        """Each other node, those that are gone and for which messages wait too."""
        return self._connection.peer_rows()

    def _sum(self, column: str) -> int:
        return sum(value for row in self._rows if isinstance(value := row[column], int))

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

    @operation("getBridgeMetrics", NAME)
    def bridge_metrics(self, node_id: str) -> dict[str, object] | None:
        """Give the metrics of the bridge to a node; null where there is none."""
        for row in self._rows:
            if row["nodeID"] == node_id:
                return {
                    "messagesPendingAcknowledgement": row["pending"],
                    "messagesAcknowledged": row["acknowledged"],
                }
        return None

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
        if target is None or not target.is_told or node_id == target_id:
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
                *(self._config.name, found.uncertain, node_id),
            )
        return found.moved

    @operation("dropMessages", NAME)
    def drop_messages(self, node_id: str) -> Generator[float | None, None, int]:
        """Delete what waits for a node; how many. What is on its way to one that is there stays."""
        return (yield from self._released(node_id, remove_all(self._queue(node_id))))

    @operation("start")
    def start(self) -> None:
        """Connect to the other members, where it was stopped."""
        self._connection.start()

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Leave the other members, until it is started or the broker is."""
        yield from awaited(self._connection.stop())
