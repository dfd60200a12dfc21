"""How messages get lost in a mesh, and what happens here: docs/guide/lost-messages.md.

Nodes are made by `broker create` where it says so, so that its settings count.
"""

import dataclasses
import re
from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as command_line
from broker.client import AsyncClient
from broker.cluster import seeking
from broker.config import load
from broker.config.template import REDISTRIBUTION_DELAY_MS
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.options.from_config import broker_options
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.groups import LOOPBACK
from tests.broker.cluster.mesh import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    Mesh,
    demand,
    forwarding,
    peers_of,
    queue,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[3]
Q = (queue("q"),)
# Beyond this machine's own address, the same machine.
ALIAS = "127.0.0.2"


def created(folder, *words):
    """The configuration of an instance as `broker create` makes it, which needs no login."""
    words = (*words, "--no-web", "--allow-anonymous", "--no-persistence", "--password", "x")
    status = run(command_line, "broker", ["create", str(folder), *map(str, words)])
    assert status == 0
    return load(folder / "etc/broker.xml")


class CreatedMesh(Mesh):
    """Nodes as `broker create` makes them."""

    def options(self, number):
        port = self.ports[number]
        others = ",".join(f"tcp://{LOOPBACK}:{one}" for one in self.ports if one != port)
        config = created(
            self._folder / str(number),
            *("--name", f"node{number}", "--host", LOOPBACK, "--port", port),
            *("--static-cluster", others),
            *("--cluster-user", CLUSTER_USER, "--cluster-password", CLUSTER_PASSWORD),
        )
        return broker_options(config)

    async def joined(self):
        await until(lambda: all(self._is_joined(one) for one in self.running))

    def _is_joined(self, node):
        peers = peers_of(node, "my-cluster").values()
        return sum(one.bindings.is_told for one in peers) == len(self.running) - 1


def test_each_row_of_the_page_names_tests_that_exist():
    page = (ROOT / "docs/guide/lost-messages.md").read_text()
    rows = re.findall(r"^\| \d+ \|.*\|$", page, re.MULTILINE)
    tests = "".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))

    assert [int(row.split("|")[1]) for row in rows] == list(range(1, len(rows) + 1))
    assert [row for row in rows if not re.search(r"`test_\w+`", row)] == []
    named = set(re.findall(r"`(test_\w+)`", page))
    assert {one for one in named if f"def {one}(" not in tests} == set()


def test_a_clustered_broker_is_created_with_the_settings_that_lose_nothing(tmp_path):
    config = created(tmp_path / "i", "--clustered", "--host", LOOPBACK)

    (connection,) = config.cluster.cluster_connections
    assert connection.load_balancing.name == "ON_DEMAND"
    assert connection.use_duplicate_detection
    assert connection.max_hops == 1
    options = broker_options(config)
    assert options.settings.match("x").redistribution_delay_ms == REDISTRIBUTION_DELAY_MS == 5000
    assert options.settings.match("x").auto_create_queues
    # All protocols at one port: none is named.
    assert [one.protocols for one in options.acceptors] == [()]


@pytest.mark.slow
@asynchronous
async def test_a_consumer_that_comes_back_on_another_node_gets_what_came_meanwhile(tmp_path):
    """As behind a load balancer, to a node that never had the client or the queue."""
    mesh = CreatedMesh(2, folder=tmp_path)
    async with mesh.serving() as nodes:
        await take_one(nodes[0], "first")
        await send(nodes[0], "q", *map(str, range(10)))
        assert "q" not in nodes[1].parts.postoffice.addresses.queues

        async with session_of(nodes[1]) as session:
            await make(session)
            async with await session.consumer("q") as consumer:
                received = [await consumer.receive(30) for _ in range(10)]
        assert [one.content for one in received] == list(map(str, range(10)))
        assert waiting(nodes[0], "q") == forwarding(nodes[0]) == 0


async def make(session):
    """The queue, as a client does that consumes."""
    await session.create_queue(
        "q", "q", routing_type=RoutingType.ANYCAST, auto_created=True, durable=True
    )


async def take_one(node, content):
    async with session_of(node) as session:
        await make(session)
        await send(node, "q", content)
        async with await session.consumer("q") as consumer:
            assert (await consumer.receive(10)).content == content


class Listing(Mesh):
    """Each node is given the same list of all nodes, itself too, by another name."""

    def options(self, number):
        made = super().options(number)
        alias = TransportConfig(name="alias", scheme="tcp", host=ALIAS, port=self.ports[number])
        cluster = made.configuration.cluster
        (connection,) = cluster.cluster_connections
        static = connection.static_connectors
        static = dataclasses.replace(static, connector_refs=(*static.connector_refs, "alias"))
        cluster = dataclasses.replace(
            cluster,
            connectors=(*cluster.connectors, alias),
            cluster_connections=(dataclasses.replace(connection, static_connectors=static),),
        )
        return dataclasses.replace(
            made,
            acceptors=(AcceptorOptions(host="0.0.0.0", port=self.ports[number]),),
            configuration=dataclasses.replace(made.configuration, cluster=cluster),
        )


