"""Brokers of a cluster: who gets a message, where it is redistributed to, and what survives."""

import asyncio
import contextlib

import pytest

from broker.model.routing_type import RoutingType
from tests.broker.bridges.two_brokers import port_of, send, session_of, take
from tests.broker.cluster.mesh import (
    Mesh,
    demand,
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
LARGE = "x" * 400_000


@contextlib.asynccontextmanager
async def consuming(node, name="q", selector=None):
    """A consumer, and the list of what it has received."""
    received = []

    async def listen(one):
        await one.read()
        received.append(one.content)

    async with session_of(node) as session:
        await session.consumer(name, selector, listener=listen)
        yield received


def drained(nodes, *names):
    """Whether nothing waits anywhere."""
    return all(
        forwarding(node) == 0 and all(waiting(node, name) == 0 for name in names) for node in nodes
    )


@asynchronous
async def test_messages_go_in_turn_to_the_nodes_with_consumers_and_then_to_the_one_left():
    mesh = Mesh(3, queues=Q)
    async with mesh.serving() as nodes, consuming(nodes[2]) as last:
        async with consuming(nodes[1]) as first:
            await until(lambda: demand(nodes[0], "q") == 2)

            await send(nodes[0], "q", *map(str, range(10)))

            await until(lambda: len(first) + len(last) == 10)
            assert (len(first), len(last)) == (5, 5)
        await until(lambda: demand(nodes[0], "q") == 1)
        await send(nodes[0], "q", "a", "b")
        await until(lambda: len(last) == 7)
        assert last[-2:] == ["a", "b"]
        assert drained(nodes, "q")


@pytest.mark.slow
@asynchronous
async def test_without_a_consumer_anywhere_messages_wait_for_the_first_one(tmp_path):
    mesh = Mesh(2, queues=Q, folder=tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(50)), LARGE)
        assert waiting(nodes[0], "q") == 51

        assert await take(nodes[1], "q", 51) == [*map(str, range(50)), LARGE]
        await until(lambda: drained(nodes, "q"))


@asynchronous
async def test_selectors_of_consumers_elsewhere_decide_message_by_message():
    mesh = Mesh(2, queues=Q)
    async with (
        mesh.serving() as nodes,
        consuming(nodes[0], selector="color = 'red'") as red,
        consuming(nodes[1], selector="color = 'blue'") as blue,
    ):
        await until(lambda: demand(nodes[0], "q") == demand(nodes[1], "q") == 1)
        for color in ("blue", "red", "green"):
            await send(nodes[0], "q", color, properties={"color": color})
        await until(lambda: red and blue)
        assert (red, blue) == (["red"], ["blue"])
        assert waiting(nodes[0], "q") == 1

        async with consuming(nodes[1], selector="color = 'green'") as green:
            await until(lambda: green == ["green"])
        await until(lambda: drained(nodes, "q"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("STRICT", [(10, 10), (20, 0)]),
        ("ON_DEMAND", [(0, 20), (20, 0)]),
        ("OFF", [(20, 0), (20, 0)]),
        ("OFF_WITH_REDISTRIBUTION", [(20, 0), (20, 0)]),
    ],
)
@pytest.mark.slow
@asynchronous
async def test_modes_decide_where_a_message_waits_when_it_comes(mode, expected):
    """Sent to node 0: first with a consumer on node 1, then with one here alone."""
    mesh = Mesh(2, queues=Q, mode=mode, address_settings=settings(redistribution_delay_ms=-1))
    async with mesh.serving() as nodes:
        async with session_of(nodes[1]) as session:
            consumer = await session.consumer("q")
            await until(lambda: demand(nodes[0], "q") == 1)
            await send(nodes[0], "q", *map(str, range(20)))
            await until(lambda: forwarding(nodes[0]) == 0)
            there = 0
            while await consumer.receive(0.3) is not None:
                there += 1
            assert (waiting(nodes[0], "q"), there) == expected[0]
        await until(lambda: demand(nodes[0], "q") == 0)
        if waiting(nodes[0], "q"):
            await take(nodes[0], "q", waiting(nodes[0], "q"))
        async with consuming(nodes[0]) as here:
            await send(nodes[0], "q", *map(str, range(20)))
            await until(lambda: forwarding(nodes[0]) == 0)
            if mode != "STRICT":
                await until(lambda: len(here) == 20)
                assert waiting(nodes[1], "q") == 0
            else:
                await until(lambda: len(here) + waiting(nodes[1], "q") == 20)
                assert len(here) == 10


@pytest.mark.slow
@asynchronous
async def test_off_with_redistribution_moves_what_nobody_here_takes():
    mesh = Mesh(2, queues=Q, mode="OFF_WITH_REDISTRIBUTION")
    async with mesh.serving() as nodes, consuming(nodes[1]) as there:
        await until(lambda: demand(nodes[0], "q") == 1)
        await send(nodes[0], "q", *map(str, range(10)))
        await until(lambda: len(there) == 10)
        async with consuming(nodes[0]) as here:
            await send(nodes[0], "q", "a", "b")
            await until(lambda: here == ["a", "b"])
        await send(nodes[0], "q", "c")
        await until(lambda: there[10:] == ["c"])


