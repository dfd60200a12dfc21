"""The pages of one address: written when memory is full, deleted when all queues are done.

    memory full ─▶ begin() ─▶ append() … page after page ─▶ every queue done with all ─▶ end()

While it is paging every message of the address goes to its last page, so the order stays: what a
queue has in memory comes first, then its pages from the first on. A page goes when it is closed and
no queue has anything left in it; its file before the records that say so, for without these its
messages would come again.

Threads: the event loop's alone; writing, reading and deleting is done by `PageWork`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import broker_error
from broker.paging.page import Page
from broker.paging.subscription import PageSubscription
from broker.records.page_records import NO_TX, encode_entry
from journal.errors import JournalFull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.paging.paging import Paging
    from broker.paging.transactions import PageTransaction
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.queues.reference import ReferenceTransaction
    from broker.storage.history import MessageHistory
    from broker.storage.page_folders import PageFolder

__all__ = ["PagingStore"]

log = logging.getLogger("broker")

# Bytes that the disk is asked to keep for a page at first; then twice as many each time.
_ROOM_LEAST: Final = 64 * 1024


class PagingStore:
    """See the module's text.

    Args:
        paging: of the broker.
        address: its name.
        memory: of the address.
        folder: where its pages are.
        last_number: numbers of pages begin behind this one.

    Attributes:
        pages: those that exist, by number, in order.
        subscriptions: of its queues, by queue id, while there are pages.
        is_paging: what is sent to the address goes to pages.
        is_gone: its address is deleted.
        last_number: of the pages it has had.
        is_open: its pages may be read: what was sent before is in its queues.
        transactions: of all addresses.
        appends: where records go.
    """

    def __init__(
        self,
        paging: Paging,
        address: str,
        memory: AddressMemory,
        folder: PageFolder,
        last_number: int = 0,
    ) -> None:
        self.paging = paging
        self.address = address
        self.memory = memory
        self.folder = folder
        self.transactions = paging.transactions
        self.appends = paging.appends
        self.pages: dict[int, Page] = {}
        self.subscriptions: dict[int, PageSubscription] = {}
        self.is_paging = False
        self.is_gone = False
        self.is_open = True
        self._begin_count = 0
        self._storage = paging.storage
        self._settings = paging.settings
        self._history = paging.history
        self._large = paging.large
        self._current: Page | None = None
        self.last_number = last_number
        # That the disk keeps for the next page.
        self._next_room = 0
        self._waiting: dict[PageSubscription, None] = {}

    def __repr__(self) -> str:
        return f"PagingStore({self.address!r}, {len(self.pages)} pages)"

    # --- paging begins and ends ---------------------------------------------------------------

    def begin(self, queues: Iterable[Queue], *, is_loaded: bool = False) -> None:
        """Let what is sent to the address go to pages from now on.

        Args:
            queues: of the address.
            is_loaded: it did when the broker ended.
        """
        self.is_paging = True
        self.paging.active_count += 1
        if not is_loaded:
            log.info(
                "AMQ222038: Starting paging on address '%s'; %d bytes, %d messages in memory",
                self.address,
                self.memory.size,
                self.memory.count,
            )
        for queue in queues:
            self.subscribe(queue)
        if not is_loaded:
            # A page may be written sooner than the journal, and must not overtake what is on its
            # way there: that comes into its queues when it is durable.
            self.is_open = False
            self._begin_count += 1
            self._storage.after(self._open, self._begin_count)

    def _open(self, error: Exception | None, begin_count: int) -> None:
        if error is None and begin_count == self._begin_count:
            self.is_open = True
            for subscription in list(self.subscriptions.values()):
                subscription.wake()

    def subscribe(self, queue: Queue) -> PageSubscription:
        """Let a queue of the address see its pages."""
        found = self.subscriptions.get(queue.queue_id)
        if found is None:
            found = self.subscriptions[queue.queue_id] = PageSubscription(self, queue)
            queue.pages = found
        return found

    def load(self, sizes: dict[int, int]) -> None:
        """Take the pages that are there, by number, none of them counted."""
        for number, size in sizes.items():
            page = self.pages[number] = Page(self, number, size)
            page.is_closed = True
            page.remaining = None
            self.last_number = number

    def go_on_with(self, page: Page) -> None:
        """Append to the last page there is."""
        page.is_closed = False
        self._current = page

    def counted(self, page: Page) -> None:
        """Of a page it is known what it holds."""
        self.paging.keep_ends(page.left)
        if page.left == 0:
            self._delete_if_done(page)
        self.wake_waiting()

    @property
    def is_counted(self) -> bool:
        """Whether it is known what all pages hold."""
        return all(page.remaining is not None for page in self.pages.values())

    def has_undecided(self, queue_id: int) -> bool:
        """Whether open transactions have put messages for a queue into pages."""
        return any(
            not transaction.is_committed and queue_id in transaction.pages[page]
            for page in self.pages.values()
            for transaction in page.transactions
        )

    def delete_what_is_done(self) -> None:
        """After a start: delete pages in which no queue has anything left."""
        for page in list(self.pages.values()):
            if page.left == 0:
                self._delete_if_done(page)

    def end_if_done(self) -> None:
        """Leave paging when no page has anything left, and there is room again."""
        page = self._current
        if page is None:
            if self.pages:
                return
        elif page.left or len(self.pages) > 1 or page.written_size != page.size:
            return
        if not self.is_paging or self.memory.is_full:
            return
        self.is_paging = False
        self.paging.active_count -= 1
        log.info("AMQ224108: Stopped paging on address '%s'", self.address)
        if page is not None:
            self._current = None
            page.is_closed = True
            self._delete(page)
        for subscription in self.subscriptions.values():
            if subscription.queue.pages is subscription:
                subscription.queue.pages = None
        # Its records are with the pages that are being deleted; a new beginning has new ones.
        self.subscriptions = {}
        self._waiting.clear()
        self.paging.tell_ends()
        if self.paging.purges_folders:
            self._storage.after(self._purge, self._begin_count)

    def _purge(self, error: Exception | None, begin_count: int) -> None:
        """Remove the folder, unless it was needed again; its pages were deleted before."""
        if error is not None or begin_count != self._begin_count or self.is_gone:
            return
        folder, self._next_room = self.folder, 0
        # Numbers go on all the same: records of the old pages may still be there.
        self.folder = self.paging.new_folder(self.address)
        self.paging.change(folder.destroy, lambda: None)

    def delete(self) -> list[Page]:
        """The address goes, with all its pages: nothing is read or written any more; the pages."""
        self.is_gone = True
        self.is_paging = False
        self._current = None
        pages = list(self.pages.values())
        # Without them in here, a page that is still being written is not deleted by itself.
        self.pages.clear()
        for page in pages:
            page.is_gone = True
        return pages

    @property
    def is_page_full(self) -> bool:
        """Whether page-limit-bytes or -messages is reached, where page-full-policy is set.

        Bytes count in whole pages, messages for the queue that has most (PagingStoreImpl).
        """
        settings = self._settings.match(self.address)
        if settings.page_full_policy is None:
            return False
        size, count = settings.page_limit_bytes, settings.page_limit_messages
        if size is not None and size >= 0 and len(self.pages) > size // self.paging.page_size(self):
            return True
        return (
            count is not None
            and count >= 0
            and max((one.count for one in self.subscriptions.values()), default=0) >= count
        )

    # --- messages come ------------------------------------------------------------------------

    def keep_room_for(self, message: Message, queues: list[Queue]) -> None:
        """See that append() of this message, which comes next, is not refused.

        Raises:
            RecordFormatError: it does not fit its encoding.
            BrokerError: the disk is full.
        """
        ids = [queue.queue_id for queue in queues]
        self._keep_room(len(encode_entry(message, ids)), len(ids))

    def append(
        self, message: Message, queues: list[Queue], tx: ReferenceTransaction | None
    ) -> None:
        """Put a message for these queues of the address into a page.

        Raises:
            RecordFormatError: it does not fit its encoding.
            BrokerError: the disk is full; nothing has changed.
        """
        durable = [queue.queue_id for queue in queues if queue.is_durable]
        others = [queue.queue_id for queue in queues if not queue.is_durable]
        ids = durable + others if others else durable
        data = encode_entry(message, ids, NO_TX if tx is None else tx.tx_id)
        page = self._page_for(len(data), len(ids))
        page.size += len(data)
        page.count += 1
        if message.is_large:
            page.large.append(message.message_id)
            # The page has it, whatever queues do: its body goes with the page.
            message.references += 1
        is_durable = bool(durable) and message.durable
        paging = self.paging
        is_synced = paging.sync_non_transactional if tx is None else paging.sync_transactional
        paging.writer.append(page, data, is_durable=is_durable, is_synced=is_synced)
        if is_durable and self._history is not None:
            self._note(self._history, message, durable, tx)
        if tx is None:
            for queue_id in ids:
                page.added(queue_id)
                self.subscriptions[queue_id].became_visible()
            return
        sent = paging.part_of(tx).begin_sending(tx.tx_id)
        if is_durable:
            sent.durable_count += len(durable)
        for queue_id in ids:
            page.added(queue_id)
            sent.add(page, queue_id)

    def _note(
        self,
        history: MessageHistory,
        message: Message,
        queue_ids: list[int],
        tx: ReferenceTransaction | None,
    ) -> None:
        """Have the history know of a message, which the journal does not."""
        if tx is not None:
            self.paging.part_of(tx).notes.append((message, queue_ids))
            return
        counter = self._storage.completions.messages
        history.note_message(message, queue_ids, done=counter.done)
        counter.appended += 1

    def _page_for(self, size: int, count: int) -> Page:
        is_next = self._keep_room(size, count)
        page = self._current
        if is_next or page is None:
            if page is not None:
                self._close_current()
            self.last_number += 1
            page = self._current = self.pages[self.last_number] = Page(self, self.last_number)
            page.room, self._next_room = self._next_room, 0
        return page

    def _keep_room(self, size: int, count: int) -> bool:
        """Have the disk keep room for one record more; whether that is in the next page.

        Args:
            size: of the record.
            count: of queues: the journal has room for their acknowledgements, too.

        Raises:
            BrokerError: the disk is full.
        """
        if not self.paging.keep_ends(count):
            raise broker_error("address_is_full", "the disk is full: no room to acknowledge more")
        page, page_size = self._current, self.paging.page_size(self)
        if page is not None and (not page.count or page.size + size <= page_size):
            number, room, least = page.number, page.room, page.size + size
            wanted, is_next = 2 * room, False
        else:
            number, room, least = self.last_number + 1, self._next_room, size
            # Behind a full page comes another one, most likely.
            wanted, is_next = (_ROOM_LEAST if page is None else page_size), True
        if least <= room:
            return is_next
        wanted = max(least, min(max(wanted, _ROOM_LEAST), page_size))
        try:
            room = self.paging.writer.keep_room(self.folder, number, wanted, least)
        except JournalFull as error:
            raise broker_error("address_is_full", f"the disk is full: {error}") from error
        if page is None or is_next:
            self._next_room = room
        else:
            page.room = room
        return is_next

    def _close_current(self) -> None:
        page, self._current = self._current, None
        assert page is not None, "there is one"
        page.is_closed = True
        assert page.remaining is not None, "it was counted before it was appended to"
        for queue_id, left in page.remaining.items():
            if not left and queue_id in self.subscriptions:
                self.subscriptions[queue_id].acknowledgements.page_done(page)
        self._delete_if_done(page)

    def more_written(self, page: Page) -> None:
        """What was appended to a page can be read."""
        self.wake_waiting()
        if page.left == 0:
            self._delete_if_done(page)

    def wake_waiting(self) -> None:
        """There may be more to read."""
        waiting, self._waiting = self._waiting, {}
        for subscription in waiting:
            subscription.wake()

    def wait_for_more(self, subscription: PageSubscription) -> None:
        """A queue has read everything: wake it when there is more."""
        self._waiting[subscription] = None

    # --- messages leave -----------------------------------------------------------------------

    def acknowledge_in(self, tx: ReferenceTransaction, transaction: PageTransaction) -> None:
        """A transaction acknowledges a durable reference that another one had put into a page."""
        self.paging.part_of(tx).acknowledge(transaction)

    def removed(self, page: Page, queue_id: int, count: int = 1) -> None:
        """A queue has so many messages less in a page."""
        if page.remaining is None or queue_id not in page.remaining:
            # The queue is gone, or the page is not counted yet.
            return
        left = page.removed(queue_id, count)
        if left:
            return
        if page.is_closed:
            if page.left:
                subscription = self.subscriptions.get(queue_id)
                if subscription is not None:
                    subscription.acknowledgements.page_done(page)
            else:
                self._delete_if_done(page)
        elif not page.left:
            self.end_if_done()

    def forget_queue(self, queue_id: int) -> None:
        """A queue is gone, and with it what it had in pages."""
        self.subscriptions.pop(queue_id, None)
        for page in list(self.pages.values()):
            if page.remaining is None:
                continue
            page.left -= page.remaining.pop(queue_id, 0)
            self._delete_if_done(page)
        self.end_if_done()

    def _delete_if_done(self, page: Page) -> None:
        if page.left == 0 and page.remaining is not None:
            if page.is_read_up:
                self._delete(page)
            self.end_if_done()

    def _delete(self, page: Page) -> None:
        """Delete a page once everything that was appended is durable."""
        if self.pages.pop(page.number, None) is None:
            return
        page.is_gone = True
        self.paging.keep_ends(page.count)
        subscriptions = list(self.subscriptions.values())
        self._storage.after(self._delete_now, self.folder, page, subscriptions)

    def _delete_now(
        self,
        error: Exception | None,
        folder: PageFolder,
        page: Page,
        subscriptions: list[PageSubscription],
    ) -> None:
        if error is not None:
            return
        self.paging.change(
            lambda: folder.delete(page.number, is_invalid=page.is_invalid),
            lambda: self._deleted(page, subscriptions),
        )

    def _deleted(self, page: Page, subscriptions: list[PageSubscription]) -> None:
        self.page_gone(page)
        for subscription in subscriptions:
            records = subscription.acknowledgements.take_records(page.number)
            self.paging.delete_records(records)

    def page_gone(self, page: Page) -> None:
        """The page does not come back: its transactions and bodies may go."""
        self.transactions.forget_page(page)
        for message_id in page.large:
            body = self.large_body(message_id)
            if body is not None:
                body.delete()

    @property
    def end(self) -> tuple[int, int]:
        """Behind all that was appended: page, and number of a message."""
        if not self.pages:
            return (0, 0)
        page = self.pages[max(self.pages)]
        return (page.number, page.count)

    # --- what cursors need --------------------------------------------------------------------

    def page_behind(self, number: int) -> Page | None:
        """Give the first page behind this number."""
        for other, page in self.pages.items():
            if other > number:
                return page
        return None

    def read(self, page: Page, offset: int, size: int, done: Callable[[bytes], object]) -> None:
        """Read some bytes of a page beside the event loop; none where the page has gone."""
        folder, number = self.folder, page.number
        self.paging.read(
            lambda: folder.read(number, offset, size), page, lambda data: done(data or b"")
        )

    def large_body(self, message_id: int) -> LargeBody | None:
        """Give the body of a large message."""
        large = self._large
        return None if large is None else large.find(message_id)
