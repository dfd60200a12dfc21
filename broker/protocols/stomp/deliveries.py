"""Messages on their way to a client: what consumers are given becomes MESSAGE frames.

A large body is written piece by piece as the socket takes it. Meanwhile all consumers of the
connection are paused: their frames would stand in its middle.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.model.large_body import LARGE_COMPRESSED
from broker.protocols.body_stream import BodyStream
from broker.protocols.large_content import unpacked
from broker.protocols.stomp.message_frame import body_of, is_text, message_head
from broker.queues.consumer_ports import Pause
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.ports import Timers
    from broker.protocols.output import Output
    from broker.protocols.peer import Peer
    from broker.protocols.stomp.subscriptions import Subscription, Subscriptions
    from broker.protocols.stomp.versions import Version
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["Deliveries"]

log = logging.getLogger("broker")


class Deliveries:
    """Implements `queues.consumer_ports.Sink` for all consumers of a connection.

    Args:
        session: of the connection.
        peer: the socket.
        output: takes frames.
        timers: of the event loop.
        version: of the frames.
        on_ended: called with a subscription that the broker has ended, and why.

    Attributes:
        subscriptions: of the connection. Set once, before any is made.
    """

    __slots__ = (
        "_on_ended",
        "_output",
        "_peer",
        "_session",
        "_stream",
        "_timers",
        "_version",
        "subscriptions",
    )

    subscriptions: Subscriptions

    def __init__(
        self,
        session: Session,
        peer: Peer,
        output: Output,
        timers: Timers,
        version: Version,
        on_ended: Callable[[Subscription, str], object],
    ) -> None:
        self._session = session
        self._peer = peer
        self._output = output
        self._timers = timers
        self._version = version
        self._on_ended = on_ended
        self._stream: BodyStream | None = None

    # --- what consumers are given -------------------------------------------------------------

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write a message for a consumer; bytes of its frame."""
        subscription = self.subscriptions.of(consumer)
        assert subscription is not None, "a consumer ends before its subscription"
        message_id = f"{consumer.consumer_id},{message.message_id}"
        if message.large is not None:
            return self._deliver_large(subscription, message, message_id, delivery_count)
        body, is_binary = body_of(message, unpacked(message))
        head = message_head(
            message,
            message_id,
            subscription.id,
            delivery_count,
            self._version,
            body_size=len(body),
            is_text=not is_binary,
            wants_ack=not subscription.is_auto,
        )
        frame = b"%b%b\0\n" % (head, body)
        self._output.write(frame)
        if subscription.is_auto:
            self._acknowledge(subscription, message.message_id)
        else:
            subscription.open[message.message_id] = len(frame)
        return len(frame)

    def _acknowledge(self, subscription: Subscription, message_id: int) -> None:
        """The frame is handed to the socket: the client has the message, by mode auto."""
        consumer = subscription.consumer
        if consumer.is_closed:
            return
        try:
            self._session.accept_acknowledgement(consumer.consumer_id, message_id, True)
        except (BrokerError, JournalError) as error:
            # Behind this turn of the queue, which is in the middle of giving messages.
            consumer.pause()
            self._timers.call_soon(self._end, subscription, str(error))

    def _end(self, subscription: Subscription, why: str) -> None:
        consumer = subscription.consumer
        if not consumer.is_closed:
            self.subscriptions.forget(subscription)
            self._session.close_consumer(consumer.consumer_id, has_failed=True)
            self._on_ended(subscription, f"a message cannot be acknowledged: {why}")

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed a consumer: its queue is gone."""
        self._session.disconnected(consumer)
        subscription = self.subscriptions.of(consumer)
        if subscription is not None:
            self.subscriptions.forget(subscription)
            self._on_ended(subscription, f"the queue {consumer.queue.name} is gone")

    # --- large messages -----------------------------------------------------------------------

    def _deliver_large(
        self, subscription: Subscription, message: Message, message_id: str, delivery_count: int
    ) -> int:
        body = message.large
        assert body is not None, "it is a large message"

        def head(size: int, is_text: bool) -> bytes:
            return message_head(
                message,
                message_id,
                subscription.id,
                delivery_count,
                self._version,
                body_size=size,
                is_text=is_text,
                wants_ack=not subscription.is_auto,
            )

        # Before it is known what it becomes: what is charged is what an ACK gives back.
        size = body.size + len(head(body.size, False))
        if not subscription.is_auto:
            subscription.open[message.message_id] = size
        self._stream = BodyStream(
            self._peer,
            self._output,
            body,
            head,
            lambda: self._streamed(subscription, message.message_id),
            is_text=is_text(message),
            is_compressed=message.get(LARGE_COMPRESSED) is True,
            tail=b"\0\n",
        )
        self._refresh()
        # Behind this turn of the queue.
        self._timers.call_soon(self._stream.go_on)
        return size

    def _streamed(self, subscription: Subscription, message_id: int) -> None:
        self._stream = None
        if subscription.is_auto:
            self._acknowledge(subscription, message_id)
        self._refresh()

    # --- the socket ---------------------------------------------------------------------------

    @property
    def pause_cause(self) -> Pause | None:
        """Why a consumer has to wait; None where it has not."""
        if self._stream is not None:
            return Pause.LARGE_MESSAGE
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
