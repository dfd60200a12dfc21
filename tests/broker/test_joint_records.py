"""Several records of one packet count together: every beginning of the log is looked at."""

import time

import pytest

from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType
from broker.storage.identifiers import IdGenerator
from broker.storage.manager import StorageManager
from journal.errors import JournalFull
from tests.broker.bench import Answers, Bench, FakeLoop, done, message
from tests.broker.memory_store import MemoryStore, replay

REFERENCE = int(RecordType.ADD_REF)
ACKNOWLEDGED = int(RecordType.ACKNOWLEDGE_REF)


class FullStore(MemoryStore):
    """Takes so many more updates, and is full then; it has the store of bindings beside it."""

    updates_left = None

    def __init__(self):
        super().__init__()
        self.bindings = MemoryStore()

    def step_all(self):
        for one in (self.bindings, self):
            one.step(len(one.ops))

    def update(self, *args, **how):
        if self.updates_left is not None:
            if not self.updates_left:
                raise JournalFull(28, "the disk is full")
            self.updates_left -= 1
        return super().update(*args, **how)


@pytest.fixture
def store():
    return FullStore()


@pytest.fixture
def bench(store):
    ids = IdGenerator(None)
    storage = StorageManager(
        store.bindings, store, ids, on_failure=pytest.fail, clock=time.monotonic
    )
    storage.start(FakeLoop())
    return Bench(storage)


def send(bench, store, body, address="q"):
    bench.session().send(message(body, address), done)
    store.step_all()


def counts(ops, user_type):
    """How many live updates of a kind each beginning of the log leaves."""
    found = []
    for end in range(len(ops) + 1):
        live, _ = replay(ops[:end])
        found.append(sum(op.user_type == user_type for one in live.values() for op in one))
    return found


def kinds(ops):
    return [(op.kind, op.tx is not None) for op in ops]


def given(bench, store, bodies):
    """A consumer that has these; its queue."""
    queue = bench.queue()
    for body in bodies:
        send(bench, store, body)
    sink = bench.consume()
    assert sink.bodies == list(bodies)
    return sink, queue


def test_a_send_to_several_queues_is_in_all_of_them_or_in_none(bench, store):
    for name in "xyz":
        bench.queue(name, address="t", routing_type=RoutingType.MULTICAST)

    send(bench, store, "m", address="t")

    assert set(counts(store.ops, REFERENCE)) == {0, 3}
    assert [bench.consume(name).bodies for name in "xyz"] == [["m"]] * 3


def test_a_send_to_one_queue_has_no_transaction(bench, store):
    bench.queue()

    send(bench, store, "m")

    assert kinds(store.ops) == [("add", False), ("update", False)]


def test_a_send_to_several_queues_that_has_no_room_is_in_none(bench, store):
    queues = [bench.queue(name, address="t", routing_type=RoutingType.MULTICAST) for name in "xyz"]
    store.updates_left = 1

    with pytest.raises(BrokerError):
        bench.session().send(message("m", "t"), done)

    assert kinds(store.ops)[-1] == ("rollback", True)
    assert replay(store.ops)[0] == {}
    assert [queue.message_count for queue in queues] == [0, 0, 0]


def test_an_acknowledgement_of_several_counts_for_all_or_for_none(bench, store):
    sink, queue = given(bench, store, "abcd")
    begin = len(store.ops)

    sink.session.acknowledge(0, sink.ids[2], done)

    acknowledged = counts(store.ops[: begin + 4], ACKNOWLEDGED)
    assert set(acknowledged) == {0, 3}
    assert kinds(store.ops[begin:]) == [
        *[("update", True)] * 3,
        ("commit", True),
        *[("delete", False)] * 3,
    ]
    assert (queue.delivering_count, queue.acknowledged_count) == (1, 3)


def test_an_acknowledgement_of_one_has_no_transaction(bench, store):
    sink, _ = given(bench, store, "ab")
    begin = len(store.ops)

    sink.session.acknowledge(0, sink.ids[0], done)

    assert kinds(store.ops[begin:]) == [("update", False), ("delete", False)]


def test_of_an_acknowledgement_without_room_nothing_counts(bench, store):
    sink, queue = given(bench, store, "abc")
    store.updates_left = 2

    with pytest.raises(BrokerError):
        sink.session.acknowledge(0, sink.ids[2], Answers())

    assert kinds(store.ops)[-1] == ("rollback", True)
    assert (queue.delivering_count, queue.acknowledged_count) == (3, 0)
    store.updates_left = None
    sink.session.acknowledge(0, sink.ids[2], done)
    assert (queue.delivering_count, queue.acknowledged_count) == (0, 3)


def test_an_acknowledgement_of_several_of_which_one_is_durable_has_no_transaction(bench, store):
    bench.queue()
    for body, durable in (("a", False), ("b", True), ("c", False)):
        bench.session().send(message(body, durable=durable), done)
        store.step_all()
    sink = bench.consume()
    begin = len(store.ops)

    sink.session.acknowledge(0, sink.ids[2], done)

    assert kinds(store.ops[begin:]) == [("update", False), ("delete", False)]
