"""A message of any protocol as a PUBLISH: its payload, and what MQTT 5 has properties for.

bytes, map, stream, object    the body as it is
text                          UTF-8
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.message_types import MessageType
from broker.protocols.large_content import unpacked
from broker.protocols.mqtt import message_properties as names
from broker.protocols.mqtt.properties import NO_PROPERTIES, PropertyId
from broker.protocols.mqtt.wire import SIZE_MAX

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.protocols.mqtt.properties import Properties

__all__ = ["is_text", "own_qos", "payload_of", "properties_of"]

_QOS_MAX: Final = 2
_EXPIRY_MAX_S: Final = 2**32 - 1


def is_text(message: Message) -> bool:
    """Whether its body is a text, which becomes UTF-8."""
    return message.type == MessageType.TEXT


def payload_of(message: Message) -> bytes:
    """Give the payload of a regular message; a text that is none is sent as it is stored."""
    body = unpacked(message)
    if not is_text(message):
        return body
    try:
        reader = BodyReader(body)
        text = NSS.read(reader) if reader.remaining else None
    except RecordFormatError:
        return body
    return b"" if text is None else text.encode("utf-8", "replace")


def own_qos(message: Message) -> int:
    """Give the QoS of a message; one of another protocol has QoS 2, as in Artemis."""
    own = message.get(names.QOS)
    return own if isinstance(own, int) and 0 <= own <= _QOS_MAX else _QOS_MAX


def properties_of(message: Message, now_ms: int, identifier: int | None) -> Properties:
    """Give the properties of a PUBLISH.

    Args:
        message: of any protocol.
        now_ms: ms since 1970.
        identifier: of the subscription; None where it has none.
    """
    found: dict[PropertyId, Any] = {}
    get = message.get
    payload_format = get(names.PAYLOAD_FORMAT)
    if payload_format in (0, 1):
        found[PropertyId.PAYLOAD_FORMAT_INDICATOR] = int(payload_format)
    if message.expiration:
        left_s = round((message.expiration - now_ms) / 1000)
        found[PropertyId.MESSAGE_EXPIRY_INTERVAL] = min(max(left_s, 0), _EXPIRY_MAX_S)
    for which, name in (
        (PropertyId.CONTENT_TYPE, names.CONTENT_TYPE),
        (PropertyId.RESPONSE_TOPIC, names.RESPONSE_TOPIC),
    ):
        text = get(name)
        if isinstance(text, str) and _fits(text):
            found[which] = text
    correlation = get(names.CORRELATION_DATA)
    if isinstance(correlation, bytes) and len(correlation) <= SIZE_MAX:
        found[PropertyId.CORRELATION_DATA] = correlation
    pairs = _pairs(message)
    if pairs:
        found[PropertyId.USER_PROPERTY] = pairs
    if identifier is not None:
        found[PropertyId.SUBSCRIPTION_IDENTIFIER] = [identifier]
    return found or NO_PROPERTIES


def _pairs(message: Message) -> list[tuple[str, str]]:
    """Give its user properties, in the order in which they were sent."""
    if not message.get(names.USER_PROPERTY_COUNT):
        return []
    found = []
    for name, item in message.properties.items():
        if name.startswith(names.USER_PROPERTY) and isinstance(item.value, str):
            place, dot, plain = name.removeprefix(names.USER_PROPERTY).partition(".")
            if dot and place.isdecimal() and _fits(plain) and _fits(item.value):
                found.append((int(place), plain, item.value))
    return [(name, value) for _, name, value in sorted(found, key=lambda one: one[0])]


def _fits(text: str) -> bool:
    """Whether a text that may have come from elsewhere can be one of MQTT."""
    return "\0" not in text and len(text.encode("utf-8", "replace")) <= SIZE_MAX
