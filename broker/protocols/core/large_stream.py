"""A large message's body on its way to a consumer, part by part as credits and the socket allow."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.protocols.core.packet_message import ReceiveContinuation
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from broker.model.large_body import LargeBody
    from broker.protocols.core.channel import Channel
    from broker.queues.consumer import Consumer

__all__ = ["LargeStream"]

log = logging.getLogger("broker")


class LargeStream:
    """See the module's text.

    Args:
        channel: where the parts go.
        consumer: who gets them, and pays for each.
        body: what is sent.
        chunk_size: bytes of a part at most.
    """

    __slots__ = (
        "_body",
        "_channel",
        "_chunk_size",
        "_consumer",
        "_is_going_on",
        "_is_held",
        "_offset",
    )

    def __init__(
        self, channel: Channel, consumer: Consumer, body: LargeBody, chunk_size: int
    ) -> None:
        self._channel = channel
        self._consumer = consumer
        self._body = body
        self._chunk_size = chunk_size
        self._offset = 0
        self._is_going_on = False
        self._is_held = False
        try:
            # A client may acknowledge the message before its body has come: that deletes it.
            body.hold()
            self._is_held = True
        except JournalIOError:
            log.debug("a large message cannot be opened: the first read says so", exc_info=True)

    def go_on(self) -> None:
        """Write what may be written now; behind the last part the consumer is free again.

        A body that cannot be read, or is shorter than it should be, closes this connection and ends
        the session: what was begun has no other end. The message is delivered again, until it was
        so too often.
        """
        if self._is_going_on:
            return
        self._is_going_on = True
        try:
            consumer = self._consumer
            while consumer.stream is self and consumer.can_stream:
                if not self._body.is_ready(self._offset, self._chunk_size, self.go_on):
                    return
                chunk = self._read()
                if chunk is None:
                    return
                self._offset += len(chunk)
                continues = self._offset < self._body.size
                size = self._channel.send(
                    ReceiveContinuation(chunk, continues, consumer.consumer_id)
                )
                consumer.charge(size)
                if not continues:
                    consumer.end_stream()
        finally:
            self._is_going_on = False

    def _read(self) -> bytes | None:
        """Give the next part; None, and the connection is closed, where there is none."""
        try:
            chunk = self._body.read(self._offset, self._chunk_size)
        except JournalIOError as error:
            problem = str(error)
        else:
            if chunk or self._offset == self._body.size:
                return chunk
            problem = f"its body ends at byte {self._offset} of {self._body.size}"
        connection = self._channel.connection
        log.error(
            "a large message for consumer %d of %s cannot be read, the connection is closed: %s",
            self._consumer.consumer_id,
            "a closed connection" if connection is None else connection.remote,
            problem,
        )
        # Taken up on another connection it would come to the same place, for ever.
        self._channel.give_up()
        if connection is not None:
            connection.abort()
        return None

    def close(self) -> None:
        """Stop reading it, and release the body."""
        if self._is_held:
            self._is_held = False
            self._body.release()
