"""The pages of an address as one queue sees them: what it has read, holds and has acknowledged.

    page ─▶ cursor ─▶ window ─▶ queue.waiting ─▶ … ─▶ record 39 ─▶ release()
                                                              └ last one of a page: record 42

The window bounds what the queue holds in memory of its pages: max-read-page-bytes and -messages of
all that is not acknowledged, prefetch-page-bytes and -messages of what waits. It is filled while
a consumer takes from the queue.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.model.encoding import RecordFormatError
from broker.model.scheduled_time import SCHEDULED, time_ms
from broker.paging.acknowledgements import PageAcknowledgements
from broker.paging.browsing import PageBrowser
from broker.paging.cursor import Cursor, Found, LateRange, PageSource
from broker.paging.reference import PagedReference
from broker.paging.window import Window
from broker.records.persisters import UnsupportedMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.paging.page import Page
    from broker.paging.transactions import PageTransaction, PageTransactions
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.queues.reference import ReferenceTransaction
    from broker.records.page_records import PageEntry
    from broker.storage.page_appends import PageAppends

__all__ = ["PageSubscription"]

log = logging.getLogger("broker")


class SubscribedPages(PageSource, Protocol):
    """The pages that queues see; `broker.paging.store` has them."""

    @property
    def appends(self) -> PageAppends:
        """Where records go."""

    @property
    def memory(self) -> AddressMemory:
        """Of the address."""

    @property
    def transactions(self) -> PageTransactions:
        """Of all addresses."""

    @property
    def is_open(self) -> bool:
        """Its pages may be read: what was sent before is in its queues."""

    @property
    def is_counted(self) -> bool:
        """Whether it is known what all pages hold."""

    def has_undecided(self, queue_id: int) -> bool:
        """Whether open transactions have put messages for a queue into pages."""

    @property
    def end(self) -> tuple[int, int]:
        """Behind all that was appended: page, and number of a message."""

    def acknowledge_in(self, tx: ReferenceTransaction, transaction: PageTransaction) -> None:
        """A transaction acknowledges a durable reference that another one had put into a page."""

    def wait_for_more(self, subscription: PageSubscription) -> None:
        """A queue has read everything: wake it when there is more."""

    def removed(self, page: Page, queue_id: int, count: int = 1) -> None:
        """A queue has so many messages less in a page."""

    def forget_queue(self, queue_id: int) -> None:
        """A queue is gone, and with it what it had in pages."""

    def large_body(self, message_id: int) -> LargeBody | None:
        """Give the body of a large message."""


class PageSubscription:
    """See the module's text.

    Args:
        store: of the queue's address.
        queue: whose it is.

    Attributes:
        unread_count: messages in pages that may be read and are not in memory.
        held_count: of those in memory, not acknowledged.
        held_size: their bytes.
        acknowledgements: what the queue has acknowledged.
    """

    __slots__ = (
        "_appends",
        "_blocking",
        "_cursor",
        "_drop_end",
        "_is_held_back",
        "_memory",
        "acknowledgements",
        "held_count",
        "held_size",
        "is_closed",
        "queue",
        "store",
        "unread_count",
    )

    def __init__(self, store: SubscribedPages, queue: Queue) -> None:
        self.store = store
        self.queue = queue
        self._appends = store.appends
        self._memory = store.memory
        self.unread_count = 0
        self.held_count = 0
        self.held_size = 0
        self.acknowledgements = PageAcknowledgements(queue, store.appends)
        self.is_closed = False
        self._cursor = Cursor(store, queue.queue_id, self.wake)
        self._is_held_back = False
        # Come upon while its transaction was committing.
        self._blocking: Found | None = None
        # Page and number before which everything is dropped.
        self._drop_end: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"PageSubscription({self.queue.name!r}, {self.unread_count} unread)"

    @property
    def cursor(self) -> Cursor:
        """Where the queue reads."""
        return self._cursor

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""
        return self._cursor.is_reading

    @property
    def is_counted(self) -> bool:
        """Whether it is known what all pages hold."""
        return self.store.is_counted

    @property
    def has_undecided(self) -> bool:
        """Whether open transactions have put messages for it into pages."""
        return self.store.has_undecided(self.queue.queue_id)

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read has come; False where nothing is being read."""
        return self._cursor.after_read(callback)

    def browser(self, on_read: Callable[[], object]) -> PageBrowser:
        """Let a browser see what is in pages; `on_read` is called when there may be more."""
        return PageBrowser(self, on_read)

    @property
    def count(self) -> int:
        """Messages that may be read and are not acknowledged."""
        return self.unread_count + self.held_count

    @property
    def wants_to_go_on(self) -> bool:
        """Whether the window was full, and has room now for a queue that has nothing else."""
        if not self._is_held_back or self.queue.waiting.count:
            return False
        return Window(self.queue.settings).has_room(self.held_count, self.held_size, 0)

    # --- messages come ------------------------------------------------------------------------

    def became_visible(self, count: int = 1) -> None:
        """So many messages more may be read."""
        self.unread_count += count
        self.queue.added_count += count

    def wake(self) -> None:
        """There may be something to take."""
        if not self.is_closed:
            self.queue.deliver()

    def replenish(self) -> None:
        """Put into the queue what was read, and read on, as far as the window has room."""
        window, waiting = Window(self.queue.settings), self.queue.waiting
        while window.has_room(self.held_count, self.held_size, waiting.count) or self.is_dropping:
            found = self._next()
            if found is None:
                return
            self._place(found)
        self._is_held_back = True

    def look_ahead(self, count: int) -> None:
        """Put at most `count` into the queue, even without consumers: some may be expired."""
        while self.held_count < count:
            found = self._next()
            if found is None:
                return
            self._place(found)

    def _next(self) -> Found | None:
        """Give the next message at hand, or read on."""
        if not self.store.is_open:
            return None
        blocking = self._blocking
        if blocking is not None:
            if self._is_committing(blocking):
                return None
            self._blocking = None
            # It came to be seen only now, whatever was to be dropped before.
            range_of_it = _range_of(blocking)
            if not self._cursor.has_late:
                blocking.late = range_of_it
                return blocking
            # Others of its transaction lie before it, and were put off when that was still open.
            range_of_it.numbers.add(blocking.entry.number)
            self._cursor.read_again(range_of_it)
        found = self._cursor.next()
        if found is None and not self._cursor.read_on():
            self._drop_end = None
            self.store.wait_for_more(self)
        return found

    def is_visible(self, found: Found) -> bool:
        """Whether the queue has this message, and may see it."""
        entry = found.entry
        if self.queue.queue_id not in entry.queue_ids:
            return False
        page = found.page
        if page.is_closed and not (page.remaining or {}).get(self.queue.queue_id):
            # Done with the page, it has forgotten what it had acknowledged there.
            return False
        if self.acknowledgements.has(page.number, entry.number):
            return False
        if entry.tx_id < 0:
            return True
        transaction = self.store.transactions.get(entry.tx_id)
        return transaction is not None and transaction.is_committed

    def _place(self, found: Found) -> None:
        if not self.is_visible(found):
            self._put_off_if_open(found)
            return
        self.unread_count -= 1
        message = self._decode(found.page, found.entry, found.data)
        if message is None:
            return
        reference = self._hold(message, found.page, found.entry)
        if _has_lost_body(message) or self._is_dropped(found):
            reference.record_gone(None, True)
            reference.release()
        else:
            self.queue.load(reference)

    def _is_dropped(self, found: Found) -> bool:
        """Whether this message could be read when drop_all() was called."""
        if found.late is not None:
            return found.late.is_dropped
        if self._drop_end is None:
            return False
        if (found.page.number, found.entry.number) < self._drop_end:
            return True
        self._drop_end = None
        return False

    def _put_off_if_open(self, found: Found) -> None:
        """A message whose transaction is open is read again when that has committed."""
        if found.entry.tx_id < 0 or self.queue.queue_id not in found.entry.queue_ids:
            return
        transaction = self.store.transactions.get(found.entry.tx_id)
        if transaction is None or transaction.is_committed:
            return
        if transaction.is_committing:
            # A moment; and what the same producer sent behind it must not overtake it.
            self._blocking = found
            return
        key = (self, found.page, found.offset)
        late = transaction.late.get(key)
        if late is None:
            late = transaction.late[key] = _range_of(found)
        late.numbers.add(found.entry.number)

    def _is_committing(self, found: Found) -> bool:
        transaction = self.store.transactions.get(found.entry.tx_id)
        return transaction is not None and not transaction.is_committed

    def read_late(self, late: LateRange) -> None:
        """Its transaction has committed."""
        self._cursor.read_again(late)

    def reference_of(self, page: Page, entry: PageEntry, data: bytes) -> PagedReference | None:
        """Give a reference to a message, which is in memory from now on.

        None where it cannot be read here: it stays in its page.
        """
        message = self.message_of(page, entry, data)
        return None if message is None else self._hold(message, page, entry)

    def _hold(self, message: Message, page: Page, entry: PageEntry) -> PagedReference:
        transaction = self.store.transactions.get(entry.tx_id) if entry.tx_id >= 0 else None
        time = message.get(SCHEDULED) if message.has_own_properties else None
        reference = PagedReference.__new__(PagedReference)
        reference.fill(
            message, self, page, entry.number, transaction, 0 if time is None else time_ms(time)
        )
        self.held_count += 1
        self.held_size += reference.size
        self._memory.hold(reference.size)
        return reference

    def message_of(self, page: Page, entry: PageEntry, data: bytes) -> Message | None:
        """Give the message of a record; None where it cannot be read here, or lost its body."""
        message = self._decode(page, entry, data)
        return None if message is None or _has_lost_body(message) else message

    def _decode(self, page: Page, entry: PageEntry, data: bytes) -> Message | None:
        try:
            message = entry.message(data)
        except UnsupportedMessage as error:
            log.warning(
                "message %d of page %d of %s, %s, cannot be read: it stays there",
                entry.number,
                page.number,
                self.store.address,
                error,
            )
            return None
        except RecordFormatError as error:
            place = (entry.number, page.number, self.store.address)
            log.error("message %d of page %d of %s: %s: it stays there", *place, error)
            return None
        if entry.is_large:
            message.large = self.store.large_body(message.message_id)
            if message.large is None and message.durable:
                log.error("AMQ222051: large message %d has no body", message.message_id)
                return None
        return message

    # --- messages leave -----------------------------------------------------------------------

    def record_gone(
        self, reference: PagedReference, tx: ReferenceTransaction | None, is_last: bool
    ) -> bool:
        """Record that the queue has a message no more; whether there is a record of it."""
        queue = self.queue
        if not queue.is_durable or self.is_closed:
            return False
        appends = self._appends
        transaction = reference.transaction
        if transaction is not None and not reference.message.durable:
            # It counts what is durable alone (record 35), and so do those who count it down.
            transaction = None
        queue_id, page, number = queue.queue_id, reference.page, reference.number
        if tx is not None:
            reference.record_id = appends.acknowledge(
                queue_id, page.number, number, tx.tx_id, False
            )
            if transaction is not None:
                self.store.acknowledge_in(tx, transaction)
        elif transaction is None or not transaction.record_id:
            # The last one of a page is waited for: the page is deleted behind it.
            is_waited_for = is_last or (page.remaining or {}).get(queue_id, 0) <= 1
            reference.record_id = appends.acknowledge(
                queue_id, page.number, number, None, is_waited_for
            )
        else:
            # Both or none: what is left of the transaction must not be too few.
            tx_id = queue.storage.new_id()
            with appends.all_or_nothing(tx_id):
                record_id = appends.acknowledge(queue_id, page.number, number, tx_id, True)
                appends.update_transaction(transaction.record_id, transaction.tx_id, 1, tx_id)
            reference.record_id = record_id
            transaction.durable_count -= 1
        return True

    def release(self, reference: PagedReference) -> None:
        """The queue has it no more, and its record says so."""
        self.held_count -= 1
        self.held_size -= reference.size
        self._memory.free(reference.size)
        if self.is_closed:
            return
        page = reference.page
        self.acknowledgements.add(page.number, reference.number, reference.record_id)
        self.store.removed(page, self.queue.queue_id)
        if self._is_held_back:
            self._is_held_back = False
            self.queue.deliver_later()

    def drop_all(self) -> int:
        """Acknowledge all that may be read and is not in memory, as it is read; how many."""
        count = self.unread_count
        if count:
            self._drop_end = self.store.end
            self._cursor.drop_late()
            self.queue.deliver_later()
        return count

    @property
    def is_dropping(self) -> bool:
        """Whether it is read although no consumer takes from the queue."""
        return self._drop_end is not None or self._cursor.has_dropped

    def close(self) -> None:
        """The queue goes, with everything it has in pages; its records stay. Idempotent."""
        self.is_closed = True
        self.unread_count = 0
        self.store.forget_queue(self.queue.queue_id)


def _range_of(found: Found) -> LateRange:
    """Where a record that is to be read again lies; of no number yet."""
    return LateRange(found.page, found.offset, found.number, len(found.data))


def _has_lost_body(message: Message) -> bool:
    """Whether it is a large message of an earlier run, not durable: there is nothing to deliver.

    Who reads it acknowledges it: else its page would stay for ever.
    """
    return message.is_large and message.large is None
