"""An address of a peer that takes nothing keeps nothing else waiting; its own come later, once."""

import asyncio
import random
from types import SimpleNamespace

import pytest

from broker.bridges.core import held_back
from broker.bridges.core.held_back import HeldBack
from broker.model.routing_type import RoutingType
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from tests.broker.bridges.two_brokers import send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    forwarding,
    peers_of,
    queue,
    settings,
    until,
    waiting,
)
from tests.interop.asynchronous import asynchronous

ROOM = 20_000
BODIES = [f"{number:03}" + "x" * 997 for number in range(60)]


def full_at_the_peer(policy, folder=None, **limits):
    """A mesh whose second node has a queue `full`, with room for some messages, and `free`."""
    there = settings()
    limits = limits or {"max_size_bytes": ROOM}
    there.add("full", AddressSettings(address_full_policy=policy, **limits))
    queues = (queue("full"), queue("free"))
    return Mesh(
        2,
        each={1: {"queues": queues, "address_settings": there}},
        folder=folder,
        producer_window_size_bytes=ROOM,
    )


def peer_of(nodes):
    (peer,) = peers_of(nodes[0]).values()
    return peer


def status_of(nodes):
    return peer_of(nodes).status


@pytest.mark.parametrize("policy", [AddressFullPolicy.BLOCK, AddressFullPolicy.FAIL])
@asynchronous
async def test_others_go_while_an_address_is_full(policy, caplog):
    mesh = full_at_the_peer(policy)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        await send(nodes[0], "free", *BODIES)

        await until(lambda: waiting(nodes[1], "free") == len(BODIES))
        await until(lambda: "wait for address 'full'" in status_of(nodes).reason)
        status = status_of(nodes)
        assert waiting(nodes[1], "full") < len(BODIES)
        assert forwarding(nodes[0]) == len(BODIES) - waiting(nodes[1], "full")
        assert status.pending_count == forwarding(nodes[0])
        assert (status.is_connected, status.is_moving) == (True, False)

        assert await take(nodes[1], "free", len(BODIES)) == BODIES
        found = await take(nodes[1], "full", len(BODIES))
        if policy is AddressFullPolicy.FAIL:
            # One may find room that the one before it has not found.
            found.sort()
        assert found == BODIES
        await until(lambda: forwarding(nodes[0]) == 0)
        assert status_of(nodes).reason == "the queue is empty"
        assert not [one for one in caplog.records if "AMQ222095" in one.message]


@asynchronous
async def test_it_is_full_again_and_again():
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        found = []
        while len(found) < len(BODIES):
            await send(nodes[0], "free", "x")
            assert await take(nodes[1], "free", 1) == ["x"]
            found += await take(nodes[1], "full", 2)

        assert found == BODIES


@asynchronous
async def test_a_large_message_for_a_full_address_keeps_nothing_else_waiting(tmp_path):
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK, tmp_path)
    large = "y" * 300_000
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES[:30], large, *BODIES[30:])
        await send(nodes[0], "free", "x", large, "z")

        assert await take(nodes[1], "free", 3) == ["x", large, "z"]
        found = await take(nodes[1], "full", len(BODIES) + 1)
        assert found == [*BODIES[:30], large, *BODIES[30:]]
        await until(lambda: forwarding(nodes[0]) == 0)


NOTHING_MADE = {"auto_create_queues": False}


@asynchronous
async def test_others_go_while_a_message_has_no_queue():
    mesh = Mesh(
        2,
        each={1: {"queues": (queue("gone"), queue("free"))}},
        address_settings=settings(**NOTHING_MADE),
    )
    async with mesh.serving() as nodes:
        sf = nodes[0].cluster.connections["mesh"].queue_of(nodes[1].node_id)
        sf.pause()
        await send(nodes[0], "gone", "1", "2")
        await send(nodes[0], "free", *BODIES)
        await send(nodes[0], "gone", "3")
        async with session_of(nodes[1]) as session:
            await session.delete_queue("gone")
        sf.resume()

        assert await take(nodes[1], "free", len(BODIES)) == BODIES
        await until(lambda: status_of(nodes).pending_count == 3)
        assert forwarding(nodes[0]) == 3

        # Where there is one again it gets them.
        async with session_of(nodes[1]) as session:
            await session.create_queue("gone", "gone", routing_type=RoutingType.ANYCAST)
        assert await take(nodes[1], "gone", 3) == ["1", "2", "3"]
        await until(lambda: forwarding(nodes[0]) == 0)


