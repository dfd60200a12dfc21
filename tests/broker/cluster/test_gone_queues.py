"""Queues that are gone while messages for them are on their way: nothing is lost or doubled."""

import asyncio
import contextlib

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    demand,
    forwarding,
    peers_of,
    queue,
    settings,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous

NEWS = "news"


def subscription(name):
    return queue(name, RoutingType.MULTICAST, NEWS)


def topic(*names, **more):
    """A mesh with subscriptions on its nodes: the names of each."""
    each = {number: {"queues": tuple(map(subscription, some))} for number, some in enumerate(names)}
    return Mesh(len(names), each=each, **more)


@contextlib.asynccontextmanager
async def held(node, other):
    """What a node has for another one waits; then it goes."""
    sf = node.cluster.connections["mesh"].queue_of(other.node_id)
    sf.pause()
    yield sf
    sf.resume()
    await until(lambda: sf.message_count == 0)


async def delete(node, name):
    async with session_of(node) as session:
        await session.delete_queue(name)


@asynchronous
async def test_a_subscription_that_is_gone_doubles_the_message_for_none():
    mesh = topic(["a"], ["b", "b2"], ["c"])
    async with mesh.serving() as nodes:
        async with held(nodes[0], nodes[1]):
            await send(nodes[0], NEWS, "x", "y")
            await delete(nodes[1], "b")

        await until(lambda: forwarding(nodes[0]) == 0)
        counts = [waiting(nodes[0], "a"), waiting(nodes[1], "b2"), waiting(nodes[2], "c")]
        assert counts == [2, 2, 2]
        assert nodes[1].parts.counters.stale_routes == 2


@asynchronous
async def test_the_last_subscription_of_a_node_that_is_gone_doubles_none():
    mesh = topic(["a"], ["b"], ["c"])
    async with mesh.serving() as nodes:
        async with held(nodes[0], nodes[1]):
            await send(nodes[0], NEWS, "x", "y")
            await delete(nodes[1], "b")

        await asyncio.sleep(0.1)
        assert [waiting(nodes[0], "a"), waiting(nodes[2], "c")] == [2, 2]
        assert [forwarding(one) for one in nodes] == [0, 0, 0]


@asynchronous
async def test_a_shared_subscription_gets_its_message_on_another_node():
    mesh = topic(["a"], ["s"], [])
    async with mesh.serving() as nodes:
        async with held(nodes[0], nodes[1]):
            await send(nodes[0], NEWS, "x")
            async with session_of(nodes[2]) as session:
                await session.create_queue("s", NEWS, routing_type=RoutingType.MULTICAST)
            await until(lambda: len(remote(nodes[1], NEWS)) == 2)
            await delete(nodes[1], "s")

        await until(lambda: waiting(nodes[2], "s") == 1)
        assert waiting(nodes[0], "a") == 1


def remote(node, address):
    return node.parts.postoffice.addresses.remote.at(address)


async def returned(node, node_id):
    async with session_of(node) as session:
        return await session.manage("clusterconnection.mesh", "returnMessages", node_id)


@pytest.mark.parametrize("is_left", [True, False])
@asynchronous
async def test_what_waits_for_subscriptions_of_a_node_that_is_gone_stays_or_has_the_same_name(
    tmp_path, is_left
):
    mesh = topic(["a"], ["b", "s"], ["c", "s"], folder=tmp_path)
    async with mesh.serving() as nodes:
        gone = nodes[1].node_id
        peer = peers_of(nodes[0])[gone]
        sf = nodes[0].cluster.connections["mesh"].queue_of(gone)
        sf.pause()
        async with session_of(nodes[1]) as session, await session.consumer("s"):
            await until(lambda: demand(nodes[0], NEWS) == 1)
            await send(nodes[0], NEWS, "for b and s")
            await delete(nodes[1], "b")
            await until(lambda: len(remote(nodes[0], NEWS)) == 3)
            await send(nodes[0], NEWS, "for s")
        await until(lambda: waiting(nodes[2], "c") == 2)
        assert [waiting(nodes[0], "a"), waiting(nodes[2], "c"), sf.message_count] == [2, 2, 2]
        if not is_left:
            peer.bindings.clear = peer.bindings.disconnected
        await mesh.stop(1)
        await until(lambda: not peer.is_connected)
        assert bool(len(remote(nodes[0], NEWS)) == 2) is is_left

        assert await returned(nodes[0], gone) == 1
        await until(lambda: waiting(nodes[2], "s") == 1)

        assert [waiting(nodes[0], "a"), waiting(nodes[2], "c"), sf.message_count] == [2, 2, 1]
        assert await returned(nodes[0], gone) == 0
        assert sf.message_count == 1


