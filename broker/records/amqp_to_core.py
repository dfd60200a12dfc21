"""An AMQP message as Core consumers, selectors and listings see it (AmqpCoreConverter).

Headers, annotations and properties become headers and properties of Core; the body becomes one of
the types of a JMS client. What Artemis refuses to convert is converted here all the same, since
the AMQP message itself stays as it is: a timestamp is its milliseconds, a uuid its text, any other
value its AMQP encoding.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.bodies import encode_map, encode_stream, encode_text
from broker.model.encoding import BodyWriter
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.records.amqp_sections import read_body, read_sections
from broker.records.amqp_values import encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.model.properties import TypedProperties
    from broker.records.amqp_sections import AmqpBody, AmqpMap, AmqpSections, BodyStart
    from broker.records.amqp_values import AmqpValue

__all__ = ["CoreContent", "core_content"]

PRIORITY_MAX: Final = 9
PRIORITY_DEFAULT: Final = 4
ADDRESS_PROPERTY: Final = "_AMQ_AD"
ORIGINAL_ENCODING: Final = "JMS_AMQP_ORIGINAL_ENCODING"
_OBJECT_CONTENT: Final = "application/x-java-serialized-object"
_BYTES_CONTENT: Final = "application/octet-stream"
_TEXTUAL: Final = ("xml", "json", "javascript", "ecmascript", "xml-dtd")
_REPLY_PREFIXES: Final = ("queue://", "topic://", "temp-queue://", "temp-topic://")
# Kinds of `x-opt-jms-dest` that are multicast; the others are anycast.
_TOPICS: Final = (1, 3)

# JMS_AMQP_ORIGINAL_ENCODING: what the body was.
_NULL, _DATA, _SEQUENCE, _VALUE_NULL, _VALUE_STRING, _VALUE_BINARY, _VALUE_MAP, _VALUE_LIST = range(
    1, 9
)

_WHOLE: Final = frozenset({"ubyte", "byte", "ushort", "short", "uint", "int", "ulong", "long"})
_WIDTHS: Final = (
    (PropertyType.BYTE, 7),
    (PropertyType.SHORT, 15),
    (PropertyType.INT, 31),
    (PropertyType.LONG, 63),
)
# The narrowest type that an AMQP integer becomes.
_NARROWEST: Final = {
    "ubyte": 0,
    "byte": 0,
    "ushort": 1,
    "short": 1,
    "uint": 2,
    "int": 2,
    "ulong": 3,
    "long": 3,
}
_PLAIN: Final = {
    "null": PropertyType.NULL,
    "boolean": PropertyType.BOOLEAN,
    "float": PropertyType.FLOAT,
    "double": PropertyType.DOUBLE,
    "string": PropertyType.STRING,
    "symbol": PropertyType.STRING,
    "binary": PropertyType.BYTES,
}


class CoreContent(NamedTuple):
    """What a Core message is made of.

    Attributes:
        type: a MessageType.
        body: of that type.
        durable: None where the message does not say.
        priority: 0 … 9.
        ttl_ms: time to live; 0 where the message does not say.
        expiration: ms since 1970; 0 where the message does not say.
        timestamp: ms since 1970; 0 is none.
        user_id: 16 bytes, or None.
        address: that it was sent to, as the message says; None where it does not.
        properties: by name.
        delay_ms: that it asks for before it is delivered.
        has_delivery_annotations: it has that section.
    """

    type: int
    body: bytes
    durable: bool | None
    priority: int
    ttl_ms: int
    expiration: int
    timestamp: int
    user_id: bytes | None
    address: str | None
    properties: dict[str, Property]
    delay_ms: int
    has_delivery_annotations: bool


def core_content(encoded: bytes, extra: TypedProperties) -> CoreContent:
    """Convert a message.

    Args:
        encoded: all its sections.
        extra: properties that a broker has added beside them.

    Raises:
        RecordFormatError: these bytes are not AMQP sections.
    """
    sections = read_sections(encoded)
    kind, body, encoding = _body(read_body(encoded), content_type_of(sections))
    return content_of(sections, extra, kind, body, encoding)


def content_type_of(sections: AmqpSections) -> str | None:
    """Give what a message says of its body; None where it says nothing."""
    return _text((sections.properties or {}).get("content-type"))


def content_of(
    sections: AmqpSections, extra: TypedProperties, kind: int, body: bytes, encoding: int
) -> CoreContent:
    """Convert the sections before a body.

    Args:
        sections: of the message.
        extra: properties that a broker has added beside them.
        kind: a MessageType.
        body: of that type, or none where it is kept elsewhere.
        encoding: what the body was (JMS_AMQP_ORIGINAL_ENCODING); 0 is not noted.
    """
    header, named = sections.header or {}, sections.properties or {}
    found: dict[str, Property] = {}

    def put(name: str, type: PropertyType, value: bool | float | str | bytes | None) -> None:
        found[name] = Property(name, type, value)

    if encoding:
        put(ORIGINAL_ENCODING, PropertyType.SHORT, encoding)
    for name, type, value in _of_header(sections.header):
        put(name, type, value)
    for name, type, value in _of_annotations(sections.message_annotations or ()):
        put(name, type, value)
    for key, one in sections.application_properties or ():
        put(str(key.value), *_property(one))
    user_id = None
    if named:
        user_id = _user_id(named.get("message-id"))
        for name, type, value in _of_properties(sections):
            put(name, type, value)
    for item in extra:
        if item.name != ADDRESS_PROPERTY:
            found[item.name] = item
    annotations = dict(_by_key(sections.message_annotations or ()))
    routing = _routing_type(annotations)
    if routing is not None:
        put("_AMQ_ROUTING_TYPE", PropertyType.BYTE, routing)
    kept = next((one.value for one in extra if one.name == ADDRESS_PROPERTY), None)
    address = kept if isinstance(kept, str) else _text(named.get("to"))
    durable = header.get("durable")
    return CoreContent(
        kind,
        body,
        None if durable is None or durable.value is None else bool(durable.value),
        max(0, min(_number(header.get("priority"), PRIORITY_DEFAULT), PRIORITY_MAX)),
        _number(header.get("ttl"), 0),
        max(0, _number(named.get("absolute-expiry-time"), 0)),
        _number(named.get("creation-time"), 0),
        user_id,
        address,
        found,
        max(0, _number(annotations.get("x-opt-delivery-delay"), 0)),
        sections.delivery_annotations_size > 0,
    )


# --- values -----------------------------------------------------------------------------------


def _is_there(value: AmqpValue | None) -> bool:
    return value is not None and value.value is not None


def _text(value: AmqpValue | None) -> str | None:
    return str(value.value) if value is not None and value.value is not None else None


def _number(value: AmqpValue | None, default: int) -> int:
    return value.value if value is not None and isinstance(value.value, int) else default


def _property(value: AmqpValue) -> tuple[PropertyType, bool | int | float | str | bytes | None]:
    """Give type and value of a property; bytes of the encoding where Core has no such type."""
    kind, plain = value.type, value.value
    if kind in _WHOLE:
        for type, bits in _WIDTHS[_NARROWEST[kind] :]:
            if -1 << bits <= plain < 1 << bits:
                return type, plain
        # An unsigned long that is too large comes as Java has it.
        return PropertyType.LONG, plain - (1 << 64)
    if kind in _PLAIN:
        return _PLAIN[kind], plain
    if kind == "char" and plain <= 0xFFFF:
        return PropertyType.CHAR, chr(plain)
    if kind == "timestamp":
        return PropertyType.LONG, plain
    if kind == "uuid":
        return PropertyType.STRING, str(plain)
    return PropertyType.BYTES, encode_value(value)


def _by_key(pairs: AmqpMap) -> Iterator[tuple[str, AmqpValue]]:
    for key, value in pairs:
        yield str(key.value), value


# --- sections ---------------------------------------------------------------------------------

_Found = tuple[str, PropertyType, "bool | int | float | str | bytes | None"]


def _of_header(header: dict[str, AmqpValue] | None) -> Iterator[_Found]:
    if header is None:
        return
    yield "JMS_AMQP_HEADER", PropertyType.BOOLEAN, True
    for field in ("durable", "priority"):
        if _is_there(header.get(field)):
            yield f"JMS_AMQP_HEADER{field.upper()}", PropertyType.BOOLEAN, True
    first, count = header.get("first-acquirer"), header.get("delivery-count")
    if first is not None and first.type == "boolean":
        yield "JMS_AMQP_FirstAcquirer", PropertyType.BOOLEAN, first.value
    if count is not None and count.type == "uint":
        yield "JMSXDeliveryCount", PropertyType.LONG, count.value + 1


def _of_annotations(pairs: AmqpMap) -> Iterator[_Found]:
    for key, value in _by_key(pairs):
        if isinstance(value.value, int):
            # A delay is counted from when the broker took it: the reference has its time.
            if key == "x-opt-delivery-time":
                yield "_AMQ_SCHED_DELIVERY", PropertyType.LONG, value.value
            elif key == "x-opt-ingress-time":
                yield "_AMQ_INGRESS_TIMESTAMP", PropertyType.LONG, value.value
        type, plain = _property(value)
        is_core = type is not PropertyType.BYTES or value.type == "binary"
        prefix = "JMS_AMQP_MA_" if is_core else "JMS_AMQP_ENCODED_MA_"
        yield prefix + key, type, plain


def _routing_type(annotations: dict[str, AmqpValue]) -> int | None:
    asked, kind = annotations.get("x-opt-routing-type"), annotations.get("x-opt-jms-dest")
    if asked is not None and asked.value in (0, 1):
        return int(asked.value)
    if kind is not None and isinstance(kind.value, int) and 0 <= kind.value < len(_REPLY_PREFIXES):
        return 0 if kind.value in _TOPICS else 1
    return None


def _of_properties(sections: AmqpSections) -> Iterator[_Found]:
    named = sections.properties or {}
    text = PropertyType.STRING
    message_id, correlation = named.get("message-id"), named.get("correlation-id")
    if message_id is not None and message_id.value is not None:
        yield "NATIVE_MESSAGE_ID", text, _message_id_text(message_id)
    user = named.get("user-id")
    if user is not None and isinstance(user.value, bytes):
        yield "_AMQ_VALIDATED_USER", text, user.value.decode(errors="replace")
    if correlation is not None and correlation.value is not None:
        if correlation.type == "binary":
            yield "JMSCorrelationID", PropertyType.BYTES, correlation.value
        else:
            yield "JMSCorrelationID", text, _id_text(correlation)
    reply_to = _text(named.get("reply-to"))
    if reply_to is not None:
        kind = dict(_by_key(sections.message_annotations or ())).get("x-opt-jms-reply-to")
        number = _number(kind, 0)
        prefix = _REPLY_PREFIXES[number if 0 <= number < len(_REPLY_PREFIXES) else 0]
        yield "JMSReplyTo", text, prefix + reply_to
    for field, name in (
        ("subject", "JMSType"),
        ("content-type", "JMS_AMQP_ContentType"),
        ("content-encoding", "JMS_AMQP_ContentEncoding"),
        ("group-id", "_AMQ_GROUP_ID"),
        ("reply-to-group-id", "JMS_AMQP_ReplyToGroupID"),
    ):
        value = _text(named.get(field))
        if value is not None:
            yield name, text, value
    sequence = named.get("group-sequence")
    if sequence is not None and sequence.type == "uint":
        # As Java has an unsigned integer.
        number = sequence.value - (1 << 32) if sequence.value >= 1 << 31 else sequence.value
        yield "_AMQ_GROUP_SEQUENCE", PropertyType.INT, number


def _id_text(value: AmqpValue) -> str:
    """Give an id as JMS has it (AMQPMessageIdHelper)."""
    if value.type == "uuid":
        return f"ID:AMQP_UUID:{value.value}"
    if value.type == "ulong":
        return f"ID:AMQP_ULONG:{value.value}"
    if value.type == "binary":
        return f"ID:AMQP_BINARY:{value.value.hex().upper()}"
    return str(value.value)


def _message_id_text(value: AmqpValue) -> str:
    text = _id_text(value)
    if value.type != "string":
        return text
    if not text.startswith("ID:"):
        return f"ID:AMQP_NO_PREFIX:{text}"
    typed = ("AMQP_UUID:", "AMQP_ULONG:", "AMQP_BINARY:", "AMQP_STRING:", "AMQP_NO_PREFIX:")
    return f"ID:AMQP_STRING:{text}" if text[3:].startswith(typed) else text


def _user_id(message_id: AmqpValue | None) -> bytes | None:
    """Give the 16 bytes that Core clients know the message by; the same ones each time."""
    if message_id is None or message_id.value is None:
        return None
    if isinstance(message_id.value, uuid.UUID):
        return message_id.value.bytes
    return uuid.uuid5(uuid.NAMESPACE_OID, _id_text(message_id)).bytes


# --- body -------------------------------------------------------------------------------------


def _is_textual(content_type: str | None) -> bool:
    """Whether it is text in UTF-8."""
    if content_type is None:
        return False
    main, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [one.partition("=")[2].strip('"') for one in parameters if "charset" in one]
    if charsets and charsets[0] not in ("utf-8", "utf8"):
        return False
    family, _, kind = main.partition("/")
    return family == "text" or (
        family == "application" and (kind in _TEXTUAL or kind.endswith(("+xml", "+json")))
    )


def _object(data: bytes) -> bytes:
    writer = BodyWriter()
    writer.write_sized_bytes(data)
    return writer.getvalue()


def _body(body: AmqpBody | None, content_type: str | None) -> tuple[int, bytes, int]:
    """Give type, bytes and what the body was; 0 where that is not noted."""
    is_object = content_type is not None and content_type.lower() == _OBJECT_CONTENT
    if body is None:
        if is_object:
            return MessageType.OBJECT, b"", _NULL
        if content_type is None or content_type == _BYTES_CONTENT:
            return MessageType.BYTES, b"", _NULL
        kind = MessageType.TEXT if _is_textual(content_type) else MessageType.DEFAULT
        return kind, encode_text(None) if kind is MessageType.TEXT else b"", _NULL
    if body.section == "data":
        return *_of_data(body.value.value, is_object, content_type), _DATA
    value = body.value
    if body.section == "sequence" or value.type == "list":
        items = _stream(value)
        if items is None:
            return MessageType.BYTES, body.encoded, 0
        return MessageType.STREAM, items, _SEQUENCE if body.section == "sequence" else _VALUE_LIST
    if value.value is None or value.type == "string":
        noted = _VALUE_NULL if value.value is None else _VALUE_STRING
        return MessageType.TEXT, encode_text(value.value), noted
    if value.type == "binary":
        if is_object:
            return MessageType.OBJECT, _object(value.value), _VALUE_BINARY
        return MessageType.BYTES, value.value, _VALUE_BINARY
    if value.type == "map":
        values = {str(key.value): Property("", *_property(one)) for key, one in value.value}
        return MessageType.MAP, encode_map(values), _VALUE_MAP
    return MessageType.BYTES, body.encoded, 0


def body_type(start: BodyStart, content_type: str | None) -> tuple[int, int]:
    """Give the type that a body becomes, by its first bytes, and what it was; 0 is not noted.

    Of a list it is not known yet whether Core has types for all items: core_body() says so.
    """
    is_object = content_type is not None and content_type.lower() == _OBJECT_CONTENT
    if start.section == "data":
        if is_object:
            return MessageType.OBJECT, _DATA
        return MessageType.TEXT if _is_textual(content_type) else MessageType.BYTES, _DATA
    if start.section == "sequence":
        return MessageType.STREAM, _SEQUENCE
    if start.type == "binary":
        return MessageType.OBJECT if is_object else MessageType.BYTES, _VALUE_BINARY
    return _OF_VALUES.get(start.type, (MessageType.BYTES, 0))


_OF_VALUES: Final = {
    "null": (MessageType.TEXT, _VALUE_NULL),
    "string": (MessageType.TEXT, _VALUE_STRING),
    "map": (MessageType.MAP, _VALUE_MAP),
    "list": (MessageType.STREAM, _VALUE_LIST),
}


def core_body(encoded: bytes, content_type: str | None) -> tuple[int, bytes]:
    """Convert a body as a whole: its type and bytes.

    Args:
        encoded: its sections, and what is behind them.
        content_type: as the message says.

    Raises:
        RecordFormatError: these bytes are not AMQP sections.
    """
    kind, body, _ = _body(read_body(encoded), content_type)
    return kind, body


def _of_data(data: bytes, is_object: bool, content_type: str | None) -> tuple[int, bytes]:
    if is_object:
        return MessageType.OBJECT, _object(data)
    if _is_textual(content_type):
        try:
            return MessageType.TEXT, encode_text(data.decode())
        except UnicodeDecodeError:
            pass
    return MessageType.BYTES, data


def _stream(items: AmqpValue) -> bytes | None:
    """Give a list as the body of a stream message; None if Core has no type for an item."""
    found = []
    for item in items.value:
        type, plain = _property(item)
        if type is PropertyType.BYTES and item.type != "binary":
            return None
        found.append(Property("", type, plain))
    return encode_stream(found)
