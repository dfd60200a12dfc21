"""A PUBLISH as a Core message, in Artemis's names (MQTTUtil.createServerMessage).

QoS, RETAIN           mqtt.qos.level, mqtt.message.retain; durable with QoS 1 and 2
Message Expiry        when it expires, ms since 1970
user properties       mqtt.ordered.user.property.PLACE.NAME, and their number
the others            mqtt.* of their own
priority              0: Artemis leaves it unset
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from broker.model.core_layout import written, written_properties
from broker.model.message import ROUTING_TYPE_PROPERTY, Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.protocols.mqtt import message_properties as names
from broker.protocols.mqtt.properties import PropertyId

if TYPE_CHECKING:
    from broker.model.routing_type import RoutingType
    from broker.protocols.mqtt.properties import Properties

__all__ = ["message_of"]

_LONG_MAX: Final = 2**63 - 1
# Clients whose properties are kept, and characters of their ids: these may be 64 KiB.
_CLIENTS_MAX: Final = 1024
_CLIENT_ID_MAX: Final = 512
_QOS: Final = [Property(names.QOS, PropertyType.INT, qos) for qos in range(3)]
_RETAIN: Final = [
    Property(names.IS_RETAINED, PropertyType.BOOLEAN, retain) for retain in (False, True)
]
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
    expiration = 0
    if not properties and len(client_id) <= _CLIENT_ID_MAX:
        bytes_of_all = _plain(qos, retain, client_id, routing_type)
    else:
        found = _always(qos, retain, client_id, routing_type)
        _add(found, properties)
        bytes_of_all = memoryview(written_properties(found))
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
            int(MessageType.BYTES),
            qos > 0,
            expiration,
            now_ms,
            0,
            bytes_of_all,
        )
    )


def _always(
    qos: int, retain: bool, client_id: str, routing_type: RoutingType | None
) -> list[Property]:
    """Give the properties that every message has."""
    found = [_RETAIN[retain], _QOS[qos], Property(names.CLIENT_ID, PropertyType.STRING, client_id)]
    if routing_type is not None:
        found.append(Property(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(routing_type)))
    return found


@lru_cache(_CLIENTS_MAX)
def _plain(qos: int, retain: bool, client_id: str, routing_type: RoutingType | None) -> memoryview:
    """Give the bytes of these alone: nearly all messages of a client have the same."""
    return memoryview(written_properties(_always(qos, retain, client_id, routing_type)))


def _add(found: list[Property], properties: Properties) -> None:
    """Add those of MQTT 5."""
    for which, (name, kind) in _TEXTS.items():
        if which in properties:
            found.append(Property(name, kind, properties[which]))
    pairs = properties.get(PropertyId.USER_PROPERTY)
    if pairs:
        found.append(Property(names.USER_PROPERTY_COUNT, PropertyType.INT, len(pairs)))
        for place, (name, value) in enumerate(pairs):
            full = f"{names.USER_PROPERTY}{place}.{name}"
            found.append(Property(full, PropertyType.STRING, value))
