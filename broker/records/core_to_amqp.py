"""A Core message as an AMQP one, by Artemis's mapping (CoreAmqpConverter).

    headers, properties ─▶ header, message annotations, properties, application properties
    body                ─▶ amqp-value or data, by the message's type and what it was before

What came from AMQP and was changed here goes back to where it stood: the names JMS_AMQP_* say so.
What Artemis does not copy from: no null JMSXDeliveryCount is added, and a time to live that is
too long for its 32 bits is the longest there is.
"""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any, Final

from broker.model.bodies import stream_items
from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.message_types import MessageType
from broker.model.properties import TYPED_PROPERTIES, PropertyType
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.model.message import Message
    from broker.model.properties import Property, PropertyValue

__all__ = ["body_head", "body_of", "sections_of"]

_UINT_MAX: Final = 2**32 - 1
_PRIORITY_DEFAULT: Final = 4
_OBJECT_CONTENT: Final = "application/x-java-serialized-object"
_NULL: Final = b"\x40"
# What the body of a message was that came from AMQP (JMS_AMQP_ORIGINAL_ENCODING).
_WAS_NULL, _WAS_DATA, _WAS_SEQUENCE, _WAS_BINARY = 1, 2, 3, 6
_KINDS: Final = {
    MessageType.DEFAULT: 0,
    MessageType.OBJECT: 1,
    MessageType.MAP: 2,
    MessageType.BYTES: 3,
    MessageType.STREAM: 4,
    MessageType.TEXT: 5,
}
_REPLY_PREFIXES: Final = ("queue://", "topic://", "temp-queue://", "temp-topic://")
_ANNOTATION: Final = "JMS_AMQP_MA_"
_ENCODED_ANNOTATION: Final = "JMS_AMQP_ENCODED_MA_"
_FOOTER: Final = "JMS_AMQP_FT_"
_ENCODED_FOOTER: Final = "JMS_AMQP_ENCODED_FT_"
_DELIVERY: Final = "JMS_AMQP_DA_"
_ENCODED_DELIVERY: Final = "JMS_AMQP_ENCODED_DA_"
_PREFIXES: Final = (
    *(_ANNOTATION, _ENCODED_ANNOTATION, _FOOTER, _ENCODED_FOOTER, _DELIVERY, _ENCODED_DELIVERY),
)
# Properties that stand elsewhere in an AMQP message, or say nothing to its receiver.
_ELSEWHERE: Final = frozenset(
    {
        *("_AMQ_GROUP_ID", "_AMQ_GROUP_SEQUENCE", "_AMQ_ROUTING_TYPE", "_AMQ_SCHED_DELIVERY"),
        *("_AMQ_INGRESS_TIMESTAMP", "_AMQ_VALIDATED_USER", "JMSXUserID", "JMSXGroupID"),
        *("JMSXGroupSeq", "JMSXDeliveryCount", "NATIVE_MESSAGE_ID", "_AMQ_LARGE_SIZE"),
        "_AMQ_LARGE_COMPRESSED",
    }
)


# --- values -----------------------------------------------------------------------------------


def _sized(code: int, data: bytes) -> bytes:
    """Give a binary, text or symbol, by the code of its short form."""
    if len(data) < 256:
        return b"%c%c%b" % (code, len(data), data)
    return b"%c%b%b" % (code + 0x10, len(data).to_bytes(4, "big"), data)


def _string(text: str) -> bytes:
    # Java's texts may have half of a surrogate pair, which UTF-8 has not.
    return _sized(0xA1, text.encode("utf-8", "replace"))


def _symbol(text: str) -> bytes:
    return _sized(0xA3, text.encode("ascii", "replace"))


def _compound(code: int, items: Iterable[bytes]) -> bytes:
    """Give a list or map, by the code of its short form."""
    parts = list(items)
    data = b"".join(parts)
    if len(data) < 255 and len(parts) < 256:
        return b"%c%c%c%b" % (code, len(data) + 1, len(parts), data)
    return b"%c%b%b%b" % (
        code + 0x10,
        (len(data) + 4).to_bytes(4, "big"),
        len(parts).to_bytes(4, "big"),
        data,
    )


def _listed(fields: list[bytes]) -> bytes:
    while fields and fields[-1] == _NULL:
        fields.pop()
    return _compound(0xC0, fields) if fields else b"\x45"


