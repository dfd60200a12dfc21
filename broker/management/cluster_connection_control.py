"""A cluster connection, managed: `clusterconnection.NAME` (ClusterConnectionControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.contents import each, remove_all
from broker.management.errors import ManagementError
from broker.management.invocation import NAME, Control, operation
from broker.management.json_texts import json_text
from broker.management.waiting import awaited
from broker.routing.remote_bindings import STORE_AND_FORWARD

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.management.access import ManagedBroker
    from broker.management.invocation import Getters
    from broker.queues.queue import Queue

__all__ = ["ClusterConnectionControl"]


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
        rows = self._connection.peer_rows()
        known = {row["nodeID"] for row in rows}
        prefix = f"{STORE_AND_FORWARD}{self._config.name}."
        for name, queue in self._broker.postoffice.addresses.queues.items():
            node_id = name.removeprefix(prefix)
            if name.startswith(prefix) and node_id not in known:
                rows.append(
                    {
                        "nodeID": node_id,
                        "connected": False,
                        "target": "",
                        "lostForMs": -1,
                        "queues": 0,
                        "consumers": 0,
                        "waiting": queue.message_count,
                        "pending": 0,
                        "acknowledged": 0,
                        "sentBack": 0,
                        "reason": "not seen since the start of this broker",
                    }
                )
        return rows

    def _sum(self, column: str) -> int:
        return sum(value for row in self._rows if isinstance(value := row[column], int))

    def _queue(self, node_id: str) -> Queue:
        name = f"{STORE_AND_FORWARD}{self._config.name}.{node_id}"
        found = self._broker.postoffice.addresses.queues.get(name)
        if found is None:
            raise ManagementError(f"nothing waits for node {node_id}: queue {name} does not exist")
        return found

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
    def return_messages(self, node_id: str) -> Generator[float | None, None, int]:
        """Route what waits for a node by its addresses again; how many.

        What finds no queue stays, and what is on its way to the node does.
        """
        mover = self._broker.dead_letters
        queue = self._queue(node_id)
        return (yield from each(queue, lambda one: True, mover.return_to_address))

    @operation("dropMessages", NAME)
    def drop_messages(self, node_id: str) -> Generator[float | None, None, int]:
        """Delete what waits for a node; how many. What is on its way there stays."""
        return (yield from remove_all(self._queue(node_id)))

    @operation("start")
    def start(self) -> None:
        """Connect to the other members, where it was stopped."""
        self._connection.start()

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Leave the other members, until it is started or the broker is."""
        yield from awaited(self._connection.stop())
