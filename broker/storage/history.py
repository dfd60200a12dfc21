"""What the history of the message journal has: every message sent, in the order they counted.

    copy_now() ─▶ is_copied() … ─▶ messages(first, last)

A message in transaction counts at its commit; what was rolled back, or is not decided yet, was
never sent. The history's files are those that were copied: a journal copies a file once it is full,
and copy_now() the one that is being written.

What went into a page, and the body of a large message, is not a record of the journal. It is noted
there as events, which no load sees and only the history is for. What a transaction put into pages
is noted while it commits, and a crash may come between the two. So the events of each message begin
with one that names its transaction:

    35  transaction, 1     where it is in transaction: it counts with that one's commit
    45 or 30               the message
    32  queue              for each that has it

Artemis reads the message alone, and sends it again whether that commit came or not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import broker.model.packed as packed
from broker.model.wire import RecordType
from broker.records.message_records import PageTransaction
from broker.records.records import encode_record
from journal.folder import JournalName
from journal.reader import read_file
from journal.retention import list_history

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from broker.model.message import Message
    from journal import Journal
    from journal.api import Done
    from journal.reader import RawRecord
    from journal.retention import HistoryFile

__all__ = ["HistoryMessage", "MessageHistory"]

log = logging.getLogger("broker")

_LARGE_MESSAGE: Final = int(RecordType.ADD_LARGE_MESSAGE)
_MESSAGE: Final = int(RecordType.ADD_MESSAGE_PROTOCOL)
_MESSAGES: Final = (_LARGE_MESSAGE, _MESSAGE)
_REFERENCE: Final = int(RecordType.ADD_REF)
_TRANSACTION: Final = int(RecordType.PAGE_TRANSACTION)
_BODY: Final = int(RecordType.ADD_MESSAGE_BODY)
_SENT: Final = ("add", "add_tx", "event")
# Of one event, as Artemis has them (LargeServerMessageImpl).
BODY_PART_SIZE: Final = 10 * 1024


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One that was sent.

    Attributes:
        message_id: that it had.
        user_type: of its record: 45, or 30 of a large one.
        body: of its record.
    """

    message_id: int
    user_type: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Undecided:
    """What is read of a history before it is known what becomes of it.

    Attributes:
        messages: by transaction.
        noted: transactions of messages whose event is to come.
    """

    messages: dict[int, list[HistoryMessage]] = field(default_factory=dict)
    noted: dict[int, int] = field(default_factory=dict)


