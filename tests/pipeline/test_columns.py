"""Fewer columns are the same rows; text stands once, and nothing of a body is lost by that."""

import re
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from pyspark.sql import functions as f

from broker.model.bodies import encode_text
from broker.records.records import decode_record
from journal.errors import OptionError, WrongUse
from pipeline.broker_messages import message_of
from pipeline.broker_options import BrokerOptions
from pipeline.columns import arrow_schema, batch_of_rows, chosen, spark_schema
from pipeline.errors import DataLoss
from pipeline.filters import LONG_MAX, LONG_MIN, Wanted
from pipeline.message_columns import MessagePacker
from pipeline.message_content import DUPLICATE_ID, property_text
from pipeline.options import SourceOptions
from pipeline.raw_columns import PackedFile
from pipeline.schema import BINDINGS, BROKER, JOURNAL, MESSAGES, RETENTION
from pipeline.sources.bindings import BindingsReader
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader
from pipeline.sources.retention import HistoryReader
from tests.pipeline.test_message_columns import BODIES, MESSAGE, batches

READERS = {
    "journal": (RawReader, JOURNAL),
    "journal, live": (LiveReader, JOURNAL),
    "messages": (MessagesReader, MESSAGES),
    "bindings": (BindingsReader, BINDINGS),
    "retention": (HistoryReader, RETENTION),
}


def options(folder, **given):
    return SourceOptions.read({"path": str(folder), "asOfMs": "0", **given})


