"""`queryReasonsAsJSON`: what is read of a running queue, without changing anything of it."""

import json
import time

import pytest

from broker.management.reasons.finding import find
from broker.management.reasons.observation import observe
from broker.model.xid import Xid
from broker.queues.reference import reference_to
from tests.broker.bench import done, message
from tests.broker.management.managed import ManagedBench


@pytest.fixture
def bench():
    made = ManagedBench()
    made.queue("q")
    return made


def send(bench, *bodies, session=None, **properties):
    session = session or bench.session()
    sent = []
    for body in bodies:
        one = message(body, **properties)
        session.send(one, done)
        sent.append(one.message_id)
    bench.loop.run_turns()
    return sent


def ask(bench, *arguments):
    return json.loads(bench.call("queue.q", "queryReasonsAsJSON", *arguments))


def codes(bench, *arguments):
    return [one["code"] for one in ask(bench, *arguments)["reasons"]]


def text(bench, *arguments):
    return "\n".join(one["text"] for one in ask(bench, *arguments)["reasons"])


def test_an_empty_queue_and_one_without_consumers(bench):
    assert codes(bench) == ["empty"]

    (first,) = send(bench, "m")

    found = ask(bench)
    assert codes(bench) == ["no-consumer"]
    assert (found["messageID"], found["place"], found["waiting"]) == (first, "waiting", 1)


def test_the_nearest_selector_is_told_with_what_the_message_has(bench):
    bench.consume("q", filter_text="color = 'blue'")
    bench.consume("q", filter_text="color = 'red' AND size > 5")
    (sent,) = send(bench, "m", color="red", size=3)

    assert codes(bench, sent) == ["no-match"]
    assert "size > 5 (size is 3)" in text(bench, sent)
    assert "none of 2 consumers" in text(bench)


def test_delivered_acknowledged_and_gone(bench):
    sink = bench.consume("q")
    (sent,) = send(bench, "m")

    assert codes(bench) == codes(bench, sent) == ["delivering"]
    assert "consumer" in text(bench, sent)
    assert "never acknowledged" in text(bench)

    sink.session.acknowledge(0, sent, done)
    assert codes(bench, sent) == ["absent"]


def test_without_credit_not_started_and_stalled(bench):
    sink = bench.consume("q", credits=0)
    (sent,) = send(bench, "m")
    assert codes(bench, sent) == ["no-credit"]

    sink.consumer.pause()
    sink.consumer.receive_credits(-1)
    assert codes(bench, sent) == ["connection-stalled"]

    sink.consumer.go_on()
    sink.session.stop()
    assert codes(bench, sent) == ["not-started"]


def test_scheduled_behind_others_and_paused(bench):
    queue = bench.addresses.queues["q"]
    (late,) = send(bench, "late", _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000)
    assert "60 s from now" in text(bench)
    first, second = send(bench, "a", "b")
    bench.addresses.pause_queue(queue, is_paused=True)
    bench.consume("q")

    assert codes(bench, late) == ["scheduled", "queue-paused"]
    assert codes(bench, first) == ["queue-paused"]
    assert codes(bench, second) == ["queue-paused", "behind-others"]


def test_groups_exclusive_and_conditions_of_dispatch(bench):
    sink = bench.consume("q", credits=100)
    send(bench, "a", _AMQ_GROUP_ID="g")
    (second,) = send(bench, "b", _AMQ_GROUP_ID="g")
    bench.consume("q")
    assert codes(bench, second) == ["group-owner", "no-credit"]
    assert str(sink.consumer.number) in text(bench, second)

    bench.queue("x", exclusive=True)
    bench.consume("x", credits=0)
    bench.consume("x")
    (third,) = send(bench, "c", address="x")
    found = json.loads(bench.call("queue.x", "queryReasonsAsJSON", third))
    assert [one["code"] for one in found["reasons"]] == ["exclusive", "no-credit"]

    bench.queue("late", consumers_before_dispatch=2)
    bench.consume("late")
    send(bench, "d", address="late")
    found = json.loads(bench.call("queue.late", "queryReasonsAsJSON"))
    assert [one["code"] for one in found["reasons"]] == ["consumers-before-dispatch"]


def test_transactions(bench):
    session = bench.transacted()
    (sent,) = send(bench, "m", session=session)
    assert codes(bench, sent) == ["sent-in-open-transaction"]
    assert session.name in text(bench, sent)
    session.commit(done)
    bench.loop.run_turns()
    sink = bench.consume("q", session=bench.transacted())
    assert codes(bench, sent) == ["delivering"]
    sink.session.acknowledge(0, sent, done)
    assert codes(bench, sent) == ["acknowledged-in-open-transaction"]
    sink.session.rollback(done)

    xid = Xid(1, b"branch", b"global")
    other = bench.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
    other.xa.start(xid)
    (prepared,) = send(bench, "p", session=other)
    other.xa.end(xid, has_failed=False)
    other.xa.prepare(xid, done)
    bench.loop.run_turns()
    assert codes(bench, prepared) == ["sent-in-prepared-transaction"]


def test_asking_changes_nothing(bench):
    sink = bench.consume("q", filter_text="n = 2", credits=0)
    sent = send(bench, "1", "2", n=1)
    queue = bench.addresses.queues["q"]
    before = (len(queue.waiting.cursors), [one.message.message_id for one in queue.waiting])

    for one in (*sent, 12345):
        ask(bench, one)

    after = (len(queue.waiting.cursors), [one.message.message_id for one in queue.waiting])
    assert (before, sink.got) == (after, [])


def parts_of(work):
    """How long each part of some work took, s, and its result."""
    took = []
    while True:
        began_s = time.perf_counter()
        try:
            next(work)
        except StopIteration as end:
            return [*took, time.perf_counter() - began_s], end.value
        took.append(time.perf_counter() - began_s)


@pytest.mark.slow
def test_a_queue_of_a_million_messages_is_looked_at_in_short_parts(bench):
    """No part of the work holds the event loop for longer than some messages' delivery."""
    queue, one = bench.addresses.queues["q"], message("m")
    for _ in range(1_000_000):
        queue.waiting.add_tail(reference_to(one, queue, 0))
    last = message("last")
    last.message_id = 999
    queue.waiting.add_tail(reference_to(last, queue, 0))

    took, (_, found) = parts_of(observe(bench, queue, 999))
    missing, absent = parts_of(find(bench, queue, 12345))
    next_took, (_, head) = parts_of(observe(bench, queue, None))

    assert found.ahead_count == 1_000_000
    assert (absent.reference, head.ahead_count) == (None, 0)
    assert len(took) > 1000
    assert sorted(took)[len(took) // 2] < 0.01
    assert sorted(missing)[len(missing) // 2] < 0.01
    assert len(next_took) == 1
