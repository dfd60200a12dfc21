"""The records of a table, as every command that only reads sees them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import sqlalchemy

from jdbcstore.checks import RowChecker
from jdbcstore.lease_row import LeaseRow
from jdbcstore.live import LiveIds
from jdbcstore.loading import TableLoader
from jdbcstore.rows import (
    ADD_RECORD,
    ADD_RECORD_TX,
    COMMIT_RECORD,
    DELETE_RECORD_TX,
    PREPARE_RECORD,
    ROLLBACK_RECORD,
    UPDATE_RECORD,
    UPDATE_RECORD_TX,
)
from jdbcstore.schema import PRIMARY_LOCK_ROW, node_table
from jdbcstore.snapshot import failures
from journal.errors import Damage
from journal.reader import RawRecord
from journal.tools.verify import VerifyReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jdbcstore.loading import SqlRecord
    from jdbcstore.snapshot import FullRow, TableSnapshot
    from journal.api import Progress
    from journal.delivery import LiveRecord
    from journal.loaded import FailedTransaction, PreparedTransaction
    from journal.reader import FileView

__all__ = ["TableRecord", "TableRecords", "TableStat"]

# What a row is called in the raw view; the words of a journal file.
KINDS = {
    ADD_RECORD: "add",
    UPDATE_RECORD: "update",
    ADD_RECORD_TX: "add_tx",
    UPDATE_RECORD_TX: "update_tx",
    DELETE_RECORD_TX: "delete_tx",
    PREPARE_RECORD: "prepare",
    COMMIT_RECORD: "commit",
    ROLLBACK_RECORD: "rollback",
}
WITHOUT_ID = (PREPARE_RECORD, COMMIT_RECORD, ROLLBACK_RECORD)


class TableRecord(NamedTuple):
    """A live record of a table, with all that journal.delivery.LiveRecord has.

    Attributes:
        file: the table.
        offset: the row's seq.
        compact_count: 0: nothing is compacted in a table.
        checksum: `none`.
    """

    record_id: int
    user_type: int
    is_update: bool
    body: bytes
    file: str
    offset: int
    compact_count: int = 0
    checksum: str = "none"

    @property
    def kind(self) -> str:
        """`update` or `add`."""
        return "update" if self.is_update else "add"


@dataclass(frozen=True, slots=True)
class TableStat:
    """The figures of one table.

    Attributes:
        table: its name in the database.
        rows: of any kind.
        live_records: live ids.
        live_updates: updates of live ids.
        staged_rows: of transactions that wait for their end, or were left open.
        prepared_transactions: undecided.
        failed_transactions: left open.
        size_bytes: of all bodies, extra data included.
        live_bytes: of the bodies of live records.
        lease_holder: id of the broker that may write now; None: the lease is free.
        lease_remaining_ms: until that lease expires, by the database's clock.
        damages: rows that contradict each other.
    """

    table: str
    rows: int
    live_records: int
    live_updates: int
    staged_rows: int
    prepared_transactions: int
    failed_transactions: int
    size_bytes: int
    live_bytes: int
    lease_holder: str | None
    lease_remaining_ms: int
    damages: int

    def as_object(self) -> dict[str, Any]:
        """Every figure by its name."""
        return asdict(self)

    def as_rows(self) -> dict[str, str]:
        """For people."""
        lease = "free"
        if self.lease_holder is not None:
            lease = f"held by {self.lease_holder} for another {self.lease_remaining_ms} ms"
        return {
            "table": self.table,
            "rows": f"{self.rows} ({self.live_records} live records, {self.live_updates} updates of"
            f" them, {self.staged_rows} staged)",
            "transactions": f"{self.prepared_transactions} prepared,"
            f" {self.failed_transactions} failed",
            "bytes": f"{self.size_bytes} ({self.live_bytes} live)",
            "lease": lease,
            "damaged places": f"{self.damages}",
        }


class TableRecords:
    """See journal.tools.stored.StoredRecords. Memory: ids, and what waits in transactions.

    Args:
        snapshot: of the table, begun.
    """

    def __init__(self, snapshot: TableSnapshot) -> None:
        self._snapshot = snapshot
        self._checker = RowChecker(snapshot.name, snapshot.part)
        self._live = LiveIds()
        self._row_count = 0
        self._size_bytes = 0
        self.delivered_count = 0
        self.prepared: list[PreparedTransaction] = []
        self.failed: list[FailedTransaction] = []

    @property
    def name(self) -> str:
        """Of the table."""
        return self._snapshot.name

    @property
    def damages(self) -> list[Damage]:
        """What was found so far."""
        return self._checker.damages

    def records(self, progress: Progress) -> Iterator[LiveRecord]:
        """The live records in load order; rows that mean nothing are left out."""
        for record in self._sql_records(progress):
            yield cast(
                "LiveRecord",
                TableRecord(
                    record.record_id,
                    record.user_type,
                    record.is_update,
                    record.body,
                    self.name,
                    record.seq,
                ),
            )

    def add_ids(self, progress: Progress) -> Iterable[int]:
        """Ids of all records that a live add has made, ascending."""
        return sorted(
            record.record_id for record in self._sql_records(progress) if not record.is_update
        )

    def _sql_records(self, progress: Progress) -> Iterator[SqlRecord]:
        found: list[SqlRecord] = []
        loader = TableLoader(self._live, found.extend)
        for rows in self._pages(progress):
            loader.take(self._checker.take(rows))
            yield from found
            found.clear()
        self._checker.take_lost(self._snapshot.count_without_seq())
        result = loader.finish()
        self.prepared += result.prepared
        self.failed += result.failed
        self.delivered_count = result.delivered_count
        yield from found

    def _pages(self, progress: Progress) -> Iterator[list[FullRow]]:
        total = self._snapshot.count()
        for rows in self._snapshot.pages():
            yield rows
            self._row_count += len(rows)
            self._size_bytes += sum(
                len(row.record or b"") + len(row.tx_data or b"") for row in rows
            )
            progress(0, 1, self._row_count, max(total, self._row_count))
        progress(1, 1, total, total)

    def views(self, progress: Progress) -> Iterator[FileView]:
        """The table as one file."""
        yield cast("FileView", TableView(self, progress))

    def stat(self, progress: Progress) -> TableStat:
        """The figures."""
        adds = live_bytes = 0
        for record in self._sql_records(progress):
            adds += not record.is_update
            live_bytes += len(record.body)
        transactions: Sequence[PreparedTransaction | FailedTransaction] = [
            *self.prepared,
            *self.failed,
        ]
        staged = sum(len(one.records) + len(one.deletes) for one in transactions)
        holder, remaining_ms = self._lease()
        return TableStat(
            table=self.name,
            rows=self._row_count,
            live_records=len(self._live),
            live_updates=self.delivered_count - adds,
            staged_rows=staged + len(self.prepared),
            prepared_transactions=len(self.prepared),
            failed_transactions=len(self.failed),
            size_bytes=self._size_bytes,
            live_bytes=live_bytes,
            lease_holder=holder,
            lease_remaining_ms=remaining_ms,
            damages=len(self.damages),
        )

    def _lease(self) -> tuple[str | None, int]:
        """Who holds the primary's lease, and for how many milliseconds."""
        database = self._snapshot.database
        table = node_table(database.options.node_manager_store_table_name, database.dialect)
        with failures():
            if not sqlalchemy.inspect(self._snapshot.connection).has_table(table.name):
                return None, 0
            row = LeaseRow(table, database.dialect, PRIMARY_LOCK_ROW)
            view = row.look(self._snapshot.connection)
        if view is None or not view.is_held:
            return None, 0
        return view.holder, view.remaining_ms

    def verify(self, progress: Progress) -> VerifyReport:
        """Check every row; what was left open, and lone updates, are notes and no damage."""
        notes: list[Damage] = []
        seen = LiveIds()
        for record in self._sql_records(progress):
            if seen.put(record.record_id) and record.is_update:
                reason = f"an update of record {record.record_id}, which has no add"
                notes.append(Damage(self.name, record.seq, 0, reason, torn=True))
        for one in self.failed:
            count = len(one.records) + len(one.deletes)
            reason = f"transaction {one.tx_id} was left open, with {count} rows"
            seq = one.records[0].offset if one.records else 0
            notes.append(Damage(self.name, seq, 0, reason, torn=True))
        return VerifyReport(
            file_count=1,
            record_count=self._row_count,
            checksum_count=0,
            live_count=self.delivered_count,
            damages=tuple(self.damages),
            torn=tuple(notes),
        )

    def raw(self, progress: Progress) -> Iterator[RawRecord]:
        """Every row that means something, as a record of a file."""
        for rows in self._pages(progress):
            meant = {row[6] for row in self._checker.take(rows)}
            yield from (
                _raw(row)
                for row in rows
                if row.seq in meant and self._snapshot.part.holds(row.id, row.record_type)
            )
        self._checker.take_lost(self._snapshot.count_without_seq())


