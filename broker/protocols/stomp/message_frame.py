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
from broker.protocols.stomp.frames import encode_head
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
    get = message.get
    headers: list[tuple[str, str]] = [("subscription", subscription)]
    if body_size is not None and not is_text:
        headers.append(("content-length", str(body_size)))
    headers.append(("message-id", message_id))
    prefix = get(PREFIX)
    address = message.address or ""
    headers.append(("destination", f"{prefix}{address}" if isinstance(prefix, str) else address))
    correlation_id = get(_CORRELATION_ID)
    if correlation_id is not None:
        headers.append(("correlation-id", _text(correlation_id)))
    headers += (
        ("expires", str(message.expiration)),
        ("redelivered", "true" if delivery_count > 1 else "false"),
        ("priority", str(message.priority)),
        ("persistent", "true" if message.durable else "false"),
    )
    reply_to = get(_REPLY_TO)
    if reply_to is not None:
        headers.append(("reply-to", _text(reply_to)))
    headers.append(("timestamp", str(message.timestamp)))
    for name, known in (
        (_TYPE, "type"),
        (CONTENT_TYPE, "content-type"),
        (VALIDATED_USER, "JMSXUserID"),
    ):
        value = get(name)
        if value is not None:
            headers.append((known, _text(value)))
    routing_type = message.routing_type
    if routing_type is not None:
        headers.append(("destination-type", RoutingType(routing_type).name))
    ingress_ms = get(INGRESS_TIMESTAMP)
    if ingress_ms is not None:
        headers.append(("ingress-timestamp", _text(ingress_ms)))
    for item in message.properties.values():
        name = item.name
        if name not in _RENAMED and name not in _OWN and name:
            headers.append((name, _text_of(item)))
    if wants_ack and version is Version.V1_2:
        headers.append(("ack", message_id))
    if body_size and is_text and version is not Version.V1_0:
        headers.append(("content-length", str(body_size)))
    return encode_head("MESSAGE", headers, version)


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
