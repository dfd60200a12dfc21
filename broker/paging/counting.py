"""Counts what pages hold, after a start: which queue has how many messages where.

    page ─▶ (thread) bytes, walked over ─▶ PageSummary ─▶ apply(): what is acknowledged is left out

Records that count messages are not believed: Artemis rebuilds its counters at every start
too (PageCounterRebuildManager). One page after the other, the first of an address first, so that
its queues can begin while later pages are still being counted.

Threads: the event loop's alone, but for `summarize`, which works on bytes of its own.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, cast

from broker.records.page_records import entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.paging.page import Page
    from broker.paging.paging import Paging
    from broker.paging.store import PagingStore
    from broker.paging.subscription import PageSubscription

__all__ = ["Counting", "PageSummary", "summarize"]

# How a message that is in memory already stands among a queue's acknowledged ones.
HELD: Final = -1


class PageSummary:
    """What one page holds.

    Attributes:
        count: records.
        size: bytes up to where they end.
        numbers: by transaction and queue, the numbers of the messages.
        large: ids of large messages.
    """

    __slots__ = ("count", "large", "numbers", "size")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self.numbers: dict[tuple[int, int], list[int]] = {}
        self.large: list[int] = []


def summarize(data: bytes) -> PageSummary:
    """Walk over all bytes of a page."""
    summary = PageSummary()
    numbers = summary.numbers
    for entry in entries(data, 0, 0):
        for queue_id in entry.queue_ids:
            numbers.setdefault((entry.tx_id, queue_id), []).append(entry.number)
        if entry.is_large:
            summary.large.append(entry.message_id(data))
        summary.count += 1
        summary.size = entry.end
    return summary


def apply(page: Page, summary: PageSummary) -> None:
    """Take the counts of a page, less what is acknowledged or does not count."""
    page.count = summary.count
    page.is_invalid = summary.size != page.size
    page.size = page.written_size = summary.size
    page.large = summary.large
    page.remaining = {}
    store = cast("PagingStore", page.store)
    for (tx_id, queue_id), numbers in summary.numbers.items():
        transaction = None
        if tx_id >= 0:
            transaction = store.transactions.get(tx_id)
            if transaction is None:
                # Rolled back, or never committed.
                continue
        subscription = store.subscriptions.get(queue_id)
        if subscription is None or page.number in subscription.acknowledgements.complete:
            continue
        left, unread = _left(subscription, page.number, numbers)
        page.added(queue_id, left)
        if transaction is None or transaction.is_committed:
            subscription.unread_count += unread
            if transaction is not None:
                transaction.add(page, queue_id, 0)
        else:
            transaction.add(page, queue_id, left)


def _left(subscription: PageSubscription, page: int, numbers: list[int]) -> tuple[int, int]:
    """Give how many are not acknowledged, and how many of these are not in memory."""
    acknowledged = subscription.acknowledgements.of_page(page)
    if not acknowledged:
        return len(numbers), len(numbers)
    unread = [number for number in numbers if number not in acknowledged]
    held = sum(1 for number in numbers if acknowledged.get(number) == HELD)
    return len(unread) + held, len(unread)


class Counting:
    """Counts all pages that are not counted yet, one after the other.

    Args:
        paging: of the broker, loaded.
        done: called once, when all are counted.
    """

    def __init__(self, paging: Paging, done: Callable[[], object]) -> None:
        self._paging = paging
        self._done: Callable[[], object] | None = done
        self._pages = deque(
            page
            for store in paging.stores.values()
            for page in store.pages.values()
            if page.remaining is None
        )

    def go_on(self) -> None:
        """Count the next page."""
        while self._pages:
            page = self._pages.popleft()
            if not page.is_gone:
                self._count(page)
                return
        done, self._done = self._done, None
        if done is not None:
            done()

    def _count(self, page: Page) -> None:
        folder, number, size = page.folder, page.number, page.size
        self._paging.read(
            lambda: summarize(folder.read(number, 0, size)),
            page,
            lambda summary: self._counted(page, summary),
        )

    def _counted(self, page: Page, summary: PageSummary | None) -> None:
        if summary is not None:
            apply(page, summary)
            cast("PagingStore", page.store).counted(page)
        self.go_on()
