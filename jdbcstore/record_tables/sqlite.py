"""The table of a journal in SQLite: many rows a statement, straight to the driver.

sqlite3 gives the GIL up and takes it back for every statement it runs, and each time another busy
thread may keep it for a switch interval. So there are as few statements as may be: INSERTs of many
rows, from texts that stay the same and are therefore compiled once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from jdbcstore.record_tables.base import id_runs
from jdbcstore.record_tables.generic import GenericTable

if TYPE_CHECKING:
    import sqlite3

    from jdbcstore.batch import Batch

__all__ = ["SqliteTable"]

# Rows of one INSERT, from the most down: 9 parameters each, of 32,766 (since SQLite 3.32). Powers
# of two, so that any number of rows takes few statements, and there are few to compile.
ROWS_PER_INSERT: Final = tuple(1 << power for power in range(8, -1, -1))
ROW: Final = "(?,?,0,?,?,?,?,?,?,0,?)"
IDS_PER_DELETE: Final = 500


class SqliteTable(GenericTable):
    """See RecordTable."""

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence."""
        if batch.ends or self.fence is None:
            super().write(batch)
            return
        fence = self.fence.fence_statement(may_raise=False)
        raw: sqlite3.Connection = self.connection.connection.driver_connection  # type: ignore[assignment]
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

    def _insert(self, raw: sqlite3.Connection, batch: Batch) -> None:
        start, total = 0, batch.insert_count
        for count in ROWS_PER_INSERT:
            while total - start >= count:
                raw.execute(self._inserts[count], batch.values(start, count))
                start += count

    @functools.cached_property
    def _inserts(self) -> dict[int, str]:
        """By the number of rows."""
        names = ",".join(column.name for column in self.table.columns)
        head = f"INSERT INTO {self.database.dialect.quoted(self.table)} ({names}) VALUES "
        return {count: head + ",".join([ROW] * count) for count in ROWS_PER_INSERT}

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
