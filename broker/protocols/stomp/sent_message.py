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
from typing import TYPE_CHECKING, Final

from broker.model.bodies import encode_text
from broker.model.message import GROUP_ID, Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.scheduled_time import SCHEDULED
from broker.protocols.stomp.errors import StompError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.stomp.destinations import Destination

__all__ = ["CONNECTION_ID", "CONTENT_TYPE", "PREFIX", "content_of", "message_of"]

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
_STRING: Final = PropertyType.STRING
_LONG: Final = PropertyType.LONG


def message_of(
    headers: Mapping[str, str],
    destination: Destination,
    now_ms: int,
    type: MessageType,
    body: bytes,
) -> Message:
    """Give the message of a SEND; its id is to come.

    Args:
        headers: of the frame.
        destination: what its header `destination` names.
        now_ms: ms since 1970.
        type: of the body, as content_of() says.
        body: likewise; empty where it follows in parts.

    Raises:
        StompError: a header has a value that is not valid.
    """
    properties: dict[str, Property] = {}
    for name, value in headers.items():
        if name not in _OF_THE_FRAME:
            name = _RENAMED.get(name, name)
            properties[name] = Property(name, _STRING, value)
    if _GROUP_SEQUENCE in properties:
        # The one number among Artemis's names that clients set; it reads it from a text.
        number = _number(headers, _GROUP_SEQUENCE, -(2**31), 2**31 - 1)
        properties[_GROUP_SEQUENCE] = Property(_GROUP_SEQUENCE, PropertyType.INT, number)
    scheduled_ms = _scheduled_ms(headers, now_ms)
    if scheduled_ms:
        properties[SCHEDULED] = Property(SCHEDULED, _LONG, scheduled_ms)
    if destination.prefix:
        properties[PREFIX] = Property(PREFIX, _STRING, destination.prefix)
    if destination.routing_property is not None:
        properties[destination.routing_property.name] = destination.routing_property
    priority = headers.get("priority", _PRIORITY_DEFAULT)
    if not (len(priority) == 1 and priority in "0123456789"):
        _number(headers, "priority", 0, _PRIORITY_MAX)
    persistent = headers.get("persistent")
    expires = headers.get("expires")
    return Message(
        destination.name,
        body,
        type=type,
        durable=persistent is not None and persistent.lower() == "true",
        priority=int(priority),
        expiration=0 if expires is None else _number(headers, "expires", 0, _LONG_MAX),
        timestamp=now_ms,
        properties=properties.values(),
    )


def content_of(content_length: int, body: bytes) -> tuple[MessageType, bytes]:
    """Give type and body of a message: bytes where the client told their number, else a text.

    What should be a text and is not UTF-8 is kept as bytes; Artemis replaces what it cannot read.
    """
    if content_length >= 0:
        return MessageType.BYTES, body
    try:
        return MessageType.TEXT, encode_text(body.decode())
    except UnicodeDecodeError:
        return MessageType.BYTES, body


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
