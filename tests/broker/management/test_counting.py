"""Message counters with their history, and what is being delivered, by whom, since when."""

import json
import time
from datetime import datetime

import pytest

from broker.management.message_counters import java_short_time
from broker.model.xid import Xid
from tests.broker.bench import START_MS, done, message
from tests.broker.management.managed import Failed, ManagedBench

HOUR_S = 3600


@pytest.fixture
def bench():
    made = ManagedBench()
    made.queue("q")
    return made


def fill(bench, count, **properties):
    session = bench.session()
    for number in range(count):
        session.send(message(str(number), address="q", n=number, **properties), done)
    bench.loop.run_turns()


def counter(bench):
    return json.loads(bench.call("queue.q", "listMessageCounter"))


def history(bench):
    return json.loads(bench.call("queue.q", "listMessageCounterHistory"))["dayCounters"]


# --- message counters ---------------------------------------------------------------------------


def test_a_time_is_written_as_java_does():
    found = datetime(2026, 11, 23, 1, 56, 37)  # noqa: DTZ001 - local
    noon = datetime(2026, 1, 2, 12, 5, 9)  # noqa: DTZ001 - local

    assert java_short_time(round(found.timestamp() * 1000)) == "11/23/26, 1:56:37 AM"
    assert java_short_time(round(noon.timestamp() * 1000)) == "1/2/26, 12:05:09 PM"


def test_samples_are_taken_while_counters_are_on(bench):
    assert bench.get("broker", "messageCounterEnabled") is False
    fill(bench, 2)
    bench.loop.pass_time(30)
    assert counter(bench)["count"] == 0

    bench.call("broker", "enableMessageCounters")
    fill(bench, 3)
    sink = bench.consume()
    sink.session.acknowledge(0, sink.ids[0], done)
    assert counter(bench)["count"] == 0
    bench.loop.pass_time(10)

    found = counter(bench)
    expected = {"count": 3, "countDelta": 3, "messageCount": 4, "messageCountDelta": 0}
    assert found.items() >= {**expected, "destinationName": "q", "destinationDurable": True}.items()
    assert found["lastAddTimestamp"] == java_short_time(START_MS + 40_000)
    assert found["lastAckTimestamp"] == found["updateTimestamp"] == found["lastAddTimestamp"]
    again = counter(bench)
    assert (again["count"], again["countDelta"], again["messageCountDelta"]) == (3, 0, 0)
    bench.call("queue.q", "resetMessageCounter")
    assert counter(bench)["count"] == 0
    assert counter(bench)["updateTimestamp"] == java_short_time(0)
    # What the queue counts itself stays.
    assert bench.get("queue.q", "messagesAdded") == 5
    bench.call("broker", "disableMessageCounters")
    fill(bench, 1)
    bench.loop.pass_time(20)
    assert counter(bench)["count"] == 0


def test_the_period_of_samples_changes_at_once(bench):
    bench.call("broker", "enableMessageCounters")
    bench.call("broker", "setMessageCounterSamplePeriod", 1000)
    fill(bench, 1)
    bench.loop.pass_time(1)

    assert counter(bench)["count"] == 1
    assert bench.get("broker", "messageCounterSamplePeriod") == 1000
    with pytest.raises(Failed, match="AMQ229047"):
        bench.call("broker", "setMessageCounterSamplePeriod", 0)
    with pytest.raises(Failed, match="AMQ229046"):
        bench.call("broker", "setMessageCounterMaxDayCount", 0)
    with pytest.raises(Failed, match="must not be null"):
        bench.call("broker", "setMessageCounterMaxDayCount", None)


def test_the_history_has_each_hour_of_so_many_days(bench):
    began = time.localtime(START_MS / 1000)
    bench.call("broker", "enableMessageCounters")
    bench.call("broker", "setMessageCounterMaxDayCount", 2)
    fill(bench, 3)
    bench.loop.pass_time(10)

    (day,) = history(bench)
    assert day["date"] == f"{began.tm_mon}/{began.tm_mday}/{began.tm_year % 100:02}"
    expected = [-1] * 24
    expected[began.tm_hour] = 3
    assert day["counters"] == expected
    # Into the middle of the next day.
    bench.loop.jump((24 - began.tm_hour + 12) * HOUR_S)
    fill(bench, 1)
    bench.loop.pass_time(10)
    first, second = history(bench)
    assert first["counters"] == [-1] * began.tm_hour + [3] + [0] * (23 - began.tm_hour)
    at = time.localtime(START_MS / 1000 + bench.loop.now_s).tm_hour
    assert second["counters"] == [0] * at + [1] + [-1] * (23 - at)
    bench.loop.jump(3 * 24 * HOUR_S)
    assert len(history(bench)) == 2
    assert sum(history(bench)[0]["counters"]) == 0
    bench.call("broker", "resetAllMessageCounterHistories")
    assert len(history(bench)) == 1
    assert counter(bench)["count"] == 4
    bench.call("broker", "resetAllMessageCounters")
    assert counter(bench)["count"] == 0


def test_counters_are_shown_as_tables(bench):
    bench.queue("<b>")
    bench.call("broker", "enableMessageCounters")
    fill(bench, 2)
    bench.loop.pass_time(10)

    table = bench.call("queue.q", "listMessageCounterAsHTML")
    assert table.startswith('<table class="activemq-message-counter">\n<tr><th>Type</th>')
    assert "<td>Queue</td><td>q</td><td>-</td><td>-</td><td>2</td><td>2</td>" in table
    days = bench.call("queue.q", "listMessageCounterHistoryAsHTML")
    assert "<li>Queue 'q'</li>" in days
    assert days.count("<th>") == 26
    assert "<td>2</td></tr>" in days
    assert "<b>" not in bench.call("queue.<b>", "listMessageCounterHistoryAsHTML")


