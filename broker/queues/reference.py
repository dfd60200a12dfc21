"""A message in a queue.

The lists that hold them: reference_lists.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message
    from broker.records.binding_records import QueueBinding
    from broker.settings.settings import AddressSettings
    from broker.storage.manager import StorageManager

__all__ = ["Recipient", "Reference", "ReferenceQueue", "ReferenceTransaction", "reference_to"]


class ReferenceQueue(Protocol):
    """Of a queue what those use who come to it by a reference; `queue.py` has it."""

    queue_id: int
    name: str
    binding: QueueBinding
    storage: StorageManager
    is_durable: bool
    is_deleted: bool
    delivering_count: int
    expired_count: int
    killed_count: int
    unacknowledged_count: int
    undecided_count: int

    @property
    def settings(self) -> AddressSettings:
        """The effective settings of its address."""

    def add(self, reference: Reference) -> None:
        """Take a new one, whose records are durable."""

    def take(self, reference: Reference) -> None:
        """Take out one that waits or is not due yet, as if it were delivered."""

    def acknowledge(self, reference: Reference, is_last: bool) -> None:
        """A consumer has it for good: recorded outside of any transaction."""

    def remove(self, reference: Reference) -> None:
        """Take out one that waits or is not due yet, and record that it is gone."""

    def acknowledged(self, reference: Reference) -> None:
        """A consumer has it for good, and that is recorded already."""

    def give_back(self, references: Iterable[Reference], unseen: Iterable[Reference] = ()) -> None:
        """Put those that were delivered where they stood."""


class Recipient(Protocol):
    """Who was given a reference; `consumer.py` has it."""

    consumer_id: int


class ReferenceTransaction(Protocol):
    """Of a transaction what queues and pages need; `broker.transactions.transaction` is one."""

    paged: Any
    """What it does with pages, which alone know; None where it has to do with none."""

    @property
    def tx_id(self) -> int:
        """Of its records."""

    @property
    def acknowledged(self) -> list[Reference]:
        """What it acknowledges, in order."""


# What has two bytes. Who was delivered more often has its count recorded once more than needed.
_PERSISTED_MAX: Final = 0xFFFF


class Reference:
    """One message in one queue.

    Attributes:
        message: shared by the references of all queues it was routed to.
        queue: the one that has it.
        delivery_count: how often it was handed to a consumer, this time included.
        consumer: who has it, from delivery to acknowledgement or return; None while it waits, which
            in a non-destructive queue it does while consumers see it.
        level: priority it is listed under; -1 while it is in no list.
        sequence: its place among those of its level, for when it comes back. Of one that is not due
            it is -scheduled_ms: none has both, and a million of these may wait.
    """

    __slots__ = (
        "_persisted_count",
        "consumer",
        "delivery_count",
        "following",
        "level",
        "message",
        "previous",
        "queue",
        "sequence",
    )

    def __init__(self, message: Message, queue: ReferenceQueue, scheduled_ms: int = 0) -> None:
        self._begin(message, queue, scheduled_ms)

    def _begin(self, message: Message, queue: ReferenceQueue, scheduled_ms: int) -> None:
        self.message = message
        self.queue = queue
        self.delivery_count = 0
        self._persisted_count = 0
        self.sequence = -scheduled_ms
        self.consumer: Recipient | None = None
        self.level = -1
        self.previous: Reference | None = None
        self.following: Reference | None = None

    def __repr__(self) -> str:
        return f"Reference({self.message.message_id} in {self.queue.name!r})"

    @property
    def persisted_count(self) -> int:
        """What the journal says of `delivery_count`; 65,535 where that is more."""
        return self._persisted_count

    @persisted_count.setter
    def persisted_count(self, count: int) -> None:
        self._persisted_count = min(max(count, 0), _PERSISTED_MAX)

    @property
    def scheduled_ms(self) -> int:
        """When it is due, in ms since 1970; 0 is now. Who sets it loses its place in a list."""
        return -self.sequence if self.sequence < 0 else 0

    @scheduled_ms.setter
    def scheduled_ms(self, time_ms: int) -> None:
        self.sequence = -time_ms

    @property
    def is_recorded(self) -> bool:
        """Whether the journal knows of it."""
        return self.queue.is_durable and self.message.durable

    def leaves_record(self) -> bool:
        """Whether record_gone() writes something, if its queue is durable."""
        return bool(self.message.durable)

    def record_gone(self, tx: ReferenceTransaction | None, is_last: bool) -> bool:
        """Record, at once or in a transaction, that its queue has it no more.

        Args:
            tx: the transaction.
            is_last: no other follows that asks for the sync of all.

        Returns:
            Whether there is such a record.
        """
        queue, message = self.queue, self.message
        if not (queue.is_durable and message.durable):
            return False
        storage = queue.storage
        storage.acknowledge(
            queue.queue_id, message.message_id, None if tx is None else tx.tx_id, is_last
        )
        return True

    def release(self) -> None:
        """Its record says that it is gone: the message goes when no queue has it any more."""
        queue, message = self.queue, self.message
        if queue.is_durable and message.durable:
            message.durable_references -= 1
            if message.durable_references == 0:
                storage = queue.storage
                storage.delete_message(message.message_id)
        # Behind the record: a large message's file goes when that is durable.
        owner = message.owner
        if owner is not None:
            owner.remove(message)


def reference_to(message: Message, queue: ReferenceQueue, scheduled_ms: int) -> Reference:
    """Make a reference, in less time than a call of the class takes."""
    reference = Reference.__new__(Reference)
    reference._begin(message, queue, scheduled_ms)
    return reference
