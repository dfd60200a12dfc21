"""Core messages as messages of JMS, and back; how Artemis's JMS client maps them.

Between two brokers of the Core protocol the message itself goes on (`JMSMessage.native`), with
every property and the bytes of its body as its sender made them.
"""

from __future__ import annotations

import tempfile
import uuid
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.client.content import (
    CORRELATION_ID,
    DUPLICATE_ID,
    GROUP_ID,
    LARGE_COMPRESSED,
    LARGE_SIZE,
    REPLY_TO,
    make_message,
    read_content,
    unpacked,
)
from broker.model.encoding import BodyReader, BodyWriter
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType

if TYPE_CHECKING:
    from broker.bridges.jms.message import Body, StreamedBody
    from broker.client.aio.received import AsyncReceived
    from broker.model.routing_type import RoutingType

__all__ = [
    "GROUPS",
    "body_kind",
    "content_of_body",
    "core_message",
    "jms_message",
    "made_message",
]

JMS_TYPE: Final = "JMSType"
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
# Core's name of a property: JMS's.
GROUPS: Final = {GROUP_ID: "JMSXGroupID", "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq"}
_ID_PREFIX: Final = "ID:"
_KINDS: Final = {
    MessageType.DEFAULT: BodyKind.EMPTY,
    MessageType.TEXT: BodyKind.TEXT,
    MessageType.BYTES: BodyKind.BYTES,
    MessageType.MAP: BodyKind.MAP,
    MessageType.STREAM: BodyKind.STREAM,
    MessageType.OBJECT: BodyKind.OBJECT,
}
_TYPES: Final = {kind: int(number) for number, kind in _KINDS.items()}
# Bytes of a large body that are kept in memory, before it goes to a file.
_IN_MEMORY_MAX: Final = 256 * 1024
# Headers that JMSMessage has as fields; the client's compression ends with the client.
_HEADERS: Final = (
    *(CORRELATION_ID, REPLY_TO, JMS_TYPE, ROUTING_TYPE, DUPLICATE_ID),
    *(LARGE_COMPRESSED, LARGE_SIZE),
)


# What a message of the Core client has only once it is asked for.
_LATE: Final = frozenset(
    {
        *("kind", "body", "message_id", "correlation_id", "reply_to", "type"),
        *("priority", "properties", "position", "read_body"),
    }
)


class ReceivedMessage(JMSMessage):
    """A message of the Core client, with what acknowledges it.

    Between two brokers of the Core protocol hardly a field is asked for, and to read them costs as
    much as to receive the message. So they are read when the first of them is.

    Args:
        received: by the Core client.
        queue: that it came from, in UTF-8.
    """

    __slots__ = ("_queue", "received")

    def __init__(self, received: AsyncReceived, queue: bytes) -> None:
        self.received = received
        self._queue = queue
        self.native = core = received.message
        self.expiration_ms = core.expiration
        self.durable = core.durable
        self.timestamp_ms = core.timestamp
        self.size = received.size
        self.duplicate_id = self.stream = self.added = None

    def __getattr__(self, name: str) -> object:
        # A slot that is not filled yet.
        if name not in _LATE:
            raise AttributeError(name)
        core = self.received.message
        if name == "position":
            # Of each message that gets a duplicate id.
            number = core.message_id.to_bytes(8, "big", signed=True)
            self.position = self._queue + b"\0" + number
        else:
            self._fill(core)
        return getattr(self, name)

    def _fill(self, core: Message) -> None:
        self.kind = body_kind(core.type)
        self.body = None
        self.message_id = _jms_id(core.user_id)
        self.correlation_id = core.correlation_id
        self.reply_to = core.reply_to
        self.type = _text(core, JMS_TYPE)
        self.priority = core.priority
        self.properties = _properties(core)
        self.read_body = self._read_body

    def _read_body(self) -> Body:
        core = self.received.message
        return _body(core, unpacked(core) if self.stream is None else _whole(self.stream))


