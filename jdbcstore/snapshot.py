"""A table of records as it stands at one moment, row by row, for readers that never write.

All is read in one transaction, so that a broker may go on writing meanwhile: PostgreSQL, MySQL and
Oracle show it the table as it was when it began, SQLite likewise by its write-ahead log. On the
other databases each page of rows is right in itself, and rows may come and go between two.

Nothing is made: not the table, not the file of a SQLite database.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import sqlalchemy
from sqlalchemy import func, select

from jdbcstore.errors import StatementCancelled
from jdbcstore.id_ranges import WHOLE_TABLE, id_ranges
from jdbcstore.reconnecting import as_io_error
from jdbcstore.row_pages import RowPages
from jdbcstore.schema import check_columns, journal_table
from journal.errors import JournalError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Table

    from jdbcstore.database import Database
    from jdbcstore.id_ranges import IdRange

__all__ = ["FullRow", "TableSnapshot", "failures", "refuse_missing_file"]

# Which isolation lets all statements of a transaction see the same moment, by dialect. The others
# have none that would not keep writers waiting.
ONE_MOMENT: Final = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "oracle": "SERIALIZABLE",
}


class FullRow(NamedTuple):
    """A row as it stands, with the names of its columns; any may be NULL, which is None."""

    id: int | None
    record_type: int | None
    compact_count: int | None
    tx_id: int | None
    user_type: int | None
    variable_size: int | None
    record: bytes | None
    tx_data_size: int | None
    tx_data: bytes | None
    tx_check_no_records: int | None
    seq: int


BLOBS: Final = ("record", "tx_data")  # Drivers give bytes, bytearray or memoryview.


class TableSnapshot:
    """Reads one table; use it in a `with` block. Threads: one.

    Args:
        database: where it is.
        table_name: as configured.
        part: of its ids; count() is of the whole table.

    Raises:
        OptionError: the name cannot be a table's.
    """

    def __init__(self, database: Database, table_name: str, part: IdRange = WHOLE_TABLE) -> None:
        self.database = database
        self.part = part
        self.table: Table = journal_table(table_name, database.dialect)
        self._connection: Connection | None = None

    @property
    def name(self) -> str:
        """Of the table in the database."""
        return str(self.table.name)

    @property
    def connection(self) -> Connection:
        """With the transaction that reads."""
        assert self._connection is not None
        return self._connection

    def __enter__(self) -> Self:
        """Connect, and begin.

        Raises:
            OptionError: there is no such table, or it was made for something else.
            JournalIOError: the database cannot be reached, or refuses.
        """
        refuse_missing_file(self.database)
        with failures():
            connection = self.database.connect(read_only=True)
            level = ONE_MOMENT.get(self.database.dialect.name)
            if level is not None:
                connection = connection.execution_options(isolation_level=level)
            self._connection = connection
        try:
            with failures():
                connection.begin()
                inspector = sqlalchemy.inspect(connection)
                if not inspector.has_table(self.name):
                    raise OptionError(f"the database has no table {self.name}")
                check_columns(inspector, self.table)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """End the transaction and give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def count(self) -> int:
        """How many rows there are."""
        with failures():
            found = self.connection.execute(select(func.count()).select_from(self.table))
            return int(found.scalar_one())

    def count_without_seq(self) -> int:
        """How many rows have no place in the order: readers by seq do not see them."""
        statement = select(func.count()).select_from(self.table).where(self.table.c.seq.is_(None))
        with failures():
            return int(self.connection.execute(statement).scalar_one())

    def id_ranges(self, rows_max: int) -> list[IdRange]:
        """The table in parts of about so many rows, for several readers.

        Raises:
            JournalIOError: the database fails.
        """
        with failures():
            return id_ranges(self.connection, self.table, rows_max=rows_max)

    def pages(self) -> Iterator[list[FullRow]]:
        """All rows with a seq, by seq, some at a time; rows with the same seq stay together.

        Of a part also rows of transactions that are none of its own (IdRange.holds).

        Memory: row_pages.PAGE_SIZE bytes of bodies, or one row.

        Raises:
            JournalIOError: the database fails.
        """
        pages = RowPages(self.table, self.part)
        after: int | None = None
        while True:
            with failures():
                ends = pages.ends_after(self.connection, after)
            if not ends:
                return
            for end in ends:
                rows = self._rows(after, end)
                after = end
                yield rows

    def _rows(self, after: int | None, final: int) -> list[FullRow]:
        """The rows behind one seq, up to another and with it."""
        columns = self.table.c
        statement = select(*columns).where(columns.seq <= final).order_by(columns.seq)
        statement = self.part.of(statement, self.table)
        if after is not None:
            statement = statement.where(columns.seq > after)
        with failures():
            rows = [
                FullRow._make(
                    bytes(value) if name in BLOBS and value is not None else value
                    for name, value in zip(FullRow._fields, found, strict=True)
                )
                for found in self.connection.execute(statement)
            ]
            # Where all is seen at one moment the last row was there, and is.
            if self.database.dialect.name in ONE_MOMENT and not (rows and rows[-1].seq == final):
                raise StatementCancelled(f"rows up to seq {final} exist and were not returned")
            return rows


@contextmanager
def failures() -> Iterator[None]:
    """Whatever a driver raises inside becomes a JournalIOError."""
    try:
        yield
    except JournalError:
        raise
    except Exception as error:
        raise as_io_error(error) from error


def refuse_missing_file(database: Database) -> None:
    """Refuse a missing SQLite file: SQLite would create it, and readers create nothing.

    Raises:
        OptionError: there is no such file.
    """
    name = database.engine.url.database or ""
    is_file = database.dialect.name == "sqlite" and not name.startswith("file:")
    if is_file and not Path(name).exists():
        raise OptionError(f"database {name} does not exist")