@asynchronous
async def test_what_waits_for_an_anycast_queue_of_a_node_that_crashed_does_not_go_around(tmp_path):
    mesh = Mesh(2, each={1: {"queues": (queue("q"),)}}, folder=tmp_path)
    async with mesh.serving() as nodes:
        gone = nodes[1].node_id
        peer = peers_of(nodes[0])[gone]
        peer.bindings.clear = peer.bindings.disconnected
        await mesh.stop(1)
        await until(lambda: not peer.is_connected)
        await send(nodes[0], "q", "x", "y")
        sf = nodes[0].cluster.connections["mesh"].queue_of(gone)
        assert sf.message_count == 2

        assert await returned(nodes[0], gone) == 0
        async with session_of(nodes[0]) as session:
            await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST)
        assert await returned(nodes[0], gone) == 2

        assert await take(nodes[0], "q", 2) == ["x", "y"]


NOTHING_MADE = {"auto_create_queues": False}


async def refused(mesh, nodes):
    """Send a message for a queue of node 1 alone, which is gone when the message comes."""
    sf = nodes[0].cluster.connections["mesh"].queue_of(nodes[1].node_id)
    sf.pause()
    await send(nodes[0], "q", "x")
    assert sf.message_count == 1
    await delete(nodes[1], "q")
    sf.resume()
    return sf


@asynchronous
async def test_a_message_whose_queue_is_gone_everywhere_stays_until_there_is_one(caplog):
    mesh = Mesh(2, each={1: {"queues": (queue("q"),)}}, address_settings=settings(**NOTHING_MADE))
    async with mesh.serving() as nodes:
        sf = await refused(mesh, nodes)
        await until(lambda: "stays, no queue takes it" in caplog.text)
        assert sf.message_count == 1

        async with session_of(nodes[0]) as session:
            await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST)
        await until(lambda: waiting(nodes[0], "q") == 1)
        await until(lambda: sf.message_count == 0)


@asynchronous
async def test_a_message_whose_queue_is_gone_everywhere_goes_to_the_dead_letter_address():
    changes = NOTHING_MADE | {"dead_letter_address": "dead"}
    mesh = Mesh(
        2,
        each={0: {"queues": (queue("dead"),)}, 1: {"queues": (queue("q"),)}},
        address_settings=settings(**changes),
    )
    async with mesh.serving() as nodes:
        sf = await refused(mesh, nodes)
        await until(lambda: waiting(nodes[0], "dead") == 1)
        await until(lambda: sf.message_count == 0)


@asynchronous
async def test_a_message_whose_queue_is_gone_gets_one_where_it_was_sent():
    mesh = Mesh(2, each={1: {"queues": (queue("q"),)}})
    async with mesh.serving() as nodes:
        async with session_of(nodes[1]) as session:
            await session.manage("queue.q", "pause")
        sf = await refused(mesh, nodes)
        await until(lambda: sf.message_count == 0)
        assert waiting(nodes[0], "q") + waiting(nodes[1], "q") == 1


@asynchronous
async def test_a_divert_of_each_node_sends_on_what_comes_to_its_own_address_alone():
    mesh = topic(["a"], ["b"])
    async with mesh.serving() as nodes:
        for node in nodes:
            async with session_of(node) as session:
                await session.create_queue("audit", "audit", routing_type=RoutingType.ANYCAST)
                divert = ("to.audit", "to.audit", NEWS, "audit", False, None, None)
                await session.manage("broker", "createDivert", *divert)
        await until(lambda: len(remote(nodes[0], "audit")) == len(remote(nodes[1], "audit")) == 1)

        await send(nodes[0], NEWS, "x", "y")
        await until(lambda: waiting(nodes[1], "b") == 2)

        assert waiting(nodes[0], "audit") + waiting(nodes[1], "audit") == 2
