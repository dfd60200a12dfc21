"""A message as a MESSAGE frame: its headers in Artemis's order, and its body as bytes.

    bytes, object            the body as it is, with content-length in front of message-id
    text                     UTF-8; content-length behind all headers, not in version 1.0
    map, stream              JSON; bytes in it as base64. Artemis sends bytes that end no frame
    none of these            a text where the body is one, else as bytes

A body that is not what its type says is sent as bytes. What any client has stored becomes a frame:
the consumer of a message that did not would be stuck behind it.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from broker.model.bodies import decode_map, decode_stream
from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.java_text import double_text, float_text
from broker.model.message import ROUTING_TYPE_PROPERTY
from broker.model.message_types import MessageType
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.stomp.escapes import escape, escape_name
from broker.protocols.stomp.sent_message import CONTENT_TYPE, PREFIX
from broker.protocols.stomp.versions import Version
from broker.sessions.send_marks import INGRESS_TIMESTAMP, VALIDATED_USER

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.properties import Property, PropertyValue

__all__ = ["body_of", "is_text", "message_head"]

_REPLY_TO: Final = "JMSReplyTo"
_CORRELATION_ID: Final = "JMSCorrelationID"
_TYPE: Final = "JMSType"
# Headers that a message has by itself, so a property of that name cannot stand for them. What
# Artemis stores of a SEND's own headers is among them.
_OWN: Final = frozenset(
    {
        *("subscription", "content-length", "message-id", "destination", "correlation-id"),
        *("expires", "redelivered", "priority", "persistent", "reply-to", "timestamp", "type"),
        *("content-type", "JMSXUserID", "destination-type", "ingress-timestamp", "ack"),
        *("receipt", "receipt-id", "transaction"),
    }
)
# Properties that stand in headers of other names.
_RENAMED: Final = frozenset(
    {
        *(_REPLY_TO, _CORRELATION_ID, _TYPE, CONTENT_TYPE, PREFIX, ROUTING_TYPE_PROPERTY),
        VALIDATED_USER,
    }
)
_NOT_ITSELF: Final = _OWN | _RENAMED | {""}
# Between timestamp and destination-type, in this order.
_SOMETIMES: Final = (
    (_TYPE, "type"),
    (CONTENT_TYPE, "content-type"),
    (VALIDATED_USER, "JMSXUserID"),
)
_ROUTING_TYPES: Final = {one: f"destination-type:{one.name}" for one in RoutingType}


def is_text(message: Message) -> bool:
    """Whether a large body is to be sent as the text that it holds."""
    return message.type == MessageType.TEXT


def body_of(message: Message, body: bytes) -> tuple[bytes, bool]:
    """Give the bytes of a frame's body, and whether a receiver needs their number: no text.

    Args:
        message: whose type counts.
        body: as a Core message of that type has it, unpacked.
    """
    kind = message.type
    if kind == MessageType.BYTES or kind == MessageType.OBJECT:
        return body, True
    try:
        if kind == MessageType.MAP:
            return _json(decode_map(body)), False
        if kind == MessageType.STREAM:
            return _json(decode_stream(body)), False
        reader = BodyReader(body)
        text = NSS.read(reader) if reader.remaining else None
        if reader.remaining and kind != MessageType.TEXT:
            return body, True
    except (RecordFormatError, UnicodeDecodeError):
        return body, True
    return (b"" if text is None else text.encode("utf-8", "replace")), False


def _json(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False, default=_base64).encode("utf-8", "replace")


def _base64(value: object) -> str:
    assert isinstance(value, bytes), "all else JSON has"
    return base64.b64encode(value).decode()


def message_head(
    message: Message,
    message_id: str,
    subscription: str,
    delivery_count: int,
    version: Version,
    *,
    body_size: int | None,
    is_text: bool,
    wants_ack: bool,
) -> bytes:
    """Give all of a MESSAGE frame before its body.

    Args:
        message: of any protocol.
        message_id: for the header of that name, and for `ack`.
        subscription: the client's id of it.
        delivery_count: how often it was delivered, this time included.
        version: of the frame.
        body_size: bytes of the body; None leaves it untold.
        is_text: of the body, which decides where its size stands.
        wants_ack: the client acknowledges messages of the subscription.
    """
    properties = message.properties
    lines = ["MESSAGE", _line("subscription", subscription, version)]
    if body_size is not None and not is_text:
        lines.append(f"content-length:{body_size}")
    lines.append(f"message-id:{message_id}")
    address = message.address or ""
    prefix = properties.get(PREFIX)
    if prefix is not None:
        address = _text(prefix.value) + address
    lines.append(_line("destination", address, version))
    known = properties.get(_CORRELATION_ID)
    if known is not None:
        lines.append(_line("correlation-id", _text(known.value), version))
    lines.append(
        f"expires:{message.expiration}\n"
        f"redelivered:{'true' if delivery_count > 1 else 'false'}\n"
        f"priority:{message.priority}\n"
        f"persistent:{'true' if message.durable else 'false'}"
    )
    known = properties.get(_REPLY_TO)
    if known is not None:
        lines.append(_line("reply-to", _text(known.value), version))
    lines.append(f"timestamp:{message.timestamp}")
    for name, header in _SOMETIMES:
        known = properties.get(name)
        if known is not None:
            lines.append(_line(header, _text(known.value), version))
    routing_type = message.routing_type
    if routing_type is not None:
        lines.append(_ROUTING_TYPES[routing_type])
    known = properties.get(INGRESS_TIMESTAMP)
    if known is not None:
        lines.append(f"ingress-timestamp:{_text(known.value)}")
    for name, item in properties.items():
        if name not in _NOT_ITSELF:
            if not name.isalnum():
                name = escape_name(name, version)
            lines.append(_line(name, _text_of(item), version))
    if wants_ack and version is Version.V1_2:
        lines.append(f"ack:{message_id}")
    if body_size and is_text and version is not Version.V1_0:
        lines.append(f"content-length:{body_size}")
    lines.append("\n")
    # Half of a surrogate pair, which Java's texts may have, cannot be encoded.
    return "\n".join(lines).encode("utf-8", "replace")


def _line(name: str, text: str, version: Version) -> str:
    """Give a header; most values have nothing to escape."""
    return f"{name}:{text}" if text.isalnum() else f"{name}:{escape(text, version)}"


def _text_of(item: Property) -> str:
    """Give the value of a property as Artemis's language writes it; null is empty."""
    value = item.value
    if item.type is PropertyType.FLOAT and isinstance(value, float):
        return float_text(value)
    return _text(value)


def _text(value: PropertyValue) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        # Artemis writes the name of a Java object.
        return base64.b64encode(value).decode()
    return str(value)