@asynchronous
async def test_a_link_that_is_stopped_does_not_wait_for_what_is_refused():
    mesh = Mesh(
        2, each={1: {"queues": (queue("gone"),)}}, address_settings=settings(**NOTHING_MADE)
    )
    async with mesh.serving() as nodes:
        sf = nodes[0].cluster.connections["mesh"].queue_of(nodes[1].node_id)
        sf.pause()
        await send(nodes[0], "gone", "1", "2")
        async with session_of(nodes[1]) as session:
            await session.delete_queue("gone")
        sf.resume()
        await until(lambda: "wait for address 'gone'" in status_of(nodes).reason)

        await asyncio.wait_for(peer_of(nodes).stop(), 10)

        assert (sf.message_count, sf.delivering_count) == (2, 0)


@asynchronous
async def test_without_the_peer_nothing_is_held_back_and_all_come_once(tmp_path):
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK, tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        await until(lambda: "wait for address" in status_of(nodes).reason)
        sf = nodes[0].cluster.connections["mesh"].queue_of(nodes[1].node_id)
        assert sf.delivering_count == sf.message_count == forwarding(nodes[0])

        peer = peer_of(nodes)
        await mesh.stop(1)
        await until(lambda: not peer.is_connected)
        await until(lambda: sf.delivering_count == 0)
        # Of none is it said that the peer may have it.
        references = list(sf.references())
        assert not any(peer.unanswered.may_be_there(one.message) for one in references)
        await mesh.start(1)
        await mesh.joined()

        assert await take(nodes[1], "full", len(BODIES)) == BODIES
        await until(lambda: forwarding(nodes[0]) == 0)
        assert waiting(nodes[1], "full") == 0


@asynchronous
async def test_a_node_that_stops_meanwhile_has_them_when_it_starts(tmp_path):
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK, tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        await until(lambda: "wait for address" in status_of(nodes).reason)
        await mesh.stop(0)
        await mesh.start(0)
        await mesh.joined()

        assert await take(nodes[1], "full", len(BODIES)) == BODIES
        await until(lambda: forwarding(nodes[0]) == 0)


@asynchronous
async def test_so_many_are_held_back_and_no_more(monkeypatch):
    monkeypatch.setattr(held_back, "MESSAGES_MAX", 10)
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        await send(nodes[0], "free", "x")
        await until(lambda: status_of(nodes).pending_count >= 10)
        sf = nodes[0].cluster.connections["mesh"].queue_of(nodes[1].node_id)
        assert sf.delivering_count == status_of(nodes).pending_count < sf.message_count
        assert waiting(nodes[1], "free") == 0

        assert await take(nodes[1], "full", len(BODIES)) == BODIES
        assert await take(nodes[1], "free", 1) == ["x"]


@asynchronous
async def test_no_more_are_on_their_way_to_an_address_than_it_remembers():
    mesh = full_at_the_peer(AddressFullPolicy.BLOCK, max_size_bytes=ROOM, id_cache_size=5)
    async with mesh.serving() as nodes:
        await send(nodes[0], "full", *BODIES)
        await until(lambda: "wait for address" in status_of(nodes).reason)
        forwarding_ = peer_of(nodes)._forwarding
        most = 0
        found = []
        while len(found) < len(BODIES):
            found += await take(nodes[1], "full", 1)
            most = max(most, forwarding_._counts.get("full", 0))

        assert found == BODIES
        assert most <= 5


def test_each_address_keeps_its_order():
    held = HeldBack()
    chance = random.Random(7)
    orders = list(range(100))
    chance.shuffle(orders)
    for order in orders:
        held.add("ab"[order % 2], SimpleNamespace(order=order, size=10))

    assert (held.count, held.size) == (100, 1000)
    assert held.addresses == ["ab"[orders[0] % 2], "ba"[orders[0] % 2]]
    assert [one.order for one in held] == [
        *range("ab".index(held.addresses[0]), 100, 2),
        *range("ab".index(held.addresses[1]), 100, 2),
    ]
    assert held.take_first("a").order == 0
    held.add("a", SimpleNamespace(order=0, size=10))
    assert held.take_first("a").order == 0
    assert (held.count, held.size) == (99, 990)
    assert len(held.take_all()) == 99
    assert (held.count, held.size, "a" in held) == (0, 0, False)
