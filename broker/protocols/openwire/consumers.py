"""Consumers of one connection: a core consumer for each part of a destination, and its window.

    queue                 the queue of that name, the selector at the consumer
    topic                 a temporary queue of its own, with the selector
    topic, durable        the queue CLIENT.NAME, which stays
    address::queue        that queue

A window is a number of messages. A message costs one, and an acknowledgement gives it back; one of
type "delivered" gives it back before, and what is acknowledged later then gives back less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.protocols.openwire.commands import ActiveMQDestination, ActiveMQQueue, ActiveMQTopic
from broker.protocols.openwire.destinations import is_queue, is_temporary
from broker.protocols.openwire.errors import OpenWireError
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.environment import Ids
    from broker.model.properties import Property
    from broker.protocols.openwire.commands import ConsumerInfo
    from broker.protocols.openwire.destinations import Destinations, Target
    from broker.protocols.openwire.identifiers import MessageId
    from broker.queues.consumer import Consumer
    from broker.queues.consumer_ports import Sink
    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["Delivery", "OpenWireConsumer", "Part", "create_part", "durable_queue"]

_BUSY: Final = (
    "Cannot create a subscriber on the durable subscription since it already has subscriber(s)"
)


class Delivery(NamedTuple):
    """A message on its way, or with the client.

    Attributes:
        message_id: of Core.
        key: text of the client's id of it.
    """

    message_id: int
    key: str


class Part:
    """What takes from one queue.

    Attributes:
        owner: that it is of.
        destination: as the client named it.
        target: what that means.
        consumer: of Core.
        open: deliveries by their number, in order, that are not acknowledged.
        deferred: acknowledged ones of transactions that go on, by their number.
        seen: those that a rolled back transaction had acknowledged.
        temporary_queue: made for it, and removed with it; None where it has another.
    """

    __slots__ = (
        "consumer",
        "deferred",
        "destination",
        "open",
        "owner",
        "seen",
        "target",
        "temporary_queue",
    )

    def __init__(
        self, owner: OpenWireConsumer, destination: ActiveMQDestination, target: Target
    ) -> None:
        self.owner = owner
        self.destination = destination
        self.target = target
        self.consumer: Consumer
        self.open: dict[int, Delivery] = {}
        self.deferred: dict[int, Delivery] = {}
        self.seen: set[int] = set()
        self.temporary_queue: str | None = None

    def find(self, message_id: MessageId) -> int | None:
        """Give the number of the delivery that an acknowledgement names; None without one."""
        key = str(message_id)
        number = message_id.broker_sequence_id
        found = self.open.get(number)
        if found is not None and found.key == key:
            return number
        return next((number for number, one in self.open.items() if one.key == key), None)

    def range(self, first: MessageId | None, last: MessageId) -> list[int] | None:
        """Give the numbers of open deliveries from the first to the last; None without the last."""
        end = self.find(last)
        if end is None:
            return None
        start = end if first is None else self.find(first)
        # The first of them may have been acknowledged by itself.
        if start is None and first is not None:
            start = first.broker_sequence_id
        assert start is not None, "one of both"
        if end - start < len(self.open):
            # Mostly a single one, of as many as a window has.
            return [number for number in range(start, end + 1) if number in self.open]
        return [number for number in self.open if start <= number <= end]

    def reject(
        self,
        delivery: Delivery,
        properties: Collection[Property],
        done: After,
        *arguments: object,
    ) -> None:
        """Move a message to the dead letter address; `done(error, *arguments)` once it is durable.

        Args:
            delivery: of the message.
            properties: that it gets.
            done: called when that is durable.
            *arguments: for `done`.

        Raises:
            BrokerError: the consumer does not have it any more.
        """
        self.owner.session.settlement.reject(
            self.consumer.consumer_id,
            (delivery.message_id,),
            done,
            *arguments,
            properties=properties,
        )

    def destination_of(self, address: str) -> ActiveMQDestination:
        """Give the destination of a message, as the client sees it."""
        if address == self.target.address or address == self.target.name:
            return self.destination
        return (ActiveMQQueue if is_queue(self.destination) else ActiveMQTopic)(address)


class OpenWireConsumer:
    """One consumer, as its client sees it.

    Args:
        info: of the client.
        session: of Core.

    Attributes:
        info: as given.
        session: as given.
        prefetch: messages that it may have; 0 pulls each.
        parts: of its destination.
        next_number: of its next delivery.
        early_credits: given back before they were acknowledged.
        is_browsing: a browser that has not come to the end.
    """

    __slots__ = (
        "early_credits",
        "info",
        "is_browsing",
        "next_number",
        "parts",
        "prefetch",
        "session",
    )

    def __init__(self, info: ConsumerInfo, session: Session) -> None:
        self.info = info
        self.session = session
        self.prefetch = max(0, info.prefetch_size)
        self.parts: list[Part] = []
        self.next_number = 0
        self.early_credits = 0
        self.is_browsing = info.browser

    def begin(self) -> None:
        """Let messages come."""
        if self.prefetch:
            self.give(self.prefetch)

    def give(self, count: int) -> None:
        """Let so many messages more come."""
        if count <= 0:
            return
        for part in self.parts:
            if not part.consumer.is_closed:
                part.consumer.receive_credits(count)

    def delivered(self, count: int) -> None:
        """The client has so many that it will acknowledge later."""
        if self.prefetch:
            self.early_credits += count
            self.give(count)

    def settled(self, count: int) -> None:
        """So many are acknowledged."""
        if self.prefetch:
            early = min(count, self.early_credits)
            self.early_credits -= early
            self.give(count - early)

    def reset(self, prefetch: int) -> None:
        """Have another window from now on."""
        self.prefetch = max(0, prefetch)
        self.early_credits = 0
        for part in self.parts:
            if not part.consumer.is_closed:
                part.consumer.receive_credits(0)
        self.give(self.prefetch - sum(len(part.open) for part in self.parts))

    def part_of(self, destination: ActiveMQDestination | None, last: MessageId) -> Part | None:
        """Give the part that an acknowledgement is for; None where it has none of the message."""
        if len(self.parts) == 1:
            return self.parts[0]
        matching = [one for one in self.parts if one.destination == destination]
        for part in (*matching, *self.parts):
            if part.find(last) is not None:
                return part
        return None


def create_part(
    part: Part,
    number: int,
    sink: Sink,
    destinations: Destinations,
    *,
    client_id: str | None,
    filter_text: str | None,
    queue_filter: str | None,
    ids: Ids,
) -> None:
    """Begin to consume for a part; nothing comes before it has credits.

    Args:
        part: without its consumer.
        number: of the consumer in its session.
        sink: where messages go.
        destinations: of the connection.
        client_id: of the connection.
        filter_text: the selector, in Core's words.
        queue_filter: of a queue that is made because it is missing.
        ids: name temporary queues.

    Raises:
        OpenWireError: the destination is missing, or the durable subscription is in use.
        BrokerError: it is refused.
    """
    session, info, target = part.owner.session, part.owner.info, part.target
    administration = session.administration
    queue, wanted = target.queue or target.address, filter_text
    is_topic = target.routing_type is RoutingType.MULTICAST and target.queue is None
    if not info.browser or is_topic or not is_temporary(part.destination):
        destinations.prepare(part.destination, target, queue_filter)
    if is_topic:
        if info.subscription_name is None:
            queue = str(ids.random_uuid())
            administration.create_queue(
                QueueRequest(
                    name=queue,
                    address=target.address,
                    filter=filter_text,
                    is_durable=False,
                    is_temporary=True,
                    routing_type=target.routing_type,
                )
            )
            part.temporary_queue = queue
        else:
            queue = durable_queue(client_id, info.subscription_name)
            if len(part.owner.parts) > 0:
                queue += part.destination.physical_name or ""
            _prepare_durable(part, queue, filter_text)
        wanted = None
    try:
        part.consumer = session.create_consumer(
            number,
            queue,
            sink,
            filter_text=wanted,
            is_browser=info.browser,
            priority=info.priority,
            counts_messages=True,
        )
    except BrokerError:
        if part.temporary_queue is not None:
            administration.delete_queue(part.temporary_queue)
        raise


def durable_queue(client_id: str | None, name: str) -> str:
    r"""Give the queue of a durable subscription, as Artemis's JMS client names it.

    >>> durable_queue("c.1", "s")
    'c\\.1.s'
    """
    return _escaped(name) if client_id is None else f"{_escaped(client_id)}.{_escaped(name)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(".", "\\.")


def _prepare_durable(part: Part, queue: str, filter_text: str | None) -> None:
    """Make the queue of a durable subscription, anew where its selector or topic has changed."""
    administration = part.owner.session.administration
    found = administration.query_queue(queue).queue
    if found is not None:
        if found.consumer_count:
            raise OpenWireError(_BUSY, "java.lang.IllegalStateException")
        binding = found.binding
        if (binding.filter or None, binding.address) == (filter_text, part.target.address):
            return
        if binding.configuration_managed:
            return
        administration.delete_queue(queue)
    administration.create_queue(
        QueueRequest(
            name=queue,
            address=part.target.address,
            filter=filter_text,
            routing_type=part.target.routing_type,
        )
    )
