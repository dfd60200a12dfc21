"""What records say of messages, without bodies; transactions whose end is in the same file."""

import struct
from uuid import UUID

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.bridges.jms.duplicate_ids import duplicate_id
from broker.bridges.jms.message import ID_LISTS
from broker.model.properties import Property, PropertyType
from broker.records.message_records import DuplicateId
from broker.records.records import encode_record
from broker.records.stored_messages import CoreMessage, MessageHeaders
from pipeline.columns import arrow_schema
from pipeline.raw_rows import ROWS_MAX
from pipeline.schema import JOURNAL
from pipeline.step_rows import step_batches

REF, ACK, DUPLICATE, MESSAGE = 32, 33, 37, 45
SCHEMA = arrow_schema(JOURNAL)
QUEUE = struct.pack(">q", 7)


def record(offset, kind, record_id=None, user_type=None, body=b"", tx_id=None, **given):
    return {
        "node": "node",
        "journal": "journal",
        "file": "1.amq",
        "file_id": 1,
        "offset": offset,
        "kind": kind,
        "record_id": record_id,
        "user_type": user_type,
        "tx_id": tx_id,
        "compact_count": 0,
        "body": body,
        **given,
    }


def steps(*records):
    batches = [pa.RecordBatch.from_pylist([one], schema=SCHEMA) for one in records]
    return [row for batch in step_batches(batches) for row in batch.to_pylist()]


def test_a_record_in_transaction_counts_from_the_commit_behind_it_in_its_file():
    found = steps(
        record(100, "update_tx", 1, REF, QUEUE, tx_id=5),
        record(200, "update_tx", 2, REF, QUEUE, tx_id=6),
        record(300, "commit", tx_id=5),
        record(400, "rollback", tx_id=6),
        record(500, "update_tx", 3, REF, QUEUE, tx_id=5),
    )

    start = 1 << 32
    rows = {row["message_id"]: row for row in found if row["step"] == "routed"}
    # Rolled back: it never counts. What comes behind the end may be of another one of that id.
    assert rows.keys() == {1, 3}
    assert (rows[1]["own"], rows[1]["counts"], rows[1]["tx_id"]) == (start + 100, start + 300, None)
    assert (rows[3]["counts"], rows[3]["tx_id"]) == (None, 5)
    assert [row["tx_id"] for row in found if row["step"] in ("commit", "rollback")] == [5, 6]


def test_an_id_that_is_used_again_in_a_file_is_left_to_all_files_together():
    found = steps(
        record(100, "update_tx", 1, REF, QUEUE, tx_id=5),
        record(200, "rollback", tx_id=5),
        record(300, "update_tx", 2, REF, QUEUE, tx_id=5),
        record(400, "commit", tx_id=5),
    )

    assert [row["tx_id"] for row in found] == [5] * 4
    assert {row["counts"] for row in found} == {None}


def test_files_are_told_apart():
    found = steps(
        record(100, "update_tx", 1, REF, QUEUE, tx_id=5),
        record(100, "commit", tx_id=5, file="2.amq", file_id=2),
    )

    assert [(row["own"] >> 32, row["counts"]) for row in found] == [(1, None), (2, None)]


def test_what_a_bridge_brought_is_at_the_message_of_its_source():
    node_id = UUID(int=77)
    given = node_id.bytes + struct.pack(">q", 4711)
    found = steps(
        record(1, "add_tx", 1, DUPLICATE, encode_record(DuplicateId("BRIDGE.a", given)), tx_id=2),
        record(2, "add", 3, DUPLICATE, encode_record(DuplicateId("a", given))),
        record(3, "add", 4, DUPLICATE, encode_record(DuplicateId("BRIDGE.a", b"short"))),
        record(4, "add", 5, DUPLICATE, b"\x00\x00"),
        record(5, "commit", tx_id=2),
    )

    (row,) = (one for one in found if one["step"] == "accepted")
    assert (row["source_id"], row["message_id"]) == (node_id.hex, 4711)
    assert row["address"] == "a"
    assert row["counts"] == (1 << 32) + 5


def test_an_id_that_a_jms_bridge_may_have_made_is_told_as_hex():
    node_id = str(UUID(int=77))
    given = [duplicate_id(node_id, b"q\0" + QUEUE), duplicate_id(node_id, b"p\0" + QUEUE)]
    bodies = [
        *(given[0], given[1].hex().encode("utf-16-le")),
        *("no hex digits in these characters".rjust(64).encode("utf-16-le"), b"\xd8" * 128),
        *(b"x" * 31, b"x" * 33, b""),
    ]
    records = [
        record(number, "add", number, DUPLICATE, encode_record(DuplicateId("a", one)))
        for number, one in enumerate(bodies)
    ]
    damaged = [b"", b"\0\0\0", b"\xff" * 8, b"\x7f" * 8, b"\0\0\0\0\0\0\0"]
    records += [record(20 + n, "add", 20 + n, DUPLICATE, one) for n, one in enumerate(damaged)]

    found = steps(*records)

    assert [one["duplicate_id"] for one in found] == [one.hex() for one in given]
    assert {(one["step"], one["source_id"]) for one in found} == {("accepted", None)}


def test_a_message_of_a_jms_bridge_tells_the_id_of_the_one_it_was_made_of():
    def sent(number, **lists):
        properties = tuple(Property(name, PropertyType.STRING, one) for name, one in lists.items())
        headers = MessageHeaders(number, "a", None, 3, True, 0, 0, 4, properties)
        body = encode_record(CoreMessage(number, "a", b"", headers))
        return record(number, "add", number, MESSAGE, body)

    found = steps(
        sent(1), sent(2, **{ID_LISTS[1]: "ID:a"}), sent(3, **{ID_LISTS[1]: "ID:a,ID:b,ID:c"})
    )

    assert [one["bridged_id"] for one in found] == [None, "ID:a", "ID:c"]


def test_what_cannot_be_read_is_told_as_such():
    (row,) = steps(record(1, "add", 1, MESSAGE, b"\x09nonsense"))

    assert (row["step"], row["is_readable"], row["address"]) == ("sent", False, None)


def test_other_records_say_nothing():
    assert (
        steps(
            record(1, "add", 1, 21, b"x"),
            record(2, "update", 1, 34, QUEUE + b"\x00\x00\x00\x01"),
            record(3, "prepare", tx_id=2, body=b"extra"),
        )
        == []
    )


def test_a_large_file_comes_in_batches():
    rows = [record(number, "update", number, ACK, QUEUE) for number in range(ROWS_MAX + 1)]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    found = list(step_batches([batch]))

    assert [one.num_rows for one in found] == [ROWS_MAX, 1]
    assert found[1].to_pylist()[0]["queue_id"] == 7
