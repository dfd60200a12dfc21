"""The table of a store, opened under a lease, with a writer that reconnects."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jdbcstore.database import Database
from jdbcstore.errors import Fault, classify
from jdbcstore.lease import Lease
from jdbcstore.reconnecting import ReconnectingWriter, as_io_error
from jdbcstore.record_tables.choose import record_table
from jdbcstore.schema import create_if_missing, journal_table
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jdbcstore.errors import LeaseLost
    from jdbcstore.options import DatabaseStoreOptions
    from jdbcstore.record_tables.base import RecordTable

__all__ = ["LeasedTable"]


class LeasedTable:
    """The table of one store, with its database, lease and reconnecting writer.

    Args:
        options: of the database.
        name: of the table.
        database: to connect through; None makes one from the options.
        lease: held by somebody else; None takes the primary lock at open().
        on_lost: called when a lease of our own was lost; a given lease is watched by its owner.

    Attributes:
        lease: None before open() if none was given.
        table: from open() on.
        reconnecting: from open() on.
    """

    table: RecordTable
    reconnecting: ReconnectingWriter

    def __init__(
        self,
        options: DatabaseStoreOptions,
        name: str,
        database: Database | None,
        lease: Lease | None,
        on_lost: Callable[[LeaseLost], object],
    ) -> None:
        self.options = options
        self.name = name
        self._database = database
        self._owns_database = database is None
        self.lease = lease
        self._owns_lease = lease is None
        self._on_lost = on_lost

    def open(self) -> None:
        """Connect, create the table if it is missing, take the lease.

        Raises:
            JournalLocked: another store has the lease.
            JournalIOError: the database cannot be reached, or refuses.
        """
        if self._database is None:
            self._database = Database(self.options)
        try:
            self._open(self._database)
        except BaseException:
            self.close()
            raise

    def _open(self, database: Database) -> None:
        if self.lease is None:
            self.lease = Lease(database, on_lost=self._on_lost)
            self.lease.create_table()
            self.lease.acquire()
        with self.failures():
            table = journal_table(self.name, database.dialect)
            with database.connect() as connection:
                create_if_missing(connection, table, database.dialect)
            self.table = record_table(database, table, self.lease)
            self.table.connect()
        self.reconnecting = ReconnectingWriter(
            self.table, self.options.ride_out_ms / 1000, self.fault_of, self.lease.renew
        )

    def close(self) -> None:
        """Give up the connection, and what open() made. Idempotent."""
        if hasattr(self, "table"):
            self.table.disconnect()
        if self._owns_lease and self.lease is not None:
            self.lease.release()
            self.lease = None
        if self._owns_database and self._database is not None:
            self._database.close()
            self._database = None

    def fault_of(self, error: Exception) -> Fault:
        """What an exception of the driver means."""
        assert self._database is not None
        return classify(error, self._database.dialect)

    @contextlib.contextmanager
    def failures(self) -> Iterator[None]:
        """Whatever a driver raises inside becomes a JournalIOError."""
        try:
            yield
        except JournalError:
            raise
        except Exception as error:
            raise as_io_error(error) from error
