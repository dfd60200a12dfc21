"""A session's packets: each becomes a call of the session, each call an answer.

    frame ─▶ packet ─▶ session.verb(…, done) ─▶ done(error) ─▶ answer, confirmation (answers.py)

Requests about queues, those of transaction managers and large messages have files of their own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import broker.model.message_bytes as walk
import broker.protocols.core.packed as packed
import broker.protocols.core.packet_message as messages
from broker.errors import BrokerError, ErrorCode, broker_error
from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import PropertyType
from broker.protocols.core import packet_session as sessions
from broker.protocols.core.answers import Answers, refusal_of
from broker.protocols.core.errors import PacketFormatError
from broker.protocols.core.frames import HEADER_SIZE
from broker.protocols.core.large_stream import LargeStream
from broker.protocols.core.packet_connection import (
    NO_CORRELATION,
    DisconnectConsumer,
    PacketsConfirmed,
)
from broker.protocols.core.packets import decode_packet
from broker.protocols.core.queue_requests import QUEUE_REQUESTS
from broker.protocols.core.upload_requests import UploadRequests
from broker.protocols.core.xa_requests import XA_REQUESTS
from broker.records.embedded_messages import EMBEDDED_SIGNATURE, extracted
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.channel import Channel
    from broker.protocols.core.packet import Packet
    from broker.queues.consumer import Consumer
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["SessionChannel"]

log = logging.getLogger("broker")

FORCED_DELIVERY: Final = "_hornetq.forced.delivery.seq"
_SEND_TYPE: Final = messages.Send.types[0][1]
_ACKNOWLEDGE_TYPE: Final = messages.Acknowledge.types[0][1]
_INDIVIDUAL_TYPE: Final = messages.IndividualAcknowledge.types[0][1]
_RECEIVE_TYPE: Final = messages.ReceiveMessage.types[0][1]
_ACKNOWLEDGE_SIZE: Final = 17  # Consumer, message, whether an answer is wanted.
_HEADER_SIZE: Final = HEADER_SIZE
# A message that may have another one inside: where its body is, how it begins, its type.
_BODY_AT: Final = 4
_EMBEDDED_FIRST: Final = EMBEDDED_SIGNATURE[0]
_EMBEDDED: Final = int(MessageType.EMBEDDED)
# Behind a message: whether an answer is wanted, a correlation id, the producer's number.
_NAMED_TAIL_SIZE: Final = 13
# Producers of a session that are counted (MAX_PRODUCER_METRIC_SIZE of Artemis).
_PRODUCERS_MAX: Final = 100
# Why the storage has not taken something.
_NOT_STORED: Final = (ErrorCode.ADDRESS_FULL, ErrorCode.IO_ERROR)
CHUNK_SIZE_DEFAULT: Final = 102400  # minLargeMessageSize
CHUNK_SIZE_MIN, CHUNK_SIZE_MAX = 1024, 1024 * 1024


class SessionChannel:
    """The Core protocol's side of one session.

    Args:
        session: what it works with.
        channel: where frames go.
        on_close: called when the client has closed the session.
        has_metadata: whether another session has this key and value (UniqueAddMetadata).
        chunk_size: bytes of a large message's part at most, as the client asked for.
    """

    def __init__(
        self,
        session: Session,
        channel: Channel,
        on_close: Callable[[SessionChannel], object],
        has_metadata: Callable[[Session, str, str], bool],
        new_producer: Callable[[str | None], Producer],
        chunk_size: int = CHUNK_SIZE_DEFAULT,
    ) -> None:
        self.session = session
        self.channel = channel
        self.on_close = on_close
        self._has_metadata = has_metadata
        self._new_producer = new_producer
        self._chunk_size = min(max(chunk_size, CHUNK_SIZE_MIN), CHUNK_SIZE_MAX)
        self._answers = Answers(channel, session.context, session.name)
        # Made once: every request would make one of them.
        self._on_answered = self._answers.answered
        self._on_unanswered = self._answers.unanswered
        self._uploads = UploadRequests(
            session, channel, self._answers, self.receive, self._producer_by
        )
        self._producers = session.producers
        # Of addresses beyond those that are counted.
        self._uncounted = new_producer(None)
        # An operator has closed the session: what comes now is refused.
        self._is_ended = False

    # --- packets come -------------------------------------------------------------------------

    def receive(self, kind: int, chunk: bytes, start: int, end: int) -> None:
        """Take one frame, whose body is chunk[start:end].

        Raises:
            PacketFormatError: its bytes are not a packet: the connection must be closed.
        """
        if self._is_ended:
            self._receive_late(kind, memoryview(chunk)[start:end])
        elif self._uploads.kept is not None:
            self._uploads.kept.append((kind, chunk[start:end]))
        elif kind == _SEND_TYPE:
            self._receive_send(chunk, start, end)
        elif kind == _ACKNOWLEDGE_TYPE:
            self._receive_acknowledge(chunk, start, end, False)
        elif kind == _INDIVIDUAL_TYPE:
            self._receive_acknowledge(chunk, start, end, True)
        else:
            body = memoryview(chunk)[start:end]
            self._receive_packet(decode_packet(kind, body, self.channel.version), len(body))

    def _receive_send(self, chunk: bytes, start: int, end: int) -> None:
        # As the next one for each message: no packet is made of it, and no view.
        channel, session = self.channel, self.session
        tail_size = messages.send_tail_size(channel.version)
        at = end - tail_size
        if at < start:
            raise PacketFormatError(f"Send: {end - start} bytes, {tail_size} at least wanted")
        wants_answer = chunk[at] != 0
        correlation_id = walk.long_at(chunk, at + 1) if tail_size > 1 else NO_CORRELATION
        message = Message.__new__(Message)
        try:
            message.read(chunk, start, at, session.new_id())
        except RecordFormatError as error:
            raise PacketFormatError(f"Send: {error}") from error
        if chunk[start + _BODY_AT] == _EMBEDDED_FIRST and message.type == _EMBEDDED:
            message = extracted(message)
        elif wants_answer:
            session.prewarm(message)
        try:
            session.accept(message)
        except (BrokerError, JournalError) as error:
            self._answers.refuse_request(
                refusal_of(error), correlation_id, wants_answer=wants_answer
            )
            return
        is_named = tail_size == _NAMED_TAIL_SIZE
        producer = self._producers.get(walk.int_at(chunk, end - 4)) if is_named else None
        if producer is None:
            producer = self._producer_of(message.address)
        producer.sent_count += 1
        producer.sent_bytes += at - start
        producer.last_user_id = message.user_id
        size = _HEADER_SIZE + end - start
        if wants_answer:
            session.context.then(self._on_answered, (size, correlation_id))
        elif channel.window_size != -1:
            session.context.count(self._on_unanswered, (size,))

    def _receive_acknowledge(self, chunk: bytes, start: int, end: int, is_individual: bool) -> None:
        size = end - start
        if size < _ACKNOWLEDGE_SIZE:
            raise PacketFormatError(f"Acknowledge: of {size} bytes")
        consumer_id = walk.long_at(chunk, start)
        message_id = walk.long_at(chunk, start + 8)
        wants_answer = chunk[start + 16] != 0
        session = self.session
        try:
            session.accept_acknowledgement(consumer_id, message_id, is_individual)
        except (BrokerError, JournalError) as error:
            refusal = refusal_of(error)
            self._answers.refuse_request(refusal, None, wants_answer=wants_answer)
            is_lost = session.options.auto_commit_acks and refusal.code in _NOT_STORED
            if is_lost and not wants_answer:
                self._break_off(refusal)
            return
        size += _HEADER_SIZE
        if wants_answer:
            session.context.then(self._on_answered, (size, NO_CORRELATION))
        elif self.channel.window_size != -1:
            session.context.count(self._on_unanswered, (size,))

    def _producer_of(self, address: str | None) -> Producer:
        """Give the producer of an address, where the client did not name it."""
        found = self._producers.get(address)
        if found is not None:
            return found
        # Clients choose addresses: there is an end to what is counted for them.
        if len(self._producers) >= _PRODUCERS_MAX:
            return self._uncounted
        made = self._producers[address] = self._new_producer(address)
        return made

    def _producer_by(self, number: int, address: str | None) -> Producer:
        """Give the producer of a number, where the client has named one, or of an address."""
        return self._producers.get(number) or self._producer_of(address)

    def _receive_late(self, kind: int, body: memoryview) -> None:
        """Refuse what comes for a session that an operator has closed."""
        packet = decode_packet(kind, body, self.channel.version)
        if isinstance(packet, sessions.Close):
            self.session.context.after(self._closed)
        elif isinstance(packet, sessions.RequestProducerCredits):
            # A client that waits for them sends, and is told then.
            self.channel.send(sessions.ProducerCredits(packet.credits, packet.address))
        elif not isinstance(packet, PacketsConfirmed):
            text = f"session {self.session.name} was closed by an operator"
            self._answers.refuse(BrokerError(ErrorCode.OBJECT_CLOSED, text), packet)

    def end(self) -> None:
        """Close the session, as an operator wants it, and tell the client of its consumers."""
        self._is_ended = True
        consumers = list(self.session.consumers)
        self.session.close(has_failed=True)
        for consumer_id in consumers:
            self.channel.send(DisconnectConsumer(consumer_id))

    def _break_off(self, error: BrokerError) -> None:
        """Close the connection of a client that wants no answer and believes that it acknowledged.

        It finds out at once, and what it acknowledged is delivered again.
        """
        log.error("%s: connection closed, an acknowledgement is lost: %s", self.session.name, error)
        connection = self.channel.connection
        if connection is not None:
            connection.abort()

    def _receive_packet(self, packet: Packet, body_size: int) -> None:
        handler = _HANDLERS.get(type(packet))
        if handler is None:
            self._answers.refuse(
                BrokerError(ErrorCode.UNSUPPORTED_PACKET, f"a session knows no {packet!r}")
            )
            return
        try:
            handler(self, packet, HEADER_SIZE + body_size)
        except (BrokerError, JournalError) as error:
            self._answers.refuse(refusal_of(error), packet)

    def settle(self) -> None:
        """Block until no body is being written: the session is taken up on a new connection."""
        self._uploads.settle()

    # --- messages to the client ---------------------------------------------------------------

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write a message for a consumer; bytes of its frame."""
        if message.is_large:
            return self._deliver_large(consumer, message, delivery_count)
        channel = self.channel
        data = message.encode()
        frame = packed.received(
            _RECEIVE_TYPE, channel.channel_id, data, consumer.consumer_id, delivery_count
        )
        channel.send_frame(frame, True)
        return len(frame)

    def _deliver_large(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        body = message.large
        assert body is not None, "a large message has one"
        stream = LargeStream(self.channel, consumer, body, self._chunk_size)
        consumer.begin_stream(stream)
        return self.channel.send(
            messages.ReceiveLargeMessage(message, consumer.consumer_id, delivery_count, body.size)
        )

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed a consumer."""
        self.session.disconnected(consumer)
        self.channel.send(DisconnectConsumer(consumer.consumer_id))

    def pause(self) -> None:
        """The peer does not read."""
        for consumer in self.session.consumers.values():
            consumer.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        for consumer in list(self.session.consumers.values()):
            consumer.go_on()

    # --- the packets of packet_message and packet_session ---------------------------------------

    def _send_large(self, packet: messages.SendLarge, size: int) -> None:
        self._uploads.begin(packet, size)

    def _send_continuation(self, packet: messages.SendContinuation, size: int) -> None:
        self._uploads.append(packet, size)

    def _create_consumer(self, packet: sessions.CreateConsumer, size: int) -> None:
        session = self.session
        consumer = session.create_consumer(
            packet.consumer_id,
            packet.queue,
            self,
            filter_text=packet.filter,
            is_browser=packet.browse_only,
            priority=packet.priority,
        )
        if sessions.BRIDGE in session.metadata:
            consumer.counted_delivery = 0
        if not self.channel.is_writable:
            consumer.pause()
        if packet.requires_response:
            self._answers.answer(
                size, QUEUE_REQUESTS.describe(session.administration.query_queue(packet.queue))
            )
        else:
            self._answers.silently(size)

    def _close_consumer(self, packet: sessions.CloseConsumer, size: int) -> None:
        self.session.close_consumer(packet.consumer_id)
        self._answers.answer(size)

    def _credits(self, packet: sessions.ConsumerCredits, size: int) -> None:
        consumer = self.session.consumers.get(packet.consumer_id)
        # It may have been closed by the broker just now.
        if consumer is not None:
            consumer.receive_credits(packet.credits)
        self._answers.silently(size)

    def _force_delivery(self, packet: sessions.ForceDelivery, size: int) -> None:
        consumer = self.session.consumers.get(packet.consumer_id)
        if consumer is not None:
            consumer.queue.prompt(consumer)
            marker = Message(consumer.queue.name)
            marker.set(FORCED_DELIVERY, PropertyType.LONG, packet.sequence)
            # Behind what is on its way into the queue by this session.
            self.session.context.after(self._send_marker, consumer, marker)
        self._answers.silently(size)

    def _send_marker(self, error: Exception | None, consumer: Consumer, marker: Message) -> None:
        if error is None and not consumer.is_closed:
            consumer.queue.prompt(consumer)
            # What is on its way from pages comes before it.
            if not consumer.after_read(lambda: self._send_marker(None, consumer, marker)):
                self.channel.send(messages.ReceiveMessage(marker, consumer.consumer_id, 0))

    def _expired(self, packet: sessions.Expired, size: int) -> None:
        self.session.settlement.expire(packet.consumer_id, packet.message_id)
        self._answers.silently(size)

    def _commit(self, packet: sessions.Commit, size: int) -> None:
        self.session.commit(self._on_answered, size, packet.correlation_id)

    def _rollback(self, packet: sessions.Rollback, size: int) -> None:
        self.session.rollback(
            self._on_answered,
            size,
            NO_CORRELATION,
            considers_last_delivered=packet.consider_last_message_as_delivered,
        )

    def _start(self, packet: sessions.Start, size: int) -> None:
        self.session.start()
        self._answers.silently(size)

    def _stop(self, packet: sessions.Stop, size: int) -> None:
        self.session.stop()
        self._answers.answer(size)

    def _close(self, packet: sessions.Close, size: int) -> None:
        self.session.close(has_failed=False)
        self.session.context.after(self._closed)

    def _closed(self, error: Exception | None) -> None:
        self.channel.flush_confirmation()
        if error is not None:
            self._answers.send_failure(error)
        else:
            self._answers.send_null()
        self.on_close(self)

    def _request_credits(self, packet: sessions.RequestProducerCredits, size: int) -> None:
        def grant(is_failing: bool) -> None:
            kind = sessions.ProducerFailCredits if is_failing else sessions.ProducerCredits
            self.channel.send(kind(packet.credits, packet.address))

        self.session.request_credits(packet.address, grant)
        self._answers.silently(size)

    def _add_metadata(
        self,
        packet: sessions.AddMetadata | sessions.AddMetadata2 | sessions.UniqueAddMetadata,
        size: int,
    ) -> None:
        if isinstance(packet, sessions.UniqueAddMetadata) and self._has_metadata(
            self.session, packet.key, packet.data
        ):
            raise broker_error(
                "duplicate_metadata", f"Metadata {packet.key}={packet.data} had been set already"
            )
        self.session.metadata[packet.key] = packet.data
        if isinstance(packet, sessions.AddMetadata):
            # It counts for no window.
            self.session.context.after(self._answer_uncounted)
        elif packet.requires_confirmation:
            self._answers.answer(size)

    def _answer_uncounted(self, error: Exception | None) -> None:
        self._answers.send_null()

    def _create_producer(self, packet: sessions.CreateProducer, size: int) -> None:
        if len(self._producers) < _PRODUCERS_MAX:
            self._producers.setdefault(packet.producer_id, self._new_producer(packet.address))
        self._answers.silently(size)

    def _remove_producer(self, packet: sessions.RemoveProducer, size: int) -> None:
        self._producers.pop(packet.producer_id, None)
        self._answers.silently(size)

    def _confirmed(self, packet: PacketsConfirmed, size: int) -> None:
        self.channel.confirmed(packet.command_id)

    def _queue_request(self, packet: Packet, size: int) -> None:
        QUEUE_REQUESTS.handle(self.session, self._answers, packet, size)

    def _xa_request(self, packet: Packet, size: int) -> None:
        XA_REQUESTS.handle(self.session, self._answers, packet, size)


_HANDLERS: Final[dict[type[Packet], Callable[..., None]]] = {
    messages.SendLarge: SessionChannel._send_large,
    messages.SendContinuation: SessionChannel._send_continuation,
    sessions.CreateConsumer: SessionChannel._create_consumer,
    sessions.CloseConsumer: SessionChannel._close_consumer,
    sessions.ConsumerCredits: SessionChannel._credits,
    sessions.ForceDelivery: SessionChannel._force_delivery,
    sessions.Expired: SessionChannel._expired,
    sessions.Commit: SessionChannel._commit,
    sessions.Rollback: SessionChannel._rollback,
    sessions.Start: SessionChannel._start,
    sessions.Stop: SessionChannel._stop,
    sessions.Close: SessionChannel._close,
    sessions.RequestProducerCredits: SessionChannel._request_credits,
    sessions.AddMetadata: SessionChannel._add_metadata,
    sessions.AddMetadata2: SessionChannel._add_metadata,
    sessions.UniqueAddMetadata: SessionChannel._add_metadata,
    sessions.CreateProducer: SessionChannel._create_producer,
    sessions.RemoveProducer: SessionChannel._remove_producer,
    PacketsConfirmed: SessionChannel._confirmed,
    **dict.fromkeys(QUEUE_REQUESTS.kinds, SessionChannel._queue_request),
    **dict.fromkeys(XA_REQUESTS.kinds, SessionChannel._xa_request),
}
