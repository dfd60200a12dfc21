"""Tells the history what a transaction had put into pages before a restart, when it commits.

    commit ─▶ page after page ─▶ (thread) its messages ─▶ events ─▶ COMMIT

A transaction of this run has its messages at hand (PagedPart.notes); of one that a start found
prepared only its pages have them. They are read before its commit is appended, which makes events
and commit durable in that order. A crash between the two leaves it prepared, and its manager
decides again. Committed, there are events of a message twice, which readers of a history take for
one; rolled back, they are of a transaction that never counted, which the events say.

Memory: one page and its messages.

Threads: the event loop's alone, but for `_records_of`, which works on bytes of its own.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.model.encoding import RecordFormatError
from broker.records.page_records import entries
from broker.records.persisters import UnsupportedMessage
from journal.errors import RecordTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker.paging.page import Page
    from broker.paging.transactions import PageTransaction
    from broker.queues.queue import Queue
    from broker.storage.history import MessageHistory

__all__ = ["RecoveredTransactionHistory"]

log = logging.getLogger("broker")


class _Record(NamedTuple):
    """A durable message of a page.

    Attributes:
        message_id: of it.
        is_large: it is the record of a large Core message.
        body: as a record of the journal would have it.
        queue_ids: of the queues that got it.
    """

    message_id: int
    is_large: bool
    body: bytes
    queue_ids: Sequence[int]


class _Read(Protocol):
    def __call__(
        self,
        work: Callable[[], list[_Record]],
        page: Page,
        done: Callable[[list[_Record] | None], object],
    ) -> None: ...


class RecoveredTransactionHistory:
    """See the module's text.

    Args:
        pages: all there are.
        read: reads something of a page beside the event loop: the work, the page, and what gets
            the result, or None where the page has gone meanwhile.
        queues: all there are, by id.
        history: gets to know of the messages.
        sent: of the transaction, prepared in an earlier run.
        then: called once the history has all of them; not at all where a page cannot be read, which
            ends the storage.
    """

    def __init__(
        self,
        pages: Iterable[Page],
        read: _Read,
        queues: Mapping[int, Queue],
        history: MessageHistory,
        sent: PageTransaction,
        then: Callable[[], object],
    ) -> None:
        self._read_page = read
        self._queues = queues
        self._history = history
        self._tx_id = sent.tx_id
        self._then = then
        # Pages that are not counted yet may have some, too.
        self._pages = deque(page for page in pages if page in sent.pages or page.remaining is None)

    def go_on(self) -> None:
        """Read the next page."""
        while self._pages:
            page = self._pages.popleft()
            if not page.is_gone:
                self._read(page)
                return
        self._then()

    def _read(self, page: Page) -> None:
        folder, number, size, tx_id = page.folder, page.number, page.written_size, self._tx_id
        self._read_page(lambda: _records_of(folder.read(number, 0, size), tx_id), page, self._note)

    def _note(self, records: list[_Record] | None) -> None:
        """Tell of what was read; None: the page has gone meanwhile, with its queues."""
        queues = self._queues
        for record in records or ():
            durable = [
                queue_id
                for queue_id in record.queue_ids
                if queue_id in queues and queues[queue_id].is_durable
            ]
            if not durable:
                continue
            try:
                self._history.note_record(
                    record.message_id,
                    record.body,
                    durable,
                    is_large=record.is_large,
                    tx_id=self._tx_id,
                )
            except RecordTooLarge as error:
                # Files of the journal are smaller than they were. The commit has to go on.
                log.error("message %d is not in the history: %s", record.message_id, error)
        self.go_on()


def _records_of(data: bytes, tx_id: int) -> list[_Record]:
    """Give the durable messages of a transaction.

    Those that cannot be read here stay in their page; the reader that reaches them says so.
    """
    found = []
    for entry in entries(data, 0, 0):
        if entry.tx_id != tx_id:
            continue
        try:
            is_durable = entry.message(data).durable
        except (RecordFormatError, UnsupportedMessage):
            continue
        if is_durable:
            body = data[entry.message_at : entry.message_at + entry.message_size]
            message_id = entry.message_id(data)
            found.append(_Record(message_id, entry.is_large_core, body, entry.queue_ids))
    return found
