"""Members of a cluster, as a broker tells clients: itself, and peers while they are connected."""

import asyncio
import dataclasses
import json

import pytest

from broker.client import AsyncClient
from broker.client.errors import NotConnected
from broker.cluster import seeking
from broker.cluster.cluster_manager import ClusterManager
from broker.cluster.peer_bridge import PeerBridge
from broker.cluster.topology import ClusterTopology as ToldTopology
from broker.config.cluster import ClusterConfig, ClusterConnection
from broker.config.core import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER, SecurityConfig
from broker.config.transport import parse_transport
from broker.discovery.topology import Departure, Member
from broker.environment import Environment
from broker.model.transport_configuration import TransportConfiguration
from broker.notifications import NullNotifier
from broker.options import BrokerOptions
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader
from broker.protocols.core.packet_cluster import (
    ClusterConnect,
    ClusterConnectReply,
    ClusterTopology,
    NodeAnnounce,
    SubscribeTopology,
)
from broker.protocols.core.packet_connection import CLUSTER_CHANNEL, PING_CHANNEL
from broker.protocols.core.packets import decode_packet
from broker.security.facade import SecurityFacade
from broker.security.manager import SecurityManager
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from tests.broker.cluster.groups import (
    LOOPBACK,
    configuration,
    needs_multicast,
    started,
    udp,
    until,
)
from tests.broker.cluster.mesh import Mesh
from tests.interop.asynchronous import asynchronous
from tests.servers import free_port

WAIT_S = 30
PEER = "00000000-0000-1000-8000-000000000001"


def connector(port):
    return TransportConfiguration("peer", parameters={"host": "peer", "port": str(port)})


