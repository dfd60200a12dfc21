"""What the history tells of messages in pages counts with the transaction that they are of."""

import struct
import time
from datetime import datetime, timedelta

import pytest

from broker.model.message import Message
from broker.model.wire import RecordType
from broker.storage.history import MessageHistory
from journal import Journal
from journal.folder import JournalName
from journal.retention import history_name, list_history
from tests.broker.management.test_replay import with_history

MESSAGE_ID, QUEUE_ID = 7, 3


@pytest.fixture
def journal(tmp_path):
    with Journal(with_history(tmp_path).messages) as opened:
        opened.load()
        yield opened


def message():
    return Message("q", b"body", durable=True, message_id=MESSAGE_ID)


def copied(journal, history):
    """Have all that was appended so far in the history's files; these."""
    history.copy_now()
    give_up = time.monotonic() + 60
    while not history.is_copied():
        assert time.monotonic() < give_up, "the copy does not end"
        time.sleep(0.01)
    return list_history(journal.options.retention_directory, JournalName())


def ids(history, *times):
    return [one.message_id for one in history.messages(*times) if one is not None]


def end(journal, how, tx_id):
    if how == "unheard of":
        return
    journal.add(100, RecordType.PAGE_TRANSACTION, struct.pack(">qi", tx_id, 1), tx=tx_id)
    getattr(journal, how)(tx_id)


ENDS = {"commit": [MESSAGE_ID], "rollback": [], "unheard of": []}


@pytest.mark.parametrize("how", ENDS)
def test_it_counts_with_its_commit(journal, how):
    history = MessageHistory(journal)
    history.note_message(message(), [QUEUE_ID], tx_id=50)
    end(journal, how, 50)
    copied(journal, history)

    assert ids(history) == ENDS[how]


@pytest.mark.parametrize("how", ENDS)
def test_its_transaction_may_stand_in_a_file_that_is_not_asked_for(journal, how):
    history = MessageHistory(journal)
    journal.event(MESSAGE_ID, RecordType.PAGE_TRANSACTION, struct.pack(">qi", 50, 1))
    (early,) = copied(journal, history)
    hour_before = early.time - timedelta(hours=1)
    early.path.rename(early.path.with_name(history_name(JournalName(), hour_before, early.file_id)))
    journal.event(MESSAGE_ID, RecordType.ADD_MESSAGE_PROTOCOL, message().record())
    end(journal, how, 50)
    copied(journal, history)

    assert ids(history, hour_before + timedelta(minutes=1)) == ENDS[how]
    assert ids(history, None, hour_before) == []


def test_without_a_transaction_it_counts_as_artemis_writes_it(journal):
    history = MessageHistory(journal)
    journal.event(MESSAGE_ID, RecordType.ADD_MESSAGE_PROTOCOL, message().record())
    journal.event(MESSAGE_ID, RecordType.ADD_REF, struct.pack(">q", QUEUE_ID))
    copied(journal, history)

    assert ids(history) == [MESSAGE_ID]
    assert ids(history, datetime.now() + timedelta(hours=1)) == []  # noqa: DTZ005 - the format