@pytest.mark.slow
@asynchronous
async def test_the_delay_counts_from_the_last_consumer_and_a_new_one_ends_it():
    mesh = Mesh(2, queues=Q, address_settings=settings(redistribution_delay_ms=600))
    async with mesh.serving() as nodes:
        async with session_of(nodes[0]) as session:
            consumer = await session.consumer("q")
            async with consuming(nodes[1]) as there:
                await until(lambda: demand(nodes[0], "q") == 1)
                await consumer.close()
                await send(nodes[0], "q", "goes there at once: the consumer is there")
                await until(lambda: len(there) == 1)
            await until(lambda: demand(nodes[0], "q") == 0)
            await send(nodes[0], "q", "waits")
        async with consuming(nodes[1]) as there:
            await until(lambda: demand(nodes[0], "q") == 1)
            assert waiting(nodes[0], "q") == 1
            await until(lambda: there == ["waits"])


@pytest.mark.slow
@asynchronous
async def test_consumers_with_selectors_that_come_and_go_keep_what_they_want_alone():
    """Each comes again within the delay; what none of them wants has to go all the same."""
    mesh = Mesh(2, queues=Q, address_settings=settings(redistribution_delay_ms=1500))
    async with mesh.serving() as nodes, session_of(nodes[0]) as session:
        is_over = asyncio.Event()

        async def poll():
            while not is_over.is_set():
                consumer = await session.consumer("q", selector="kind = 'kept'")
                await asyncio.sleep(0.1)
                await consumer.close()
                await asyncio.sleep(0.2)

        polling = asyncio.create_task(poll())
        await send(nodes[0], "q", "goes", properties={"kind": "other"})
        assert waiting(nodes[0], "q") == 1
        async with consuming(nodes[1]) as there:
            await until(lambda: there == ["goes"])
            assert not polling.done()
        is_over.set()
        await polling


@pytest.mark.slow
@asynchronous
async def test_grouped_messages_stay_with_their_node_where_nothing_is_distributed():
    mesh = Mesh(2, queues=Q, mode="OFF_WITH_REDISTRIBUTION")
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", "one", properties={"_AMQ_GROUP_ID": "g"})
        await send(nodes[0], "q", "other")
        async with consuming(nodes[1]) as there:
            await until(lambda: there == ["other"])
            await asyncio.sleep(0.3)
            assert (there, waiting(nodes[0], "q")) == (["other"], 1)


@pytest.mark.slow
@asynchronous
async def test_each_subscription_on_every_node_gets_a_copy_without_properties_of_ours(tmp_path):
    subscriptions = {
        number: {"queues": (queue(f"s{number}", RoutingType.MULTICAST, "topic"),)}
        for number in range(2)
    }
    mesh = Mesh(2, each=subscriptions, mode="OFF", folder=tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "topic", "small", LARGE)

        for number in range(2):
            name = f"s{number}"
            await until(lambda name=name, node=nodes[number]: waiting(node, name) == 2)
            async with session_of(nodes[number]) as session, await session.consumer(name) as one:
                for expected in ("small", LARGE):
                    received = await one.receive(10)
                    await received.read()
                    assert received.content == expected
                    names = [key for key in received.message.properties if "ROUTE_TO" in key]
                    assert names == []


@pytest.mark.slow
@asynchronous
async def test_a_node_that_was_down_gets_what_waited_for_it_and_nothing_twice(tmp_path):
    mesh = Mesh(2, queues=Q, mode="STRICT", folder=tmp_path)
    async with mesh.serving() as nodes:
        await send(nodes[0], "q", *map(str, range(20)))
        await until(lambda: forwarding(nodes[0]) == 0)
        await mesh.stop(1)
        # Its queue is not known any more: all stay here.
        await send(nodes[0], "q", *map(str, range(20, 30)))
        assert waiting(nodes[0], "q") == 20
        await mesh.start(1)
        await mesh.joined()

        found = [*await take(nodes[0], "q", 20), *await take(nodes[1], "q", 10)]
        assert sorted(map(int, found)) == list(range(30))
        await until(lambda: drained(nodes, "q"))


@pytest.mark.slow
@asynchronous
async def test_a_chain_hands_on_as_far_as_max_hops_says():
    for hops, is_known in ((2, True), (1, False)):
        mesh = Mesh(
            3,
            links={0: [1], 1: [2], 2: []},
            each={2: {"queues": Q}},
            max_hops=hops,
            direct=True,
        )
        async with mesh.serving() as nodes, consuming(nodes[2]) as there:
            await until(lambda nodes=nodes: is_told(nodes[0], 1) and is_told(nodes[1], 1))
            await until(lambda nodes=nodes: demand(nodes[1], "q") == 1)
            if is_known:
                await until(lambda nodes=nodes: demand(nodes[0], "q") == 1)
                assert [one.distance for one in remote(nodes[0], "q")] == [2]
                await send(nodes[0], "q", *map(str, range(5)))
                await until(lambda there=there: len(there) == 5)
            else:
                await asyncio.sleep(0.2)
                assert remote(nodes[0], "q") == []
            assert len(peers_of(nodes[0])) == 1


