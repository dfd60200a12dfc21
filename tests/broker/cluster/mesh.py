"""Brokers of a cluster in this process, each with a connector of the others."""

import asyncio
import contextlib

from broker.config import BrokerConfig
from broker.config.cluster import ClusterConfig, ClusterConnection, StaticConnectors
from broker.config.core import SecurityConfig
from broker.config.transport import TransportConfig
from broker.model.load_balancing import MessageLoadBalancing
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.two_brokers import files
from tests.broker.cluster.groups import LOOPBACK
from tests.servers import free_port

CLUSTER_USER, CLUSTER_PASSWORD = "cluster", "cluster's secret"
QUICK = {
    "retry_interval_ms": 20,
    "max_retry_interval_ms": 100,
    "check_period_ms": 1000,
    "notification_interval_ms": 50,
}


def settings(**changes):
    """Of all addresses."""
    made = SettingsRepository()
    made.add("#", AddressSettings(**({"redistribution_delay_ms": 0} | changes)))
    return made


def queue(name, routing_type=RoutingType.ANYCAST, address=None, **more):
    """One that a node is configured with."""
    return QueueRequest(
        name=name,
        address=address or name,
        routing_type=routing_type,
        auto_create_address=True,
        **more,
    )


def node_options(
    name, port, others, *, mode="ON_DEMAND", queues=(), folder=None, address_settings=None, **more
):
    """Of one node.

    Args:
        name: of it.
        port: where it listens.
        others: ports of those that it is told of.
        mode: message-load-balancing.
        queues: that it is configured with.
        folder: where it keeps what it has; None keeps nothing.
        address_settings: of all addresses.
        more: of the cluster connection.
    """
    own = TransportConfig(name="own", scheme="tcp", host=LOOPBACK, port=port)
    listed = tuple(
        TransportConfig(name=f"to{one}", scheme="tcp", host=LOOPBACK, port=one) for one in others
    )
    direct = more.pop("direct", False)
    policy = more.pop("ha_policy", None)
    names = more.pop("names", ("mesh",))
    addresses = more.pop("addresses", ("",) * len(names))
    connections = tuple(
        ClusterConnection(
            name=one,
            address=address,
            connector_ref="own",
            message_load_balancing=MessageLoadBalancing[mode],
            static_connectors=StaticConnectors(
                connector_refs=tuple(one.name for one in listed),
                allow_direct_connections_only=direct,
            ),
            discovery_group_ref=None,
            **(QUICK | more),
        )
        for one, address in zip(names, addresses, strict=True)
    )
    configuration = BrokerConfig(
        cluster=ClusterConfig(
            connectors=(own, *listed), cluster_connections=connections, ha_policy=policy
        ),
        security=SecurityConfig(
            security_enabled=False,
            cluster_user=CLUSTER_USER,
            cluster_password=CLUSTER_PASSWORD,
        ),
    )
    return BrokerOptions(
        name=name,
        acceptors=(AcceptorOptions(host=LOOPBACK, port=port),),
        store=None if folder is None else files(folder),
        settings=address_settings or settings(),
        queues=tuple(queues),
        bridges=(),
        configuration=configuration,
    )


class Mesh:
    """Brokers that know each other.

    Args:
        count: of them.
        links: by number, the numbers of those it is told of; None is all others.
        folder: where they keep what they have.
        how: more of node_options(), or by number, in `each`.
    """

    def __init__(self, count, links=None, folder=None, each=None, **how):
        self.ports = [free_port() for _ in range(count)]
        self._links = links or {}
        self._folder = folder
        self._each = each or {}
        self._how = how
        self.nodes = [None] * count

    def options(self, number):
        others = self._links.get(number, [one for one in range(len(self.ports)) if one != number])
        return node_options(
            f"node{number}",
            self.ports[number],
            [self.ports[one] for one in others],
            folder=None if self._folder is None else self._folder / str(number),
            **(self._how | self._each.get(number, {})),
        )

    async def start(self, number):
        node = Broker(self.options(number))
        await node.start()
        self.nodes[number] = node
        return node

    async def stop(self, number):
        node, self.nodes[number] = self.nodes[number], None
        if node is not None:
            await node.stop()

    @property
    def running(self):
        return [one for one in self.nodes if one is not None]

    @contextlib.asynccontextmanager
    async def serving(self):
        """All of them, connected."""
        try:
            for number in range(len(self.ports)):
                await self.start(number)
            if not self._links:
                await self.joined()
            yield self.nodes
        finally:
            await asyncio.gather(*(self.stop(one) for one in range(len(self.ports))))

    async def joined(self):
        """Wait until each has a bridge to each other one, and was told of its queues."""
        others = len(self.running) - 1
        await until(lambda: all(is_told(one, others) for one in self.running))


def peers_of(node, name="mesh"):
    return node.cluster.connections[name].peers


def is_told(node, count, name="mesh"):
    """Whether so many peers of a node have told what they have."""
    peers = peers_of(node, name).values()
    return sum(one.bindings.is_told for one in peers) >= count


async def until(condition, wait_s=30):
    """Wait until it holds."""
    async with asyncio.timeout(wait_s):
        while not condition():  # noqa: ASYNC110 - of another task.
            await asyncio.sleep(0.005)


def demand(node, address):
    """How many consumers other brokers have at an address, as far as a node knows."""
    return sum(one.consumer_count for one in node.parts.postoffice.addresses.remote.at(address))


def waiting(node, name):
    """Messages in a queue of a node."""
    found = node.parts.postoffice.addresses.queues.get(name)
    return 0 if found is None else found.message_count


def forwarding(node):
    """Messages that wait for other nodes."""
    queues = node.parts.postoffice.addresses.queues
    return sum(
        one.message_count
        for name, one in queues.items()
        if name.startswith("$.artemis.internal.sf")
    )
