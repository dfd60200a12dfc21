"""What waits for a node that is gone: sent back, moved, dropped, told of; never doubled."""

import asyncio
from types import SimpleNamespace

import pytest

from broker.bridges.core.sending import Sending
from broker.client.errors import NotConnected
from broker.cluster import cluster_connection, lost_nodes
from broker.cluster.lost_nodes import LostNodes
from broker.cluster.peer_bridge import PeerBridge
from broker.errors import BrokerError, ErrorCode
from broker.server.clustering import Clustering
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    forwarding,
    is_told,
    peers_of,
    queue,
    settings,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous

Q = (queue("q"),)


def refuse(*given):
    raise BrokerError(ErrorCode.ADDRESS_FULL, "AMQ229102: the disk is full")


def strict(count, folder, **more):
    """Half of what is sent to node 0 goes to node 1."""
    return Mesh(
        count,
        folder=folder,
        queues=Q,
        mode="STRICT",
        address_settings=settings(redistribution_delay_ms=-1, **more),
    )


async def manage(node, operation, *arguments):
    async with session_of(node) as session:
        return await session.manage("clusterconnection.mesh", operation, *arguments)


async def gone_with_unanswered(cluster, nodes, monkeypatch, count=20):
    """Send so many, half of them for node 1, which gets them and whose answers are lost."""
    node_id = nodes[1].node_id
    with monkeypatch.context() as patched:
        patched.setattr(Sending, "answered", lambda self, sent, error: None)
        await send(nodes[0], "q", *map(str, range(count)))
        await until(lambda: waiting(nodes[1], "q") == count // 2)
        await cluster.stop(1)
        await until(lambda: not peers_of(nodes[0])[node_id].is_connected)
    assert forwarding(nodes[0]) == count // 2
    return node_id


@asynchronous
async def test_what_the_node_may_have_stays_and_is_not_doubled_when_it_comes_back(
    tmp_path, monkeypatch
):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        node_id = await gone_with_unanswered(cluster, nodes, monkeypatch)
        sf = nodes[0].cluster.connections["mesh"].queue_of(node_id)
        for content in ("x", "y"):
            await send(nodes[0], "q", content)
        never_sent = sf.message_count - 10

        assert await manage(nodes[0], "returnMessages", node_id) == never_sent
        assert sf.message_count == 10

        await cluster.start(1)
        await cluster.joined()
        await until(lambda: forwarding(nodes[0]) == 0)
        assert waiting(nodes[1], "q") == 10
        assert waiting(nodes[0], "q") == 12


@asynchronous
async def test_a_restart_knows_what_was_sent(tmp_path, monkeypatch):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        node_id = await gone_with_unanswered(cluster, nodes, monkeypatch)
        await cluster.stop(0)
        await cluster.start(0)
        node = cluster.nodes[0]
        await send(node, "q", "x")

        assert await manage(node, "returnMessages", node_id) == 0
        assert forwarding(node) == 10

        # The node is gone for good: an operator says so, and each is marked.
        assert await manage(node, "returnMessages", node_id, True) == 10
        await until(lambda: forwarding(node) == 0)
        async with session_of(node) as session, await session.consumer("q") as consumer:
            marked = 0
            for _ in range(21):
                received = await consumer.receive(10)
                marked += f"_QUIVER_SENT_TO_{node_id}" in received.message.properties
        assert marked == 10


@asynchronous
async def test_what_was_returned_marked_is_refused_by_the_node_that_has_it(tmp_path, monkeypatch):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        node_id = await gone_with_unanswered(cluster, nodes, monkeypatch)
        assert await manage(nodes[0], "returnMessages", node_id, True) == 10
        assert waiting(nodes[0], "q") == 20

        await cluster.start(1)
        await until(lambda: is_told(nodes[0], 1))
        # As redistribution does, where a consumer is there.
        node = nodes[0]
        (there,) = node.parts.postoffice.addresses.remote.at("q")
        for reference in list(node.parts.postoffice.addresses.queues["q"].references()):
            assert not list(node.parts.dead_letters.redistribute(reference, there))
        await until(lambda: waiting(node, "q") == forwarding(node) == 0)

        # Ten of them were there: they were not taken again.
        assert waiting(cluster.nodes[1], "q") == 20
        assert len(set(await take(cluster.nodes[1], "q", 20))) == 20


@asynchronous
async def test_it_is_moved_to_another_node_or_dropped(tmp_path):
    cluster = strict(3, tmp_path)
    async with cluster.serving() as nodes:
        one, two = nodes[1].node_id, nodes[2].node_id
        sf = nodes[0].cluster.connections["mesh"].queue_of(one)
        sf.pause()
        await send(nodes[0], "q", *map(str, range(30)))
        assert sf.message_count == 10
        await until(lambda: waiting(nodes[2], "q") == 10)
        await cluster.stop(1)

        assert await manage(nodes[0], "moveMessages", one, two) == 10
        await until(lambda: waiting(nodes[2], "q") == 20)
        await until(lambda: forwarding(nodes[0]) == 0)

        sf.resume()
        await cluster.start(1)
        await cluster.joined()
        sf.pause()
        await send(nodes[0], "q", *map(str, range(30)))
        assert sf.message_count == 10
        assert await manage(nodes[0], "dropMessages", one) == 10
        await until(lambda: sf.message_count == 0)


@asynchronous
async def test_a_small_cache_of_ids_limits_what_is_on_its_way(tmp_path, monkeypatch):
    cluster = strict(2, tmp_path, id_cache_size=3)
    async with cluster.serving() as nodes:
        node_id = nodes[1].node_id
        with monkeypatch.context() as patched:
            patched.setattr(Sending, "answered", lambda self, sent, error: None)
            await send(nodes[0], "q", *map(str, range(40)))
            await until(lambda: waiting(nodes[1], "q") == 3)
            await asyncio.sleep(0.1)
            assert waiting(nodes[1], "q") == 3
            await cluster.stop(1)
            await until(lambda: not peers_of(nodes[0])[node_id].is_connected)
        await cluster.start(1)
        await cluster.joined()
        await until(lambda: forwarding(nodes[0]) == 0)
        assert len(set(await take(cluster.nodes[1], "q", 20))) == 20
        assert waiting(cluster.nodes[1], "q") == 0


class Timers:
    def __init__(self):
        self.next = None

    def call_later(self, delay_s, callback, *arguments):
        self.next = callback
        return self

    def cancel(self):
        self.next = None


class Told:
    def __init__(self):
        self.told = []

    def stranded(self, *what):
        self.told.append(what)


def test_stranded_messages_are_told_of_once(caplog):
    timers, told = Timers(), Told()
    rows = []
    watch = LostNodes("mesh", lambda: rows, timers=timers, notifications=told)
    watch.start()
    for row, count in (
        (("n", 5, lost_nodes.STRANDED_S - 1), 0),
        (("n", 5, lost_nodes.STRANDED_S), 1),
        (("n", 7, lost_nodes.STRANDED_S + 5), 1),
        (("n", 0, lost_nodes.STRANDED_S + 9), 1),
        (("n", 1, lost_nodes.STRANDED_S + 10), 2),
    ):
        rows[:] = [row]
        timers.next()
        assert len(told.told) == count
    assert told.told[0] == ("mesh", "n", 5, 60_000)
    assert watch.is_told("n")
    assert "sf return|move|drop" in caplog.text
    watch.stop()
    assert timers.next is None


@asynchronous
async def test_a_full_disk_ends_neither_the_link_nor_the_broker(tmp_path, monkeypatch, caplog):
    cluster = strict(2, tmp_path)
    async with cluster.serving() as nodes:
        with monkeypatch.context() as patched:
            patched.setattr(Sending, "answered", lambda self, sent, error: None)
            await send(nodes[0], "q", *map(str, range(20)))
            await until(lambda: waiting(nodes[1], "q") == 10)
            peer = peers_of(nodes[0])[nodes[1].node_id]
            patched.setattr(peer.unanswered, "_keep", refuse)
            await cluster.stop(1)
            await until(lambda: not peer.is_connected)
        assert "what the peer may have is not recorded: AMQ229102" in caplog.text
        # A bridge that has ended by a fault.
        assert "AMQ222118" not in caplog.text
        sf = nodes[0].cluster.connections["mesh"].queue_of(peer.node_id)
        assert all(peer.unanswered.may_be_there(one.message) for one in sf.references())
        assert peer.unanswered.is_linked

        await cluster.start(1)
        await cluster.joined()
        await until(lambda: forwarding(nodes[0]) == 0)
        assert waiting(nodes[1], "q") == waiting(nodes[0], "q") == 10


@asynchronous
async def test_a_full_disk_puts_off_the_link_to_a_node_that_is_new(monkeypatch, caplog):
    tries = []

    def make(self, name):
        tries.append(name)
        return refuse() if len(tries) < 4 else made(self, name)

    made = Clustering.store_and_forward
    monkeypatch.setattr(Clustering, "store_and_forward", make)
    monkeypatch.setattr(cluster_connection, "_FULL_DISK_RETRY_S", 0.05)
    cluster = Mesh(2, queues=Q)
    async with cluster.serving() as nodes:
        assert [len(peers_of(one)) for one in nodes] == [1, 1]
    assert "the disk is full" in caplog.text


def test_without_room_for_the_record_of_a_link_it_is_tried_again():
    unanswered = SimpleNamespace(is_linked=False, linked=refuse)
    bridge = SimpleNamespace(unanswered=unanswered, name="sf")

    with pytest.raises(NotConnected, match="sf cannot record what it sends: AMQ229102"):
        asyncio.run(PeerBridge._record_link(bridge))
