"""Subscriptions of one connection: the queue of each, its consumer, what waits for an ACK.

    address MULTICAST only    a temporary queue of its own, or with a name a durable one that stays
    any other, or qualified   the queue of that name, with the selector at the consumer

A subscription with acknowledgements has a window: bytes of MESSAGE frames that may be open. An
acknowledgement gives back what it covers. In mode auto a message counts as acknowledged once its
frame is handed to the socket.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.parameters import NackOutcome, window_size
from broker.protocols.stomp.sent_message import CONNECTION_ID
from broker.protocols.stomp.versions import Version
from broker.settings.queue_defaults import QueueRequest
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.environment import Ids
    from broker.protocols.stomp.destinations import Destination, Destinations
    from broker.queues.consumer import Consumer
    from broker.queues.consumer_ports import Sink
    from broker.sessions.session import Session

__all__ = ["Subscription", "Subscriptions"]

AUTO: Final = "auto"
CLIENT_INDIVIDUAL: Final = "client-individual"
_UNLIMITED: Final = -1
_MULTICAST_ONLY: Final = frozenset({RoutingType.MULTICAST})
_DURABLE_NAMES: Final = (
    "durable-subscription-name",
    "durable-subscriber-name",
    "activemq.subscriptionName",
)
_MESSAGE_ID: Final = re.compile(r"(\d{1,19}),(\d{1,19})", re.ASCII)
_SIZE: Final = re.compile(r"-?\d{1,10}", re.ASCII)
_INT_MAX: Final = 2**31 - 1


class Subscription:
    """One of them.

    Attributes:
        id: the client's.
        consumer: of its queue.
        is_auto: messages are acknowledged as they are written.
        is_individual: an acknowledgement is for one message; else for all before it, too.
        window: bytes that may be open; -1 without limit, 0 one message.
        open: size of the frame of each message that waits for its ACK, by message id, in order.
        temporary_queue: made for it, and removed with it; None where it has another.
        is_no_local: it gets nothing that this connection sends.
    """

    __slots__ = (
        "consumer",
        "id",
        "is_auto",
        "is_individual",
        "is_no_local",
        "open",
        "temporary_queue",
        "window",
    )

    def __init__(
        self,
        id: str,
        consumer: Consumer,
        *,
        ack: str,
        window: int,
        temporary_queue: str | None,
        is_no_local: bool,
    ) -> None:
        self.id = id
        self.consumer = consumer
        self.is_auto = ack == AUTO
        self.is_individual = ack == CLIENT_INDIVIDUAL
        self.window = window
        self.open: dict[int, int] = {}
        self.temporary_queue = temporary_queue
        self.is_no_local = is_no_local

    def begin(self) -> None:
        """Let messages come."""
        if not self.consumer.is_closed:
            # A window of 0 still has to let one message through: any credit at all does.
            self.consumer.receive_credits(1 if self.window == 0 else self.window)

    def settled(self, message_ids: list[int]) -> None:
        """Give back to the window what was open of messages."""
        size = sum(self.open.pop(one) for one in message_ids)
        if self.window != _UNLIMITED and size and not self.consumer.is_closed:
            self.consumer.receive_credits(size)

    def up_to(self, message_id: int) -> list[int]:
        """Give what an acknowledgement of an open message covers."""
        if self.is_individual:
            return [message_id]
        covered = []
        for one in self.open:
            covered.append(one)
            if one == message_id:
                break
        return covered


class Subscriptions:
    """See the module's text.

    Args:
        session: of the connection.
        destinations: of the connection.
        sink: takes what its consumers get.
        connection_id: of the connection.
        client_id: that the client chose; None is none.
        ids: name temporary queues.
        parameters: of the acceptor.

    Attributes:
        no_local_count: how many want nothing that this connection sends.
    """

    __slots__ = (
        "_by_consumer",
        "_by_id",
        "_client_id",
        "_connection_id",
        "_destinations",
        "_ids",
        "_nack",
        "_session",
        "_sink",
        "_window",
        "no_local_count",
    )

    def __init__(
        self,
        session: Session,
        destinations: Destinations,
        sink: Sink,
        *,
        connection_id: str,
        client_id: str | None,
        ids: Ids,
        parameters: Mapping[str, Any],
    ) -> None:
        self._session = session
        self._destinations = destinations
        self._sink = sink
        self._connection_id = connection_id
        self._client_id = client_id
        self._ids = ids
        self._window = window_size(parameters)
        self._nack: NackOutcome = parameters["stompNackOutcome"]
        self._by_id: dict[str, Subscription] = {}
        self._by_consumer: dict[int, Subscription] = {}
        self.no_local_count = 0

    def of(self, consumer: Consumer) -> Subscription | None:
        """Give that of a consumer; None where it has ended."""
        return self._by_consumer.get(consumer.consumer_id)

    # --- SUBSCRIBE, UNSUBSCRIBE ---------------------------------------------------------------

    def subscribe(self, headers: Mapping[str, str]) -> Subscription:
        """Make one; no message comes before its begin().

        Raises:
            StompError: the frame lacks something, or there is one of that id.
            BrokerError: it is refused.
        """
        id = headers.get("id")
        destination = self._destinations.named(headers, "subscription-type")
        if id is None:
            id = f"subscription/{destination.name}"
        if id in self._by_id:
            raise StompError(
                f"There already is a subscription for: {id}. Either use unique subscription IDs or "
                "do not create multiple subscriptions for the same destination"
            )
        try:
            return self._made(id, destination, headers)
        except BrokerError as error:
            raise StompError(
                f"AMQ339016: Error creating subscription {id}: {error.text}"
            ) from error

    def _made(self, id: str, destination: Destination, headers: Mapping[str, str]) -> Subscription:
        selector = headers.get("selector")
        if selector is not None and not selector.strip():
            raise StompError("Selector cannot be empty")
        ack = headers.get("ack", AUTO)
        window = self._window_of(headers, ack)
        is_no_local = _is_true(headers, "no-local", "activemq.noLocal")
        wanted = self._filter(selector) if is_no_local else selector
        types = self._destinations.prepare(destination)
        session = self._session
        queue, temporary_queue = destination.queue or destination.address, None
        if types == _MULTICAST_ONLY and destination.queue is None:
            queue, is_temporary = self._topic_queue(destination.address, headers, wanted)
            temporary_queue = queue if is_temporary else None
            wanted = None
        try:
            consumer = session.create_consumer(
                session.new_id(), queue, self._sink, filter_text=wanted
            )
        except BrokerError:
            if temporary_queue is not None:
                session.administration.delete_queue(temporary_queue)
            raise
        made = Subscription(
            id,
            consumer,
            ack=ack,
            window=window,
            temporary_queue=temporary_queue,
            is_no_local=is_no_local,
        )
        self._by_id[id] = self._by_consumer[consumer.consumer_id] = made
        self.no_local_count += is_no_local
        return made

    def _window_of(self, headers: Mapping[str, str], ack: str) -> int:
        text = headers.get("consumer-window-size", headers.get("activemq.prefetchSize"))
        size = self._window
        if text is not None:
            if _SIZE.fullmatch(text) is None or not _UNLIMITED <= int(text) <= _INT_MAX:
                raise StompError(
                    f"header consumer-window-size is not a number from -1 to {_INT_MAX}: "
                    f"{text[:40]}"
                )
            size = int(text)
        # What is acknowledged as it is written is never open: in Artemis a window of it runs dry.
        return _UNLIMITED if ack == AUTO else size

    def _filter(self, selector: str | None) -> str:
        own = f"({CONNECTION_ID} <> '{self._connection_id}' OR {CONNECTION_ID} IS NULL)"
        return own if selector is None else f"({selector}) AND {own}"

    def _topic_queue(
        self, address: str, headers: Mapping[str, str], filter_text: str | None
    ) -> tuple[str, bool]:
        """Give the queue of a subscription to a topic, and whether it goes with it."""
        administration = self._session.administration
        name = _durable_name(headers)
        if name is None:
            queue = str(self._ids.random_uuid())
            administration.create_queue(
                QueueRequest(
                    name=queue,
                    address=address,
                    filter=filter_text,
                    is_durable=False,
                    is_temporary=True,
                    routing_type=RoutingType.MULTICAST,
                )
            )
            return queue, True
        queue = self._durable_queue(name)
        found = administration.query_queue(queue).queue
        if found is None:
            administration.create_queue(
                QueueRequest(
                    name=queue,
                    address=address,
                    filter=filter_text,
                    routing_type=RoutingType.MULTICAST,
                )
            )
        elif found.binding.address != address:
            raise StompError(
                f"AMQ339016: the durable subscription {queue} is one of {found.binding.address}, "
                f"not of {address}"
            )
        return queue, False

    def _durable_queue(self, name: str) -> str:
        if self._client_id is None:
            raise StompError(
                "AMQ339027: Cannot create a subscriber on the durable subscription if the "
                "client-id of the connection is not set"
            )
        return f"{self._client_id}.{name}"

    def unsubscribe(self, headers: Mapping[str, str], version: Version) -> None:
        """End one, and remove the queue that was made for it, or the durable one that is named.

        Raises:
            StompError: no such subscription; or its durable queue is in use by another.
            BrokerError: the user may not remove the queue.
        """
        id, name = headers.get("id"), _durable_name(headers)
        if id is None and version is Version.V1_0 and headers.get("destination") is not None:
            id = f"subscription/{self._destinations.plain(headers['destination'])}"
        if id is None and name is None:
            if version is Version.V1_0:
                raise StompError(
                    "AMQ339035: Must specify the subscription's id or the destination you are "
                    "unsubscribing from"
                )
            raise StompError("AMQ339037: Must specify the subscription's id")
        subscription = None if id is None else self._by_id.get(id)
        is_durable = name is not None and self._client_id is not None
        if subscription is None and not is_durable:
            raise StompError(f"Cannot unsubscribe as no subscription exists for id: {id}")
        try:
            if subscription is not None:
                self._end(subscription)
            if name is not None and self._client_id is not None:
                administration = self._session.administration
                queue = self._durable_queue(name)
                if administration.query_queue(queue).queue is not None:
                    administration.delete_queue(queue)
        except BrokerError as error:
            raise StompError(f"AMQ339017: Error unsubscribing {id}: {error.text}") from error

    def _end(self, subscription: Subscription) -> None:
        self.forget(subscription)
        # An operator may have closed it.
        if not subscription.consumer.is_closed:
            self._session.close_consumer(subscription.consumer.consumer_id)
        queue = subscription.temporary_queue
        administration = self._session.administration
        if queue is not None and administration.query_queue(queue).queue is not None:
            administration.delete_queue(queue)

    def forget(self, subscription: Subscription) -> None:
        """It has ended."""
        del self._by_id[subscription.id]
        del self._by_consumer[subscription.consumer.consumer_id]
        self.no_local_count -= subscription.is_no_local

    # --- ACK, NACK ----------------------------------------------------------------------------

    def acknowledge(self, headers: Mapping[str, str], version: Version) -> None:
        """Acknowledge a message, and where the mode says so those before it.

        Callers that wait for it ask the session's context.

        Raises:
            StompError: it is not open, or the frame lacks something.
            BrokerError: it cannot be recorded: what was not stays open.
            JournalError: the storage has failed.
        """
        subscription, message_id = self._open(headers, version)
        self._accept(subscription, message_id)

    def _accept(self, subscription: Subscription, message_id: int) -> None:
        consumer_id = subscription.consumer.consumer_id
        covered = subscription.up_to(message_id)
        try:
            self._session.accept_acknowledgement(
                consumer_id, message_id, subscription.is_individual
            )
        except (BrokerError, JournalError):
            # In a transaction those before the one that could not be recorded may be.
            left = {one.message.message_id for one in subscription.consumer.delivering}
            subscription.settled([one for one in covered if one not in left])
            raise
        subscription.settled(covered)

    def refuse(self, headers: Mapping[str, str], version: Version) -> None:
        """As acknowledge(), for NACK: what becomes of the message is a parameter of the acceptor.

        Raises:
            StompError: as for acknowledge().
            BrokerError: likewise.
            JournalError: likewise.
        """
        subscription, message_id = self._open(headers, version)
        if self._nack is NackOutcome.accept:
            self._accept(subscription, message_id)
            return
        consumer_id = subscription.consumer.consumer_id
        covered = subscription.up_to(message_id)
        settlement = self._session.settlement
        # Before they come again, to this subscription maybe.
        sizes = [(one, subscription.open.pop(one)) for one in covered]
        if self._nack is NackOutcome.redeliver:
            settlement.modify(consumer_id, covered, _nothing, delivery_failed=True)
        else:
            settlement.reject(consumer_id, covered, _nothing)
        if subscription.window != _UNLIMITED and not subscription.consumer.is_closed:
            subscription.consumer.receive_credits(sum(size for _, size in sizes))

    def _open(self, headers: Mapping[str, str], version: Version) -> tuple[Subscription, int]:
        """Give the message that a frame names, which waits for its ACK, and its subscription."""
        name = "id" if version is Version.V1_2 else "message-id"
        text = headers.get(name)
        if version is Version.V1_2 and text is None:
            raise StompError("AMQ339039: No id header in ACK/NACK frame.")
        of = headers.get("subscription")
        if version is Version.V1_1 and of is None:
            raise StompError("AMQ339037: Must specify the subscription's id")
        found = None if text is None else _MESSAGE_ID.fullmatch(text)
        subscription = None if found is None else self._by_consumer.get(int(found[1]))
        if found is None or subscription is None or int(found[2]) not in subscription.open:
            raise StompError(f"AMQ339025: failed to ack because no message with id: {text}")
        if version is Version.V1_1 and of != subscription.id:
            raise StompError(f"AMQ339026: subscription id {of} does not match {subscription.id}")
        return subscription, int(found[2])

    # --- all of them --------------------------------------------------------------------------

    def consumers(self) -> list[Consumer]:
        """Give those of all, as they are now."""
        return [one.consumer for one in self._by_id.values()]


def _nothing(error: Exception | None) -> None:
    """Who waits asks the session's context."""


def _durable_name(headers: Mapping[str, str]) -> str | None:
    return next((headers[name] for name in _DURABLE_NAMES if name in headers), None)


def _is_true(headers: Mapping[str, str], *names: str) -> bool:
    text = next((headers[name] for name in names if name in headers), "")
    return text.lower() == "true"
