"""A large message's body on its way to a consumer, part by part as credits and the socket allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocols.core.packet_message import ReceiveContinuation

if TYPE_CHECKING:
    from broker.consumer import Consumer
    from broker.message import LargeBody
    from broker.protocols.core.channel import Channel

__all__ = ["LargeStream"]


class LargeStream:
    """See the module's text.

    Args:
        channel: where the parts go.
        consumer: who gets them, and pays for each.
        body: what is sent.
        chunk_size: bytes of a part at most.
    """

    __slots__ = ("_body", "_channel", "_chunk_size", "_consumer", "_is_going_on", "_offset")

    def __init__(
        self, channel: Channel, consumer: Consumer, body: LargeBody, chunk_size: int
    ) -> None:
        self._channel = channel
        self._consumer = consumer
        self._body = body
        self._chunk_size = chunk_size
        self._offset = 0
        self._is_going_on = False

    def go_on(self) -> None:
        """Write what may be written now; behind the last part the consumer is free again.

        Raises:
            JournalIOError: the body cannot be read: the connection is closed, and the message
                delivered again.
        """
        if self._is_going_on:
            return
        self._is_going_on = True
        try:
            consumer = self._consumer
            while consumer.stream is self and consumer.can_stream:
                chunk = self._body.read(self._offset, self._chunk_size)
                self._offset += len(chunk)
                continues = self._offset < self._body.size and bool(chunk)
                size = self._channel.send(
                    ReceiveContinuation(chunk, continues, consumer.consumer_id)
                )
                consumer.charge(size)
                if not continues:
                    consumer.end_stream()
        finally:
            self._is_going_on = False

    def close(self) -> None:
        """Give up what reading took."""
        self._body.close()
