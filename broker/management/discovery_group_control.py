"""A discovery group, looked at: `discoverygroup.NAME`. Artemis has no such control."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.invocation import Control
from broker.management.json_texts import json_text

if TYPE_CHECKING:
    from broker.cluster.cluster_manager import ClusterManager
    from broker.discovery.group import DiscoveryGroup
    from broker.management.invocation import Getters

__all__ = ["DiscoveryGroupControl"]


class DiscoveryGroupControl(Control):
    """See the module's text.

    Args:
        cluster: that has the group.
        name: of the group.
    """

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.name,
        "isStarted": lambda self: self._group.is_started,
        "getEntriesAsJSON": lambda self: json_text(self._rows),
    }

    def __init__(self, cluster: ClusterManager, name: str) -> None:
        self.name = name
        self._cluster = cluster

    @property
    def _group(self) -> DiscoveryGroup:
        return self._cluster.discovery_groups[self.name]

    @property
    def _rows(self) -> list[dict[str, object]]:
        """Brokers that were heard, each with its connectors, in the order they were heard first."""
        return [
            {
                "nodeID": entry.node_id,
                "connectors": [f"{one.host}:{one.port}" for one in entry.connectors],
            }
            for entry in self._group.entries
        ]
