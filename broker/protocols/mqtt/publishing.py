"""Messages that a client publishes: PUBLISH packets, with payloads whole or in parts.

    PUBLISH ─▶ alias, topic ─▶ room at its address? ─▶ message ─▶ session ─▶ PUBACK │ PUBREC
                                        └─ no: the connection is held until there is

Nothing is read from a connection that publishes to a blocked address. A packet is acknowledged once
its message is durable. One of QoS 2 whose packet id came before, and was not released, is not
routed again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.packets import Acknowledgement, PacketType, Version
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.published_message import message_of
from broker.protocols.mqtt.reason_codes import FAILURE, ReasonCode
from broker.protocols.mqtt.topics import OWN_PREFIX, check_topic, destination_of
from broker.protocols.mqtt.wire import SIZE_MAX
from broker.protocols.producers import HeldConnection, Producers, has_room
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.environment import Clock
    from broker.protocols.mqtt.packets import Part, Publish
    from broker.protocols.mqtt.properties import Properties
    from broker.protocols.mqtt.retained import RetainedMessages
    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.mqtt.topics import Destination
    from broker.sessions.prefixes import Prefixes
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["LARGE_SIZE", "Publishing", "routing_type_of"]

log = logging.getLogger("broker")

LARGE_SIZE: Final = 102400
"""Bytes of a payload from which it is kept outside of the journal, by the default of Core."""
# What is handed over at a time of a payload.
_CHUNK_SIZE: Final = 128 * 1024
# Topics and addresses of which something is known.
_KNOWN_MAX: Final = 100
_CODES: Final = {
    ErrorCode.SECURITY_EXCEPTION: ReasonCode.NOT_AUTHORIZED,
    ErrorCode.ADDRESS_FULL: ReasonCode.QUOTA_EXCEEDED,
    # Artemis drops such a message and says nothing.
    ErrorCode.ADDRESS_DOES_NOT_EXIST: ReasonCode.NO_MATCHING_SUBSCRIBERS,
}


class PublishingConnection(HeldConnection, Protocol):
    """What this needs of its connection."""

    def write(self, packet: Acknowledgement) -> None:
        """Send a packet."""

    def confirm(self, kind: PacketType, packet_id: int) -> None:
        """Send one that says that another packet has succeeded."""


class _Incoming:
    """A PUBLISH whose payload comes in parts."""

    __slots__ = ("address", "message", "packet", "size")

    def __init__(self, packet: Publish, address: str, message: Message | None) -> None:
        self.packet = packet
        self.address = address
        # None: its payload is dropped.
        self.message = message
        self.size = 0


class Publishing:
    """See the module's text.

    Args:
        connection: of the client.
        session: of the client.
        state: of the client.
        version: of the protocol.
        clock: gives messages their time.
        new_producer: counts messages of an address.
        parameters: of the acceptor.
        prefixes: of the acceptor.
        retained: messages of the broker.
    """

    __slots__ = (
        "_alias_max",
        "_aliases",
        "_clock",
        "_closes",
        "_connection",
        "_destinations",
        "_incoming",
        "_open_count",
        "_open_max",
        "_prefixes",
        "_producers",
        "_retained",
        "_session",
        "_state",
        "_types",
        "_types_version",
        "_version",
        "_wildcards",
    )

    def __init__(
        self,
        connection: PublishingConnection,
        session: Session,
        state: SessionState,
        version: Version,
        *,
        clock: Clock,
        new_producer: Callable[[str | None], Producer],
        parameters: Mapping[str, Any],
        prefixes: Prefixes,
        retained: RetainedMessages,
    ) -> None:
        self._retained = retained
        self._connection = connection
        self._session = session
        self._state = state
        self._version = version
        self._clock = clock
        self._prefixes = prefixes
        self._wildcards = session.wildcards
        self._producers = Producers(new_producer)
        self._aliases: dict[int, str] = {}
        self._alias_max: int = max(parameters["topicAliasMaximum"], 0)
        open_max: int = parameters["receiveMaximum"]
        self._open_max = SIZE_MAX if open_max < 0 else open_max
        self._closes: bool = parameters["closeMqttConnectionOnPublishAuthorizationFailure"]
        # QoS 1 and 2 packets that were not answered to the end.
        self._open_count = len(state.incoming)
        # By topics.
        self._destinations: dict[str, Destination] = {}
        self._types: dict[str, RoutingType | None] = {}
        self._types_version = -1
        self._incoming: _Incoming | None = None

    # --- PUBLISH ------------------------------------------------------------------------------

    def publish(self, packet: Publish, go_on: Callable[[], object]) -> None:
        """Take a PUBLISH; the payload of a streamed one is still to come.

        Args:
            packet: of the client.
            go_on: takes it again, where it has to wait for room.

        Raises:
            MqttError: it ends the connection.
        """
        if packet.properties:
            _check(packet.properties)
        topic = self._topic(packet)
        to = self._destinations.get(topic)
        if to is None:
            check_topic(topic)
        if packet.qos == 2 and packet.packet_id in self._state.incoming:
            log.warning(
                "AMQ834009: packet id %d of %s came again: it is not routed again",
                packet.packet_id,
                self._state.client_id,
            )
            self._refuse(packet, "", None)
            return
        if packet.qos and self._open_count >= self._open_max:
            raise MqttError(
                ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
                f"more than {self._open_max} messages that were not acknowledged",
            )
        if to is None:
            to = self._destination(topic)
        address = to.address
        if not has_room(self._session, address, self._connection, go_on):
            return
        try:
            if address.startswith(OWN_PREFIX):
                raise BrokerError(
                    ErrorCode.SECURITY_EXCEPTION, f"the address {address} is the broker's own"
                )
            self._take(packet, to)
        except (BrokerError, JournalError) as error:
            self._refused(packet, address, error)

    def _topic(self, packet: Publish) -> str:
        alias = packet.properties.get(PropertyId.TOPIC_ALIAS) if packet.properties else None
        if alias is None:
            return packet.topic
        if not 0 < alias <= self._alias_max:
            raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, f"the topic alias {alias}")
        if packet.topic:
            self._aliases[alias] = packet.topic
            return packet.topic
        topic = self._aliases.get(alias)
        if topic is None:
            raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, f"unknown topic alias {alias}")
        return topic

    def _destination(self, topic: str) -> Destination:
        """Give what a topic stands for, which never changes."""
        if len(self._destinations) >= _KNOWN_MAX:
            self._destinations.clear()
        found = self._destinations[topic] = destination_of(
            topic, self._wildcards, self._prefixes, ReasonCode.TOPIC_NAME_INVALID
        )
        return found

    def _take(self, packet: Publish, to: Destination) -> None:
        address, by_prefix = to
        session = self._session
        message = message_of(
            address,
            b"" if packet.is_streamed else packet.payload,
            qos=packet.qos,
            retain=packet.retain,
            properties=packet.properties,
            client_id=self._state.client_id,
            routing_type=self._routing_type(address) if by_prefix is None else by_prefix,
            now_ms=self._clock.now_ms(),
            message_id=0 if packet.is_streamed else session.new_id(),
        )
        if packet.is_streamed:
            made = Message.decode_headers(message.encode_headers())
            session.uploads.begin(made)
            self._incoming = _Incoming(packet, address, made)
            return
        if packet.qos:
            session.prewarm(message)
        if packet.retain:
            self._retained.publish(
                session, message, address, lambda: session.accept(message), self._stored, packet
            )
        else:
            session.accept(message)
            self._answer(packet)
        self._producers.count(session, address, len(packet.payload))

    def _routing_type(self, address: str) -> RoutingType | None:
        version = self._session.administration.version
        if self._types_version != version or len(self._types) >= _KNOWN_MAX:
            self._types.clear()
            self._types_version = version
        if address not in self._types:
            self._types[address] = routing_type_of(self._session, address)
        return self._types[address]

    # --- payloads in parts --------------------------------------------------------------------

    def append(self, part: Part) -> None:
        """Take the next bytes of a payload; nothing where its packet was refused.

        Raises:
            MqttError: it ends the connection.
        """
        incoming = self._incoming
        if incoming is None:
            return
        uploads = self._session.uploads
        if incoming.message is not None:
            try:
                for start in range(0, len(part.data), _CHUNK_SIZE):
                    uploads.append(part.data[start : start + _CHUNK_SIZE])
            except (BrokerError, JournalError) as error:
                uploads.drop()
                incoming.message = None
                self._refused(incoming.packet, incoming.address, error)
            incoming.size += len(part.data)
        if part.is_last:
            self._finish()
        elif incoming.message is not None and not uploads.has_room(self._connection.resume):
            self._connection.hold(_nothing)

    def _finish(self) -> None:
        """Send what has come whole, once it is written."""
        incoming = self._incoming
        assert incoming is not None, "it was begun"
        message, packet = incoming.message, incoming.packet
        if message is None:
            self._incoming = None
            return
        session = self._session
        try:
            if not session.uploads.finish(self._connection.resume):
                self._connection.hold(self._finish)
                return
            self._incoming = None
            size = incoming.size
            if packet.retain:
                self._retained.publish(
                    session,
                    message,
                    incoming.address,
                    lambda: session.uploads.end(size, _durable),
                    self._stored,
                    packet,
                )
            else:
                session.uploads.end(size, _durable)
                self._answer(packet)
            self._producers.count(session, incoming.address, size)
        except (BrokerError, JournalError) as error:
            self._incoming = None
            session.uploads.drop()
            self._refused(packet, incoming.address, error)

    # --- answers ------------------------------------------------------------------------------

    def _answer(self, packet: Publish) -> None:
        """Acknowledge a packet once its message is durable."""
        if packet.qos:
            self._note(packet)
            self._session.context.after(self._acknowledge, packet, ReasonCode.SUCCESS)

    def _note(self, packet: Publish) -> None:
        self._open_count += 1
        if packet.qos == 2:
            self._state.incoming[packet.packet_id] = None

    def _stored(self, error: Exception | None, packet: Publish) -> None:
        """A message that is retained is durable."""
        if packet.qos:
            self._note(packet)
            self._acknowledge(error, packet, ReasonCode.SUCCESS)

    def _acknowledge(self, error: Exception | None, packet: Publish, code: ReasonCode) -> None:
        if error is not None:
            # The storage has failed: the broker stops, and the message may or may not be there.
            return
        is_over = packet.qos == 1 or code >= FAILURE
        if is_over:
            self._open_count -= 1
        kind = PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC
        if code:
            self._connection.write(Acknowledgement(kind, packet.packet_id, code))
        else:
            self._connection.confirm(kind, packet.packet_id)

    def _refuse(self, packet: Publish, address: str, code: ReasonCode | None) -> None:
        """Answer a packet whose message is not routed; None stands for one that came before."""
        if packet.is_streamed and self._incoming is None:
            self._incoming = _Incoming(packet, address, None)
        if not packet.qos:
            return
        if code is None:
            self._session.context.after(self._acknowledge, packet, ReasonCode.SUCCESS)
            return
        self._open_count += 1
        if packet.qos == 2 and code < FAILURE:
            self._state.incoming[packet.packet_id] = None
        self._session.context.after(self._acknowledge, packet, code)

    def _refused(self, packet: Publish, address: str, error: BrokerError | JournalError) -> None:
        code = ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR
        if isinstance(error, BrokerError):
            code = _CODES.get(error.code, ReasonCode.UNSPECIFIED_ERROR)
        log.info("a message of %s to %s: %s", self._state.client_id, address, error)
        if self._version is not Version.V5 and code >= FAILURE:
            is_forbidden = code is ReasonCode.NOT_AUTHORIZED
            if not is_forbidden or (self._closes and self._version is Version.V3_1_1):
                # A client that is told nothing would take it for delivered.
                raise MqttError(code, str(error)) from error
            # There is no other answer than that of success.
            code = ReasonCode.SUCCESS
        self._refuse(packet, address, code)

    # --- PUBREL -------------------------------------------------------------------------------

    def release(self, packet: Acknowledgement) -> None:
        """Take a PUBREL: the packet id is free, and the answer is PUBCOMP."""
        code = ReasonCode.SUCCESS
        if packet.packet_id in self._state.incoming:
            del self._state.incoming[packet.packet_id]
            self._open_count -= 1
        else:
            code = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        answer = Acknowledgement(PacketType.PUBCOMP, packet.packet_id, code)
        self._session.context.after(self._released, answer)

    def _released(self, error: Exception | None, answer: Acknowledgement) -> None:
        if error is None:
            self._connection.write(answer)


def routing_type_of(session: Session, address: str) -> RoutingType | None:
    """Give the routing type of messages to an address: its own, or MULTICAST where it is not there.

    None for the address of management, which has none.
    """
    query = session.administration.query_address(address)
    if query.is_management:
        return None
    if query.address is None or RoutingType.MULTICAST in query.address.routing_types:
        return RoutingType.MULTICAST
    return RoutingType.ANYCAST


def _check(properties: Properties) -> None:
    """See that a client has sent what it may (MQTT-3.3.2-14, MQTT-3.3.4-6)."""
    if PropertyId.SUBSCRIPTION_IDENTIFIER in properties:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "a PUBLISH of a client with an identifier")
    response_topic: str = properties.get(PropertyId.RESPONSE_TOPIC, "")
    if "+" in response_topic or "#" in response_topic:
        raise MqttError(
            ReasonCode.PROTOCOL_ERROR, f"wildcards in the response topic {response_topic[:80]!r}"
        )


def _nothing() -> None:
    """The next part is what the connection goes on with."""


def _durable(error: Exception | None) -> None:
    """Who waits asks the session's context."""
