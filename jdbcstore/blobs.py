"""Files in a table: large messages and pages, written at their end and read in pieces.

    files = SqlFiles(database, "LARGE_MESSAGES", fence=lease); files.start()
    file = files.open("17.msg"); file.append(piece); file.read_at(0, 65536); file.rename("18.msg")

Nothing is ever held whole in memory: an append sends its piece, a read fetches its piece. Each
write is a transaction of its own, proves the lease in it, and is durable when the call returns.
When the connection is lost the write is looked for, and done again only if it is not there: within
`ride_out_ms`, then the error is the caller's.

A file is a row. Where a database cannot make one row as long as the file, it goes on in further
rows of the same name, in the order of their ids.
"""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import sqlalchemy

from jdbcstore.errors import Fault, LeaseLost, classify
from jdbcstore.file_rows import file_rows
from jdbcstore.schema import create_if_missing, file_table
from journal.errors import JournalIOError, WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jdbcstore.database import Database
    from jdbcstore.dialects.base import RawCursor
    from jdbcstore.lease_row import Fence

__all__ = ["Lease", "SqlFile", "SqlFiles"]

T = TypeVar("T")

NAME_MAX: Final = 255  # The width of FILENAME.
EXTENSION_MAX: Final = 10  # The width of EXTENSION.
READ_SIZE: Final = 256 * 1024
COPY_SIZE: Final = 1 << 20
PAUSES_S: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # Between tries; the last one repeats.


class Lease(Protocol):
    """Proves inside a transaction that no other broker may write: jdbcstore.lease.Lease."""

    def fence_statement(self, *, may_raise: bool = True) -> Fence:
        """The statement to begin with; LeaseLost if the lease is known to be gone."""
        ...

    def fenced(self) -> LeaseLost:
        """The error for a transaction that the fence refused."""
        ...

    def renew(self) -> bool:
        """Renew it; False if somebody else had it since."""
        ...


