"""The node manager's table, over a connection of its own.

Leases are renewed while the pool's connections are all busy writing: hence a connection of its own,
opened when it is first needed and again whenever it was lost. A wait for a row that somebody has
locked is cut short: a renewal that comes late is worth less than the next one.

Servers, and what lies between, close connections that are idle for too long. If an idle connection
turns out to be closed before COMMIT was sent, the transaction is run again on a fresh connection.
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Final, TypeVar

from jdbcstore.database import READ_ONLY
from jdbcstore.errors import Fault, classify
from jdbcstore.schema import NODE_ROWS, create_if_missing, node_table
from journal.errors import JournalError, JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from jdbcstore.database import Database

__all__ = ["DatabaseAway", "NodeTable"]

Answer = TypeVar("Answer")

# Between two tries while another session has the row locked.
CONFLICT_PAUSE_S: Final = 0.05
# How long a release is retried; then the lease expires.
CONFLICT_RETRY_MAX_MS: Final = 10_000


class DatabaseAway(JournalIOError):
    """The database did not answer, or refused for now; whether it did what it was asked is open.

    Attributes:
        is_conflict: it answered that somebody else was in the way, such as a locked row.
    """

    is_conflict = False


class NodeTable:
    """The table, and the one connection to it.

    Args:
        database: of the broker; its options name the table.

    Attributes:
        database: as given.
        table: for SQLAlchemy.

    Threads: any; one transaction at a time.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.table = node_table(database.options.node_manager_store_table_name, database.dialect)
        self._connection: Connection | None = None
        self._lock = database.environment.new_lock()
        self._clock = database.environment.clock
        # Never set: a wait for it is a pause.
        self._pause = database.environment.new_event()

    def create(self) -> None:
        """Make the table and its rows where missing; any number of brokers may do so at once.

        Raises:
            DatabaseAway: the database does not answer.
            JournalIOError: the database refuses.
        """
        with self._failures(), self.database.connect() as connection:
            create_if_missing(connection, self.table, self.database.dialect, rows=NODE_ROWS)

    def ask(self, work: Callable[[Connection], Answer], *, read_only: bool = False) -> Answer:
        """Run one short transaction, and commit it; what `work` returned.

        Args:
            work: given the connection.
            read_only: it only reads, and need not wait for writers (SQLite).

        Raises:
            DatabaseAway: the database did not answer: perhaps it was committed, perhaps not.
            JournalIOError: the database refuses.
        """
        with self._lock, self._failures():
            was_open = self._connection is not None
            began_s = self._clock()
            try:
                answer = self._work(work, read_only)
            except Exception as error:
                is_lost = classify(error, self.database.dialect) is Fault.LOST
                if not (was_open and is_lost) or self._is_silent_since(began_s):
                    raise
                answer = self._work(work, read_only)
            self._commit()
            return answer

    def ask_despite_conflicts(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run one transaction as ask() does, and retry it while another session locks the row.

        A backup polls the lease's row, and a wait for the lock lasts `jdbc-lock-renew-period` at
        most. If a release failed for that, the backup would wait until the lease expires.

        Args:
            work: given the connection; it may run several times.

        Raises:
            DatabaseAway: as ask(), or the row was locked for `jdbc-lock-expiration` or 10 s.
            JournalIOError: the database refuses.
        """
        limit_ms = min(self.database.options.lock_expiration_ms, CONFLICT_RETRY_MAX_MS)
        deadline = self._clock() + limit_ms / 1000
        while True:
            try:
                return self.ask(work)
            except DatabaseAway as error:
                if not error.is_conflict or self._clock() >= deadline:
                    raise
            self._pause.wait(CONFLICT_PAUSE_S)

    def _is_silent_since(self, began_s: float) -> bool:
        """Whether the network time-out is over: a fresh connection would wait as long again."""
        timeout_ms = self.database.options.network_timeout_ms
        return timeout_ms > 0 and (self._clock() - began_s) * 1000 >= timeout_ms

    def _work(self, work: Callable[[Connection], Answer], read_only: bool) -> Answer:
        """Do the work of one transaction, all but its COMMIT."""
        try:
            if self._connection is None:
                self._connection = self._connected()
            self._connection.execution_options(**{READ_ONLY: read_only})
            return work(self._connection)
        except BaseException:
            self._drop()
            raise

    def _commit(self) -> None:
        assert self._connection is not None
        try:
            self._connection.commit()
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        """Give up the connection; the next ask() opens another. Idempotent."""
        with self._lock:
            self._drop()

    def _connected(self) -> Connection:
        connection = self.database.connect()
        options = self.database.options
        limit = self.database.dialect.lock_wait_sql(options.lock_renew_period_ms)
        try:
            if limit is not None:
                connection.exec_driver_sql(limit)
                connection.commit()
            self.database.bound_idle_transactions(connection)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        """Throw the connection away: the pool's others wait for locks as long as they like."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # It may be broken in any way; nothing that was not committed counts.
            with contextlib.suppress(Exception):
                connection.invalidate()
            with contextlib.suppress(Exception):
                connection.close()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except JournalError:
            raise
        except Exception as error:
            what = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
            fault = classify(error, self.database.dialect)
            kind = JournalIOError if fault is Fault.FATAL else DatabaseAway
            failure = kind(errno.EIO, f"the database failed: {what}", self.table.name)
            if isinstance(failure, DatabaseAway):
                failure.is_conflict = fault is Fault.CONFLICT
            raise failure from error