def read(reader):
    """Its rows; its batches have its columns, all of them and no others."""
    found = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(batch.schema == arrow_schema(reader.columns) for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def folders(golden, tmp_path_factory):
    """By source what it reads; a history is files of journals under another name."""
    history = tmp_path_factory.mktemp("node") / "retention"
    history.mkdir()
    for number, file in enumerate(sorted((golden / "tx_spanning_files").rglob("*.amq")), 1):
        prefix = file.stem.rpartition("-")[0]
        (history / f"{prefix}-20261121180000-{number}.amq").write_bytes(file.read_bytes())
    brokers = golden / "broker_[blt]*"
    return {"retention": history} | dict.fromkeys(
        ("journal", "journal, live", "messages", "bindings"), brokers
    )


@pytest.mark.parametrize("name", READERS)
def test_a_column_alone_is_what_it_is_among_all(name, folders):
    kind, columns = READERS[name]
    given = options(folders[name], failOnDataLoss="false")
    whole = read(kind(given))

    for column in columns:
        assert read(kind(given, (column,))) == [{column.name: row[column.name]} for row in whole]
    backwards = columns[::-1]
    assert read(kind(given, backwards)) == whole
    assert whole


@pytest.mark.parametrize("column", ["message_id", "body", "body_size", "timestamp"])
def test_bodies_of_large_messages_are_read_where_they_are_asked_for(column, golden):
    given = options(golden / "broker_large", maxLargeBodyBytes=str(1 << 20))
    columns = tuple(one for one in MESSAGES if one.name == column)
    whole = read(MessagesReader(given))

    assert read(MessagesReader(given, columns)) == [{column: row[column]} for row in whole]
    assert any(row["body"] for row in whole if row["is_large"])


def test_conditions_may_be_on_columns_that_are_not_wanted(golden):
    for kind, columns, where in (
        (RawReader, JOURNAL, "kind = 'add' AND user_type IN (45, 30) AND record_id > 3"),
        (LiveReader, JOURNAL, "kind = 'add' AND user_type IN (45, 100000) AND record_id > 3"),
        (MessagesReader, MESSAGES, "address = 'orders' AND timestamp_ms > 0"),
    ):
        given = options(golden / "broker_*", where=where)
        whole = read(kind(given))
        size = next(one for one in columns if one.name in ("offset", "priority"))

        assert read(kind(given, (size,))) == [{size.name: row[size.name]} for row in whole]
        assert 0 < len(whole) < len(read(kind(options(golden / "broker_*"))))


class Given:
    """A record as a journal delivers it."""

    offset = 0
    file = "activemq-data-1.amq"
    user_type = MESSAGE

    def __init__(self, body):
        self.record_id, self.body = 1, body


def test_what_is_not_wanted_of_a_message_is_not_made():
    def found(names):
        packer = MessagePacker(property_text, DUPLICATE_ID, LONG_MIN, LONG_MAX, names)
        records = [Given(BODIES["every property"]), Given(BODIES["wide text"])]
        assert packer.fill(iter(records), rows_max=9, bodies_max=1 << 20) == []
        columns = packer.columns()
        assert columns.row_count == 2
        bodies = (columns.address, columns.user_id, columns.body, columns.text)
        return [bool(made[2]) for made in bodies] + [columns.property_count > 0]

    assert found(["message_id", "timestamp_ms"]) == [False] * 5
    assert found(["text"]) == [False, False, False, True, False]
    assert found(["duplicate_id"]) == [False, False, False, False, True]


def test_no_body_of_a_record_is_copied_that_is_not_wanted(golden):
    files = (golden / "broker_basic" / "journal").glob("*.amq")
    file = max(files, key=lambda one: len(one.read_bytes().rstrip(b"\0")))
    packed = PackedFile(file.name, file.read_bytes())

    whole, _ = packed.pack(0, rows_max=1 << 20, bodies_max=1 << 30)
    without, _ = packed.pack(0, rows_max=1 << 20, bodies_max=1 << 30, with_bodies=False)

    assert whole.row_count == without.row_count
    assert whole.bodies
    assert not without.bodies
    assert without.record_ids == whole.record_ids


def test_damage_is_found_whatever_is_wanted(tmp_path):
    place = tmp_path / "journal"
    place.mkdir()
    count = len([row for batch in batches(place, [BODIES["cut"]]) for row in batch.to_pylist()])
    given = options(place, failOnDataLoss="true")
    only_id = tuple(one for one in MESSAGES if one.name == "message_id")

    with pytest.raises(DataLoss):
        read(MessagesReader(given, only_id))
    assert len(read(MessagesReader(options(place, failOnDataLoss="false"), only_id))) == count


# --- schemas that are given ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("colour", "string", True)], "journal has no column 'colour'; there are: node, journal"),
        ([("size", "bigint", True)], "column 'size' of journal is int: .* as bigint"),
        ([("size", "int", False)], "column 'size' of journal may be null: drop NOT NULL"),
        ([("size", "int", True), ("size", "int", True)], "'size' of journal is named twice"),
        ([], "no column; journal has: node"),
    ],
)
def test_a_schema_that_cannot_be_read_is_one_clear_error(given, said):
    with pytest.raises(OptionError, match=said):
        chosen("journal", JOURNAL, given)


@pytest.mark.parametrize("columns", [JOURNAL, MESSAGES, BINDINGS, RETENTION, BROKER])
def test_the_whole_schema_may_be_given(columns):
    given = [(column.name, column.type.replace(": ", ":"), True) for column in columns]

    assert chosen("source", columns, given) == columns


def test_times_are_dates_or_nothing():
    last = 253_370_764_799_999
    times = [0, None, 1, 1_700_000_000_123, last, last + 1, -5, LONG_MAX, LONG_MIN]
    columns = tuple(one for one in MESSAGES if one.name in ("timestamp", "priority"))

    batch = batch_of_rows([{"timestamp_ms": time, "priority": 4} for time in times], columns)

    start = datetime(1970, 1, 1, tzinfo=UTC)
    dates = [start + timedelta(milliseconds=one) for one in (1, 1_700_000_000_123, last)]
    assert batch.column("timestamp").to_pylist() == [None, None, *dates, None, None, None, None]
    assert batch.schema == arrow_schema(columns)


# --- text ----------------------------------------------------------------------------------------


def body_in(record):
    message = decode_record(MESSAGE, record, is_update=False)
    return getattr(message, "body", None)


