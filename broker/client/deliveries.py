"""What a consumer has received and not handed over: its buffer, and large bodies as they come."""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, Final

from broker.client.content import is_compressed, read_content, unpacked
from broker.client.credits import ConsumerWindow
from broker.client.errors import ClientError, ClosedError
from broker.client.replies import Reply
from broker.protocols.core.packet_session import ConsumerCredits, CreateConsumer, ForceDelivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.channel import Channel
    from broker.model.message import Message

FORCED_DELIVERY: Final = "_hornetq.forced.delivery.seq"


class IncomingBody:
    """The body of one large message; what was not read yet is in memory, within the window."""

    def __init__(self, size: int, window: ConsumerWindow, *, compressed: bool) -> None:
        self.size = size
        self.is_complete = False
        self.on_change: Callable[[], None] = _nothing
        self._window = window
        self._chunks: deque[tuple[bytes, int, bool]] = deque()
        self._inflate = zlib.decompressobj() if compressed else None
        self._error: ClientError | None = None
        self._is_unwanted = False
        self._is_drained = False

    @property
    def is_drained(self) -> bool:
        """Whether the whole body was read, or thrown away to its end."""
        return self._is_drained

    def add(self, chunk: bytes, frame_size: int, *, continues: bool) -> None:
        """Take the next part."""
        self.is_complete = not continues
        if self._is_unwanted:
            self._is_drained = self.is_complete
            self._window.taken(frame_size, is_last=self.is_complete)
            return
        self._chunks.append((chunk, frame_size, self.is_complete))
        self.on_change()

    def take(self) -> bytes | None:
        """Give the next part; b"" at the end, None when the next one has not come yet.

        Raises:
            ClientError: the rest will not come.
            zlib.error: a compressed body that is none.
        """
        while self._chunks:
            chunk, frame_size, is_last = self._chunks.popleft()
            self._is_drained = is_last
            self._window.taken(frame_size, is_last=is_last)
            if self._inflate is not None:
                chunk = self._inflate.decompress(chunk)
                if is_last:
                    chunk += self._inflate.flush()
            if chunk or is_last:
                return chunk
        if self.is_complete:
            return b""
        if self._error is not None:
            raise self._error
        return None

    def discard(self) -> None:
        """Throw the rest away as it comes: no caller wants it."""
        self._is_unwanted = True
        while self._chunks:
            _, frame_size, is_last = self._chunks.popleft()
            self._is_drained = is_last
            self._window.taken(frame_size, is_last=is_last)

    def fail(self, error: ClientError) -> None:
        """The rest will not come."""
        self._error = error
        self.on_change()


class Delivery:
    """One received message.

    Attributes:
        message: headers and properties; of a large message without its body.
        delivery_count: 1 the first time.
        size: bytes of its frame, which the window counts.
        large: its body, where it comes in parts.
    """

    __slots__ = ("delivery_count", "large", "message", "size")

    def __init__(
        self, message: Message, delivery_count: int, size: int, large: IncomingBody | None = None
    ) -> None:
        self.message = message
        self.delivery_count = delivery_count
        self.size = size
        self.large = large

    def content(self, body: bytes | None = None) -> object:
        """Give the content; `body` where it was read in parts."""
        return read_content(self.message.type, unpacked(self.message) if body is None else body)


class ConsumerState:
    """One consumer: its buffer and its credits. No I/O.

    Attributes:
        on_change: called when a message arrives, or the consumer is closed.
        error: why it is closed, or None.
        is_open: whether the broker has created it.
        generation: how often it was created again, with a new session.
    """

    def __init__(self, channel: Channel, request: CreateConsumer, window: int) -> None:
        self.request = request
        self.consumer_id = request.consumer_id
        self.window_size = window
        self.on_change: Callable[[], None] = _nothing
        self.error: ClientError | None = None
        self.is_open = False
        self.generation = 0
        self._channel = channel
        self._window = ConsumerWindow(window, self._grant)
        self._buffer: deque[Delivery] = deque()
        self._large: IncomingBody | None = None
        self._sequence = 0
        self._forced: Reply[None] | None = None

    def _grant(self, amount: int) -> None:
        self._channel.post(ConsumerCredits(self.consumer_id, amount))

    def set_window(self, window: int) -> None:
        """Use the window that the broker's settings give; before `open`."""
        self.window_size = window
        self._window = ConsumerWindow(window, self._grant)

    def open(self) -> None:
        """The broker knows the consumer: let messages come."""
        self.is_open = True
        self._window.open()

    # Arriving.

    def receive(self, message: Message, delivery_count: int, size: int) -> None:
        """Take a message, or the mark that a forced delivery asked for."""
        sequence = message.get(FORCED_DELIVERY)
        if sequence is None:
            self._window.arrived()
            self._buffer.append(Delivery(message, delivery_count, size))
            self.on_change()
        elif self._forced is not None and sequence == self._sequence:
            forced, self._forced = self._forced, None
            forced.succeed(None)

    def receive_large(
        self, message: Message, delivery_count: int, body_size: int, size: int
    ) -> None:
        """Take the head of a large message."""
        self._window.arrived()
        large = IncomingBody(body_size, self._window, compressed=is_compressed(message))
        self._large = large
        self._buffer.append(Delivery(message, delivery_count, size, large))
        self.on_change()

    def receive_chunk(self, chunk: bytes, size: int, *, continues: bool) -> None:
        """Take a part of the large message that is coming; of one that was given up, nothing."""
        if self._large is not None:
            self._large.add(chunk, size, continues=continues)
            if not continues:
                self._large = None

    # Handing over.

    def take(self) -> Delivery | None:
        """Give the next message, if one is there.

        Raises:
            ClientError: none is there, and the consumer is closed.
        """
        if self._buffer:
            delivery = self._buffer.popleft()
            self._window.taken(delivery.size, is_last=delivery.large is None)
            return delivery
        if self.error is not None:
            raise self.error
        return None

    @property
    def buffered(self) -> int:
        """How many messages are here."""
        return len(self._buffer)

    def ask(self) -> None:
        """Somebody waits: with a window of 0 a message is asked for."""
        if not self._buffer:
            self._window.ask()

    def stop_asking(self) -> None:
        """No caller waits any more."""
        self._window.stop_asking()

    def force(self) -> Reply[None]:
        """Ask for a mark behind what the broker can deliver now; done when it is here."""
        if self._forced is None:
            self._forced = Reply()
            self._sequence += 1
            self._channel.post(ForceDelivery(self.consumer_id, self._sequence))
        return self._forced

    # Endings.

    def clear(self) -> None:
        """Throw the buffer away; a rollback or a new session delivers it again."""
        while self._buffer:
            delivery = self._buffer.popleft()
            self._window.taken(delivery.size, is_last=delivery.large is None)
            if delivery.large is not None:
                delivery.large.discard()

    def close(self, error: ClientError | None = None) -> None:
        """No more messages come, and none that is here is handed over."""
        self.error = error or ClosedError("the consumer is closed")
        self._buffer.clear()
        self.interrupt(self.error)
        self.on_change()

    def interrupt(self, error: ClientError) -> None:
        """What is on its way will not come."""
        if self._large is not None:
            self._large.fail(error)
            self._large = None
        if self._forced is not None:
            forced, self._forced = self._forced, None
            forced.fail(error)

    def begin_anew(self, error: ClientError) -> None:
        """The broker has a new session: everything not acknowledged comes again."""
        self.generation += 1
        self._buffer.clear()
        self.interrupt(error)


def _nothing() -> None:
    """Do nothing, as long as no listener is set."""
