"""What a broker does with records that a full disk has no room for: refused, kept, told."""

import pytest

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.storage.null_storage import NullStorage
from tests.broker.bench import START_MS, Answers, Bench, done, message


class FullStorage(NullStorage):
    """Keeps nothing, and can be full: for messages, references, bindings, acknowledgements."""

    def __init__(self):
        super().__init__()
        self.full = set()
        self.deleted = []

    def _check(self, what):
        if what in self.full:
            raise broker_error("address_is_full", "the disk is full")

    def store_message(self, message, tx_id):
        self._check("messages")

    def store_reference(self, queue_id, message_id, tx_id, is_last):
        self._check("references")

    def acknowledge(self, queue_id, message_id, tx_id, is_last):
        self._check("acknowledgements")

    def add_binding(self, record_id, record):
        self._check("bindings")

    def delete_message(self, message_id):
        self.deleted.append(message_id)


@pytest.fixture
def storage():
    return FullStorage()


@pytest.fixture
def bench(storage):
    return Bench(storage)


def send(bench, body, session=None, **how):
    (session or bench.session()).send(message(body, **how), done)


def refused(call, *arguments, **how):
    with pytest.raises(BrokerError) as caught:
        call(*arguments, **how)
    assert caught.value.code is ErrorCode.ADDRESS_FULL


def test_a_message_of_which_only_a_part_was_recorded_is_deleted(bench, storage):
    queue = bench.queue()
    storage.full = {"references"}
    refused(send, bench, "half")
    assert len(storage.deleted) == 1
    assert queue.message_count == 0
    storage.full = set()
    send(bench, "whole")
    assert queue.message_count == 1


def test_a_transaction_that_lost_a_message_is_rolled_back(bench, storage):
    queue = bench.queue()
    session = bench.transacted()
    send(bench, "first", session)
    storage.full = {"messages"}
    refused(send, bench, "second", session)
    refused(session.commit, done)
    storage.full = set()
    assert queue.message_count == 0


@pytest.mark.parametrize("full", ["messages", "references"])
def test_a_message_of_a_bridge_that_was_not_recorded_may_come_again(bench, storage, full):
    queue = bench.queue()
    session = bench.session()
    # From here on the way is known.
    send(bench, "first", session)
    storage.full = {full}
    refused(send, bench, "second", session, _AMQ_BRIDGE_DUP=b"id")
    storage.full = set()
    assert queue.message_count == 1
    send(bench, "second", session, _AMQ_BRIDGE_DUP=b"id")
    send(bench, "second", session, _AMQ_BRIDGE_DUP=b"id")
    assert queue.message_count == 2


@pytest.mark.parametrize("is_individual", [True, False])
def test_what_could_not_be_acknowledged_is_delivered_still(bench, storage, is_individual):
    queue = bench.queue()
    for body in "abc":
        send(bench, body)
    sink = bench.consume()
    storage.full = {"acknowledgements"}
    for _ in range(2):
        refused(sink.session.acknowledge, 0, sink.ids[0], Answers(), is_individual=is_individual)
        assert (queue.delivering_count, queue.acknowledged_count) == (3, 0)
    storage.full = set()
    sink.session.acknowledge(0, sink.ids[0], done, is_individual=is_individual)
    assert (queue.delivering_count, queue.acknowledged_count) == (2, 1)
    sink.session.close(has_failed=False)
    assert bench.consume().bodies == ["b", "c"]


@pytest.mark.parametrize("selector", [None, "x = 1"])
def test_a_consumer_that_acknowledges_before_delivery_ends_and_nothing_is_lost(
    bench, storage, selector, caplog
):
    queue = bench.queue()
    session = bench.session(pre_acknowledge=True)
    sink = bench.consume(session=session, filter_text=selector)
    storage.full = {"acknowledgements"}

    for body in "abc":
        send(bench, body, x=1)
    # Credits come before the consumer has ended.
    sink.consumer.go_on()
    bench.loop.run_turns()

    assert (sink.bodies, sink.closed) == ([], [0])
    assert (queue.delivering_count, queue.message_count, queue.consumers.count) == (0, 3, 0)
    assert "AMQ222151: removing consumer 0 of queue q" in caplog.text
    session.disconnected(sink.consumer)
    # Another one may take them, also while the disk is full; and this client once it is not.
    other = bench.consume(credits=100)
    assert (other.bodies, other.counts) == (["a"], [1])
    other.session.close(has_failed=False)
    storage.full = set()
    again = bench.consume(session=session, filter_text=selector)
    bench.loop.run_turns()
    assert (again.bodies, again.counts) == (["a", "b", "c"], [1, 1, 1])
    assert (queue.message_count, queue.acknowledged_count) == (0, 3)


@pytest.mark.parametrize("full", ["messages", "bindings"])
def test_expired_messages_wait_for_room(bench, storage, full):
    bench.set(
        expiry_address="expired",
        auto_create_expiry_resources=full == "bindings",
        expiry_queue_prefix="",
        expiry_queue_suffix=".expired",
    )
    bench.queue()
    if full == "messages":
        bench.queue("expired")
    send(bench, "late", expiration=START_MS + 1000)
    bench.loop.pass_time(2)
    storage.full = {full}
    bench.scan_expired()
    bench.loop.pass_time(5)
    found = "expired" if full == "messages" else "q.expired"
    assert found not in bench.addresses.queues or not bench.addresses.queues[found].message_count
    assert bench.consume().bodies == []

    storage.full = set()
    bench.loop.pass_time(1)
    assert bench.addresses.queues["q"].message_count == 0
    assert bench.consume(found).bodies == ["late"]


def test_what_waits_for_room_is_forgotten_with_the_broker(bench, storage):
    bench.set(max_delivery_attempts=1, dead_letter_address="dead")
    bench.queue()
    dead = bench.queue("dead")
    send(bench, "poison")
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    storage.full = {"messages"}
    session.rollback(done, considers_last_delivered=True)
    bench.loop.pass_time(1)
    bench.dead_letters.give_up()
    storage.full = set()
    bench.loop.pass_time(5)
    assert dead.message_count == 0


def test_a_queue_and_an_address_without_a_record_are_none(bench, storage):
    storage.full = {"bindings"}
    refused(bench.queue, "new")
    assert "new" not in bench.addresses.queues
    assert "new" not in bench.addresses.by_name
    storage.full = set()
    bench.queue("new")
