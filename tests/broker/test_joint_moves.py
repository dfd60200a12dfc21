"""Messages that go to another broker together: all of them or none, and what fits goes."""

import asyncio
import struct
from types import SimpleNamespace

import pytest

from broker.cluster.redistribution import Redistribution
from broker.errors import BrokerError, ErrorCode
from broker.model.load_balancing import MessageLoadBalancing
from broker.routing.joint_moves import JointMoves
from broker.routing.remote_bindings import RemoteQueueBinding
from journal.errors import RecordTooLarge
from tests.broker.bench import Bench, done, message
from tests.broker.cluster.mesh import until
from tests.broker.test_moved_messages import Narrow, content
from tests.broker.test_recovery import durable

NODE = "edc1334e-ecfd-11f1-a1f9-02fc00000001"
OUTGOING = f"$.artemis.internal.sf.mesh.{NODE}"
THERE = 7
ROUTE = f"_AMQ_ROUTE_TO{OUTGOING}"


def told(addresses, binding_id, remote_id=THERE):
    """A queue `q` of another broker, with a consumer."""
    made = RemoteQueueBinding(
        address="q",
        cluster_name=f"q{remote_id}{NODE}",
        routing_name="q",
        binding_id=binding_id,
        remote_id=remote_id,
        filter=None,
        distance=1,
        forwarding=addresses.queues[OUTGOING],
        mode=MessageLoadBalancing.ON_DEMAND,
    )
    made.consumer_created(None)
    addresses.remote.add(made)
    return made


@pytest.fixture
def bench():
    made = Bench()
    for name in ("q", OUTGOING):
        made.queue(name)
    return made


def joint(bench):
    return JointMoves(bench.postoffice, bench.transactions, bench.storage)


def fill(bench, *bodies, **properties):
    for body in bodies:
        bench.session().send(message(body, **properties), done)
    return list(bench.addresses.queues["q"].references())


def waiting(bench, name):
    return [bytes(one.message.body).decode() for one in bench.addresses.queues[name].references()]


def test_they_go_in_order_and_keep_what_they_have(bench):
    references = fill(bench, "1", "2", "3", colour="red")
    one, two = (told(bench.addresses, number, number) for number in (8, 9))

    joint(bench).redistribute(list(zip(references, (one, two, one), strict=True)))

    assert waiting(bench, "q") == []
    assert waiting(bench, OUTGOING) == ["1", "2", "3"]
    moved = [one.message for one in bench.addresses.queues[OUTGOING].references()]
    assert [one.get(ROUTE) for one in moved] == [struct.pack(">q", number) for number in (8, 9, 8)]
    assert {(one.get("colour"), one.address) for one in moved} == {("red", "q")}
    assert bench.addresses.by_name["q"].routed_count == 6


def test_what_named_queues_of_others_before_names_this_one_alone(bench):
    (reference,) = fill(bench, "1")
    # As what a store-and-forward queue gave back, or what came from a broker that scaled down.
    reference.message.set_bytes("_AMQ_ROUTE_TOanother", b"\0" * 8)
    reference.message.set_bytes("_AMQ_ROUTE_TO", b"\1" * 8)

    joint(bench).redistribute([(reference, told(bench.addresses, 8))])

    (moved,) = (one.message for one in bench.addresses.queues[OUTGOING].references())
    assert [name for name in moved.properties if name.startswith("_AMQ_ROUTE_TO")] == [ROUTE]


REFUSALS = [BrokerError(ErrorCode.ADDRESS_FULL, "the disk is full"), RecordTooLarge("too large")]


class Refusing:
    """Puts the first message, and refuses the second."""

    def __init__(self, enqueuer, error):
        self._enqueuer, self._error, self._count = enqueuer, error, 0

    def put(self, *arguments):
        self._count += 1
        if self._count == 2:
            raise self._error
        self._enqueuer.put(*arguments)


@pytest.mark.parametrize("error", REFUSALS, ids=str)
def test_one_that_is_refused_leaves_all_where_they_are(bench, error):
    references = fill(bench, "1", "2", "3")
    there = told(bench.addresses, 8)
    before = bench.addresses.by_name["q"].memory.size
    refusing = SimpleNamespace(
        enqueuer=Refusing(bench.postoffice.enqueuer, error),
        addresses=bench.addresses,
        copy_of=bench.postoffice.copy_of,
    )

    with pytest.raises(type(error)):
        JointMoves(refusing, bench.transactions, bench.storage).redistribute(
            [(one, there) for one in references]
        )

    assert (waiting(bench, "q"), waiting(bench, OUTGOING)) == (["1", "2", "3"], [])
    outgoing = bench.addresses.queues[OUTGOING]
    assert (outgoing.undecided_count, outgoing.message_count) == (0, 0)
    assert bench.addresses.by_name["q"].memory.size == before
    joint(bench).redistribute([(one, there) for one in references])
    assert waiting(bench, OUTGOING) == ["1", "2", "3"]


def test_one_that_just_fitted_goes_as_a_large_one_among_the_others(tmp_path):
    async def runs():
        async with Narrow(tmp_path, redistribution_delay_ms=0) as run:
            for name in ("q", "t", OUTGOING):
                await run.queue(name)
            for body in ("1", "2"):
                await durable(run.session().send, message(body))
            largest = await run.send_largest()
            await durable(run.session().send, message("3"))
            parts = run.broker.parts
            addresses, outgoing = parts.postoffice.addresses, run.queue_of(OUTGOING)
            there = told(addresses, parts.storage.new_id())
            moves = JointMoves(parts.postoffice, parts.transactions, parts.storage)
            moving = Redistribution(addresses, parts.dead_letters, moves, parts.counters, ("no",))

            moving.consumers_there_changed(there)

            await until(lambda: outgoing.message_count == 4)
            assert parts.counters.redistributed == 4
            found = list(outgoing.references())
            assert [content(one) for one in found] == [b"1", b"2", largest, b"3"]
            assert [one.message.is_large for one in found] == [False, False, True, False]
            moving.stop()
        async with Narrow(tmp_path) as run:
            found = list(run.queue_of(OUTGOING).references())
            assert [content(one) for one in found] == [b"1", b"2", largest, b"3"]
            assert run.queue_of("q").message_count == 0

    asyncio.run(runs())
