"""What one transaction does with pages: what it sent there, what it acknowledged of them.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.paging.transactions import PageTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.paging.paging import Paging

__all__ = ["PagedPart"]


class PagedPart:
    """See the module's text.

    Args:
        paging: of the broker.

    Attributes:
        sent: what it put into pages; None where it put nothing there.
        notes: those messages, and queues, where a history shall know of them once it commits.
        acknowledged: how many durable references it acknowledged, of other transactions' pages.
        loaded: what of `sent` a start has found: its notes are in pages alone.
    """

    __slots__ = (
        "_appends",
        "_is_recorded",
        "_paging",
        "_transactions",
        "acknowledged",
        "loaded",
        "notes",
        "sent",
    )

    def __init__(self, paging: Paging) -> None:
        self._paging = paging
        self._transactions = paging.transactions
        self._appends = paging.appends
        self._is_recorded = False
        self.sent: PageTransaction | None = None
        self.loaded: PageTransaction | None = None
        self.notes: list[tuple[Message, list[int]]] = []
        self.acknowledged: dict[PageTransaction, int] = {}

    def begin_sending(self, tx_id: int) -> PageTransaction:
        """Give what others see of the transaction, from its first paged message on."""
        if self.sent is None:
            self.sent = PageTransaction(tx_id)
            self._transactions.add(self.sent)
        return self.sent

    def acknowledge(self, transaction: PageTransaction) -> None:
        """A durable reference that another transaction had put into a page."""
        self.acknowledged[transaction] = self.acknowledged.get(transaction, 0) + 1

    def load(self, sent: PageTransaction | None) -> None:
        """Of a prepared transaction: its records are there."""
        self._is_recorded = True
        self.sent = self.loaded = sent

    def record(self, tx_id: int) -> bool:
        """Append what has to be known of it, before its end is; whether there was anything."""
        if self._is_recorded:
            return False
        self._is_recorded = True
        has_records = False
        if self.sent is not None and self.sent.durable_count:
            self.sent.record_id = self._appends.add_transaction(
                self.sent.tx_id, self.sent.durable_count, tx_id
            )
            has_records = True
        for transaction, count in self.acknowledged.items():
            if transaction.record_id:
                self._appends.update_transaction(
                    transaction.record_id, transaction.tx_id, count, tx_id
                )
                has_records = True
        return has_records

    def committing(self) -> None:
        """It was asked to commit: who comes upon its messages waits for that.

        A history gets to know of those in `notes`, before the commit that makes that durable.
        """
        history = self._paging.history
        if history is not None and self.sent is not None:
            tx_id = self.sent.tx_id
            for message, queue_ids in self.notes:
                history.note_message(message, queue_ids, tx_id=tx_id)
        self.notes.clear()
        if self.sent is not None:
            self.sent.is_committing = True

    def note_recovered(self, then: Callable[[], object]) -> None:
        """Tell the history what an earlier run put into pages, before it commits; then go on."""
        if self.loaded is None:
            then()
        else:
            self._paging.note_recovered(self.loaded, then)

    def committed(self) -> None:
        """It is durable."""
        for transaction, count in self.acknowledged.items():
            transaction.durable_count -= count
        if self.sent is not None:
            self._transactions.commit(self.sent)

    def rolled_back(self) -> None:
        """It does not count."""
        if self.sent is not None:
            self._transactions.rollback(self.sent)
