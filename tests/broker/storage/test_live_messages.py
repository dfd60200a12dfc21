"""Which messages are left of a journal, and in which queues."""

import struct

import pytest

from broker.model.encoding import RecordFormatError
from broker.printing.live_messages import LiveMessages
from tests.broker.storage.scenarios import Live


def message(message_id, kind=45):
    return Live(message_id, kind, b"%d" % message_id)


def reference(message_id, queue_id, kind=32):
    return Live(message_id, kind, struct.pack(">q", queue_id), is_update=True)


@pytest.fixture
def found():
    with LiveMessages() as messages:
        yield messages


def test_messages_come_by_id_with_the_queues_that_still_have_them(found):
    found.take(
        [
            message(9),
            message(3, kind=30),
            *(reference(9, 1), reference(9, 2), reference(3, 2)),
            message(5),
            *(reference(5, 1), reference(5, 1, kind=33)),
            reference(9, 1, kind=33),
            message(7),
            Live(-4, 45, b"-4"),
            reference(-4, 2**62),
        ]
    )

    assert list(found.messages()) == [
        (-4, 45, b"-4", (2**62,)),
        (3, 30, b"3", (2,)),
        (9, 45, b"9", (2,)),
    ]


def test_what_is_said_of_pages_is_kept_by_page(found):
    records = [
        Live(1, 39, struct.pack(">qqi", 7, 2, 5)),
        Live(2, 39, struct.pack(">qqi", 8, 2, 0)),
        Live(3, 42, struct.pack(">qqi", 7, 3, 10)),
        Live(4, 35, struct.pack(">qi", 100, 2)),
        Live(4, 35, struct.pack(">qi", 100, 1), is_update=True),
        message(1),
        reference(1, 1),
    ]

    found.take(records, only_pages=True)

    assert found.page_acknowledgements(2) == {(7, 5), (8, 0)}
    assert found.page_acknowledgements(3) == set()
    assert (found.complete_queues(3), found.complete_queues(2)) == ({7}, set())
    assert found.page_transactions == {100}
    assert list(found.messages()) == []


def test_a_record_that_is_too_short_is_named(found):
    with pytest.raises(RecordFormatError, match="message record 4 of type 32"):
        found.take([Live(4, 32, b"abc")])
