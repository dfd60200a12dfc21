"""The SQL store: the records of one journal in one table of a database.

    add, update, delete ... ─▶ Batch ─▶ GroupWriter ─▶ Rider ─▶ RecordTable ─▶ database
                                │
                             LiveIds

    here            the public object: life, checks, appends
    batch           what a transaction of the database has to do
    writer          when, and who waits for it
    riding          what if the database is not there
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

import logging
from typing import TYPE_CHECKING, Any, Self

from jdbcstore.batch import StagedEnd
from jdbcstore.live import LiveIds
from jdbcstore.loading import TableLoader
from jdbcstore.place import Place
from jdbcstore.rows import (
    ADD_RECORD,
    ADD_RECORD_TX,
    DELETE_RECORD_TX,
    PREPARE_RECORD,
    ROW_FIELDS_SIZE,
    UPDATE_RECORD,
    UPDATE_RECORD_TX,
)
from jdbcstore.transactions import OpenTransaction, Operation
from jdbcstore.writer import GroupWriter
from journal.errors import (
    DuplicateRecord,
    JournalClosed,
    JournalIOError,
    RecordTooLarge,
    TransactionFailed,
    UnknownRecord,
    UnknownTransaction,
    WrongState,
    WrongUse,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from jdbcstore.database import Database
    from jdbcstore.lease import Lease
    from jdbcstore.options import DatabaseStoreOptions
    from journal.api import Done, Progress
    from journal.completion import Completion
    from journal.loaded import LoadResult

__all__ = ["SqlStore"]

log = logging.getLogger("jdbcstore")

ID_MIN, ID_MAX = -(2**63), 2**63 - 1


class SqlStore:
    """A RecordStore in a table; see journal.api and the module's text.

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
        self.options = options
        self.place = Place(
            options, table_name or options.message_table_name, database, lease, self.fail
        )
        self.state = "new"
        self._sync_transactional = sync_transactional
        self._sync_non_transactional = sync_non_transactional
        self._live = LiveIds()
        self._open_txs: dict[int, OpenTransaction] = {}
        self._next_seq = 1
        self._next_tx_id = 0
        self._body_size_max = 0
        self._writer: GroupWriter | None = None
        self._failure: Exception | None = None

    # --- life ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, make the table if it is missing, and take the lease if none was given.

        Raises:
            JournalLocked: another store has the lease.
            JournalIOError: the database cannot be reached, or refuses.
            WrongState: not new.
        """
        if self.state != "new":
            raise WrongState(f"cannot open a store that is {self.state}")
        self.place.open()
        self._body_size_max = self.place.table.body_size_max
        self.state = "open"

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

        Raises:
            JournalIOError: the database fails.
            UnsupportedFormat: a row of a kind that no journal writes.
            LeaseLost: somebody else has the store now.
            WrongState: not open, or loaded already.
        """
        if self.state != "open":
            raise WrongState(f"cannot load a store that is {self.state}")
        loader = TableLoader(self._live, on_batch)
        self.state = "failed"
        rows_total = 0
        if progress is not None:
            rows_total = self.place.rider.run(self.place.table.count)
        for rows in self.place.rider.rows():
            loader.take(rows)
            if progress is not None:
                progress(0, 1, loader.record_count, max(rows_total, loader.record_count))
        result = loader.finish()
        failed = [tx.tx_id for tx in result.failed]
        if loader.committed or failed:
            self.place.rider.run(lambda: self.place.table.settle(loader.committed, failed))
        for tx_id in failed:
            log.warning("transaction %d was left open: it is gone", tx_id)
        if progress is not None:
            progress(1, 1, loader.record_count, loader.record_count)
        self._open_txs = {one.tx_id: one for one in loader.prepared_transactions()}
        self._next_seq = loader.max_seq + 1
        self._next_tx_id = max(result.max_id, loader.max_tx_id)
        self._writer = GroupWriter(
            self.place.rider.write,
            self.options.journal_sync_period_ms / 1000,
            f"sql-writer-{self.place.name}",
        )
        self._writer.start()
        self.state = "loaded"
        return result

    def close(self) -> None:
        """Make everything accepted durable, then give up the connection and the lease. Idempotent.

        Raises:
            JournalIOError: the store had failed, or fails now; it is closed all the same.
        """
        if self.state == "closed":
            return
        writer, failure = self._writer, None
        self.state = "closed"
        if writer is not None:
            self._stage_open(writer)
            writer.stop()
            writer.tickets.reap()
            failure = self._failure = writer.tickets.error
            writer.tickets.close()
        self.place.close()
        if isinstance(failure, JournalIOError):
            raise failure

    def __enter__(self) -> Self:
        """Open it."""
        self.open()
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    def fail(self, error: Exception) -> None:
        """End it: whoever waits, and whoever asks from now on, gets `error`.

        For whoever holds the lease of several stores and hears that it was lost.
        """
        if self._writer is not None:
            self._writer.fail(error)

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return self.state == "closed"

    @property
    def record_size_max(self) -> int:
        """Bytes of the largest row: its body and its other columns."""
        return self._body_size_max + ROW_FIELDS_SIZE

    # --- records ------------------------------------------------------------------------------

    def add(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Append an add record; a ticket.

        Args:
            record_id: not live in this store, and never used before.
            user_type: 0 to 255, the caller's meaning; negative is taken as its byte.
            body: bytes-like, contiguous; copied before this returns.
            tx: open (or new) transaction; the record counts only after its commit.
            sync: make it durable as soon as the database can; None: as the store was told, never
                in a transaction.
            done: called as done(None) or done(error) from reap(), in append order, once the record
                is committed in the database.
            wait: with sync and no `done`: return only once it is.

        Raises:
            DuplicateRecord: the id is live.
            RecordTooLarge: the body is larger than the database takes.
            JournalIOError: the database failed while waiting.
            JournalClosed: closed, or ended by an earlier failure.
        """
        if tx is not None:
            return self._append_tx(ADD_RECORD_TX, record_id, user_type, body, tx, done)
        if type(body) is not bytes:
            body = bytes(memoryview(body))
        writer = self._usable()
        if len(body) > self._body_size_max:
            raise self._too_large(len(body))
        if sync is None:
            sync = self._sync_non_transactional
        user_type &= 0xFF
        with writer.lock:
            writer.make_room()
            if not self._live.put(record_id):
                raise DuplicateRecord(f"record {record_id} is live already")
            seq = self._next_seq
            self._next_seq = seq + 1
            writer.begin_rows().insert((record_id, ADD_RECORD, user_type, body, 0, b"", seq))
            ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    def add_durable(self, record_id: int, user_type: int, body: Buffer) -> Completion:
        """Append an add record; the awaitable of its durability. Errors as for add()."""
        ticket = self.add(record_id, user_type, body, sync=True, wait=False)
        return self._loaded().tickets.awaitable(ticket)

    def add_many(
        self,
        record_ids: Sequence[int],
        user_type: int,
        bodies: Sequence[bytes],
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Append many adds with one call and at most one wait; the last one's ticket.

        Outside a transaction each record stands alone: after an error those before it are in.
        """
        ids, parts = list(record_ids), list(bodies)
        if len(parts) != len(ids):
            raise ValueError(f"{len(ids)} ids and {len(parts)} bodies")
        writer = self._usable()
        # All that can be wrong is found before anything is accepted.
        for record_id in ids:
            check_id(record_id)
        for body in parts:
            if not isinstance(body, bytes):
                raise TypeError(f"a body is bytes, not {type(body).__name__}")
            if len(body) > self._body_size_max:
                raise self._too_large(len(body))
        if tx is not None:
            for record_id, body in zip(ids, parts, strict=True):
                self._append_tx(ADD_RECORD_TX, record_id, user_type, body, tx, None)
            return self._finish(writer, self._ticket_now(writer), False, done, wait)
        if sync is None:
            sync = self._sync_non_transactional
        user_type &= 0xFF
        put = self._live.put
        ticket = self._ticket_now(writer)
        for record_id, body in zip(ids, parts, strict=True):
            with writer.lock:
                writer.make_room()
                if not put(record_id):
                    raise DuplicateRecord(f"record {record_id} is live already")
                seq = self._next_seq
                self._next_seq = seq + 1
                writer.begin_rows().insert((record_id, ADD_RECORD, user_type, body, 0, b"", seq))
                ticket = writer.accept(is_wanted=False, is_blocking=True)
        if sync and ids and not (wait and done is None):
            writer.want(ticket)
        return self._finish(writer, ticket, sync and bool(ids), done, wait)

    def update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Append an update of a live record; a ticket. Arguments as for add().

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        if tx is not None:
            return self._append_tx(UPDATE_RECORD_TX, record_id, user_type, body, tx, done)
        if type(body) is not bytes:
            body = bytes(memoryview(body))
        writer = self._usable()
        if len(body) > self._body_size_max:
            raise self._too_large(len(body))
        if sync is None:
            sync = self._sync_non_transactional
        user_type &= 0xFF
        with writer.lock:
            writer.make_room()
            if record_id not in self._live:
                raise UnknownRecord(f"Cannot find add info {record_id}")
            seq = self._next_seq
            self._next_seq = seq + 1
            writer.begin_rows().insert((record_id, UPDATE_RECORD, user_type, body, 0, b"", seq))
            ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    def delete(
        self,
        record_id: int,
        body: Buffer = b"",
        *,
        tx: int | None = None,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Append a delete of a live record; a ticket. Arguments as for add().

        Only in a transaction may there be a body: it is kept with the delete until that ends.

        Raises:
            UnknownRecord: the id is not live (not checked in a transaction).
        """
        if tx is not None:
            return self._append_tx(DELETE_RECORD_TX, record_id, 0xFF, body, tx, done)
        if memoryview(body).nbytes:
            raise ValueError("only a delete in a transaction carries a body")
        writer = self._usable()
        if sync is None:
            sync = self._sync_non_transactional
        with writer.lock:
            writer.make_room()
            if not self._live.take(record_id):
                raise UnknownRecord(f"Cannot find add info {record_id}")
            writer.begin_rows().delete(record_id)
            ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    def try_update(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int | None:
        """As update(), but None instead of UnknownRecord; `done` is then called at once."""
        try:
            return self.update(record_id, user_type, body, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            not_there(done)
            return None

    def try_delete(
        self,
        record_id: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int | None:
        """As delete(), but None instead of UnknownRecord; `done` is then called at once."""
        try:
            return self.delete(record_id, sync=sync, done=done, wait=wait)
        except UnknownRecord:
            not_there(done)
            return None

    def event(
        self,
        record_id: int,
        user_type: int,
        body: Buffer,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Do nothing: an event goes to a history, and a table keeps none. As the reference does."""
        del record_id, user_type, body
        writer = self._usable()
        return self._finish(writer, self._ticket_now(writer), bool(sync), done, wait)

    # --- transactions -------------------------------------------------------------------------

    def begin(self) -> int:
        """A transaction id that this store has not seen. Any other unused one will do too."""
        self._next_tx_id += 1
        return self._next_tx_id

    def prepare(
        self,
        tx: int,
        extra: Buffer = b"",
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Make the transaction survive as prepared, with `extra` data for its owner; a ticket."""
        extra = bytes(memoryview(extra))
        writer = self._usable()
        if len(extra) > self._body_size_max:
            raise self._too_large(len(extra))
        check_id(tx)
        if sync is None:
            sync = self._sync_transactional
        with writer.lock:
            writer.make_room()
            one = self._open_txs.get(tx)
            if one is None:
                one = self._open_txs[tx] = OpenTransaction(tx)
            self._refuse_failed(one)
            self._stage_all(writer, one)
            self._stage(writer, one, 0, PREPARE_RECORD, 0xFF, b"", extra)
            one.is_prepared = True
            ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    def commit(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Make all of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
            TransactionFailed: an operation of it was refused: roll it back.
        """
        writer = self._usable()
        if sync is None:
            sync = self._sync_transactional
        with writer.lock:
            writer.make_room()
            one = self._open_txs.get(tx)
            if one is None:
                raise UnknownTransaction(f"Cannot find tx with id {tx}")
            self._refuse_failed(one)
            del self._open_txs[tx]
            if one.is_staged:
                self._commit_staged(writer, one)
            else:
                self._commit_in_memory(writer, one)
            ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    def rollback(
        self,
        tx: int,
        *,
        sync: bool | None = None,
        done: Done | None = None,
        wait: bool = True,
    ) -> int:
        """Make none of the transaction count; a ticket.

        Raises:
            UnknownTransaction: it has no record, or has ended.
        """
        writer = self._usable()
        if sync is None:
            sync = self._sync_transactional
        with writer.lock:
            writer.make_room()
            one = self._open_txs.pop(tx, None)
            if one is None:
                raise UnknownTransaction(f"Cannot find tx with id {tx}")
            if not one.is_staged:
                # Nothing of it is in the table: rolled back by being forgotten.
                ticket, sync = self._ticket_now(writer), False
            else:
                writer.end_staged(StagedEnd(tx, is_commit=False))
                ticket = writer.accept(is_wanted=sync, is_blocking=wait and done is None)
        return self._finish(writer, ticket, sync, done, wait)

    # --- completion ---------------------------------------------------------------------------

    def wait(self, ticket: int) -> None:
        """Return once everything up to `ticket` is durable; asks for it if nobody has.

        Raises:
            JournalIOError: the database failed; what is beyond `durable_ticket` is unknown.
        """
        self._loaded().wait(ticket)

    def sync(self) -> None:
        """Return once everything accepted so far is durable.

        Raises:
            JournalIOError: the database failed.
        """
        self._usable().sync()

    def durable(self, ticket: int) -> Completion:
        """An awaitable of the running loop, done once everything up to `ticket` is durable.

        The record must ask for its sync itself (sync=True, wait=False).
        """
        return self._loaded().tickets.awaitable(ticket)

    def reap(self) -> int:
        """Call the `done` callbacks and end the awaitables that are due, in append order; how many.

        An event loop does it by itself; without one, call on_event() when fileno() is readable.
        """
        return 0 if self._writer is None else self._writer.tickets.reap()

    def fileno(self) -> int:
        """A descriptor that becomes readable when there is something to reap."""
        return self._loaded().tickets.fileno()

    def on_event(self) -> None:
        """Reap, and have the next completion make fileno() readable again."""
        self._loaded().tickets.take_event()

    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let `loop` reap from now on. durable() does it; for callbacks call it yourself."""
        self._loaded().tickets.attach(loop)

    def detach_loop(self) -> None:
        """Take the descriptor out of the event loop."""
        if self._writer is not None:
            self._writer.tickets.detach()

    @property
    def durable_ticket(self) -> int:
        """Tickets below this number are durable."""
        return self._loaded().tickets.durable

    def compact(self, progress: Progress | None = None) -> bool:
        """Do nothing: what is deleted is gone from the table at once. False."""
        del progress
        self._usable()
        return False

    def reclaim(self) -> int:
        """Do nothing: there are no files that could become free. 0."""
        self._usable()
        return 0

    def row_count(self) -> int:
        """How many rows the table has; nobody may append meanwhile.

        Raises:
            JournalIOError: the database fails.
        """
        self.sync()
        with self.place.failures():
            return self.place.table.count()

    def stats(self) -> dict[str, int]:
        """Counters since load(), by name."""
        writer = self._loaded()
        return {
            "commits": writer.commits,
            "live_records": len(self._live),
            "outages": self.place.rider.outages,
            "read_back": self.place.rider.read_back,
        }

    def __len__(self) -> int:
        """Number of live records."""
        return len(self._live)

    def __contains__(self, record_id: int) -> bool:
        """Whether the record is live."""
        return record_id in self._live

    # --- operations in transactions -----------------------------------------------------------

    def _append_tx(
        self,
        record_type: int,
        record_id: int,
        user_type: int,
        body: Buffer,
        tx: int,
        done: Done | None,
    ) -> int:
        """Keep one operation of a transaction, or stage it; never waits."""
        writer = self._usable()
        with writer.lock:
            writer.make_room()
            one = self._open_txs.get(tx)
            if one is None:
                check_id(tx)
                one = self._open_txs[tx] = OpenTransaction(tx)
            self._refuse_failed(one)
            try:
                body = bytes(memoryview(body))
                check_id(record_id)
                if len(body) > self._body_size_max:
                    raise self._too_large(len(body))
            except WrongUse:
                one.is_failed = True
                raise
            user_type &= 0xFF
            if one.is_staged:
                self._stage(writer, one, record_id, record_type, user_type, body, b"")
            else:
                one.take(Operation(record_type, record_id, user_type, body))
                if one.is_large:
                    self._stage_all(writer, one)
            ticket = writer.filling.number
            if one.is_staged:
                writer.accept(is_wanted=False, is_blocking=False)
        return self._finish(writer, ticket, False, done, False)

    def _stage_all(self, writer: GroupWriter, one: OpenTransaction) -> None:
        """Move a transaction's operations from memory to the table."""
        for operation in one.operations:
            self._stage(
                writer,
                one,
                operation.record_id,
                operation.record_type,
                operation.user_type,
                operation.body,
                b"",
            )
        one.operations.clear()
        one.is_staged = True

    def _stage(
        self,
        writer: GroupWriter,
        one: OpenTransaction,
        record_id: int,
        record_type: int,
        user_type: int,
        body: bytes,
        extra: bytes,
    ) -> None:
        seq = self._next_seq
        self._next_seq = seq + 1
        writer.begin_rows().stage((record_id, record_type, user_type, body, one.tx_id, extra, seq))
        one.note_staged(record_type, record_id, seq)

    def _stage_open(self, writer: GroupWriter) -> None:
        """What is open at the end goes to the table, so that the next load reports it as failed."""
        with writer.lock:
            if writer.tickets.error is None:
                for one in self._open_txs.values():
                    if one.operations and not one.is_failed:
                        self._stage_all(writer, one)

    def _commit_in_memory(self, writer: GroupWriter, one: OpenTransaction) -> None:
        """Put the operations into the batch: adds and updates first, then deletes, as at a load."""
        batch = writer.begin_rows()
        for operation in one.operations:
            record_id = operation.record_id
            if operation.record_type != DELETE_RECORD_TX:
                record_type = operation.record_type - (ADD_RECORD_TX - ADD_RECORD)
                is_new = self._live.put(record_id)
                seq = self._next_seq
                self._next_seq = seq + 1
                batch.insert(
                    (record_id, record_type, operation.user_type, operation.body, 0, b"", seq),
                    is_again=not is_new,
                )
        for operation in one.operations:
            if operation.record_type == DELETE_RECORD_TX:
                self._live.take(operation.record_id)
                batch.delete(operation.record_id)

    def _commit_staged(self, writer: GroupWriter, one: OpenTransaction) -> None:
        """Have the database rewrite the rows, behind all others."""
        offset = self._next_seq - one.first_seq
        self._next_seq += one.final_seq - one.first_seq + 1
        writer.end_staged(StagedEnd(one.tx_id, True, tuple(one.deleted_ids), offset))
        for record_id in one.live_ids:
            self._live.put(record_id)
        for record_id in one.deleted_ids:
            self._live.take(record_id)

    def _refuse_failed(self, one: OpenTransaction) -> None:
        if one.is_failed:
            raise TransactionFailed(
                f"transaction {one.tx_id} lost an operation to an earlier error: roll it back"
            )

    # --- what every call needs ----------------------------------------------------------------

    def _finish(
        self, writer: GroupWriter, ticket: int, sync: bool, done: Done | None, wait: bool
    ) -> int:
        if done is not None:
            writer.tickets.call_later(ticket, done)
        elif sync and wait:
            writer.wait(ticket)
        return ticket

    def _ticket_now(self, writer: GroupWriter) -> int:
        """The ticket of all that was accepted so far."""
        return writer.filling.number if writer.filling else writer.filling.number - 1

    def _usable(self) -> GroupWriter:
        """The writer of a store that accepts appends.

        Raises:
            JournalClosed: closed, or ended by a failure.
            WrongState: not loaded.
        """
        writer = self._writer
        if self.state != "loaded" or writer is None:
            if self.state == "closed":
                raise JournalClosed("the store is closed") from self._failure
            raise WrongState(f"cannot append to a store that is {self.state}: load it first")
        if writer.tickets.error is not None:
            raise JournalClosed(
                f"the store ended: {writer.tickets.error}"
            ) from writer.tickets.error
        return writer

    def _loaded(self) -> GroupWriter:
        if self._writer is None:
            raise WrongState(f"the store is {self.state}: load it first")
        return self._writer

    def _too_large(self, size: int) -> RecordTooLarge:
        return RecordTooLarge(
            f"a body of {size} bytes is larger than {self._body_size_max} bytes, "
            "what this database takes in one row"
        )


def check_id(number: int) -> None:
    """Refuse what is no 64-bit number.

    Raises:
        TypeError: not an int.
        OverflowError: too large.
    """
    if type(number) is not int:
        raise TypeError(f"an id is an int, not {type(number).__name__}")
    if not ID_MIN <= number <= ID_MAX:
        raise OverflowError(f"{number} is not a 64-bit number")


def not_there(done: Done | None) -> None:
    """An operation that had nothing to write is done at once."""
    if done is not None:
        done(None)
