"""Where a table of records is cut, so that it can be read in pages of bounded size.

By key and not by a cursor: most drivers fetch a cursor's whole result at once, and only a key tells
where to go on when the connection was lost. First the sizes of the next rows are asked for, then
so many of the rows as fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection, Table

__all__ = ["PAGE_ROWS", "PAGE_SIZE", "RowPages", "cuts"]

# Rows whose sizes are asked for together.
PAGE_ROWS: Final = 4000
# Bytes of bodies in one page: one row more only where it alone is larger.
PAGE_SIZE: Final = 4 * 1024 * 1024


class RowPages:
    """The pages of one table, by seq. Rows with the same seq are never parted.

    Args:
        table: as schema.journal_table() describes it.
    """

    def __init__(self, table: Table) -> None:
        self._seq = table.c.seq
        self._sizes = (
            select(
                table.c.seq,
                func.coalesce(table.c.variableSize, 0) + func.coalesce(table.c.txDataSize, 0),
            )
            .order_by(table.c.seq)
            .limit(PAGE_ROWS)
        )
        self._left = select(func.count()).select_from(table)

    def ends_after(self, connection: Connection, after: int | None) -> list[int]:
        """The last seq of each of the next pages; none at the end of the table.

        Args:
            connection: in a transaction.
            after: the last seq of the page before; None begins with the first row.

        Raises:
            sqlalchemy.exc.DBAPIError: the database fails, for `errors.classify`.
        """
        is_next = self._seq.is_not(None) if after is None else self._seq > after
        coming = connection.execute(self._sizes.where(is_next)).fetchall()
        # MariaDB (seen: 10.11) reports a SELECT with a LIMIT as done, with no rows, when it is
        # cancelled (KILL QUERY, max_statement_time) while it chooses an index: a load would end
        # early, and lose the rest. A count is one row, or fails.
        while not coming and connection.execute(self._left.where(is_next)).scalar_one():
            coming = connection.execute(self._sizes.where(is_next)).fetchall()
        return list(cuts([(int(seq), int(size)) for seq, size in coming]))


def cuts(coming: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The last seq of each page of rows, given as (seq, bytes) in their order.

    >>> list(cuts([(1, 3 << 20), (2, 2 << 20), (2, 1 << 20), (3, 10), (4, 9 << 20)]))
    [1, 3, 4]
    """
    page_size, last = 0, None
    for seq, size in coming:
        if last is not None and seq != last and page_size + size > PAGE_SIZE:
            yield last
            page_size = 0
        page_size += size
        last = seq
    if last is not None:
        yield last