@pytest.mark.slow
@asynchronous
async def test_in_a_ring_the_way_round_is_taken_when_a_neighbour_is_away():
    """A knows C by B and by D, and B is lost: what comes to A goes by D."""
    mesh = Mesh(
        4,
        links={0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [2, 0]},
        each={number: {"queues": Q} for number in (0, 2)},
        max_hops=2,
        direct=True,
    )
    async with mesh.serving() as nodes:
        await until(lambda: all(is_told(one, 2) for one in nodes))
        async with consuming(nodes[2]) as there:
            await until(lambda: demand(nodes[0], "q") == 1)
            await send(nodes[0], "q", "1")
            await until(lambda: there == ["1"])
            (way,) = remote(nodes[0], "q")
            # As when its connection is lost without a word.
            (away,) = (
                one for one in peers_of(nodes[0]).values() if way in one.bindings.by_name.values()
            )
            away.bindings.disconnected()
            assert remote(nodes[0], "q")[0] is not way
            await until(lambda: demand(nodes[0], "q") == 1)

            await send(nodes[0], "q", "2", "3")

            await until(lambda: there == ["1", "2", "3"])


def remote(node, address):
    return node.parts.postoffice.addresses.remote.at(address)


@pytest.mark.slow
@asynchronous
async def test_connections_by_address_prefix_know_their_addresses_alone():
    queues = tuple(map(queue, ("eu.a", "eu.test.b", "us.c", "other")))
    mesh = Mesh(2, queues=queues, names=("mesh", "us"), addresses=("eu,!eu.test", "us"))
    async with mesh.serving() as nodes:
        await until(lambda: is_told(nodes[0], 1, "us"))
        known = {name: len(remote(nodes[0], name)) for name in ("eu.a", "eu.test.b", "us.c")}
        assert known == {"eu.a": 1, "eu.test.b": 0, "us.c": 1}
        assert remote(nodes[0], "us.c")[0].forwarding.name.startswith("$.artemis.internal.sf.us.")
        assert remote(nodes[0], "other") == []


@pytest.mark.slow
@asynchronous
async def test_a_queue_that_is_gone_while_messages_are_on_their_way_loses_none():
    mesh = Mesh(2, queues=Q)
    async with mesh.serving() as nodes:
        peer = next(iter(peers_of(nodes[0]).values()))
        async with consuming(nodes[1]):
            await until(lambda: demand(nodes[0], "q") == 1)
            # The node may say once more that it is there, which starts what has given up.
            start, peer.start = peer.start, lambda: None
            await peer.pause()
            for binding in remote(nodes[0], "q"):
                binding.is_connected = True
                binding.consumer_created(None)
            await send(nodes[0], "q", *map(str, range(10)))
        assert forwarding(nodes[0]) == 10
        async with session_of(nodes[1]) as session:
            await session.delete_queue("q")
            await session.create_queue("q", "q", routing_type=RoutingType.ANYCAST)
        start()
        await until(lambda: forwarding(nodes[0]) == 0)
        assert nodes[1].parts.counters.stale_routes == 10

        assert sorted(await take(nodes[1], "q", 10), key=int) == list(map(str, range(10)))


@pytest.mark.slow
@asynchronous
async def test_fully_qualified_names_lead_to_the_queue_of_that_name_elsewhere():
    mesh = Mesh(2, queues=(queue("one", address="a"), queue("two", address="a")))
    async with mesh.serving() as nodes, consuming(nodes[1], "a::two") as there:
        await until(lambda: demand(nodes[0], "a") == 1)
        await send(nodes[0], "a::two", "x", "y")
        await until(lambda: there == ["x", "y"])


@pytest.mark.slow
@asynchronous
async def test_a_clients_own_route_leads_nowhere():
    """Names of queues of other brokers count for what bridges send alone."""
    mesh = Mesh(2, queues=Q)
    async with mesh.serving() as nodes:
        forwarded_to = remote(nodes[0], "q")[0].forwarding.name
        await send(
            nodes[0], "q", "x", properties={f"_AMQ_ROUTE_TO{forwarded_to}": b"\0\0\0\0\0\0\0\1"}
        )
        assert await take(nodes[1], "q", 1) == ["x"]


@pytest.mark.slow
@asynchronous
async def test_another_node_at_the_place_of_one_gets_nothing_that_waits_for_it(tmp_path):
    mesh = Mesh(2, queues=Q, mode="STRICT")
    async with mesh.serving() as nodes:
        peer = next(iter(peers_of(nodes[0]).values()))
        before = peer.node_id
        await mesh.stop(1)
        await until(lambda: not peer.is_connected)
        # Without a folder it has another node id each time.
        await mesh.start(1)
        await until(lambda: is_told(nodes[0], 1))
        assert nodes[1].node_id != before
        # The new node's bridge may be first.
        await until(lambda: peer.is_other_node)
        assert port_of(nodes[1]) == mesh.ports[1]
