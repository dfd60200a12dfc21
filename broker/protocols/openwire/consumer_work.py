"""The consumers of one client: how they begin and end, what they pull, and where a browser ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from broker.errors import BrokerError
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.consumers import OpenWireConsumer, Part, create_part
from broker.protocols.openwire.deliveries import PartSink
from broker.protocols.openwire.destinations import parts_of
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.selectors import core_selector
from broker.protocols.openwire.virtual_topics import VirtualTopics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.openwire.destinations import Destinations
    from broker.protocols.openwire.fields import DataType
    from broker.protocols.openwire.identifiers import ConsumerId
    from broker.protocols.openwire.transactions import Transactions
    from broker.protocols.peer import Sessions
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["ConsumerWork"]


class ConsumingConnection(Protocol):
    """What this needs of its connection."""

    sessions: Sessions
    client_id: str | None
    remote: str

    def send(self, command: DataType) -> None:
        """Write a command."""

    def answer(self, command: c.Command, session: Session | None) -> None:
        """Answer a command once what a session did is durable."""

    def connection_error(self, text: str) -> None:
        """Tell the client, and end the connection."""

    def abort(self) -> None:
        """End the connection at once."""


class ConsumerWork:
    """See the module's text.

    Args:
        connection: of the client.
        destinations: of it.
        transactions: of it.
        parameters: of the acceptor.

    Attributes:
        node_id: of the broker.
        clock: of the broker.
        remote: address of the client.
        hides_client_id: a consumer with no-local was made.
    """

    __slots__ = (
        "_by_id",
        "_connection",
        "_destinations",
        "_is_paused",
        "_number",
        "_sessions",
        "_timers",
        "_transactions",
        "_virtual",
        "clock",
        "hides_client_id",
        "node_id",
        "remote",
    )

    def __init__(
        self,
        connection: ConsumingConnection,
        destinations: Destinations,
        transactions: Transactions,
        parameters: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._sessions = connection.sessions
        self._destinations = destinations
        self._transactions = transactions
        self._virtual = VirtualTopics(parameters["virtualTopicConsumerWildcards"])
        self._by_id: dict[ConsumerId, OpenWireConsumer] = {}
        self._timers = asyncio.get_running_loop()
        self._number = 0
        self._is_paused = False
        self.node_id = self._sessions.node_id
        self.clock = self._sessions.clock
        self.remote = connection.remote
        self.hides_client_id = False

    def get(self, id: ConsumerId) -> OpenWireConsumer | None:
        """Give a consumer; None where it has ended."""
        return self._by_id.get(id)

    def part_of(self, consumer: Consumer) -> Part | None:
        """Give the part that a consumer of Core is of; None of another connection."""
        parts = (part for one in self._by_id.values() for part in one.parts)
        return next((part for part in parts if part.consumer is consumer), None)

    # --- for deliveries -----------------------------------------------------------------------

    def send(self, command: DataType) -> None:
        """Write a command."""
        self._connection.send(command)

    def abort(self) -> None:
        """End the connection at once."""
        self._timers.call_soon(self._connection.abort)

    def queue_gone(self, part: Part) -> None:
        """The broker has closed a consumer: its queue is gone, and with it the connection."""
        # Behind this turn of the queue, which goes on to its other consumers.
        text = f"the queue {part.consumer.queue.name} is gone"
        self._timers.call_soon(self._connection.connection_error, text)

    # --- they begin ---------------------------------------------------------------------------

    def add(self, info: c.ConsumerInfo, session: Session) -> None:
        """Begin to consume, and answer; messages come behind the answer.

        Raises:
            OpenWireError: it is refused.
            BrokerError: likewise.
        """
        id = info.consumer_id
        assert id is not None, "the caller has looked"
        assert info.destination is not None, "the caller has looked"
        if id in self._by_id:
            self._connection.answer(info, None)
            return
        if info.additional_predicate is not None:
            raise OpenWireError("additionalPredicate is not supported")
        consumer = OpenWireConsumer(info, session)
        not_of = self._connection.client_id if info.no_local else None
        text = core_selector(info.selector, not_of)
        try:
            for one in parts_of(info.destination):
                self._add_part(consumer, one, text)
        except (OpenWireError, BrokerError):
            self._end_parts(consumer, None)
            raise
        self.hides_client_id = self.hides_client_id or info.no_local
        self._by_id[id] = consumer
        self._connection.answer(info, session)
        session.context.after(self._begin, consumer)

    def _add_part(
        self, consumer: OpenWireConsumer, destination: c.ActiveMQDestination, text: str | None
    ) -> None:
        virtual = self._virtual.queue_of(destination)
        queue_filter = None
        if virtual is None:
            target = self._destinations.target(destination, is_consumer=True)
        else:
            target = virtual.target
            queue_filter = text if virtual.is_selector_aware else None
        part = Part(consumer, destination, target)
        self._number += 1
        create_part(
            part,
            self._number,
            PartSink(self, part),
            self._destinations,
            client_id=self._client_id_of(consumer.info),
            filter_text=text,
            queue_filter=queue_filter,
            ids=self._sessions.ids,
        )
        if self._is_paused:
            part.consumer.pause()
        consumer.parts.append(part)

    def _client_id_of(self, info: c.ConsumerInfo) -> str | None:
        # Before version 10 it is not said; Artemis names the queue by the subscription alone.
        return info.client_id

    def _begin(self, error: Exception | None, consumer: OpenWireConsumer) -> None:
        if error is not None or not self._is_there(consumer):
            return
        consumer.begin()
        if consumer.info.browser:
            self._browse(None, consumer, -1)

    def _is_there(self, consumer: OpenWireConsumer) -> bool:
        id = consumer.info.consumer_id
        return id is not None and self._by_id.get(id) is consumer

    # --- browsers, pulls ----------------------------------------------------------------------

    def went_on(self, consumer: OpenWireConsumer) -> None:
        """It has room again."""
        if consumer.info.browser and consumer.is_browsing:
            self._timers.call_soon(self._browse, None, consumer, consumer.next_number)

    def _browse(self, error: Exception | None, consumer: OpenWireConsumer, known: int) -> None:
        """Say that a browser has seen all, once nothing more comes."""
        if error is not None or not self._is_there(consumer) or not consumer.is_browsing:
            return
        for part in consumer.parts:
            if not part.consumer.can_take:
                # It goes on when its window or the socket has room.
                return
            part.consumer.queue.prompt(part.consumer)
            if part.consumer.after_read(lambda: self._browse(None, consumer, known)):
                return
        if consumer.next_number != known:
            self._timers.call_soon(self._browse, None, consumer, consumer.next_number)
            return
        consumer.is_browsing = False
        self._nothing_for(consumer, consumer.info.destination)

    def _nothing_for(
        self, consumer: OpenWireConsumer, destination: c.ActiveMQDestination | None
    ) -> None:
        """Tell a consumer that the queue is empty."""
        self.send(c.MessageDispatch(consumer_id=consumer.info.consumer_id, destination=destination))

    def pull(self, pull: c.MessagePull) -> None:
        """Let one message come to a consumer without prefetch.

        Raises:
            OpenWireError: there is no such consumer.
        """
        consumer = None if pull.consumer_id is None else self._by_id.get(pull.consumer_id)
        if consumer is None:
            raise OpenWireError("Consumer does not exist")
        known = consumer.next_number
        consumer.give(1)
        if pull.timeout < 0:
            consumer.session.context.after(self._pulled, consumer, pull, known)
        elif pull.timeout > 0:
            self._timers.call_later(pull.timeout / 1000, self._pulled, None, consumer, pull, known)

    def _pulled(
        self,
        error: Exception | None,
        consumer: OpenWireConsumer,
        pull: c.MessagePull,
        known: int,
    ) -> None:
        """A pull ends without a message, unless one has come."""
        if error is not None or not self._is_there(consumer) or consumer.next_number != known:
            return
        for part in consumer.parts:
            if part.consumer.stream is not None:
                return
            part.consumer.queue.prompt(part.consumer)
            if pull.timeout < 0 and part.consumer.after_read(
                lambda: self._pulled(None, consumer, pull, known)
            ):
                return
        if consumer.next_number != known:
            return
        for part in consumer.parts:
            part.consumer.receive_credits(0)
        self._nothing_for(consumer, pull.destination)

    # --- they end -----------------------------------------------------------------------------

    def remove(self, id: ConsumerId, last_delivered: int) -> Session | None:
        """End a consumer, if it is there; its session.

        Args:
            id: of it.
            last_delivered: number of the last message that its client has seen; -1 is none, -2 all.
        """
        consumer = self._by_id.pop(id, None)
        if consumer is None:
            return None
        self._end_parts(consumer, last_delivered)
        return consumer.session

    def remove_of(self, session: Session, last_delivered: int) -> None:
        """End all consumers of a session."""
        for id in [id for id, one in self._by_id.items() if one.session is session]:
            self.remove(id, last_delivered)

    def _end_parts(self, consumer: OpenWireConsumer, last_delivered: int | None) -> None:
        session = consumer.session
        for part in consumer.parts:
            if not part.consumer.is_closed:
                self._transactions.part_ends(part)
                part.consumer.pause()
                self._count_seen(part, last_delivered)
                session.close_consumer(part.consumer.consumer_id)
            queue = part.temporary_queue
            administration = session.administration
            if queue is not None and administration.query_queue(queue).queue is not None:
                administration.delete_queue(queue)

    def _count_seen(self, part: Part, last_delivered: int | None) -> None:
        """Give back what the client has seen, so that its delivery counts."""
        if last_delivered is None or part.consumer.is_browser:
            return
        seen: list[int] = []
        unseen: list[int] = []
        for number, one in part.open.items():
            is_seen = last_delivered == -2 or number <= last_delivered or number in part.seen
            (seen if is_seen else unseen).append(one.message_id)
        if seen:
            part.owner.session.settlement.give_back(
                part.consumer.consumer_id, seen, unseen, _nothing
            )

    # --- the socket ---------------------------------------------------------------------------

    def pause(self) -> None:
        """The peer does not read."""
        self._is_paused = True
        for consumer in self._by_id.values():
            for part in consumer.parts:
                part.consumer.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        self._is_paused = False
        for consumer in list(self._by_id.values()):
            for part in consumer.parts:
                part.consumer.go_on()
            self.went_on(consumer)

    def close(self) -> None:
        """The connection ends: its sessions end the consumers."""
        self._by_id.clear()


def _nothing(error: Exception | None) -> None:
    """Who waits asks the session's context."""
