"""How the bytes of one row of a file table are made longer, read and measured, per database.

Everywhere but in PostgreSQL the bytes stand in the column DATA and grow by concatenation inside
the server, so that an append sends what is appended and nothing else. PostgreSQL has a large
object beside the table, found by its OID in DATA, as Artemis does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jdbcstore.errors import StatementCancelled

if TYPE_CHECKING:
    from sqlalchemy import Table

    from jdbcstore.dialects.base import Dialect, RawCursor

__all__ = ["FileRows", "file_rows"]

SQLITE_ROW_MAX: Final = 1 << 20
# A packet holds the statement and the row beside the bytes.
PACKET_MARGIN: Final = 1 << 16


class FileRows:
    """The statements on one file table; every method is part of the cursor's transaction.

    Args:
        table: by schema.file_table().
        dialect: of the database.
    """

    length = "LENGTH(DATA)"
    grown = "DATA || {0}"
    piece = "SUBSTR(DATA, {0}, {1})"
    empty: object = b""
    # A name that stands in a SELECT list, where some want to know its type.
    text = "{0}"

    def __init__(self, table: Table, dialect: Dialect) -> None:
        self.dialect = dialect
        self.name = dialect.quoted(table)

    def mark(self, number: int = 1) -> str:
        """The driver's mark for parameter `number`."""
        return self.dialect.placeholder(number)

    def row_max(self, cursor: RawCursor) -> int:
        """Bytes of one row at most; a longer file goes on in another row of the same name."""
        del cursor
        return self.dialect.max_blob_size

    def find(self, cursor: RawCursor, file_name: str) -> list[tuple[int, int]]:
        """Id and size of each row of a file, in their order."""
        cursor.execute(
            f"SELECT ID, {self.length} FROM {self.name} WHERE FILENAME = {self.mark()} ORDER BY ID",
            (file_name,),
        )
        found = [(int(row_id), int(size or 0)) for row_id, size in cursor.fetchall()]
        if not found:
            self._check_absent(cursor, "FILENAME", file_name)
        return found

    def add(self, cursor: RawCursor, file_name: str, extension: str) -> None:
        """Insert an empty row."""
        cursor.execute(
            f"INSERT INTO {self.name} (FILENAME, EXTENSION, DATA) "
            f"VALUES ({self.dialect.placeholders(3)})",
            (file_name, extension, self.empty),
        )

    def copy(self, cursor: RawCursor, row_id: int, file_name: str, extension: str) -> None:
        """Insert a row with the content of another."""
        name, kind = self.text.format(self.mark(1)), self.text.format(self.mark(2))
        cursor.execute(
            f"INSERT INTO {self.name} (FILENAME, EXTENSION, DATA) "
            f"SELECT {name}, {kind}, DATA FROM {self.name} WHERE ID = {self.mark(3)}",
            (file_name, extension, row_id),
        )

    def grow(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Put bytes at a row's end."""
        grown = self.grown.format(self.mark(1))
        cursor.execute(
            f"UPDATE {self.name} SET DATA = {grown} WHERE ID = {self.mark(2)}", (data, row_id)
        )

    def set(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Let a row hold these bytes and no others."""
        cursor.execute(
            f"UPDATE {self.name} SET DATA = {self.mark(1)} WHERE ID = {self.mark(2)}",
            (data, row_id),
        )

    def read(self, cursor: RawCursor, row_id: int, offset: int, size: int) -> bytes:
        """Bytes of a row from an offset on; fewer at its end."""
        piece = self.piece.format(self.mark(1), self.mark(2))
        cursor.execute(
            f"SELECT {piece} FROM {self.name} WHERE ID = {self.mark(3)}",
            (offset + 1, size, row_id),
        )
        row = cursor.fetchone()
        if row is None:
            self._check_absent(cursor, "ID", row_id)
        return b"" if row is None or row[0] is None else bytes(row[0])

    def remove(self, cursor: RawCursor, row_id: int) -> None:
        """Delete a row and all that belongs to it."""
        cursor.execute(f"DELETE FROM {self.name} WHERE ID = {self.mark()}", (row_id,))

    def rename(self, cursor: RawCursor, row_id: int, file_name: str) -> None:
        """Give a row another name; its extension stays, as in Artemis."""
        cursor.execute(
            f"UPDATE {self.name} SET FILENAME = {self.mark(1)} WHERE ID = {self.mark(2)}",
            (file_name, row_id),
        )

    def names(self, cursor: RawCursor, extension: str) -> list[str]:
        """Names of the files with an extension, in the order of their making."""
        cursor.execute(
            f"SELECT FILENAME, ID FROM {self.name} WHERE EXTENSION = {self.mark()} ORDER BY ID",
            (extension,),
        )
        found = list(dict.fromkeys(str(name) for name, _ in cursor.fetchall()))
        if not found:
            self._check_absent(cursor, "EXTENSION", extension)
        return found

    def remove_all(self, cursor: RawCursor) -> None:
        """Give up what lies outside the table, before the table is dropped."""

    def _check_absent(self, cursor: RawCursor, column: str, value: object) -> None:
        """A SELECT of the rows with this value has found none: raise if there are some."""


class SQLiteFileRows(FileRows):
    """Rows of 1 MiB: SQLite writes a row anew whenever it grows."""

    grown = "CAST(DATA || {0} AS BLOB)"

    def row_max(self, cursor: RawCursor) -> int:
        """No reference reads these tables; so rows may be as small as suits SQLite."""
        return SQLITE_ROW_MAX


class MySQLFileRows(FileRows):
    """Rows within max_allowed_packet, beyond which CONCAT() gives NULL.

    A statement that has found no row is looked at again; see StatementCancelled.
    """

    grown = "CONCAT(DATA, {0})"

    def row_max(self, cursor: RawCursor) -> int:
        """As far as Artemis gets, which sends whole rows."""
        cursor.execute("SELECT @@max_allowed_packet")
        return int(cursor.fetchone()[0]) - PACKET_MARGIN

    def grow(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Put bytes at a row's end."""
        super().grow(cursor, row_id, data)
        self._check_changed(cursor, row_id)

    def set(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Let a row hold these bytes and no others."""
        super().set(cursor, row_id, data)
        self._check_changed(cursor, row_id)

    def remove(self, cursor: RawCursor, row_id: int) -> None:
        """Delete a row."""
        super().remove(cursor, row_id)
        self._check_changed(cursor, row_id)

    def rename(self, cursor: RawCursor, row_id: int, file_name: str) -> None:
        """Give a row another name."""
        super().rename(cursor, row_id, file_name)
        self._check_changed(cursor, row_id)

    def _check_changed(self, cursor: RawCursor, row_id: int) -> None:
        """What found no row (CLIENT_FOUND_ROWS is set: found, not changed) is right without one."""
        if cursor.rowcount == 0:
            self._check_absent(cursor, "ID", row_id)

    def _check_absent(self, cursor: RawCursor, column: str, value: object) -> None:
        """Count them: what decides that a table holds no pages must not be a cancelled SELECT."""
        cursor.execute(f"SELECT COUNT(*) FROM {self.name} WHERE {column} = {self.mark()}", (value,))
        if cursor.fetchone() != (0,):
            raise StatementCancelled("a statement was cancelled without an error")


class DerbyFileRows(FileRows):
    """Pieces by JDBC's Blob: SUBSTR() takes none."""

    text = "CAST({0} AS VARCHAR(255))"
    grown = "DATA || CAST({0} AS BLOB)"

    def read(self, cursor: RawCursor, row_id: int, offset: int, size: int) -> bytes:
        """Only the piece comes from the server."""
        from jdbcstore.dialects import jdbc

        assert isinstance(cursor, jdbc.Cursor)
        cursor.execute(f"SELECT DATA FROM {self.name} WHERE ID = ?", (row_id,))
        return cursor.fetch_piece(offset, size)


class OracleFileRows(FileRows):
    """Locators: SQL functions on BLOBs end at 32 KiB."""

    length = "DBMS_LOB.GETLENGTH(DATA)"

    def add(self, cursor: RawCursor, file_name: str, extension: str) -> None:
        """An empty string would be NULL, which has no locator."""
        cursor.execute(
            f"INSERT INTO {self.name} (FILENAME, EXTENSION, DATA) VALUES (:1, :2, EMPTY_BLOB())",
            (file_name, extension),
        )

    def grow(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Append by the locator, in place."""
        lob = self._locator(cursor, row_id, " FOR UPDATE")
        lob.write(data, lob.size() + 1)

    def set(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Empty the row, then append."""
        cursor.execute(f"UPDATE {self.name} SET DATA = EMPTY_BLOB() WHERE ID = :1", (row_id,))
        if data:
            self.grow(cursor, row_id, data)

    def read(self, cursor: RawCursor, row_id: int, offset: int, size: int) -> bytes:
        """Only the piece comes from the server."""
        lob = self._locator(cursor, row_id, "")
        return bytes(lob.read(offset + 1, size) or b"") if size else b""

    def _locator(self, cursor: Any, row_id: int, lock: str) -> Any:  # noqa: ANN401 - oracledb.LOB.
        # SQLAlchemy's handler on the connection would fetch the whole object.
        cursor.outputtypehandler = lambda *_: None
        cursor.execute(f"SELECT DATA FROM {self.name} WHERE ID = :1{lock}", (row_id,))
        return cursor.fetchone()[0]


class SQLServerFileRows(FileRows):
    """`.WRITE()` at NULL appends in place."""

    length = "DATALENGTH(DATA)"
    piece = "SUBSTRING(DATA, {0}, {1})"

    def grow(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Put bytes at a row's end."""
        cursor.execute(
            f"UPDATE {self.name} SET DATA.WRITE(CAST({self.mark(1)} AS VARBINARY(max)), "
            f"NULL, NULL) WHERE ID = {self.mark(2)}",
            (data, row_id),
        )


class DB2FileRows(FileRows):
    """As Artemis's own statement for DB2."""

    text = "CAST({0} AS VARCHAR(255))"
    grown = "DATA || CAST({0} AS BLOB(2G))"
    piece = "SUBSTR(DATA, CAST({0} AS INTEGER), CAST({1} AS INTEGER))"


class PostgreSQLFileRows(FileRows):
    """Large objects; DATA is the OID. They go with their last row, which Artemis forgets.

    Two rows may name one object: a copy is made so, by Artemis too.
    """

    # 0x40000 is INV_READ, 2 is SEEK_END: PostgreSQL has no function for a size.
    length = "lo_lseek64(lo_open(DATA, 262144), 0, 2)"

    def row_max(self, cursor: RawCursor) -> int:
        """Four tebibytes, says the manual; what Artemis holds to is less."""
        return self.dialect.max_blob_size

    def add(self, cursor: RawCursor, file_name: str, extension: str) -> None:
        """Row and object are made together."""
        cursor.execute(
            f"INSERT INTO {self.name} (FILENAME, EXTENSION, DATA) VALUES (%s, %s, lo_create(0))",
            (file_name, extension),
        )

    def grow(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Write at the object's end."""
        cursor.execute(
            f"SELECT lo_put(DATA, {self.length}, %b) FROM {self.name} WHERE ID = %s", (data, row_id)
        )

    def set(self, cursor: RawCursor, row_id: int, data: bytes) -> None:
        """Empty the object, 0x60000 being INV_READ | INV_WRITE, then write."""
        cursor.execute(
            f"SELECT lo_truncate64(lo_open(DATA, 393216), 0) FROM {self.name} WHERE ID = %s",
            (row_id,),
        )
        self.grow(cursor, row_id, data)

    def read(self, cursor: RawCursor, row_id: int, offset: int, size: int) -> bytes:
        """Only the piece comes from the server."""
        cursor.execute(
            f"SELECT lo_get(DATA, %s, %s) FROM {self.name} WHERE ID = %s", (offset, size, row_id)
        )
        row = cursor.fetchone()
        return b"" if row is None else bytes(row[0])

    def remove(self, cursor: RawCursor, row_id: int) -> None:
        """The object goes with the last row that names it."""
        cursor.execute(
            f"SELECT lo_unlink(DATA) FROM {self.name} AS gone WHERE ID = %s AND NOT EXISTS "
            f"(SELECT 1 FROM {self.name} AS kept "
            "WHERE kept.DATA = gone.DATA AND kept.ID <> gone.ID)",
            (row_id,),
        )
        super().remove(cursor, row_id)

    def remove_all(self, cursor: RawCursor) -> None:
        """Objects outlive the table that names them."""
        cursor.execute(
            f"SELECT count(lo_unlink(DATA)) FROM (SELECT DISTINCT DATA FROM {self.name}) AS objects"
        )


KINDS: Final[dict[str, type[FileRows]]] = {
    "sqlite": SQLiteFileRows,
    "mysql": MySQLFileRows,
    "derby": DerbyFileRows,
    "oracle": OracleFileRows,
    "mssql": SQLServerFileRows,
    "db2": DB2FileRows,
    "postgresql": PostgreSQLFileRows,
}


def file_rows(table: Table, dialect: Dialect) -> FileRows:
    """The statements on a file table of this database."""
    return KINDS[dialect.name](table, dialect)
