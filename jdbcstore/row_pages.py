"""Cuts a table of records into pages of bounded size, for reading.

By key and not by a cursor: most drivers fetch a cursor's whole result at once, and only a key tells
where to go on when the connection was lost. First it is asked how much the next rows are, as one
sum; then they are read, if they are no more than a page. Only where they are, the size of each is
asked for. How many rows that is about follows from the page before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, cast, func, select

from jdbcstore.id_ranges import WHOLE_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import ColumnElement, Connection, Table

    from jdbcstore.id_ranges import IdRange

__all__ = ["PAGE_ROWS", "PAGE_SIZE", "RowPages", "cuts"]

# Rows of one page, at most.
PAGE_ROWS: Final = 4000
# Bytes of bodies in one page: one row more only where it alone is larger.
PAGE_SIZE: Final = 4 * 1024 * 1024
# What the next rows should come to if they are like those before: a little less than a page.
PAGE_SIZE_TARGET: Final = PAGE_SIZE * 9 // 10


class RowPages:
    """The pages of one table, by seq. Rows with the same seq are never parted.

    Args:
        table: as schema.journal_table() describes it.
        part: of its ids.
    """

    def __init__(self, table: Table, part: IdRange = WHOLE_TABLE) -> None:
        self._seq = table.c.seq
        # Not in the columns' own type: Derby and SQL Server would sum them up in 32 bits.
        size = cast(func.coalesce(table.c.variableSize, 0), BigInteger) + cast(
            func.coalesce(table.c.txDataSize, 0), BigInteger
        )
        sizes = select(table.c.seq, size.label("bytes")).order_by(table.c.seq)
        self._sizes = part.of(sizes, table)
        self._left = part.of(select(func.count()).select_from(table), table)
        self._rows = PAGE_ROWS

    def ends_after(self, connection: Connection, after: int | None) -> list[int]:
        """The last seq of each of the next pages; none at the end of the table.

        Args:
            connection: in a transaction.
            after: the last seq of the page before; None begins with the first row.

        Raises:
            sqlalchemy.exc.DBAPIError: the database fails, for `errors.classify`.
        """
        is_next = self._seq.is_not(None) if after is None else self._seq > after
        coming = self._sizes.where(is_next).limit(self._rows).subquery("coming")
        total = select(func.count(), func.max(coming.c.seq), func.sum(coming.c.bytes))
        # "No rows" may be a statement that was cancelled (errors.StatementCancelled), and a load
        # would end early, and lose the rest. A count without a LIMIT is right, or fails; nothing
        # else ends the loop.
        while True:
            count, final, size = connection.execute(total).one()
            if count:
                ends = [int(final)]
                if size > PAGE_SIZE:
                    ends = self._cut(connection, is_next, int(final))
                if ends:
                    break
            elif not connection.execute(self._left.where(is_next)).scalar_one():
                return []
        self._rows = min(PAGE_ROWS, max(1, PAGE_SIZE_TARGET * int(count) // max(1, int(size))))
        return ends

    def _cut(self, connection: Connection, is_next: ColumnElement[bool], final: int) -> list[int]:
        """The last seq of each page of rows that are more than one; none: to be asked again.

        Should rows have gone, or not come, the pages end before `final`: the next ones go on there.
        """
        sizes = connection.execute(self._sizes.where(is_next, self._seq <= final))
        return list(cuts((int(seq), int(size)) for seq, size in sizes))


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