def test_text_stands_once_and_nothing_of_a_body_is_lost(tmp_path):
    sound = {
        name: record
        for name, record in BODIES.items()
        if name not in ("cut", "nothing", "unknown persister", "bytes behind it", "AMQP")
    }
    found = [row for batch in batches(tmp_path, sound.values()) for row in batch.to_pylist()]
    options_ = BrokerOptions.of_write({"url": "tcp://localhost:1", "address": "copies"})

    once = []
    for (name, record), row in zip(sound.items(), found, strict=True):
        body = body_in(record)
        assert row["body_size"] == len(body)
        assert (encode_text(row["text"]) if row["body"] is None else row["body"]) == body, name
        if row["body"] is None:
            once.append(name)
        if name == "unknown type" or row["type"] not in ("TEXT", "BYTES"):
            continue
        sent = {one: row[one] for one in ("text", "body", "type")}
        assert bytes(message_of(sent, options_, "id").body) == body, name
    assert once == ["text", "wide text", "empty text", "replacement character"]


@pytest.mark.parametrize(
    "row",
    [
        {"text": None, "body": None, "type": "TEXT"},
        {"text": None, "body": None, "type": "BYTES"},
        {"body": None},
        {"body": None, "type": "TEXT"},
    ],
)
def test_a_message_whose_body_was_left_behind_is_not_sent_empty(row):
    options_ = BrokerOptions.of_write({"url": "tcp://localhost:1", "address": "copies"})

    with pytest.raises(WrongUse, match="neither text nor body"):
        message_of(row, options_, "id")


# --- conditions of a frame ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        ("user_type = 45", [45]),
        ("user_type>=45 and user_type<47", [45, 46]),
        ("`user_type` IN (45, 30)", [30, 45]),
        ("user_type BETWEEN 3 AND 5 AND user_type > 3", [4, 5]),
        ("user_type IS NOT NULL AND user_type <= 0", [0]),
    ],
)
def test_conditions_are_read_as_sql_has_them(text, fitting):
    wanted = Wanted({"user_type": int})

    wanted.take_text(text)

    assert [number for number in range(256) if wanted.fits(user_type=number)] == fitting
    assert not wanted.fits(user_type=None)


def test_texts_have_quotes_and_times_a_form():
    wanted = Wanted({"address": str, "copied": datetime})

    wanted.take_text("address = 'it''s AND so' AND copied < '2026-11-21T18:00:00'")

    assert wanted.fits(address="it's AND so", copied=datetime(2026, 11, 21))  # noqa: DTZ001 - local
    assert not wanted.fits(address="it's AND so", copied=datetime(2026, 11, 22))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("size = 4", "no condition on 'size'; there are those on: kind, user_type, copied"),
        ("user_type = '45'", "'45': user_type is compared with a whole number"),
        ("user_type > 9999999999999999999", "user_type is compared with a whole number of 64 bits"),
        ("copied < '2026-11-21T18:00:00+01:00'", "copied is compared with a local time"),
        ("copied < 'yesterday'", "copied is compared with a local time"),
        ("kind = add", "add: kind is compared with a text"),
        ("kind = 'add", "': kind is compared with a text"),
        ("kind = 'add' OR kind = 'update'", "'OR' where AND is expected"),
        ("kind LIKE 'a%'", "'LIKE' behind kind: it must be one of"),
        ("kind IN ('add' 'update')", ".'update'. where , or \\) is expected"),
        ("kind =", "something is missing at its end"),
        ("", "something is missing at its end"),
    ],
)
def test_other_conditions_are_refused(text, said):
    with pytest.raises(OptionError, match=said):
        Wanted({"kind": str, "user_type": int, "copied": datetime}).take_text(text)


# --- Spark ---------------------------------------------------------------------------------------


