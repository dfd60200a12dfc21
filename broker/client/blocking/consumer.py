"""Receiving, for threads."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from broker.client.blocks import Block
from broker.client.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.receiving import Receiving
    from broker.client.blocking.runner import Runner
    from broker.model.message import Message
    from broker.model.properties import Property, PropertyValue

_log: Final = logging.getLogger(__name__)


class Received:
    """One message as its consumer got it.

    Attributes:
        asynchronous: the same as the client's event loop has it.
    """

    def __init__(self, runner: Runner, received: AsyncReceived) -> None:
        self._runner = runner
        self.asynchronous = received

    @property
    def message(self) -> Message:
        """Headers and properties, and the body where it came in one piece."""
        return self.asynchronous.message

    @property
    def delivery_count(self) -> int:
        """1 the first time."""
        return self.asynchronous.delivery_count

    @property
    def message_id(self) -> int:
        """The number that the broker gave it."""
        return self.asynchronous.message_id

    @property
    def address(self) -> str | None:
        """Where it was sent."""
        return self.asynchronous.address

    @property
    def is_redelivered(self) -> bool:
        """Whether it was delivered before."""
        return self.asynchronous.is_redelivered

    @property
    def is_large(self) -> bool:
        """Whether the body comes in parts; see `chunks` and `read`."""
        return self.asynchronous.is_large

    @property
    def properties(self) -> Mapping[str, Property]:
        """All properties by name."""
        return self.asynchronous.properties

    def get(self, name: str) -> PropertyValue:
        """Give a property's value, None where the message has none of that name.

        Args:
            name: of the property.
        """
        return self.asynchronous.get(name)

    @property
    def content(self) -> object:
        """The content: text, bytes, a dict or a list; of a large message once it was read.

        Raises:
            ValueError: the body comes in parts, and was not read.
            RecordFormatError: the body is not what the message's type says.
        """
        return self.asynchronous.content

    @property
    def text(self) -> str:
        """The content of a text message.

        Raises:
            ValueError: the content is not text.
        """
        return self.asynchronous.text

    def read(self) -> bytes:
        """Give the whole body, of a large message too; in memory."""
        return self._runner.wait(self.asynchronous.read())

    def chunks(self) -> Iterator[bytes]:
        """Give the body in parts as they come; once. The window bounds what is in memory."""
        chunks = self.asynchronous.chunks()
        while (chunk := self._runner.wait(_next(chunks))) is not None:
            yield chunk

    def acknowledge(self) -> None:
        """Acknowledge it: in mode INDIVIDUAL it alone, else all up to it of its consumer."""
        self._runner.wait(self.asynchronous.acknowledge())

    def __repr__(self) -> str:
        return f"Received({self.message!r}, delivery_count={self.delivery_count})"


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


class Consumer(Block):
    """Receives the messages of one queue. Made by `Session.consumer()`.

    `Client.consume_everywhere()` gives one that receives those of every node.

    Attributes:
        on_error: called, in the listener's thread, with what a listener raised; the message is
            not acknowledged, and the listener is not called again. If it is not set, the error
            is logged.
    """

    def __init__(
        self,
        runner: Runner,
        consumer: Receiving,
        listener: Callable[[Received], object] | None,
    ) -> None:
        self._runner = runner
        self._consumer = consumer
        self._is_closing = False
        self.on_error: Callable[[Exception], None] = _report
        self._thread: threading.Thread | None = None
        if listener is not None:
            self._thread = threading.Thread(
                target=self._listen, args=(listener,), name="broker-listener", daemon=True
            )
            self._thread.start()

    def receive(self, timeout_s: float | None = None) -> Received | None:
        """Give the next message, None when none came in time.

        None also says that the broker had none to give. In the modes where the client acknowledges,
        the message is acknowledged when this returns.

        Args:
            timeout_s: seconds to wait for one; None for ever.

        Raises:
            ClosedError: the consumer was closed, here or by the broker.
            ClientError: the connection is lost for good.
        """
        received = self._runner.wait(self._consumer.receive(timeout_s))
        return None if received is None else Received(self._runner, received)

    def receive_now(self) -> Received | None:
        """Give the next message if the broker has one now, None if not."""
        return self.receive(0)

    def __iter__(self) -> Iterator[Received]:
        """Give messages until the consumer is closed; each is acknowledged before the next."""
        while True:
            try:
                received = self._runner.wait(self._consumer.next_unacknowledged())
            except ClosedError:
                return
            yield Received(self._runner, received)
            self._runner.wait(self._consumer.done_with(received))

    def _listen(self, listener: Callable[[Received], object]) -> None:
        try:
            for received in self:
                listener(received)
                if self._is_closing:
                    self._runner.wait(self._consumer.done_with(received.asynchronous))
                    return
        except Exception as error:  # noqa: BLE001 - a listener may raise anything
            if not self._is_closing:
                self.on_error(error)

    def close(self) -> None:
        """Stop consuming; a listener ends after the message it has now.

        What was not acknowledged goes back to the queue.
        """
        self._is_closing = True
        thread, self._thread = self._thread, None
        if thread is None or thread is threading.current_thread():
            self._runner.wait(self._consumer.close())
            return
        # Wakes a listener that waits for a message; the one it works on is still acknowledged.
        self._runner.call(self._consumer.wake_up)
        thread.join()
        self._runner.wait(self._consumer.close())

    def __repr__(self) -> str:
        return "<" + repr(self._consumer).removeprefix("<Async")


def _report(error: Exception) -> None:
    _log.error("a listener ended", exc_info=error)
