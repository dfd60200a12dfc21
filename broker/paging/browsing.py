"""What a browser sees of a queue's pages, behind what the queue has in memory.

It reads the pages for itself, from where the queue reads next, and takes nothing into the queue.
What the queue takes into memory later, the browser has seen: it passes over it there.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.paging.cursor import Cursor
from broker.paging.reference import PagedReference
from broker.queues.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.paging.subscription import PageSubscription

__all__ = ["PageBrowser"]


class PageBrowser:
    """See the module's text.

    Args:
        subscription: of the queue.
        on_read: called when there may be more to see.
    """

    __slots__ = ("_cursor", "_first", "_seen", "subscription")

    def __init__(self, subscription: PageSubscription, on_read: Callable[[], object]) -> None:
        self.subscription = subscription
        self._cursor = Cursor(subscription.store, subscription.queue.queue_id, on_read)
        self._cursor.start_at(subscription.cursor)
        # The next one to be seen; what comes before it in pages was seen.
        self._first = self._seen = self._cursor.position

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""
        return self._cursor.is_reading

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read has come; False where nothing is being read."""
        return self._cursor.after_read(callback)

    def has_seen(self, reference: Reference) -> bool:
        """Whether the browser has shown this message from its page."""
        if not isinstance(reference, PagedReference):
            return False
        return self._first <= (reference.page.number, reference.number) < self._seen

    def next(self) -> Reference | None:
        """Give the next message; None when there is none, or none at hand."""
        subscription = self.subscription
        if not subscription.store.is_open:
            return None
        while True:
            found = self._cursor.next()
            if found is None:
                self._cursor.read_on()
                return None
            self._seen = (found.page.number, found.entry.number + 1)
            if subscription.is_visible(found):
                message = subscription.message_of(found.page, found.entry, found.data)
                if message is not None:
                    return Reference(message, subscription.queue)
