"""What the files of a message journal, and the copies in its history, say of one message.

A file is read only if it has the bytes of the message's id, so that very many are looked through
quickly. A broker that runs appends to the newest file meanwhile: its end counts as far as it is
there.

Threads: any; it reads files alone, and may take a second a gigabyte.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from errno import ENOENT
from typing import TYPE_CHECKING, Final

from broker.model.wire import RecordType
from broker.records.message_records import DuplicateId
from broker.records.records import RecordFormatError, decode_record
from journal.errors import JournalIOError
from journal.folder import JournalName, list_files
from journal.reader import FileView, read_bytes
from journal.retention import list_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from journal.options import JournalOptions
    from journal.reader import RawRecord

__all__ = [
    "TracedRecord",
    "messages_of_transaction",
    "records_of_bridge_id",
    "records_of_message",
]

_ID: Final = struct.Struct(">q")
_DUPLICATE_ID: Final = int(RecordType.DUPLICATE_ID)
_MESSAGES: Final = (
    int(RecordType.ADD_MESSAGE_PROTOCOL),
    int(RecordType.ADD_LARGE_MESSAGE),
    int(RecordType.ADD_MESSAGE),
)
_ENDS: Final = ("commit", "rollback", "prepare")


@dataclass(frozen=True, slots=True)
class TracedRecord:
    """A record that says something of a message.

    Attributes:
        kind: `add`, `update`, `delete`, `event`, with `_tx` where it is part of a transaction.
        record_id: the message's, or its own.
        user_type: of the record; None of a delete.
        body: of the record.
        tx_id: of the transaction; None where it counts alone.
        outcome: `commit`, `rollback`, `prepare`: the last that became of the transaction; None:
            nothing is recorded, or it counts alone.
        place: id of the file, offset in it: the order of records.
        copied: local time at which the file was copied to the history; None: it is the journal's.
    """

    kind: str
    record_id: int
    user_type: int | None
    body: bytes
    tx_id: int | None
    outcome: str | None
    place: tuple[int, int]
    copied: datetime | None

    @property
    def counts(self) -> bool:
        """Whether it has taken effect."""
        return self.tx_id is None or self.outcome == "commit"


def records_of_message(options: JournalOptions, message_id: int) -> list[TracedRecord]:
    """Give the records of a message, in their order; each once, however often it is stored.

    Args:
        options: of the message journal.
        message_id: that they have.

    Raises:
        JournalIOError: a folder or a file cannot be read.
    """

    def is_wanted(record: RawRecord) -> bool:
        return record.record_id == message_id

    return _traced(options, _ID.pack(message_id), is_wanted)


def records_of_bridge_id(options: JournalOptions, bridge_id: bytes) -> list[TracedRecord]:
    """Give the records that a bridge's duplicate id was recorded by.

    Args:
        options: of the message journal.
        bridge_id: 16 bytes of the node that it came from, 8 of the message there.

    Raises:
        JournalIOError: a folder or a file cannot be read.
    """

    def is_wanted(record: RawRecord) -> bool:
        body = record.body
        if record.user_type != _DUPLICATE_ID or body is None or bridge_id not in body:
            return False
        try:
            found = decode_record(_DUPLICATE_ID, body, is_update=False)
        except RecordFormatError:
            # Damaged, which is not what is asked here: it names no id.
            return False
        return isinstance(found, DuplicateId) and found.duplicate_id == bridge_id

    return _traced(options, bridge_id, is_wanted)


def messages_of_transaction(options: JournalOptions, tx_id: int) -> list[TracedRecord]:
    """Give the add records of a transaction: the messages that were sent in it.

    Raises:
        JournalIOError: a folder or a file cannot be read.
    """

    def is_wanted(record: RawRecord) -> bool:
        return record.tx_id == tx_id and record.kind == "add_tx" and record.user_type in _MESSAGES

    return _traced(options, _ID.pack(tx_id), is_wanted)


def _traced(
    options: JournalOptions, pattern: bytes, is_wanted: Callable[[RawRecord], bool]
) -> list[TracedRecord]:
    found = [
        (record, file_id, copied)
        for file_id, copied, view in _views(options, pattern)
        for record in view
        if record.verdict == "live" and record.checksum != "bad" and is_wanted(record)
    ]
    ends: dict[int, str] = {}
    for tx_id in {record.tx_id for record, _, _ in found if record.tx_id is not None}:
        for _, _, view in _views(options, _ID.pack(tx_id)):
            for record in view:
                # What a journal says last of a transaction is what became of it.
                if record.tx_id == tx_id and record.kind in _ENDS:
                    is_worse = record.kind == "prepare" and tx_id in ends
                    if not is_worse:
                        ends[tx_id] = record.kind
    made: dict[tuple[object, ...], TracedRecord] = {}
    for record, file_id, copied in found:
        assert record.record_id is not None, "it is asked for by its id"
        one = TracedRecord(
            record.kind,
            record.record_id,
            record.user_type,
            record.body or b"",
            record.tx_id,
            None if record.tx_id is None else ends.get(record.tx_id),
            (file_id, record.offset),
            copied,
        )
        # In the journal and its history, or written again by a compaction: the first one counts.
        # What was rolled back is not what counts later, though it has the same bytes.
        undone = one.tx_id if one.outcome == "rollback" else None
        key = (one.kind.removesuffix("_tx"), one.record_id, one.user_type, one.body, undone)
        known = made.get(key)
        if known is None or one.place < known.place:
            made[key] = one
    return sorted(made.values(), key=lambda one: one.place)


def _views(
    options: JournalOptions, pattern: bytes
) -> Iterator[tuple[int, datetime | None, FileView]]:
    """Give the files that have these bytes, of the history first."""
    name = JournalName(options.prefix, options.extension)
    search = re.compile(re.escape(pattern), re.DOTALL).search
    if options.retention_directory is not None:
        for copy in list_history(options.retention_directory, name):
            data = read_bytes(copy.path)
            if search(data):
                yield copy.file_id, copy.time, FileView(copy.name, data, is_newest=False)
    for file in list_files(options.directory, name):
        if file.is_short:
            continue
        try:
            data = read_bytes(file.path)
        except JournalIOError as error:
            if error.errno != ENOENT:
                raise
            # It was deleted, or compacted, meanwhile.
            continue
        if search(data):
            view = FileView(file.name, data, is_newest=True)
            yield view.file_id, None, view
