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
from typing import TYPE_CHECKING, Final, Protocol

from broker.model.encoding import RecordFormatError
from broker.model.scheduled_time import SCHEDULED, time_ms
from broker.paging.browsing import PageBrowser
from broker.paging.cursor import Cursor, Found, LateRange, PageSource
from broker.paging.reference import PagedReference

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
        acknowledged: by page, the numbers that are acknowledged, or about to be in a prepared
            transaction, with their record ids; 0 for none.
        complete: by page, the id of record 42.
    """

    __slots__ = (
        "_appends",
        "_blocking",
        "_cursor",
        "_drop_end",
        "_is_held_back",
        "_memory",
        "acknowledged",
        "complete",
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
        self.acknowledged: dict[int, dict[int, int]] = {}
        self.complete: dict[int, int] = {}
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
        return self._is_held_back and self.queue.waiting.count == 0 and Window(self).has_room()

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
        window = Window(self)
        while window.has_room() or self.is_dropping:
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
        acknowledged = self.acknowledged.get(page.number)
        if acknowledged is not None and entry.number in acknowledged:
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
        if not entry.is_core:
            place = (entry.number, page.number, self.store.address)
            log.warning("message %d of page %d of %s cannot be read: it stays there", *place)
            return None
        try:
            message = entry.message(data)
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
        self.acknowledged.setdefault(page.number, {})[reference.number] = reference.record_id
        self.store.removed(page, self.queue.queue_id)
        if self._is_held_back:
            self._is_held_back = False
            self.queue.deliver_later()

    def reserve(self, page: int, number: int, record_id: int) -> None:
        """A message was acknowledged before the start, or is in a prepared transaction."""
        self.acknowledged.setdefault(page, {})[number] = record_id

    def is_ahead_of(self, page: Page) -> bool:
        """Whether a record would count for what is appended to a page, after a start.

        The queue is done with it, or has acknowledged what a power failure took from its end:
        messages that are not durable are delivered before they are synced, and their
        acknowledgements are.
        """
        if page.number in self.complete:
            return True
        return max(self.acknowledged.get(page.number, ()), default=-1) >= page.count

    def page_done(self, page: Page) -> None:
        """The queue has nothing left in a page that others still need: one record instead of all.

        Nothing where no record says anything of the page.
        """
        acknowledged = self.acknowledged.pop(page.number, {})
        records = [one for one in acknowledged.values() if one > 0]
        if not self.queue.is_durable or page.number in self.complete:
            return
        if not records:
            return
        record_id = self._appends.complete(self.queue.queue_id, page.number, page.count, records)
        if record_id is None:
            # They go with the page.
            self.acknowledged[page.number] = acknowledged
        else:
            self.complete[page.number] = record_id

    def take_records(self, page: int) -> list[int]:
        """Give the records about a page that is gone, to be deleted."""
        found = [one for one in self.acknowledged.pop(page, {}).values() if one > 0]
        complete = self.complete.pop(page, 0)
        return [*found, complete] if complete else found

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

    def take_all_records(self) -> list[int]:
        """Give all its records, to be deleted once the queue's own is."""
        pages = {*self.acknowledged, *self.complete}
        return [record_id for page in pages for record_id in self.take_records(page)]


def _range_of(found: Found) -> LateRange:
    """Where a record that is to be read again lies; of no number yet."""
    return LateRange(found.page, found.offset, found.number, len(found.data))


def _has_lost_body(message: Message) -> bool:
    """Whether it is a large message of an earlier life, not durable: there is nothing to deliver.

    Who reads it acknowledges it: else its page would stay for ever.
    """
    return message.is_large and message.large is None


# QueueImpl.MAX_DEPAGE_NUM: messages that wait where settings give no limit at all.
_UNLIMITED_COUNT: Final = 10_000


class Window:
    """Whether a queue may take more of its pages into memory.

    Args:
        subscription: of the queue.
    """

    __slots__ = ("_count_max", "_prefetch_count", "_prefetch_size", "_size_max", "_subscription")

    def __init__(self, subscription: PageSubscription) -> None:
        settings = subscription.queue.settings
        self._subscription = subscription
        self._size_max = settings.max_read_page_bytes
        self._count_max = settings.max_read_page_messages
        self._prefetch_size = settings.prefetch_page_bytes
        self._prefetch_count = settings.prefetch_page_messages
        if max(self._size_max, self._count_max, self._prefetch_size, self._prefetch_count) <= 0:
            # Without any limit Artemis takes as much as the address may have in memory.
            most = settings.max_size_bytes
            self._prefetch_size = most if most > 0 else 2 * settings.page_size_bytes
            self._prefetch_count = _UNLIMITED_COUNT

    def has_room(self) -> bool:
        """Whether one more may come; limits of 0 and below are none (QueueImpl.needsDepage)."""
        one = self._subscription
        count, size = one.held_count, one.held_size
        if 0 < self._size_max <= size or 0 < self._count_max <= count:
            return False
        waiting = min(count, one.queue.waiting.count)
        if not waiting:
            return True
        if 0 < self._prefetch_count <= waiting:
            return False
        # Of those in memory some wait: their share of the bytes.
        return not 0 < self._prefetch_size * count <= size * waiting
