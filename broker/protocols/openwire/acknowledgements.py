"""Acknowledgements of a client, by their type (MessageAck)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.properties import Property, PropertyType
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.property_names import DLQ_CAUSE

if TYPE_CHECKING:
    from broker.protocols.openwire.commands import MessageAck, Throwable
    from broker.protocols.openwire.consumers import OpenWireConsumer, Part
    from broker.protocols.openwire.transactions import Transactions

__all__ = ["acknowledge"]

DELIVERED: Final = 0
POISON: Final = 1
STANDARD: Final = 2
REDELIVERED: Final = 3
INDIVIDUAL: Final = 4
UNMATCHED: Final = 5
EXPIRED: Final = 6
_CAUSE_SIZE_MAX: Final = 4096


def acknowledge(ack: MessageAck, consumer: OpenWireConsumer, transactions: Transactions) -> None:
    """Do what an acknowledgement says; who waits for it asks the consumer's session.

    One of a message that the consumer does not have any more is without effect, as in Artemis: its
    client says so again after a failover.

    Raises:
        OpenWireError: it is of no known type, or its transaction has not begun.
        BrokerError: it cannot be recorded.
        JournalError: the storage has failed.
    """
    kind = ack.ack_type
    if kind == DELIVERED:
        consumer.delivered(max(0, ack.message_count))
        return
    if kind == REDELIVERED:
        return
    if kind not in (POISON, STANDARD, INDIVIDUAL, UNMATCHED, EXPIRED):
        raise OpenWireError(f"an acknowledgement of the unknown type {kind}")
    last = ack.last_message_id
    if last is None:
        raise OpenWireError("an acknowledgement of no message")
    part = consumer.part_of(ack.destination, last)
    numbers = None if part is None else part.range(ack.first_message_id, last)
    transaction = None
    if ack.transaction_id is not None and kind != EXPIRED:
        transaction = transactions.find(ack.transaction_id)
    if part is None or numbers is None or part.consumer.is_closed:
        return
    if consumer.info.browser:
        for number in numbers:
            del part.open[number]
        consumer.settled(len(numbers))
    elif transaction is not None:
        properties = _cause(ack.poison_cause) if kind == POISON else None
        for number in numbers:
            transaction.keep(part, number, properties)
    elif kind == POISON:
        _reject(part, numbers, _cause(ack.poison_cause))
    elif kind == EXPIRED:
        _expire(part, numbers)
    else:
        _accept(part, numbers)


def _accept(part: Part, numbers: list[int]) -> None:
    session, consumer_id = part.owner.session, part.consumer.consumer_id
    if numbers and not part.deferred and numbers[0] == next(iter(part.open)):
        # All that was delivered up to the last one.
        message_id = part.open[numbers[-1]].message_id
        session.accept_acknowledgement(consumer_id, message_id, False)
        _end(part, numbers)
        return
    for number in numbers:
        session.accept_acknowledgement(consumer_id, part.open[number].message_id, True)
        _end(part, [number])


def _end(part: Part, numbers: list[int]) -> None:
    for number in numbers:
        del part.open[number]
    part.seen.difference_update(numbers)
    part.owner.settled(len(numbers))


def _cause(cause: Throwable | None) -> list[Property]:
    """Give the properties of dead letters that say why."""
    if cause is None:
        return []
    text = f"{cause.class_name}: {cause.message}" if cause.message else f"{cause.class_name}"
    return [Property(DLQ_CAUSE, PropertyType.STRING, text[:_CAUSE_SIZE_MAX])]


def _reject(part: Part, numbers: list[int], properties: list[Property]) -> None:
    for number in numbers:
        part.reject(part.open[number], properties, _nothing)
    _end(part, numbers)


def _expire(part: Part, numbers: list[int]) -> None:
    settlement = part.owner.session.settlement
    for number in numbers:
        settlement.expire(part.consumer.consumer_id, part.open[number].message_id)
    _end(part, numbers)


def _nothing(error: Exception | None) -> None:
    """Who waits asks the session's context."""
