"""A RecordStore in memory, with the points that a crash may fall between.

    append ─▶ entries … │ written │ synced │        told
              in the process   in the page cache   on the disk

Attached to an event loop, the store writes and syncs as the file journal does: one group at a time,
at once where somebody waits, else behind a timer. Each takes as long as the seed says. Without a
loop its caller does both.

`RecordLog` is what outlives the process. A crash cuts it (`RecordLog.crash`):

    killed           everything written stays, and any prefix of what was not
    without power    everything synced stays, and any prefix of what was not

A prefix, for a load cuts a torn tail from its first hole on (docs/format/journal.md, 6).

Faults: `Disk.is_full` refuses what adds and accepts what makes room; `Disk.fails` ends the store at
its next write or sync with EIO, after which it is unknown how much of the tail is there.
"""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Any, Self

from journal.errors import (
    DuplicateRecord,
    JournalClosed,
    JournalFull,
    JournalLocked,
    RecordTooLarge,
    TransactionFailed,
    UnknownRecord,
    UnknownTransaction,
    WrongState,
)
from journal.loaded import LoadResult
from journal.transaction import Transaction
from tests.sim.group_commit import GroupCommit
from tests.sim.record_log import (
    ADD,
    COMMIT,
    DELETE,
    NOTHING,
    PREPARE,
    ROLLBACK,
    UPDATE,
    Entry,
    MemoryRecord,
    RecordLog,
    data_of,
    number_of,
    operations_of,
    replay,
    tx_of,
    type_of,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

RECORD_SIZE_MAX = 500_000
# How long a record waits for others that has no caller waiting.
BUFFER_TIMEOUT_S = 0.0033


class MemoryStore(GroupCommit):
    """See the module's text.

    Args:
        log: what it writes to.
        clock: seconds, for the timer of records without a waiter.
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
        super().__init__(log, clock, buffer_timeout_s)
        self._syncs_transactional = sync_transactional
        self._syncs_others = sync_non_transactional
        self._live: set[int] = set()
        self._open: dict[int, list[Entry]] = {}
        self._failed: set[int] = set()
        self._next_tx = 1

    # --- lifecycle ----------------------------------------------------------------------------

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
        records, prepared, failed, max_id = replay(self.log.entries)
        if on_batch is not None and records:
            on_batch(records)
        self._live = {one.record_id for one in records if not one.is_update}
        for one in prepared:
            self._open[one.tx_id] = operations_of(one)
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

    def close(self) -> None:
        if self.state in ("closed", "new"):
            self.state = "closed"
            return
        try:
            if self.state == "loaded" and self.failure is None and not self.is_dead:
                self._sync_now(len(self.log.entries))
            self._is_resting = False
            while self.reap():
                self._is_resting = False
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
            if number_of(record_id) in self._live:
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
            ids, parts = list(map(number_of, record_ids)), list(bodies)
            if len(ids) != len(parts):
                raise ValueError("as many ids as bodies")
            encoded = [data_of(one) for one in parts]
            if not ids:
                return self._finish(Entry(NOTHING), self._syncs_others, **how)
            for one, data in zip(ids[:-1], encoded, strict=False):
                self._record(ADD, one, user_type, data, tx=tx, sync=False, wait=False)
            return self._record(ADD, ids[-1], user_type, encoded[-1], tx=tx, **how)

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
            entry = Entry(kind, number_of(record_id), type_of(user_type), data_of(body), tx_of(tx))
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
            tx_of(tx, is_needed=True)
            self._check_usable()
            self._check_open(tx)
            self._open.setdefault(tx, [])
            return self._end(Entry(PREPARE, body=data_of(extra), tx=tx), **how)

    def commit(self, tx: int, **how: Any) -> int:
        with self._lock:
            tx_of(tx, is_needed=True)
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
            tx_of(tx, is_needed=True)
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
