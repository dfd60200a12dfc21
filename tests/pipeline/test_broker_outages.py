"""A broker that is killed, or away, while a query reads or writes it; without Spark's Java."""

import json
import random
import threading
import time

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

from broker.client import Client
from broker.client.errors import NotConnected, SecurityRefused
from journal.errors import OptionError, WrongUse
from pipeline.broker_connection import BrokerConnection
from pipeline.broker_options import BrokerOptions
from pipeline.broker_sending import Sender
from pipeline.sources.broker import QueueReader
from pipeline.sources.broker_stream import QueueStreamReader
from tests.pipeline.instances import Instance
from tests.pipeline.outages import Outages, Persistent

WAIT_S = 120


@pytest.fixture
def outages(tmp_path):
    made = Outages(tmp_path / "broker")
    yield made
    made.stop()


def options_of(kind, outages, **given):
    given = {"url": outages.url, **{name: str(value) for name, value in given.items()}}
    return getattr(BrokerOptions, kind)(given)


def fill(outages, queue, count, size=0):
    with Client(outages.url) as client, client.session() as session:
        session.create_queue(queue)
        with session.producer(queue) as producer:
            texts = (f"{number:06}".ljust(size, ".") for number in range(count))
            for answer in [producer.post(text) for text in texts]:
                answer.result()


def texts_of(batches):
    return [text for batch in batches for text in batch.column("text").to_pylist()]


@pytest.mark.timeout(1800)
def test_each_message_passes_once_while_the_broker_is_killed(outages, effort):
    with Client(outages.url) as client, client.session() as session:
        session.create_queue("in")
        session.create_queue("out")
    given = options_of("of_stream", outages, address="in", queue="spark", maxRecordsPerTrigger=50)
    target = options_of("of_write", outages, address="out", routingType="ANYCAST")
    reader = QueueStreamReader(given)
    at = reader.initialOffset()
    batches = 0
    with Persistent(outages.url, "in") as producer:
        outages.begin(effort(20, least=3), random.Random(3), lambda: batches)
        while True:
            is_last = outages.is_over and producer.stop()
            end = json.loads(json.dumps(reader.latestOffset(at, reader.getDefaultReadLimit())))
            if end != at:
                batches += 1
                for part in reader.partitions(at, end):
                    with Sender(target, f"query:{batches}:0") as sender:
                        for batch in reader.read(part):
                            for row in batch.select(["text"]).to_pylist():
                                sender.send(row)
                        sender.finish()
            elif is_last:
                break
            at = end
        sent = producer.count
    reader.stop()
    outages.check()

    with Client(outages.url) as client, client.session() as session:
        found = [int(message.text) for message in session.browse("out")]
        assert sorted(found) == list(range(sent))
        assert session.attribute("queue.spark", "messageCount") == 0
    assert batches >= outages.count


def test_a_queue_that_is_read_goes_on_behind_a_kill(outages):
    fill(outages, "orders", 3000, size=2000)
    reader = QueueReader(options_of("of_read", outages, queue="orders"))
    (part,) = reader.partitions()
    found = reader.read(part)
    batches = [next(found)]

    outages.restart()
    batches += found

    assert [int(text[:6]) for text in texts_of(batches)] == list(range(3000))


def test_a_query_waits_for_a_broker_that_is_not_there_yet(outages):
    fill(outages, "orders", 1)
    outages.kill()
    late = threading.Timer(2.0, outages.start)
    late.start()
    reader = QueueReader(options_of("of_read", outages, queue="orders"))

    (part,) = reader.partitions()

    late.join()
    assert texts_of(reader.read(part)) == ["000000"]


def test_what_is_not_confirmed_is_sent_again(outages):
    options = options_of("of_write", outages, address="out", routingType="ANYCAST")
    with Sender(options, "job:0") as sender:
        for number in range(3000):
            sender.send({"text": str(number)})
            if number in (500, 1700):
                outages.restart()
        sender.finish()

    with Client(outages.url) as client, client.session() as session:
        assert [int(one.text) for one in session.browse("out")] == list(range(3000))


@pytest.mark.parametrize("timeout_ms", [0, 1500])
def test_a_broker_that_stays_away_is_one_error(timeout_ms):
    options = BrokerOptions.of_read(
        {"url": "tcp://127.0.0.1:1", "queue": "q", "reconnectTimeoutMs": str(timeout_ms)}
    )
    start = time.monotonic()

    with pytest.raises(
        NotConnected, match=r"127\.0\.0\.1:1: .* not back in [\d.]+ s \(reconnectTimeoutMs\)"
    ):
        QueueReader(options).partitions()

    assert time.monotonic() - start < 30


def test_an_outage_that_is_over_does_not_shorten_the_next_one(outages, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("pipeline.broker_connection.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pipeline.broker_connection.time.sleep", lambda wait_s: None)
    with BrokerConnection(
        options_of("of_read", outages, queue="q", reconnectTimeoutMs=10_000)
    ) as connection:
        for _ in range(3):
            connection.lost(NotConnected("away"))
            now[0] += 9
            connection.run(lambda session: None)
        connection.lost(NotConnected("away"))
        now[0] += 11
        with pytest.raises(NotConnected, match="not back in 10 s"):
            connection.lost(NotConnected("away"))


def test_what_no_waiting_mends_ends_at_once(tmp_path, outages):
    reader = QueueReader(options_of("of_read", outages, queue="nowhere"))
    with pytest.raises(WrongUse, match="queue 'nowhere' does not exist"):
        reader.partitions()
    with pytest.raises(OptionError, match="reconnectTimeoutMs=-1: must be 0 or more"):
        options_of("of_read", outages, queue="q", reconnectTimeoutMs=-1)

    instance = Instance(tmp_path / "secured")
    instance.start()
    try:
        given = {"url": instance.url, "user": "admin", "password": "wrong"}
        start = time.monotonic()
        with pytest.raises(SecurityRefused):
            QueueReader(BrokerOptions.of_read({**given, "queue": "q"})).partitions()
        with pytest.raises(SecurityRefused):
            QueueStreamReader(BrokerOptions.of_stream({**given, "queue": "q"})).initialOffset()
        target = BrokerOptions.of_write({**given, "address": "a"})
        with pytest.raises(SecurityRefused), Sender(target, "job:0") as sender:
            sender.send({"text": "a"})
        assert time.monotonic() - start < WAIT_S
    finally:
        instance.stop()
