"""The SQL store: the records of one journal in one table of a database.

    add, update, delete ... ─▶ Batch ─▶ GroupWriter ─▶ ReconnectingWriter ─▶ RecordTable ─▶ database
                                │
                             LiveIds

    here            the public object: lifecycle, completion
    transactional   appends in transactions
    appends         all other appends, and the checks of all
    batch           what a transaction of the database has to do
    writer          when, and who waits for it
    reconnecting    what if the database is not there
    record_tables   how, on each database
    transactions    what has not ended
    loading         what the rows mean

Life: SqlStore(options) ─ open() ─ load() ─ appends ─ close(). Like the file journal: a store that
failed refuses everything with JournalClosed, whose cause says why, and a new one finds out what is
there.

Threads: any number may append and wait. The store has one thread of its own, its writer; another
renews the lease when the store was given none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Self

from jdbcstore.leased_table import LeasedTable
from jdbcstore.loading import TableLoader
from jdbcstore.rows import ROW_FIELDS_SIZE
from jdbcstore.transactional import TransactionalAppends
from jdbcstore.writer import GroupWriter
from journal.errors import (
    JournalClosed,
    JournalError,
    JournalIOError,
    WrongUse,
    not_loaded,
    not_to_load,
    not_to_open,
)
from journal.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jdbcstore.database import Database
    from jdbcstore.errors import LeaseLost
    from jdbcstore.lease import Lease
    from jdbcstore.options import DatabaseStoreOptions
    from journal.api import Progress
    from journal.completion import Completion
    from journal.loaded import LoadResult

__all__ = ["SqlStore"]

log = logging.getLogger("jdbcstore")

# Stores that this process has open: a child of it must not touch them, nor end their connections.
_opened: weakref.WeakSet[SqlStore] = weakref.WeakSet()
_of_the_parent: list[object] = []


def _after_fork() -> None:
    """In a child: it has no thread of a store's, and the connections are its parent's."""
    for store in list(_opened):
        store.leave_to_parent()
    _opened.clear()


os.register_at_fork(after_in_child=_after_fork)


class SqlStore(TransactionalAppends):
    """A journal.RecordStore whose records are rows of a table.

    Args:
        options: of the database; `connection_url` at least.
        table_name: None takes `options.message_table_name`.
        database: what other stores of this broker connect through as well; the store makes, and
            closes, one of its own where none is given.
        lease: what other stores of this broker hold as well; where none is given the store takes
            the primary lock of `options.node_manager_store_table_name`, and gives it up at its end.
        sync_transactional: commit, prepare and rollback wait for the database unless told
            otherwise (journal-sync-transactional).
        sync_non_transactional: the same for all other records (journal-sync-non-transactional).
    """

    def __init__(
        self,
        options: DatabaseStoreOptions,
        table_name: str | None = None,
        *,
        database: Database | None = None,
        lease: Lease | None = None,
        sync_transactional: bool = True,
        sync_non_transactional: bool = True,
    ) -> None:
        super().__init__(
            sync_transactional=sync_transactional, sync_non_transactional=sync_non_transactional
        )
        self.options = options
        # The lease's thread must not keep a store alive that the program has dropped.
        fail = weakref.WeakMethod(self.fail)

        def lost(error: LeaseLost) -> None:
            if (told := fail()) is not None:
                told(error)

        self.leased = LeasedTable(
            options, table_name or options.message_table_name, database, lease, lost
        )

    # --- lifecycle ----------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, make the table if it is missing, and take the lease if none was given.

        Raises:
            JournalLocked: another store has the lease.
            JournalIOError: the database cannot be reached, or refuses.
            WrongState: not new.
        """
        if self.state != "new":
            raise not_to_open("store", self.state)
        self.leased.open()
        self.body_size_max = self.leased.table.body_size_max
        self.state = "open"
        self._owner_pid = os.getpid()
        _opened.add(self)

    def load(
        self,
        on_batch: Callable[[Sequence[Any]], object] | None = None,
        *,
        progress: Callable[[int, int, int, int], object] | None = None,
    ) -> LoadResult:
        """Read everything back, then accept appends.

        A database that goes away meanwhile is waited for as when it is written to, and reading goes
        on behind the last row.

        Args:
            on_batch: called with each batch of SqlRecord, in the order of the table, while more are
                read.
            progress: called as progress(0 or 1, 1, rows read, rows in all): a table is one file.

        Returns:
            A LoadResult; its `prepared` has the prepared transactions, to be committed or rolled
            back by their `tx_id`.

        Raises:
            JournalIOError: the database fails.
            UnsupportedFormat: a row of a kind that no journal writes.
            LeaseLost: somebody else has the store now.
            WrongState: not open, or loaded already.
        """
        if self.state != "open":
            raise not_to_load("store", self.state)
        loader = TableLoader(self.live, on_batch)
        self.state = "failed"
        rows_total = 0
        if progress is not None:
            rows_total = self.leased.reconnecting.run(self.leased.table.count)
        for rows in self.leased.reconnecting.rows():
            loader.take(rows)
            if progress is not None:
                progress(0, 1, loader.record_count, max(rows_total, loader.record_count))
        result = loader.finish()
        failed = [tx.tx_id for tx in result.failed]
        if loader.committed or failed:
            self.leased.reconnecting.run(lambda: self.leased.table.settle(loader.committed, failed))
        for tx_id in failed:
            log.warning("rolled back open transaction %d", tx_id)
        if progress is not None:
            progress(1, 1, loader.record_count, loader.record_count)
        self._open_txs = {one.tx_id: one for one in loader.prepared_transactions()}
        self.next_seq = loader.max_seq + 1
        self._next_tx_id = max(0, result.max_id, loader.max_tx_id)
        self.writer = GroupWriter(
            self.leased.reconnecting.write,
            self.options.journal_sync_period_ms / 1000,
            f"sql-writer-{self.leased.name}",
        )
        self.writer.start()
        self.state = "loaded"
        return result

    def close(self) -> None:
        """Make everything accepted durable, then give up the connection and the lease. Idempotent.

        Waits for the end of a write that runs, also when the store has failed.

        Raises:
            JournalIOError: the store had failed, or fails now; it is closed all the same.
        """
        if self.state in ("closed", "forked"):
            return
        _opened.discard(self)
        writer, failure = self.writer, None
        self.state = "closed"
        if writer is not None:
            if writer.tickets.error is None:
                self.stage_open()
            writer.stop()
            writer.tickets.reap()
            failure = self.failure = writer.tickets.error
            writer.tickets.close()
        self.leased.close()
        if isinstance(failure, JournalIOError):
            raise failure

    def __enter__(self) -> Self:
        """Open it."""
        self.open()
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Open it in a thread: the database is waited for. load() is for the caller."""
        await asyncio.to_thread(self.open)
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Call what is due in the loop, and close in a thread, since the database is waited for."""
        if self.state == "loaded" and self.writer is not None:
            with contextlib.suppress(JournalError):  # close() raises what ended the store.
                await asyncio.to_thread(self.sync)
            self.writer.tickets.reap()
            self.writer.tickets.detach()
        await asyncio.to_thread(self.close)

    def leave_to_parent(self) -> None:
        """This process was forked while the store was open: nothing here is its own."""
        _of_the_parent.append((self.writer, self.leased))
        self.state = "forked"
        self.writer = None
        self.failure = JournalClosed(
            f"{self.leased.name} is open in process {self._owner_pid}, which this one was forked"
            " from: a child cannot use it"
        )

    def __del__(self) -> None:
        """Tell of a store that was dropped while it was open."""
        if self.state in ("open", "loaded"):
            warnings.warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        what = f"loaded, {len(self.live)} live records" if self.state == "loaded" else self.state
        return f"<SqlStore {self.leased.name}: {what}>"

    def fail(self, error: Exception) -> None:
        """End the store: present waiters and all later calls get `error`.

        For the holder of a lease that covers several stores, when the lease is lost.
        """
        if self.writer is not None:
            self.writer.fail(error)

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return self.state == "closed"

    @property
    def record_size_max(self) -> int:
        """Bytes of the largest row: its body and its other columns."""
        return self.body_size_max + ROW_FIELDS_SIZE

    def transaction(self, tx: int | None = None, *, sync: bool | None = None) -> Transaction:
        """A transaction as a context manager: `with store.transaction() as tx: tx.add(...)`.

        The end of the block commits, an exception rolls back; `async with` awaits the commit.

        Args:
            tx: its id; None takes one of begin().
            sync: of the commit; None: as the store was told.
        """
        return Transaction(self, self.begin() if tx is None else tx, sync=sync)

    # --- completion ---------------------------------------------------------------------------

    def wait(self, ticket: int) -> None:
        """Return once everything up to `ticket` is durable; requests it if no caller has.

        Raises:
            JournalIOError: the database failed; what is beyond `durable_ticket` is unknown.
            WrongUse: this store has not given that ticket.
        """
        self._given(ticket).wait(ticket)

    def sync(self) -> None:
        """Return once everything accepted so far is durable.

        Raises:
            JournalIOError: the database failed.
        """
        self.ensure_usable()
        self._loaded().sync()

    def flush_now(self) -> None:
        """Let nothing wait for jdbc-journal-sync-period that was appended without flush_now.

        Returns at once.
        """
        self._loaded().flush_now()

    def prewarm(self) -> None:
        """Nothing: beside a round trip to the database the writer's waking does not count."""

    def reserve_ends(self, count: int) -> bool:
        """Nothing: a database keeps no room. True."""
        return True

    def durable(self, ticket: int) -> Completion:
        """An awaitable of the running loop, done once everything up to `ticket` is durable.

        Requests it if no caller has. A waiter that gives up, by a timeout say, delays no other.

        Raises:
            WrongUse: this store has not given that ticket.
        """
        writer = self._given(ticket)
        writer.want(ticket)
        return writer.tickets.durable(ticket)

    def reap(self) -> int:
        """Call the `done` callbacks and end the awaitables that are due, in append order; how many.

        An event loop does it by itself; without one, call on_event() when fileno() is readable.
        """
        return 0 if self.writer is None else self.writer.tickets.reap()

    def fileno(self) -> int:
        """A descriptor that becomes readable when there is something to reap."""
        return self._loaded().tickets.fileno()

    def on_event(self) -> None:
        """Reap, and have the next completion make fileno() readable again."""
        self._loaded().tickets.take_event()

    def attach_loop(
        self, loop: asyncio.AbstractEventLoop, after_reap: Callable[[], object] | None = None
    ) -> None:
        """Let `loop` reap from now on. durable() does it; for callbacks call it yourself.

        Args:
            loop: watches fileno().
            after_reap: called without arguments behind each reap() that called a `done`: once for
                all of them. None leaves the one of the call before.
        """
        self._loaded().tickets.attach(loop, after_reap)

    def detach_loop(self) -> None:
        """Take the descriptor out of the event loop."""
        if self.writer is not None:
            self.writer.tickets.detach()

    @property
    def durable_ticket(self) -> int:
        """Tickets below this number are durable."""
        return self._loaded().tickets.durable_below

    def compact(self, progress: Progress | None = None) -> bool:
        """Do nothing: what is deleted is gone from the table at once. False."""
        del progress
        self.ensure_usable()
        return False

    def reclaim(self) -> int:
        """Do nothing and return 0: a database has no files to free."""
        self.ensure_usable()
        return 0

    def row_count(self) -> int:
        """How many rows the table has; callers must not append meanwhile.

        Raises:
            JournalIOError: the database fails.
        """
        self.sync()
        with self.leased.failures():
            return self.leased.table.count()

    def stats(self) -> dict[str, int]:
        """Counters since load(), by name."""
        writer = self._loaded()
        return {
            "commits": writer.commits,
            "live_records": len(self.live),
            "outages": self.leased.reconnecting.outages,
            "read_back": self.leased.reconnecting.read_back,
        }

    def __len__(self) -> int:
        """Number of live records."""
        return len(self.live)

    def __contains__(self, record_id: int) -> bool:
        """Whether the record is live."""
        return record_id in self.live

    # --- what every call needs ----------------------------------------------------------------

    def _given(self, ticket: int) -> GroupWriter:
        """The writer, if it gave that ticket: nothing would end the wait for another."""
        writer = self._loaded()
        if ticket > (last := self.last_ticket()):
            raise WrongUse(f"ticket {ticket} was not given by this store: the last one is {last}")
        return writer

    def _loaded(self) -> GroupWriter:
        if self.writer is None:
            if self.state == "forked" and self.failure is not None:
                raise self.failure
            raise not_loaded("store", self.state)
        return self.writer
