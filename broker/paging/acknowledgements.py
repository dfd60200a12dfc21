"""What one queue has acknowledged in pages, and the records that say so.

    39   one message of a page
    42   all messages of a page, in place of its records 39

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.paging.page import Page
    from broker.queues.queue import Queue
    from broker.storage.page_appends import PageAppends

__all__ = ["PageAcknowledgements"]


class PageAcknowledgements:
    """See the module's text.

    Args:
        queue: whose.
        appends: where records go.

    Attributes:
        complete: by page, the id of record 42.
    """

    __slots__ = ("_appends", "_by_page", "_queue", "complete")

    def __init__(self, queue: Queue, appends: PageAppends) -> None:
        self._queue = queue
        self._appends = appends
        # By page, the numbers that are acknowledged, or about to be in a prepared transaction, with
        # their record ids; 0 for none.
        self._by_page: dict[int, dict[int, int]] = {}
        self.complete: dict[int, int] = {}

    def has(self, page: int, number: int) -> bool:
        """Whether a message is acknowledged, or about to be in a prepared transaction."""
        numbers = self._by_page.get(page)
        return numbers is not None and number in numbers

    def of_page(self, page: int) -> Mapping[int, int]:
        """Give the record ids of a page's messages by their numbers; 0 for those without any."""
        return self._by_page.get(page, {})

    def add(self, page: int, number: int, record_id: int) -> None:
        """A message is acknowledged, or is in a prepared transaction."""
        self._by_page.setdefault(page, {})[number] = record_id

    def is_ahead_of(self, page: Page) -> bool:
        """Whether a record would count for what is appended to a page, after a start.

        The queue is done with it, or has acknowledged what a power failure took from its end:
        messages that are not durable are delivered before they are synced, and their
        acknowledgements are.
        """
        if page.number in self.complete:
            return True
        return max(self.of_page(page.number), default=-1) >= page.count

    def page_done(self, page: Page) -> None:
        """The queue has nothing left in a page that others still need: one record instead of all.

        Nothing where no record says anything of the page.
        """
        acknowledged = self._by_page.pop(page.number, {})
        records = _recorded(acknowledged)
        if not records or not self._queue.is_durable or page.number in self.complete:
            return
        record_id = self._appends.complete(self._queue.queue_id, page.number, page.count, records)
        if record_id is None:
            # They go with the page.
            self._by_page[page.number] = acknowledged
        else:
            self.complete[page.number] = record_id

    def take_records(self, page: int) -> list[int]:
        """Give the records about a page that is gone, to be deleted."""
        found = _recorded(self._by_page.pop(page, {}))
        complete = self.complete.pop(page, 0)
        return [*found, complete] if complete else found

    def take_all_records(self) -> list[int]:
        """Give all records, to be deleted once the queue's own is."""
        pages = {*self._by_page, *self.complete}
        return [record_id for page in pages for record_id in self.take_records(page)]


def _recorded(acknowledged: Mapping[int, int]) -> list[int]:
    return [record_id for record_id in acknowledged.values() if record_id > 0]
