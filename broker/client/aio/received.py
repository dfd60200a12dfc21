"""A received message in asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from broker.client.content import unpacked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from broker.client.deliveries import Delivery
    from broker.model.message import Message
    from broker.model.properties import Property, PropertyValue


class ReceivingConsumer(Protocol):
    """What a message needs of the consumer that received it."""

    async def acknowledge(self, received: AsyncReceived) -> None:
        """Acknowledge: in mode INDIVIDUAL this message alone, else all up to it."""

    async def done_with(self, received: AsyncReceived) -> None:
        """Acknowledge a message in the modes where the client does."""

    async def done_with_all(self, found: list[AsyncReceived]) -> None:
        """Acknowledge messages in the modes where the client does."""


class AsyncReceived:
    """One message as its consumer got it.

    Attributes:
        consumer: that received it.
        message: headers and properties, and the body where it came in one piece.
        delivery_count: 1 the first time.
        number: how many messages its consumer has handed over with it.
        generation: of the consumer at the broker, which a lost session ends.
        is_acknowledged: whether it was acknowledged alone.
    """

    is_acknowledged = False

    def __init__(
        self, consumer: ReceivingConsumer, delivery: Delivery, number: int, generation: int
    ) -> None:
        self.consumer = consumer
        self.number = number
        self.generation = generation
        self._delivery = delivery
        self._body: bytes | None = None
        self.message: Message = delivery.message
        self.delivery_count = delivery.delivery_count

    @property
    def message_id(self) -> int:
        """The number that the broker gave it."""
        return self.message.message_id

    @property
    def address(self) -> str | None:
        """Where it was sent."""
        return self.message.address

    @property
    def is_redelivered(self) -> bool:
        """Whether it was delivered before."""
        return self.delivery_count > 1

    @property
    def is_large(self) -> bool:
        """Whether the body comes in parts; see `chunks` and `read`."""
        return self._delivery.large is not None

    @property
    def size(self) -> int:
        """Bytes of its frame, without a large body."""
        return self._delivery.size

    @property
    def properties(self) -> Mapping[str, Property]:
        """All properties by name."""
        return self.message.properties

    def get(self, name: str) -> PropertyValue:
        """Give a property's value, None where the message has none of that name.

        Args:
            name: of the property.
        """
        return self.message.get(name)

    @property
    def content(self) -> object:
        """The content: text, bytes, a dict or a list; of a large message once it was read.

        Raises:
            ValueError: the body comes in parts, and was not read.
            RecordFormatError: the body is not what the message's type says.
        """
        if self.is_large and self._body is None:
            raise ValueError("the body comes in parts: read() it first")
        return self._delivery.content(self._body)

    @property
    def text(self) -> str:
        """The content of a text message.

        Raises:
            ValueError: the content is not text.
        """
        content = self.content
        if not isinstance(content, str):
            raise ValueError(f"the content is {type(content).__name__}, not text")
        return content

    async def read(self) -> bytes:
        """Give the whole body, of a large message too; in memory."""
        if self._body is None:
            if self._delivery.large is None:
                self._body = unpacked(self.message)
            else:
                self._body = b"".join([chunk async for chunk in self.chunks()])
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body in parts as they come; once. The window bounds what is in memory."""
        large = self._delivery.large
        if large is None:
            yield unpacked(self.message)
            return
        arrived = asyncio.Event()
        large.on_change = arrived.set
        while True:
            arrived.clear()
            chunk = large.take()
            if chunk is None:
                await arrived.wait()
            elif chunk:
                yield chunk
            else:
                return

    async def acknowledge(self) -> None:
        """Acknowledge it: in mode INDIVIDUAL it alone, else all up to it of its consumer."""
        await self.consumer.acknowledge(self)

    def discard_body(self) -> None:
        """Throw away what was not read of a large body."""
        if self._delivery.large is not None and not self._delivery.large.is_drained:
            self._delivery.large.discard()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, delivery_count={self.delivery_count})"
