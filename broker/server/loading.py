"""What a start reads: stores opened once their lock is free, loaded, recovered.

    open_when_free()   in a thread: waits for the lock, opens the stores
    StoredData.read()  in a thread: reads both stores, so that probes are answered meanwhile
    StoredData.recover()   in the event loop: makes addresses, queues and transactions of it
    activate()         in a thread: says in the stores that the broker serves

A thread that waits or reads is interrupted by a StartWait: the wait ends at once, the reading
behind the file, or the rows, that it is at.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from broker.recovery.images import BindingsImage
from broker.recovery.loaded_messages import LoadedMessages
from broker.recovery.recovery import recover
from broker.selector.filters import parse_filter
from broker.storage.identifiers import IdGenerator
from broker.storage.open import open_stores
from broker.storage.pinned_files import PinnedFiles
from broker.storage.spill_file import SpillFile
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.environment import Clock
    from broker.model.wire import WireRecord
    from broker.options import BrokerOptions
    from broker.recovery.images import Prepared
    from broker.server.composition import Parts
    from broker.storage.open import Stores
    from broker.storage.waiting import StartWait

__all__ = ["OpenStores", "StoredData", "activate", "open_when_free"]

log = logging.getLogger("broker")

_PROGRESS_S: Final = 2.0  # Between two lines about a load.

T = TypeVar("T")


class OpenStores(Protocol):
    """Opens the stores of a broker; stores in memory can stand in here."""

    async def __call__(
        self, options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
    ) -> Stores | None:
        """See `open_when_free`."""


async def open_when_free(
    options: BrokerOptions, *, on_lost: Callable[[Exception], object], wait: StartWait
) -> Stores | None:
    """Wait for the lock and open the stores, in a thread; None if the broker keeps nothing.

    Args:
        options: of the broker.
        on_lost: called, from a thread of the lock or lease, when that is lost.
        wait: what stop() interrupts; a cancelled task does it itself.

    Raises:
        JournalClosed: the wait was interrupted.
        JournalError: the storage is in use, damaged, or cannot be reached.
    """
    store = options.store
    if store is None:
        return None
    opening = asyncio.ensure_future(
        asyncio.to_thread(
            open_stores,
            store,
            on_lost=on_lost,
            is_backup=options.is_backup,
            is_pair=options.shares_store,
            wait=wait,
        )
    )
    try:
        return await _interruptible(opening, wait)
    except asyncio.CancelledError:
        try:
            # The lock may have become free at the same moment.
            opening.result().close(in_good_order=False)
        except JournalError as error:
            log.info("the start was ended: %s", error)
        raise


async def _interruptible(work: asyncio.Future[T], wait: StartWait) -> T:
    """Wait for a thread; if the task is cancelled, interrupt the thread and see it end first."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        wait.interrupt()
        await asyncio.wait((work,))
        # Retrieved, or asyncio logs an exception that was never retrieved.
        work.exception()
        raise


async def activate(stores: Stores, wait: StartWait) -> None:
    """Say in the stores that the broker serves, in a thread: a database may be away meanwhile.

    Args:
        stores: open and loaded.
        wait: what stop() interrupts.

    Raises:
        JournalClosed: it was interrupted.
        JournalError: the lock was lost, or cannot be written.
    """
    await _interruptible(asyncio.ensure_future(asyncio.to_thread(stores.activated)), wait)


class _Found(NamedTuple):
    """What was read."""

    bindings: BindingsImage
    messages: LoadedMessages
    prepared: Sequence[Prepared]


class StoredData:
    """What open stores have, from its reading on; bodies that are read later are kept by it.

    Args:
        stores: open, and not loaded.
        clock: for lines about a load that takes long.

    Attributes:
        ids: numbers for new records; of all threads only the one that reads, then the loop's.
        aside: bytes of messages that were spilled.
        settings: records of settings, connectors and bridges, in log order; once they are read.
    """

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self.ids = IdGenerator(stores.bindings)
        self.aside = SpillFile(stores.spill_folder)
        files = stores.message_files
        self._pinned = None if files is None else PinnedFiles(files, self.aside)
        self._found: _Found | None = None
        self.settings: Sequence[tuple[int, WireRecord]] = ()

    async def read(self, wait: StartWait) -> None:
        """Read both stores in a thread.

        Args:
            wait: what stop() interrupts.

        Raises:
            JournalClosed: it was interrupted.
            JournalError: something is damaged, or the storage fails.
        """
        reading = asyncio.ensure_future(asyncio.to_thread(self._read, wait))
        self._found = await _interruptible(reading, wait)
        self.ids.clean_up()

    def _read(self, wait: StartWait) -> _Found:
        stores, ids, aside = self._stores, self.ids, self.aside
        bindings = BindingsImage(ids)
        ids.skip_to(stores.bindings.load(bindings.take).max_id)
        wait.check()
        progress = _progress(wait, self._clock)
        if stores.message_files is None:
            messages = LoadedMessages(aside)
            result = stores.messages.load(messages.take, progress=progress)
        else:
            messages = LoadedMessages(aside, self._pinned)
            result = stores.message_files.load(on_cursor=messages.take_journal, progress=progress)
        aside.finish()
        ids.skip_to(result.max_id)
        return _Found(bindings, messages, result.prepared)

    def recover(self, parts: Parts) -> None:
        """Make addresses, queues, messages and transactions of what was read, once.

        Raises:
            JournalError: the storage fails.
            BrokerError: what was read cannot be.
        """
        found, self._found = self._found, None
        assert found is not None, "read() comes first"
        self.settings = found.bindings.settings
        parts.stored_settings.load(found.bindings.settings)
        parts.stored_permissions.load(found.bindings.settings)
        parts.stored_connectors.load(found.bindings.settings)
        recover(
            found.bindings,
            found.messages,
            found.prepared,
            postoffice=parts.postoffice,
            transactions=parts.transactions,
            storage=parts.storage,
            large=parts.large,
            parse_filter=parse_filter,
        )

    def close(self) -> None:
        """Keep no bodies any more. Idempotent."""
        self._found = None
        self.aside.close()
        if self._pinned is not None:
            self._pinned.close()


def _progress(wait: StartWait, clock: Clock) -> Callable[[int, int, int, int], None]:
    told_s = clock.monotonic_s()

    def tell(files: int, file_count: int, done: int, total: int) -> None:
        nonlocal told_s
        wait.check()
        now_s = clock.monotonic_s()
        if now_s - told_s >= _PROGRESS_S and total:
            told_s = now_s
            log.info(
                "loading messages: %d of %d files, %d %%",
                files,
                file_count,
                done * 100 // total,
            )

    return tell