def _mapped(pairs: Mapping[bytes, bytes]) -> bytes:
    return _compound(0xC1, (one for pair in pairs.items() for one in pair))


def _section(code: int, value: bytes) -> bytes:
    return b"\x00\x53%c%b" % (code, value)


def _uint(number: int) -> bytes:
    return b"\x70" + (number & _UINT_MAX).to_bytes(4, "big")


def _long(code: bytes, number: int) -> bytes:
    return code + number.to_bytes(8, "big", signed=True)


_NUMBERS: Final[Mapping[PropertyType, tuple[bytes, struct.Struct]]] = {
    PropertyType.BYTE: (b"\x51", struct.Struct(">b")),
    PropertyType.SHORT: (b"\x61", struct.Struct(">h")),
    PropertyType.INT: (b"\x71", struct.Struct(">i")),
    PropertyType.LONG: (b"\x81", struct.Struct(">q")),
    PropertyType.FLOAT: (b"\x72", struct.Struct(">f")),
    PropertyType.DOUBLE: (b"\x82", struct.Struct(">d")),
}


def _property(kind: PropertyType, value: Any) -> bytes:  # noqa: ANN401 - the property's.
    """Give the value of a property as the AMQP type that is nearest."""
    if value is None:
        return _NULL
    if kind is PropertyType.STRING:
        return _string(value)
    if kind is PropertyType.BOOLEAN:
        return b"\x41" if value else b"\x42"
    number = _NUMBERS.get(kind)
    if number is not None:
        return number[0] + number[1].pack(value)
    if kind is PropertyType.CHAR:
        return b"\x73" + ord(value).to_bytes(4, "big")
    assert kind is PropertyType.BYTES, "all others were looked at"
    return _sized(0xA0, bytes(value))


# --- ids --------------------------------------------------------------------------------------


def _id(text: str) -> bytes:
    """Give an id as it was before it became a text of JMS (AMQPMessageIdHelper)."""
    if not text.startswith("ID:"):
        return _string(text)
    kind, colon, rest = text[3:].partition(":")
    try:
        if kind == "AMQP_UUID" and colon:
            return b"\x98" + uuid.UUID(rest).bytes
        if kind == "AMQP_ULONG" and colon and 0 <= int(rest) < 1 << 64:
            return b"\x80" + int(rest).to_bytes(8, "big")
        if kind == "AMQP_BINARY" and colon:
            return _sized(0xA0, bytes.fromhex(rest))
    except ValueError:
        # Only called so: it is the text.
        return _string(text)
    if kind == "AMQP_STRING" and colon:
        return _string(rest)
    if kind == "AMQP_NO_PREFIX" and colon:
        return _string(rest)
    return _string(text)


# --- sections before the body -----------------------------------------------------------------


def sections_of(message: Message, now_ms: int, delivery_count: int) -> bytes:
    """Give all sections before the body.

    Args:
        message: of Core's layout.
        now_ms: ms since 1970, for what it has left to live.
        delivery_count: how often it was delivered before.
    """
    properties = message.properties
    parts = [_header(message, properties, now_ms, delivery_count)]
    others = _Others(properties)
    if others.delivery:
        parts.append(_section(0x71, _mapped(others.delivery)))
    parts.append(_section(0x72, _mapped(_annotations(message, others.annotations))))
    parts.append(_section(0x73, _listed(_properties(message))))
    if others.application:
        parts.append(_section(0x74, _mapped(others.application)))
    return b"".join(parts)


def _header(
    message: Message, properties: Mapping[str, Property], now_ms: int, delivery_count: int
) -> bytes:
    had_one = "JMS_AMQP_HEADER" in properties
    expiration = message.expiration
    durable = _NULL
    if message.durable:
        durable = b"\x41"
    elif "JMS_AMQP_HEADERDURABLE" in properties:
        durable = b"\x42"
    priority = _NULL
    if message.priority != _PRIORITY_DEFAULT or "JMS_AMQP_HEADERPRIORITY" in properties:
        priority = b"\x50" + bytes([message.priority & 0xFF])
    ttl = _uint(min(max(expiration - now_ms, 1), _UINT_MAX)) if expiration else _NULL
    first = properties.get("JMS_AMQP_FirstAcquirer")
    acquirer = _NULL if first is None else (b"\x41" if first.value else b"\x42")
    count = _uint(delivery_count) if delivery_count > 0 else _NULL
    fields = [durable, priority, ttl, acquirer, count]
    if not had_one and all(field == _NULL for field in fields):
        return b""
    return _section(0x70, _listed(fields))


