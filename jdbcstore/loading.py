"""Loads a table: rows in the order of seq become records and transactions.

The rules are those of Artemis's load (JDBCJournalImpl), with three differences. Records are passed
on while rows come, so memory is bounded. A second add row of an id is an update: Artemis writes
updates with a callback as adds. Transactions left open are reported and discarded.

A row of a transaction counts at its commit row, or, once prepared, when it is ended. Deletes of a
committed transaction are not applied again: their rows went together with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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
from jdbcstore.transactions import OpenTransaction
from journal.errors import UnsupportedFormat
from journal.loaded import DeletedRecord, FailedTransaction, LoadResult, PreparedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jdbcstore.live import LiveIds
    from jdbcstore.rows import Row

__all__ = ["SqlRecord", "TableLoader"]


class SqlRecord(NamedTuple):
    """One live record of a table, with what a record of the file journal has.

    Attributes:
        record_id: its id.
        user_type: 0 … 255, the caller's meaning.
        is_update: it changes a record that came before.
        body: its bytes.
        seq: its place in the table; grows with every row.
    """

    record_id: int
    user_type: int
    is_update: bool
    body: bytes
    seq: int

    @property
    def offset(self) -> int:
        """Its place, as a record of a file calls it: seq."""
        return self.seq

    @property
    def compact_count(self) -> int:
        """Always 0: nothing is compacted in a table."""
        return 0

    @property
    def kind(self) -> str:
        """`update` or `add`."""
        return "update" if self.is_update else "add"


@dataclass(slots=True)
class FoundTransaction:
    """Rows of a transaction, until its end is found."""

    rows: list[Row] = field(default_factory=list)
    extra: bytes | None = None
    seqs: tuple[int, int] = (0, 0)


class TableLoader:
    """Takes rows in seq order.

    Args:
        live: gets the ids of all live records.
        on_batch: called with lists of SqlRecord, one for each page of rows.

    Attributes:
        max_seq: highest seq seen.
        record_count: rows seen.
        delivered_count: records passed on.
        committed: transactions with a commit row, to be settled.
        found: transactions without one, by id, in the order of their first row.
    """

    def __init__(
        self, live: LiveIds, on_batch: Callable[[Sequence[Any]], object] | None = None
    ) -> None:
        self.live = live
        self.max_seq = 0
        self.max_tx_id = 0
        self.record_count = 0
        self.delivered_count = 0
        self.committed: list[int] = []
        self.found: dict[int, FoundTransaction] = {}
        self._on_batch = on_batch
        self._records: list[SqlRecord] = []

    def take(self, rows: Sequence[Row]) -> None:
        """Take the next page of rows, and pass on what it holds.

        Raises:
            UnsupportedFormat: a row of an unknown recordType.
        """
        put = self.live.put
        records = self._records
        for row in rows:
            record_id, record_type, user_type, body, tx_id, _, seq = row
            if record_type == ADD_RECORD:
                records.append(SqlRecord(record_id, user_type, not put(record_id), body, seq))
            elif record_type == UPDATE_RECORD:
                put(record_id)
                records.append(SqlRecord(record_id, user_type, True, body, seq))
            else:
                self._take_transactional(row, tx_id)
                records = self._records
        if rows:
            self.record_count += len(rows)
            self.max_seq = max(self.max_seq, rows[-1][6])
        if records:
            self._pass_on()  # A page is as much as memory should hold.

    def _take_transactional(self, row: Row, tx_id: int) -> None:
        _, record_type, _, _, _, tx_data, seq = row
        self.max_tx_id = max(self.max_tx_id, tx_id)
        if record_type in (ADD_RECORD_TX, UPDATE_RECORD_TX, DELETE_RECORD_TX, PREPARE_RECORD):
            found = self.found.setdefault(tx_id, FoundTransaction(seqs=(seq, seq)))
            found.seqs = (found.seqs[0], seq)
            if record_type == PREPARE_RECORD:
                found.extra = tx_data
            else:
                found.rows.append(row)
        elif record_type == COMMIT_RECORD:
            self.committed.append(tx_id)
            committed = self.found.pop(tx_id, None)
            if committed is None:
                return
            for row in committed.rows:
                record_id, record_type, user_type, body, _, _, seq = row
                if record_type != DELETE_RECORD_TX:
                    is_new = self.live.put(record_id)
                    is_update = record_type == UPDATE_RECORD_TX or not is_new
                    self._records.append(SqlRecord(record_id, user_type, is_update, body, seq))
        elif record_type == ROLLBACK_RECORD:
            # No journal writes one; it is handled as a rollback.
            self.found.pop(tx_id, None)
            self.committed.append(tx_id)
        else:
            raise UnsupportedFormat(
                f"row with seq {seq} has recordType {record_type}, which no journal writes"
            )

    def _pass_on(self) -> None:
        records, self._records = self._records, []
        self.delivered_count += len(records)
        if self._on_batch is not None:
            self._on_batch(records)

    def finish(self) -> LoadResult:
        """All rows were taken: what was found."""
        if self._records:
            self._pass_on()
        prepared, failed = [], []
        for tx_id, found in self.found.items():
            records = tuple(
                SqlRecord(record_id, user_type, record_type == UPDATE_RECORD_TX, body, seq)
                for record_id, record_type, user_type, body, _, _, seq in found.rows
                if record_type != DELETE_RECORD_TX
            )
            deletes = tuple(
                DeletedRecord(row[0], row[3]) for row in found.rows if row[1] == DELETE_RECORD_TX
            )
            if found.extra is None:
                failed.append(FailedTransaction(tx_id, records, deletes))  # type: ignore[arg-type]
            else:
                prepared.append(
                    PreparedTransaction(tx_id, found.extra, records, deletes)  # type: ignore[arg-type]
                )
        return LoadResult(
            record_count=self.record_count,
            max_id=self.live.max_id,
            delivered_count=self.delivered_count,
            prepared=prepared,
            failed=failed,
        )

    def prepared_transactions(self) -> list[OpenTransaction]:
        """What finish() found prepared, as open transactions that can be ended."""
        transactions = []
        for tx_id, found in self.found.items():
            if found.extra is not None:
                one = OpenTransaction(tx_id, is_staged=True, is_prepared=True)
                one.first_seq, one.final_seq = found.seqs
                for row in found.rows:
                    one.note_staged(row[1], row[0], one.final_seq)
                transactions.append(one)
        return transactions
