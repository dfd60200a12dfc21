"""The live messages of a journal in the order of ids, in bounded memory.

A load gives records in the order of the log: a message first, much later what became of it. To say
of each message which queues still have it, its bytes wait in a temporary database on disk (SQLite;
TMPDIR says where). Memory: that database's page cache, and the ids of transactions in pages.

What belongs to a transaction that is only prepared is not here: it may still be rolled back.
"""

from __future__ import annotations

import errno
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from broker.model.encoding import RecordFormatError
from broker.model.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.data_print import LiveRecord

__all__ = ["LiveMessage", "LiveMessages"]

_LONG: Final = struct.Struct(">q")
_POSITION: Final = struct.Struct(">qqi")  # Queue id, page, number of the message.

_MESSAGES: Final = (
    RecordType.ADD_MESSAGE,
    RecordType.ADD_MESSAGE_PROTOCOL,
    RecordType.ADD_LARGE_MESSAGE,
)
_ABOUT_PAGES: Final = (
    RecordType.PAGE_TRANSACTION,
    RecordType.ACKNOWLEDGE_CURSOR,
    RecordType.PAGE_CURSOR_COMPLETE,
)
# One file that goes with the process: nothing in it outlives a crash, so nothing is synced.
_SETTINGS: Final = ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF")
_TABLES: Final = (
    "CREATE TABLE message (id INTEGER PRIMARY KEY, type INT, body BLOB)",
    "CREATE TABLE reference (id INT, queue INT, PRIMARY KEY (id, queue)) WITHOUT ROWID",
    "CREATE TABLE acknowledgement (id INT, queue INT, PRIMARY KEY (id, queue)) WITHOUT ROWID",
    """CREATE TABLE page_acknowledgement
    (page INT, queue INT, number INT, PRIMARY KEY (page, queue, number)) WITHOUT ROWID""",
    "CREATE TABLE page_complete (page INT, queue INT, PRIMARY KEY (page, queue)) WITHOUT ROWID",
)
_ADD_MESSAGE: Final = "INSERT OR REPLACE INTO message VALUES (?, ?, ?)"
_ADD_REFERENCE: Final = "INSERT OR IGNORE INTO reference VALUES (?, ?)"
_ADD_ACKNOWLEDGEMENT: Final = "INSERT OR IGNORE INTO acknowledgement VALUES (?, ?)"
_ADD_PAGE_ACKNOWLEDGEMENT: Final = "INSERT OR IGNORE INTO page_acknowledgement VALUES (?, ?, ?)"
_ADD_PAGE_COMPLETE: Final = "INSERT OR IGNORE INTO page_complete VALUES (?, ?)"
_LIVE: Final = """
    SELECT * FROM (
        SELECT id, type, body, (
            SELECT group_concat(queue) FROM reference WHERE reference.id = message.id
            AND NOT EXISTS (
                SELECT 1 FROM acknowledgement
                WHERE acknowledgement.id = message.id AND acknowledgement.queue = reference.queue
            )
        ) AS queues FROM message
    ) WHERE queues IS NOT NULL ORDER BY id
"""


class LiveMessage(NamedTuple):
    """A message that some queue has.

    Attributes:
        message_id: the record's.
        user_type: how `body` is laid out: records 45 and 30, and 31, which is obsolete.
        body: of the record.
        queue_ids: those that have it.
    """

    message_id: int
    user_type: int
    body: bytes
    queue_ids: tuple[int, ...]


class LiveMessages:
    """See the module's text. Threads: one.

    Attributes:
        page_transactions: ids of the transactions whose messages in pages count.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self.page_transactions: set[int] = set()
        for statement in (*_SETTINGS, *_TABLES):
            self._database.execute(statement)

    def take(self, records: Iterable[LiveRecord], *, only_pages: bool = False) -> None:
        """Take the records of a load; those of other kinds are passed over.

        Args:
            records: of the message journal.
            only_pages: those about pages alone.

        Raises:
            RecordFormatError: a record is shorter than its type says; it names the record.
            OSError: there is no room for the temporary database.
        """
        self._database.execute("BEGIN")
        for record in records:
            if only_pages and record.user_type not in _ABOUT_PAGES:
                continue
            try:
                self._take(record)
            except struct.error as error:
                raise RecordFormatError(
                    f"message record {record.record_id} of type {record.user_type}: {error}"
                ) from error
            except sqlite3.Error as error:
                raise OSError(errno.EIO, f"temporary database: {error}") from error
        self._database.execute("COMMIT")

    def _take(self, record: LiveRecord) -> None:
        execute = self._database.execute
        kind, record_id = record.user_type, record.record_id
        if kind == RecordType.ADD_REF:
            execute(_ADD_REFERENCE, (record_id, _LONG.unpack_from(record.body)[0]))
        elif kind in _MESSAGES:
            execute(_ADD_MESSAGE, (record_id, kind, record.body))
        elif kind == RecordType.ACKNOWLEDGE_REF:
            execute(_ADD_ACKNOWLEDGEMENT, (record_id, _LONG.unpack_from(record.body)[0]))
        elif kind == RecordType.ACKNOWLEDGE_CURSOR:
            queue_id, page, number = _POSITION.unpack_from(record.body)
            execute(_ADD_PAGE_ACKNOWLEDGEMENT, (page, queue_id, number))
        elif kind == RecordType.PAGE_CURSOR_COMPLETE:
            queue_id, page, _ = _POSITION.unpack_from(record.body)
            execute(_ADD_PAGE_COMPLETE, (page, queue_id))
        elif kind == RecordType.PAGE_TRANSACTION:
            # Add and update both begin with the transaction's id; either says that it counts.
            self.page_transactions.add(_LONG.unpack_from(record.body)[0])

    def messages(self) -> Iterator[LiveMessage]:
        """Give all messages that some queue has, by id."""
        with closing(self._database.execute(_LIVE)) as rows:
            for message_id, user_type, body, queues in rows:
                queue_ids = tuple(map(int, queues.split(",")))
                yield LiveMessage(message_id, user_type, body, queue_ids)

    def page_acknowledgements(self, page: int) -> set[tuple[int, int]]:
        """Give queue id and number of what queues acknowledged in pages of this number.

        Page numbers are those of an address; queue ids tell addresses apart.
        """
        query = "SELECT queue, number FROM page_acknowledgement WHERE page = ?"
        return set(self._database.execute(query, (page,)))

    def complete_queues(self, page: int) -> set[int]:
        """Give the ids of the queues that are done with a page of this number."""
        query = "SELECT queue FROM page_complete WHERE page = ?"
        return {queue for (queue,) in self._database.execute(query, (page,))}

    def close(self) -> None:
        """Remove the temporary database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
