"""A large message on its way to a peer: its sections, then its body piece by piece.

One of AMQP goes as it is stored; one of Core is converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.large_body import LARGE_COMPRESSED
from broker.model.message_types import MessageType
from broker.protocols.body_stream import BodyStream
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.core_to_amqp import body_head, body_of, sections_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton import Sender

    from broker.model.message import Message
    from broker.protocols.amqp.links import LinkConnection

__all__ = ["LargeDelivery"]

# Bytes that may wait in the engine before reading the body pauses.
_WAITING_MAX: Final = 256 * 1024
# Types whose body is converted as a whole.
_WHOLE: Final = frozenset({MessageType.MAP, MessageType.STREAM, MessageType.OBJECT})


class LargeDelivery:
    """See the module's text. What `BodyStream` writes to, and asks whether it may.

    Args:
        connection: it is on.
        link: whose current delivery it is.
        message: with a large body.
        delivery_count: how often it was delivered before.
        on_end: called once it is written.

    Attributes:
        size: bytes of the body, as it is stored.
    """

    def __init__(
        self,
        connection: LinkConnection,
        link: Sender,
        message: Message,
        delivery_count: int,
        on_end: Callable[[], object],
    ) -> None:
        self._connection = connection
        self._link = link
        self._session = link.session
        self._message = message
        self._delivery_count = delivery_count
        self._on_end = on_end
        self._pieces: list[bytes] = []
        self._has_head = False
        body = message.large
        assert body is not None, "it is a large message"
        is_core = True
        if isinstance(message, LargeAmqpMessage):
            is_core, body = False, message.body_to_deliver()
        self._is_whole = is_core and message.type in _WHOLE
        self.size = body.size
        self._stream = BodyStream(
            self,  # type: ignore[arg-type] # Of a peer it has what a stream asks for.
            self,  # type: ignore[arg-type] # And of an output.
            body,
            self._head,
            on_end,
            is_text=is_core and message.type == MessageType.TEXT,
            is_compressed=is_core and message.get(LARGE_COMPRESSED) is True,
        )

    def _head(self, size: int, is_text: bool) -> bytes:
        if isinstance(self._message, LargeAmqpMessage):
            return self._message.head_to_deliver(self._delivery_count)
        sections = sections_of(self._message, self._connection.clock.now_ms(), self._delivery_count)
        return (
            sections
            if self._is_whole
            else sections + body_head(self._message, size, is_text=is_text)
        )

    def go_on(self) -> None:
        """Write what may be written now."""
        self._stream.go_on()

    def close(self) -> None:
        """Nothing of it is written any more."""
        self._stream.close()

    # --- what the stream asks and writes ------------------------------------------------------

    @property
    def remote(self) -> str:
        """For logs."""
        return self._connection.peer.remote

    @property
    def is_open(self) -> bool:
        """Whether what is written may arrive."""
        return self._connection.peer.is_open

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not take what it was sent."""
        if self._connection.peer.is_paused:
            return True
        if self._session.outgoing_bytes <= _WAITING_MAX:
            return False
        self._connection.flush()
        return bool(self._session.outgoing_bytes > _WAITING_MAX)

    def abort(self) -> None:
        """What was begun cannot be completed."""
        self._connection.peer.abort()

    def begin(self) -> None:
        """Its delivery is the link's current one already."""

    def part(self, data: bytes) -> None:
        """Write some bytes of it."""
        if self._is_whole and self._has_head:
            self._pieces.append(data)
        elif data:
            self._link.send(data)
        self._has_head = True

    def end(self) -> None:
        """It is complete."""
        if self._is_whole:
            self._link.send(body_of(self._message, b"".join(self._pieces)))
        self._link.advance()
