"""Transactions that put messages into pages, as others see them.

    send ─▶ page, with the transaction's id ─▶ (pages durable) ─▶ record 35, COMMIT ─▶ visible
                                                        └ rollback: it is never read

A message in a page counts if record 35 names its transaction. That record lives as long as there
are pages with such messages: without it they would count no more.

    PageTransaction    what others see of it: open or committed, in which pages
    PageTransactions   all of them, by transaction id

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.paging.cursor import LateRange
    from broker.paging.page import Page
    from broker.storage.page_appends import PageAppends

__all__ = ["PageReader", "PageTransaction", "PageTransactions"]


class PageReader(Protocol):
    """Who reads pages for a queue; `broker.paging.subscription` is one."""

    def became_visible(self, count: int = 1) -> None:
        """So many messages more may be read."""

    def read_late(self, late: LateRange) -> None:
        """The transaction of messages that it put off has committed."""

    def wake(self) -> None:
        """There may be something to take."""


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
        self.late: dict[tuple[PageReader, Page, int], LateRange] = {}

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
        touched: dict[PageReader, None] = {}
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