def test_spark_reads_the_columns_that_a_schema_names(spark, golden):
    given = "message_id bigint, timestamp timestamp, references " + next(
        one.type for one in MESSAGES if one.name == "references"
    )
    reading = spark.read.format("messages").option("asOfMs", "0")
    whole = reading.load(str(golden / "broker_*"))
    frame = reading.schema(given).load(str(golden / "broker_*"))

    plan = frame._jdf.queryExecution().executedPlan().toString()

    assert frame.columns == ["message_id", "timestamp", "references"]
    assert re.search(r"ReadSchema: struct<message_id:bigint,timestamp:timestamp,ref", plan) or (
        "message_id" in plan and "address" not in plan
    )
    assert sorted(frame.collect(), key=str) == sorted(
        whole.select(*frame.columns).collect(), key=str
    )
    assert frame.count() == whole.count()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("colour string", "messages has no column 'colour'; there are: node, journal, message_id"),
        ("message_id int", "column 'message_id' of messages is bigint: it cannot be read as int"),
        ("message_id bigint NOT NULL", "column 'message_id' of messages may be null"),
    ],
)
def test_spark_says_what_is_wrong_with_a_schema(given, said, spark, golden):
    frame = spark.read.format("messages").schema(given).load(str(golden / "broker_basic"))

    with pytest.raises(Exception, match=said):
        frame.collect()


def test_every_source_takes_its_own_schema(spark, golden, folders):
    for name, columns in (("journal", JOURNAL), ("messages", MESSAGES), ("bindings", BINDINGS)):
        reading = spark.read.format(name).option("failOnDataLoss", "false")
        frame = reading.schema(spark_schema(columns)).load(str(golden / "broker_basic"))
        assert frame.count() == reading.load(str(golden / "broker_basic")).count() > 0


def test_times_are_those_of_the_milliseconds_in_any_zone(spark, golden):
    frame = spark.read.format("messages").load(str(golden / "broker_*"))
    sent = frame.where("timestamp_ms > 0")

    assert sent.where("unix_millis(timestamp) <=> timestamp_ms").count() == sent.count() > 0
    assert frame.where("timestamp_ms <= 0 AND timestamp IS NOT NULL").count() == 0
    scheduled = frame.selectExpr("explode(references) one").where("one.scheduled_ms > 0")
    assert (
        scheduled.selectExpr("timestamp_millis(one.scheduled_ms) AS at")
        .where("at > '2000-01-01'")
        .count()
    )


def test_conditions_of_a_frame_are_right_however_often_it_is_used(spark, golden):
    reading = spark.read.format("journal")
    place = str(golden / "tx_spanning_files")
    whole = reading.load(place)
    adds = spark.read.format("journal").option("where", "kind = 'add'").load(place)
    ends = spark.read.format("journal").option("where", "kind IN ('commit')").load(place)

    both = adds.union(ends).union(adds.where("record_id > 3")).groupBy("kind").count().collect()

    assert {row["kind"]: row["count"] for row in both} == {
        "add": whole.where("kind = 'add'").count()
        + whole.where("kind = 'add' AND record_id > 3").count(),
        "commit": whole.where("kind = 'commit'").count(),
    }
    assert adds.count() == whole.where(f.col("kind") == "add").count() < whole.count()


@pytest.mark.xfail(
    strict=True,
    reason="Spark keeps with the frame what one pushdown planned: once it keeps it with the scan,"
    " filterPushdown can be true by default",
)
@pytest.mark.parametrize("is_one_query", [True, False])
def test_filters_of_one_use_of_a_frame_do_not_reach_another(is_one_query, spark, golden):
    reading = spark.read.format("journal")
    place = str(golden / "tx_spanning_files")
    right = reading.load(place)
    frame = spark.read.format("journal").option("filterPushdown", "true").load(place)

    if is_one_query:
        found = frame.where("kind = 'add'").union(frame.where("kind = 'commit'")).count()
        assert found == right.where("kind IN ('add', 'commit')").count()
    else:
        frame.where("kind = 'commit'").count()
        assert frame.count() == right.count()
