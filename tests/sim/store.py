"""A RecordStore in memory, with the points that a crash may fall between.

    append ─▶ entries … │ written │ synced │        told
              in the process   in the page cache   on the disk

Attached to an event loop, the store writes and syncs as the file journal does: one group at a time,
at once where somebody waits, else behind a timer. Each takes as long as the seed says. Without a
loop whoever waits does both.

`RecordLog` is what outlives the process. A crash cuts it (`RecordLog.crash`):

    killed           everything written stays, and any prefix of what was not
    without power    everything synced stays, and any prefix of what was not

A prefix, for a load cuts a torn tail from its first hole on (docs/format/journal.md, 6).

Faults: `Disk.is_full` refuses what adds and accepts what makes room; `Disk.fails` ends the store at
its next write or sync with EIO, after which it is unknown how much of the tail is there.
"""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from journal.errors import (
    DuplicateRecord,
    JournalClosed,
    JournalFull,
    JournalIOError,
    JournalLocked,
    RecordTooLarge,
    TransactionFailed,
    UnknownRecord,
    UnknownTransaction,
    WrongState,
    WrongUse,
)
from journal.loaded import DeletedRecord, FailedTransaction, LoadResult, PreparedTransaction
from journal.transaction import Transaction

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

NOTHING, ADD, UPDATE, DELETE, PREPARE, COMMIT, ROLLBACK = range(7)
RECORD_SIZE_MAX = 500_000
# How long a record waits for others that has no caller waiting.
BUFFER_TIMEOUT_S = 0.0033


class Entry(NamedTuple):
    """One record of the log; `tx` None counts by itself."""

    kind: int
    record_id: int = 0
    user_type: int = 0
    body: bytes = b""
    tx: int | None = None


class MemoryRecord(NamedTuple):
    """A live record, as a load gives it."""

    record_id: int
    is_update: bool
    user_type: int
    body: bytes
    compact_count: int = 0


class Disk:
    """What the stores of one node have in common, and its faults.

    Attributes:
        write_s, sync_s: least and most seconds of each.
        is_full: what adds is refused.
        fails: the next write or sync fails.
        writes, syncs: so far.
    """

    def __init__(self, seeded: random.Random) -> None:
        self.seeded = seeded
        self.write_s = (0.00001, 0.0002)
        self.sync_s = (0.0001, 0.002)
        self.is_full = False
        self.fails = False
        self.writes = self.syncs = 0

    def duration(self, bounds: tuple[float, float]) -> float:
        """Seconds, by the seed."""
        return bounds[0] + self.seeded.random() * (bounds[1] - bounds[0])


