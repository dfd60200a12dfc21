"""Queues of other nodes with their address's name: anycast, multicast, or not known which."""

import asyncio

import pytest

from broker.model.load_balancing import MessageLoadBalancing
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.routing.remote_bindings import RemoteQueueBinding
from tests.broker.bench import Bench, done, message
from tests.broker.bridges.two_brokers import session_of
from tests.broker.cluster.mesh import Mesh, queue, until, waiting
from tests.interop.asynchronous import asynchronous

ANYCAST, MULTICAST = RoutingType.ANYCAST, RoutingType.MULTICAST
NODE = "1" * 36
OUTGOING = f"$.artemis.internal.sf.mesh.{NODE}"


async def send(node, address, routing_type, *contents):
    async with session_of(node) as session:
        producer = session.producer(address)
        answers = []
        for one in contents:
            made = Message(address, body=one.encode(), durable=True)
            made.routing_type = routing_type
            answers.append(await producer.post(made))
        await asyncio.gather(*answers)


@pytest.mark.parametrize("mode", ["ON_DEMAND", "OFF"])
@asynchronous
async def test_a_topic_s_queue_of_its_name_gets_what_is_sent_to_another_node(mode):
    each = {1: {"queues": (queue("news", MULTICAST), queue("orders"))}}
    mesh = Mesh(2, each=each, mode=mode)
    async with mesh.serving() as nodes:
        known = nodes[0].parts.postoffice.addresses.remote.by_name.values()
        types = {one.address: one.routing_type for one in known if one.is_type_known}
        assert types.items() >= {"news": MULTICAST, "orders": ANYCAST}.items()

        await send(nodes[0], "news", MULTICAST, "x", "y")
        await until(lambda: waiting(nodes[1], "news") == 2)
        # What is not for it makes a queue of its own here.
        await send(nodes[0], "orders", MULTICAST, "x")
        assert waiting(nodes[1], "orders") == 0


@asynchronous
async def test_a_chain_tells_the_type_on():
    each = {2: {"queues": (queue("news", MULTICAST),)}}
    mesh = Mesh(3, links={0: [1], 1: [2], 2: []}, each=each, max_hops=2, direct=True)
    async with mesh.serving() as nodes:
        remote = nodes[0].parts.postoffice.addresses.remote
        await until(lambda: remote.at("news"))
        assert [one.routing_type for one in remote.at("news")] == [MULTICAST]


@pytest.fixture
def bench():
    made = Bench()
    made.queue(OUTGOING, OUTGOING, MULTICAST)
    return made


def told(bench, routing_type=None, *, mode=MessageLoadBalancing.ON_DEMAND, consumers=1):
    """A queue `q` of another node; without a routing type as Artemis tells it."""
    made = RemoteQueueBinding(
        address="q",
        cluster_name="q" + NODE,
        routing_name="q",
        binding_id=bench.storage.new_id(),
        remote_id=7,
        filter=None,
        distance=1,
        forwarding=bench.addresses.queues[OUTGOING],
        mode=mode,
        routing_type=routing_type,
    )
    for _ in range(consumers):
        made.consumer_created(None)
    bench.addresses.remote.add(made)
    return made


def sent(bench, routing_type, address="q"):
    """How often a message goes to the other node."""
    queue = bench.addresses.queues[OUTGOING]
    before = queue.message_count
    made = message("x", address)
    made.routing_type = routing_type
    bench.session().send(made, done)
    found = [one.message.get(f"_AMQ_ROUTE_TO{OUTGOING}") for one in queue.references()]
    assert all(len(one) == 8 for one in found)
    return queue.message_count - before


@pytest.mark.parametrize(
    ("known", "expected"),
    [(None, [1, 1, 1]), (ANYCAST, [1, 0, 1]), (MULTICAST, [0, 1, 1])],
)
@pytest.mark.parametrize("address", ["q", "q::q"])
def test_one_whose_type_is_not_told_gets_each_kind_once(bench, known, expected, address):
    bench.addresses.create("q", [ANYCAST, MULTICAST])
    told(bench, known)

    found = [sent(bench, one, address) for one in (ANYCAST, MULTICAST, None)]

    assert found == expected


@pytest.mark.parametrize(
    ("local", "expected"),
    # Beside a queue here of the same name, it counts as that: each message goes to one of them.
    [(ANYCAST, [2, 4, 2]), (MULTICAST, [0, 2, 2])],
)
def test_one_whose_type_is_not_told_takes_turns_with_a_queue_here(bench, local, expected):
    here = bench.queue("q", "q", local)
    bench.addresses.update("q", [ANYCAST, MULTICAST])
    bench.consume("q")
    told(bench)

    found = [sum(sent(bench, one) for _ in range(4)) for one in (ANYCAST, MULTICAST, None)]

    assert found == expected
    assert here.binding.routing_type is local


def test_modes_that_send_nothing_to_other_queues_send_to_a_topic_s(bench):
    bench.addresses.create("q", [ANYCAST, MULTICAST])
    told(bench, mode=MessageLoadBalancing.OFF)

    assert [sent(bench, one) for one in (ANYCAST, MULTICAST, None)] == [0, 1, 0]
