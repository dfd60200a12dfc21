"""Messages on their way to a client: what consumers are given becomes PUBLISH packets.

    QoS 0    acknowledged in its queue once it is handed to the socket
    QoS 1    by PUBACK
    QoS 2    by PUBREC; then PUBREL is sent until PUBCOMP comes

As many of QoS 1 and 2 may be on their way as the client's Receive Maximum says: consumers pause
then. A large payload is written piece by piece as the socket takes it, and all consumers of the
connection are paused meanwhile: their packets would stand in its middle.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.large_body import LARGE_COMPRESSED
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.body_stream import BodyStream
from broker.protocols.mqtt import message_properties as names
from broker.protocols.mqtt.encoding import encode, publish_head, publish_parts
from broker.protocols.mqtt.message_packet import is_text, properties_of
from broker.protocols.mqtt.packets import Acknowledgement, PacketType, Version
from broker.protocols.mqtt.properties import NO_PROPERTIES, PropertyId
from broker.protocols.mqtt.reason_codes import FAILURE, ReasonCode
from broker.protocols.mqtt.session_states import RELEASE_PREFIX
from broker.protocols.mqtt.topics import topic_of
from broker.queues.consumer_ports import Pause
from broker.settings.queue_defaults import QueueRequest
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.environment import Clock
    from broker.ports import Timers
    from broker.protocols.mqtt.agreement import Agreement
    from broker.protocols.mqtt.outgoing_message import OutgoingMessage, OutgoingMessages
    from broker.protocols.mqtt.session_state import Outgoing, SessionState, Subscribed
    from broker.protocols.mqtt.subscriptions import Active, Subscriptions
    from broker.protocols.output import Output
    from broker.protocols.peer import Peer
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["Deliveries"]

log = logging.getLogger("broker")

# Of a PUBLISH: its first byte, and its packet id.
_FLAGS_SIZE: Final = 1
_ID_SIZE: Final = 2


class Deliveries:
    """Implements `queues.consumer_ports.Sink` for all consumers of a connection.

    Args:
        session: of the client.
        state: of the client.
        agreement: what the client and the broker agreed on.
        messages: what messages are for all of their subscribers.
        peer: the socket.
        output: takes packets.
        timers: of the event loop.
        clock: says how long a message has to live.
        on_ended: called with why, where a consumer has ended that the client did not end.

    Attributes:
        subscriptions: of the connection. Set once, before any is made.
    """

    __slots__ = (
        "_alias_max",
        "_aliases",
        "_clock",
        "_is_full",
        "_messages",
        "_on_ended",
        "_open_max",
        "_output",
        "_peer",
        "_session",
        "_size_max",
        "_state",
        "_stream",
        "_timers",
        "_version",
        "_wildcards",
        "subscriptions",
    )

    subscriptions: Subscriptions

    def __init__(
        self,
        session: Session,
        state: SessionState,
        agreement: Agreement,
        messages: OutgoingMessages,
        peer: Peer,
        output: Output,
        timers: Timers,
        clock: Clock,
        on_ended: Callable[[str], object],
    ) -> None:
        self._session = session
        self._state = state
        self._messages = messages
        self._version = agreement.version
        self._open_max = agreement.receive_maximum
        self._size_max = agreement.packet_size_max
        self._alias_max = agreement.alias_maximum
        self._aliases: dict[str, int] = {}
        self._peer = peer
        self._output = output
        self._timers = timers
        self._clock = clock
        self._on_ended = on_ended
        self._wildcards = session.wildcards
        self._stream: BodyStream | None = None
        # As many are on their way as the client takes.
        self._is_full = False

    # --- what consumers are given -------------------------------------------------------------

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write a message for a consumer; bytes of its packet."""
        active = self.subscriptions.by_consumer[consumer.consumer_id]
        filter = active.subscribed.filter
        if filter.no_local and message.get(names.CLIENT_ID) == self._state.client_id:
            self._acknowledge(consumer, message.message_id)
            return 0
        left = self._state.qos_left(active.subscribed.queue, message.message_id)
        made = self._messages.of(message)
        qos = left or min(made.qos, filter.qos)
        if message.large is not None:
            return self._deliver_large(active, message, made, qos, delivery_count)
        payload = made.payload
        head = self._head(active, message, made, qos, delivery_count, len(payload))
        if head is None:
            self._acknowledge(consumer, message.message_id)
            return 0
        self._output.write(head + payload)
        if not qos:
            self._acknowledge(consumer, message.message_id)
        return len(head) + len(payload)

    def _head(
        self,
        active: Active,
        message: Message,
        made: OutgoingMessage,
        qos: int,
        delivery_count: int,
        size: int,
    ) -> bytes | None:
        """Give a PUBLISH before its payload, with a packet id; None where it is too large."""
        subscribed = active.subscribed
        retain = self._is_retained(active, made)
        new_alias: str | None = None
        try:
            if self._is_as_for_all(subscribed, made):
                parts = made.parts(message, self._wildcards, qos, self._version)
            else:
                parts, new_alias = self._own_parts(subscribed, message, qos, size)
            before, behind = parts
            size += _FLAGS_SIZE + len(before) + (_ID_SIZE if qos else 0) + len(behind)
            is_too_large = size > self._size_max
        except ValueError:
            is_too_large = True
        if is_too_large:
            log.warning(
                "message %d is too large for MQTT client %s: dropped",
                message.message_id,
                self._state.client_id,
            )
            return None
        if new_alias is not None:
            self._aliases[new_alias] = len(self._aliases) + 1
        if not qos:
            return publish_head(parts, qos, retain, False, 0)
        packet_id, is_left = self._state.begin(
            subscribed.queue, message.message_id, active.consumer.consumer_id, qos
        )
        is_dup = is_left or (delivery_count > 1 and subscribed.share is None)
        if self._state.in_flight >= self._open_max:
            self._is_full = True
            self._refresh()
        return publish_head(parts, qos, retain, is_dup, packet_id)

    def _is_as_for_all(self, subscribed: Subscribed, made: OutgoingMessage) -> bool:
        """Whether this subscription gets the same bytes as others, but for flags and packet id."""
        if made.is_large:
            return False
        if self._version is not Version.V5:
            return True
        return not (made.expires or self._alias_max or subscribed.identifier is not None)

    def _own_parts(
        self, subscribed: Subscribed, message: Message, qos: int, size: int
    ) -> tuple[tuple[bytes, bytes], str | None]:
        """Give the parts for one subscription, and the topic that gets an alias by it."""
        topic = topic_of(message.address or "", self._wildcards)
        if self._version is not Version.V5:
            return publish_parts(topic, qos, NO_PROPERTIES, self._version, size), None
        properties = properties_of(message, self._clock.now_ms(), subscribed.identifier)
        text, new = topic, None
        alias = self._aliases.get(topic, 0)
        if alias:
            text = ""
        elif len(self._aliases) < self._alias_max:
            alias, new = len(self._aliases) + 1, topic
        if alias:
            properties = {**properties, PropertyId.TOPIC_ALIAS: alias}
        return publish_parts(text, qos, properties, self._version, size), new

    def _is_retained(self, active: Active, made: OutgoingMessage) -> bool:
        if not made.is_retained:
            return False
        if self._version is Version.V5 and active.subscribed.filter.retain_as_published:
            return True
        return made.is_initial

    def _acknowledge(self, consumer: Consumer, message_id: int) -> None:
        """Nothing more is to come of the client for a message."""
        if consumer.is_closed:
            return
        try:
            self._session.accept_acknowledgement(consumer.consumer_id, message_id, True)
        except (BrokerError, JournalError) as error:
            # Behind this turn of the queue, which is in the middle of giving messages.
            consumer.pause()
            self._timers.call_soon(self._on_ended, f"a message cannot be acknowledged: {error}")

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed a consumer: its queue is gone."""
        self._session.disconnected(consumer)
        if self.subscriptions.forget(consumer) is not None:
            self._on_ended(f"the queue {consumer.queue.name} is gone")

    # --- large messages -----------------------------------------------------------------------

    def _deliver_large(
        self,
        active: Active,
        message: Message,
        outgoing: OutgoingMessage,
        qos: int,
        delivery_count: int,
    ) -> int:
        body = message.large
        assert body is not None, "it is a large message"
        consumer, message_id = active.consumer, message.message_id
        is_over = not qos

        def head(size: int, _: bool) -> bytes | None:
            nonlocal is_over
            made = self._head(active, message, outgoing, qos, delivery_count, size)
            is_over = is_over or made is None
            return made

        def end() -> None:
            self._stream = None
            if is_over:
                self._acknowledge(consumer, message_id)
            self._refresh()

        self._stream = BodyStream(
            self._peer,
            self._output,
            body,
            head,
            end,
            is_text=is_text(message),
            is_compressed=message.get(LARGE_COMPRESSED) is True,
        )
        self._refresh()
        # Behind this turn of the queue.
        self._timers.call_soon(self._stream.go_on)
        return body.size

    # --- what the client acknowledges ---------------------------------------------------------

    def acknowledged(self, packet: Acknowledgement) -> None:
        """Take a PUBACK; an unknown packet id is left alone."""
        found = self._state.outgoing.get(packet.packet_id)
        if found is not None and found.qos == 1 and found.consumer_id:
            self._end(found)

    def received(self, packet: Acknowledgement) -> None:
        """Take a PUBREC: the message is the client's, and PUBREL follows once that is durable.

        Raises:
            BrokerError: it cannot be recorded.
            JournalError: likewise.
        """
        found = self._state.outgoing.get(packet.packet_id)
        if found is None or found.qos != 2:
            self._send_release(None, packet.packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
        elif packet.code >= FAILURE and not found.is_released:
            self._end(found)
        elif found.is_released:
            self._send_release(None, packet.packet_id, ReasonCode.SUCCESS)
        elif found.consumer_id:
            self._release(found)
        # Else it is about an earlier connection: the message comes again, under the same id.

    def _end(self, found: Outgoing) -> None:
        del self._state.outgoing[found.packet_id]
        self._settle(found)
        self._has_left()

    def _settle(self, found: Outgoing) -> None:
        consumer = self._session.consumers.get(found.consumer_id)
        # Without one, its subscription has ended meanwhile.
        if consumer is not None:
            self._session.accept_acknowledgement(found.consumer_id, found.message_id, True)

    def _release(self, found: Outgoing) -> None:
        session, state = self._session, self._state
        packet_id = found.packet_id
        if not state.is_kept:
            self._settle(found)
            found.is_released = True
            session.context.after(self._send_release, packet_id, ReasonCode.SUCCESS)
            return
        own, queue = session.own_queues, f"{RELEASE_PREFIX}{state.client_id}"
        own.make(QueueRequest(name=queue, address=queue, routing_type=RoutingType.ANYCAST))
        message = _release_message(queue, packet_id, state.client_id, session.new_id())
        with session.transactions.together(self._send_release, packet_id, ReasonCode.SUCCESS):
            own.put(message, queue)
            self._settle(found)
        found.is_released = True

    def _send_release(self, error: Exception | None, packet_id: int, code: ReasonCode) -> None:
        if error is None:
            packet = Acknowledgement(PacketType.PUBREL, packet_id, code)
            self._output.write(encode(packet, self._version))

    def completed(self, packet: Acknowledgement) -> None:
        """Take a PUBCOMP: the packet id is free.

        Raises:
            BrokerError: it cannot be recorded.
            JournalError: likewise.
        """
        packet_id = packet.packet_id
        found = self._state.outgoing.get(packet_id)
        if found is None or not found.is_released:
            return
        del self._state.outgoing[packet_id]
        queue = f"{RELEASE_PREFIX}{self._state.client_id}"
        self._session.own_queues.remove(
            queue, lambda one: one.get(names.PACKET_ID) == packet_id, most=1
        )
        self._has_left()

    def release_again(self) -> None:
        """Send the PUBRELs that had no answer on an earlier connection."""
        for packet_id in self._state.released():
            self._send_release(None, packet_id, ReasonCode.SUCCESS)

    def _has_left(self) -> None:
        """The client has room for one more message."""
        if self._is_full and self._state.in_flight < self._open_max:
            self._is_full = False
            self._refresh()

    # --- the socket ---------------------------------------------------------------------------

    @property
    def pause_cause(self) -> Pause | None:
        """Why a consumer has to wait; None where it has not."""
        if self._stream is not None:
            return Pause.LARGE_MESSAGE
        if self._is_full:
            return Pause.WINDOW
        return Pause.CONNECTION if self._peer.is_paused else None

    def pause(self) -> None:
        """The peer does not read."""
        self._refresh()

    def go_on(self) -> None:
        """The peer reads again."""
        if self._stream is not None:
            self._stream.go_on()
        else:
            self._refresh()

    def _refresh(self) -> None:
        """Let all consumers wait, or go on."""
        cause = self.pause_cause
        for consumer in self.subscriptions.consumers():
            if cause is None:
                consumer.go_on()
            else:
                consumer.pause(cause)

    def close(self) -> None:
        """The connection is gone."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


def _release_message(queue: str, packet_id: int, client_id: str, message_id: int) -> Message:
    """Give the message that stands for a PUBREL without an answer, as Artemis writes it."""
    return Message(
        queue,
        b"",
        type=MessageType.BYTES,
        durable=True,
        priority=0,
        message_id=message_id,
        properties=[
            Property(names.PACKET_ID, PropertyType.INT, packet_id),
            Property(names.PACKET_TYPE, PropertyType.INT, int(PacketType.PUBREL)),
            Property(names.QOS, PropertyType.INT, 1),
            Property(names.IS_RETAINED, PropertyType.BOOLEAN, False),
            Property(names.CLIENT_ID, PropertyType.STRING, client_id),
        ],
    )