class MessageHistory:
    """The history of an open message journal (journal-retention-directory). Threads: one.

    Args:
        journal: open and loaded; it keeps a history.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        options = journal.options
        self._name = JournalName(options.prefix, options.extension)

    def note_message(
        self,
        message: Message,
        queue_ids: Sequence[int],
        *,
        tx_id: int | None = None,
        done: Done | None = None,
    ) -> None:
        """Note a message that went into a page.

        Args:
            message: with its id.
            queue_ids: of the queues that have it there; at least one.
            tx_id: of the transaction whose commit it counts with; None: it counts.
            done: called once the history is sure to get it; None: with what is appended next.

        Raises:
            RecordTooLarge: it does not fit one file.
            JournalError: the journal has failed.
        """
        is_large = message.is_large and message.is_large_core
        body = message.encode_headers() if is_large else message.record()
        self.note_record(
            message.message_id, body, queue_ids, is_large=bool(is_large), tx_id=tx_id, done=done
        )

    def note_record(
        self,
        message_id: int,
        body: bytes,
        queue_ids: Sequence[int],
        *,
        is_large: bool,
        tx_id: int | None = None,
        done: Done | None = None,
    ) -> None:
        """The same by the bytes of its record.

        Args:
            message_id: of it.
            body: of record 45, or 30 of a large one.
            queue_ids: of the queues that have it there; at least one.
            is_large: it is the record of a large Core message.
            tx_id: as for note_message().
            done: as for note_message().

        Raises:
            RecordTooLarge: it does not fit one file.
            JournalError: the journal has failed.
        """
        kind = _LARGE_MESSAGE if is_large else _MESSAGE
        if tx_id is not None:
            told = encode_record(PageTransaction(tx_id, 1))
            self._journal.event(message_id, _TRANSACTION, told, sync=False, wait=False)
        self._journal.event(message_id, kind, body, sync=False, wait=False)
        for queue_id in queue_ids[:-1]:
            self._note_reference(message_id, queue_id)
        self._note_reference(message_id, queue_ids[-1], done)

    def _note_reference(self, message_id: int, queue_id: int, done: Done | None = None) -> None:
        self._journal.event(
            message_id,
            _REFERENCE,
            packed.of_long(queue_id),
            sync=done is not None,
            done=done,
            wait=False,
        )

    def note_body(self, message_id: int, chunk: bytes) -> None:
        """Note the next bytes of a large message's body; durable with what is appended next.

        Raises:
            JournalError: the journal has failed.
        """
        for start in range(0, len(chunk), BODY_PART_SIZE):
            part = chunk[start : start + BODY_PART_SIZE]
            self._journal.event(message_id, _BODY, part, sync=False, wait=False)

    def copy_now(self) -> None:
        """Have what was appended so far copied.

        Raises:
            JournalError: there is no room for another file, or the journal has failed.
        """
        self._journal.copy_to_history()

    def is_copied(self) -> bool:
        """Whether it is.

        Raises:
            JournalError: the history has no room, or the journal has failed.
        """
        return self._journal.all_are_copied()

    def messages(
        self, first: datetime | None = None, last: datetime | None = None
    ) -> Iterator[HistoryMessage | None]:
        """Give the messages in files copied from `first` to `last`, local time; None for a pause.

        Each message once, wherever it stands. One in transaction whose commit was copied later
        is among them. A pause comes with each file: reading one takes a while.

        Raises:
            JournalError: a file of the history cannot be read.
        """
        directory = self._journal.options.retention_directory
        assert directory is not None, "the journal keeps a history"
        copies = list_history(directory, self._name)
        # By their ids: copies made in one second would be in no order.
        copies.sort(key=lambda copy: copy.file_id)
        given: set[int] = set()
        undecided = _Undecided()
        early = [first is not None and copy.time < first for copy in copies]
        for number, copy in enumerate(copies):
            is_early = early[number]
            if is_early and all(early[number + 1 : number + 2]):
                # Of the last one before those that are asked for an event may be of what follows.
                continue
            is_late = last is not None and copy.time > last
            if is_late and not undecided.messages:
                # Nothing there can count any more.
                continue
            yield None
            for message in self._messages_of(copy, undecided, is_asked=not (is_early or is_late)):
                if message.message_id not in given:
                    given.add(message.message_id)
                    yield message

    def _messages_of(
        self, copy: HistoryFile, undecided: _Undecided, *, is_asked: bool
    ) -> Iterator[HistoryMessage]:
        """Those of one file that begin to count in it.

        Args:
            copy: the file.
            undecided: changed.
            is_asked: otherwise only what transactions have, and their ends, matter.
        """
        view = read_file(copy.path, is_newest=False)
        for record in view:
            if record.checksum == "bad" or record.verdict != "live":
                continue
            if record.kind == "commit":
                yield from undecided.messages.pop(_tx_of(record), ())
            elif record.kind == "rollback":
                undecided.messages.pop(_tx_of(record), None)
            elif record.kind in _SENT and record.user_type in _MESSAGES:
                assert record.record_id is not None
                assert record.user_type is not None
                tx_id = record.tx_id
                if record.kind == "event":
                    tx_id = undecided.noted.pop(record.record_id, None)
                if not is_asked:
                    continue
                message = HistoryMessage(record.record_id, record.user_type, record.body or b"")
                if tx_id is None:
                    yield message
                else:
                    undecided.messages.setdefault(tx_id, []).append(message)
            elif record.kind == "event" and record.user_type == _TRANSACTION:
                assert record.record_id is not None
                assert record.body is not None
                undecided.noted[record.record_id] = int.from_bytes(record.body[:8])
        for damage in view.damages:
            log.warning("damage in the history: %s", damage)

    def body_parts(self, message_id: int) -> Iterator[bytes | None]:
        """Give the parts of a large message's body that the history has; None for a pause.

        Raises:
            JournalError: a file of the history cannot be read.
        """
        directory = self._journal.options.retention_directory
        assert directory is not None, "the journal keeps a history"
        for copy in sorted(list_history(directory, self._name), key=lambda one: one.file_id):
            yield None
            for record in read_file(copy.path, is_newest=False):
                is_part = record.kind == "event" and record.user_type == _BODY
                if is_part and record.record_id == message_id and record.body is not None:
                    yield record.body


def _tx_of(record: RawRecord) -> int:
    assert record.tx_id is not None, "every record in transaction has its id"
    return record.tx_id