@asynchronous
async def test_a_node_that_lists_itself_is_no_member_of_its_own(caplog, monkeypatch):
    monkeypatch.setattr(seeking, "_STAY_S", 0.2)
    mesh = Listing(2, queues=Q, links={0: [0, 1], 1: [0, 1]})
    async with mesh.serving() as nodes:
        await mesh.joined()
        assert [list(peers_of(one)) for one in nodes] == [[nodes[1].node_id], [nodes[0].node_id]]
        connections = [one.cluster.connections["mesh"] for one in nodes]
        # No member is waited for that never comes.
        await until(lambda: all(one.is_joined for one in connections))
        await send(nodes[0], "q", "x")
        assert await take(nodes[1], "q", 1) == ["x"]
    assert "node id" not in caplog.text


@asynchronous
async def test_a_node_that_is_told_of_one_member_knows_all():
    mesh = Mesh(3, queues=Q, links={0: [], 1: [0], 2: [0]})
    async with mesh.serving() as nodes:
        await mesh.joined()
        assert [len(peers_of(one)) for one in nodes] == [2, 2, 2]


@asynchronous
async def test_a_client_of_one_node_is_told_of_all_and_one_with_a_list_needs_one_of_them():
    mesh = Mesh(2, queues=Q)
    async with mesh.serving() as nodes:
        async with AsyncClient(f"tcp://{LOOPBACK}:{mesh.ports[0]}") as client:
            await client.session()
            await until(lambda: len(client.topology.members) == 2)
        both = f"(tcp://{LOOPBACK}:{free_port()},tcp://{LOOPBACK}:{mesh.ports[1]})"
        async with AsyncClient(f"{both}?initialConnectAttempts=5&retryInterval=20") as client:
            session = await client.session()
            await session.producer("q").send("x", durable=True)
        assert waiting(nodes[1], "q") == 1


@asynchronous
async def test_what_went_to_a_consumer_that_has_left_follows_the_next_one_with_its_selector():
    """It waits on a node whose consumers do not want it, and nothing is kept of who has left."""
    mesh = Mesh(2, queues=Q)
    blue = {"properties": {"color": "blue"}}
    async with mesh.serving() as nodes, session_of(nodes[1], consumer_window_size=0) as there:
        await there.consumer("q", "color = 'red'")
        gone = await there.consumer("q", "color = 'blue'")
        await until(lambda: demand(nodes[0], "q") == 2)
        await send(nodes[0], "q", "1", **blue)
        await until(lambda: waiting(nodes[1], "q") == 1)
        await gone.close()
        await until(lambda: demand(nodes[0], "q") == 1)
        # None wants it now: it stays where it was sent.
        await send(nodes[0], "q", "2", **blue)
        assert (waiting(nodes[0], "q"), waiting(nodes[1], "q")) == (1, 1)

        async with (
            session_of(nodes[0]) as here,
            await here.consumer("q", "color = 'blue'") as consumer,
        ):
            received = [await consumer.receive(10) for _ in range(2)]
        assert sorted(one.content for one in received) == ["1", "2"]


@pytest.mark.slow
@asynchronous
async def test_groups_of_a_node_that_dies_go_to_another_one_after_the_connection_ttl():
    mesh = Mesh(3, queues=Q, connection_ttl_ms=1500)
    red = {"properties": {"_AMQ_GROUP_ID": "red"}}
    async with mesh.serving() as nodes, session_of(nodes[1]) as session:
        await session.consumer("q")
        await until(lambda: demand(nodes[0], "q") == demand(nodes[2], "q") == 1)
        await send(nodes[0], "q", "0", **red)
        await until(lambda: waiting(nodes[1], "q") == 1)
        async with session_of(nodes[2]) as other:
            consumer = await other.consumer("q")
            await until(lambda: demand(nodes[0], "q") == 2)
            # As when its machine is lost: its connections end without a word.
            (acceptor,) = nodes[1].acceptors
            await acceptor.stop()
            for connection in list(acceptor.connections):
                connection.abort()
            await until(lambda: not peers_of(nodes[0])[nodes[1].node_id].is_connected)

            await send(nodes[0], "q", "1", **red)

            # Its owner may have delivered what came before: so it waits for that.
            assert forwarding(nodes[0]) == 1
            bindings = peers_of(nodes[0])[nodes[1].node_id].bindings
            await until(lambda: bindings.is_given_up)
            await send(nodes[0], "q", "2", **red)
            received = [await consumer.receive(20)]
            while received[-1] is not None and received[-1].content != "2":
                received.append(await consumer.receive(20))
            assert "1" not in [one.content for one in received]
            # An operator gives up what waits for the node.
            await manage(nodes[0], "returnMessages", nodes[1].node_id)
            assert (await consumer.receive(20)).content == "1"


async def manage(node, operation, *arguments):
    async with session_of(node) as session:
        return await session.manage("clusterconnection.mesh", operation, *arguments)
