"""Where a store's records are: its table, opened behind a lease, and ridden through outages."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from jdbcstore.database import Database
from jdbcstore.errors import Fault, classify
from jdbcstore.record_tables.choose import record_table
from jdbcstore.riding import Rider, as_io_error
from jdbcstore.schema import create_if_missing, journal_table
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jdbcstore.options import DatabaseStoreOptions
    from jdbcstore.record_tables.base import RecordTable, WriteFence
    from jdbcstore.rows import Row

__all__ = ["Place"]


class Place:
    """The table of one store, and what is needed to reach it.

    Args:
        options: of the database.
        name: of the table.
        database: to connect through; None makes one from the options.
        lease: held by somebody else; None takes the primary lock at open().

    Attributes:
        table: from open() on.
        rider: from open() on.
    """

    table: RecordTable
    rider: Rider

    def __init__(
        self,
        options: DatabaseStoreOptions,
        name: str,
        database: Database | None,
        lease: WriteFence | None,
    ) -> None:
        self.options = options
        self.name = name
        self._database = database
        self._owns_database = database is None
        self._lease = lease

    def open(self) -> None:
        """Connect, create the table if it is missing, take the lease.

        Raises:
            JournalLocked: another store has the lease.
            JournalIOError: the database cannot be reached, or refuses.
        """
        if self._database is None:
            self._database = Database(self.options)
        database = self._database
        with self.failures():
            table = journal_table(self.name, database.dialect)
            with database.connect() as connection:
                create_if_missing(connection, table, database.dialect)
            self.table = record_table(database, table, self._lease)
            self.table.connect()
        self.rider = Rider(self.table, self.options.ride_out_ms / 1000, self.fault_of)

    def close(self) -> None:
        """Give up the connection, and what open() made. Idempotent."""
        if hasattr(self, "table"):
            self.table.disconnect()
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

    def scan(self) -> Iterator[Sequence[Row]]:
        """All rows of the table by seq; a failing database is a JournalIOError."""
        rows = self.table.scan()
        while True:
            with self.failures():
                some = next(rows, None)
            if some is None:
                return
            yield some
