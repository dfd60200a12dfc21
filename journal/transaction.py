"""A transaction as a context manager, on any RecordStore.

    with store.transaction() as tx:
        tx.add(1, 45, b"debit")
        tx.update(2, 45, b"credit")

The block's end commits and returns once the transaction is durable; an exception rolls it back.
In asyncio write `async with`, which does not block the loop meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from journal.errors import JournalError, UnknownTransaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from types import TracebackType

    from typing_extensions import Buffer

    from journal.api import RecordId, Ticket, TxId

__all__ = ["Transaction", "TransactionalStore"]


class TransactionalStore(Protocol):
    """What a Transaction asks of its store; journal.api.RecordStore has all of it."""

    def add(
        self, record_id: RecordId, user_type: int, body: Buffer, *, tx: TxId | None = None
    ) -> Ticket:
        """Append a record."""
        ...

    def update(
        self, record_id: RecordId, user_type: int, body: Buffer, *, tx: TxId | None = None
    ) -> Ticket:
        """Append an update."""
        ...

    def delete(self, record_id: RecordId, body: Buffer = b"", *, tx: TxId | None = None) -> Ticket:
        """Append a delete."""
        ...

    def add_many(
        self,
        record_ids: Sequence[RecordId],
        user_type: int,
        bodies: Sequence[bytes],
        *,
        tx: TxId | None = None,
    ) -> Ticket:
        """Append many records."""
        ...

    def commit(self, tx: TxId, *, sync: bool | None = None, wait: bool = True) -> Ticket:
        """Let all of the transaction count."""
        ...

    def rollback(self, tx: TxId, *, sync: bool | None = None, wait: bool = True) -> Ticket:
        """Let none of it count."""
        ...

    def durable(self, ticket: Ticket) -> Awaitable[None]:
        """An awaitable of durability."""
        ...


class Transaction:
    """Appends that count together, at the end of a `with` or `async with` block, or not at all.

    Made by `Journal.transaction()` and `SqlStore.transaction()`. One without an operation writes
    nothing.

    Attributes:
        tx_id: its id in the store.
        ticket: of its commit; None before, and where there was nothing to commit.
    """

    def __init__(self, store: TransactionalStore, tx_id: TxId, *, sync: bool | None = None) -> None:
        self._store = store
        self._sync = sync
        self._is_begun = False
        self.tx_id = tx_id
        self.ticket: Ticket | None = None

    def __repr__(self) -> str:
        return f"<Transaction {self.tx_id}>"

    def add(self, record_id: RecordId, user_type: int, body: Buffer) -> Ticket:
        """Append a record with an id that was never used before."""
        self._is_begun = True
        return self._store.add(record_id, user_type, body, tx=self.tx_id)

    def update(self, record_id: RecordId, user_type: int, body: Buffer) -> Ticket:
        """Append an update of a record; whether it is live is not checked."""
        self._is_begun = True
        return self._store.update(record_id, user_type, body, tx=self.tx_id)

    def delete(self, record_id: RecordId, body: Buffer = b"") -> Ticket:
        """Append a delete of a record; `body` is kept with it until the transaction ends."""
        self._is_begun = True
        return self._store.delete(record_id, body, tx=self.tx_id)

    def add_many(
        self, record_ids: Sequence[RecordId], user_type: int, bodies: Sequence[bytes]
    ) -> Ticket:
        """Append many records with one call."""
        self._is_begun = self._is_begun or bool(record_ids)
        return self._store.add_many(record_ids, user_type, bodies, tx=self.tx_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._roll_back(error)
        elif self._is_begun:
            self.ticket = self._store.commit(self.tx_id, sync=self._sync)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._roll_back(error)
        elif self._is_begun:
            self.ticket = self._store.commit(self.tx_id, sync=self._sync, wait=False)
            if self._sync is not False:
                await self._store.durable(self.ticket)

    def _roll_back(self, error: BaseException) -> None:
        """Undo it without waiting; the error of the block is the one that is raised."""
        if not self._is_begun:
            return
        try:
            self._store.rollback(self.tx_id, sync=False, wait=False)
        except UnknownTransaction:
            pass  # The block has ended it itself, or its only operation was refused.
        except JournalError as also:
            error.add_note(f"and its transaction could not be rolled back: {also}")
