"""Open transactions: their operations stay in memory until they end, if they are small.

A transaction that commits becomes plain rows, all in one transaction of the database, so nothing of
it is left over and the table does not grow. One that is prepared, or that grows large, is staged:
its rows go to the table at once, under its id, and count when its end rewrites them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jdbcstore.rows import DELETE_RECORD_TX

__all__ = ["STAGING_SIZE", "OpenTransaction", "Operation"]

# Bytes of bodies, with OPERATION_SIZE for each operation, that a transaction may hold in memory.
STAGING_SIZE: Final = 1024 * 1024
OPERATION_SIZE: Final = 64


class Operation(NamedTuple):
    """One operation inside a transaction.

    Attributes:
        record_type: 13 add, 14 update, 15 delete.
    """

    record_type: int
    record_id: int
    user_type: int
    body: bytes


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that has not ended.

    Attributes:
        tx_id: its id.
        operations: those in memory; none once it is staged.
        size: bytes that they count for.
        is_staged: its operations stand in the table.
        is_prepared: it survives a restart.
        is_failed: an operation of it was refused; it can only be rolled back.
        live_ids: staged: ids that it adds or updates, in order.
        deleted_ids: staged: ids that it deletes.
        first_seq: staged: of its first row; 0: none.
        final_seq: staged: of its last row.
    """

    tx_id: int
    operations: list[Operation] = field(default_factory=list)
    size: int = 0
    is_staged: bool = False
    is_prepared: bool = False
    is_failed: bool = False
    live_ids: list[int] = field(default_factory=list)
    deleted_ids: list[int] = field(default_factory=list)
    first_seq: int = 0
    final_seq: int = 0

    def take(self, operation: Operation) -> None:
        """Keep an operation in memory."""
        self.operations.append(operation)
        self.size += len(operation.body) + OPERATION_SIZE

    @property
    def is_large(self) -> bool:
        """Whether it has to be staged."""
        return self.size > STAGING_SIZE

    def note_staged(self, record_type: int, record_id: int, seq: int) -> None:
        """A row of it goes to the table, or was found there."""
        if not self.is_staged:
            self.is_staged = True
            self.first_seq = seq
        self.final_seq = seq
        if record_type == DELETE_RECORD_TX:
            self.deleted_ids.append(record_id)
        elif record_type < DELETE_RECORD_TX:
            self.live_ids.append(record_id)
