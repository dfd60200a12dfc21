"""The table of a journal in SQLite: many rows a statement, straight to the driver.

sqlite3 gives the GIL up and takes it back for every statement it runs, and each time another busy
thread may keep it for a switch interval. So there are as few statements as possible. INSERTs have
many rows, and their texts stay the same and are compiled once. A single row is one statement in
all, which is its own transaction and checks the fence itself.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from jdbcstore.record_tables.base import id_runs
from jdbcstore.record_tables.generic import GenericTable

if TYPE_CHECKING:
    import sqlite3

    from jdbcstore.batch import Batch
    from jdbcstore.record_tables.base import FenceStatement

__all__ = ["SqliteTable"]

# Rows of one INSERT, from the most down: 9 parameters each, of 32,766 (since SQLite 3.32). Powers
# of two, so that any number of rows takes few statements, and there are few to compile.
ROWS_PER_INSERT: Final = tuple(1 << power for power in range(8, -1, -1))
ROW: Final = "(?,?,0,?,?,?,?,?,?,0,?)"
IDS_PER_DELETE: Final = 500


class SqliteTable(GenericTable):
    """See RecordTable."""

    # The statement that inserts one row if this fence holds: (the fence's text, its own).
    _lone_insert = ("", "")

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence."""
        if batch.ends or self.fence is None:
            super().write(batch)
            return
        fence = self.fence.fence_statement(may_raise=False)
        raw: sqlite3.Connection = self.connection.connection.driver_connection  # type: ignore[assignment]
        if fence.returns_row and batch.operation_count == batch.insert_count == 1:
            self._insert_one(raw, fence, batch)
            return
        raw.execute("BEGIN IMMEDIATE")
        try:
            cursor = raw.execute(fence.sql, fence.parameters)
            held = cursor.fetchone() is not None if fence.returns_row else cursor.rowcount == 1
            if not held:
                raise self.fence.fenced()
            if batch.deleted_ids:
                self._delete(raw, batch)
            self._insert(raw, batch)
            raw.execute("COMMIT")
        except BaseException:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            raise

    def _insert_one(self, raw: sqlite3.Connection, fence: FenceStatement, batch: Batch) -> None:
        """The only row of a batch, if the fence holds.

        A statement outside a transaction is one. It takes the file for writing before it looks at
        anything, as BEGIN IMMEDIATE does (https://www.sqlite.org/lang_transaction.html).
        """
        if self._lone_insert[0] is not fence.sql:
            self._lone_insert = (
                fence.sql,
                f"{self._insert_head}SELECT {ROW[1:-1]} WHERE EXISTS ({fence.sql})",
            )
        values = (*batch.values(0, 1), *fence.parameters)
        if raw.execute(self._lone_insert[1], values).rowcount != 1:
            assert self.fence is not None
            raise self.fence.fenced()

    def _insert(self, raw: sqlite3.Connection, batch: Batch) -> None:
        start, total = 0, batch.insert_count
        for count in ROWS_PER_INSERT:
            while total - start >= count:
                raw.execute(self._inserts[count], batch.values(start, count))
                start += count

    @functools.cached_property
    def _inserts(self) -> dict[int, str]:
        """By the number of rows."""
        head = f"{self._insert_head}VALUES "
        return {count: head + ",".join([ROW] * count) for count in ROWS_PER_INSERT}

    @functools.cached_property
    def _insert_head(self) -> str:
        names = ",".join(column.name for column in self.table.columns)
        return f"INSERT INTO {self.database.dialect.quoted(self.table)} ({names}) "

    def _delete(self, raw: sqlite3.Connection, batch: Batch) -> None:
        table = self.database.dialect.quoted(self.table)
        runs, rest = id_runs(batch.deleted_ids)
        for run in runs:
            raw.execute(
                f"DELETE FROM {table} WHERE id BETWEEN ? AND ? AND recordType IN (11,12)", run
            )
        for start in range(0, len(rest), IDS_PER_DELETE):
            some = rest[start : start + IDS_PER_DELETE]
            marks = ",".join("?" * len(some))
            raw.execute(
                f"DELETE FROM {table} WHERE id IN ({marks}) AND recordType IN (11,12)", some
            )
