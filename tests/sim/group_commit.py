"""What of a store in memory writes, syncs and tells, one group at a time; see store.py."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from journal.errors import JournalClosed, JournalIOError, WrongState, WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.record_log import Entry, RecordLog


class GroupCommit:
    """The part of a store that knows of time, not of records.

    Args:
        log: what it writes to.
        clock: seconds, for the timer of records without a waiter.
        buffer_timeout_s: of that timer.

    Attributes:
        state: new, open, loaded, closed.
        is_dead: the process that had it is no more.
        failure: what ended it.
    """

    def __init__(self, log: RecordLog, clock: Callable[[], float], buffer_timeout_s: float) -> None:
        self.log = log
        self.state = "new"
        self.is_dead = False
        self.failure: JournalIOError | None = None
        self._clock = clock
        self._buffer_timeout_s = buffer_timeout_s
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._after_reap: Callable[[], object] | None = None
        # (position, has to be synced, callback), in append order.
        self._waiting: deque[tuple[int, bool, Callable[[Any], object]]] = deque()
        # Somebody waits for all up to here.
        self._wanted = 0
        self._deadline: float | None = None
        self._is_writing = False
        # An awaitable has ended, and its callbacks have not run.
        self._is_resting = False

    # --- group commit -------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self.is_dead:
            raise JournalClosed("the process was killed")
        if self.failure is not None:
            raise JournalClosed("the store has failed") from self.failure
        if self.state == "closed":
            raise JournalClosed("the store is closed")
        if self.state != "loaded":
            raise WrongState(f"the store is {self.state}")

    def _append(self, entry: Entry) -> int:
        self.log.entries.append(entry)
        return len(self.log.entries) - 1

    def _finish(
        self,
        entry: Entry,
        is_wanted: bool,
        *,
        sync: bool | None = None,
        done: Callable[[Any], object] | None = None,
        wait: bool = True,
        flush_now: bool = True,
    ) -> int:
        self._check_usable()
        is_synced = is_wanted if sync is None else sync
        ticket = self._append(entry)
        if done is not None:
            self._waiting.append((ticket, is_synced, done))
        if is_synced and done is None and wait:
            self._sync_now(ticket + 1)
        elif is_synced and flush_now:
            self._want(ticket + 1)
        else:
            self._want_later()
        return ticket

    def _want(self, position: int) -> None:
        self._wanted = max(self._wanted, position)
        self._deadline = None
        if self._loop is not None and not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._begin_write)

    def _want_later(self) -> None:
        if self._deadline is None:
            deadline = self._deadline = self._clock() + self._buffer_timeout_s
            if self._loop is not None:
                self._loop.call_later(self._buffer_timeout_s, self._is_late, deadline)

    def _is_late(self, deadline: float) -> None:
        if self._deadline == deadline and self._is_usable():
            self._want(len(self.log.entries))

    def _is_usable(self) -> bool:
        return self.state == "loaded" and not self.is_dead and self.failure is None

    def _begin_write(self) -> None:
        """What was appended by now is the next group."""
        loop, disk, log = self._loop, self.log.disk, self.log
        if loop is None or not self._is_usable():
            self._is_writing = False
            return
        disk.writes += 1
        loop.call_later(disk.duration(disk.write_s), self._write, len(log.entries))

    def _write(self, position: int) -> None:
        loop, disk, log = self._loop, self.log.disk, self.log
        if loop is None or not self._is_usable():
            self._is_writing = False
            return
        if disk.fails:
            self._fail("cannot write")
            return
        log.written = max(log.written, position)
        disk.syncs += 1
        loop.call_later(disk.duration(disk.sync_s), self._sync, position)

    def _sync(self, position: int) -> None:
        self._is_writing = False
        if self._loop is None or not self._is_usable():
            return
        if self.log.disk.is_failing:
            self._fail("cannot sync")
            return
        self._synced(position)
        self.reap()
        if self._wanted > self.log.synced and self._is_usable():
            self._want(self._wanted)

    def _synced(self, position: int) -> None:
        self.log.written = max(self.log.written, position)
        self.log.synced = max(self.log.synced, position)

    def _sync_now(self, position: int) -> None:
        """The caller that waits does it."""
        if self.log.disk.is_failing:
            self._fail("cannot sync")
        if self.failure is not None:
            raise self.failure
        self._deadline = None
        self._synced(max(position, len(self.log.entries)))
        self._reap_soon()

    def _fail(self, what: str) -> None:
        self.log.is_torn = True
        self.failure = JournalIOError(errno.EIO, what, "in memory")
        self._is_writing = False
        self._reap_soon()

    def _reap_soon(self) -> None:
        if self._loop is not None and self._waiting:
            self._loop.call_soon(self.reap)

    # --- completion ---------------------------------------------------------------------------

    @property
    def durable_ticket(self) -> int:
        return self.log.synced

    @property
    def last_ticket(self) -> int:
        return len(self.log.entries) - 1

    def wait(self, ticket: int) -> None:
        with self._lock:
            self._check_ticket(ticket)
            if ticket >= self.log.synced:
                self._sync_now(ticket + 1)

    def _check_ticket(self, ticket: int) -> None:
        if ticket >= len(self.log.entries):
            raise WrongUse(f"ticket {ticket} was not given")

    def durable(self, ticket: int) -> asyncio.Future[None]:
        with self._lock:
            self._check_ticket(ticket)
            loop = asyncio.get_running_loop()
            awaitable = _Awaitable(loop)
            # Behind those before it that were not told yet.
            places = (i for i, one in enumerate(self._waiting) if one[0] > ticket)
            place = next(places, len(self._waiting))
            self._waiting.insert(place, (ticket, True, awaitable))
            if self._loop is None:
                self._synced(len(self.log.entries))
                loop.call_soon(self.reap)
            elif ticket >= self.log.synced:
                self._want(ticket + 1)
            else:
                self._reap_soon()
            return awaitable.future

    def flush_now(self) -> None:
        with self._lock:
            if self._loop is None:
                self._sync_now(len(self.log.entries))
            elif len(self.log.entries) > self.log.synced:
                self._want(len(self.log.entries))

    def prewarm(self) -> None:
        """Nothing: it is warm."""

    def reserve_ends(self, count: int) -> bool:
        """Whether there is room; a full disk has none."""
        del count
        return not self.log.disk.is_full

    def sync(self) -> None:
        with self._lock:
            self._check_usable()
            self._sync_now(len(self.log.entries))

    def reap(self) -> int:
        with self._lock:
            if self.is_dead or self._is_resting:
                return 0
            if self._loop is None:
                self._sync_what_is_late()
            due: list[Callable[[Any], object]] = []
            while self._waiting and self._is_due(*self._waiting[0][:2]):
                due.append(self._waiting.popleft()[2])
                if isinstance(due[-1], _Awaitable):
                    break
        try:
            for done in due:
                done(self.failure)
                if isinstance(done, _Awaitable):
                    # What waits for it runs in the next turn, and before the next callback.
                    self._is_resting = True
                    done.loop.call_soon(self._go_on)
        finally:
            if due and self._after_reap is not None:
                self._after_reap()
        return len(due)

    def _go_on(self) -> None:
        self._is_resting = False
        self.reap()

    def _sync_what_is_late(self) -> None:
        """Without a loop: the caller that polls does it."""
        if self._deadline is not None and self._clock() >= self._deadline:
            self._deadline = None
            self._synced(len(self.log.entries))
        elif self._wanted > self.log.synced:
            self._synced(self._wanted)

    def _is_due(self, position: int, is_synced: bool) -> bool:
        if self.failure is not None:
            return True
        return position < (self.log.synced if is_synced else self.log.written)

    def compact(self) -> None:
        """Nothing: what is dead takes memory of one simulation."""

    def attach_loop(
        self, loop: asyncio.AbstractEventLoop, after_reap: Callable[[], object] | None = None
    ) -> None:
        """Let `loop` write, sync and tell from now on."""
        if after_reap is not None:
            self._after_reap = after_reap
        self._loop = loop
        if len(self.log.entries) > self.log.synced:
            self._want_later()

    def detach_loop(self) -> None:
        self._loop = None
        self._is_writing = False


class _Awaitable:
    """Ends a future in the place of a callback."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()

    def __call__(self, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)
