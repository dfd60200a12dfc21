"""Subscriptions of one connection: the queue of each, and its consumer.

    a/+              the queue CLIENT.a.*, bound to a.*
    $share/g/a/+     the queue g.a.*, whose messages all clients of the group share
    an ANYCAST one   the queue of that name, or the first one of that address; one that is made is
                     kept for others, until it is unused

Queues are named and filtered as in Artemis, so that either broker finds those of the other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerError, ErrorCode
from broker.model.address import SEPARATOR
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.packets import Version
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.session_state import Subscribed
from broker.protocols.mqtt.topics import (
    OWN_PREFIX,
    address_of,
    check_filter,
    destination_of,
    split_shared,
)
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from broker.environment import Clock
    from broker.protocols.mqtt.packets import Filter
    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.mqtt.session_states import SessionStates
    from broker.protocols.mqtt.topics import Destination
    from broker.queues.consumer import Consumer
    from broker.queues.consumer_ports import Sink
    from broker.routing.address import Address
    from broker.sessions.prefixes import Prefixes
    from broker.sessions.session import Session

__all__ = ["Active", "Subscriptions"]

log = logging.getLogger("broker")

_UNLIMITED: Final = -1
_SUBACK_FAILURE: Final = 0x80  # Of MQTT 3.1.1.


class Active(NamedTuple):
    """A subscription, and the consumer that its connection has for it."""

    subscribed: Subscribed
    consumer: Consumer

    def begin(self) -> None:
        """Let messages come."""
        if not self.consumer.is_closed:
            self.consumer.receive_credits(_UNLIMITED)


class Subscriptions:
    """See the module's text.

    Args:
        session: of the client.
        state: of the client.
        states: records it.
        sink: takes what its consumers get.
        version: of the protocol.
        clock: says what has expired.
        own_addresses: of management and of notifications.
        prefixes: of the acceptor.
    """

    __slots__ = (
        "_by_filter",
        "_clock",
        "_own_addresses",
        "_prefixes",
        "_session",
        "_sink",
        "_state",
        "_states",
        "_version",
        "_wildcards",
        "by_consumer",
    )

    def __init__(
        self,
        session: Session,
        state: SessionState,
        states: SessionStates,
        sink: Sink,
        version: Version,
        *,
        clock: Clock,
        own_addresses: tuple[str, ...],
        prefixes: Prefixes,
    ) -> None:
        self._session = session
        self._state = state
        self._states = states
        self._sink = sink
        self._version = version
        self._clock = clock
        self._own_addresses = own_addresses
        self._prefixes = prefixes
        self._wildcards = session.wildcards
        self.by_consumer: dict[int, Active] = {}
        self._by_filter: dict[str, Active] = {}

    def consumers(self) -> list[Consumer]:
        """Give those of all, as they are now."""
        return [one.consumer for one in self.by_consumer.values()]

    # --- SUBSCRIBE ----------------------------------------------------------------------------

    def subscribe(
        self, filters: tuple[Filter, ...], identifier: int | None
    ) -> tuple[list[int], list[Active]]:
        """Subscribe; the reason code for each filter, and what to begin once that is told.

        Raises:
            BrokerError: it cannot be recorded.
            JournalError: likewise.
        """
        codes, made = [], []
        for filter in filters:
            try:
                active = self._subscribe(filter, identifier)
            except MqttError as error:
                log.info("%s: %s", self._state.client_id, error.text)
                codes.append(int(error.code) if self._is_5 else _SUBACK_FAILURE)
            except BrokerError as error:
                log.info("%s cannot subscribe to %s: %s", self._state.client_id, filter.text, error)
                codes.append(self._refused(filter, error))
            else:
                codes.append(filter.qos)
                made.append(active)
        self._states.save(self._state, self._session)
        return codes, made

    @property
    def _is_5(self) -> bool:
        return self._version is Version.V5

    def _refused(self, filter: Filter, error: BrokerError) -> int:
        if self._is_5:
            return _code(error)
        # MQTT 3.1 has no answer but that of success.
        return _SUBACK_FAILURE if self._version is Version.V3_1_1 else filter.qos

    def _subscribe(self, filter: Filter, identifier: int | None) -> Active:
        share, plain = split_shared(filter.text)
        check_filter(plain)
        if share is not None and SEPARATOR in share:
            raise MqttError(ReasonCode.TOPIC_FILTER_INVALID, f"the topic filter {filter.text!r}")
        to = self._destination(plain)
        address = to.address
        if address.startswith(OWN_PREFIX):
            raise MqttError(ReasonCode.NOT_AUTHORIZED, f"the address {address} is the broker's own")
        known = self._by_filter.get(filter.text)
        handling = filter.retain_handling
        if known is not None:
            known.subscribed.filter = filter
            known.subscribed.identifier = identifier
            active = known
        else:
            queue, is_own = self._queue(plain, share)
            subscribed = Subscribed(filter, identifier, queue, share, is_own)
            active = self._consume(subscribed)
            self._state.subscriptions[filter.text] = subscribed
        if share is None and (handling == 0 or (handling == 1 and known is None)):
            queue = active.subscribed.queue
            self._states.retained.give(self._session, address, queue, self._clock.now_ms())
        return active

    def _destination(self, plain: str) -> Destination:
        invalid = ReasonCode.TOPIC_FILTER_INVALID
        return destination_of(plain, self._wildcards, self._prefixes, invalid)

    def _queue(self, plain: str, share: str | None) -> tuple[str, bool]:
        """Give the queue of a subscription, made if need be, and whether it goes with it."""
        administration = self._session.administration
        address, by_prefix = self._destination(plain)
        # As in Artemis a prefix is part of it.
        before = self._state.client_id if share is None else share
        name = f"{before}.{address_of(plain, self._wildcards)}"
        found = administration.query_queue(name).queue
        if found is not None:
            if found.binding.address != address:
                raise BrokerError(
                    ErrorCode.QUEUE_EXISTS,
                    f"the queue {name} is one of the address {found.binding.address}",
                )
            return name, True
        known = administration.query_address(address).address
        is_anycast = by_prefix is RoutingType.ANYCAST
        if known is not None and RoutingType.ANYCAST not in known.routing_types:
            is_anycast = False
        elif known is not None and RoutingType.MULTICAST not in known.routing_types:
            is_anycast = True
        if is_anycast:
            queues = [] if known is None else _anycast(known)
            if queues:
                return address if address in queues else queues[0], False
            name = address
        administration.create_queue(
            QueueRequest(
                name=name,
                address=address,
                filter=self._filter_of(address),
                # Without a connection such a session has nothing that is to be kept.
                is_durable=is_anycast or self._state.is_kept or share is not None,
                is_auto_created=is_anycast,
                user=self._session.user,
                routing_type=RoutingType.ANYCAST if is_anycast else RoutingType.MULTICAST,
            ),
            is_shared=share is not None,
        )
        return name, not is_anycast

    def _filter_of(self, address: str) -> str:
        """Give the selector of a queue: neither management nor, for a pattern, what begins by $."""
        wildcards = self._wildcards
        tests = [f"(AMQAddress = '{name}')" for name in self._own_addresses]
        if address[0] in (wildcards.single_word, wildcards.any_words):
            tests.append("(AMQAddress LIKE '$%')")
        return f"NOT ({' OR '.join(tests)})"

    def _consume(self, subscribed: Subscribed) -> Active:
        session = self._session
        try:
            consumer = session.create_consumer(session.new_id(), subscribed.queue, self._sink)
        except BrokerError:
            if subscribed.filter.text not in self._state.subscriptions:
                self._drop_queue(subscribed)
            raise
        active = Active(subscribed, consumer)
        self.by_consumer[consumer.consumer_id] = active
        self._by_filter[subscribed.filter.text] = active
        return active

    def _drop_queue(self, subscribed: Subscribed) -> None:
        own = self._session.own_queues
        if subscribed.is_own and not own.consumer_count(subscribed.queue):
            own.delete(subscribed.queue)

    def resume(self) -> list[Active]:
        """Consume again for the subscriptions that the session has; what to begin.

        One that its user may not have any more ends.
        """
        made = []
        for text, one in list(self._state.subscriptions.items()):
            try:
                plain = split_shared(text).filter
                one.queue, one.is_own = self._queue(plain, one.share)
                made.append(self._consume(one))
            except (BrokerError, MqttError) as error:
                log.warning(
                    "the subscription of %s to %s is not taken up: %s",
                    self._state.client_id,
                    text,
                    error,
                )
        return made

    # --- UNSUBSCRIBE --------------------------------------------------------------------------

    def unsubscribe(self, filters: tuple[str, ...]) -> list[int]:
        """End subscriptions; the reason code for each filter.

        Raises:
            BrokerError: it cannot be recorded.
            JournalError: likewise.
        """
        codes = [int(self._unsubscribe(text)) for text in filters]
        self._states.save(self._state, self._session)
        return codes

    def _unsubscribe(self, text: str) -> ReasonCode:
        subscribed = self._state.subscriptions.get(text)
        if subscribed is None:
            return ReasonCode.NO_SUBSCRIPTION_EXISTED
        active = self._by_filter.pop(text, None)
        if active is not None:
            del self.by_consumer[active.consumer.consumer_id]
            self._session.close_consumer(active.consumer.consumer_id)
        try:
            self._states.drop_queue(self._state, subscribed, self._session)
        except BrokerError as error:
            log.info("%s cannot unsubscribe from %s: %s", self._state.client_id, text, error)
            again = self._consume(subscribed)
            again.begin()
            return _code(error)
        del self._state.subscriptions[text]
        return ReasonCode.SUCCESS

    def forget(self, consumer: Consumer) -> Active | None:
        """The broker has closed a consumer: its subscription has none."""
        active = self.by_consumer.pop(consumer.consumer_id, None)
        if active is not None:
            del self._by_filter[active.subscribed.filter.text]
        return active


def _code(error: BrokerError) -> ReasonCode:
    if error.code is ErrorCode.SECURITY_EXCEPTION:
        return ReasonCode.NOT_AUTHORIZED
    return ReasonCode.UNSPECIFIED_ERROR


def _anycast(address: Address) -> list[str]:
    """Give its ANYCAST queues."""
    return [
        name
        for name, queue in address.queues.items()
        if queue.binding.routing_type == RoutingType.ANYCAST
    ]
