"""The net effect of a list of operations: what one transaction of the database has to do.

An add and its delete in one batch vanish; a delete of an older record becomes one DELETE; a record
deleted and added again is deleted first and then inserted. So every batch is: delete these ids,
then insert these rows, and the order of the two is enough to be right.

Rows of staged transactions are inserted like others, but no delete of an id touches them. The end
of a staged transaction (its rows begin to count, or go) stands in a batch with other ends only:
then the whole batch can be found out to be in the database or not (writer.py: riding out) by
looking for one row.

No I/O, no lock: the owner's lock guards a batch until it is taken for writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jdbcstore.rows import ADD_RECORD

if TYPE_CHECKING:
    from collections.abc import Collection

    from jdbcstore.rows import Row

__all__ = ["Batch", "StagedEnd"]


@dataclass(frozen=True, slots=True)
class StagedEnd:
    """The end of a transaction whose rows are in the table.

    Attributes:
        tx_id: its rows carry this.
        is_commit: its adds and updates count from now on; otherwise all of its rows go.
        deleted_ids: what the transaction deletes, when it commits.
        seq_offset: added to the seq of its rows, so that they stand behind all older ones.
    """

    tx_id: int
    is_commit: bool
    deleted_ids: Collection[int] = ()
    seq_offset: int = 0


class Batch:
    """Operations in the order in which they were accepted, as their net effect.

    Attributes:
        number: the ticket of everything in here.
        rows: what to insert, in seq order; None where an insert was undone by a delete.
        deleted_ids: what to delete before that.
        ends: ends of staged transactions; then there is nothing else.
        operation_count: how many operations were put here.
        size: bytes of all bodies that were put here, gone or not.
    """

    __slots__ = (
        "_again",
        "_places",
        "deleted_ids",
        "ends",
        "number",
        "operation_count",
        "rows",
        "size",
    )

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.rows: list[Row | None] = []
        self.deleted_ids: set[int] = set()
        self.ends: list[StagedEnd] = []
        self.operation_count = 0
        self.size = 0
        # Where the rows of an id are; a list when there is more than one.
        self._places: dict[int, int | list[int]] = {}
        self._again: set[int] = set()

    def insert(self, row: Row, *, is_again: bool = False) -> None:
        """A row of a record that counts: an add, or an update.

        Args:
            row: its seq is higher than that of any row before it.
            is_again: an add of an id that is live already, which nobody checks in transactions.
        """
        record_id = row[0]
        place = len(self.rows)
        self.rows.append(row)
        self.operation_count += 1
        self.size += len(row[3])
        if is_again and record_id not in self._places:
            self._again.add(record_id)
        known = self._places.get(record_id)
        if known is None:
            self._places[record_id] = place
        elif isinstance(known, int):
            self._places[record_id] = [known, place]
        else:
            known.append(place)

    def stage(self, row: Row) -> None:
        """A row of a transaction that has not ended: no delete of a record touches it."""
        self.rows.append(row)
        self.operation_count += 1
        self.size += len(row[3]) + len(row[5])

    def delete(self, record_id: int) -> None:
        """The record and all its updates go."""
        self.operation_count += 1
        known = self._places.pop(record_id, None)
        if known is None:
            self.deleted_ids.add(record_id)
            return
        places = [known] if isinstance(known, int) else known
        first = self.rows[places[0]]
        assert first is not None
        for place in places:
            self.rows[place] = None
        # What begins with its add here was not in the table before, or is in deleted_ids already.
        if first[1] != ADD_RECORD or record_id in self._again:
            self._again.discard(record_id)
            self.deleted_ids.add(record_id)

    def end(self, end: StagedEnd) -> None:
        """A staged transaction ends."""
        assert not self.rows
        assert not self.deleted_ids
        self.ends.append(end)
        self.operation_count += 1

    @property
    def has_other(self) -> bool:
        """Whether anything but ends of staged transactions was put here."""
        return self.operation_count > len(self.ends)

    def live_rows(self) -> list[Row]:
        """The rows to insert."""
        return [row for row in self.rows if row is not None]

    def __bool__(self) -> bool:
        """Whether there is anything that somebody waits for."""
        return self.operation_count > 0
