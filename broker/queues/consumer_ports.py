"""What a consumer, its queue, its transaction and its protocol need of each other.

queue ─▶ Consumer ─▶ Sink (the protocol)
  ▲         │
  └─────────┴─▶ transaction
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from broker.queues.reference import ReferenceQueue, ReferenceTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.message import Message
    from broker.ports import Timers
    from broker.queues.consumer import Consumer
    from broker.queues.pages import QueuePages
    from broker.queues.reference import Reference

__all__ = ["ConsumerQueue", "ConsumerTransaction", "Pause", "Sink", "Stream"]


class Pause(Enum):
    """Why a protocol lets a consumer wait that has credits."""

    CONNECTION = "its socket takes no more bytes"
    LARGE_MESSAGE = "a large message is written first"
    WINDOW = "its client has as many messages open as it takes"


class ConsumerQueue(ReferenceQueue, Protocol):
    """Of a queue what its consumers, and those who come to it by one, use; `queue.py` has it."""

    clock_ms: Callable[[], int]
    clock_s: Callable[[], float]
    pages: QueuePages | None
    records_deliveries: bool
    timers: Timers

    @property
    def consumer_count(self) -> int:
        """How many consumers it has, browsers included."""

    def prompt(self, consumer: Consumer) -> None:
        """A consumer can take (again)."""

    def prompt_later(self, consumer: Consumer) -> None:
        """The same, to be delivered to in the next turn."""

    def acknowledge(self, reference: Reference, is_last: bool) -> None:
        """A consumer has it for good: recorded outside of any transaction."""

    def refuse(self, consumer: Consumer, message: Message) -> None:
        """Give a message to this consumer no more; other consumers may have it."""

    def remove_consumer(self, consumer: Consumer, returned: Iterable[Reference]) -> None:
        """Let it take part no more; it gives back what it was given, in order."""


class ConsumerTransaction(ReferenceTransaction, Protocol):
    """Of a transaction what a consumer needs."""

    def acknowledge(self, reference: Reference, consumer: Consumer) -> None:
        """The consumer's queue loses a message, which it does not list, when it commits."""


class Stream(Protocol):
    """A large message's body on its way to a consumer."""

    def go_on(self) -> None:
        """Write what may be written now."""

    def close(self) -> None:
        """Nothing of it is written any more."""


class Sink(Protocol):
    """The protocol's side of a consumer."""

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write the message; bytes to be taken from the credits. Never waits.

        Raises:
            Exception: it cannot be told in this protocol: the consumer ends, the message stays.
        """

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed the consumer: its queue is gone, or it cannot be given messages."""
