"""The `Dialect` interface, with defaults that most databases share.

A `Dialect` holds facts and writes SQL text; it owns no connection. Statements for SQLAlchemy's
`text()` name their parameters (`:name`); those that go straight to a driver use `placeholder()`.

Sources: Artemis's journal-sql.properties for types, name case and sizes; the vendor's manual
for what is said beside each.
"""

from __future__ import annotations

import enum
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

import sqlalchemy
from sqlalchemy import BigInteger, Identity, Integer, LargeBinary, SmallInteger
from sqlalchemy.types import TypeEngine

from jdbcstore.errors import Fault, fault_of_sqlstate
from jdbcstore.options import TABLE_NAME
from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Table
    from sqlalchemy.engine.interfaces import Dialect as EngineDialect

__all__ = ["ColumnTypes", "Dialect", "NameCase", "RawConnection", "RawCursor"]


Value: TypeAlias = Any  # What drivers take and give: PEP 249 has no types.


class RawCursor(Protocol):
    """The part of a driver's cursor that the fast paths use (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement touched."""
        ...

    def execute(self, operation: Value, parameters: Value = ..., /) -> object:
        """Run one statement."""
        ...

    def executemany(self, operation: Value, parameters: Value, /) -> object:
        """Run one statement for many rows."""
        ...

    def fetchone(self) -> Value:
        """The next row, None at the end."""
        ...

    def fetchmany(self, size: int = ..., /) -> Value:
        """The next rows."""
        ...

    def fetchall(self) -> Value:
        """All rows left."""
        ...

    def close(self) -> object:
        """Give it up."""
        ...


class RawConnection(Protocol):
    """The part of a driver's connection that the fast paths use (PEP 249)."""

    def cursor(self) -> RawCursor:
        """A new cursor."""
        ...

    def commit(self) -> object:
        """End the transaction; what it wrote counts."""
        ...

    def rollback(self) -> object:
        """End the transaction; nothing of it counts."""
        ...

    def close(self) -> object:
        """Give it up."""
        ...


class NameCase(enum.Enum):
    """How names of tables are written (table-names-case)."""

    NONE = "none"
    LOWER = "lower"
    UPPER = "upper"

    def fold(self, name: str) -> str:
        """A name in this case."""
        if self is NameCase.NONE:
            return name
        return name.lower() if self is NameCase.LOWER else name.upper()


