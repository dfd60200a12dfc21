"""Messages packed into columns are what the decoder of one message says."""

import struct
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: quiver-mq[spark] brings it")

from broker.model.properties import Property, PropertyType
from broker.records.records import encode_record
from broker.records.stored_messages import (
    AmqpMessageV3,
    CoreMessage,
    LargeCoreMessage,
    MessageHeaders,
)
from journal import Journal, JournalOptions
from pipeline.columns import arrow_schema
from pipeline.filters import Wanted
from pipeline.message_content import message_content
from pipeline.message_rows import message_batches
from pipeline.place import Place
from pipeline.raw_rows import ROWS_MAX
from pipeline.schema import MESSAGES

MESSAGE, LARGE_MESSAGE, REFERENCE = 45, 30, 32
TEXT, BYTES = 3, 4
EVERY_TYPE = (
    Property("null", PropertyType.NULL, None),
    Property("yes", PropertyType.BOOLEAN, True),
    Property("no", PropertyType.BOOLEAN, False),
    Property("byte", PropertyType.BYTE, -128),
    Property("bytes", PropertyType.BYTES, b"\x00\xff"),
    Property("short", PropertyType.SHORT, -2),
    Property("int", PropertyType.INT, -(1 << 31)),
    Property("long", PropertyType.LONG, (1 << 63) - 1),
    Property("least", PropertyType.LONG, -(1 << 63)),
    Property("float", PropertyType.FLOAT, 1.5),
    Property("double", PropertyType.DOUBLE, float("-inf")),
    Property("string", PropertyType.STRING, "a\u00e9\u20ac\U0001f600"),
    Property("", PropertyType.STRING, ""),
    Property("char", PropertyType.CHAR, "\u20ac"),
    Property("_AMQ_DUPL_ID", PropertyType.STRING, "once"),
)


def core(properties=(), *, address="orders", of_record="orders", body=b"", trailing=b"", **headers):
    given = {
        "message_id": 1,
        "address": address,
        "user_id": None,
        "type": BYTES,
        "durable": True,
        "expiration": 0,
        "timestamp": 7,
        "priority": 4,
        "properties": tuple(properties),
        **headers,
    }
    return encode_record(CoreMessage(1, of_record, body, MessageHeaders(**given), trailing))


def text_body(text):
    units = text.encode("utf-16-le", "surrogatepass")
    return b"\x01" + struct.pack(">i", len(units)) + units


def amqp():
    return encode_record(AmqpMessageV3(1, 0, "orders", b"", None, 5))


# By what is particular about it.
BODIES = {
    "plain": core(body=b"body"),
    "every property": core(EVERY_TYPE, user_id=bytes(range(16))),
    "AMQP": amqp(),
    "no address of the record": core(of_record=None),
    "no address at all": core(of_record=None, address=None),
    "two addresses": core(of_record="other"),
    "wide address": core(of_record="\u00fc\U0001f600", address="x"),
    "half of a pair": core(
        [Property("\ud83d", PropertyType.STRING, "x\ude00\ud83d")],
        of_record="a\udc00",
        type=TEXT,
        body=text_body("\ud83d!\ude00"),
    ),
    "a name twice": core(
        [
            Property("a", PropertyType.INT, 1),
            Property("b", PropertyType.INT, 2),
            Property("a", PropertyType.STRING, "x"),
        ]
    ),
    "very many properties": core(
        Property(f"n{number}", PropertyType.INT, number) for number in range(200)
    ),
    "text": core(type=TEXT, body=text_body("hello")),
    "wide text": core(type=TEXT, body=text_body("\u20ac\U0001f600")),
    "empty text": core(type=TEXT, body=text_body("")),
    "null text": core(type=TEXT, body=b"\x00"),
    "no text": core(type=TEXT, body=b""),
    "text cut short": core(type=TEXT, body=text_body("hello")[:-1]),
    "text of an odd size": core(type=TEXT, body=b"\x01\x00\x00\x00\x01x"),
    "text of a size below zero": core(type=TEXT, body=b"\x01\xff\xff\xff\xfexx"),
    "text with more behind it": core(type=TEXT, body=text_body("hello") + b"more"),
    "unknown type": core(type=-7),
    "extremes": core(
        durable=False, priority=-1, expiration=-(1 << 63), timestamp=(1 << 63) - 1, type=6
    ),
    "bytes behind it": core(body=b"body", trailing=b"??"),
    "text of another flag": core(type=TEXT, body=b"\x02" + text_body("hello")[1:]),
    "half of a pair at the end": core(type=TEXT, body=text_body("a\ud83d")),
    "half of a pair before a letter": core(type=TEXT, body=text_body("\ud83da")),
    "replacement character": core(type=TEXT, body=text_body("\ufffd")),
    "dates": core(timestamp=253_370_764_799_999, expiration=253_370_764_800_000),
    "before dates": core(timestamp=-1, expiration=1),
    "cut": core(EVERY_TYPE)[:-9],
    "nothing": b"",
    "unknown persister": b"\x63abc",
}


