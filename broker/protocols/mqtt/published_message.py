"""A PUBLISH as a Core message, in Artemis's names (MQTTUtil.createServerMessage).

QoS, RETAIN           mqtt.qos.level, mqtt.message.retain; durable with QoS 1 and 2
Message Expiry        when it expires, ms since 1970
user properties       mqtt.ordered.user.property.PLACE.NAME, and their number
the others            mqtt.* of their own
priority              0: Artemis leaves it unset
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.model.core_layout import written
from broker.model.encoding import BodyWriter
from broker.model.message import ROUTING_TYPE_PROPERTY, Message
from broker.model.message_bytes import encoded_name
from broker.model.message_types import MessageType
from broker.model.properties import TYPED_PROPERTIES, Property, PropertyType, PropertyValue
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt import message_properties as names
from broker.protocols.mqtt.properties import PropertyId

if TYPE_CHECKING:
    from broker.protocols.mqtt.properties import Properties

__all__ = ["message_of"]

_LONG_MAX: Final = 2**63 - 1
_INT: Final = struct.Struct(">i").pack
_TEXT_TAG: Final = bytes([PropertyType.STRING])
_BYTES: Final = int(MessageType.BYTES)
# In front of properties: whether there are, and how many.
_COUNT_SIZE: Final = 5


def _encoded(name: str, kind: PropertyType, value: PropertyValue) -> bytes:
    """Give the bytes of one property of many."""
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, (Property(name, kind, value),))
    return writer.getvalue()[_COUNT_SIZE:]


def _text(name: bytes, value: str) -> bytes:
    """Give the bytes of one that is a text."""
    text = value.encode("utf-16-le", "surrogatepass")
    return b"%b%b%b%b%b" % (_INT(len(name)), name, _TEXT_TAG, _INT(len(text)), text)


_QOS: Final = [_encoded(names.QOS, PropertyType.INT, qos) for qos in range(3)]
_RETAIN: Final = [
    _encoded(names.IS_RETAINED, PropertyType.BOOLEAN, retain) for retain in (False, True)
]
_CLIENT_ID: Final = encoded_name(names.CLIENT_ID)
_ROUTING: Final = {
    one: _encoded(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(one)) for one in RoutingType
}
_TEXTS: Final = {
    PropertyId.RESPONSE_TOPIC: (names.RESPONSE_TOPIC, PropertyType.STRING),
    PropertyId.CORRELATION_DATA: (names.CORRELATION_DATA, PropertyType.BYTES),
    PropertyId.CONTENT_TYPE: (names.CONTENT_TYPE, PropertyType.STRING),
    PropertyId.PAYLOAD_FORMAT_INDICATOR: (names.PAYLOAD_FORMAT, PropertyType.INT),
}


def message_of(
    address: str,
    payload: bytes,
    *,
    qos: int,
    retain: bool,
    properties: Properties,
    client_id: str,
    routing_type: RoutingType | None,
    now_ms: int,
    message_id: int = 0,
) -> Message:
    """Give the message of a PUBLISH or of a will.

    Args:
        address: of its topic.
        payload: all of it; empty where it follows in parts.
        qos: of the packet.
        retain: of the packet.
        properties: of the packet, or of the will.
        client_id: of the client.
        routing_type: that it gets; None leaves it to the address.
        now_ms: ms since 1970.
        message_id: that it gets; 0 where it is to come.
    """
    found = [_RETAIN[retain], _QOS[qos], _text(_CLIENT_ID, client_id)]
    if routing_type is not None:
        found.append(_ROUTING[routing_type])
    expiration = 0
    if properties:
        _add(found, properties)
        interval_s = properties.get(PropertyId.MESSAGE_EXPIRY_INTERVAL)
        if interval_s is not None:
            # One of 0 expires at once; 0 ms since 1970 would be never.
            expiration = min(now_ms + interval_s * 1000, _LONG_MAX)
    # From bytes, so that it is known which of the broker's properties it has.
    return Message.decode(
        written(
            memoryview(payload),
            message_id,
            address,
            None,
            _BYTES,
            qos > 0,
            expiration,
            now_ms,
            0,
            memoryview(b"\1%b%b" % (_INT(len(found)), b"".join(found))),
        )
    )


def _add(found: list[bytes], properties: Properties) -> None:
    """Add those of MQTT 5."""
    for which, (name, kind) in _TEXTS.items():
        if which in properties:
            found.append(_encoded(name, kind, properties[which]))
    pairs = properties.get(PropertyId.USER_PROPERTY)
    if pairs:
        found.append(_encoded(names.USER_PROPERTY_COUNT, PropertyType.INT, len(pairs)))
        for place, (name, value) in enumerate(pairs):
            full = f"{names.USER_PROPERTY}{place}.{name}"
            found.append(_text(full.encode("utf-16-le", "surrogatepass"), value))
