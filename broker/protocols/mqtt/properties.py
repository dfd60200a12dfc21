"""Properties of MQTT 5 (2.2.2): which there are, of which type, in which packets.

A value is an int, a text or bytes. Those that may come several times are lists: of pairs for user
properties, of numbers for the subscription identifiers of a PUBLISH.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.wire import PacketReader, binary, number, text, variable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NO_PROPERTIES",
    "WILL",
    "PacketType",
    "Properties",
    "PropertyId",
    "read_properties",
    "write_properties",
]


class PacketType(IntEnum):
    """The upper four bits of a packet (2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


WILL: Final = 0
"""In place of a packet's type: the will in a CONNECT."""


class PropertyId(IntEnum):
    """A property's number."""

    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_IDENTIFIER = 0x0B
    SESSION_EXPIRY_INTERVAL = 0x11
    ASSIGNED_CLIENT_IDENTIFIER = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY_INTERVAL = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
    SHARED_SUBSCRIPTION_AVAILABLE = 0x2A


Properties: TypeAlias = "Mapping[PropertyId, Any]"
NO_PROPERTIES: Final[Properties] = {}
_BYTE, _TWO, _FOUR, _VARIABLE, _TEXT, _BINARY, _PAIR = range(7)
_SIZES: Final = {_BYTE: 1, _TWO: 2, _FOUR: 4}
_ACKNOWLEDGEMENTS: Final = frozenset(
    {PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP}
)
_ANSWERS: Final = _ACKNOWLEDGEMENTS | {
    *(PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK),
    *(PacketType.DISCONNECT, PacketType.AUTH),
}
_MESSAGES: Final = frozenset({PacketType.PUBLISH, WILL})
_EVERYWHERE: Final = frozenset(PacketType) | {WILL}
_CONNECTING: Final = frozenset({PacketType.CONNECT, PacketType.CONNACK})


class _Kind(NamedTuple):
    """What is known of a property: its type, where it may stand, the values that are valid."""

    type: int
    packets: frozenset[int]
    least: int = 0
    most: int = 2**32 - 1


_CONNECT: Final = frozenset({PacketType.CONNECT})
_CONNACK: Final = frozenset({PacketType.CONNACK})
_AUTH: Final = _CONNECTING | {PacketType.AUTH}
_KINDS: Final[dict[int, _Kind]] = {
    PropertyId.PAYLOAD_FORMAT_INDICATOR: _Kind(_BYTE, _MESSAGES, most=1),
    PropertyId.MESSAGE_EXPIRY_INTERVAL: _Kind(_FOUR, _MESSAGES),
    PropertyId.CONTENT_TYPE: _Kind(_TEXT, _MESSAGES),
    PropertyId.RESPONSE_TOPIC: _Kind(_TEXT, _MESSAGES),
    PropertyId.CORRELATION_DATA: _Kind(_BINARY, _MESSAGES),
    PropertyId.SUBSCRIPTION_IDENTIFIER: _Kind(
        _VARIABLE, frozenset({PacketType.PUBLISH, PacketType.SUBSCRIBE}), least=1
    ),
    PropertyId.SESSION_EXPIRY_INTERVAL: _Kind(_FOUR, _CONNECTING | {PacketType.DISCONNECT}),
    PropertyId.ASSIGNED_CLIENT_IDENTIFIER: _Kind(_TEXT, _CONNACK),
    PropertyId.SERVER_KEEP_ALIVE: _Kind(_TWO, _CONNACK),
    PropertyId.AUTHENTICATION_METHOD: _Kind(_TEXT, _AUTH),
    PropertyId.AUTHENTICATION_DATA: _Kind(_BINARY, _AUTH),
    PropertyId.REQUEST_PROBLEM_INFORMATION: _Kind(_BYTE, _CONNECT, most=1),
    PropertyId.WILL_DELAY_INTERVAL: _Kind(_FOUR, frozenset({WILL})),
    PropertyId.REQUEST_RESPONSE_INFORMATION: _Kind(_BYTE, _CONNECT, most=1),
    PropertyId.RESPONSE_INFORMATION: _Kind(_TEXT, _CONNACK),
    PropertyId.SERVER_REFERENCE: _Kind(_TEXT, _CONNACK | {PacketType.DISCONNECT}),
    PropertyId.REASON_STRING: _Kind(_TEXT, _ANSWERS),
    PropertyId.RECEIVE_MAXIMUM: _Kind(_TWO, _CONNECTING, least=1),
    PropertyId.TOPIC_ALIAS_MAXIMUM: _Kind(_TWO, _CONNECTING),
    PropertyId.TOPIC_ALIAS: _Kind(_TWO, frozenset({PacketType.PUBLISH})),
    PropertyId.MAXIMUM_QOS: _Kind(_BYTE, _CONNACK, most=1),
    PropertyId.RETAIN_AVAILABLE: _Kind(_BYTE, _CONNACK, most=1),
    PropertyId.USER_PROPERTY: _Kind(_PAIR, _EVERYWHERE - {PacketType.PINGREQ, PacketType.PINGRESP}),
    PropertyId.MAXIMUM_PACKET_SIZE: _Kind(_FOUR, _CONNECTING, least=1),
    PropertyId.WILDCARD_SUBSCRIPTION_AVAILABLE: _Kind(_BYTE, _CONNACK, most=1),
    PropertyId.SUBSCRIPTION_IDENTIFIER_AVAILABLE: _Kind(_BYTE, _CONNACK, most=1),
    PropertyId.SHARED_SUBSCRIPTION_AVAILABLE: _Kind(_BYTE, _CONNACK, most=1),
}


def read_properties(reader: PacketReader, packet: int) -> Properties:
    """Read the properties of a packet; their size is before them.

    Args:
        reader: of the packet.
        packet: a `PacketType`, or WILL.

    Raises:
        MqttError: they are malformed, or one stands twice, or has a value that is not valid.
    """
    size = reader.variable()
    if not size:
        return NO_PROPERTIES
    own = reader.part(size)
    found: dict[PropertyId, Any] = {}
    while own.remaining:
        which = own.variable()
        kind = _KINDS.get(which)
        if kind is None or packet not in kind.packets:
            raise own.malformed(f"property {which:#04x} of another packet")
        name = PropertyId(which)
        value = _read(own, kind.type)
        if isinstance(value, int) and not kind.least <= value <= kind.most:
            raise MqttError(
                ReasonCode.PROTOCOL_ERROR, f"property {name.name} has the value {value}"
            )
        if kind.type == _PAIR or (
            which == PropertyId.SUBSCRIPTION_IDENTIFIER and packet == PacketType.PUBLISH
        ):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"property {name.name} stands twice")
        else:
            found[name] = value
    return found


def _read(reader: PacketReader, kind: int) -> int | str | bytes | tuple[str, str]:
    if kind in _SIZES:
        return reader.number(_SIZES[kind])
    if kind == _VARIABLE:
        return reader.variable()
    if kind == _TEXT:
        return reader.text()
    if kind == _BINARY:
        return reader.binary()
    return reader.text(), reader.text()


def write_properties(properties: Properties) -> bytes:
    """Write properties, with their size before them, in the order that they have.

    Raises:
        ValueError: a value does not fit its type.
    """
    if not properties:
        return b"\0"
    made = bytearray()
    for name, value in properties.items():
        for one in value if isinstance(value, list) else (value,):
            made.append(name)
            made += _written(_KINDS[name].type, one)
    return variable(len(made)) + bytes(made)


def _written(kind: int, value: Any) -> bytes:  # noqa: ANN401 - of the property's type.
    if kind in _SIZES:
        return number(value, _SIZES[kind])
    if kind == _VARIABLE:
        return variable(value)
    if kind == _TEXT:
        return text(value)
    if kind == _BINARY:
        return binary(value)
    name, of = value
    return text(name) + text(of)
