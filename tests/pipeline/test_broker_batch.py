"""A running broker as a table: looked at without taking anything, and written to, each row once."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.client import Client
from broker.model.bodies import encode_text
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from tests.broker.serve import BrokerProcess

HEADERS = {
    "text": "ten crates",
    "priority": 7,
    "durable": False,
    "group_id": "fruit",
    "correlation_id": "q-1",
    "expiration_ms": 1 << 42,
    "timestamp_ms": 1_700_000_000_000,
    "user_id": "00010203-0405-1607-8809-0a0b0c0d0e0f",
    "properties": {"colour": "red"},
}
TYPES = (
    "text string, priority int, durable boolean, group_id string, correlation_id string,"
    " expiration_ms bigint, timestamp_ms bigint, user_id string, properties map<string,string>"
)


@pytest.fixture
def served(tmp_path):
    broker = BrokerProcess(tmp_path / "broker")
    yield broker
    broker.stop()


@pytest.fixture
def session(served):
    with Client(f"tcp://127.0.0.1:{served.port}") as client, client.session() as session:
        yield session


def of(served, spark):
    return spark.read.format("broker").option("url", f"tcp://127.0.0.1:{served.port}")


def writing(frame, served, **options):
    return (
        frame.write.format("broker")
        .mode("append")
        .options(url=f"tcp://127.0.0.1:{served.port}", routingType="ANYCAST", **options)
    )


def taken(session, queue):
    with session.consumer(queue) as consumer:
        found = []
        while (message := consumer.receive_now()) is not None:
            found.append(message)
        return found


def test_a_queue_is_read_and_nothing_is_taken(served, session, spark):
    session.create_queue("orders")
    with session.producer("orders") as producer:
        producer.send(
            "ten crates", priority=7, properties={"n": Property("n", PropertyType.SHORT, 3)}
        )
        producer.send(b"\x00\xff")
        producer.send(bytes(300_000))

    frame = of(served, spark).option("queue", "orders").load()

    for _ in range(2):
        rows = frame.collect()
        assert [row.text for row in rows] == ["ten crates", None, None]
        assert [row.body_size for row in rows][1:] == [2, 300_000]
        assert [row.is_large for row in rows] == [False, False, True]
        assert rows[0].properties["n"] == "3"
        assert rows[0].property_types["n"] == "short"
        assert rows[0].node == f"127.0.0.1:{served.port}"
    assert len(taken(session, "orders")) == 3


def test_an_address_is_read_queue_by_queue_with_a_selector(served, session, spark):
    for queue in ("first", "second"):
        session.create_queue(queue, "news", routing_type=RoutingType.MULTICAST)
    with session.producer("news") as producer:
        for colour in ("red", "blue"):
            producer.send(colour, properties={"colour": colour})

    rows = of(served, spark).options(address="news", selector="colour = 'red'").load().collect()

    assert sorted((row.queue, row.text) for row in rows) == [("first", "red"), ("second", "red")]


def test_what_is_not_there_is_one_clear_error(served, spark):
    with pytest.raises(Exception, match="queue 'nowhere' does not exist"):
        of(served, spark).option("queue", "nowhere").load().collect()
    with pytest.raises(Exception, match="one of the options address and queue"):
        of(served, spark).load().collect()


def test_every_header_is_written(served, session, spark):
    frame = spark.createDataFrame([HEADERS], TYPES)

    writing(frame, served, address="orders").save()

    (row,) = of(served, spark).option("queue", "orders").load().collect()
    found = row.asDict()
    assert {name: found[name] for name in HEADERS if name in found and name != "properties"} == {
        name: value
        for name, value in HEADERS.items()
        if name not in ("group_id", "correlation_id", "properties")
    }
    assert found["properties"]["colour"] == "red"
    assert found["properties"]["_AMQ_GROUP_ID"] == "fruit"
    assert found["properties"]["JMSCorrelationID"] == "q-1"


def test_what_was_read_can_be_written(served, session, spark):
    session.create_queue("orders")
    given = {
        "yes": Property("yes", PropertyType.BOOLEAN, True),
        "byte": Property("byte", PropertyType.BYTE, -3),
        "bytes": Property("bytes", PropertyType.BYTES, b"\x00\xff"),
        "short": Property("short", PropertyType.SHORT, -300),
        "long": Property("long", PropertyType.LONG, 1 << 40),
        "float": Property("float", PropertyType.FLOAT, 0.5),
        "double": Property("double", PropertyType.DOUBLE, float("inf")),
        "char": Property("char", PropertyType.CHAR, "x"),
        "null": Property("null", PropertyType.NULL, None),
    }
    with session.producer("orders") as producer:
        producer.send({"a": 1}, properties=given)
        producer.send("ten crates \u20ac")
        producer.send(Message("orders", encode_text("odd") + b"more", type=MessageType.TEXT))

    frame = of(served, spark).option("queue", "orders").load()
    assert [row.body is None for row in frame.collect()] == [False, True, False]
    names = ("type", "text", "body", "properties", "property_types")
    writing(frame.selectExpr("'copies' AS address", *names), served).save()

    message, text, odd = taken(session, "copies")
    assert message.content == {"a": 1}
    assert bytes(text.message.body) == encode_text("ten crates \u20ac")
    assert (bytes(odd.message.body), odd.message.type) == (
        encode_text("odd") + b"more",
        MessageType.TEXT,
    )
    assert {name: item for name, item in message.properties.items() if name in given} == given


def test_a_job_that_is_done_again_sends_nothing_twice(served, session, spark):
    session.create_queue("orders")
    # Equal rows among them, and in another order the second time.
    frame = spark.range(100).selectExpr("CAST(id % 60 AS string) AS text", "id")
    for order in ("id", "-id"):
        again = frame.coalesce(1).orderBy(frame.id if order == "id" else -frame.id).drop("id")
        writing(again.coalesce(1), served, address="orders", jobId="of today").save()

    found = [message.text for message in taken(session, "orders")]

    assert sorted(found) == sorted(str(number % 60) for number in range(100))


def test_other_jobs_are_other_rows(served, session, spark):
    session.create_queue("orders")
    for _ in range(2):
        writing(
            spark.range(3).selectExpr("CAST(id AS string) AS text"), served, address="orders"
        ).save()

    assert len(taken(session, "orders")) == 6


def test_more_rows_than_an_address_keeps_ids_are_refused(served, session, spark):
    frame = spark.range(11).coalesce(1).selectExpr("CAST(id AS string) AS text")

    with pytest.raises(Exception, match="more than 10 rows for address orders in one task"):
        writing(frame, served, address="orders", idCacheSize=10).save()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'a' AS text, 1 AS colour", "column 'colour': messages have address, text, body"),
        ("1.5 AS text", "column 'text' is decimal.* it must be string"),
        ("1 AS priority", "neither a column text nor body"),
        ("'a' AS text", "neither a column nor an option address"),
    ],
)
def test_a_frame_that_is_none_of_messages_is_refused(served, spark, columns, message):
    with pytest.raises(Exception, match=message):
        writing(spark.range(1).selectExpr(*columns.split(", ")), served).save()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'a' AS text, 10 AS priority", "priority is 10: it must be 0 to 9"),
        ("'a' AS text, 'x' AS user_id", "user_id is 'x': it must be a UUID"),
        ("'a' AS text, 'x' AS routing_type", "routing_type is 'x'"),
        ("x'00' AS body, 'x' AS type", "type is 'x': it must be one of DEFAULT"),
    ],
)
def test_a_value_that_no_message_has_is_refused(served, spark, columns, message):
    with pytest.raises(Exception, match=message):
        writing(spark.range(1).selectExpr(*columns.split(", ")), served, address="a").save()
