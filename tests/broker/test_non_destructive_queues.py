"""Non-destructive queues: a message leaves while consumers see it, and is gone for good."""

import asyncio

import pytest

from tests.broker.bench import Bench, Sink, done, message
from tests.broker.test_recovery import BrokerRun


def send(bench, *bodies, session=None, **properties):
    session = session or bench.session()
    for body in bodies:
        session.send(message(body, **properties), done)


def purge(bench, queue):
    queue.remove_all()


def expire(bench, queue):
    bench.dead_letters.expire(next(queue.references()))


def another(bench, queue):
    send(bench, "new", key="k")


LEAVES = {"purged": purge, "expired": expire, "replaced": another, "trimmed": another}
ATTRIBUTES = {
    "replaced": {"last_value": True, "last_value_key": "key"},
    "trimmed": {"ring_size": 1},
}
ENDS = {
    "closed": lambda sink: sink.session.close_consumer(0),
    "failed": lambda sink: sink.session.close_consumer(0, has_failed=True),
    "rolled back": lambda sink: sink.session.rollback(done),
    "acknowledged": lambda sink: sink.session.acknowledge(0, sink.ids[0], done),
    "committed": lambda sink: (
        sink.session.acknowledge(0, sink.ids[0], done),
        sink.session.commit(done),
    ),
    "expired": lambda sink: sink.session.settlement.expire(0, sink.ids[0]),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("leaves", LEAVES)
def test_what_left_the_queue_while_it_was_delivered_does_not_come_back(leaves, end):
    bench = Bench()
    bench.set("#", expiry_address="EXP", max_delivery_attempts=-1)
    expired = bench.queue("EXP")
    queue = bench.queue("q", non_destructive=True, **ATTRIBUTES.get(leaves, {}))
    send(bench, "old", key="k")
    is_transacted = end in ("committed", "rolled back")
    sink = bench.consume("q", session=bench.transacted() if is_transacted else bench.session())
    sink.consumer.stop()

    LEAVES[leaves](bench, queue)
    ENDS[end](sink)
    bench.loop.run_turns()

    assert sink.bodies[0] == "old"
    left = [bytes(one.message.body).decode() for one in queue.references()]
    assert left == (["new"] if LEAVES[leaves] is another else [])
    assert queue.delivering_count == 0
    assert queue.message_count == len(left)
    assert expired.message_count == (leaves == "expired")


def test_a_message_that_was_seen_expires_once():
    bench = Bench()
    bench.set("#", expiry_address="EXP")
    expired = bench.queue("EXP")
    queue = bench.queue("q", non_destructive=True)
    send(bench, "1", expiration=bench.now_ms + 1000)
    first, second = bench.consume("q"), bench.consume("q")
    first.session.acknowledge(0, first.ids[0], done)
    assert second.bodies == ["1"]
    bench.loop.jump(2)

    for _ in range(2):
        bench.scan_expired()
        bench.loop.run_turns()

    assert expired.message_count == 1
    assert (queue.message_count, queue.delivering_count) == (0, 0)
    second.session.settlement.expire(0, second.ids[0])
    assert (expired.message_count, queue.delivering_count) == (1, 0)


def test_a_consumer_that_finds_a_message_expired_takes_it_from_everybody():
    bench = Bench()
    bench.set("#", expiry_address="EXP")
    expired = bench.queue("EXP")
    queue = bench.queue("q", non_destructive=True)
    send(bench, "1")
    first, second = bench.consume("q"), bench.consume("q")

    for sink in (first, second):
        sink.session.settlement.expire(0, sink.ids[0])

    assert expired.message_count == 1
    assert (queue.message_count, queue.delivering_count) == (0, 0)


def test_what_is_acknowledged_stays_and_counts_for_nothing():
    bench = Bench()
    queue = bench.queue("q", non_destructive=True)
    send(bench, "1")

    plain, eager = bench.consume("q"), bench.consume("q", bench.session(pre_acknowledge=True))
    plain.session.acknowledge(0, plain.ids[0], done)

    assert eager.bodies == ["1"]
    assert (queue.message_count, queue.delivering_count, queue.acknowledged_count) == (1, 0, 0)


@pytest.mark.parametrize("becomes", [False, True])
def test_a_queue_may_become_another_kind_while_a_message_is_delivered(becomes):
    bench = Bench()
    queue = bench.queue("q", non_destructive=not becomes)
    send(bench, "1")
    sink = bench.consume("q")

    bench.addresses.update_queue("q", non_destructive=becomes)
    bench.loop.run_turns()
    for number in list(sink.ids):
        sink.session.acknowledge(0, number, done)
    bench.loop.run_turns()

    assert sink.bodies == (["1"] if becomes else ["1", "1"])
    assert (queue.message_count, queue.delivering_count, queue.acknowledged_count) == (0, 0, 1)


@pytest.mark.parametrize("has_failed", [False, True])
def test_records_of_a_replaced_message_are_not_written_again(tmp_path, has_failed):
    async def runs():
        async with BrokerRun(tmp_path) as run:
            await run.queue("q", last_value=True, last_value_key="key", non_destructive=True)
            await run.send(message("old", key="k"))
            sink = Sink()
            session = run.session()
            consumer = session.create_consumer(0, "q", sink)
            session.start()
            consumer.receive_credits(1)
            assert sink.bodies == ["old"]
            await run.send(message("new", key="k"))
            run.broker.clients.close_session(session, has_failed=has_failed)
            await run.send(message("newest", key="k"))
            assert run.broker.failure is None
        async with BrokerRun(tmp_path) as run:
            assert run.bodies() == ["newest"]

    asyncio.run(runs())
