"""What of a journal's records becomes messages again."""

import struct

import pytest

from broker.recovery.recover_messages import MessageRecovery
from journal.errors import JournalIOError, UnknownRecord
from tests.broker.storage.scenarios import Record


class Journal:
    """A journal that keeps what is written."""

    def __init__(self):
        self.records = []
        self.ids = set()

    def add(self, record_id, user_type, body, *, sync):
        assert not sync
        self.ids.add(record_id)
        self.records.append(("add", record_id, user_type, body))

    def update(self, record_id, user_type, body, *, sync):
        if record_id == 666:
            raise JournalIOError(5, "the disk fails")
        if record_id not in self.ids:
            raise UnknownRecord(f"record {record_id} is not live")
        self.records.append(("update", record_id, user_type, body))


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def told():
    return []


@pytest.fixture
def recovery(journal, told):
    made = MessageRecovery(journal, journal.ids.__contains__, told.append)
    yield made
    made.close()


def record(kind, record_id, user_type, body=b"x", tx_id=None):
    return Record(kind, record_id=record_id, user_type=user_type, body=body, tx_id=tx_id)


def to(queue_id):
    return struct.pack(">q", queue_id)


def test_messages_come_back_whatever_became_of_them(recovery, journal, told):
    for one in (
        record("add", 1, 45),
        record("update", 1, 32, to(7)),
        record("update", 1, 33, to(7)),
        record("delete", 1, None),
        record("add_tx", 2, 30, tx_id=9),
        record("update_tx", 2, 32, to(8), tx_id=9),
        Record("rollback", tx_id=9),
        record("add", 3, 37),
        record("update", 1, 34),
        record("add", 4, 35),
        record("update", 4, 35, b"y"),
        # As a compaction copied them.
        record("add", 1, 45, b"again"),
        record("update", 1, 32, to(7)),
        record("update", 1, 32, to(6)),
    ):
        recovery.take(one)

    assert journal.records == [
        ("add", 1, 45, b"x"),
        ("update", 1, 32, to(7)),
        ("add", 2, 30, b"x"),
        ("update", 2, 32, to(8)),
        ("add", 4, 35, b"x"),
        ("update", 4, 35, b"y"),
        ("update", 1, 32, to(6)),
    ]
    report = recovery.report
    assert (report.messages, report.references, report.page_transactions) == (2, 3, 1)
    assert (report.repeated, report.lost, told) == (2, 0, [])


def test_what_cannot_be_written_is_told_and_the_rest_goes_on(recovery, journal, told):
    recovery.take(record("update", 5, 32, to(7)))
    recovery.take(record("update", 5, 32, b"short"))
    recovery.take(record("add", 6, 45))

    assert len(journal.records) == 1
    assert (recovery.report.lost, len(told)) == (2, 2)


def test_a_disk_that_fails_ends_it(recovery):
    with pytest.raises(JournalIOError):
        recovery.take(record("update", 666, 32, to(7)))


def test_bodies_of_a_history_go_where_they_are_wanted_or_are_told_once(journal, told):
    pieces = []
    recovery = MessageRecovery(
        journal, journal.ids.__contains__, told.append, lambda *piece: pieces.append(piece)
    )
    recovery.take(record("event", 5, 49, b"one"))
    recovery.take(record("event", 5, 49, b"two"))
    recovery.close()
    assert pieces == [(5, b"one"), (5, b"two")]

    nowhere = MessageRecovery(journal, journal.ids.__contains__, told.append)
    nowhere.take(record("event", 5, 49, b"one"))
    nowhere.take(record("event", 5, 49, b"two"))
    nowhere.close()
    assert len(told) == 1
