"""A driver in the sense of PEP 249 over any JDBC driver, as far as the store and SQLAlchemy need.

JPype has a driver of its own, jpype.dbapi2. It raises errors as Java objects of no PEP 249 class
and loses the SQLSTATE of errors in prepare. It also binds each cursor to the thread that made it,
but connections of a pool move between threads.

Values: int ↔ integers, bytes ↔ BLOB and BINARY, str ↔ CHAR and VARCHAR, bool, float, None.
Anything else comes back as Java's text of it.
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["Connection", "Cursor", "Error", "connect", "module"]

apilevel: Final = "2.0"
threadsafety: Final = 1
paramstyle: Final = "qmark"
Binary: Final = bytes


class Error(Exception):
    """What a database or its driver said; `sqlstate` says it in five letters, if known."""

    sqlstate: str | None = None


class Warning(Exception):
    """Never raised."""


class InterfaceError(Error):
    """The connection or cursor is closed."""


class DatabaseError(Error):
    """The database refused."""


class DataError(DatabaseError):
    """A value does not fit."""


class OperationalError(DatabaseError):
    """The database is away, or gave the transaction up."""


class IntegrityError(DatabaseError):
    """A key or constraint is in the way."""


class InternalError(DatabaseError):
    """The transaction is not in the state it should be."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """The database cannot do that."""


# By class of SQLSTATE; XJ and XS are Derby's own: about its connections and its storage.
BY_SQLSTATE: Final[dict[str, type[Error]]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "21": DataError,
    "22": DataError,
    "23": IntegrityError,
    "25": InternalError,
    "40": OperationalError,
    "42": ProgrammingError,
    "XJ": OperationalError,
    "XS": OperationalError,
}

logger = logging.getLogger(__name__)

# java.sql.Types.
INTEGERS: Final = frozenset((-5, -6, 4, 5))
BYTES: Final = frozenset((-2, -3, -4, 2004))
FLOATS: Final = frozenset((6, 7, 8))
BOOLEANS: Final = frozenset((-7, 16))


def connect(
    url: str,
    properties: Mapping[str, str],
    *,
    jpype: Any,
    network_timeout_ms: int = -1,
    limit_silence: Callable[[Any, int], object] | None = None,
) -> Connection:
    """A connection of the JDBC driver that takes this URL, autocommit off.

    Args:
        url: a JDBC URL.
        properties: of the driver, such as user and password.
        jpype: the module, its JVM running.
        network_timeout_ms: milliseconds that an answer may take, that to the login included; -1
            for ever. A driver that knows no such thing, as embedded ones, is left without.
        limit_silence: sets that time on the driver's connection where it has a way of its own.

    Raises:
        Error: of the class that its SQLSTATE says.
    """
    with _errors(jpype):
        info = jpype.JClass("java.util.Properties")()
        for key, value in properties.items():
            info.setProperty(key, value)
        manager = jpype.JClass("java.sql.DriverManager")
        if limit_silence is not None:
            # Of all connections that are made from now on, in seconds; 0 is for ever.
            manager.setLoginTimeout(max(0, -(-network_timeout_ms // 1000)))
        java = manager.getConnection(url, info)
        java.setAutoCommit(False)
        if network_timeout_ms > 0 and limit_silence is not None:
            limit_silence(java, network_timeout_ms)
        elif network_timeout_ms > 0:
            executor = jpype.JClass("java.util.concurrent.ForkJoinPool").commonPool()
            try:
                java.setNetworkTimeout(executor, network_timeout_ms)
            except jpype.JClass("java.sql.SQLFeatureNotSupportedException"):
                logger.info("this JDBC driver takes no network time-out")
        return Connection(java, jpype)


@contextmanager
def _errors(jpype: Any) -> Iterator[None]:
    """Java's exceptions as PEP 249's; an error of the whole JVM goes through as it is."""
    try:
        yield
    except jpype.JClass("java.sql.SQLException") as error:
        sqlstate = error.getSQLState()
        state = None if sqlstate is None else str(sqlstate)
        kind = BY_SQLSTATE.get((state or "")[:2], DatabaseError)
        texts = [str(error.getMessage())]
        # Derby says "failed to start database" and why in the next one.
        following = error.getNextException()
        if following is not None:
            texts.append(str(following.getMessage()))
        ours = kind(f"{'; '.join(texts)} ({state})")
        ours.sqlstate = state
        raise ours from error


class Connection:
    """A JDBC connection. Threads: one at a time, any of them."""

    def __init__(self, java: Any, jpype: Any) -> None:
        self.java = java
        self.jpype = jpype
        self.byte_array = jpype.JArray(jpype.JByte)

    def cursor(self) -> Cursor:
        """A new cursor."""
        return Cursor(self)

    def commit(self) -> None:
        """End the transaction; what it wrote counts.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self.jpype):
            self.java.commit()

    def rollback(self) -> None:
        """End the transaction; nothing of it counts.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self.jpype):
            self.java.rollback()

    def close(self) -> None:
        """Give it up, with what is not committed. Idempotent.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self.jpype):
            if not self.java.isClosed():
                try:
                    self.java.rollback()  # Derby refuses to close within a transaction.
                finally:
                    self.java.close()

    def is_valid(self, timeout_s: int) -> bool:
        """Whether the database answers within that many seconds."""
        with _errors(self.jpype):
            return bool(self.java.isValid(timeout_s))


