"""A cluster connection, managed: `clusterconnection.NAME` (ClusterConnectionControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.forwarding_control import ForwardingControl
from broker.management.invocation import NAME, operation
from broker.management.json_texts import json_text
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.management.access import ManagedBroker
    from broker.management.invocation import Getters

__all__ = ["ClusterConnectionControl"]


class ClusterConnectionControl(ForwardingControl):
    """See the module's text.

    Args:
        broker: that it belongs to.
        connection: to manage.
    """

    getters: ClassVar[Getters] = {
        "getAddress": lambda self: self._config.address,
        "getNodeID": lambda self: self._cluster_connection.topology.node_id,
        "getMaxHops": lambda self: self._config.max_hops,
        "getRetryInterval": lambda self: self._config.retry_interval_ms,
        "getProducerWindowSize": lambda self: self._config.producer_window_size_bytes,
        "isDuplicateDetection": lambda self: self._config.use_duplicate_detection,
        "getMessageLoadBalancingType": lambda self: self._config.load_balancing.value,
        "getDiscoveryGroupName": lambda self: self._config.discovery_group_ref,
        "getStaticConnectors": lambda self: self._static,
        "getStaticConnectorsAsJSON": lambda self: json_text(self._static),
        "getTopology": lambda self: json_text(
            [one.node_id for one in self._cluster_connection.topology.members]
        ),
        "getNodes": lambda self: {
            row["nodeID"]: row["target"] for row in self._rows if row["connected"]
        },
        "isStarted": lambda self: self._cluster_connection.is_started,
        "getMessagesPendingAcknowledgement": lambda self: self._sum("pending"),
        "getMessagesAcknowledged": lambda self: self._sum("acknowledged"),
        "getMetrics": lambda self: {
            "messagesPendingAcknowledgement": self._sum("pending"),
            "messagesAcknowledged": self._sum("acknowledged"),
        },
    }

    def __init__(self, broker: ManagedBroker, connection: ClusterConnection) -> None:
        super().__init__(broker, connection)
        self._cluster_connection = connection
        self._config = connection.config

    @property
    def _static(self) -> list[str]:
        static = self._config.static_connectors
        return [] if static is None else list(static.connector_refs)

    def _sum(self, column: str) -> int:
        return sum(value for row in self._rows if isinstance(value := row[column], int))

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

    @operation("start")
    def start(self) -> None:
        """Connect to the other members, where it was stopped."""
        self._cluster_connection.start()

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Leave the other members, until it is started or the broker is."""
        yield from awaited(self._cluster_connection.stop())
