"""A table of records in parts that several may read at once, by ranges of record ids.

What counts of a record is decided by the rows of its id and by the ends of transactions. So the
reader of a range also reads all rows of open transactions, which are few, and skips those of other
ids. Each part may be read at another moment: a record's rows are in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import and_, func, or_, select

from jdbcstore.rows import COMMIT_RECORD, PREPARE_RECORD, ROLLBACK_RECORD

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select, Table

__all__ = ["ENDS", "WHOLE_TABLE", "IdRange", "id_ranges"]

# Rows of a transaction itself; the id in them means nothing.
ENDS: Final = (PREPARE_RECORD, COMMIT_RECORD, ROLLBACK_RECORD)

_Select = TypeVar("_Select", bound="Select[Any]")


@dataclass(frozen=True, slots=True)
class IdRange:
    """Record ids of `first` <= id < `end`.

    Attributes:
        first: None: all below `end`; also the rows of no record: ends, and rows without id or seq.
        end: None: all from `first` on.
    """

    first: int | None = None
    end: int | None = None

    def holds(self, record_id: int | None, record_type: int | None) -> bool:
        """Whether a row is of this part: of all parts of a table, one.

        >>> part = IdRange(None, 7)
        >>> part.holds(6, 11), part.holds(7, 11), part.holds(7, COMMIT_RECORD)
        (True, False, True)
        """
        if record_id is None or record_type in ENDS:
            return self.first is None
        return (self.first is None or record_id >= self.first) and (
            self.end is None or record_id < self.end
        )

    def of(self, statement: _Select, table: Table) -> _Select:
        """The statement, of the rows of this part and of all those of transactions.

        Args:
            statement: that selects from `table`.
            table: as schema.journal_table() describes it.
        """
        ids, tx_ids = table.c.id, table.c.txId
        if self.first is None and self.end is None:
            return statement
        tests = []
        if self.first is not None:
            tests.append(ids >= self.first)
        if self.end is not None:
            tests.append(ids < self.end)
        # Two comparisons and no "<>", which no index serves.
        found = or_(and_(*tests), tx_ids > 0, tx_ids < 0)
        return statement.where(or_(found, ids.is_(None)) if self.first is None else found)


WHOLE_TABLE: Final = IdRange()


def id_ranges(connection: Connection, table: Table, *, rows_max: int) -> list[IdRange]:
    """Cut a table so that each part has about so many rows, one record's never parted.

    Walks along the index of ids once, in steps of `rows_max`; no body is read.

    Args:
        connection: in a transaction.
        table: as schema.journal_table() describes it.
        rows_max: 1 or more; a record with more rows is one part all the same.

    Raises:
        sqlalchemy.exc.DBAPIError: the database fails, for `errors.classify`.
    """
    found: list[IdRange] = []
    first: int | None = None
    while True:
        ids = select(table.c.id).where(table.c.id.is_not(None))
        if first is not None:
            ids = ids.where(table.c.id >= first)
        step = ids.order_by(table.c.id).limit(rows_max).subquery("step")
        count, last = connection.execute(select(func.count(), func.max(step.c.id))).one()
        if count >= rows_max:
            end = connection.execute(
                select(func.min(table.c.id)).where(table.c.id > last)
            ).scalar_one()
        if count < rows_max or end is None:
            return [*found, IdRange(first, None)]
        found.append(IdRange(first, int(end)))
        first = int(end)
