"""CHECK_FOR_FAILOVER: a client asks whether it may go on at another node than the one it was at."""

import asyncio
import uuid

import pytest

from broker.client.aio import AsyncClient
from broker.config.ha import PrimaryOnly, ScaleDown
from broker.protocols.core import packet_connection as connections
from broker.server import scale_down
from tests.broker.bridges.two_brokers import port_of, send
from tests.broker.cluster.mesh import Mesh, peers_of, queue, settings, until, waiting
from tests.broker.wire_client import WireClient
from tests.interop.asynchronous import asynchronous

WAIT_S = 60
POLICY = PrimaryOnly(scale_down=ScaleDown(discovery_group_ref=None))


@pytest.fixture(autouse=True)
def _brief(monkeypatch):
    """A node is there at once, or not at all."""
    monkeypatch.setattr(scale_down, "WAIT_S", 0.5)


def mesh(count, *, folder=None, policies=()):
    """Nodes of these numbers scale down when they stop."""
    return Mesh(
        count,
        folder=folder,
        queues=(queue("q"),),
        each={number: {"ha_policy": POLICY} for number in policies},
        address_settings=settings(redistribution_delay_ms=-1),
    )


async def may_come(node, *node_ids):
    """What it answers clients that were connected to these nodes."""

    def ask():
        client = WireClient(port_of(node), str(uuid.uuid4()))
        try:
            for one in node_ids:
                client.put(connections.CheckForFailover(one), connections.SESSION_CHANNEL)
            replies = [client.get(connections.CheckForFailoverReply) for _ in node_ids]
            return [one.ok_to_failover for one in replies]
        finally:
            client.close()

    return await asyncio.to_thread(ask)


@asynchronous
async def test_a_node_that_hands_nothing_on_takes_clients_of_any_as_in_artemis():
    cluster = mesh(2)
    async with cluster.serving() as nodes:
        asked = (nodes[0].node_id, None, nodes[1].node_id, "of no node")
        assert await may_come(nodes[0], *asked) == [True] * 4


@asynchronous
async def test_a_node_that_scales_down_takes_clients_of_those_alone_that_are_here_now(tmp_path):
    cluster = mesh(3, folder=tmp_path, policies=(0, 1))
    async with cluster.serving() as nodes:
        left, target = nodes[0].node_id, nodes[1].node_id
        asked = (target, None, left, "of no node")
        assert await may_come(nodes[1], *asked) == [True, True, False, False]
        await send(nodes[0], "q", "1")
        connector = "to" + str(cluster.ports[1])
        await nodes[0].scale_down_choice.by_operator(nodes[0]._activation, connector)

        await cluster.stop(0)

        await until(lambda: waiting(nodes[1], "q") == 1)
        assert await may_come(nodes[1], *asked) == [True, True, True, False]
        # The third one knows where everything went, as long as that node is there.
        await until(lambda: peers_of(nodes[2])[left].scaled_down_to == target)
        assert await may_come(nodes[2], left, target) == [False, True]

        await cluster.stop(1)
        await cluster.start(1)
        assert await may_come(nodes[1], *asked) == [True, True, True, False]
        await cluster.stop(1)
        await until(lambda: len(nodes[2].cluster.topology("").members) == 1)
        assert await may_come(nodes[2], left) == [True]


async def reconnected(client, cluster, number):
    """Stop a node that a client is connected to; the connection once it works, or has ended."""
    (connection,) = client.connections
    over = asyncio.Event()
    ended = []
    connection.on_reconnected = over.set
    connection.on_ended = lambda error: (ended.append(error), over.set())
    await cluster.stop(number)
    await asyncio.wait_for(over.wait(), WAIT_S)
    return connection, ended


def uri_of(node, parameters):
    return f"tcp://127.0.0.1:{port_of(node)}?retryInterval=20&{parameters}"


async def told_of(client, count):
    """Wait until the client knows so many members."""
    await until(lambda: len(client.topology.members) == count)


@asynchronous
async def test_failover_attempts_lead_to_another_node_unless_it_says_no():
    cluster = mesh(3, policies=(1,))
    async with (
        cluster.serving() as nodes,
        AsyncClient(uri_of(nodes[0], "failoverAttempts=2")) as client,
    ):
        session = await client.session()
        await told_of(client, 3)

        connection, ended = await reconnected(client, cluster, 0)

        assert ended == []
        # Node 1 has said no.
        assert connection.connector.port == cluster.ports[2]
        await session.producer("q").send("goes on")
        assert waiting(nodes[2], "q") == 1
        # It belongs there now.
        assert connection.node_id == nodes[2].node_id


@asynchronous
async def test_failover_attempts_end_when_each_other_node_says_no():
    cluster = mesh(2, policies=(1,))
    async with (
        cluster.serving() as nodes,
        AsyncClient(uri_of(nodes[0], "failoverAttempts=2")) as client,
    ):
        await client.session()
        await told_of(client, 2)

        connection, (error,) = await reconnected(client, cluster, 0)

        assert connection.is_ended
        assert f"{cluster.ports[1]} does not take over for the broker" in str(error)


@asynchronous
async def test_without_failover_attempts_another_node_is_not_tried():
    cluster = mesh(2)
    async with (
        cluster.serving() as nodes,
        AsyncClient(uri_of(nodes[0], "reconnectAttempts=2")) as client,
    ):
        await client.session()
        await told_of(client, 2)

        connection, (error,) = await reconnected(client, cluster, 0)

        assert connection.is_ended
        assert str(cluster.ports[1]) not in str(error)


@asynchronous
async def test_a_client_follows_its_messages_when_its_node_scales_down(tmp_path):
    cluster = mesh(3, folder=tmp_path, policies=(0, 1, 2))
    async with (
        cluster.serving() as nodes,
        AsyncClient(uri_of(nodes[0], "reconnectAttempts=-1")) as client,
    ):
        session = await client.session()
        await told_of(client, 3)
        await session.producer("q").send("follows", durable=True)
        connector = "to" + str(cluster.ports[2])
        await nodes[0].scale_down_choice.by_operator(nodes[0]._activation, connector)

        connection, ended = await reconnected(client, cluster, 0)

        assert ended == []
        assert connection.connector.port == cluster.ports[2]
        consumer = await session.consumer("q")
        assert (await consumer.receive(WAIT_S)).text == "follows"
