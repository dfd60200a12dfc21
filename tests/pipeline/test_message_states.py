"""One word for what has become of a message."""

import struct

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.xid import Xid
from broker.records.records import encode_prepared, encode_record
from broker.records.stored_messages import CoreMessage, MessageHeaders
from journal import Journal, JournalOptions
from pipeline.options import SourceOptions
from pipeline.sources.messages import MessagesReader

NOW_MS = 1_800_000_000_000
MESSAGE, REF, ACK, COUNT, SCHEDULED = 45, 32, 33, 34, 36


def message(message_id, *, expiration_ms=0):
    headers = MessageHeaders(
        message_id=message_id,
        address="orders",
        user_id=None,
        type=4,
        durable=True,
        expiration=expiration_ms,
        timestamp=NOW_MS - 1000,
        priority=4,
        properties=(),
    )
    return encode_record(CoreMessage(message_id, "orders", b"body", headers))


def long(*values):
    return struct.pack(f">{len(values)}q", *values)


@pytest.fixture
def journal(tmp_path):
    with Journal(JournalOptions(directory=tmp_path / "journal", file_size=1 << 16)) as opened:
        opened.load()
        yield opened


def found(tmp_path):
    options = SourceOptions.read(
        {"path": str(tmp_path / "journal"), "asOfMs": str(NOW_MS), "live": "true"}
    )
    reader = MessagesReader(options)
    rows = [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    return {
        row["message_id"]: (row["state"], [one["state"] for one in row["references"]])
        for row in rows
    }


def test_every_state(journal, tmp_path):
    for number, expiration_ms in ((1, 0), (2, 0), (3, 0), (4, NOW_MS - 1), (5, 0), (6, NOW_MS + 1)):
        journal.add(number, MESSAGE, message(number, expiration_ms=expiration_ms))
    for number in (2, 3, 4, 5, 6):
        journal.update(number, REF, long(7))
    journal.update(2, ACK, long(7))
    journal.update(3, REF, long(8))
    journal.update(3, ACK, long(8))
    journal.update(5, SCHEDULED, long(7, NOW_MS + 1))
    journal.update(6, SCHEDULED, long(7, NOW_MS - 1))

    assert found(tmp_path) == {
        1: ("unreferenced", []),
        2: ("acknowledged", ["acknowledged"]),
        3: ("live", ["live", "acknowledged"]),
        4: ("expired", ["live"]),
        5: ("scheduled", ["scheduled"]),
        6: ("live", ["live"]),
    }


def test_what_a_prepared_transaction_would_change_is_named(journal, tmp_path):
    journal.add(1, MESSAGE, message(1))
    journal.update(1, REF, long(7))
    tx = journal.begin()
    journal.add(2, MESSAGE, message(2), tx=tx)
    journal.update(2, REF, long(7), tx=tx)
    journal.update(1, ACK, long(7), tx=tx)
    journal.update(1, REF, long(9), tx=tx)
    journal.prepare(tx, encode_prepared(Xid(1, b"branch", b"global")))

    assert found(tmp_path) == {
        1: ("live", ["acknowledging", "prepared"]),
        2: ("prepared", ["prepared"]),
    }


def test_what_was_deleted_or_never_committed_is_not_there(journal, tmp_path):
    journal.add(1, MESSAGE, message(1))
    journal.delete(1)
    tx = journal.begin()
    journal.add(2, MESSAGE, message(2), tx=tx)
    journal.rollback(tx)

    assert found(tmp_path) == {}


def test_the_last_count_is_that_of_the_queue(journal, tmp_path):
    journal.add(1, MESSAGE, message(1))
    for queue_id in (7, 8):
        journal.update(1, REF, long(queue_id))
    for count in (1, 2):
        journal.update(1, COUNT, long(8) + struct.pack(">i", count))
    reader = MessagesReader(SourceOptions.read({"path": str(tmp_path / "journal"), "live": "true"}))

    ((row,),) = [batch.to_pylist() for part in reader.partitions() for batch in reader.read(part)]

    assert [(one["queue_id"], one["delivery_count"]) for one in row["references"]] == [
        (7, 0),
        (8, 2),
    ]