class SqlFiles:
    """One file table.

    Args:
        database: to connect to.
        table_name: as configured.
        fence: the broker's lease; None writes without proof, for tools on a database of their own.

    Threads: any; a file belongs to one at a time.
    """

    def __init__(self, database: Database, table_name: str, *, fence: Lease | None = None) -> None:
        self._database = database
        self._fence = fence
        self._table = file_table(table_name, database.dialect)
        self.rows = file_rows(self._table, database.dialect)
        self.row_max = database.dialect.max_blob_size

    def start(self) -> None:
        """Create the table if it is missing.

        Raises:
            JournalIOError: the database refused.
        """

        def create(is_retry: bool) -> None:
            del is_retry  # Doing it twice is doing it once.
            with self._database.connect() as connection:
                create_if_missing(connection, self._table, self._database.dialect)

        self._persist(create)
        self.row_max = self.read(self.rows.row_max)

    def destroy(self) -> None:
        """Drop the table and everything in it.

        Raises:
            LeaseLost: somebody else may own it.
            JournalIOError: the database refused.
        """

        def drop(cursor: RawCursor, is_retry: bool) -> None:
            if is_retry and not self.has_table():
                return
            self.rows.remove_all(cursor)
            cursor.execute(f"DROP TABLE {self.rows.name}")

        self.write(drop)

    def open(self, name: str) -> SqlFile:
        """The file of this name, made if there is none.

        Raises:
            WrongUse: the name does not fit its column.
            LeaseLost: it had to be made, and somebody else may own the table.
            JournalIOError: the database refused.
        """
        extension = self.check_name(name)

        def make(cursor: RawCursor, is_retry: bool) -> list[tuple[int, int]]:
            if not is_retry or not self.rows.find(cursor, name):
                self.rows.add(cursor, name, extension)
            return self.rows.find(cursor, name)

        return SqlFile(self, name, self.read(lambda c: self.rows.find(c, name)) or self.write(make))

    def find(self, name: str) -> SqlFile | None:
        """The file of this name; None if there is none.

        Raises:
            JournalIOError: the database refused.
        """
        rows = self.read(lambda cursor: self.rows.find(cursor, name))
        return SqlFile(self, name, rows) if rows else None

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name.

        Raises:
            JournalIOError: the database refused.
        """
        return bool(self.read(lambda cursor: self.rows.find(cursor, name)))

    def names(self, extension: str) -> list[str]:
        """Names of the files with an extension, such as `msg`, in the order of their making.

        Raises:
            JournalIOError: the database refused.
        """
        return self.read(lambda cursor: self.rows.names(cursor, extension))

    def copy(self, source: str, target: str) -> None:
        """Make a file with the content of another, within the database; see copy_rows().

        Raises:
            WrongUse: the name does not fit its column.
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or there is no such file.
        """
        for _ in self.copy_rows(source, target):
            pass

    def copy_rows(self, source: str, target: str) -> Iterator[int]:
        """The same, row after row, each in a transaction of its own; yields how many bytes it had.

        Who stops before the end leaves a file that is not complete. Of PostgreSQL both name the
        same object from then on, as after a copy by Artemis: nothing may be appended to
        either.

        Raises:
            WrongUse: the name does not fit its column.
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or there is no such file.
        """
        extension = self.check_name(target)
        found = self.read(lambda cursor: self.rows.find(cursor, source))
        if not found:
            raise JournalIOError(errno.ENOENT, f"table {self._table.name}: no file", source)
        for place, (row_id, size) in enumerate(found):
            self._copy_row(row_id, place, target, extension)
            yield size

    def _copy_row(self, row_id: int, place: int, target: str, extension: str) -> None:
        def copy(cursor: RawCursor, is_retry: bool) -> None:
            if not is_retry or len(self.rows.find(cursor, target)) == place:
                self.rows.copy(cursor, row_id, target, extension)

        self.write(copy)

    def check_name(self, name: str) -> str:
        """The extension of a file's name; WrongUse if either does not fit its column."""
        extension = name.rpartition(".")[2] if "." in name else ""
        if not 0 < len(name) <= NAME_MAX or len(extension) > EXTENSION_MAX:
            raise WrongUse(
                f"file name of {len(name)} characters, extension of {len(extension)}; at most "
                f"{NAME_MAX} and {EXTENSION_MAX}"
            )
        return extension

    # Transactions.

    def read(self, work: Callable[[RawCursor], T]) -> T:
        """Run a transaction that writes nothing, again if the connection is lost."""
        return self._persist(lambda is_retry: self._once(work))

    def write(self, work: Callable[[RawCursor, bool], T]) -> T:
        """Run a fenced transaction. `work(cursor, is_retry)` looks first whether it is done."""

        def attempt(is_retry: bool) -> T:
            return self._once(lambda cursor: work(cursor, is_retry), is_write=True)

        return self._persist(attempt)

    def _once(self, work: Callable[[RawCursor], T], *, is_write: bool = False) -> T:
        is_fenced = is_write and self._fence is not None
        with self._database.raw(is_fenced=is_fenced) as raw:
            if is_write:
                self._database.dialect.begin_write(raw)
            cursor = raw.cursor()
            try:
                if is_write and self._fence is not None:
                    statement = self._fence.fence_statement(may_raise=False)
                    cursor.execute(statement.sql, statement.parameters)
                    if not statement.holds(cursor):
                        raise self._fence.fenced()
                result = work(cursor)
                if is_write:
                    raw.commit()
                return result
            finally:
                cursor.close()

    def _persist(self, attempt: Callable[[bool], T]) -> T:
        deadline = time.monotonic() + self._database.options.ride_out_ms / 1000
        tries = 0
        while True:
            try:
                return attempt(tries > 0)
            except LeaseLost:
                # It may have expired during an outage. If no other broker took it, go on.
                if time.monotonic() >= deadline or not self._is_renewed():
                    raise
            except Exception as error:
                is_fatal = classify(error, self._database.dialect) is Fault.FATAL
                if is_fatal and not isinstance(error, self._driver_errors()):
                    raise  # Not the database's: a lost lease, a wrong use.
                if is_fatal or time.monotonic() >= deadline:
                    raise self._failed(error) from error
            time.sleep(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
            tries += 1

    def _is_renewed(self) -> bool:
        assert self._fence is not None
        try:
            return self._fence.renew()
        except JournalIOError:
            return True  # In doubt: asked again by the fence of the next try.

    def _driver_errors(self) -> tuple[type[BaseException], ...]:
        return (self._database.engine.dialect.loaded_dbapi.Error, sqlalchemy.exc.SQLAlchemyError)

    def _failed(self, error: BaseException) -> JournalIOError:
        return JournalIOError(errno.EIO, f"table {self._table.name}: {error}")

    def has_table(self) -> bool:
        """Whether the table is there.

        Raises:
            JournalIOError: the database refused, or was away for too long.
        """

        def look(is_retry: bool) -> bool:
            del is_retry
            with self._database.connect(read_only=True) as connection:
                return self._database.dialect.has_table(connection, self._table)

        return self._persist(look)


class SqlFile:
    """One file; `SqlFiles.open()` makes it.

    Attributes:
        name: within its table.
    """

    def __init__(self, files: SqlFiles, name: str, rows: list[tuple[int, int]]) -> None:
        self.name = name
        self._files = files
        self._rows = rows

    @property
    def size(self) -> int:
        """Bytes, as of the last write through this object or its opening."""
        return sum(size for _, size in self._rows)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at the end; durable when it returns.

        Raises:
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or was away for too long.
        """
        piece = bytes(data)
        before = self.size
        rows = self._files.rows

        def grow(cursor: RawCursor, is_retry: bool) -> list[tuple[int, int]]:
            found = rows.find(cursor, self.name) if is_retry else self._rows
            if sum(size for _, size in found) == before + len(piece):
                return found
            at = 0
            found = list(found)
            while at < len(piece):
                row_id, size = found[-1]
                some = piece[at : at + self._files.row_max - size]
                if some:
                    rows.grow(cursor, row_id, some)
                    found[-1] = (row_id, size + len(some))
                    at += len(some)
                if at < len(piece):
                    rows.add(cursor, self.name, self.name.rpartition(".")[2])
                    found = rows.find(cursor, self.name)
            return found

        if piece:
            self._rows = self._files.write(grow)

    def replace(self, data: bytes) -> None:
        """Let the file hold these bytes and no others, at once; for small files.

        Raises:
            WrongUse: they do not fit one row.
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or was away for too long.
        """
        if len(data) > self._files.row_max:
            raise WrongUse(f"{len(data)} bytes do not fit one row, {self._files.row_max} bytes")
        rows = self._files.rows

        def put(cursor: RawCursor, is_retry: bool) -> list[tuple[int, int]]:
            del is_retry  # Doing it twice is doing it once.
            rows.set(cursor, self._rows[0][0], data)
            for row_id, _ in self._rows[1:]:
                rows.remove(cursor, row_id)
            return [(self._rows[0][0], len(data))]

        self._rows = self._files.write(put)

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes from an offset on; fewer at the end, none beyond it.

        Raises:
            JournalIOError: the database refused, or was away for too long.
        """

        def read(cursor: RawCursor) -> bytes:
            pieces, start = [], 0
            for row_id, length in self._rows:
                first, last = max(offset, start), min(offset + size, start + length)
                if first < last:
                    pieces.append(
                        self._files.rows.read(cursor, row_id, first - start, last - first)
                    )
                start += length
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)

        return self._files.read(read) if size > 0 and offset < self.size else b""

    def pieces(self, size: int = READ_SIZE) -> Iterator[bytes]:
        """The whole file in pieces of at most `size` bytes.

        Raises:
            JournalIOError: the database refused, or was away for too long.
        """
        for offset in range(0, self.size, size):
            yield self.read_at(offset, size)

    def copy_to(self, target: SqlFile) -> None:
        """Append all of it to another file, piece by piece.

        Raises:
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or was away for too long.
        """
        for piece in self.pieces(COPY_SIZE):
            target.append(piece)

    def rename(self, name: str) -> None:
        """Give the file another name; the extension it is listed by stays, as in Artemis.

        Raises:
            WrongUse: the name does not fit its column.
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or was away for too long.
        """
        self._files.check_name(name)

        def rename(cursor: RawCursor, is_retry: bool) -> None:
            del is_retry  # Doing it twice is doing it once.
            for row_id, _ in self._rows:
                self._files.rows.rename(cursor, row_id, name)

        self._files.write(rename)
        self.name = name

    def delete(self) -> None:
        """Remove the file.

        Raises:
            LeaseLost: somebody else may own the table.
            JournalIOError: the database refused, or was away for too long.
        """

        def delete(cursor: RawCursor, is_retry: bool) -> None:
            del is_retry  # Rows that are gone stay gone.
            for row_id, _ in self._rows:
                self._files.rows.remove(cursor, row_id)

        self._files.write(delete)
        self._rows = []
