"""Messages and their references out of everything that a journal still has, into another one.

As Artemis's `data recover` (RecoverMessages): adds, updates and what transactions held, ended
or not, count; deletes and acknowledgements do not. So acknowledged and rolled back messages come
back, as far as their bytes are there. Of two adds of the same id the first counts.
"""

from __future__ import annotations

import errno
import sqlite3
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.model.wire import RecordType
from journal.errors import JournalError, JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from journal.api import RecordStore
    from journal.data_print import FileRecord

__all__ = ["MessageRecovery", "RecoveryReport"]

_LONG: Final = struct.Struct(">q")

_ADDS: Final = ("add", "add_tx", "event")
_UPDATES: Final = ("update", "update_tx")
_WANTED: Final = (
    RecordType.ADD_LARGE_MESSAGE,
    RecordType.ADD_MESSAGE,
    RecordType.ADD_MESSAGE_PROTOCOL,
    RecordType.ADD_REF,
    RecordType.PAGE_TRANSACTION,
)
_MESSAGES: Final = _WANTED[:3]


@dataclass(slots=True)
class RecoveryReport:
    """What was found.

    Attributes:
        messages: written.
        references: written.
        page_transactions: records of messages in pages, written.
        repeated: records that were there before under the same id, left out.
        bodies: pieces of large messages in a history, written.
        lost: what could not be written.
    """

    messages: int = 0
    references: int = 0
    page_transactions: int = 0
    repeated: int = 0
    bodies: int = 0
    lost: int = 0


class MessageRecovery:
    """One run over the records of a journal, in file order. Threads: one.

    Args:
        store: the new journal, loaded and empty.
        has_record: whether it has a record.
        on_loss: called with a line for people for each record that cannot be written.
        write_body: takes message id and bytes of each piece of a large message that a history has;
            None without storage for them.
    """

    def __init__(
        self,
        store: RecordStore,
        has_record: Callable[[int], bool],
        on_loss: Callable[[str], object],
        write_body: Callable[[int, bytes], object] | None = None,
    ) -> None:
        self._store = store
        self._has_record = has_record
        self._on_loss = on_loss
        self._write_body = write_body
        # Which references were written, on disk: there may be as many as messages.
        self._references = sqlite3.connect("", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode=OFF",
            "PRAGMA synchronous=OFF",
            "CREATE TABLE reference (id INT, queue INT, PRIMARY KEY (id, queue)) WITHOUT ROWID",
            "BEGIN",
        ):
            self._references.execute(statement)
        self._has_told_of_bodies = False
        self.report = RecoveryReport()

    def take(self, record: FileRecord) -> None:
        """Take the next record; those of other kinds are passed over.

        Raises:
            JournalIOError: the new journal's disk fails.
        """
        kind = record.kind
        if kind not in _ADDS and kind not in _UPDATES:
            return
        if record.record_id is None or record.user_type is None or record.body is None:
            return
        record_id, user_type, body = record.record_id, record.user_type, bytes(record.body)
        if user_type == RecordType.ADD_MESSAGE_BODY:
            self._take_body(record_id, body)
        elif user_type in _WANTED:
            is_update = kind in _UPDATES or user_type == RecordType.ADD_REF
            try:
                if is_update:
                    self._update(record_id, user_type, body)
                else:
                    self._add(record_id, user_type, body)
            except JournalIOError:
                raise
            except (JournalError, struct.error) as error:
                self._lose(f"record {record_id} of type {user_type}: {error}")

    def _add(self, record_id: int, user_type: int, body: bytes) -> None:
        if self._has_record(record_id):
            self.report.repeated += 1
            return
        self._store.add(record_id, user_type, body, sync=False)
        if user_type in _MESSAGES:
            self.report.messages += 1
        else:
            self.report.page_transactions += 1

    def _update(self, record_id: int, user_type: int, body: bytes) -> None:
        if user_type == RecordType.ADD_REF:
            if not self._is_new_reference(record_id, _LONG.unpack_from(body)[0]):
                self.report.repeated += 1
                return
            self._store.update(record_id, user_type, body, sync=False)
            self.report.references += 1
        else:
            self._store.update(record_id, user_type, body, sync=False)

    def _is_new_reference(self, record_id: int, queue_id: int) -> bool:
        statement = "INSERT OR IGNORE INTO reference VALUES (?, ?)"
        try:
            return self._references.execute(statement, (record_id, queue_id)).rowcount == 1
        except sqlite3.Error as error:
            raise JournalIOError(errno.EIO, f"temporary database: {error}") from error

    def _take_body(self, record_id: int, body: bytes) -> None:
        if self._write_body is not None:
            self._write_body(record_id, body)
            self.report.bodies += 1
        elif not self._has_told_of_bodies:
            self._has_told_of_bodies = True
            self._lose("the bodies of large messages in this history have no place to go")

    def _lose(self, what: str) -> None:
        self.report.lost += 1
        self._on_loss(what)

    def close(self) -> None:
        """Remove what was noted; the new journal is the caller's."""
        self._references.close()