class RecordLog:
    """What outlives a store.

    Attributes:
        entries: in log order.
        written, synced: so many of them.
        is_torn: a write failed: how much is there is not known.
        owner: the store that is open.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.entries: list[Entry] = []
        self.written = self.synced = 0
        self.is_torn = False
        self.owner: MemoryStore | None = None

    def crash(self, seeded: random.Random, *, is_power: bool) -> int:
        """Leave one of the states that a crash may; how many entries were lost."""
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.is_dead = True
        count = len(self.entries)
        least = self.synced if is_power or self.is_torn else self.written
        del self.entries[seeded.randint(least, count) :]
        self.written = self.synced = len(self.entries)
        self.is_torn = False
        return count - self.written


class MemoryStore:
    """See the module's text.

    Args:
        log: what it writes to.
        clock: seconds, for the timer of what nobody waits for.
        buffer_timeout_s: of that timer.
        sync_transactional, sync_non_transactional: whether records wait unless told otherwise.
    """

    record_size_max = RECORD_SIZE_MAX

    def __init__(
        self,
        log: RecordLog,
        *,
        clock: Callable[[], float] = time.monotonic,
        buffer_timeout_s: float = BUFFER_TIMEOUT_S,
        sync_transactional: bool = True,
        sync_non_transactional: bool = True,
    ) -> None:
        self.log = log
        self.state = "new"
        # The process that had it is no more.
        self.is_dead = False
        self.failure: JournalIOError | None = None
        self._clock = clock
        self._buffer_timeout_s = buffer_timeout_s
        self._syncs_transactional = sync_transactional
        self._syncs_others = sync_non_transactional
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._live: set[int] = set()
        self._open: dict[int, list[Entry]] = {}
        self._failed: set[int] = set()
        self._next_tx = 1
        # (position, has to be synced, callback), in append order.
        self._waiting: deque[tuple[int, bool, Callable[[Any], object]]] = deque()
        # Somebody waits for all up to here.
        self._wanted = 0
        self._deadline: float | None = None
        self._is_writing = False

    # --- life ---------------------------------------------------------------------------------

    def open(self) -> None:
        if self.state != "new":
            raise WrongState(f"cannot open a store that is {self.state}")
        if self.log.owner is not None:
            raise JournalLocked("another store has the log")
        self.log.owner = self
        self.state = "open"

    def load(
        self,
        on_batch: Callable[[Sequence[MemoryRecord]], object] | None = None,
        *,
        progress: Callable[[int, int, int, int], object] | None = None,
    ) -> LoadResult:
        if self.state != "open":
            raise WrongState(f"cannot load a store that is {self.state}")
        if progress is not None:
            progress(1, 1, 0, 0)
        records, prepared, failed, max_id = self._replay()
        if on_batch is not None and records:
            on_batch(records)
        self._live = {one.record_id for one in records if not one.is_update}
        for one in prepared:
            self._open[one.tx_id] = _operations(one)
        self.state = "loaded"
        for lost in failed:
            self._append(Entry(ROLLBACK, tx=lost.tx_id))
        return LoadResult(
            record_count=len(records),
            max_id=max_id,
            delivered_count=len(records),
            prepared=prepared,
            failed=failed,
        )

    def _replay(
        self,
    ) -> tuple[list[MemoryRecord], list[PreparedTransaction], list[FailedTransaction], int]:
        records: list[MemoryRecord | None] = []
        places: dict[int, list[int]] = {}
        transactions: dict[int, list[Entry]] = {}
        extras: dict[int, bytes] = {}
        max_id = -1

        def apply(entry: Entry) -> None:
            if entry.kind == DELETE:
                for place in places.pop(entry.record_id, ()):
                    records[place] = None
                return
            is_update = entry.kind == UPDATE
            places.setdefault(entry.record_id, []).append(len(records))
            records.append(MemoryRecord(entry.record_id, is_update, entry.user_type, entry.body))

        for entry in self.log.entries:
            kind, tx = entry.kind, entry.tx
            if kind in (ADD, UPDATE):
                max_id = max(max_id, entry.record_id)
            if kind == NOTHING:
                continue
            if tx is None:
                apply(entry)
            elif kind == COMMIT:
                extras.pop(tx, None)
                operations = transactions.pop(tx, ())
                for operation in operations:
                    if operation.kind != DELETE:
                        apply(operation)
                for operation in operations:
                    if operation.kind == DELETE:
                        apply(operation)
            elif kind == ROLLBACK:
                extras.pop(tx, None)
                transactions.pop(tx, None)
            elif kind == PREPARE:
                transactions.setdefault(tx, [])
                extras[tx] = entry.body
            else:
                transactions.setdefault(tx, []).append(entry)
        prepared, failed = [], []
        for tx, operations in transactions.items():
            parts = _parts(operations)
            if tx in extras:
                prepared.append(PreparedTransaction(tx, extras[tx], *parts))
            else:
                failed.append(FailedTransaction(tx, *parts))
        return [one for one in records if one is not None], prepared, failed, max_id

    def close(self) -> None:
        if self.state in ("closed", "new"):
            self.state = "closed"
            return
        try:
            if self.state == "loaded" and self.failure is None and not self.is_dead:
                self._sync_now(len(self.log.entries))
            while self.reap():
                pass
        finally:
            self.state = "closed"
            self._loop = None
            if self.log.owner is self:
                self.log.owner = None
        if self.failure is not None:
            raise JournalClosed("the store has failed") from self.failure

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._live)

    # --- appends ------------------------------------------------------------------------------

    def add(self, record_id: int, user_type: int, body: Any, **how: Any) -> int:
        return self._record(ADD, record_id, user_type, body, **how)

    def update(self, record_id: int, user_type: int, body: Any, **how: Any) -> int:
        return self._record(UPDATE, record_id, user_type, body, **how)

    def delete(self, record_id: int, body: Any = b"", **how: Any) -> int:
        return self._record(DELETE, record_id, 0, body, makes_room=True, **how)

    def try_update(self, record_id: int, user_type: int, body: Any, **how: Any) -> bool:
        return self._try(UPDATE, record_id, user_type, body, **how)

    def try_delete(self, record_id: int, **how: Any) -> bool:
        return self._try(DELETE, record_id, 0, b"", makes_room=True, **how)

    def _try(self, kind: int, record_id: int, user_type: int, body: Any, **how: Any) -> bool:
        with self._lock:
            if _number(record_id) in self._live:
                self._record(kind, record_id, user_type, body, **how)
                return True
            how.pop("makes_room", None)
            self._finish(Entry(NOTHING), self._syncs_others, **how)
            return False

    def add_many(
        self,
        record_ids: Sequence[int],
        user_type: int,
        bodies: Sequence[Any],
        *,
        tx: int | None = None,
        **how: Any,
    ) -> int:
        with self._lock:
            ids, parts = list(map(_number, record_ids)), list(bodies)
            if len(ids) != len(parts):
                raise ValueError("as many ids as bodies")
            datas = [_data(one) for one in parts]
            if not ids:
                return self._finish(Entry(NOTHING), self._syncs_others, **how)
            for one, data in zip(ids[:-1], datas, strict=False):
                self._record(ADD, one, user_type, data, tx=tx, sync=False, wait=False)
            return self._record(ADD, ids[-1], user_type, datas[-1], tx=tx, **how)

    def _record(
        self,
        kind: int,
        record_id: int,
        user_type: int,
        body: Any,
        *,
        tx: int | None = None,
        makes_room: bool = False,
        **how: Any,
    ) -> int:
        with self._lock:
            entry = Entry(kind, _number(record_id), _type(user_type), _data(body), _tx(tx))
            self._check_usable()
            if tx is not None and tx in self._failed:
                raise TransactionFailed(f"transaction {tx} has failed")
            try:
                self._check(entry, makes_room=makes_room)
            except (RecordTooLarge, JournalFull):
                if tx is not None:
                    self._failed.add(tx)
                raise
            if tx is not None:
                self._open.setdefault(tx, []).append(entry)
                is_wanted = False
            else:
                self._apply(entry)
                is_wanted = self._syncs_others
            return self._finish(entry, is_wanted, **how)

    def _check(self, entry: Entry, *, makes_room: bool) -> None:
        if len(entry.body) >= RECORD_SIZE_MAX:
            raise RecordTooLarge(f"{len(entry.body)} bytes")
        if self.log.disk.is_full and not makes_room:
            raise JournalFull(errno.ENOSPC, "the disk is full")
        if entry.tx is not None:
            return
        is_live = entry.record_id in self._live
        if entry.kind == ADD and is_live:
            raise DuplicateRecord(f"record {entry.record_id} is live")
        if entry.kind != ADD and not is_live:
            raise UnknownRecord(f"record {entry.record_id} is not live")

    def _apply(self, entry: Entry) -> None:
        if entry.kind == DELETE:
            self._live.discard(entry.record_id)
        elif entry.kind == ADD:
            self._live.add(entry.record_id)

    def add_durable(self, record_id: int, user_type: int, body: Any) -> asyncio.Future[None]:
        return self.durable(self.add(record_id, user_type, body, sync=True, wait=False))

    # --- transactions -------------------------------------------------------------------------

    def begin(self) -> int:
        while self._next_tx in self._open or self._next_tx in self._failed:
            self._next_tx += 1
        self._next_tx += 1
        return self._next_tx - 1

    def transaction(self, *, sync: bool | None = None) -> Transaction:
        return Transaction(self, self.begin(), sync=sync)

    def prepare(self, tx: int, extra: Any = b"", **how: Any) -> int:
        with self._lock:
            _tx(tx, is_needed=True)
            self._check_usable()
            self._check_open(tx)
            self._open.setdefault(tx, [])
            return self._end(Entry(PREPARE, body=_data(extra), tx=tx), **how)

    def commit(self, tx: int, **how: Any) -> int:
        with self._lock:
            _tx(tx, is_needed=True)
            self._check_usable()
            self._check_open(tx)
            if tx not in self._open:
                raise UnknownTransaction(f"transaction {tx} is not open")
            operations = self._open.pop(tx)
            for operation in sorted(operations, key=lambda one: one.kind == DELETE):
                self._apply(operation)
            return self._end(Entry(COMMIT, tx=tx), **how)

    def rollback(self, tx: int, **how: Any) -> int:
        with self._lock:
            _tx(tx, is_needed=True)
            self._check_usable()
            if tx not in self._open:
                if tx not in self._failed:
                    raise UnknownTransaction(f"transaction {tx} is not open")
                self._failed.discard(tx)
                return self._end(Entry(NOTHING), **how)
            self._failed.discard(tx)
            del self._open[tx]
            return self._end(Entry(ROLLBACK, tx=tx), **how)

    def _check_open(self, tx: int) -> None:
        if tx in self._failed:
            raise TransactionFailed(f"transaction {tx} has failed")

    def _end(self, entry: Entry, **how: Any) -> int:
        return self._finish(entry, self._syncs_transactional, **how)

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
        if self.log.disk.fails:
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
        """Whoever waits does it."""
        if self.log.disk.fails:
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
            if self.is_dead:
                return 0
            if self._loop is None:
                self._sync_what_is_late()
            due: list[Callable[[Any], object]] = []
            while self._waiting and self._is_due(*self._waiting[0][:2]):
                due.append(self._waiting.popleft()[2])
                if isinstance(due[-1], _Awaitable):
                    break
        for done in due:
            done(self.failure)
            if isinstance(done, _Awaitable):
                # What waits for it runs in the next turn, and before the next callback.
                done.loop.call_soon(self.reap)
        return len(due)

    def _sync_what_is_late(self) -> None:
        """Without a loop: whoever polls does it."""
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

    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let `loop` write, sync and tell from now on."""
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


def _parts(
    operations: list[Entry],
) -> tuple[tuple[MemoryRecord, ...], tuple[DeletedRecord, ...]]:
    records = tuple(
        MemoryRecord(one.record_id, one.kind == UPDATE, one.user_type, one.body)
        for one in operations
        if one.kind != DELETE
    )
    return records, tuple(
        DeletedRecord(one.record_id, one.body) for one in operations if one.kind == DELETE
    )


def _operations(prepared: PreparedTransaction) -> list[Entry]:
    entries = [
        Entry(UPDATE if one.is_update else ADD, one.record_id, one.user_type, one.body)
        for one in prepared.records
    ]
    return entries + [Entry(DELETE, one.record_id) for one in prepared.deletes]


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no id")
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} is no id")
    return value


def _tx(value: Any, *, is_needed: bool = False) -> int | None:
    return value if value is None and not is_needed else _number(value)


def _type(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no user type")
    if not 0 <= value < 256:
        raise ValueError(f"{value} is no user type")
    return value


def _data(body: Any) -> bytes:
    return body if type(body) is bytes else bytes(memoryview(body))
