"""What an application hands over, as a message; and a received message, as it wants to have it."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict

from broker.model.bodies import (
    decode_map,
    decode_stream,
    decode_text,
    encode_map,
    encode_stream,
    encode_text,
    property_of,
)
from broker.model.message import PRIORITY_DEFAULT, Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGE_COMPRESSED: Final = "_AMQ_LARGE_COMPRESSED"
LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"
GROUP_ID: Final = "_AMQ_GROUP_ID"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
SCHEDULED_DELIVERY: Final = "_AMQ_SCHED_DELIVERY"
CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"

Content: TypeAlias = (
    "Message | str | bytes | Mapping[str, PropertyValue | Property]"
    " | Sequence[PropertyValue | Property] | None"
)
"""What can be sent: text, bytes, a map, a stream of values, nothing, or a message made before."""


class MessageHeaders(TypedDict, total=False):
    """Keyword arguments of whatever sends, for type checkers: those of `make_message`."""

    durable: bool
    priority: int
    time_to_live_ms: int
    deliver_in_ms: int
    group_id: str | None
    duplicate_id: str | bytes | None
    correlation_id: str | bytes | None
    reply_to: str | None
    user_id: bytes | None
    properties: Mapping[str, PropertyValue | Property] | None


def make_message(
    content: Content,
    *,
    durable: bool = True,
    priority: int = PRIORITY_DEFAULT,
    time_to_live_ms: int = 0,
    deliver_in_ms: int = 0,
    group_id: str | None = None,
    duplicate_id: str | bytes | None = None,
    correlation_id: str | bytes | None = None,
    reply_to: str | None = None,
    user_id: bytes | None = None,
    properties: Mapping[str, PropertyValue | Property] | None = None,
    now_ms: int | None = None,
) -> Message:
    """Give a message with this content.

    Args:
        content: str makes a text message, bytes a bytes message, a mapping a map message, any
            other sequence a stream message, None one without a body.
        durable: survives a restart of the broker, in a durable queue.
        priority: 0 … 9, higher ones are delivered first.
        time_to_live_ms: expires so long after now; 0 never.
        deliver_in_ms: stays in its queue so long.
        group_id: all messages of a group go to one consumer.
        duplicate_id: the broker accepts one message with this id and drops later ones, of which
            their sender hears nothing. A transaction with one fails: its commit raises
            DuplicateId.
        correlation_id: what an answer has in common with its question.
        reply_to: where an answer is wanted, such as `queue://name`.
        user_id: 16 bytes, the JMS message id.
        properties: anything else; Python values, or `Property` where the type matters.
        now_ms: its time stamp, ms since 1970; None is the machine's clock.

    Raises:
        TypeError: content or a property's value of a class that no message can hold.
    """
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    kind, body = _encode(content)
    message = Message(
        None,
        body,
        type=kind,
        durable=durable,
        priority=priority,
        timestamp=now,
        expiration=now + time_to_live_ms if time_to_live_ms else 0,
        user_id=user_id,
        properties=[property_of(name, value) for name, value in (properties or {}).items()],
    )
    if deliver_in_ms:
        message.set(SCHEDULED_DELIVERY, PropertyType.LONG, now + deliver_in_ms)
    named = ((GROUP_ID, group_id), (DUPLICATE_ID, duplicate_id), (CORRELATION_ID, correlation_id))
    for name, value in (*named, (REPLY_TO, reply_to)):
        if value is not None:
            message.set(*property_of(name, value))
    return message


def _encode(content: Content) -> tuple[int, bytes]:
    if content is None:
        return MessageType.DEFAULT, b""
    if isinstance(content, str):
        return MessageType.TEXT, encode_text(content)
    if isinstance(content, bytes | bytearray | memoryview):
        return MessageType.BYTES, bytes(content)
    if isinstance(content, Message):
        raise TypeError("a message is sent as it is; its headers are set on it")
    if hasattr(content, "keys"):
        return MessageType.MAP, encode_map(content)  # type: ignore[arg-type] # has keys: a mapping
    return MessageType.STREAM, encode_stream(content)


def read_content(type: int, body: bytes) -> object:
    """Give what `make_message` was given: text, bytes, a dict or a list.

    Args:
        type: of the message.
        body: unpacked.

    Raises:
        RecordFormatError: the body is not what the type says.
    """
    if type == MessageType.TEXT:
        return decode_text(body)
    if type == MessageType.MAP:
        return decode_map(body)
    if type == MessageType.STREAM:
        return decode_stream(body)
    return body


def is_compressed(message: Message) -> bool:
    """Whether the body is a zlib stream that its receiver unpacks."""
    return message.get(LARGE_COMPRESSED) is True


def unpacked(message: Message) -> bytes:
    """Give the body of a regular message, unpacked where its sender compressed it.

    Raises:
        zlib.error: it says it is compressed, and is not.
    """
    return zlib.decompress(message.body) if is_compressed(message) else bytes(message.body)
