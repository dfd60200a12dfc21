"""Messages and bindings of Artemis's brokers are what `print-data --decode` says."""

import json
from datetime import datetime

import pytest

from broker.model.bodies import encode_text
from tests.journal.golden import GOLDEN
from tests.pipeline.conftest import rows_by

BROKERS = sorted(path.parent.name for path in GOLDEN.glob("*/broker.tar.gz"))
MESSAGES = ("ADD_MESSAGE_PROTOCOL", "ADD_LARGE_MESSAGE")


@pytest.fixture(scope="module")
def messages(spark, golden):
    """Those of journals; of pages tests/pipeline/test_page_rows.py has more to say."""
    frame = spark.read.format("messages").load(str(golden / "broker_*"))
    return rows_by(frame.filter("file NOT LIKE '%.page'"))


@pytest.fixture(scope="module")
def bindings(spark, golden):
    return rows_by(spark.read.format("bindings").load(str(golden / "broker_*")))


def body_of(row):
    """A text stands once: where it is all of the body, that is null."""
    if row["text"] is None:
        return row["body"]
    assert row["body"] is None
    return encode_text(row["text"])


def moment(time_ms):
    """As Spark gives a TIMESTAMP: without a zone, in that of this process."""
    return datetime.fromtimestamp(time_ms / 1000) if time_ms else None  # noqa: DTZ006 - see above


def committed(lines):
    return [line for line in lines if line["record"] in ("add", "update")]


def text_of(value):
    return value if value is None or isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", BROKERS)
def test_messages_are_what_the_broker_would_find(name, messages, golden, printed):
    lines, _ = printed(golden / name / "journal", "--decode")
    expected = [
        line
        for line in committed(lines)
        if line["decoded"] and line["decoded"]["recordType"] in MESSAGES
    ]
    prepared = [
        one
        for line in lines
        if line["record"] == "prepared"
        for one in line["adds"]
        if one["decoded"]["recordType"] in MESSAGES
    ]

    rows = messages.get(name, [])

    assert [row["message_id"] for row in rows] == [line["id"] for line in (*expected, *prepared)]
    assert [row["state"] == "prepared" for row in rows] == [
        *(False for _ in expected),
        *(True for _ in prepared),
    ]
    for row, line in zip(rows, expected, strict=False):
        assert (row["file"], row["offset"]) == (line["file"], line["offset"])
    for row, line in zip(rows, (*expected, *prepared), strict=True):
        decoded = line["decoded"]
        if decoded.get("persister", "CORE") != "CORE":
            assert row["protocol"] == decoded["persister"]
            assert row["body_size"] == decoded.get("encodedSize")
            continue
        assert row["address"] == decoded["address"]
        assert row["durable"] == decoded["durable"]
        assert row["priority"] == decoded["priority"]
        assert row["timestamp_ms"] == decoded["timestamp"]
        assert row["expiration_ms"] == decoded["expiration"]
        assert row["user_id"] == decoded["userId"]
        assert row["properties"] == {
            key: text_of(value) for key, value in decoded["properties"].items()
        }
        assert row["property_types"] == decoded["propertyTypes"]
        assert row["is_large"] == ("body" not in decoded)
        assert row["text"] == decoded.get("text")
        assert body_of(row) == (bytes.fromhex(decoded["body"]) if "body" in decoded else None)
        assert row["timestamp"] == moment(decoded["timestamp"])
        assert row["expiration"] == moment(decoded["expiration"])
        assert row["damage"] is None


@pytest.mark.parametrize("name", BROKERS)
def test_references_are_those_of_the_log(name, messages, golden, printed):
    lines, _ = printed(golden / name / "journal", "--decode")
    queues, acknowledged, counts, times = {}, set(), {}, {}
    for line in committed(lines):
        decoded = line["decoded"] or {}
        kind = decoded.get("recordType")
        key = (line["id"], decoded.get("queueId"))
        if kind == "ADD_REF":
            queues.setdefault(line["id"], []).append(decoded["queueId"])
        elif kind == "ACKNOWLEDGE_REF":
            acknowledged.add(key)
        elif kind == "UPDATE_DELIVERY_COUNT":
            counts[key] = decoded["count"]
        elif kind == "SET_SCHEDULED_DELIVERY_TIME":
            times[key] = decoded["time"]

    for row in messages.get(name, []):
        if row["state"] == "prepared":
            continue
        of_log = [one for one in row["references"] if one["state"] != "prepared"]
        assert [one["queue_id"] for one in of_log] == queues.get(row["message_id"], [])
        for one in of_log:
            key = (row["message_id"], one["queue_id"])
            assert (one["state"] == "acknowledged") == (key in acknowledged)
            assert one["delivery_count"] == counts.get(key, 0)
            assert one["scheduled_ms"] == times.get(key, 0)


def test_the_folders_hold_every_kind_of_message(messages):
    rows = [row for found in messages.values() for row in found]

    assert {row["type"] for row in rows} >= {"DEFAULT", "TEXT", "BYTES", "MAP", "OBJECT", "STREAM"}
    assert {row["is_large"] for row in rows} == {True, False}
    assert {row["state"] for row in rows} >= {"live", "prepared"}
    assert any(one["delivery_count"] for row in rows for one in row["references"])
    assert any(one["scheduled_ms"] for row in rows for one in row["references"])
    assert any(row["duplicate_id"] for row in rows)


@pytest.mark.parametrize("name", BROKERS)
def test_bindings_are_the_live_records(name, bindings, golden, printed):
    lines, _ = printed(golden / name / "bindings", "--decode")

    rows = bindings[name]

    assert [row["record_id"] for row in rows] == [line["id"] for line in committed(lines)]
    for row, line in zip(rows, committed(lines), strict=True):
        decoded = dict(line["decoded"])
        decoded.pop("password", None)
        assert json.loads(row["json"]) == decoded
        if row["record_type"] == "QUEUE_BINDING_RECORD":
            assert (row["name"], row["address"], row["routing_types"], row["filter"]) == (
                decoded["name"],
                decoded["address"],
                [decoded["routingType"]],
                decoded["filter"],
            )
        if row["record_type"] == "ADDRESS_BINDING_RECORD":
            assert (row["name"], row["routing_types"]) == (
                decoded["name"],
                decoded["routingTypes"],
            )


def test_passwords_are_left_out(spark, bindings):
    users = [
        row for rows in bindings.values() for row in rows if row["record_type"] == "USER_RECORD"
    ]

    assert users
    assert all("password" not in json.loads(row["json"]) for row in users)
