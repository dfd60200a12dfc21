"""What the broker knows of one page while it exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.paging.transactions import PageReader, PageTransaction
    from broker.storage.page_folders import PageFolder

__all__ = ["Page", "PageOwner"]


class PageOwner(Protocol):
    """Whose pages these are; `broker.paging.store` has them."""

    @property
    def address(self) -> str:
        """Its name."""

    @property
    def folder(self) -> PageFolder:
        """Where its pages are."""

    @property
    def subscriptions(self) -> Mapping[int, PageReader]:
        """Of its queues, by queue id."""

    def more_written(self, page: Page) -> None:
        """What was appended to a page can be read."""

    def removed(self, page: Page, queue_id: int, count: int = 1) -> None:
        """A queue has so many messages less in a page."""


class Page:
    """One page of an address.

    Attributes:
        store: of its address.
        number: 1 for the first one an address ever had.
        size: bytes appended.
        written_size: of these, bytes that can be read, and are durable if they are to be.
        count: records appended.
        is_closed: nothing is appended any more.
        is_gone: it is being deleted, and not read any more.
        is_invalid: something stands behind its records that is none.
        room: bytes that the disk keeps room for, from the beginning of the page.
        remaining: by queue id, messages that the queue has not acknowledged, those of open
            transactions included; None until the page was counted, after a start.
        left: of all queues together.
        large: ids of its large messages.
        transactions: that put messages here and count, or may.
    """

    __slots__ = (
        "count",
        "is_closed",
        "is_gone",
        "is_invalid",
        "large",
        "left",
        "number",
        "remaining",
        "room",
        "size",
        "store",
        "transactions",
        "written_size",
    )

    def __init__(self, store: PageOwner, number: int, size: int = 0) -> None:
        self.store = store
        self.number = number
        self.size = self.written_size = size
        self.room = 0
        self.count = 0
        self.is_closed = False
        self.is_gone = False
        self.is_invalid = False
        self.remaining: dict[int, int] | None = {}
        self.left = 0
        self.large: list[int] = []
        self.transactions: dict[PageTransaction, None] = {}

    def __repr__(self) -> str:
        return f"Page({self.store.address!r}, {self.number}, {self.left} left)"

    @property
    def folder(self) -> PageFolder:
        """Where it lies."""
        return self.store.folder

    @property
    def is_read_up(self) -> bool:
        """Whether nothing will be appended, and all of it can be read."""
        return self.is_closed and self.written_size == self.size

    def added(self, queue_id: int, count: int = 1) -> None:
        """A queue has so many messages more here."""
        assert self.remaining is not None, "it was counted before it was appended to"
        self.remaining[queue_id] = self.remaining.get(queue_id, 0) + count
        self.left += count

    def removed(self, queue_id: int, count: int = 1) -> int:
        """A queue has so many less; how many it has left here."""
        assert self.remaining is not None, "a page is counted before it is read"
        left = self.remaining[queue_id] - count
        assert left >= 0, "each message goes once"
        self.remaining[queue_id] = left
        self.left -= count
        return left

    def written(self, size: int) -> None:
        """So many bytes more can be read."""
        self.written_size += size
        self.store.more_written(self)
