"""A queue of a running broker as a stream, as Spark drives it; without Spark's Java.

What Spark does: it keeps an end before it asks for the batch's tasks, reads them, keeps that the
batch is done, plans the next one from that end, and says commit(end) sometime behind that.
"""

import json
import random
from typing import ClassVar

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

from broker.client import AckMode, Client
from broker.model.routing_type import RoutingType
from journal.errors import OptionError, WrongUse
from pipeline.broker_options import BrokerOptions
from pipeline.errors import DataLoss
from pipeline.sources.broker_stream import QueueStreamReader
from tests.broker.serve import BrokerProcess


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


@pytest.fixture
def session(served):
    with Client(f"tcp://127.0.0.1:{served.port}") as client, client.session() as session:
        yield session


@pytest.fixture
def given(served, request):
    """Options of a query that follows an address of the test's own."""
    name = request.node.name
    yield {"url": f"tcp://127.0.0.1:{served.port}", "address": name, "queue": f"spark.{name}"}
    Query.stop_all()


class Query:
    """What Spark keeps of a query; every step may be the last one before a kill."""

    all: ClassVar = []

    @classmethod
    def stop_all(cls):
        """Let the connections of readers go."""
        for query in cls.all:
            if query.reader is not None:
                query.reader.stop()
        cls.all.clear()

    def __init__(self, given):
        self.given = given
        self.done = []
        self.planned = []
        self.rows = []
        self.reader = None
        self.all.append(self)

    def begin(self):
        if self.reader is not None:
            self.reader.stop()
        self.reader = QueueStreamReader(BrokerOptions.of_stream(self.given))
        if not self.planned:
            self.planned.append(json.dumps(self.reader.initialOffset()))
            self.done.append(self.planned[0])
        if len(self.planned) > len(self.done):
            self.read()
            yield
            self.done.append(self.planned[-1])
            yield
        while True:
            start = json.loads(self.done[-1])
            end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
            yield
            if end == start:
                return
            self.planned.append(json.dumps(end))
            yield
            self.reader.commit(start)
            yield
            self.read()
            yield
            self.done.append(self.planned[-1])
            yield

    def read(self):
        """The sink's: of a batch that comes again only the last one counts."""
        start, end = json.loads(self.done[-1]), json.loads(self.planned[-1])
        found = [
            row
            for part in self.reader.partitions(start, end)
            for batch in self.reader.read(part)
            for row in batch.to_pylist()
        ]
        del self.rows[len(self.done) - 1 :]
        self.rows.append(found)

    def run(self):
        for _ in self.begin():
            pass

    def texts(self):
        return [row["text"] for batch in self.rows for row in batch]


def send(session, address, texts, **headers):
    with session.producer(address) as producer:
        for text in texts:
            producer.send(text, **headers)


def count(session, queue):
    return session.attribute(f"queue.{queue}", "messageCount")


def test_an_address_is_followed_and_others_get_all_of_it(session, given):
    address = given["address"]
    session.create_queue("consumers", address)
    session.create_queue("subscribers", address, routing_type=RoutingType.MULTICAST)
    query = Query(given)
    query.run()

    send(session, address, ["before", "and after"])
    query.run()
    send(session, address, ["later"])
    query.run()

    assert query.texts() == ["before", "and after", "later"]
    rows = [row for batch in query.rows for row in batch]
    assert {dict(row["properties"])["_AMQ_ORIG_ADDRESS"] for row in rows} == {address}
    assert count(session, "consumers") == count(session, "subscribers") == 3


def test_a_batch_has_so_many_and_is_removed_when_it_is_done(session, given):
    given["maxRecordsPerTrigger"] = "2"
    query = Query(given)
    query.run()
    send(session, given["address"], "abcde")

    query.run()

    assert [len(batch) for batch in query.rows] == [2, 2, 1]
    assert query.texts() == list("abcde")
    assert count(session, given["queue"]) == 0


def test_what_overtakes_and_what_comes_late_is_in_a_batch_of_its_own(served, session, given):
    given["maxRecordsPerTrigger"] = "1"
    query = Query(given)
    query.run()
    with (
        Client(f"tcp://127.0.0.1:{served.port}") as client,
        client.session(AckMode.TRANSACTED) as late,
    ):
        send(late, given["address"], ["late"])
        send(session, given["address"], ["first", "second"])
        steps = query.begin()
        while len(query.planned) < 2:
            next(steps)
        send(session, given["address"], ["urgent"], priority=9)
        late.commit()
        for _ in steps:
            pass

    assert query.texts()[0] == "first"
    assert sorted(query.texts()) == ["first", "late", "second", "urgent"]


