"""Messages on their way to a client: what its consumers are given becomes MessageDispatch.

A frame of OpenWire has its whole message. So a large body is read into memory first, piece by
piece; its consumer takes nothing else meanwhile, and others go on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.model.encoding import RecordFormatError
from broker.model.large_body import LARGE_COMPRESSED
from broker.protocols.large_content import LargeContent, unpacked
from broker.protocols.openwire.commands import MessageDispatch
from broker.protocols.openwire.consumers import Delivery
from broker.protocols.openwire.delivered_message import delivered_message, message_id_of
from broker.protocols.openwire.property_names import CLIENT_ID
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.environment import Clock
    from broker.model.message import Message
    from broker.protocols.openwire.consumers import Part
    from broker.protocols.openwire.identifiers import MessageId
    from broker.queues.consumer import Consumer

__all__ = ["DeliveringConnection", "LargeDelivery", "PartSink"]

log = logging.getLogger("broker")


class DeliveringConnection(Protocol):
    """What deliveries need of their connection."""

    node_id: str
    clock: Clock
    remote: str
    hides_client_id: bool
    """A consumer with no-local was made: what it is known by is shown to none."""

    def send(self, command: MessageDispatch) -> None:
        """Write a command."""

    def abort(self) -> None:
        """End the connection at once."""

    def queue_gone(self, part: Part) -> None:
        """The broker has closed a consumer: its queue is gone."""


class PartSink:
    """Implements `queues.consumer_ports.Sink` for one part of a consumer.

    Args:
        connection: of the client.
        part: that is delivered to.
    """

    __slots__ = ("_connection", "_part")

    def __init__(self, connection: DeliveringConnection, part: Part) -> None:
        self._connection = connection
        self._part = part

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write a message for a consumer; bytes of its body."""
        connection, part = self._connection, self._part
        owner = part.owner
        number = owner.next_number
        owner.next_number = number + 1
        message_id = message_id_of(message, connection.node_id, number)
        part.open[number] = Delivery(message.message_id, str(message_id))
        redeliveries = delivery_count if consumer.is_browser else delivery_count - 1
        if message.large is None:
            body = unpacked(message)
            self.write(message, message_id, body, redeliveries)
            return len(body)

        def whole(body: bytes) -> None:
            self.write(message, message_id, body, redeliveries)

        consumer.begin_stream(LargeDelivery(connection, consumer, message, whole))
        return message.large.size

    def write(
        self, message: Message, message_id: MessageId, body: bytes, redeliveries: int
    ) -> None:
        """Write a message whose body is there."""
        connection, part = self._connection, self._part
        destination = part.destination_of(message.address or "")
        made = delivered_message(
            message,
            body,
            destination,
            message_id,
            redeliveries=max(0, redeliveries),
            now_ms=connection.clock.now_ms(),
            hides_client_id=connection.hides_client_id and message.get(CLIENT_ID) is not None,
        )
        dispatch = MessageDispatch(
            consumer_id=part.owner.info.consumer_id,
            destination=destination,
            message=made,
            redelivery_counter=made.redelivery_counter,
        )
        connection.send(dispatch)

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed the consumer: its queue is gone."""
        self._part.owner.session.disconnected(consumer)
        self._connection.queue_gone(self._part)


class LargeDelivery:
    """Implements `queues.consumer.Stream`: a large body on its way into memory.

    Args:
        connection: of the client.
        consumer: that it is for.
        message: with a large body.
        whole: takes the body.
    """

    __slots__ = ("_connection", "_consumer", "_content", "_large", "_parts", "_whole")

    def __init__(
        self,
        connection: DeliveringConnection,
        consumer: Consumer,
        message: Message,
        whole: Callable[[bytes], object],
    ) -> None:
        large = message.large
        assert large is not None, "it has one"
        self._connection = connection
        self._consumer = consumer
        self._large = large
        self._whole = whole
        self._parts: list[bytes] = []
        is_compressed = message.get(LARGE_COMPRESSED) is True
        self._content: LargeContent | None = LargeContent(
            large, is_text=False, is_compressed=is_compressed
        )
        large.hold()

    def go_on(self) -> None:
        """Read what can be read now; write the message behind the last piece."""
        content = self._content
        if content is None:
            return
        try:
            while not content.is_at_end:
                if not content.is_ready(self.go_on):
                    return
                self._parts.append(content.next())
        except (JournalIOError, RecordFormatError) as error:
            log.error(
                "a large message for %s cannot be read, the connection is closed: %s",
                self._connection.remote,
                error,
            )
            self._connection.abort()
            return
        try:
            self._whole(b"".join(self._parts))
        except Exception:
            # What it holds cannot be told in this protocol; that must not end the broker.
            log.exception(
                "a large message for %s: the connection is closed", self._connection.remote
            )
            self._connection.abort()
            return
        self._consumer.end_stream()

    def close(self) -> None:
        """Read no more, and release the body. Idempotent."""
        content, self._content = self._content, None
        self._parts.clear()
        if content is not None:
            self._large.release()