class Peer:
    """A connection that speaks of a cluster."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._frames = FrameReader()
        self._waiting = []

    @classmethod
    async def connected(cls, port):
        made = cls(*await asyncio.open_connection(LOOPBACK, port))
        made._writer.write(MAGIC)
        return made

    def put(self, channel, packet):
        self._writer.write(packet.frame(channel, versions.CURRENT))

    async def get(self):
        async with asyncio.timeout(WAIT_S):
            while not self._waiting:
                for kind, _, body in self._frames.feed(await self._reader.read(65536)):
                    self._waiting.append(decode_packet(kind, body, versions.CURRENT))
        return self._waiting.pop(0)

    async def log_in(self, user="u", password="p"):
        self.put(CLUSTER_CHANNEL, ClusterConnect(user, password))
        reply = await self.get()
        assert isinstance(reply, ClusterConnectReply)
        return reply.authorized

    def announce(self, event_id, port=1, *, node_id=PEER, **more):
        self.put(
            CLUSTER_CHANNEL,
            NodeAnnounce(node_id, None, False, event_id, connector(port), None, **more),
        )

    async def subscribe(self):
        """Ask for the topology; the members, up to the last one."""
        self.put(PING_CHANNEL, SubscribeTopology(True, versions.CURRENT))
        found = [await self.get()]
        while not found[-1].last:
            found.append(await self.get())
        return found

    async def close(self):
        self._writer.close()
        await self._writer.wait_closed()


def clustered(folder):
    return configuration(folder, "one", udp(free_port()), free_port())


def port_of(broker):
    return broker.acceptors[0].port


@asynchronous
async def test_a_lone_broker_is_one_member_without_a_connector():
    acceptors = (AcceptorOptions(host=LOOPBACK, port=0),)
    async with started(BrokerOptions(acceptors=acceptors)) as broker:
        peer = await Peer.connected(port_of(broker))
        (member,) = await peer.subscribe()
        assert (member.node_id, member.primary) == (broker.node_id, None)
        await peer.close()


@needs_multicast
@asynchronous
async def test_members_come_and_go_with_their_connections(tmp_path):
    async with started(clustered(tmp_path)) as broker:
        watching = await Peer.connected(port_of(broker))
        (own,) = await watching.subscribe()
        assert (own.primary.host, own.primary.port) == (LOOPBACK, port_of(broker))
        assert own.server_version == versions.CURRENT
        peer = await Peer.connected(port_of(broker))
        # Before it has shown who it is, it says nothing that counts.
        peer.announce(1)
        assert await peer.log_in()
        peer.announce(5, 7)
        told = await told_of(watching, PEER)
        assert (told.unique_event_id, told.primary.port, told.exit) == (5, 7, False)
        assert members_of(broker) == {broker.node_id, PEER}
        again = await Peer.connected(port_of(broker))
        assert await again.log_in()
        again.announce(6, 7)
        assert (await told_of(watching, PEER)).unique_event_id == 6
        await peer.close()
        await again.close()
        told = await told_of(watching, PEER)
        assert (told.exit, told.unique_event_id) == (True, 6)
        assert members_of(broker) == {broker.node_id}
        await watching.close()


async def told_of(peer, node_id):
    """What is told of a node next; this broker announces itself now and then."""
    while True:
        packet = await peer.get()
        assert isinstance(packet, ClusterTopology)
        if packet.node_id == node_id:
            return packet


def members_of(broker):
    return {member.node_id for member in broker.cluster.topology("").members}


def no_bridge(monkeypatch):
    """It ends before a bridge has come to it: nothing else says that it is gone."""
    monkeypatch.setattr(PeerBridge, "start", lambda self: None)


def no_introduction(monkeypatch):
    """It ends once it has told who it is, and before it says that it takes us."""
    no_bridge(monkeypatch)

    async def cut(connection, *rest):
        await until(lambda: connection.is_ended)
        raise NotConnected("cut")

    monkeypatch.setattr(seeking, "introduce", cut)


def no_use(monkeypatch):
    """It ends once it has told a bridge who it is."""

    async def cut(self, link):
        raise await link.lost

    monkeypatch.setattr(PeerBridge, "_prepare", cut)


@pytest.mark.parametrize("cut", [no_bridge, no_introduction, no_use])
@asynchronous
async def test_a_member_that_was_found_and_never_reached_goes_with_its_connection(monkeypatch, cut):
    cut(monkeypatch)
    mesh = Mesh(2, links={0: [1], 1: []}, direct=True)
    async with mesh.serving() as nodes:
        for _ in range(2):  # It comes back as the one that it was.
            await until(lambda: len(nodes[0].cluster.topology("").members) == 2)
            (acceptor,) = nodes[1].acceptors
            await acceptor.stop()
            for connection in list(acceptor.connections):
                connection.abort()
            await until(lambda: len(nodes[0].cluster.topology("").members) == 1)
            await acceptor.start()


@needs_multicast
@asynchronous
async def test_clients_connect_to_members(tmp_path):
    async with started(clustered(tmp_path)) as broker:
        peer = await Peer.connected(port_of(broker))
        assert await peer.log_in()
        # A second address of the same broker stands in for another one.
        more = TransportConfiguration(
            "more", parameters={"host": "127.0.0.1", "port": str(port_of(broker))}
        )
        peer.put(CLUSTER_CHANNEL, NodeAnnounce(PEER, "g", False, 3, more, connector(9), "s"))
        await until(lambda: len(members_of(broker)) == 2)
        async with AsyncClient(f"tcp://{LOOPBACK}:{port_of(broker)}") as client:
            await client.connect()
            member = client.topology.member(PEER)
            assert (member.backup_group_name, member.scale_down_group_name) == ("g", "s")
            assert (member.primary, member.backup) == (more, connector(9))
            await client.connect()
        await peer.close()


@needs_multicast
@asynchronous
async def test_a_second_broker_of_the_node_id_is_refused_and_a_backup_is_not(tmp_path, caplog):
    async with started(clustered(tmp_path)) as broker:
        peer = await Peer.connected(port_of(broker))
        assert await peer.log_in()
        event_id = broker.clock_ms() + 60_000
        peer.announce(event_id, 9, node_id=broker.node_id)
        await until(lambda: "has this broker's node id" in caplog.text)
        topology = broker.cluster.topology("")
        assert topology.members[0].primary.port == port_of(broker)
        backup = NodeAnnounce(broker.node_id, None, True, event_id, connector(9), None)
        peer.put(CLUSTER_CHANNEL, backup)
        await until(lambda: topology.members[0].backup is not None)
        assert topology.members[0].primary.port == port_of(broker)
        await peer.close()
        assert len(topology.members) == 1


@pytest.mark.parametrize(
    ("user", "password", "is_peer"),
    [
        ("u", "p", True),
        ("u", "x", False),
        ("admin", "admin", False),
        (DEFAULT_CLUSTER_USER, DEFAULT_CLUSTER_PASSWORD, False),
    ],
)
@asynchronous
async def test_a_peer_shows_the_credentials_of_the_cluster(user, password, is_peer):
    async with started_with(SecurityConfig(cluster_user="u", cluster_password="p")) as broker:
        peer = await Peer.connected(port_of(broker))
        assert await peer.log_in(user, password) is is_peer
        await peer.close()


@asynchronous
async def test_the_default_pair_is_refused_where_it_is_configured():
    async with started_with(SecurityConfig()) as broker:
        peer = await Peer.connected(port_of(broker))
        assert not await peer.log_in(DEFAULT_CLUSTER_USER, DEFAULT_CLUSTER_PASSWORD)
        await peer.close()


class Admin:
    """Knows one user."""

    def authenticate(self, name, password):
        return frozenset({"amq"}) if (name, password) == ("admin", "admin") else None


def started_with(security):
    options = BrokerOptions(acceptors=(AcceptorOptions(host=LOOPBACK, port=0),))
    configuration = dataclasses.replace(options.configuration, security=security)
    manager = SecurityManager(
        Admin(), cluster_user=security.cluster_user, cluster_password=security.cluster_password
    )
    made = Broker(
        dataclasses.replace(options, configuration=configuration),
        security=SecurityFacade(manager),
    )
    return _Started(made)


class _Started:
    def __init__(self, broker):
        self._broker = broker

    async def __aenter__(self):
        await self._broker.start()
        return self._broker

    async def __aexit__(self, *_):
        await self._broker.stop()


@needs_multicast
@asynchronous
async def test_the_default_pair_is_warned_of_at_every_start(tmp_path, caplog):
    options = clustered(tmp_path)
    defaults = dataclasses.replace(options.configuration, security=SecurityConfig())
    for config, is_told in ((options.configuration, False), (defaults, True), (defaults, True)):
        caplog.clear()
        async with started(dataclasses.replace(options, configuration=config)):
            assert ("AMQ222007" in caplog.text) == is_told


@needs_multicast
@asynchronous
async def test_operators_see_members_and_groups(tmp_path):
    async with started(clustered(tmp_path)) as broker:
        client = AsyncClient(f"tcp://{LOOPBACK}:{port_of(broker)}")
        async with client:
            ask = (await client.session()).manage
            place = f"{LOOPBACK}:{port_of(broker)}"
            assert json.loads(await ask("broker", "listNetworkTopology")) == [
                {"nodeID": broker.node_id, "live": place, "primary": place}
            ]
            assert await ask("broker", "isClustered") is True
            assert await ask("broker", "getClusterConnectionNames") == ["c"]
            assert await ask("broadcastgroup.bg", "getConnectorPairs") == ["own"]
            assert await ask("broadcastgroup.bg", "getGroupAddress") == "231.7.7.7"
            assert await ask("broadcastgroup.bg", "getBroadcastPeriod") == 50
            await ask("broadcastgroup.bg", "stop")
            assert await ask("broadcastgroup.bg", "isStarted") is False
            await ask("broadcastgroup.bg", "start")
            assert await ask("broadcastgroup.bg", "isStarted") is True
            assert await ask("discoverygroup.dg", "isStarted") is True
            assert await ask("discoverygroup.dg", "getEntriesAsJSON") == "[]"


def test_what_changes_is_told_and_a_set_back_clock_makes_no_old_news():
    now_ms, told = 1000, []
    topology = ToldTopology("own", connector(1), lambda: now_ms)
    topology.listen(told.append)

    now_ms = 500
    topology.announce()
    topology.announced(Member(PEER, 5, connector(2)), "connection")
    topology.announced(Member(PEER, 5, connector(2)), "connection")
    topology.disconnected("connection")
    topology.unlisten(told.append)
    topology.announce()

    assert told == [
        Member("own", 1001, connector(1)),
        Member(PEER, 5, connector(2)),
        Departure(PEER, 5),
    ]


def test_a_broker_says_one_event_id_until_a_member_may_have_taken_it_for_gone():
    told = []
    topology = ToldTopology("own", connector(1), lambda: 1000)
    topology.started_again()
    topology.listen(told.append)
    assert [topology.event_id_after(None), topology.event_id_after(None)] == [1000, 1000]
    assert told == []

    # The connections to two members are lost: one later id is enough for both.
    assert [topology.event_id_after(1000), topology.event_id_after(1000)] == [1001, 1001]
    topology.started_again()

    assert told == [Member("own", 1001, connector(1)), Member("own", 1002, connector(1))]


def test_each_cluster_connection_has_a_topology_with_its_own_connector():
    names = ("one", "two")
    manager = ClusterManager(
        ClusterConfig(
            cluster_connections=tuple(
                ClusterConnection(name=name, connector_ref=name) for name in names
            )
        ),
        connectors={name: parse_transport(name, f"tcp://{name}:1") for name in names},
        node_id="own",
        environment=Environment(),
        notifications=NullNotifier(),
        has_default_credentials=False,
    )

    # An acceptor without the parameter clusterConnection gets the first.
    for asked, found in (("two", "two"), ("one", "one"), ("", "one"), ("none", "one")):
        (member,) = manager.topology(asked).members
        assert member.primary.host == found