class _Others:
    """What of the properties stands in maps, by encoded key."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self.annotations: dict[bytes, bytes] = {}
        self.delivery: dict[bytes, bytes] = {}
        self.application: dict[bytes, bytes] = {}
        for name, item in properties.items():
            if name in _ELSEWHERE:
                continue
            if name.startswith("JMS"):
                self._of_jms(name, item)
            elif not name.startswith(("__AMQ_CID", "_AMQ_ROUTE_TO")):
                self.application[_string(name)] = _property(item.type, item.value)

    def _of_jms(self, name: str, item: Property) -> None:
        for prefix, into, is_encoded in (
            (_ENCODED_ANNOTATION, self.annotations, True),
            (_ANNOTATION, self.annotations, False),
            (_ENCODED_DELIVERY, self.delivery, True),
            (_DELIVERY, self.delivery, False),
        ):
            if name.startswith(prefix):
                key = _symbol(name.removeprefix(prefix))
                is_bytes = isinstance(item.value, bytes)
                into[key] = (
                    bytes(item.value)  # type: ignore[arg-type]
                    if is_encoded and is_bytes
                    else _property(item.type, item.value)
                )
                return
        if name.startswith("JMS_AMQP_"):
            return
        if name.startswith(("JMSX", "JMS_")):
            self.application[_string(name)] = _property(item.type, item.value)


def _annotations(message: Message, found: dict[bytes, bytes]) -> dict[bytes, bytes]:
    made = dict(found)
    made[_symbol("x-opt-jms-msg-type")] = b"\x51" + bytes([_KINDS.get(_type(message), 0)])
    is_topic = message.routing_type is RoutingType.MULTICAST
    made[_symbol("x-opt-jms-dest")] = b"\x51\x01" if is_topic else b"\x51\x00"
    reply_to = message.reply_to
    if reply_to is not None:
        made[_symbol("x-opt-jms-reply-to")] = b"\x51" + bytes([_reply_kind(reply_to)])
    if message.scheduled_ms:
        made[_symbol("x-opt-delivery-time")] = _long(b"\x81", message.scheduled_ms)
    ingress = message.get("_AMQ_INGRESS_TIMESTAMP")
    if isinstance(ingress, int):
        made[_symbol("x-opt-ingress-time")] = _long(b"\x81", ingress)
    return made


def _type(message: Message) -> MessageType:
    try:
        return MessageType(message.type)
    except ValueError:
        return MessageType.DEFAULT


def _reply_kind(reply_to: str) -> int:
    for kind, prefix in enumerate(_REPLY_PREFIXES):
        if reply_to.startswith(prefix):
            return kind
    return 0


def _without_prefix(reply_to: str) -> str:
    for prefix in _REPLY_PREFIXES:
        if reply_to.startswith(prefix):
            return reply_to.removeprefix(prefix)
    return reply_to


def _optional(value: PropertyValue) -> bytes:
    return _string(value) if isinstance(value, str) else _NULL


def _properties(message: Message) -> list[bytes]:
    native = message.get("NATIVE_MESSAGE_ID")
    message_id = _NULL
    if isinstance(native, str):
        message_id = _id(native)
    elif message.user_id is not None:
        message_id = _string(f"ID:{uuid.UUID(bytes=message.user_id)}")
    user = message.get("_AMQ_VALIDATED_USER")
    if user is None:
        user = message.get("JMSXUserID")
    correlation = message.correlation_id
    reply_to = message.reply_to
    content_type = message.get("JMS_AMQP_ContentType")
    if content_type is None and message.type == MessageType.OBJECT:
        content_type = _OBJECT_CONTENT
    sequence = message.get("_AMQ_GROUP_SEQUENCE")
    return [
        message_id,
        _sized(0xA0, user.encode("utf-8", "replace")) if isinstance(user, str) else _NULL,
        _optional(message.address),
        _optional(message.get("JMSType")),
        _NULL if reply_to is None else _string(_without_prefix(reply_to)),
        _correlation(correlation),
        _symbol(content_type) if isinstance(content_type, str) else _NULL,
        _content_encoding(message.get("JMS_AMQP_ContentEncoding")),
        _long(b"\x83", message.expiration) if message.expiration else _NULL,
        _long(b"\x83", message.timestamp) if message.timestamp else _NULL,
        _optional(message.group_id),
        _uint(sequence) if isinstance(sequence, int) else _NULL,
        _optional(message.get("JMS_AMQP_ReplyToGroupID")),
    ]


def _content_encoding(value: PropertyValue) -> bytes:
    return _symbol(value) if isinstance(value, str) else _NULL


def _correlation(value: str | bytes | None) -> bytes:
    if value is None:
        return _NULL
    return _sized(0xA0, value) if isinstance(value, bytes) else _id(value)


# --- body -------------------------------------------------------------------------------------


def body_head(message: Message, size: int, *, is_text: bool) -> bytes:
    """Give what stands before a body whose bytes follow: a section of data, or a text.

    Args:
        message: it is of.
        size: bytes of what follows.
        is_text: it is a text in UTF-8.
    """
    length = size.to_bytes(4, "big")
    if is_text and message.get("JMS_AMQP_ORIGINAL_ENCODING") != _WAS_DATA:
        return b"\x00\x53\x77\xb1" + length
    return b"\x00\x53\x75\xb0" + length


def body_of(message: Message, body: bytes) -> bytes:
    """Give the section of a body; a footer behind it, where it had one.

    Args:
        message: whose type counts.
        body: as a Core message of that type has it, unpacked.
    """
    try:
        made = _body(message, body)
    except (RecordFormatError, UnicodeDecodeError):
        # Not what its type says: its bytes, at least.
        made = _data(body)
    return made + _footer(message.properties)


def _footer(properties: Mapping[str, Property]) -> bytes:
    found = {}
    for name, item in properties.items():
        if name.startswith(_ENCODED_FOOTER) and isinstance(item.value, bytes):
            found[_symbol(name.removeprefix(_ENCODED_FOOTER))] = item.value
        elif name.startswith(_FOOTER):
            found[_symbol(name.removeprefix(_FOOTER))] = _property(item.type, item.value)
    return _section(0x78, _mapped(found)) if found else b""


def _data(body: bytes) -> bytes:
    return _section(0x75, _sized(0xA0, body))


def _body(message: Message, body: bytes) -> bytes:
    was = message.get("JMS_AMQP_ORIGINAL_ENCODING")
    kind = _type(message)
    if kind is MessageType.BYTES:
        if was == _WAS_NULL and not body:
            return b""
        if was is None and _is_value_section(body) and message.get("NATIVE_MESSAGE_ID") is not None:
            # A value of which Core has no type, kept in its encoding.
            return body
        return _section(0x77, _sized(0xA0, body)) if was == _WAS_BINARY else _data(body)
    if kind is MessageType.OBJECT:
        return _object(body, was)
    if kind is MessageType.MAP:
        return _section(0x77, _map(body))
    if kind is MessageType.STREAM:
        items = _compound(0xC0, [_property(one.type, one.value) for one in stream_items(body)])
        return _section(0x76 if was == _WAS_SEQUENCE else 0x77, items)
    reader = BodyReader(body)
    text = NSS.read(reader) if reader.remaining else None
    if kind is MessageType.DEFAULT and (reader.remaining or text is None):
        return b"" if not body else _data(body)
    if was == _WAS_NULL and not text:
        return b""
    if text is None:
        return _section(0x77, _NULL)
    if was == _WAS_DATA:
        return _data(text.encode("utf-8", "replace"))
    return _section(0x77, _string(text))


def _is_value_section(body: bytes) -> bool:
    return body[:3] == b"\x00\x53\x77"


def _object(body: bytes, was: PropertyValue) -> bytes:
    reader = BodyReader(body)
    data = reader.read_sized_bytes() if reader.remaining else b""
    return _section(0x77, _sized(0xA0, data)) if was == _WAS_BINARY else _data(data)


def _map(body: bytes) -> bytes:
    reader = BodyReader(body)
    items = TYPED_PROPERTIES.read(reader) if reader.remaining else ()
    return _mapped({_string(item.name): _property(item.type, item.value) for item in items})
