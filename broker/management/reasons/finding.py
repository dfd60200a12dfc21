"""Finds a message of a queue wherever it is, some in each turn of the event loop.

    waiting ─▶ scheduled ─▶ delivered ─▶ transactions ─▶ pages

Nothing is read into the queue for it: messages that a start found and no consumer came to yet are
passed over, and pages are looked into as a browser does, PAGED_LOOK_MAX messages far.

Threads: the event loop's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.management.contents import LOOK_COUNT
from broker.management.reasons.state import Place
from broker.management.transactions import open_transactions
from broker.queues.reference_lists import StoredRun
from broker.transactions.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.management.access import ManagedBroker
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.queues.reference_lists import ReferenceList
    from broker.transactions.transaction import Transaction

__all__ = ["Found", "find", "first"]

# Messages of pages that are looked at: about a second of work, in parts.
PAGED_LOOK_MAX: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A message, and where it is.

    Attributes:
        place: where; STORED means that it may be among those that are not read.
        reference: to it; None where it was not found.
        ahead_count: waiting ones that were passed before it.
        consumer: that was given it.
        transaction: that sends or acknowledges it.
        transaction_name: whose that is.
    """

    place: Place
    reference: Reference | None = None
    ahead_count: int = 0
    consumer: Consumer | None = None
    transaction: Transaction | None = None
    transaction_name: str = ""


def find(
    broker: ManagedBroker, queue: Queue, message_id: int
) -> Generator[float | None, None, Found]:
    """Find a message. It is where the result says until the next turn of the loop.

    Args:
        broker: of the queue.
        queue: to look in.
        message_id: in this broker.
    """
    waits = yield from _in_waiting(queue, message_id)
    if isinstance(waits, Found):
        return waits
    for number, reference in enumerate(queue.scheduled_unordered(), 1):
        if reference.message.message_id == message_id and reference.scheduled_ms:
            return Found(place=Place.SCHEDULED, reference=reference)
        if number % LOOK_COUNT == 0:
            yield None
    held = _held(broker, queue, message_id)
    if held is not None:
        return held
    # A consumer may have taken it meanwhile, or given it back.
    again = yield from _in_pages(queue, message_id)
    if again is not None:
        return again
    held = _held(broker, queue, message_id)
    if held is not None:
        return held
    is_unread = waits or (queue.pages is not None and queue.pages.unread_count > PAGED_LOOK_MAX)
    return Found(place=Place.STORED if is_unread else Place.ABSENT)


def _in_waiting(queue: Queue, message_id: int) -> Generator[float | None, None, Found | bool]:
    """Look through what is read; else say whether there is more, not read since the start."""
    cursor = queue.waiting.cursor()
    try:
        # Not for ever, where messages come faster than they are looked at.
        for number in range(queue.waiting.count + LOOK_COUNT):
            reference = cursor.advance_made()
            if reference is None or queue.is_deleted:
                return any(map(_has_run, queue.waiting.levels))
            if reference.message.message_id == message_id:
                return Found(place=Place.WAITING, reference=reference, ahead_count=number)
            if number % LOOK_COUNT == LOOK_COUNT - 1:
                yield None
    finally:
        cursor.close()
    return False


def _has_run(level: ReferenceList) -> bool:
    """Whether a level has references that are not made: at its head, or behind some that are.

    A run comes from a start, when the level is empty; what came back later stands before it.
    """
    found = level.head
    for _ in range(LOOK_COUNT):
        if found is None:
            return False
        if isinstance(found, StoredRun):
            return True
        found = found.following
    # Behind very many: who asks again later finds out.
    return isinstance(level.tail, StoredRun)


def _held(broker: ManagedBroker, queue: Queue, message_id: int) -> Found | None:
    """Find what a consumer or an open transaction has, in this turn."""
    for consumer in queue.consumers.all():
        for reference in consumer.delivering:
            if reference.message.message_id == message_id:
                return Found(place=Place.DELIVERING, reference=reference, consumer=consumer)
    for name, tx in open_transactions(broker):
        for place, references in (
            (Place.SENT_IN_TRANSACTION, tx.sends),
            (Place.ACKNOWLEDGED_IN_TRANSACTION, tx.acknowledged),
        ):
            for reference in references:
                if reference.queue is queue and reference.message.message_id == message_id:
                    return _of_transaction(place, reference, name, tx)
    return None


def _of_transaction(place: Place, reference: Reference, name: str, tx: Transaction) -> Found:
    return Found(
        place=place,
        reference=reference,
        consumer=tx.consumers.get(reference),
        transaction=tx,
        transaction_name=name,
    )


def _in_pages(queue: Queue, message_id: int) -> Generator[float | None, None, Found | None]:
    if queue.pages is None or not queue.pages.unread_count:
        return None
    browser = queue.pages.browser(lambda: None)
    for number in range(PAGED_LOOK_MAX):
        reference = browser.next()
        while reference is None:
            if queue.is_deleted or not browser.is_reading:
                return None
            yield None
            reference = browser.next()
        if reference.message.message_id == message_id:
            return Found(place=Place.PAGED, reference=reference, ahead_count=number)
        if number % LOOK_COUNT == LOOK_COUNT - 1:
            yield None
    return None


def first(broker: ManagedBroker, queue: Queue) -> Found | None:
    """Give the message that is asked for where none is named; None where there is none.

    The next that waits, else the one that is due first, else the oldest that is delivered, else one
    in a transaction.
    """
    head = queue.waiting.head()
    if head is not None:
        return Found(place=Place.WAITING, reference=head)
    due = queue.first_scheduled()
    if due is not None:
        return Found(place=Place.SCHEDULED, reference=due)
    for consumer in queue.consumers.all():
        if consumer.delivering:
            return Found(
                place=Place.DELIVERING, reference=consumer.delivering[0], consumer=consumer
            )
    for name, tx in open_transactions(broker):
        for place, references in (
            (Place.ACKNOWLEDGED_IN_TRANSACTION, tx.acknowledged),
            (Place.SENT_IN_TRANSACTION, tx.sends),
        ):
            for reference in references:
                if reference.queue is queue:
                    return _of_transaction(place, reference, name, tx)
    return None


def is_prepared(tx: Transaction) -> bool:
    """Whether it waits for the decision of its manager."""
    return tx.state is TransactionState.PREPARED
