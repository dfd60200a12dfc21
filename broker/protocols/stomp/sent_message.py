"""Headers and body of a SEND as a Core message, in Artemis's names (StompUtils).

    priority, persistent, expires            fields of the message
    correlation-id, type, reply-to           JMSCorrelationID, JMSType, JMSReplyTo
    JMSXGroupID, content-type                _AMQ_GROUP_ID, _AMQ_CONTENT_TYPE
    AMQ_SCHEDULED_TIME, AMQ_SCHEDULED_DELAY  _AMQ_SCHED_DELIVERY
    destination, receipt, transaction, …     none: they are about the frame
    any other                                a text property of that name

Artemis stores those about the frame as properties, too. Here they would come back to consumers as
if the sender had meant something by them.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from broker.model.core_layout import written
from broker.model.encoding import BodyWriter
from broker.model.message import GROUP_ID, ROUTING_TYPE_PROPERTY
from broker.model.message_bytes import encoded_name
from broker.model.message_types import MessageType
from broker.model.properties import TYPED_PROPERTIES, Property, PropertyType
from broker.model.scheduled_time import SCHEDULED
from broker.protocols.stomp.errors import StompError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.stomp.destinations import Destination

__all__ = ["CONNECTION_ID", "CONTENT_TYPE", "PREFIX", "content_of", "encoded", "message_of"]

CONTENT_TYPE: Final = "_AMQ_CONTENT_TYPE"
PREFIX: Final = "_AMQ_PREFIX"
# Of the connection that sent it; subscriptions with no-local look at it.
CONNECTION_ID: Final = "__AMQ_CID"
_GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
_PRIORITY_DEFAULT: Final = "4"
_PRIORITY_MAX: Final = 9
_LONG_MAX: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_OF_THE_FRAME: Final = frozenset(
    {
        *("destination", "destination-type", "content-length", "receipt", "transaction"),
        *("priority", "persistent", "expires", "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY"),
    }
)
_RENAMED: Final = {
    "correlation-id": "JMSCorrelationID",
    "type": "JMSType",
    "reply-to": "JMSReplyTo",
    "JMSXGroupID": GROUP_ID,
    "content-type": CONTENT_TYPE,
}
_INT: Final = struct.Struct(">i").pack
_TEXT_TAG: Final = bytes([PropertyType.STRING])
# In front of properties: whether there are, and how many.
_COUNT_SIZE: Final = 5
_BYTES: Final = int(MessageType.BYTES)
_TEXT: Final = int(MessageType.TEXT)


def message_of(
    headers: Mapping[str, str],
    destination: Destination,
    now_ms: int,
    type: int,
    body: bytes,
    own: Mapping[str, str],
) -> bytes:
    """Give the message of a SEND, as `Message.decode()` takes it; its id is to come.

    Args:
        headers: of the frame.
        destination: what its header `destination` names.
        now_ms: ms since 1970.
        type: of the body, as content_of() says.
        body: likewise; empty where it follows in parts.
        own: texts that the broker adds as properties.

    Raises:
        StompError: a header has a value that is not valid.
    """
    properties: dict[str, bytes] = {}
    for name, value in headers.items():
        if name not in _OF_THE_FRAME:
            name = _RENAMED.get(name, name)
            properties[name] = _text_property(name, value)
    for name, value in own.items():
        properties[name] = _text_property(name, value)
    if destination.prefix:
        properties[PREFIX] = _text_property(PREFIX, destination.prefix)
    if destination.routing_property is not None:
        properties[ROUTING_TYPE_PROPERTY] = destination.routing_property
    if _GROUP_SEQUENCE in properties:
        # The one number among Artemis's names that clients set; it reads it from a text.
        number = _number(headers, _GROUP_SEQUENCE, -(2**31), 2**31 - 1)
        properties[_GROUP_SEQUENCE] = encoded(_GROUP_SEQUENCE, PropertyType.INT, number)
    scheduled_ms = _scheduled_ms(headers, now_ms)
    if scheduled_ms:
        properties[SCHEDULED] = encoded(SCHEDULED, PropertyType.LONG, scheduled_ms)
    priority = headers.get("priority", _PRIORITY_DEFAULT)
    if not (len(priority) == 1 and priority in "0123456789"):
        _number(headers, "priority", 0, _PRIORITY_MAX)
    persistent = headers.get("persistent")
    expires = headers.get("expires")
    return written(
        memoryview(body),
        0,
        destination.name,
        None,
        type,
        persistent is not None and persistent.lower() == "true",
        0 if expires is None else _number(headers, "expires", 0, _LONG_MAX),
        now_ms,
        int(priority),
        memoryview(_all(properties)),
    )


def _text_property(name: str, value: str) -> bytes:
    """Give one property of many; no header of a frame has half of a surrogate pair."""
    key, text = encoded_name(name), value.encode("utf-16-le")
    return b"%b%b%b%b%b" % (_INT(len(key)), key, _TEXT_TAG, _INT(len(text)), text)


def encoded(name: str, kind: PropertyType, value: int) -> bytes:
    """Give the bytes of a property that is a number."""
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, (Property(name, kind, value),))
    return writer.getvalue()[_COUNT_SIZE:]


def _all(properties: Mapping[str, bytes]) -> bytes:
    if not properties:
        return b"\0"
    return b"\1%b%b" % (_INT(len(properties)), b"".join(properties.values()))


def content_of(content_length: int, body: bytes) -> tuple[int, bytes]:
    """Give type and body of a message: bytes where the client told their number, else a text.

    What should be a text and is not UTF-8 is kept as bytes; Artemis replaces what it cannot read.
    """
    if content_length >= 0:
        return _BYTES, body
    try:
        text = body.decode().encode("utf-16-le")
    except UnicodeDecodeError:
        return _BYTES, body
    # As encode_text() does.
    return _TEXT, b"\1%b%b" % (_INT(len(text)), text)


def _scheduled_ms(headers: Mapping[str, str], now_ms: int) -> int:
    """When it is to be delivered, ms since 1970; 0 is at once. A time counts before a delay."""
    if "AMQ_SCHEDULED_TIME" in headers:
        time_ms = _number(headers, "AMQ_SCHEDULED_TIME", -_LONG_MAX - 1, _LONG_MAX)
        if time_ms > 0:
            return time_ms
    if "AMQ_SCHEDULED_DELAY" in headers:
        delay_ms = _number(headers, "AMQ_SCHEDULED_DELAY", -_LONG_MAX - 1, _LONG_MAX)
        if delay_ms > 0:
            return min(now_ms + delay_ms, _LONG_MAX)
    return 0


def _number(headers: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = headers[name].strip()
    if _NUMBER.fullmatch(text) is not None:
        value = int(text)
        if least <= value <= most:
            return value
    raise StompError(f"header {name} is not a number from {least} to {most}: {text[:40]}")
