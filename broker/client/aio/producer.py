"""Sending in asyncio: credits, answers, large bodies in parts."""

from __future__ import annotations

import asyncio
import logging
import zlib
from typing import TYPE_CHECKING, Final, Protocol, Unpack

from broker.client.aio.waiting import future_of
from broker.client.blocks import AsyncBlock
from broker.client.content import (
    GROUP_ID,
    LARGE_COMPRESSED,
    LARGE_SIZE,
    Content,
    make_message,
)
from broker.client.errors import ClosedError
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import PropertyType
from broker.protocols.core.frames import HEADER_SIZE
from broker.protocols.core.packet_message import Send, SendContinuation, SendLarge
from broker.protocols.core.packet_session import RemoveProducer

if TYPE_CHECKING:
    from broker.client.aio.calls import Calls
    from broker.client.content import MessageHeaders
    from broker.client.replies import Reply
    from broker.protocols.core.packet import Packet

log = logging.getLogger("broker.client")

# How long to wait for credits before telling of it, and asking whether the connection is still
# there (ClientProducerCreditsImpl).
_CREDITS_CHECK_S: Final = 10.0


class Readable(Protocol):
    """A body that is read in parts, such as an open file."""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes; b"" at the end."""


class AsyncProducer(AsyncBlock):
    """Sends messages, to one address or to any. Made by `AsyncSession.producer()`."""

    def __init__(self, calls: Calls, address: str | None) -> None:
        self._calls = calls
        self._state = calls.state
        self._address = address
        self._number = calls.state.add_producer(address)
        self._is_closed = False
        self._order = asyncio.Lock()
        self._group_id = self._state.options.group_id
        if self._group_id is None and self._state.options.auto_group:
            self._group_id = f"{self._state.name}.{self._number}"

    async def send(
        self,
        content: Content | Message,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> None:
        """Send a message; a durable one is on the broker's disk when this returns.

        In a transaction, and where the options say that sends of its kind do not block, it
        returns as soon as the message may leave. An error then shows at the commit, or not at all.

        Args:
            content: text, bytes, a mapping, a sequence or None; or a message that is made.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            AddressFull: the address is full, and its policy is to fail.
            BrokerRefused: the broker refused it; such as SecurityRefused.
            CallInterrupted: the connection was lost before the answer.
        """
        message = self._made(content, address, headers)
        reply = await self._dispatch(message, self._blocks(message))
        if reply is not None:
            await self._calls.answered(reply, f"sending to {message.address!r}")

    async def post(
        self,
        content: Content | Message,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> asyncio.Future[Packet]:
        """Send a message and give its confirmation, to be waited for or not, in any order.

        Many messages on their way are many times faster than one at a time.

        Args:
            content: text, bytes, a mapping, a sequence or None; or a message that is made.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            ClosedError: the producer is closed. The confirmation raises what `send` does.
        """
        message = self._made(content, address, headers)
        reply = await self._dispatch(message, wants_answer=True)
        assert reply is not None
        return future_of(reply)

    def _made(
        self, content: Content | Message, address: str | None, headers: MessageHeaders
    ) -> Message:
        if isinstance(content, Message):
            if headers:
                raise TypeError("headers are set on the message itself")
            message = content
        else:
            message = make_message(content, now_ms=self._calls.now_ms(), **headers)
        where = address or self._address or message.address
        if where is None:
            raise ValueError("neither the producer nor the message has an address")
        message.address = where
        if self._group_id is not None:
            message.set(GROUP_ID, PropertyType.STRING, self._group_id)
        return message

    def _blocks(self, message: Message) -> bool:
        if self._state.is_transacted:
            return False
        options = self._state.options
        return (
            options.block_on_durable_send if message.durable else options.block_on_non_durable_send
        )

    async def _dispatch(self, message: Message, wants_answer: bool) -> Reply[Packet] | None:
        """Send a message as one packet, or in parts where it is large."""
        if self._is_closed:
            raise ClosedError("the producer is closed")
        options = self._state.options
        # In parts one of another protocol would not be taken out of it.
        is_whole = message.type == MessageType.EMBEDDED
        if len(message.body) > options.min_large_message_size and not is_whole:
            body = bytes(message.body)
            if not options.compress_large_message:
                return await self._send_large(message, _Chunks(body), len(body), wants_answer)
            packed = zlib.compress(body, options.compression_level)
            message = message.copy()
            message.set(LARGE_COMPRESSED, PropertyType.BOOLEAN, True)
            if len(packed) > options.min_large_message_size:
                return await self._send_large(message, _Chunks(packed), len(body), wants_answer)
            message.set(LARGE_SIZE, PropertyType.LONG, len(body))
            message.body = packed
        # A sender that waited for credit goes on a turn after it came: none may overtake it.
        async with self._order:
            await self._acquire(message.address, len(message.encode()))
            self._state.has_work = True
            packet = Send(message, sender_id=self._number)
            if wants_answer:
                reply = self._state.channel.call_correlated(packet)
            else:
                self._state.channel.post(packet)
                reply = None
        await self._calls.drain()
        return reply

    async def send_stream(
        self,
        stream: Readable,
        message: Message | None = None,
        *,
        address: str | None = None,
        **headers: Unpack[MessageHeaders],
    ) -> None:
        """Send a message whose body is read from `stream`, a part at a time.

        Args:
            stream: read in the event loop's thread; a file is fast enough, a pipe may not be.
            message: headers and properties; a bytes message is made where there is none.
            address: where to, for a producer without an address of its own.
            **headers: durable, priority, time_to_live_ms, deliver_in_ms, group_id, duplicate_id,
                correlation_id, reply_to, user_id, properties: see `make_message`.

        Raises:
            AddressFull: the address is full, and its policy is to fail.
            BrokerRefused: the broker refused it; such as SecurityRefused.
            CallInterrupted: the connection was lost before the answer.
        """
        made = self._made(message if message is not None else b"", address, headers)
        made = made.copy()
        made.body = b""
        reader: Readable = stream
        size = -1
        if self._state.options.compress_large_message:
            made.set(LARGE_COMPRESSED, PropertyType.BOOLEAN, True)
            reader = _Packed(stream, self._state.options.compression_level)
        reply = await self._send_large(made, reader, size, self._blocks(made))
        if reply is not None:
            await self._calls.answered(reply, f"sending to {made.address!r}")

    async def _send_large(
        self, message: Message, body: Readable, body_size: int, wants_answer: bool
    ) -> Reply[Packet] | None:
        """Send headers and chunks; nothing else of this session goes between them."""
        headers = message.encode_headers()
        chunk_size = self._state.options.min_large_message_size
        if len(headers) >= chunk_size:
            raise ValueError(
                f"headers and properties of {len(headers)} bytes; "
                f"below {chunk_size} they can go before a large body"
            )
        async with self._calls.sending_large:
            await self._calls.ready()
            self._state.has_work = True
            self._state.channel.post(SendLarge(message))
            await self._charge(message.address, len(headers) + HEADER_SIZE)
            total = 0
            chunk = body.read(chunk_size)
            while True:
                total += len(chunk)
                following = body.read(chunk_size) if chunk else b""
                packet = SendContinuation(
                    chunk,
                    bool(following),
                    body_size if body_size >= 0 else _read_size(body, total),
                    sender_id=self._number,
                )
                if not following:
                    break
                self._state.channel.post(packet)
                await self._charge(message.address, len(chunk) + HEADER_SIZE)
                await self._calls.drain()
                chunk = following
            if wants_answer:
                return self._state.channel.call_correlated(packet)
            self._state.channel.post(packet)
            return None

    async def _acquire(self, address: str | None, size: int) -> None:
        """Wait until so many bytes may go to the address."""
        assert address is not None
        await self._calls.ready()
        reply = self._state.credits_for(address).acquire(size)
        while not reply.is_done:
            try:
                async with asyncio.timeout(_CREDITS_CHECK_S):
                    await asyncio.shield(future_of(reply))
            except TimeoutError:
                log.warning(
                    "AMQ212054: producers to address '%s' are blocked: its memory or its pages "
                    "are full, or the broker's disk is; they go on when there is room",
                    address,
                )
                # A connection that is gone meanwhile ends the wait.
                await self._calls.ready()
        reply.result()

    async def _charge(self, address: str | None, size: int) -> None:
        """Take credits for what has been sent already, as Artemis does with large parts."""
        await self._acquire(address, size)

    async def close(self) -> None:
        """Close the producer; the broker forgets it."""
        if not self._is_closed:
            self._is_closed = True
            if self._state.remove_producer(self._number):
                self._state.channel.post(RemoveProducer(self._number))

    def __repr__(self) -> str:
        """Where it sends."""
        where = "any address" if self._address is None else repr(self._address)
        return f"<AsyncProducer {where}: {'closed' if self._is_closed else 'open'}>"


class _Chunks:
    """A body that is in memory, read in parts."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._offset = 0

    def read(self, size: int, /) -> bytes:
        chunk = self._body[self._offset : self._offset + size]
        self._offset += len(chunk)
        return bytes(chunk)


class _Packed:
    """A stream compressed on its way.

    Attributes:
        size: bytes read of the stream so far, not compressed.
    """

    def __init__(self, stream: Readable, level: int) -> None:
        self._stream = stream
        self._deflate: zlib._Compress | None = zlib.compressobj(level)
        self._ready = bytearray()
        self.size = 0

    def read(self, size: int, /) -> bytes:
        while self._deflate is not None and len(self._ready) < size:
            chunk = self._stream.read(size)
            self.size += len(chunk)
            if chunk:
                self._ready += self._deflate.compress(chunk)
            else:
                self._ready += self._deflate.flush()
                self._deflate = None
        packed = bytes(self._ready[:size])
        del self._ready[:size]
        return packed


def _read_size(body: Readable, sent: int) -> int:
    """Give the size of the body as its receiver will have it."""
    return body.size if isinstance(body, _Packed) else sent