def batches(tmp_path, bodies):
    with Journal(JournalOptions(directory=tmp_path, file_size=1 << 20)) as journal:
        journal.load()
        for number, body in enumerate(bodies, 1):
            journal.add(number, MESSAGE, body, sync=False)
            journal.update(number, REFERENCE, struct.pack(">q", number % 3), sync=False)
    place = Place("node", str(tmp_path), tmp_path)
    found = message_batches(
        place, Wanted({}), user_version=0, fails_on_data_loss=False, as_of_ms=10
    )
    return list(found)


def expected(body):
    """What the decoder of one message says; None for what a row does not have."""
    row = dict.fromkeys(column.name for column in MESSAGES)
    try:
        row |= message_content(MESSAGE, body)
    except ValueError as error:
        row["damage"] = str(error)
    for name in ("timestamp", "expiration"):
        row[name] = moment(row[f"{name}_ms"])
    return row


def moment(time_ms):
    """What stands beside so many milliseconds: the years 1970 to 9998."""
    if not 0 < (time_ms or 0) < 253_370_764_800_000:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)


FROM_THE_JOURNAL = ("node", "journal", "message_id", "state", "references", "file", "offset")


def test_each_message_has_the_columns_that_its_decoder_gives(tmp_path):
    rows = [row for batch in batches(tmp_path, BODIES.values()) for row in batch.to_pylist()]

    assert [row["message_id"] for row in rows] == list(range(1, len(BODIES) + 1))
    for (name, body), row in zip(BODIES.items(), rows, strict=True):
        want = expected(body)
        for column in MESSAGES:
            if column.name not in FROM_THE_JOURNAL:
                assert row[column.name] == want[column.name], (name, column.name)
        assert [one["queue_id"] for one in row["references"]] == [row["message_id"] % 3]
        assert (row["node"], row["file"]) == ("node", "activemq-data-1.amq")


def test_batches_are_full_and_in_order_whatever_is_among_them(tmp_path):
    count = ROWS_MAX + 100
    bodies = [BODIES["AMQP" if number % 5 == 0 else "plain"] for number in range(count)]

    found = batches(tmp_path, bodies)

    assert [batch.num_rows for batch in found] == [ROWS_MAX, 100]
    assert all(batch.schema == arrow_schema(MESSAGES) for batch in found)
    ids = [value for batch in found for value in batch.column("message_id").to_pylist()]
    assert ids == list(range(1, count + 1))
    protocols = [value for batch in found for value in batch.column("protocol").to_pylist()]
    assert protocols == ["AMQP_V3" if number % 5 == 0 else "CORE" for number in range(count)]


def test_a_large_message_has_the_size_of_its_file(tmp_path):
    headers = MessageHeaders(1, "orders", None, BYTES, True, 0, 7, 4, ())
    with Journal(JournalOptions(directory=tmp_path / "journal", file_size=1 << 16)) as journal:
        journal.load()
        for number in (1, 2):
            journal.add(number, LARGE_MESSAGE, encode_record(LargeCoreMessage(headers)))
    (tmp_path / "large").mkdir()
    (tmp_path / "large/1.msg").write_bytes(b"x" * 300_000)
    folder = tmp_path / "journal"
    place = Place("node", str(folder), folder, large_messages=tmp_path / "large")

    found = message_batches(place, Wanted({}), user_version=0, fails_on_data_loss=True, as_of_ms=10)
    rows = [row for batch in found for row in batch.to_pylist()]

    assert [(row["is_large"], row["body_size"]) for row in rows] == [(True, 300_000), (True, None)]


def test_a_reference_cut_short_is_a_row_and_the_others_count(tmp_path):
    with Journal(JournalOptions(directory=tmp_path, file_size=1 << 16)) as journal:
        journal.load()
        journal.add(1, MESSAGE, BODIES["plain"])
        journal.update(1, REFERENCE, b"\x00\x00")
        journal.update(1, REFERENCE, b"")
        journal.update(1, REFERENCE, struct.pack(">q", 9))
    place = Place("node", str(tmp_path), tmp_path)

    found = message_batches(
        place, Wanted({}), user_version=0, fails_on_data_loss=False, as_of_ms=10
    )
    message, first, second = [row for batch in found for row in batch.to_pylist()]

    assert [one["queue_id"] for one in message["references"]] == [9]
    assert message["state"] == "live"
    for row in (first, second):
        assert row["damage"].startswith("record of type 32: 8 bytes wanted")
        assert row["state"] is None


def test_what_is_cut_or_changed_is_read_as_its_decoder_reads_it(tmp_path):
    """Each prefix of a record, and each byte of it changed: lengths, tags, flags, characters."""
    record = core(EVERY_TYPE, user_id=bytes(range(16)), type=TEXT, body=text_body("hello"))
    bodies = [record[:size] for size in range(1, len(record))]
    for place, byte in enumerate(record):
        others = sorted({byte ^ 0x01, byte ^ 0x80, 0xFF} - {byte})
        bodies += [record[:place] + bytes([other]) + record[place + 1 :] for other in others]

    rows = [row for batch in batches(tmp_path, bodies) for row in batch.to_pylist()]

    assert len(rows) == len(bodies)
    for body, row in zip(bodies, rows, strict=True):
        want = expected(body)
        assert {name: row[name] for name in want if name not in FROM_THE_JOURNAL} == {
            name: value for name, value in want.items() if name not in FROM_THE_JOURNAL
        }, body.hex()
