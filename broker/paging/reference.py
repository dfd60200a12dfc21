"""A message of a page in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.queues.reference import Reference

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.paging.page import Page
    from broker.paging.subscription import PageSubscription
    from broker.paging.transactions import PageTransaction
    from broker.queues.reference import ReferenceTransaction

__all__ = ["PagedReference"]


class PagedReference(Reference):
    """A reference whose message stays in its page until every queue has acknowledged it.

    Its delivery count and time are not recorded, as in Artemis: they begin anew with a start.

    Attributes:
        subscription: of its queue.
        page: where it lies.
        number: in the page.
        transaction: that put it there; None where it was sent alone.
        record_id: of its acknowledgement; 0 while there is none.
        size: bytes that it counts in memory.
    """

    __slots__ = ("number", "page", "record_id", "size", "subscription", "transaction")

    def fill(
        self,
        message: Message,
        subscription: PageSubscription,
        page: Page,
        number: int,
        transaction: PageTransaction | None,
        scheduled_ms: int,
    ) -> None:
        """Say what it is. In place of __init__, which costs more."""
        self._begin(message, subscription.queue, scheduled_ms)
        self.subscription = subscription
        self.page = page
        self.number = number
        self.transaction = transaction
        self.record_id = 0
        self.size = message.memory_size

    @property
    def is_recorded(self) -> bool:
        """Whether counts and times of it are recorded."""
        return False

    def leaves_record(self) -> bool:
        """Whether record_gone() writes something: the page has the message, durable or not."""
        return True

    def record_gone(self, tx: ReferenceTransaction | None, is_last: bool) -> bool:
        """Record that its queue has it no more; whether there is a record of it."""
        return self.subscription.record_gone(self, tx, is_last)

    def release(self) -> None:
        """Its record says that it is gone."""
        self.subscription.release(self)