class Cursor:
    """Runs statements and fetches their rows."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._jpype = connection.jpype
        self._statement: Any = None
        self._rows: Any = None
        self._kinds: list[int] = []
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1

    def execute(self, operation: str, parameters: Sequence[object] = (), /) -> Cursor:
        """Run one statement.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self._jpype):
            self._prepare(operation)
            self._bind(parameters)
            if self._statement.execute():
                self._rows = self._statement.getResultSet()
                self._describe(self._rows.getMetaData())
            else:
                self.rowcount = int(self._statement.getUpdateCount())
        return self

    def executemany(self, operation: str, parameters: Iterable[Sequence[object]], /) -> Cursor:
        """Run one statement for many rows of parameters, in one batch.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self._jpype):
            self._prepare(operation)
            for some in parameters:
                self._bind(some)
                self._statement.addBatch()
            self.rowcount = sum(max(0, int(count)) for count in self._statement.executeBatch())
        return self

    def fetchone(self) -> tuple[object, ...] | None:
        """The next row, None at the end.

        Raises:
            Error: of the class that its SQLSTATE says; InterfaceError if no statement gave rows.
        """
        if self._rows is None:
            raise InterfaceError("no statement with rows was run")
        with _errors(self._jpype):
            return self._row() if self._rows.next() else None

    def fetch_piece(self, offset: int, size: int) -> bytes:
        """Some bytes of the BLOB in the first column of the next row; empty if no row is left.

        Raises:
            Error: of the class that its SQLSTATE says.
        """
        with _errors(self._jpype):
            if self._rows is None or not self._rows.next():
                return b""
            blob = self._rows.getBlob(1)
            return b"" if blob is None else bytes(blob.getBytes(offset + 1, size))

    def fetchmany(self, size: int | None = None, /) -> list[tuple[object, ...]]:
        """The next rows, at most `size`."""
        found = []
        for _ in range(self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            found.append(row)
        return found

    def fetchall(self) -> list[tuple[object, ...]]:
        """All rows left."""
        return list(iter(self.fetchone, None))

    def close(self) -> None:
        """Give statement and rows up. Idempotent."""
        rows, self._rows = self._rows, None
        statement, self._statement = self._statement, None
        with _errors(self._jpype):
            if rows is not None:
                rows.close()
            if statement is not None:
                statement.close()

    def setinputsizes(self, *sizes: object) -> None:
        """Nothing: JDBC takes sizes from the values."""

    def setoutputsize(self, *sizes: object) -> None:
        """Nothing, as above."""

    def _prepare(self, operation: str) -> None:
        self.close()
        self.description, self.rowcount = None, -1
        self._statement = self.connection.java.prepareStatement(operation)

    def _bind(self, parameters: Sequence[object]) -> None:
        statement = self._statement
        for position, value in enumerate(parameters, 1):
            if value is None:
                meta = statement.getParameterMetaData()
                statement.setNull(position, meta.getParameterType(position))
            elif isinstance(value, bool):
                statement.setBoolean(position, value)
            elif isinstance(value, int):
                statement.setLong(position, value)
            elif isinstance(value, str):
                statement.setString(position, value)
            elif isinstance(value, float):
                statement.setDouble(position, value)
            elif isinstance(value, (bytes, bytearray, memoryview)):
                statement.setBytes(position, self.connection.byte_array(bytes(value)))
            else:
                raise InterfaceError(f"parameter {position} is a {type(value).__name__}")

    def _describe(self, meta: Any) -> None:
        columns = range(1, meta.getColumnCount() + 1)
        self._kinds = [int(meta.getColumnType(column)) for column in columns]
        self.description = [
            (str(meta.getColumnLabel(column)), kind, None, None, None, None, None)
            for column, kind in zip(columns, self._kinds, strict=True)
        ]

    def _row(self) -> tuple[object, ...]:
        rows = self._rows
        values: list[object] = []
        for column, kind in enumerate(self._kinds, 1):
            value: object
            if kind in INTEGERS:
                value = int(rows.getLong(column))
            elif kind in BYTES:
                found = rows.getBytes(column)
                value = None if found is None else bytes(found)
            elif kind in FLOATS:
                value = float(rows.getDouble(column))
            elif kind in BOOLEANS:
                value = bool(rows.getBoolean(column))
            else:
                text = rows.getString(column)
                value = None if text is None else str(text)
            values.append(None if rows.wasNull() else value)
        return tuple(values)


def module() -> Any:
    """This module, as SQLAlchemy's `import_dbapi()` wants it."""
    return sys.modules[__name__]
