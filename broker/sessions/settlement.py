"""How a session's client settles what it was given, each message by itself.

    accept     it has the message for good                  (individualAcknowledge)
    release    it has not looked at it                      (individualCancel)
    modify     it could not use it: delivery_failed counts the delivery,
               undeliverable_here gives it to other consumers only
    reject     it can never be used: to the dead letter address
    expire     it came too late: to the expiry address

What was not delivered to the consumer, or is settled already, is refused. Then nothing is settled.
Every request but expire takes `done`, as those of a session do.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.model.properties import Property
    from broker.queues.consumer import Consumer
    from broker.queues.reference import Reference
    from broker.routing.dead_letters import DeadLetters
    from broker.sessions.session_options import SessionOptions
    from broker.storage.context import After, OperationContext
    from broker.transactions.transaction import Transaction

__all__ = ["Settlement"]


class SettlingSession(Protocol):
    """What settlement needs of its session."""

    options: SessionOptions
    context: OperationContext
    """What it waits by."""

    @property
    def tx(self) -> Transaction | None:
        """What it works for; None is nothing."""

    def consumer(self, consumer_id: int) -> Consumer:
        """Give a consumer.

        Raises:
            BrokerError: there is none of that number.
        """

    def accept_acknowledgement(
        self, consumer_id: int, message_id: int, is_individual: bool
    ) -> None:
        """Acknowledge; callers that wait for it ask the context.

        Raises:
            BrokerError: it was not delivered, or has been acknowledged.
        """


class Settlement:
    """See the module's text.

    Args:
        session: of the client.
        dead_letters: where rejected and expired messages go.
    """

    __slots__ = ("_dead_letters", "_session")

    def __init__(self, session: SettlingSession, dead_letters: DeadLetters) -> None:
        self._session = session
        self._dead_letters = dead_letters

    def accept(
        self, consumer_id: int, message_ids: Collection[int], done: After, *arguments: object
    ) -> None:
        """Acknowledge messages, in the session's transaction if it has one.

        `done(error, *arguments)` once that is durable, without a transaction.

        Raises:
            BrokerError: one was not delivered; a transaction can only be rolled back. Or the disk
                is full: those before it may be acknowledged.
        """
        session = self._session
        consumer = session.consumer(consumer_id)
        unknown = _unknown(consumer, message_ids)
        if unknown is not None:
            error = consumer.not_delivered(unknown)
            if session.tx is not None and not session.options.auto_commit_acks:
                session.tx.fail(error)
            raise error
        for message_id in message_ids:
            session.accept_acknowledgement(consumer_id, message_id, True)
        session.context.then(done, arguments)

    def release(
        self, consumer_id: int, message_ids: Collection[int], done: After, *arguments: object
    ) -> None:
        """Give messages back to the queue as if they had not been delivered.

        Raises:
            BrokerError: one was not delivered.
        """
        self.modify(consumer_id, message_ids, done, *arguments)

    def modify(
        self,
        consumer_id: int,
        message_ids: Collection[int],
        done: After,
        *arguments: object,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
    ) -> None:
        """Give messages back to the queue, in their order before those that came later.

        Those that were delivered as often as max-delivery-attempts says go to the dead letter
        address; redelivery-delay applies.

        Args:
            consumer_id: that was given them.
            message_ids: which.
            done: called once what is recorded of it is durable.
            *arguments: for `done`.
            delivery_failed: the delivery counts.
            undeliverable_here: this consumer is not given them again.

        Raises:
            BrokerError: one was not delivered.
        """
        consumer, references = self._take(consumer_id, message_ids)
        for reference in references:
            if not delivery_failed:
                reference.delivery_count -= 1
            if undeliverable_here:
                consumer.queue.refuse(consumer, reference.message)
        consumer.queue.give_back(references)
        self._end(done, arguments)

    def give_back(
        self,
        consumer_id: int,
        seen: Collection[int],
        unseen: Collection[int],
        done: After,
        *arguments: object,
    ) -> None:
        """Give messages back to the queue together, in their order, as modify() does.

        Args:
            consumer_id: that was given them.
            seen: their delivery counts.
            unseen: that of these does not.
            done: called once what is recorded of it is durable.
            *arguments: for `done`.

        Raises:
            BrokerError: one was not delivered.
        """
        consumer, references = self._take(consumer_id, [*seen, *unseen])
        uncounted = set(unseen)
        for reference in references:
            if reference.message.message_id in uncounted:
                reference.delivery_count -= 1
        consumer.queue.give_back(references)
        self._end(done, arguments)

    def reject(
        self,
        consumer_id: int,
        message_ids: Collection[int],
        done: After,
        *arguments: object,
        properties: Collection[Property] = (),
    ) -> None:
        """Move messages to the dead letter address, however often they were delivered.

        Without an address, or without a queue there, they are dropped, as in Artemis.

        Args:
            consumer_id: that was given them.
            message_ids: which.
            done: called once what is recorded of it is durable.
            *arguments: for `done`.
            properties: that they get, and their copies at the dead letter address.

        Raises:
            BrokerError: one was not delivered.
        """
        _, references = self._take(consumer_id, message_ids)
        for reference in references:
            for one in properties:
                reference.message.set(one.name, one.type, one.value)
            self._dead_letters.kill(reference)
        self._end(done, arguments)

    def expire(self, consumer_id: int, message_id: int) -> None:
        """Move a message to the expiry address: the client found that its time is over.

        Raises:
            BrokerError: it was not delivered, or has been acknowledged.
        """
        consumer = self._session.consumer(consumer_id)
        if consumer.is_browser:
            return
        reference = consumer.take_back(message_id)
        # A non-destructive queue may have lost it meanwhile.
        if reference.consumer is consumer or reference.level >= 0:
            self._dead_letters.expire(reference)

    def _take(
        self, consumer_id: int, message_ids: Collection[int]
    ) -> tuple[Consumer, list[Reference]]:
        """Take messages out of what is being delivered; without those that the queue has kept."""
        consumer = self._session.consumer(consumer_id)
        if consumer.is_browser:
            return consumer, []
        unknown = _unknown(consumer, message_ids)
        if unknown is not None:
            raise consumer.not_delivered(unknown)
        taken = [consumer.take_back(message_id) for message_id in message_ids]
        return consumer, [one for one in taken if one.consumer is consumer]

    def _end(self, done: After, arguments: tuple[object, ...]) -> None:
        self._session.context.note()
        self._session.context.then(done, arguments)


def _unknown(consumer: Consumer, message_ids: Collection[int]) -> int | None:
    """Give the first message that is not being delivered, or that is named twice."""
    if consumer.is_browser:
        return None
    delivering = {reference.message.message_id for reference in consumer.delivering}
    for message_id in message_ids:
        if message_id not in delivering:
            return message_id
        delivering.remove(message_id)
    return None
