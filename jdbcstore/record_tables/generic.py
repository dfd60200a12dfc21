"""The table of a journal on any database, by SQLAlchemy's own statements.

The fast ways of single databases (postgresql.py, mysql.py, sqlite.py) are built upon this one and
replace what they do better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy
from sqlalchemy import bindparam, delete, func, insert, select, update

from jdbcstore.errors import StatementCancelled
from jdbcstore.record_tables.base import id_runs
from jdbcstore.row_pages import RowPages
from jdbcstore.rows import (
    ADD_RECORD,
    ADD_RECORD_TX,
    UPDATE_RECORD,
    UPDATE_RECORD_TX,
    Row,
    signed_byte,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import BindParameter, ColumnElement, Connection, Table

    from jdbcstore.batch import Batch, StagedEnd
    from jdbcstore.database import Database
    from jdbcstore.record_tables.base import WriteFence

__all__ = ["GenericTable"]

# Ids in one IN list: Oracle takes 1000, SQL Server 2100 parameters in all.
IN_LIST_MAX: Final = 500
# What a load reads of a row.
SCANNED: Final = ("id", "recordType", "userRecordType", "record", "txId", "txData", "seq")
# A store holds a few bodies at once while it sends them; the file journal takes 10 MiB.
BODY_SIZE_MAX: Final = 32 * 1024 * 1024


class GenericTable:
    """See RecordTable.

    Args:
        database: where it is.
        table: as schema.journal_table() describes it.
        fence: what every transaction that writes begins with; None only where nothing is written.
    """

    def __init__(self, database: Database, table: Table, fence: WriteFence | None) -> None:
        self.database = database
        self.table = table
        self.fence = fence
        self._connection: Connection | None = None

    # --- the connection -----------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, if not connected."""
        if self._connection is None:
            connection = self.database.connect()
            try:
                self.database.bound_idle_transactions(connection)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._connection = connection

    def disconnect(self) -> None:
        """Give up the connection, in whatever state it is."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Not back into the pool: a statement may still run on it.
            connection.invalidate()
            connection.close()

    @property
    def connection(self) -> Connection:
        """The connection; made if there is none."""
        if self._connection is None:
            self.connect()
        assert self._connection is not None
        return self._connection

    @property
    def body_size_max(self) -> int:
        """Bytes of the largest body."""
        return min(BODY_SIZE_MAX, self.database.dialect.max_blob_size)

    def _hold_fence(self) -> None:
        """Prove, inside a transaction, that the lease holds until its end."""
        if self.fence is not None:
            self.fence.fence(self.connection)

    # --- writing ------------------------------------------------------------------------------

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence."""
        with self.connection.begin():
            self._hold_fence()
            if batch.deleted_ids:
                self.delete_ids(batch.deleted_ids)
            rows = batch.live_rows()
            if rows:
                self.insert_rows(rows)
            for end in batch.ends:
                self.end_staged(end)

    def insert_rows(self, rows: list[Row]) -> None:
        """Insert rows, inside a transaction."""
        self.connection.execute(insert(self.table), [self.values(row) for row in rows])

    def values(self, row: Row) -> dict[str, Any]:
        """A row as its columns."""
        record_id, record_type, user_type, body, tx_id, tx_data, seq = row
        return {
            "id": record_id,
            "recordType": record_type,
            "compactCount": 0,
            "txId": tx_id,
            "userRecordType": signed_byte(user_type),
            "variableSize": len(body),
            "record": body,
            "txDataSize": len(tx_data),
            "txData": tx_data,
            "txCheckNoRecords": 0,
            "seq": seq,
        }

    def delete_ids(self, ids: Collection[int]) -> None:
        """Delete records and their updates, inside a transaction; rows of open ones stay."""
        table = self.table
        plain = _is_one_of(table, ADD_RECORD, UPDATE_RECORD)
        runs, rest = id_runs(ids)
        if runs:
            self.delete_rows(
                sqlalchemy.and_(table.c.id.between(bindparam("first"), bindparam("final")), plain),
                [{"first": first, "final": final} for first, final in runs],
            )
        for start in range(0, len(rest), IN_LIST_MAX):
            some = rest[start : start + IN_LIST_MAX]
            self.delete_rows(sqlalchemy.and_(table.c.id.in_(some), plain), [{}])

    def delete_rows(self, which: ColumnElement[bool], parameters: list[dict[str, int]]) -> None:
        """Delete rows, inside a transaction, once for each set of parameters."""
        self.connection.execute(delete(self.table).where(which), parameters)

    def commit_rows(self, tx_ids: Collection[int], seq_offset: int = 0) -> None:
        """Let the adds and updates of transactions count, inside a transaction of ours."""
        table = self.table
        values = {
            table.c.recordType: table.c.recordType - (ADD_RECORD_TX - ADD_RECORD),
            table.c.txId: 0,
        }
        if seq_offset:
            values[table.c.seq] = table.c.seq + seq_offset
        self.update_rows(
            sqlalchemy.and_(
                table.c.txId == bindparam("tx"),
                _is_one_of(table, ADD_RECORD_TX, UPDATE_RECORD_TX),
            ),
            values,
            [{"tx": tx_id} for tx_id in tx_ids],
        )

    def update_rows(
        self,
        which: ColumnElement[bool],
        values: dict[Any, Any],
        parameters: list[dict[str, int]],
    ) -> None:
        """Change rows so that `which` is true of none, once for each set of parameters.

        Inside a transaction.
        """
        self.connection.execute(update(self.table).where(which).values(values), parameters)

    def end_staged(self, end: StagedEnd) -> None:
        """End a transaction whose rows stand in the table, inside a transaction of ours."""
        table = self.table
        if end.is_commit:
            self.commit_rows([end.tx_id], end.seq_offset)
            if end.deleted_ids:
                self.delete_ids(end.deleted_ids)
        self.delete_rows(_is_staged(table, end.tx_id), [{}])

    def settle(self, committed: Collection[int], failed: Collection[int]) -> None:
        """Tidy up what a load found; see RecordTable."""
        table = self.table
        with self.connection.begin():
            self._hold_fence()
            if committed:
                self.commit_rows(committed)
            gone = [*committed, *failed]
            self.delete_rows(_is_staged(table, bindparam("tx")), [{"tx": tx_id} for tx_id in gone])

    # --- reading ------------------------------------------------------------------------------

    def holds(self, batch: Batch) -> bool:
        """Whether the batch is in the table; see RecordTable."""
        table = self.table
        with self.connection.begin():
            self._hold_fence()
            if batch.ends:
                # The last end took all rows of its transaction away, or none.
                # A count, not the first of them: see row_pages about LIMIT.
                left = self.connection.execute(
                    select(func.count())
                    .select_from(table)
                    .where(_is_staged(table, batch.ends[-1].tx_id))
                )
                return left.scalar_one() == 0
            seq = batch.last_seq
            if seq is None:
                return False  # Only deletes: they may be done twice.
            found = self.connection.execute(select(table.c.seq).where(table.c.seq == seq))
            return found.first() is not None

    def scan(self, after: int | None = None) -> Iterator[Sequence[Row]]:
        """The rows by seq, some at a time, in bounded memory; see row_pages."""
        pages = RowPages(self.table)
        while True:
            with self.connection.begin():
                ends = pages.ends_after(self.connection, after)
            if not ends:
                return
            for end in ends:
                rows = self._page(after, end)
                # No broker deletes while a store loads.
                if not rows or rows[-1][6] != end:
                    raise StatementCancelled(f"rows up to seq {end} exist and were not returned")
                after = end
                yield rows

    def _page(self, after: int | None, end: int) -> list[Row]:
        """The rows behind one seq, up to another and with it."""
        columns = self.table.c
        statement = (
            select(*(columns[name] for name in SCANNED))
            .where(columns.seq <= end)
            .order_by(columns.seq)
        )
        if after is not None:
            statement = statement.where(columns.seq > after)
        with self.connection.begin():
            return [
                (
                    record_id,
                    record_type,
                    user_type & 0xFF,
                    bytes(body or b""),
                    tx_id,
                    bytes(tx_data or b""),
                    seq,
                )
                for record_id, record_type, user_type, body, tx_id, tx_data, seq in (
                    self.connection.execute(statement)
                )
            ]

    def count(self) -> int:
        """How many rows there are."""
        with self.connection.begin():
            return int(
                self.connection.execute(select(func.count()).select_from(self.table)).scalar_one()
            )


def _is_one_of(table: Table, *record_types: int) -> ColumnElement[bool]:
    """Whether a row is of one of these types.

    Not by IN, which SQLAlchemy cannot execute for several sets of parameters.
    """
    return sqlalchemy.or_(*(table.c.recordType == one for one in record_types))


def _is_staged(table: Table, tx_id: int | BindParameter[int]) -> ColumnElement[bool]:
    """Whether a row is of a transaction that has not ended, or says how it did.

    By its type, too: Artemis's first transaction has the id 0, and that is what stands in the
    rows of no transaction.
    """
    return sqlalchemy.and_(
        table.c.txId == tx_id,
        table.c.recordType != ADD_RECORD,
        table.c.recordType != UPDATE_RECORD,
    )
