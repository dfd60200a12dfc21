"""Packets that carry messages and acknowledge them; one for each message, so written by hand.

Behind a message stand the packet's own fields, of a size that the version gives; so the message is
what comes before them. A true boolean is -1, as Artemis writes it; any byte but 0 is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.protocols.core import versions
from broker.protocols.core.frames import HEADER
from broker.protocols.core.packet import Packet
from broker.protocols.core.packet_connection import NO_CORRELATION

# Type and channel, which the length of a frame counts beside the body.
_LENGTH_MIN: Final = 9
# Whether an answer is wanted; correlation id; producer id.
_SEND_TAILS: Final = (struct.Struct(">b"), struct.Struct(">bq"), struct.Struct(">bqi"))
_RECEIVE_TAIL: Final = struct.Struct(">qi")
_RECEIVE_LARGE_START: Final = struct.Struct(">qiq")
_CHUNK_SIZE: Final = struct.Struct(">i")
_CONTINUES_TAIL: Final = struct.Struct(">bq")
_LONG: Final = struct.Struct(">q")
_ACKNOWLEDGE: Final = struct.Struct(">qqb")
NO_SENDER: Final = -1
# Of a peer as new as they nearly all are.
_PRODUCER_ID: Final = versions.PRODUCER_ID
_SEND_TAIL: Final = _SEND_TAILS[2]
_SEND_TAIL_SIZE: Final = _SEND_TAIL.size
BODY_SIZE_UNKNOWN: Final = -1


def _send_tail(version: int) -> struct.Struct:
    """Give what stands behind a sent message; of an unknown version what ASYNC_RESPONSE brought."""
    if version >= _PRODUCER_ID:
        return _SEND_TAIL
    if version >= versions.ASYNC_RESPONSE or version == 0:
        return _SEND_TAILS[1]
    return _SEND_TAILS[0]


def send_tail_size(version: int) -> int:
    """Give how many bytes stand behind a sent message."""
    if version >= _PRODUCER_ID:
        return _SEND_TAIL_SIZE
    return _send_tail(version).size


def _pack_send_tail(
    version: int, requires_response: bool, correlation_id: int, sender_id: int
) -> bytes:
    if version >= _PRODUCER_ID:
        return _SEND_TAIL.pack(-requires_response, correlation_id, sender_id)
    layout = _send_tail(version)
    values = (-requires_response, correlation_id)
    return layout.pack(*values[: _SEND_TAILS.index(layout) + 1])


def _cut(body: memoryview, layout: struct.Struct) -> tuple[memoryview, tuple[int, ...]]:
    """Give what stands before the last `layout.size` bytes, and their values."""
    at = len(body) - layout.size
    if at < 0:
        raise RecordFormatError(f"{len(body)} bytes, {layout.size} at least wanted")
    return body[:at], layout.unpack_from(body, at)


def _chunk(body: memoryview) -> tuple[bytes, memoryview]:
    """Give the chunk behind its size, and what follows it."""
    if len(body) < _CHUNK_SIZE.size:
        raise RecordFormatError(f"a chunk in {len(body)} bytes")
    size = _CHUNK_SIZE.unpack_from(body)[0]
    if not 0 <= size <= len(body) - _CHUNK_SIZE.size:
        raise RecordFormatError(f"a chunk of {size} bytes in {len(body)}")
    end = _CHUNK_SIZE.size + size
    return bytes(body[_CHUNK_SIZE.size : end]), body[end:]


@dataclass(slots=True)
class Send(Packet):
    """A message for the broker; where an answer is required, a NullResponse once it is durable.

    Attributes:
        correlation_id: the answer has the same; blocking sends count down from -2, others up.
        sender_id: the producer, as `CreateProducer` named it.
    """

    types: ClassVar = ((0, 71),)

    message: Message
    requires_response: bool = False
    correlation_id: int = NO_CORRELATION
    sender_id: int = NO_SENDER

    def encode(self, version: int) -> bytes:
        """Give the body for a peer of `version`."""
        return self.message.encode() + _pack_send_tail(
            version, self.requires_response, self.correlation_id, self.sender_id
        )

    def frame(self, channel: int, version: int) -> bytes:
        """Give the whole frame; the message is copied once."""
        message = self.message.encode()
        tail = _pack_send_tail(version, self.requires_response, self.correlation_id, self.sender_id)
        header = HEADER.pack(_LENGTH_MIN + len(message) + len(tail), 71, channel)
        return b"".join((header, message, tail))

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet of a peer of `version`."""
        return cls(*read_send(body, version))


def read_send(body: memoryview, version: int) -> tuple[Message, bool, int, int]:
    """Give the fields of a `Send` without making one: for each message there is one.

    Raises:
        RecordFormatError: these bytes are none.
    """
    layout = _send_tail(version)
    at = len(body) - layout.size
    if at < 0:
        raise RecordFormatError(f"{len(body)} bytes, {layout.size} at least wanted")
    requires_response, *ids = layout.unpack_from(body, at)
    correlation_id = ids[0] if ids else NO_CORRELATION
    sender_id = ids[1] if len(ids) > 1 else NO_SENDER
    return Message.decode(body[:at]), requires_response != 0, correlation_id, sender_id