class TableView:
    """A table with what `print-data --raw` uses of journal.reader.FileView.

    Attributes:
        file_id: 0.
        size: bytes of the bodies read so far.
    """

    file_id = 0

    def __init__(self, records: TableRecords, progress: Progress) -> None:
        self._records = records
        self._progress = progress
        self._count = 0
        self.name = records.name
        self.size = 0

    def __iter__(self) -> Iterator[RawRecord]:
        """The rows by seq."""
        for record in self._records.raw(self._progress):
            self._count += 1
            self.size += record.size
            yield record

    def __len__(self) -> int:
        """Rows given so far."""
        return self._count


def _raw(row: FullRow) -> RawRecord:
    kind = row.record_type or 0
    body = row.tx_data if kind == PREPARE_RECORD else row.record
    has_body = kind not in (COMMIT_RECORD, ROLLBACK_RECORD)
    has_type = kind not in (*WITHOUT_ID, DELETE_RECORD_TX)
    return RawRecord(
        kind=KINDS[kind],
        offset=row.seq,
        size=len(body or b""),
        record_id=None if kind in WITHOUT_ID else row.id,
        tx_id=row.tx_id if kind not in (ADD_RECORD, UPDATE_RECORD) else None,
        user_type=(row.user_type or 0) & 0xFF if has_type else None,
        compact_count=row.compact_count or 0,
        body=(body or b"") if has_body else None,
        records_in_file=row.tx_check_no_records if kind in WITHOUT_ID[:2] else None,
        checksum="none",
        ordinal=None,
        verdict="live",
    )
