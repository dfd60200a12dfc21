"""Brokers find each other over a simulated network that loses and repeats datagrams."""

import asyncio
import random

import pytest

from broker.config.cluster import BroadcastGroup, ClusterConfig, ClusterConnection, DiscoveryGroup
from broker.config.load import BrokerConfig
from broker.config.transport import parse_transport
from broker.discovery.dns import DnsEndpoint
from broker.discovery.group import DiscoveryGroup as HeardGroup
from tests.sim.loop import SimLoop
from tests.sim.network import Network
from tests.sim.node import PORT, Node

GROUP = {"group_address": "231.7.7.7", "group_port": 9876}
PERIOD_MS, REFRESH_MS = 2000, 10_000
SEEDS = range(1, 11)
NAMES = ("a", "b", "c", "d", "e")


def clustered(name):
    """What a node is configured with."""
    return BrokerConfig(
        cluster=ClusterConfig(
            connectors=(parse_transport("own", f"tcp://{name}:{PORT}"),),
            broadcast_groups=(
                BroadcastGroup(
                    name="bg", broadcast_period_ms=PERIOD_MS, connector_refs=("own",), **GROUP
                ),
            ),
            discovery_groups=(DiscoveryGroup(name="dg", refresh_timeout_ms=REFRESH_MS, **GROUP),),
            cluster_connections=(
                ClusterConnection(name="c", connector_ref="own", discovery_group_ref="dg"),
            ),
        )
    )


class Mesh:
    """Nodes that broadcast to each other."""

    def __init__(self, seed):
        self.seeded = random.Random(seed)
        self.loop = SimLoop(self.seeded)
        self.network = Network(self.loop)
        self.nodes = [
            Node(self.network, name, self.seeded, {"configuration": clustered(name)})
            for name in NAMES
        ]

    def heard_by(self, node):
        """The hosts that a node hears of, by their connectors."""
        entries = node.broker.cluster.discovery_groups["dg"].entries
        return {entry.connectors[0].host for entry in entries}

    def others(self, node):
        return {one.name for one in self.nodes if one is not node and one.process is not None}

    def agree(self):
        return all(
            self.heard_by(node) == self.others(node)
            for node in self.nodes
            if node.process is not None
        )

    def run(self, story):
        try:
            return self.loop.run_until_complete(self.loop.director.spawn(story))
        finally:
            self.loop.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_hear_each_other_whatever_is_lost(seed):
    mesh = Mesh(seed)

    async def story():
        for node in mesh.nodes:
            await node.start()
        for one in mesh.nodes:
            for other in mesh.nodes:
                link = mesh.network.link(one.host, other.host)
                link.loss, link.duplicates = 0.3, 0.2
        # Of five broadcasts in a row one is nearly always heard.
        for _ in range(10):
            await asyncio.sleep(PERIOD_MS / 1000)
            if mesh.agree():
                break
        assert mesh.agree()
        for links in mesh.network.links.values():
            links.loss = 0.0
        gone, other = mesh.seeded.sample(mesh.nodes, 2)
        gone.kill()
        await asyncio.sleep((REFRESH_MS + 2 * PERIOD_MS) / 1000)
        assert mesh.agree()
        mesh.network.cut(other.host, mesh.nodes[0].host)
        await gone.start()
        mesh.network.heal()
        await asyncio.sleep(2 * PERIOD_MS / 1000)
        assert mesh.agree()
        for node in mesh.nodes:
            await node.stop()

    mesh.run(story())
    assert mesh.loop.problems == []


def test_a_name_stands_for_brokers_as_long_as_it_has_their_addresses():
    loop = SimLoop(random.Random(1))
    network = Network(loop)
    hosts = [network.host(name) for name in NAMES[:3]]
    process = loop.process("client", network.host("client"))

    async def story():
        network.name("brokers", *hosts[:2])
        endpoint = DnsEndpoint(host="brokers", connector_parameters={"sslEnabled": "true"})
        group = HeardGroup("dns", endpoint, refresh_timeout_ms=REFRESH_MS, monotonic_s=loop.time)
        await group.start()
        assert await group.wait_for_broadcast(1000)
        assert addresses(group) == {host.address for host in hosts[:2]}
        assert group.entries[0].connectors[0].parameters["sslEnabled"] == "true"
        network.name("brokers", *hosts[1:])
        await asyncio.sleep(REFRESH_MS / 1000 + 5)
        assert addresses(group) == {host.address for host in hosts[1:]}
        # A name that is unknown for a while is silence, and nothing else.
        network.name("brokers")
        await asyncio.sleep(REFRESH_MS / 1000 + 5)
        assert addresses(group) == set()
        network.name("brokers", hosts[0])
        assert await group.wait_for_broadcast(5000)
        group.stop()

    def addresses(group):
        return {entry.connectors[0].host for entry in group.entries}

    try:
        loop.run_until_complete(process.spawn(story()))
    finally:
        loop.close()
