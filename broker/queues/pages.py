"""What a queue needs of its pages; `broker.paging` fulfils it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.queues.reference import Reference

__all__ = ["PageBrowser", "QueuePages"]


class PageBrowser(Protocol):
    """What a browser sees of a queue's pages; `broker.paging.browsing` has it."""

    @property
    def subscription(self) -> object:
        """The pages that it looks into."""

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""

    def next(self) -> Reference | None:
        """Give the next message; None when there is none, or none at hand."""

    def has_seen(self, reference: Reference) -> bool:
        """Whether the browser has shown this message from its page."""

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read has come; False where nothing is being read."""


class QueuePages(Protocol):
    """The pages of an address as one queue sees them; `broker.paging.subscription` has them."""

    @property
    def unread_count(self) -> int:
        """Messages in pages that may be read and are not in memory."""

    @property
    def held_count(self) -> int:
        """Of those in memory, not acknowledged."""

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""

    @property
    def is_counted(self) -> bool:
        """Whether it is known what all pages hold."""

    @property
    def has_undecided(self) -> bool:
        """Whether open transactions have put messages for it into pages."""

    @property
    def is_dropping(self) -> bool:
        """Whether it is read although no consumer takes from the queue."""

    @property
    def wants_to_go_on(self) -> bool:
        """Whether there is room now for a queue that has nothing else."""

    def replenish(self) -> None:
        """Put into the queue what was read, and read on, as far as there is room."""

    def look_ahead(self, count: int) -> None:
        """Put at most `count` into the queue, even without consumers: some may be expired."""

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read has come; False where nothing is being read."""

    def browser(self, on_read: Callable[[], object]) -> PageBrowser:
        """Let a browser see what is in pages; `on_read` is called when there may be more."""

    def drop_all(self) -> int:
        """Acknowledge all that may be read and is not in memory, as it is read; how many."""

    def close(self) -> None:
        """The queue goes, with everything it has in pages; its records stay. Idempotent."""