def test_each_message_comes_once_whatever_is_killed(session, given, effort):
    given["maxRecordsPerTrigger"] = "3"
    luck = random.Random(8)
    query = Query(given)
    query.run()
    sent = []
    for _ in range(effort(200, least=20)):
        texts = [str(len(sent) + number) for number in range(luck.randrange(5))]
        send(session, given["address"], texts, priority=luck.randrange(10))
        sent += texts
        for _, _ in zip(range(luck.randrange(12)), query.begin(), strict=False):
            pass
    query.run()

    assert sorted(query.texts(), key=int) == sent


def test_what_was_read_and_is_not_done_is_read_again_the_same(session, given):
    query = Query(given)
    query.run()
    send(session, given["address"], "abc")
    steps = query.begin()
    while len(query.rows) < 1:
        next(steps)
    (before,) = query.rows
    send(session, given["address"], "d", priority=9)

    query.run()

    assert query.rows[0] == before
    assert query.texts() == list("abcd")


def test_available_now_reads_what_was_there(session, given):
    query = Query(given)
    query.run()
    send(session, given["address"], ["there"])
    reader = QueueStreamReader(BrokerOptions.of_stream(given))
    reader.prepareForTriggerAvailableNow()
    send(session, given["address"], ["later"])
    start = json.loads(query.done[-1])

    end = reader.latestOffset(start, reader.getDefaultReadLimit())

    (part,) = reader.partitions(start, end)
    query.reader.stop()
    query.reader = reader
    assert [batch.column("text").to_pylist() for batch in reader.read(part)] == [["there"]]
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end


def test_a_planned_message_that_somebody_took_is_told(session, given):
    query = Query(given)
    query.run()
    send(session, given["address"], ["taken", "left"])
    steps = query.begin()
    while len(query.planned) < 2:
        next(steps)
    with session.consumer(given["queue"]) as consumer:
        assert consumer.receive(30).text == "taken"

    with pytest.raises(DataLoss, match="1 messages are gone from queue"):
        query.run()
    given["failOnDataLoss"] = "false"
    query.run()
    assert query.texts() == ["left"]


def test_a_queue_that_somebody_removed_is_told(session, given):
    query = Query(given)
    query.run()
    session.delete_queue(given["queue"])

    with pytest.raises(DataLoss, match=r"the queue .* of this query was removed"):
        query.run()
    given["failOnDataLoss"] = "false"
    query.run()
    send(session, given["address"], ["again"])
    query.run()
    assert query.texts() == ["again"]


def test_a_queue_that_there_is_is_consumed(session, given):
    address = given.pop("address")
    with pytest.raises(WrongUse, match="does not exist"):
        Query(given).run()
    session.create_queue(given["queue"], address)
    query = Query(given)
    send(session, address, ["a"])

    query.run()

    assert query.texts() == ["a"]


def test_a_batch_is_read_by_several_tasks_the_same_ones_under_other_options(session, given):
    given["minPartitions"] = "3"
    query = Query(given)
    query.run()
    send(session, given["address"], "abcdefg")
    reader = query.reader
    start = json.loads(query.done[-1])
    end = json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))

    query.reader = QueueStreamReader(BrokerOptions.of_stream({**given, "minPartitions": "2"}))
    texts = [
        [text for batch in query.reader.read(part) for text in batch.column("text").to_pylist()]
        for part in query.reader.partitions(start, end)
    ]

    reader.stop()
    assert texts == [list("ab"), list("cd"), list("efg")]
    with pytest.raises(OptionError, match="minPartitions=0: must be 1 or more"):
        BrokerOptions.of_stream({**given, "minPartitions": "0"})


def test_what_a_query_has_not_come_to_is_told(session, given):
    given["maxRecordsPerTrigger"] = "2"
    query = Query(given)
    query.run()
    assert query.reader.reportLatestOffset() == {"message_count": 0, "lag": 0}
    send(session, given["address"], "abcde")
    steps = query.begin()
    while len(query.planned) < 2:
        next(steps)

    assert query.reader.reportLatestOffset() == {"message_count": 5, "lag": 3}


def test_a_stream_needs_a_queue(given):
    del given["queue"]
    with pytest.raises(OptionError, match="the option queue names the queue"):
        BrokerOptions.of_stream(given)
