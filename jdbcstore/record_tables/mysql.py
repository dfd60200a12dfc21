"""The table of a journal on MySQL and MariaDB: multi-row INSERTs whose bodies we quote ourselves.

PyMySQL quotes bytes one value at a time through str and a table of escapes, and that is most of
what its executemany() costs. Here bytes stay bytes: two replaces a body, at the speed of memcpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from jdbcstore.record_tables.generic import GenericTable

if TYPE_CHECKING:
    from jdbcstore.rows import Row

__all__ = ["MySqlTable", "quoted_bytes"]


def quoted_bytes(value: bytes) -> bytes:
    r"""A literal of bytes, for a session without NO_BACKSLASH_ESCAPES.

    Within quotes the server's parser treats only the quote and the backslash in a special way
    (https://dev.mysql.com/doc/refman/8.4/en/string-literals.html); all other bytes, the zero
    included, stand for themselves.

    >>> quoted_bytes(b"a'b" + bytes([92, 0]))
    b"_binary'a\\'b\\\\\x00'"
    """
    return b"_binary'%b'" % value.replace(b"\\", b"\\\\").replace(b"'", b"\\'")


class MySqlTable(GenericTable):
    """See RecordTable."""

    _packet_size_max = 0
    _insert_head = b""

    @property
    def body_size_max(self) -> int:
        """Half a packet, since every byte of a body may have to be escaped."""
        return min(super().body_size_max, (self.packet_size_max - 1024) // 2)

    @property
    def packet_size_max(self) -> int:
        """The server's max_allowed_packet, in bytes."""
        if not self._packet_size_max:
            with self.connection.begin():
                self._packet_size_max = int(
                    self.connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
                )
        return self._packet_size_max

    def insert_rows(self, rows: list[Row]) -> None:
        """Insert rows, inside a transaction, as few statements as fit a packet each."""
        proxied: Any = self.connection.connection.driver_connection
        for statement in self.statements(rows):
            proxied.query(statement)

    def statements(self, rows: list[Row]) -> list[bytes]:
        """INSERT statements, each smaller than a packet."""
        if not self._insert_head:
            names = ",".join(column.name for column in self.table.columns)
            quoted = self.database.dialect.quoted(self.table)
            self._insert_head = f"INSERT INTO {quoted} ({names}) VALUES ".encode()
        made: list[bytes] = []
        values: list[bytes] = []
        size = 0
        room = self.packet_size_max - len(self._insert_head) - 1024
        for record_id, record_type, user_type, body, tx_id, tx_data, seq in rows:
            value = b"(%d,%d,0,%d,%d,%d,%b,%d,%b,0,%d)" % (
                record_id,
                record_type,
                tx_id,
                user_type - 256 if user_type > 127 else user_type,
                len(body),
                quoted_bytes(body),
                len(tx_data),
                quoted_bytes(tx_data) if tx_data else b"''",
                seq,
            )
            if size + len(value) > room and values:
                made.append(self._insert_head + b",".join(values))
                values, size = [], 0
            values.append(value)
            size += len(value) + 1
        made.append(self._insert_head + b",".join(values))
        return made
