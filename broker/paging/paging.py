"""Whether a message goes to memory or to a page, and the pages of all addresses.

    route ─▶ take() ─▶ address paging, or full and PAGE ─▶ PagingStore.append()
                └─▶ queues that are left for the journal

Which pages a queue's messages go to is decided by the queue's own address: a queue bound to a
pattern has its messages with the pattern's.

Threads: the event loop's alone; writing, reading and deleting is done by `PageWork`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, cast

from broker.paging.paged_part import PagedPart
from broker.paging.recovered_transactions import RecoveredTransactionHistory
from broker.paging.store import PagingStore
from broker.paging.transactions import PageTransactions
from broker.settings.policies import AddressFullPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias, TypeVar

    from broker.model.message import Message
    from broker.paging.page import Page
    from broker.paging.subscription import PageSubscription
    from broker.paging.transactions import PageTransaction
    from broker.ports import Settings, Timers
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.queues.reference import ReferenceTransaction
    from broker.storage.context import OperationContext
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.storage.page_folders import PageFolder, PageFolders
    from broker.storage.page_work import PageWork
    from broker.storage.page_writer import PageWriter

    T = TypeVar("T")
    # Where a message goes, the message, and the queues there that get it.
    Paged: TypeAlias = "tuple[PagingStore, Message, list[Queue]]"

__all__ = ["Paging"]

log = logging.getLogger("broker")

# Deletes of records appended in one turn of the event loop.
_DELETE_COUNT: Final = 500
# References that come to pages, or leave them, before the journal is told how many there are.
_ENDS_STEP: Final = 500


class PagedAddress(Protocol):
    """Of an address what paging needs."""

    @property
    def memory(self) -> AddressMemory:
        """What its messages take."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """Bound to it, by name."""


class PagedAddresses(Protocol):
    """All addresses, as far as paging needs them; `broker.routing.addresses` has them."""

    @property
    def by_name(self) -> Mapping[str, PagedAddress]:
        """All addresses."""

    @property
    def queues_by_id(self) -> Mapping[int, Queue]:
        """All queues."""


class Paging:
    """See the module's text.

    Args:
        folders: where pages are.
        writer: of pages.
        writing: that writes and deletes, one after the other; the writer's own.
        reading: that reads.
        storage: where records go.
        timers: turns of the event loop.
        settings: of addresses.
        addresses: all there are, with their queues.
        copy_of: gives a copy of a message, with an id and, if it is large, a body of its own.
        large: bodies of large messages; None without storage for them.
        history: of the message journal; None where none is kept.
        page_size_max: bytes that a page may have at most, whatever the settings say.
        sync_transactional: pages are synced before a commit (journal-sync-transactional).
        sync_non_transactional: and before a message that is sent alone is confirmed
            (journal-sync-non-transactional).
        purges_folders: the folder of an address goes when it leaves paging (purge-page-folders).

    Attributes:
        stores: of the addresses that have, or had, pages, by address.
        transactions: that put messages into pages.
        storage, settings, addresses, large, history: as given.
        active_count: how many addresses are paging.
        number_floor: numbers of an address's first pages begin behind it.
    """

    def __init__(
        self,
        folders: PageFolders,
        writer: PageWriter,
        writing: PageWork,
        reading: PageWork,
        *,
        storage: StorageManager,
        timers: Timers,
        settings: Settings,
        addresses: PagedAddresses,
        copy_of: Callable[[Message], Message],
        large: LargeBodies | None = None,
        history: MessageHistory | None = None,
        page_size_max: int | None = None,
        sync_transactional: bool = True,
        sync_non_transactional: bool = True,
        purges_folders: bool = False,
    ) -> None:
        self.storage = storage
        self.settings = settings
        self.addresses = addresses
        self.large = large
        self.history = history
        self.appends = storage.pages
        self.writer = writer
        self.transactions = PageTransactions(self.appends)
        self.stores: dict[str, PagingStore] = {}
        self.active_count = 0
        self.number_floor = 0
        self.folders = folders
        self.sync_transactional = sync_transactional
        self.sync_non_transactional = sync_non_transactional
        self.purges_folders = purges_folders
        self._timers = timers
        self._copy_of = copy_of
        self._writing = writing
        self._reading = reading
        self._page_size_max = page_size_max
        self._doomed_records: list[int] = []
        self._is_closed = False
        # References that came and went since the journal was told how many there are.
        self._untold_count = _ENDS_STEP
        # Of addresses that are deleted, while their folders are kept, and while these are removed.
        self._deleted_stores: dict[str, PagingStore] = {}
        self._removed_stores: dict[str, PagingStore] = {}

    # --- messages -----------------------------------------------------------------------------

    def split(
        self, message: Message, queues: list[Queue], memory: AddressMemory
    ) -> tuple[list[Queue], list[Paged]]:
        """Find what of a message goes to pages, and to which queues it goes besides.

        Where it has several places to go to, there is room for it in all pages.

        Args:
            message: to be routed.
            queues: that get it.
            memory: of the address it was sent to.

        Raises:
            BrokerError: the disk is full; nothing has changed.
        """
        is_full = memory.is_full
        if not self.active_count and not is_full:
            return queues, []
        address = queues[0].binding.address
        if len(queues) == 1 or all(queue.binding.address == address for queue in queues):
            groups = {address: queues}
        else:
            groups = {}
            for queue in queues:
                groups.setdefault(queue.binding.address, []).append(queue)
        left: list[Queue] = []
        found: list[Paged] = []
        for name, members in groups.items():
            store = self._paging_store(name, is_full=is_full)
            if store is None:
                left += members
            else:
                found.append((store, message, members))
        if not found or len(groups) == 1:
            return left, found
        for store, _, members in found:
            store.keep_room_for(message, members)
        if message.is_large:
            # The body is deleted with its page, so each page gets a copy of its own.
            found = [(store, self._copy_of(message), members) for store, _, members in found]
        return left, found

    @staticmethod
    def append(
        found: list[Paged], context: OperationContext, tx: ReferenceTransaction | None
    ) -> None:
        """Put a message into the pages that were found for it.

        Args:
            found: by split().
            context: of who sends it.
            tx: what it is part of.

        Raises:
            BrokerError: the disk is full. This happens only if there is a single page, and
                nothing else has the message.
        """
        for store, message, members in found:
            store.append(message, members, tx)
            context.note()

    def keep_ends(self, count: int) -> bool:
        """So many references come to pages, or left them: the journal keeps room for their ends.

        Returns:
            False while a full disk has none.
        """
        self._untold_count += count
        return self._untold_count < _ENDS_STEP or self.tell_ends()

    def tell_ends(self) -> bool:
        """Tell the journal how many references are in pages, and as many as come until next time.

        Returns:
            False while a full disk has no room for their ends.
        """
        pages = (page for store in self.stores.values() for page in store.pages.values())
        count = sum(page.left for page in pages)
        if self.active_count:
            count += 2 * _ENDS_STEP
        if not self.appends.reserve_ends(count):
            return False
        self._untold_count = 0
        return True

    def is_paging(self, name: str) -> bool:
        """Whether what is sent to an address goes, or may go, to pages now."""
        store = self.stores.get(name)
        memory = self.addresses.by_name[name].memory
        return memory.is_full or (store is not None and store.is_paging)

    def _paging_store(self, name: str, *, is_full: bool) -> PagingStore | None:
        """Give the store of an address if what is sent to it goes to pages."""
        store = self.stores.get(name)
        if store is not None and store.is_paging:
            store.end_if_done()
            if store.is_paging:
                return store
        address = self.addresses.by_name[name]
        if not is_full and not address.memory.is_full:
            return None
        if self.settings.match(name).address_full_policy is not AddressFullPolicy.PAGE:
            return None
        if store is None:
            store = self._new_store(name, address.memory)
        store.begin(address.queues.values())
        return store

    def add_store(self, name: str, memory: AddressMemory, folder: PageFolder) -> PagingStore:
        """Make the store of an address that has none."""
        store = PagingStore(self, name, memory, folder, self.number_floor)
        self.stores[name] = store
        return store

    def _new_store(self, name: str, memory: AddressMemory) -> PagingStore:
        deleted = self._deleted_stores.pop(name, None)
        if deleted is None:
            store = self.add_store(name, memory, self.new_folder(name))
            removed = self._removed_stores.get(name)
            if removed is not None:
                # A crash may leave both folders, which a start makes one: numbers of pages go on.
                store.last_number = removed.last_number
            return store
        # With a folder of its own it would have two for a while, and a start could not tell which
        # one counts. Numbers of pages go on: the old ones are deleted later.
        store = PagingStore(self, name, memory, deleted.folder, deleted.last_number)
        self.stores[name] = store
        return store

    def new_folder(self, name: str) -> PageFolder:
        """Give an address a folder, which is made with its next page."""
        return self.folders.create(name, self.storage.new_id())

    def page_size(self, store: PagingStore) -> int:
        """Give the bytes of a page of an address."""
        size = self.settings.match(store.address).page_size_bytes
        return size if self._page_size_max is None else min(size, self._page_size_max)

    def part_of(self, tx: ReferenceTransaction) -> PagedPart:
        """Give what a transaction does with pages."""
        if tx.paged is None:
            tx.paged = PagedPart(self)
        part: PagedPart = tx.paged
        return part

    def note_recovered(self, sent: PageTransaction, then: Callable[[], object]) -> None:
        """Tell the history, if one is kept, what a start found of a transaction; then go on."""
        if self.history is None:
            then()
        else:
            pages = (page for store in self.stores.values() for page in store.pages.values())
            queues = self.addresses.queues_by_id
            RecoveredTransactionHistory(pages, self.read, queues, self.history, sent, then).go_on()

    # --- queues and addresses -----------------------------------------------------------------

    def queue_added(self, queue: Queue) -> None:
        """A queue was made: of an address that is paging it sees the pages."""
        store = self.stores.get(queue.binding.address)
        if store is not None and store.is_paging:
            store.subscribe(queue)

    def queue_deleted(self, queue: Queue) -> None:
        """A queue was closed and its record deleted: what is said of its pages may go after it."""
        found, queue.pages = queue.pages, None
        if found is not None:
            subscription = cast("PageSubscription", found)
            self.storage.after(self._forget, subscription)
            # What it had in memory is gone by now.
            cast("PagingStore", subscription.store).end_if_done()

    def _forget(self, error: Exception | None, subscription: PageSubscription) -> None:
        if error is None:
            self.delete_records(subscription.acknowledgements.take_all_records())

    def address_deleted(self, name: str) -> None:
        """An address, which has no queue any more, was deleted: its folder goes."""
        store = self.stores.pop(name, None)
        if store is not None:
            if store.is_paging:
                self.active_count -= 1
            pages = store.delete()
            self._deleted_stores[name] = store
            self.tell_ends()
            self.storage.after(self._destroy, store, pages)

    def _destroy(self, error: Exception | None, store: PagingStore, pages: list[Page]) -> None:
        """All that was appended before is durable: the pages of a deleted address may go."""
        if error is not None:
            return

        def gone() -> None:
            for page in pages:
                store.page_gone(page)

        def removed() -> None:
            if self._removed_stores.get(store.address) is store:
                del self._removed_stores[store.address]
            gone()

        if self._deleted_stores.get(store.address) is store:
            self._removed_stores[store.address] = self._deleted_stores.pop(store.address)
            self.change(store.folder.destroy, removed)
        else:
            # The address was made anew and has the folder.
            self.change(lambda: _delete_all(store.folder, pages), gone)

    # --- work beside the event loop -----------------------------------------------------------

    def read(self, work: Callable[[], T], page: Page, done: Callable[[T | None], object]) -> None:
        """Read something of a page; `done` gets None where the page has gone meanwhile.

        Behind close() nothing is read.
        """
        if self._is_closed:
            return

        def told(result: T | None, error: Exception | None) -> None:
            if error is None:
                done(result)
            elif page.is_gone:
                done(None)
            else:
                self.storage.completions.fail(error)

        self._reading.run(work, told)

    def change(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        """Change something on the disk, behind all that is being written.

        Behind close() nothing is changed: what became durable at the very end leaves a page, or a
        folder, that the next start finds done with.
        """
        if self._is_closed:
            return

        def told(_: object, error: Exception | None) -> None:
            if error is None:
                done()
            else:
                self.storage.completions.fail(error)

        self._writing.run(work, told)

    def delete_records(self, record_ids: list[int]) -> None:
        """Delete records of what is gone for good; some in each turn, for there may be many."""
        if not record_ids:
            return
        if not self._doomed_records:
            self._timers.call_soon(self._delete_some)
        self._doomed_records += record_ids

    def _delete_some(self) -> None:
        if self.storage.completions.failure is not None:
            return
        some = self._doomed_records[:_DELETE_COUNT]
        del self._doomed_records[:_DELETE_COUNT]
        for record_id in some:
            self.appends.delete(record_id)
        if self._doomed_records:
            self._timers.call_soon(self._delete_some)

    # --- the end ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Write all that was appended; nothing is read or written any more."""
        self.writer.flush()
        self.close()

    def close(self) -> None:
        """Give up threads and files, whatever state they are in. Idempotent."""
        self._is_closed = True
        # The next start finds them.
        self._doomed_records.clear()
        self._writing.close()
        self._reading.close()
        for store in (*self.stores.values(), *self._deleted_stores.values()):
            store.folder.close()


def _delete_all(folder: PageFolder, pages: list[Page]) -> None:
    """In the thread."""
    for page in pages:
        folder.delete(page.number, is_invalid=False)