# --- what is being delivered --------------------------------------------------------------------

KEYS = {
    *("consumerID", "sequentialId", "connectionID", "sessionID", "queueName", "browseOnly"),
    *("creationTime", "deliveringCount", "messagesInTransit", "messagesInTransitSize"),
    *("messagesDelivered", "messagesDeliveredSize", "messagesAcknowledged"),
    *("messagesAcknowledgedAwaitingCommit", "lastDeliveredTime", "lastAcknowledgedTime", "status"),
}


def consumers(bench):
    rows = json.loads(bench.call("broker", "listAllConsumersAsJSON"))
    return [row for row in rows if row["queueName"] == "q"]


def test_consumers_are_told_with_every_key(bench):
    began_ms = bench.now_ms
    fill(bench, 3)
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[1], done)

    (row,) = consumers(bench)
    assert set(row) == KEYS
    names = ("messagesDelivered", "messagesInTransit", "messagesAcknowledged")
    assert [row[name] for name in names] == [3, 1, 2]
    assert row["messagesAcknowledgedAwaitingCommit"] == 2
    assert row["messagesDeliveredSize"] == 3 * row["messagesInTransitSize"]
    assert began_ms <= row["lastDeliveredTime"] <= row["lastAcknowledgedTime"]
    session.commit(done)
    bench.loop.run_turns()
    (row,) = consumers(bench)
    assert row["messagesAcknowledgedAwaitingCommit"] == 0
    filtered = bench.consume(session=bench.session(), filter_text="n > 5")
    (_, row) = consumers(bench)
    assert set(row) == {*KEYS, "filter"}
    assert (row["lastDeliveredTime"], row["lastAcknowledgedTime"]) == (0, 0)
    paged = json.loads(bench.call("broker", "listConsumers", "", 1, 50))["data"]
    assert str(filtered.consumer.number) in {one["id"] for one in paged}
    assert {"messagesDeliveredSize", "messagesAcknowledgedAwaitingCommit"} <= set(paged[0])


def delivering(bench):
    found = bench.call("queue.q", "listDeliveringMessages")
    return {name.partition(" ")[0]: [one["n"] for one in rows] for name, rows in found.items()}


def test_open_transactions_hold_what_is_being_delivered(bench):
    fill(bench, 4)
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[1], done)

    assert bench.get("queue.q", "deliveringCount") == 4
    assert delivering(bench) == {"ServerConsumer": [0, 1, 2, 3]}
    assert bench.call("queue.q", "countDeliveringMessages", "n < 3") == 3
    counts = json.loads(bench.call("queue.q", "countDeliveringMessages", None, "n"))
    assert counts == {"0": 1, "1": 1, "2": 1, "3": 1}
    assert bench.get("queue.q", "durableDeliveringCount") == 4
    assert bench.get("queue.q", "durableDeliveringSize") == bench.get("queue.q", "deliveringSize")
    assert bench.get("queue.q", "acknowledgeAttempts") == 2
    # Its consumer goes, the transaction stays.
    session.close_consumer(0)
    bench.loop.run_turns()
    assert delivering(bench) == {"ServerSession": [0, 1]}
    session.rollback(done)
    bench.loop.run_turns()
    assert (delivering(bench), bench.get("queue.q", "deliveringCount")) == ({}, 0)
    assert bench.get("queue.q", "acknowledgeAttempts") == 2
    assert bench.get("queue.q", "messagesAcknowledged") == 0


def test_prepared_transactions_are_counted_and_told(bench):
    fill(bench, 2)
    xid = Xid(7, b"branch", b"global")
    session = bench.session(auto_commit_sends=False, auto_commit_acks=False, is_xa=True)
    session.xa.start(xid)
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    session.send(message("<sent>", address="q", n=9), done)
    session.xa.end(xid, has_failed=False)
    assert bench.get("queue.q", "preparedTransactionMessageCount") == 0
    session.xa.prepare(xid, done)
    bench.loop.run_turns()

    assert bench.get("queue.q", "preparedTransactionMessageCount") == 1
    assert delivering(bench) == {"ServerConsumer": [0, 1]}
    (found,) = json.loads(bench.call("broker", "listPreparedTransactionDetailsAsJSON"))
    names = ("xid_format_id", "xid_global_txid", "xid_branch_qual", "creation_time")
    assert [found[name] for name in names] == [7, "global", "branch", java_short_time(START_MS)]
    operations = [
        (one["message_operation_type"], one["message_type"], one["message_properties"]["n"])
        for one in found["tx_related_messages"]
    ]
    assert operations == [("(+) send", "Default", 9), ("(-) receive", "Default", 0)]
    table = bench.call("broker", "listPreparedTransactionDetailsAsHTML")
    assert table.startswith("<h3>*** Prepared Transaction Details ***</h3><table")
    assert "<td>(-) receive</td>" in table
    session.xa.rollback(xid, done)
    bench.loop.run_turns()
    table = bench.call("broker", "listPreparedTransactionDetailsAsHTML")
    assert table == "<h3>*** Prepared Transaction Details ***</h3><p>No entry.</p>"


def test_sizes_of_what_is_not_due_yet(bench):
    fill(bench, 2, _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000)

    size = bench.get("queue.q", "scheduledSize")
    assert size > 0
    assert bench.get("queue.q", "durableScheduledSize") == size
