"""What a resource's name stands for; looked up for each request, so nothing gone is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.cluster.peer_rows import left_names
from broker.management.acceptor_control import AcceptorControl
from broker.management.address_control import AddressControl
from broker.management.bridge_control import BridgeControl
from broker.management.broadcast_group_control import BroadcastGroupControl
from broker.management.broker_control import BrokerControl
from broker.management.cluster_connection_control import ClusterConnectionControl
from broker.management.connection_router_control import ConnectionRouterControl
from broker.management.discovery_group_control import DiscoveryGroupControl
from broker.management.divert_control import DivertControl
from broker.management.queue_control import QueueControl

if TYPE_CHECKING:
    from broker.management.access import ManagedBroker
    from broker.management.forwarding_control import LeftConnectionControl
    from broker.management.invocation import Control

__all__ = ["Resources"]


class Resources:
    """See the module's text.

    Args:
        broker: to manage.
    """

    def __init__(self, broker: ManagedBroker) -> None:
        self._broker = broker
        self._own = BrokerControl(broker)

    def find(self, name: str) -> Control | None:
        """Give what is managed under a name; None if there is nothing.

        broker, queue.X, address.X, divert.X, acceptor.X, bridge.X, jmsbridge.X, broadcastgroup.X,
        discoverygroup.X, clusterconnection.X, connectionrouter.X
        """
        if name == "broker":
            return self._own
        kind, _, rest = name.partition(".")
        addresses = self._broker.parts.postoffice.addresses
        if kind == "queue" and rest in addresses.queues:
            return QueueControl(self._broker, addresses.queues[rest])
        if kind == "address" and rest in addresses.by_name:
            return AddressControl(self._broker, addresses.by_name[rest])
        if kind == "divert":
            found = addresses.find_divert(rest)
            if found is None:
                return None
            return DivertControl(found, self._broker.parts.retroactive)
        if kind == "bridge" and rest in self._broker.bridges.by_name:
            return BridgeControl(self._broker.bridges.by_name[rest])
        if kind == "jmsbridge":
            control = self._broker.jms_bridges.get(rest)
            if control is None:
                return None
            # It needs the bridges' modules, which few brokers do.
            from broker.management.jms_bridge_control import JMSBridgeResource

            return JMSBridgeResource(control)
        cluster = self._broker.cluster
        if kind == "clusterconnection" and rest in cluster.connections:
            return ClusterConnectionControl(self._broker, cluster.connections[rest])
        if kind == "clusterconnection" and (
            rest in cluster.topologies or rest in left_names(addresses.queues, cluster.topologies)
        ):
            return self._left_connection(rest)
        if kind == "broadcastgroup" and rest in cluster.broadcast_groups:
            return BroadcastGroupControl(cluster.broadcast_groups[rest])
        if kind == "discoverygroup" and rest in cluster.discovery_groups:
            return DiscoveryGroupControl(cluster, rest)
        routers = self._broker.clients.routers
        if kind == "connectionrouter" and routers is not None and rest in routers.by_name:
            return ConnectionRouterControl(routers.by_name[rest])
        if kind == "acceptor":
            for acceptor in self._broker.acceptors:
                if acceptor.options.name == rest:
                    return AcceptorControl(self._broker, acceptor)
        return None

    def _left_connection(self, name: str) -> LeftConnectionControl:
        # A broker without cluster connections does not load the client.
        from broker.cluster.left_connections import LeftConnection
        from broker.management.forwarding_control import LeftConnectionControl

        broker = self._broker
        postoffice = broker.parts.postoffice
        connection = LeftConnection(
            name, postoffice.addresses.queues, broker.node_id, postoffice.duplicates
        )
        return LeftConnectionControl(broker, connection)
