"""What a start finds of pages: their folders, and what the message journal says of them.

    folders ─▶ stores, pages ─▶ records 35, 39, 42 ─▶ prepared ones ─▶ counting, beside the loop

Records about pages or queues that are gone are deleted, durably before the first new page. If no
page is left, page numbers begin anew, and an old acknowledgement must not meet a new message. If a
full disk has no room for these deletes, numbers begin behind those records.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final

from broker.model.counted_text import counted
from broker.model.wire import RecordType
from broker.paging.counting import HELD, Counting, apply, summarize
from broker.paging.transactions import PageTransaction
from broker.records.page_records import entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.paging.page import Page
    from broker.paging.paging import Paging
    from broker.paging.reference import PagedReference
    from broker.paging.store import PagingStore
    from broker.paging.subscription import PageSubscription
    from broker.queues.reference import ReferenceTransaction
    from broker.storage.page_folders import PageFolder

__all__ = ["PageLoader"]

log = logging.getLogger("broker")

_LONG_INT: Final = struct.Struct(">qi")
_POSITION: Final = struct.Struct(">qqi")
_COUNTERS: Final = (
    RecordType.PAGE_CURSOR_COUNTER_VALUE,
    RecordType.PAGE_CURSOR_COUNTER_INC,
    RecordType.PAGE_CURSOR_PENDING_COUNTER,
)


# With no more bytes in pages than these the start waits for their counts: a tenth of a second.
_COUNTED_AT_ONCE: Final = 32 * 1024 * 1024


class PageLoader:
    """See the module's text; queues and addresses are loaded before.

    Args:
        paging: of the broker, empty.
    """

    def __init__(self, paging: Paging) -> None:
        self._paging = paging
        self._addresses = paging.addresses
        self._doomed: list[int] = []
        # Of the pages that these are about.
        self._last_doomed_page = 0
        # By address, the numbers of pages that are not there, and how many records are about each.
        self._missing: dict[str, dict[int, int]] = {}

    def load_folders(self) -> None:
        """Make the stores of the addresses that have pages.

        Raises:
            JournalIOError: the disk fails.
            JournalDamaged: an address has two pages of one number, both in use.
        """
        for name, folder in self._paging.folders.load(self._drop_unused).items():
            address = self._addresses.by_name.get(name)
            if address is None:
                log.info("the address %s is gone: its pages are deleted", name)
                folder.destroy()
                continue
            store = self._paging.add_store(name, address.memory, folder)
            sizes = folder.sizes()
            if len(sizes) == 1 and not any(sizes.values()):
                folder.delete(next(iter(sizes)), is_invalid=False)
                sizes = {}
            if sizes:
                store.load(sizes)
                store.begin(address.queues.values(), is_loaded=True)

    def _drop_unused(self, folder: PageFolder, number: int) -> bool:
        """Delete a page if no queue is left that has a message in it; whether it did."""
        data = folder.read(number, 0, folder.sizes()[number])
        summary = summarize(data)
        if any(queue_id in self._addresses.queues_by_id for _, queue_id in summary.numbers):
            return False
        log.warning("page %d in %s is deleted: its queues are gone", number, folder.place)
        folder.delete(number, is_invalid=summary.size != len(data))
        return True

    def load_records(self, records: Iterable[tuple[int, int, bool, bytes]]) -> None:
        """Take what the journal says of pages: id, type, whether it is an update, body.

        Raises:
            struct.error: a record is not what its type says.
        """
        transactions: dict[int, PageTransaction] = {}
        for record_id, kind, is_update, body in records:
            if kind == RecordType.PAGE_TRANSACTION:
                tx_id, count = _LONG_INT.unpack_from(body)
                if not is_update:
                    made = transactions[record_id] = PageTransaction(tx_id, record_id, count)
                    made.is_committed = True
                    self._paging.transactions.add(made)
                elif record_id in transactions:
                    transactions[record_id].durable_count -= count
            elif kind in (RecordType.ACKNOWLEDGE_CURSOR, RecordType.PAGE_CURSOR_COMPLETE):
                queue_id, page, number = _POSITION.unpack_from(body)
                subscription = self._subscription(queue_id, page)
                if subscription is None:
                    self._doomed.append(record_id)
                    self._note_missing(queue_id, page)
                    self._last_doomed_page = max(self._last_doomed_page, page)
                elif kind == RecordType.ACKNOWLEDGE_CURSOR:
                    if subscription.acknowledgements.has(page, number):
                        # Said twice: one record is enough.
                        self._doomed.append(record_id)
                    else:
                        subscription.acknowledgements.add(page, number, record_id)
                else:
                    subscription.acknowledgements.complete[page] = record_id
            elif kind in _COUNTERS and not is_update:
                self._doomed.append(record_id)

    def _note_missing(self, queue_id: int, page: int) -> None:
        queue = self._addresses.queues_by_id.get(queue_id)
        if queue is not None:
            pages = self._missing.setdefault(queue.binding.address, {})
            pages[page] = pages.get(page, 0) + 1

    def _tell_missing(self) -> None:
        """Log pages that records speak of and that are not there, an address a line."""
        for address, pages in self._missing.items():
            # As Artemis says it, and no warning: a crash leaves the same behind where pages are
            # deleted.
            log.info(
                "AMQ224153: Unable to find page %d on Address %s while reloading "
                "ACKNOWLEDGE_CURSOR: what the journal says of %s is deleted (%s). "
                "A crash may leave such records; so does a paging folder that was not copied with "
                "its journal",
                min(pages),
                address,
                counted(len(pages), "page"),
                counted(sum(pages.values()), "record"),
            )

    def _subscription(self, queue_id: int, page: int) -> PageSubscription | None:
        """Give what a queue has in pages; None where there is no such page, or queue."""
        queue = self._addresses.queues_by_id.get(queue_id)
        store = None if queue is None else self._paging.stores.get(queue.binding.address)
        if store is None or page not in store.pages:
            return None
        return store.subscriptions.get(queue_id)

    # --- prepared transactions ----------------------------------------------------------------

    def load_prepared(
        self, tx: ReferenceTransaction, record_id: int, kind: int, is_update: bool, body: bytes
    ) -> bool:
        """Take a record of a prepared transaction; false where it has to do with no page."""
        if kind == RecordType.PAGE_TRANSACTION:
            tx_id, count = _LONG_INT.unpack_from(body)
            part = self._paging.part_of(tx)
            if is_update:
                found = self._paging.transactions.get(tx_id)
                if found is not None:
                    part.acknowledged[found] = part.acknowledged.get(found, 0) + count
                part.load(part.sent)
            else:
                sent = PageTransaction(tx_id, record_id, count)
                self._paging.transactions.add(sent)
                part.load(sent)
        elif kind == RecordType.ACKNOWLEDGE_CURSOR:
            queue_id, page, number = _POSITION.unpack_from(body)
            subscription = self._subscription(queue_id, page)
            reference = None
            if subscription is not None and number >= 0:
                reference = self._reference(subscription, page, number)
            if reference is None:
                log.warning(
                    "a prepared transaction acknowledges message %d of page %d, which queue %d "
                    "does not have",
                    number,
                    page,
                    queue_id,
                )
                return True
            reference.record_id = record_id
            reference.queue.delivering_count += 1
            tx.acknowledged.append(reference)
        else:
            return kind in _COUNTERS
        return True

    def _reference(
        self, subscription: PageSubscription, page_number: int, number: int
    ) -> PagedReference | None:
        """Give one message, which the queue's cursor will not come to any more."""
        if subscription.acknowledgements.has(page_number, number):
            # Acknowledged by another consumer: it is not delivered again.
            return None
        page = self._paging.stores[subscription.queue.binding.address].pages[page_number]
        data = page.folder.read(page_number, 0, page.size)
        for entry in entries(data, 0, 0):
            if entry.number == number:
                reference = subscription.reference_of(page, entry, data)
                if reference is not None:
                    subscription.acknowledgements.add(page_number, number, HELD)
                return reference
        return None

    # --- the end ------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything is taken: count the last pages, and delete what counts no more.

        Raises:
            JournalError: the storage fails.
        """
        self._tell_missing()
        stores = self._paging.stores.values()
        deleted = [self._paging.appends.delete(record_id) for record_id in self._doomed]
        if not all(deleted):
            floor = self._paging.number_floor = self._last_doomed_page
            for store in stores:
                store.last_number = max(store.last_number, floor)
        total = sum(page.size for store in stores for page in store.pages.values())
        for store in stores:
            self._count_last(store)
            if total <= _COUNTED_AT_ONCE:
                for page in store.pages.values():
                    if page.remaining is None:
                        self._count(page)
        if self._doomed:
            self._paging.storage.sync()

    @staticmethod
    def _count_last(store: PagingStore) -> None:
        """The last page is appended to, if it ends as it should and no record is ahead of it."""
        if store.pages:
            page = store.pages[max(store.pages)]
            PageLoader._count(page)
            if not page.is_invalid and not PageLoader._is_ahead(store, page):
                store.go_on_with(page)

    @staticmethod
    def _is_ahead(store: PagingStore, page: Page) -> bool:
        return any(one.acknowledgements.is_ahead_of(page) for one in store.subscriptions.values())

    @staticmethod
    def _count(page: Page) -> None:
        apply(page, summarize(page.folder.read(page.number, 0, page.size)))

    def count(self, done: Callable[[], object]) -> None:
        """Count the other pages beside the event loop; `done` is called then."""
        paging = self._paging

        def counted() -> None:
            paging.transactions.forget_unused()
            done()

        for store in paging.stores.values():
            store.delete_what_is_done()
        Counting(paging, counted).go_on()


def large_ids(paging: Paging) -> set[int]:
    """Give the ids of all large messages in pages that were counted."""
    pages: Iterable[Page] = (
        page for store in paging.stores.values() for page in store.pages.values()
    )
    return {message_id for page in pages for message_id in page.large}