async def jms_message(received: AsyncReceived, queue: bytes) -> ReceivedMessage:
    """Give a received message; the body of a large one is read to its end, into a file.

    Args:
        received: by the Core client.
        queue: that it came from, in UTF-8.
    """
    found = ReceivedMessage(received, queue)
    if received.is_large:
        stream = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_MAX)  # noqa: SIM115 - the message closes it.
        found.stream = stream
        try:
            async for chunk in received.chunks():
                stream.write(chunk)
                found.size += len(chunk)
        except BaseException:
            stream.close()
            raise
        # The client has unpacked it.
        core = received.message
        core.remove(LARGE_COMPRESSED)
        core.remove(LARGE_SIZE)
    return found


def _properties(core: Message) -> dict[str, Property]:
    """Give what JMS has as properties; the group by JMS's name."""
    return {
        name: one._replace(name=name)
        for name, one in ((GROUPS.get(name, name), one) for name, one in core.properties.items())
        if name not in _HEADERS
    }


def _whole(stream: StreamedBody) -> bytes:
    stream.seek(0)
    return stream.read(-1)


def body_kind(type: int) -> BodyKind:
    """Give what a body is.

    Args:
        type: a MessageType, or a number that is none.
    """
    return _KINDS[MessageType(type)] if type in _NUMBERS else BodyKind.BYTES


def _body(core: Message, data: bytes) -> Body:
    return content_of_body(core.type, data)


def content_of_body(type: int, data: bytes) -> Body:
    """Give the content of a body.

    Args:
        type: a MessageType, or a number that is none.
        data: as a Core message of that type has it, unpacked.

    Raises:
        RecordFormatError: the body is not what the type says.
    """
    if type == MessageType.OBJECT:
        reader = BodyReader(data)
        return reader.read_sized_bytes() if reader.remaining else None
    content = read_content(type, data)
    if type == MessageType.DEFAULT:
        return content if isinstance(content, bytes) and content else None
    assert content is None or isinstance(content, str | bytes | dict | list)
    return content


def _jms_id(user_id: bytes | None) -> str | None:
    return None if user_id is None else f"{_ID_PREFIX}{uuid.UUID(bytes=user_id)}"


def _text(core: Message, name: str) -> str | None:
    found = core.get(name)
    return found if isinstance(found, str) else None


def core_message(
    message: JMSMessage, address: str, routing: RoutingType, user_id: bytes
) -> Message:
    """Give the message to send.

    Args:
        message: of any provider; the native one of a Core message is changed.
        address: its new one.
        routing: of that.
        user_id: its new JMSMessageID, 16 bytes.

    Raises:
        TypeError: a body or a property that no Core message can hold.
    """
    native = message.native
    if isinstance(native, Message):
        core = native
        for added in message.added or ():
            core.set(*added)
    else:
        core = made_message(message)
    # Headers first: properties are put behind bytes that are not made anew.
    core.address = address
    core.user_id = user_id
    core.expiration = message.expiration_ms
    if core.routing_type is not routing:
        core.routing_type = routing
    if message.duplicate_id is not None:
        core.set_bytes(DUPLICATE_ID, message.duplicate_id)
    else:
        # Its sender's was for the source. In a transaction, one that the target knows would undo
        # the whole batch, at each attempt.
        core.remove(DUPLICATE_ID)
    return core


def made_message(message: JMSMessage) -> Message:
    """Give a new Core message of what a message of any provider has, without an address.

    Raises:
        TypeError: a body or a property that no Core message can hold.
    """
    content = message.content()
    if message.kind is BodyKind.OBJECT:
        writer = BodyWriter()
        writer.write_sized_bytes(content if isinstance(content, bytes) else b"")
        content = writer.getvalue()
    core = make_message(
        content,
        durable=message.durable,
        priority=message.priority,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        properties=message.properties,
        now_ms=message.timestamp_ms,
    )
    core.type = _TYPES[message.kind]
    for name, jms_name in GROUPS.items():
        if (found := message.properties.get(jms_name)) is not None:
            core.remove(jms_name)
            core.set(name, found.type, found.value)
    if message.type is not None:
        core.set(*Property(JMS_TYPE, PropertyType.STRING, message.type))
    return core


_NUMBERS: Final = frozenset(int(one) for one in _KINDS)
