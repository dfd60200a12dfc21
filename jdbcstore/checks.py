"""Consistency checks of a journal's table: rows that contradict each other, or are invalid.

Rows are checked in the order of seq. Rows without a valid meaning are left out, and a load goes on
without them.

Not reported: an add of an id that is live (Artemis writes updates with a callback so), and deletes
of missing records (their rows were deleted when the transaction was committed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jdbcstore.id_ranges import ENDS, WHOLE_TABLE
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
from journal.errors import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jdbcstore.id_ranges import IdRange
    from jdbcstore.rows import Row
    from jdbcstore.snapshot import FullRow

__all__ = ["RowChecker"]

OPERATIONS_TX: Final = (ADD_RECORD_TX, UPDATE_RECORD_TX, DELETE_RECORD_TX)
TRANSACTIONAL: Final = (*OPERATIONS_TX, PREPARE_RECORD, COMMIT_RECORD, ROLLBACK_RECORD)
KNOWN: Final = (ADD_RECORD, UPDATE_RECORD, *TRANSACTIONAL)
NEEDED: Final = ("id", "recordType", "txId", "userRecordType")


class RowChecker:
    """Checks rows one after the other.

    Args:
        table_name: for what is found.
        part: of the table; rows of other parts are read, and not checked.

    Attributes:
        damages: what was found so far, by seq.
    """

    def __init__(self, table_name: str, part: IdRange = WHOLE_TABLE) -> None:
        self.table_name = table_name
        self._part = part
        self._is_own = True  # the row that is checked
        self.damages: list[Damage] = []
        self._last_seq: int | None = None
        self._seen: set[int] = set()  # transactions with a row, and without an end
        self._prepared: set[int] = set()
        self._committed: set[int] = set()

    def take(self, rows: Sequence[FullRow]) -> list[Row]:
        """Check rows; return the valid ones, as a load takes them.

        Of other parts there are the ends of transactions among them, which a load needs.
        """
        return [
            _row(row)
            for row in rows
            if self._check(row) and (self._is_own or row.record_type in ENDS)
        ]

    def take_lost(self, count: int) -> None:
        """So many rows have no seq."""
        if count and self._part.first is None:
            self._is_own = True
            self._note(0, f"{count} rows have no seq: a load of the table does not see them")

    def _check(self, row: FullRow) -> bool:
        """Whether it means something."""
        seq = row.seq
        self._is_own = self._part.holds(row.id, row.record_type)
        if seq == self._last_seq:
            self._note(seq, "a second row has this seq: the order of the two is open")
        self._last_seq = seq
        missing = [
            name
            for name, value in zip(
                NEEDED, (row.id, row.record_type, row.tx_id, row.user_type), strict=True
            )
            if value is None
        ]
        if missing:
            self._note(seq, f"{' and '.join(missing)} NULL")
            return False
        if row.record_type not in KNOWN:
            self._note(seq, f"recordType {row.record_type}, which no journal writes")
            return False
        for reason in _contradictions(row):
            self._note(seq, reason)
        if row.record_type in TRANSACTIONAL:
            self._check_transactional(seq, row.record_type, row.tx_id or 0)
        return True

    def _check_transactional(self, seq: int, record_type: int, tx_id: int) -> None:
        if tx_id in self._committed:
            self._note(seq, f"stands behind the end of its transaction {tx_id}")
        elif record_type == PREPARE_RECORD:
            if tx_id in self._prepared:
                self._note(seq, f"transaction {tx_id} is prepared a second time")
            self._prepared.add(tx_id)
            self._seen.add(tx_id)
        elif record_type in OPERATIONS_TX:
            self._seen.add(tx_id)
        else:
            if tx_id not in self._seen:
                what = "commit" if record_type == COMMIT_RECORD else "rollback"
                self._note(seq, f"{what} of transaction {tx_id}, which has no rows")
            self._committed.add(tx_id)
            self._seen.discard(tx_id)
            self._prepared.discard(tx_id)

    def _note(self, seq: int, reason: str) -> None:
        if self._is_own:
            self.damages.append(Damage(self.table_name, seq, 0, reason))


def _contradictions(row: FullRow) -> Iterator[str]:
    """What in a row contradicts the rest of it."""
    body, tx_data = row.record or b"", row.tx_data or b""
    if row.variable_size != len(body):
        yield f"variableSize {_shown(row.variable_size)} and a record of {len(body)} bytes"
    if row.tx_data_size != len(tx_data):
        yield f"txDataSize {_shown(row.tx_data_size)} and txData of {len(tx_data)} bytes"
    if tx_data and row.record_type != PREPARE_RECORD:
        yield f"txData in a row of recordType {row.record_type}, which is not a prepare record"
    if row.record_type in (ADD_RECORD, UPDATE_RECORD) and row.tx_id:
        yield f"recordType {row.record_type} is of no transaction, and txId is {row.tx_id}"
    if row.user_type is not None and not -128 <= row.user_type <= 255:
        yield f"userRecordType {row.user_type}, which does not fit in a byte"


def _shown(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def _row(row: FullRow) -> Row:
    """As jdbcstore.loading takes it; it was checked before."""
    return (
        row.id or 0,
        row.record_type or 0,
        (row.user_type or 0) & 0xFF,
        row.record or b"",
        row.tx_id or 0,
        row.tx_data or b"",
        row.seq,
    )
