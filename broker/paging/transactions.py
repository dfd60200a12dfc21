"""Transactions that put messages into pages, and what a transaction does with pages.

    send ─▶ page, with the transaction's id ─▶ (pages durable) ─▶ record 35, COMMIT ─▶ visible
                                                        └ rollback: nobody ever reads it

A message in a page counts if record 35 names its transaction. That record lives as long as there
are pages with such messages: without it they would count no more.

    PagedPart          of a transaction: what it sent into pages, what it acknowledged of them
    PageTransaction    what others see of it: open or committed, in which pages
    PageTransactions   all of them, by transaction id

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.paging.cursor import LateRange
    from broker.paging.page import Page
    from broker.paging.paging import Paging
    from broker.paging.subscription import PageSubscription
    from broker.storage.page_appends import PageAppends

__all__ = ["PageTransaction", "PageTransactions", "PagedPart"]


class PageTransaction:
    """See the module's text.

    Attributes:
        tx_id: that its messages carry.
        record_id: of record 35; 0 while there is none.
        is_committing: it was asked to, and will be as soon as that is durable.
        is_committed: its messages may be read.
        durable_count: of its references in durable queues, those not acknowledged.
        pages: that hold messages of it; until it is decided, with the counts of each queue.
        late: what queues came upon before it was decided, by queue, page and offset.
    """

    __slots__ = (
        "durable_count",
        "is_committed",
        "is_committing",
        "late",
        "pages",
        "record_id",
        "tx_id",
    )

    def __init__(self, tx_id: int, record_id: int = 0, durable_count: int = 0) -> None:
        self.tx_id = tx_id
        self.record_id = record_id
        self.durable_count = durable_count
        self.is_committing = self.is_committed = False
        self.pages: dict[Page, dict[int, int]] = {}
        self.late: dict[tuple[PageSubscription, Page, int], LateRange] = {}

    def add(self, page: Page, queue_id: int, count: int = 1) -> None:
        """It put so many messages for a queue into a page."""
        counts = self.pages.get(page)
        if counts is None:
            counts = self.pages[page] = {}
            page.transactions[self] = None
        counts[queue_id] = counts.get(queue_id, 0) + count


class PageTransactions:
    """See the module's text.

    Args:
        appends: where records go.
    """

    def __init__(self, appends: PageAppends) -> None:
        self._appends = appends
        self._by_id: dict[int, PageTransaction] = {}
        # After a start: pages that are not counted yet may have messages of any of them.
        self._is_all_counted = False

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, tx_id: int) -> PageTransaction | None:
        """Give one that may count; None where its messages never will."""
        return self._by_id.get(tx_id)

    def add(self, transaction: PageTransaction) -> None:
        """It has begun, or was loaded."""
        self._by_id[transaction.tx_id] = transaction

    def commit(self, transaction: PageTransaction) -> None:
        """Its commit is durable: let its messages be read."""
        transaction.is_committed = True
        touched: dict[PageSubscription, None] = {}
        for page, counts in transaction.pages.items():
            for queue_id, count in counts.items():
                subscription = page.store.subscriptions.get(queue_id)
                if subscription is not None:
                    subscription.became_visible(count)
                    touched[subscription] = None
            counts.clear()
        for (subscription, _, _), late in transaction.late.items():
            subscription.read_late(late)
            touched[subscription] = None
        transaction.late.clear()
        # Its pages may have gone with their queues.
        self._forget_if_unused(transaction)
        for subscription in touched:
            subscription.wake()

    def rollback(self, transaction: PageTransaction) -> None:
        """Its messages will not be read."""
        self._by_id.pop(transaction.tx_id, None)
        transaction.late.clear()
        pages, transaction.pages = transaction.pages, {}
        for page, counts in pages.items():
            del page.transactions[transaction]
            for queue_id, count in counts.items():
                page.store.removed(page, queue_id, count)

    def forget_page(self, page: Page) -> None:
        """A page is gone, and with the last one of a transaction its record."""
        for transaction in page.transactions:
            del transaction.pages[page]
            self._forget_if_unused(transaction)
        page.transactions.clear()

    def forget_unused(self) -> None:
        """All pages are counted, after a start: drop what no page has, now and from now on."""
        self._is_all_counted = True
        for transaction in list(self._by_id.values()):
            self._forget_if_unused(transaction)

    def _forget_if_unused(self, transaction: PageTransaction) -> None:
        """Drop one that no page has; not before it is known what all pages have."""
        if transaction.pages or not transaction.is_committed or not self._is_all_counted:
            return
        if self._by_id.pop(transaction.tx_id, None) is not None and transaction.record_id:
            self._appends.delete(transaction.record_id)


class PagedPart:
    """What one transaction does with pages.

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
        """Tell the history what an earlier life put into pages, before it commits; then go on."""
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
