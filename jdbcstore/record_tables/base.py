"""The `RecordTable` interface: what a store needs of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import Connection

    from jdbcstore.batch import Batch
    from jdbcstore.rows import Row

__all__ = ["FenceStatement", "RecordTable", "WriteFence", "id_runs"]


class FenceStatement(Protocol):
    """One statement that proves the lease; see jdbcstore.lease_row.Fence."""

    @property
    def sql(self) -> str:
        """With the driver's own marks for parameters."""
        ...

    @property
    def parameters(self) -> tuple[object, ...]:
        """For them."""
        ...

    @property
    def raises(self) -> bool:
        """Whether the database itself refuses the transaction by this statement."""
        ...

    @property
    def returns_row(self) -> bool:
        """It is a SELECT; if not, an UPDATE."""
        ...


class WriteFence(Protocol):
    """Proves, inside each transaction that writes, that no other broker may: a Lease."""

    def fence(self, connection: Connection) -> None:
        """Prove it inside the connection's transaction, until that ends."""
        ...

    def fence_statement(self, *, may_raise: bool = True) -> FenceStatement:
        """The same as one statement, to be sent with others."""
        ...

    def fenced(self) -> Exception:
        """Count a transaction that the fence refused; the error for it."""
        ...


class RecordTable(Protocol):
    """One connection to the table of one journal. One thread at a time.

    Every method may raise what the driver raises; jdbcstore.errors.classify tells what that means.
    """

    def connect(self) -> None:
        """Connect, if not connected. What a connection lost before was doing there has ended."""
        ...

    def disconnect(self) -> None:
        """Give up the connection, in whatever state it is. Raises nothing."""
        ...

    def write(self, batch: Batch) -> None:
        """Put one batch into the table in one transaction, behind the fence.

        Returns once the database has said that it is committed.

        Raises:
            LeaseLost: the fence did not hold; nothing was written.
        """
        ...

    def holds(self, batch: Batch) -> bool:
        """Whether the batch is in the table, after a commit with an unknown outcome.

        Takes the fence first: a transaction of ours that still runs has ended when this looks.
        """
        ...

    def scan(self, after: int | None = None) -> Iterator[Sequence[Row]]:
        """The rows by seq, some at a time, in bounded memory.

        Rows with the same seq come together, so that another scan may begin behind them.

        Args:
            after: only rows with a higher seq.
        """
        ...

    def settle(self, committed: Collection[int], failed: Collection[int]) -> None:
        """Tidy up what a load found, behind the fence.

        Args:
            committed: transactions with a commit row: their rows become plain ones, in place.
            failed: transactions left open: their rows go.
        """
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def body_size_max(self) -> int:
        """Bytes of the largest body that it takes. Needs a connection."""
        ...


def id_runs(ids: Collection[int], run_min: int = 8) -> tuple[list[tuple[int, int]], list[int]]:
    """Ids as runs without a gap, and the rest.

    Args:
        ids: in any order, none twice.
        run_min: shorter runs are left in the rest.

    >>> id_runs([5, 1, 2, 3, 9], run_min=3)
    ([(1, 3)], [5, 9])
    """
    runs: list[tuple[int, int]] = []
    rest: list[int] = []
    ordered = sorted(ids)
    start = 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or ordered[end] != ordered[end - 1] + 1:
            if end - start >= run_min:
                runs.append((ordered[start], ordered[end - 1]))
            else:
                rest += ordered[start:end]
            start = end
    return runs, rest