@dataclass(slots=True)
class SendLarge(Packet):
    """Headers and properties of a large message, whose body follows in `SendContinuation`s."""

    types: ClassVar = ((0, 72),)

    message: Message

    def encode(self, version: int) -> bytes:
        """Give the body of the packet."""
        return self.message.encode_headers()

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet; bytes behind the headers are refused."""
        return cls(Message.decode_headers(body))


@dataclass(slots=True)
class SendContinuation(Packet):
    """A part of a large message's body.

    Attributes:
        continues: more of it follows.
        message_body_size: bytes of the whole body, in the last part; -1 where the sender does not
            know it.
    """

    types: ClassVar = ((0, 73),)

    chunk: bytes
    continues: bool = False
    message_body_size: int = BODY_SIZE_UNKNOWN
    requires_response: bool = False
    correlation_id: int = NO_CORRELATION
    sender_id: int = NO_SENDER

    def encode(self, version: int) -> bytes:
        """Give the body for a peer of `version`."""
        tail = _pack_send_tail(version, self.requires_response, self.correlation_id, self.sender_id)
        last = b"\xff" if self.continues else _CONTINUES_TAIL.pack(0, self.message_body_size)
        return b"".join((_CHUNK_SIZE.pack(len(self.chunk)), self.chunk, last, tail))

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet of a peer of `version`."""
        chunk, rest = _chunk(body)
        rest, tail = _cut(rest, _send_tail(version))
        if not rest:
            raise RecordFormatError("a continuation ends behind its chunk")
        body_size = BODY_SIZE_UNKNOWN
        continues = rest[0] != 0
        if not continues:
            body_size = _cut(rest[1:], _LONG)[1][0]
        return cls(chunk, continues, body_size, bool(tail[0]), *tail[1:])


@dataclass(slots=True)
class ReceiveMessage(Packet):
    """A message for a consumer; `delivery_count` is 1 the first time."""

    types: ClassVar = ((0, 75),)

    message: Message
    consumer_id: int
    delivery_count: int

    def encode(self, version: int) -> bytes:
        """Give the body of the packet."""
        return self.message.encode() + _RECEIVE_TAIL.pack(self.consumer_id, self.delivery_count)

    def frame(self, channel: int, version: int) -> bytes:
        """Give the whole frame; the message is copied once."""
        message = self.message.encode()
        tail = _RECEIVE_TAIL.pack(self.consumer_id, self.delivery_count)
        header = HEADER.pack(_LENGTH_MIN + len(message) + len(tail), 75, channel)
        return b"".join((header, message, tail))

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet."""
        message, tail = _cut(body, _RECEIVE_TAIL)
        return cls(Message.decode(message), *tail)


@dataclass(slots=True)
class ReceiveLargeMessage(Packet):
    """Headers and properties of a large message; `body_size` bytes follow in continuations."""

    types: ClassVar = ((0, 76),)

    message: Message
    consumer_id: int
    delivery_count: int
    body_size: int

    def encode(self, version: int) -> bytes:
        """Give the body of the packet."""
        start = _RECEIVE_LARGE_START.pack(self.consumer_id, self.delivery_count, self.body_size)
        return start + self.message.encode_headers()

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet."""
        if len(body) < _RECEIVE_LARGE_START.size:
            raise RecordFormatError(f"the start of a large message in {len(body)} bytes")
        message = Message.decode_headers(body[_RECEIVE_LARGE_START.size :])
        return cls(message, *_RECEIVE_LARGE_START.unpack_from(body))


@dataclass(slots=True)
class ReceiveContinuation(Packet):
    """A part of a large message's body for a consumer."""

    types: ClassVar = ((0, 77),)

    chunk: bytes
    continues: bool
    consumer_id: int

    def encode(self, version: int) -> bytes:
        """Give the body of the packet."""
        tail = _CONTINUES_TAIL.pack(-self.continues, self.consumer_id)
        return b"".join((_CHUNK_SIZE.pack(len(self.chunk)), self.chunk, tail))

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet."""
        chunk, rest = _chunk(body)
        if len(rest) < _CONTINUES_TAIL.size:
            raise RecordFormatError("a continuation ends behind its chunk")
        continues, consumer_id = _CONTINUES_TAIL.unpack_from(rest)
        return cls(chunk, continues != 0, consumer_id)


@dataclass(slots=True)
class Acknowledge(Packet):
    """Everything delivered to the consumer up to this message is done with."""

    types: ClassVar = ((0, 41),)

    consumer_id: int
    message_id: int
    requires_response: bool = False

    def encode(self, version: int) -> bytes:
        """Give the body of the packet."""
        return _ACKNOWLEDGE.pack(self.consumer_id, self.message_id, -self.requires_response)

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read a packet."""
        return cls(*read_acknowledge(body))


def read_acknowledge(body: memoryview) -> tuple[int, int, bool]:
    """Give the fields of an `Acknowledge` without making one.

    Raises:
        RecordFormatError: these bytes are none.
    """
    if len(body) < _ACKNOWLEDGE.size:
        raise RecordFormatError(f"an acknowledgement of {len(body)} bytes")
    consumer_id, message_id, requires_response = _ACKNOWLEDGE.unpack_from(body)
    return consumer_id, message_id, requires_response != 0


@dataclass(slots=True)
class IndividualAcknowledge(Acknowledge):
    """This message alone is done with."""

    types: ClassVar = ((0, 81),)
