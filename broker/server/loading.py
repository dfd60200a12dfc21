"""What a start reads of its stores, once they are open.

    StoredData.read()  in a thread: reads both stores, so that probes are answered meanwhile
    StoredData.take()  in the event loop, which makes addresses, queues and transactions of it

The thread is interrupted by a StartWait, behind the file, or the rows, that it is at.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.recovery.images import BindingsImage
from broker.recovery.loaded_messages import LoadedMessages
from broker.server.opening import interruptible
from broker.storage.identifiers import IdGenerator
from broker.storage.pinned_files import PinnedFiles
from broker.storage.spill_file import SpillFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.environment import Clock
    from broker.recovery.images import Prepared
    from broker.storage.open import Stores
    from broker.storage.waiting import StartWait

__all__ = ["Found", "StoredData"]

log = logging.getLogger("broker")

_PROGRESS_S: Final = 2.0  # Between two lines about a load.


class Found(NamedTuple):
    """What was read.

    Attributes:
        bindings: of the bindings journal.
        messages: of the message journal.
        prepared: transactions that wait for a decision.
    """

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
    """

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self.ids = IdGenerator(stores.bindings)
        self.aside = SpillFile(stores.spill_folder)
        files = stores.message_files
        self._pinned = None if files is None else PinnedFiles(files, self.aside)
        self._found: Found | None = None

    async def read(self, wait: StartWait) -> None:
        """Read both stores in a thread.

        Args:
            wait: what stop() interrupts.

        Raises:
            JournalClosed: it was interrupted.
            JournalError: something is damaged, or the storage fails.
        """
        reading = asyncio.ensure_future(asyncio.to_thread(self._read, wait))
        self._found = await interruptible(reading, wait)
        self.ids.clean_up()

    def _read(self, wait: StartWait) -> Found:
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
        return Found(bindings, messages, result.prepared)

    def take(self) -> Found:
        """Give what was read, once."""
        found, self._found = self._found, None
        assert found is not None, "read() comes first"
        return found

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
