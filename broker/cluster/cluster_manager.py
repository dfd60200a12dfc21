"""What a broker does to be one of several: broadcast groups, discovery groups, topologies.

    start(): topologies tell of this broker ─▶ broadcast groups, discovery groups in use
             ─▶ cluster connections look for the other members
    stop():  the same, backwards

A group that cannot be opened is logged, and the broker serves without it, as in Artemis.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.cluster.broadcast_group import BroadcastGroup
from broker.cluster.connectors import told_connector
from broker.cluster.topology import ClusterTopology
from broker.discovery.group import DiscoveryGroup
from broker.errors import BrokerError
from broker.notifications import NotificationType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.cluster.cluster_connection import ClusterConnection, ClusteringBroker
    from broker.cluster.redistribution import Redistribution
    from broker.cluster.stranded import Stranded
    from broker.config.cluster import ClusterConfig
    from broker.config.cluster_connections import ClusterConnection as ClusterConnectionConfig
    from broker.config.discovery import BroadcastGroup as BroadcastGroupConfig
    from broker.config.transport import TransportConfig
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.notifications import Notifications

__all__ = ["ClusterManager"]

log = logging.getLogger("broker")


class ClusterManager:
    """See the module's text.

    Args:
        config: of the broker.
        connectors: by name.
        node_id: of the broker.
        environment: clock, ids, network.
        notifications: hear of groups that start and stop.
        has_default_credentials: cluster-user and cluster-password are the defaults.
        broker: what cluster connections need of it; None for one that joins no other.
        backups: how the backup of this broker is reached, by cluster connection, where that is
            known before it announces itself.

    Attributes:
        connections: cluster connections that have a connector, by their names.
        broadcast_groups: by name.
        discovery_groups: by name; unused ones are not started.
        topologies: of cluster connections, by their names, in the order of the configuration.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        connectors: Mapping[str, TransportConfig],
        node_id: str,
        environment: Environment,
        notifications: Notifications,
        has_default_credentials: bool,
        broker: ClusteringBroker | None = None,
        backups: Mapping[str, TransportConfiguration] | None = None,
    ) -> None:
        self._broker = broker
        self.connections: dict[str, ClusterConnection] = {}
        self._has_default_credentials = has_default_credentials
        self._config = config
        self._connectors = connectors
        self._node_id = node_id
        self._environment = environment
        self._backups = backups or {}
        self._notifications = notifications
        self._timers: list[asyncio.TimerHandle] = []
        self.broadcast_groups: dict[str, BroadcastGroup] = {}
        self.discovery_groups: dict[str, DiscoveryGroup] = {}
        self.topologies: dict[str, ClusterTopology] = {
            one.name: self._topology(one) for one in config.cluster_connections
        }
        self._alone = ClusterTopology(node_id, None, environment.clock.now_ms)

    @property
    def redistribution(self) -> Redistribution | None:
        """What moves messages to other nodes; None in a broker that joins no other."""
        return None if self._broker is None else self._broker.redistribution

    @property
    def stranded(self) -> Stranded | None:
        """Messages that wait although a consumer takes them; None as above."""
        return None if self._broker is None else self._broker.stranded

    def _topology(self, connection: ClusterConnectionConfig) -> ClusterTopology:
        connector = self._connectors.get(connection.connector_ref)
        if connector is None:
            log.warning(
                "AMQ222217: Cannot find connector-ref %s: clients are not told how this broker is "
                "reached (cluster-connection %s)",
                connection.connector_ref,
                connection.name,
            )
        told = None if connector is None else told_connector(connector)
        group = self._config.scale_down_group
        backup = self._backups.get(connection.name)
        return ClusterTopology(self._node_id, told, self._environment.clock.now_ms, group, backup)

    def topology(self, cluster_connection: str) -> ClusterTopology:
        """Give the topology of a cluster connection.

        Args:
            cluster_connection: its name; empty, or one that there is not, stands for the first. A
                broker without cluster connections is the only member, and has no connector.
        """
        found = self.topologies.get(cluster_connection)
        if found is None:
            found = next(iter(self.topologies.values()), self._alone)
        return found

    def has_gone_elsewhere(self, node_id: str) -> bool:
        """Whether a node that is there now, and not this one, has got all of a node's messages.

        Args:
            node_id: of a node that may have scaled down.
        """
        for connection in self.connections.values():
            peer, topology = connection.peers.get(node_id), connection.topology
            target = None if peer is None else peer.scaled_down_to
            others = (one.node_id for one in topology.members if one.node_id != topology.node_id)
            if target is not None and target in others:
                return True
        return False

    async def start(self) -> None:
        """Start what is configured."""
        if self._config.cluster_connections and self._has_default_credentials:
            log.warning(
                "AMQ222007: the broker is in a cluster with the default cluster user and password, "
                "and every broker that shows them is refused: set <cluster-user> and "
                "<cluster-password>, the same ones on all nodes"
            )
        for connection in self._config.cluster_connections:
            self._announce(connection)
        for config in self._config.broadcast_groups:
            group = self._broadcast_group(config)
            if group is None:
                continue
            self.broadcast_groups[config.name] = group
            try:
                await group.start()
            except (OSError, ValueError) as error:
                log.error("AMQ222116: unable to start broadcast group %s: %s", config.name, error)
        await self._open_discovery()
        if self._broker is not None:
            for connection in self._config.cluster_connections:
                self._join(connection, self._broker)

    async def _open_discovery(self) -> None:
        for discovery in self._config.discovery_groups:
            try:
                endpoint = discovery.open_with(self._environment)
            except (ValueError, BrokerError) as error:
                log.error("discovery group %s: %s", discovery.name, error)
                continue
            self.discovery_groups[discovery.name] = DiscoveryGroup(
                discovery.name,
                endpoint,
                refresh_timeout_ms=discovery.refresh_timeout_ms,
                monotonic_s=self._environment.clock.monotonic_s,
                own_node_id=self._node_id,
            )
        for connection in self._config.cluster_connections:
            if connection.discovery_group_ref in self.discovery_groups:
                await self.start_discovery(connection.discovery_group_ref)

    def _join(self, config: ClusterConnectionConfig, broker: ClusteringBroker) -> None:
        # A broker without cluster connections does not load the client.
        from broker.bridges.core.target import transport_of
        from broker.cluster.cluster_connection import ClusterConnection

        own = self._connectors.get(config.connector_ref)
        if own is None:
            # That was told with its topology.
            return
        static = config.static_connectors
        refs = () if static is None else static.connector_refs
        missing = [name for name in refs if name not in self._connectors]
        if missing:
            log.warning(
                "AMQ222217: Cannot find connector-ref %s: cluster-connection %s goes on without it",
                missing[0],
                config.name,
            )
        members = [self._connectors[name] for name in refs if name in self._connectors]
        listed = [transport_of(one) for one in (*members, *config.members)]
        group = self.discovery_groups.get(config.discovery_group_ref or "")

        def connectors() -> list[TransportConfiguration]:
            heard = () if group is None else group.entries
            return [*listed, *(entry.connectors[0] for entry in heard if entry.connectors)]

        connection = ClusterConnection(
            config,
            broker=broker,
            topology=self.topologies[config.name],
            own=told_connector(own),
            listed=connectors,
        )
        self.connections[config.name] = connection
        if group is not None:
            group.listen(lambda entries: connection.look())
        connection.start()

    def _announce(self, connection: ClusterConnectionConfig) -> None:
        loop = asyncio.get_running_loop()
        interval_s = connection.notification_interval_ms / 1000
        announce = self.topologies[connection.name].announce
        announce()
        for attempt in range(1, connection.notification_attempts):
            self._timers.append(loop.call_later(attempt * interval_s, announce))

    def _broadcast_group(self, config: BroadcastGroupConfig) -> BroadcastGroup | None:
        missing = [name for name in config.connector_refs if name not in self._connectors]
        if missing:
            log.warning(
                "AMQ222133: no connector is deployed with name %s. The broadcast group with "
                "name %s will not be deployed.",
                missing[0],
                config.name,
            )
            return None
        try:
            endpoint = config.open_with(self._environment)
        except (ValueError, BrokerError) as error:
            log.error("AMQ222116: unable to start broadcast group %s: %s", config.name, error)
            return None
        return BroadcastGroup(
            config,
            endpoint,
            node_id=self._node_id,
            unique_id=str(self._environment.ids.time_uuid()),
            connectors=tuple(
                told_connector(self._connectors[name]) for name in config.connector_refs
            ),
            notifications=self._notifications,
        )

    async def start_discovery(self, name: str) -> DiscoveryGroup | None:
        """Start a discovery group, where it is not started yet; None where it cannot be.

        Args:
            name: of the group. start() has made it.
        """
        group = self.discovery_groups.get(name)
        if group is None or group.is_started:
            return group
        try:
            await group.start()
        except OSError as error:
            log.error("unable to start discovery group %s: %s", name, error)
            return None
        self._notifications.discovery(NotificationType.DISCOVERY_GROUP_STARTED, name)
        return group

    async def stop(self) -> None:
        """Stop everything. Idempotent."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        connections, self.connections = self.connections, {}
        await asyncio.gather(*(one.stop() for one in connections.values()))
        for group in self.broadcast_groups.values():
            await group.stop()
        for name, discovery in self.discovery_groups.items():
            if discovery.is_started:
                discovery.stop()
                self._notifications.discovery(NotificationType.DISCOVERY_GROUP_STOPPED, name)