AnyType = TypeEngine[Any]


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Types of Artemis's columns on one database.

    Attributes:
        big: 64 bits.
        integer: 32 bits.
        small: 16 bits.
        blob: bytes of a record.
        file_data: bytes of a file, or what finds them.
        file_key: the generated key of a file.
        node_key: the key of a node manager row.
        seq: the order of a journal's rows, its key where seq_is_key.
    """

    big: AnyType
    integer: AnyType
    small: AnyType
    blob: AnyType
    file_data: AnyType
    file_key: AnyType
    node_key: AnyType
    seq: AnyType


# Ids of one DELETE: below every limit on parameters of a statement (Oracle takes 1,000 in a list,
# SQL Server 2,100 in all), and enough to make a round trip cheap beside the work.
IDS_PER_STATEMENT: Final = 500


class Dialect:
    """Facts and SQL of one database; immutable, so threads may share it."""

    name: ClassVar[str]
    """Artemis's name of the dialect."""
    name_case: ClassVar[NameCase] = NameCase.NONE
    """How Artemis writes table names (table-names-case)."""
    max_blob_size: ClassVar[int] = 64_512
    """Bytes of a record or file at most (max-blob-size)."""
    table_name_max: ClassVar[int] = 63
    """Characters of a table name at most; indexes have names of their own."""
    seq_is_key: ClassVar[bool] = True
    """Whether seq is the journal table's primary key; if not, we add an index on it."""
    artemis_has_key: ClassVar[bool] = True
    """Whether it is the key of Artemis's table too, where it is ours."""
    table_options: ClassVar[dict[str, Any]] = {}
    """Keyword arguments for SQLAlchemy's Table."""
    index_name_max: ClassVar[int] = 63
    """Characters of an index's name at most."""

    def __init__(self, engine_dialect: EngineDialect) -> None:
        self.engine_dialect = engine_dialect

    # Names.

    def table_name(self, name: str) -> str:
        """The name of a table as Artemis would write it on this database.

        Raises:
            OptionError: it could not be a table's name, or is too long here.
        """
        if not TABLE_NAME.fullmatch(name):
            raise OptionError(
                f"{name!r} is not a valid table name: use letters, digits and _, and no digit first"
            )
        if len(name) > self.table_name_max:
            raise OptionError(
                f"table name {name!r} has {len(name)} characters; {self.name} takes at most "
                f"{self.table_name_max}"
            )
        return self.name_case.fold(name)

    def quoted(self, table: Table | str) -> str:
        """A table's name in quotes, ready to stand in SQL text."""
        name = table if isinstance(table, str) else table.name
        return self.engine_dialect.identifier_preparer.quote_identifier(name)

    def index_name(self, table_name: str, suffix: str) -> str:
        """A name for an index: table and suffix, as Artemis has it.

        One that is too long for the database, where Artemis fails, is cut, with a checksum
        of what was cut in its place.
        """
        name = table_name + (suffix.lower() if table_name.islower() else suffix)
        if len(name) <= self.index_name_max:
            return name
        mark = f"_{zlib.crc32(table_name.encode()):08X}"
        kept = table_name[: self.index_name_max - len(suffix) - len(mark)]
        return self.index_name(f"{kept}{self.name_case.fold(mark)}", suffix)

    # Columns.

    def column_types(self) -> ColumnTypes:
        """What Artemis's columns are here."""
        return ColumnTypes(
            big=BigInteger(),
            integer=Integer(),
            small=SmallInteger(),
            blob=LargeBinary(),
            file_data=LargeBinary(),
            file_key=BigInteger(),
            node_key=Integer(),
            seq=BigInteger(),
        )

    def file_identity(self) -> Identity | None:
        """How a file's key is made, where AUTO_INCREMENT and the like do not say it."""
        return None

    def has_table(self, connection: Connection, table: Table) -> bool:
        """Whether the database has this table.

        Raises:
            sqlalchemy.exc.DBAPIError: the database fails, for `errors.classify`.
        """
        return bool(sqlalchemy.inspect(connection).has_table(table.name))

    # Time, locks, transactions.

    now_ms: ClassVar[str]
    """SQL expression: milliseconds since 1970 UTC by the database's clock, an integer.

    It is the time at which the row is read, not the time the transaction began, wherever the
    database can tell it: a lease is checked after the wait for its row.
    """
    from_nothing: ClassVar[str] = ""
    """SQL after `SELECT expression` for a query without a table."""
    row_lock: ClassVar[str] = " FOR UPDATE"
    """What stands at the end of a SELECT that locks its rows until commit."""
    row_lock_hint: ClassVar[str] = ""
    """What stands behind the table's name in such a SELECT."""

    write_locks_all: ClassVar[bool] = False
    """Whether a transaction that writes keeps all others from writing, whatever the row."""

    @property
    def select_now_ms(self) -> str:
        """A statement that returns the database's clock, see now_ms."""
        return f"SELECT {self.now_ms}{self.from_nothing}"

    def select_locked(self, columns: str, table: Table, condition: str) -> str:
        """A SELECT that locks its rows until the transaction ends."""
        return (
            f"SELECT {columns} FROM {self.quoted(table)}{self.row_lock_hint} "
            f"WHERE {condition}{self.row_lock}"
        )

    def lock_wait_sql(self, wait_ms: int) -> str | None:
        """A statement after which a wait for a locked row ends after `wait_ms` milliseconds.

        It holds as long as the connection does. None: this database has no such setting.
        """
        del wait_ms
        return None

    def idle_transaction_sql(self, idle_ms: int) -> str | None:
        """A statement after which the server ends a session that does nothing in a transaction.

        A process that stops in the middle of a transaction would keep its rows locked, and no other
        broker could take over until it goes on. None: the database has no such statement.

        Args:
            idle_ms: milliseconds that it may do nothing.
        """
        del idle_ms
        return None

    def end_lockers_sql(self, table: Table, condition: str) -> str | None:
        """A SELECT that ends the sessions which hold a lock on the row `condition` chooses.

        One row for each session that was ended. None: this database cannot say who that is, or
        ends by itself what idle_transaction_sql() does not reach.
        """
        del table, condition
        return None

    def begin_write(self, raw: RawConnection) -> None:
        """Begin a transaction that writes; most drivers do so by themselves."""

    # Statements straight to the driver.

    def placeholder(self, number: int = 1) -> str:
        """How the driver's SQL marks parameter `number`, counted from 1."""
        style = self.engine_dialect.paramstyle
        if style == "qmark":
            return "?"
        return "%s" if style in ("format", "pyformat") else f":{number}"

    def placeholders(self, count: int, first: int = 1) -> str:
        """A list of them, such as `?,?,?`."""
        return ",".join(self.placeholder(number) for number in range(first, first + count))

    def insert_sql(self, table: Table) -> str:
        """An INSERT of one row with all columns of a table, in their order."""
        names = ",".join(column.name for column in table.columns)
        marks = self.placeholders(len(table.columns))
        return f"INSERT INTO {self.quoted(table)} ({names}) VALUES ({marks})"

    def insert_rows(
        self, raw: RawConnection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """Insert rows that hold every column, in the table's order, the fastest way there is.

        The transaction stays open. Errors are the driver's, for `errors.classify`.
        """
        cursor = raw.cursor()
        try:
            cursor.executemany(self.insert_sql(table), rows)
        finally:
            cursor.close()

    def delete_ids(
        self, raw: RawConnection, table: Table, ids: Iterable[int], column: str = "id"
    ) -> int:
        """Delete the rows whose `column` is one of `ids`; how many there were.

        The transaction stays open. Errors are the driver's, for `errors.classify`.
        """
        every = list(ids)
        quoted = self.quoted(table)
        deleted = 0
        cursor = raw.cursor()
        try:
            for first in range(0, len(every), IDS_PER_STATEMENT):
                some = every[first : first + IDS_PER_STATEMENT]
                marks = self.placeholders(len(some))
                cursor.execute(f"DELETE FROM {quoted} WHERE {column} IN ({marks})", some)
                deleted += cursor.rowcount
        finally:
            cursor.close()
        return deleted

    # Connections.

    def connect_arguments(self, network_timeout_ms: int) -> dict[str, Any]:
        """Keyword arguments for the driver's connect(); -1 ms waits for ever."""
        del network_timeout_ms
        return {}

    def engine_arguments(self) -> dict[str, Any]:
        """Keyword arguments for SQLAlchemy's create_engine()."""
        return {}

    def open_raw(
        self,
        url: sqlalchemy.URL,
        network_timeout_ms: int,
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> RawConnection | None:
        """A new connection, where the driver's plain connect() would not do; else None.

        Args:
            url: of the engine.
            network_timeout_ms: milliseconds; -1 waits for ever.
            args: positional arguments that SQLAlchemy would give the driver.
            named: its keyword arguments.
        """
        del url, network_timeout_ms, args, named
        return None

    def opened(self, url: sqlalchemy.URL) -> None:
        """A `Database` was made for this URL."""

    def closed(self, url: sqlalchemy.URL) -> None:
        """A `Database` for this URL has closed its connections."""

    def set_up(self, raw: RawConnection, network_timeout_ms: int) -> None:
        """Prepare a new connection of the driver."""

    # Errors.

    def fault(self, exception: BaseException) -> Fault:
        """Classify an exception of this database's driver, see `errors.classify`."""
        sqlstate = getattr(exception, "sqlstate", None)
        return fault_of_sqlstate(sqlstate) if isinstance(sqlstate, str) else Fault.FATAL
