"""Writes what was appended to pages, many records at once, and tells when it is durable.

    append() ─▶ batch ─▶ (thread) write all, sync ─▶ pages told, durable += n ─▶ who waits is told
                  └ the next one fills meanwhile

One batch is written at a time, so what is durable is always all up to some append. No timer delays
anything: a batch begins with the turn of the event loop that appended to it, and what comes while
one is written makes up the next.

An append calls no waiter, not even where it has to wait for the disk. Its caller is in the middle
of something, and what a waiter does when it is called may be an append to the same page.

Room for what is appended is kept before (`keep_room`), so that a full disk refuses it before it
counts, and no write finds the disk full. A failed write or sync ends the storage as a failed
journal does: the end of a page is unknown then, and no success is reported.

Threads: the event loop's alone; writes and syncs are done by `PageWork`, room is kept without it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import JournalError, JournalFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.storage.context import Completions
    from broker.storage.page_folders import PageFolder
    from broker.storage.page_work import Job, PageWork

__all__ = ["PageWriter", "WrittenPage"]

# Appended and not written: with more the loop waits for the disk, as for a journal's full buffer.
_FILLING_SIZE_MAX: Final = 16 * 1024 * 1024


class WrittenPage(Protocol):
    """The page that bytes are for."""

    number: int
    # Its address is deleted: nothing is written to it any more.
    is_gone: bool

    @property
    def folder(self) -> PageFolder:
        """Where it lies."""

    def written(self, size: int) -> None:
        """So many bytes more can be read, and survive if they are to."""


class _Batch:
    """What is written at once."""

    __slots__ = ("durable_count", "is_synced", "pages", "size", "sizes")

    def __init__(self) -> None:
        self.pages: dict[WrittenPage, list[bytes]] = {}
        self.sizes: dict[WrittenPage, int] = {}
        self.durable_count = 0
        self.is_synced = False
        self.size = 0

    def add(self, page: WrittenPage, data: bytes) -> None:
        found = self.pages.get(page)
        if found is None:
            self.pages[page] = [data]
            self.sizes[page] = 0
        else:
            found.append(data)
        self.sizes[page] += len(data)
        self.size += len(data)

    def write(self) -> None:
        """In the thread. Pages of one folder come in their order."""
        for page, data in self.pages.items():
            if page.is_gone:
                continue
            page.folder.append(page.number, data)
            if self.is_synced:
                page.folder.sync(page.number)
        # Until a waiter is told of it, the bytes need not be kept.
        self.pages.clear()


class PageWriter:
    """See the module's text.

    Args:
        work: where it is done.
        completions: who waits.
        call_soon: of the event loop.
    """

    def __init__(
        self,
        work: PageWork,
        completions: Completions,
        call_soon: Callable[[Callable[[], object]], object],
    ) -> None:
        self._work = work
        self._completions = completions
        self._counter = completions.pages
        self._call_soon = call_soon
        self._filling = _Batch()
        self._is_called = False
        # Being written, and before it what is written and not reported yet.
        self._jobs: deque[Job] = deque()
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether all that was appended is written."""
        return not self._jobs and not self._filling.pages

    def keep_room(self, folder: PageFolder, page: int, size: int, least: int) -> int:
        """Have the disk keep room for the first bytes of a page; see PageFolder.

        Waits for nothing that is written or synced.

        Raises:
            JournalFull: there is no room; nothing has changed.
            JournalIOError: the device fails, which ends the storage.
        """
        try:
            return folder.keep_room(page, size, least)
        except JournalFull:
            raise
        except JournalError as error:
            self._completions.fail(error)
            raise

    def append(self, page: WrittenPage, data: bytes, *, is_durable: bool, is_synced: bool) -> None:
        """Put a record at the end of a page.

        Args:
            page: the last one of its folder.
            data: whole records.
            is_durable: it is waited for, until the end of the process would leave it.
            is_synced: and until a power failure would.
        """
        if self._filling.size > _FILLING_SIZE_MAX and self._jobs and self._jobs[-1].wait():
            self._write_filling()
        batch = self._filling
        batch.add(page, data)
        if is_durable:
            batch.durable_count += 1
            batch.is_synced = batch.is_synced or is_synced
            self._counter.appended += 1
        if not self._jobs and not self._is_called:
            self._is_called = True
            self._call_soon(self._begin)

    def _begin(self) -> None:
        self._is_called = False
        if not self._jobs and self._filling.pages and self._completions.failure is None:
            self._write_filling()

    def _write_filling(self) -> None:
        batch, self._filling = self._filling, _Batch()
        self._jobs.append(self._work.run(batch.write, lambda _, error: self._written(batch, error)))

    def _written(self, batch: _Batch, error: Exception | None) -> None:
        self._jobs.popleft()
        if error is not None:
            self._completions.fail(error)
            return
        for page, size in batch.sizes.items():
            page.written(size)
        self._counter.durable += batch.durable_count
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._counter.durable:
            try:
                waiting.popleft()[1]()
            except JournalError as failure:
                self._completions.fail(failure)
                return
        self._completions.run_due()
        self._begin()

    def after(self, callback: Callable[[], object]) -> None:
        """Call it once all that was appended is durable, before anybody who waits for more.

        In the order of the calls; at once where all is. Not at all if that fails.
        """
        if self._waiting or not self._counter.is_durable:
            self._waiting.append((self._counter.appended, callback))
        else:
            callback()

    def flush(self) -> None:
        """Return once all that was appended is written: for the stop."""
        while not self.is_idle and self._completions.failure is None:
            if not self._jobs:
                self._begin()
            assert self._jobs, "something is to be written"
            self._jobs[0].finish()
