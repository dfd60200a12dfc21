"""One packet, from its bytes behind the fixed header to a value.

Whatever the bytes are, the result is a packet or an `MqttError` with the reason code that the
specification has for it. Packets of both directions are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Filter,
    Ping,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Version,
    Will,
)
from broker.protocols.mqtt.properties import (
    NO_PROPERTIES,
    WILL,
    PacketType,
    PropertyId,
    read_properties,
)
from broker.protocols.mqtt.reason_codes import DISCONNECT_CODES, ReasonCode
from broker.protocols.mqtt.wire import PacketReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.mqtt.packets import Packet
    from broker.protocols.mqtt.properties import Properties

__all__ = ["check_flags", "decode", "read_packet", "read_publish"]

_NAMES: Final = {"MQIsdp": Version.V3_1, "MQTT": Version.V3_1_1}
# The lower four bits of packets that have nothing to say by them.
_FLAGS: Final = {
    PacketType.PUBREL: 2,
    PacketType.SUBSCRIBE: 2,
    PacketType.UNSUBSCRIBE: 2,
}
# By number; there is no 0.
_KINDS: Final[tuple[PacketType, ...]] = (PacketType.CONNECT, *PacketType)
_DUP: Final = 8
_CLIENT_ID_MAX: Final = 23  # Of MQTT 3.1.


def check_flags(type: int, flags: int, version: Version) -> PacketType:
    """See that the first byte of a packet is valid; its type.

    Raises:
        MqttError: it is not.
    """
    if type == 0 or (type == PacketType.AUTH and version is not Version.V5):
        raise MqttError(ReasonCode.MALFORMED_PACKET, f"unknown packet type {type}")
    kind = _KINDS[type]
    if kind is PacketType.PUBLISH:
        qos = flags >> 1 & 3
        if qos == 3:
            raise MqttError(ReasonCode.MALFORMED_PACKET, "a PUBLISH of QoS 3")
        if not qos and flags & _DUP and version is not Version.V3_1:
            raise MqttError(ReasonCode.MALFORMED_PACKET, "a PUBLISH of QoS 0 with DUP")
        return kind
    wanted = _FLAGS.get(kind, 0)
    if version is Version.V3_1 and wanted:
        # There these have the flags DUP and QoS.
        flags &= ~_DUP
    if flags != wanted:
        raise MqttError(ReasonCode.MALFORMED_PACKET, f"{kind.name} with the flags {flags}")
    return kind


def decode(type: int, flags: int, body: bytes, version: Version) -> Packet:
    """Read a packet.

    Args:
        type: upper four bits of its first byte.
        flags: the lower four.
        body: all behind the fixed header.
        version: of the connection; of a CONNECT it does not count.

    Raises:
        MqttError: it is malformed, or breaks a rule that needs nothing else to be known.
    """
    return read_packet(check_flags(type, flags, version), flags, body, version)


def read_packet(kind: PacketType, flags: int, body: bytes, version: Version) -> Packet:
    """Read a packet, as decode() does, whose first byte is known to be valid.

    Raises:
        MqttError: as of decode().
    """
    reader = PacketReader(body, strict=version is Version.V5)
    if kind is PacketType.PUBLISH:
        return read_publish(reader, flags, version, has_payload=True)
    found = _READERS[kind](reader, kind, version)
    reader.end()
    return found


def read_publish(
    reader: PacketReader, flags: int, version: Version, *, has_payload: bool
) -> Publish:
    """Read a PUBLISH, with its payload or up to that.

    Raises:
        MqttError: it is malformed.
    """
    qos = flags >> 1 & 3
    topic = reader.text()
    packet_id = _packet_id(reader) if qos else 0
    properties = _properties(reader, PacketType.PUBLISH, version)
    payload = reader.rest() if has_payload else b""
    return Publish(topic, payload, qos, bool(flags & 1), bool(flags & _DUP), packet_id, properties)


def _packet_id(reader: PacketReader) -> int:
    value = reader.number(2)
    if not value:
        raise reader.malformed("a packet id of 0")
    return value


def _properties(reader: PacketReader, packet: int, version: Version) -> Properties:
    return read_properties(reader, packet) if version is Version.V5 else NO_PROPERTIES


# --- CONNECT, CONNACK -------------------------------------------------------------------------


def _connect(reader: PacketReader, _: PacketType, __: Version) -> Connect:
    name = reader.text()
    level = reader.number(1)
    known = _NAMES.get(name)
    if known is None:
        raise MqttError(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, f"unknown protocol {name[:20]!r}")
    if level != known and (level, known) != (Version.V5, Version.V3_1_1):
        error = MqttError(
            ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, f"unsupported level {level} of {name}"
        )
        # So that the client understands the answer.
        error.version = Version.V5 if level > Version.V5 else known
        raise error
    version = Version(level)
    try:
        return _connect_of(version, PacketReader(reader.rest(), strict=version is Version.V5))
    except MqttError as error:
        error.version = version
        raise


def _connect_of(version: Version, reader: PacketReader) -> Connect:
    flags = reader.number(1)
    keep_alive_s = reader.number(2)
    properties = _properties(reader, PacketType.CONNECT, version)
    client_id = reader.text()
    has_will = bool(flags & 0x04)
    will_qos = flags >> 3 & 3
    if version is not Version.V3_1:
        if flags & 1:
            raise reader.malformed("a CONNECT with the reserved flag")
        if not has_will and flags & 0x38:
            raise reader.malformed("a CONNECT with flags of a will, but without one")
        if version is Version.V3_1_1 and flags & 0xC0 == 0x40:
            raise reader.malformed("a CONNECT with a password, but without a user")
    if will_qos == 3:
        raise reader.malformed("a will of QoS 3")
    will = None
    if has_will:
        will_properties = _properties(reader, WILL, version)
        topic = reader.text()
        will = Will(topic, reader.binary(), will_qos, bool(flags & 0x20), will_properties)
    user = reader.text() if flags & 0x80 else None
    password = reader.binary() if flags & 0x40 else None
    reader.end()
    if version is Version.V3_1 and not 0 < len(client_id) <= _CLIENT_ID_MAX:
        raise MqttError(
            ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
            f"a client id of {len(client_id)} characters; MQTT 3.1 has 1 to {_CLIENT_ID_MAX}",
        )
    if (
        PropertyId.AUTHENTICATION_DATA in properties
        and PropertyId.AUTHENTICATION_METHOD not in properties
    ):
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "authentication data without its method")
    return Connect(
        version, client_id, bool(flags & 2), keep_alive_s, will, user, password, properties
    )


def _connack(reader: PacketReader, _: PacketType, version: Version) -> Connack:
    flags = reader.number(1)
    if flags > 1:
        raise reader.malformed(f"a CONNACK with the flags {flags}")
    return Connack(bool(flags), reader.number(1), _properties(reader, PacketType.CONNACK, version))


# --- PUBACK, PUBREC, PUBREL, PUBCOMP ------------------------------------------------------------

_CODES: Final = {
    PacketType.PUBACK: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    PacketType.PUBREC: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    PacketType.PUBREL: frozenset({0x00, 0x92}),
    PacketType.PUBCOMP: frozenset({0x00, 0x92}),
    PacketType.AUTH: frozenset({0x00, 0x18, 0x19}),
    PacketType.DISCONNECT: DISCONNECT_CODES,
}


def _code(reader: PacketReader, kind: PacketType) -> int:
    value = reader.number(1)
    if value not in _CODES[kind]:
        raise reader.malformed(f"{kind.name} with the reason code {value:#04x}")
    return value


def _acknowledgement(reader: PacketReader, kind: PacketType, version: Version) -> Acknowledgement:
    packet_id = _packet_id(reader)
    if version is not Version.V5 or not reader.remaining:
        return Acknowledgement(kind, packet_id)
    code = _code(reader, kind)
    properties = read_properties(reader, kind) if reader.remaining else NO_PROPERTIES
    return Acknowledgement(kind, packet_id, code, properties)


# --- SUBSCRIBE, UNSUBSCRIBE and their answers ---------------------------------------------------


def _subscribe(reader: PacketReader, _: PacketType, version: Version) -> Subscribe:
    packet_id = _packet_id(reader)
    properties = _properties(reader, PacketType.SUBSCRIBE, version)
    filters = []
    while reader.remaining:
        text, options = reader.text(), reader.number(1)
        qos = options & 3
        if qos == 3 or options & (0xC0 if version is Version.V5 else 0xFC):
            raise reader.malformed(f"a subscription with the options {options:#04x}")
        handling = options >> 4 & 3
        if handling == 3:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, "a subscription with retain handling 3")
        filters.append(Filter(text, qos, bool(options & 4), bool(options & 8), handling))
    if not filters:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "a SUBSCRIBE without a filter")
    return Subscribe(packet_id, tuple(filters), properties)


def _unsubscribe(reader: PacketReader, _: PacketType, version: Version) -> Unsubscribe:
    packet_id = _packet_id(reader)
    properties = _properties(reader, PacketType.UNSUBSCRIBE, version)
    filters = []
    while reader.remaining:
        filters.append(reader.text())
    if not filters:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "an UNSUBSCRIBE without a filter")
    return Unsubscribe(packet_id, tuple(filters), properties)


def _suback(reader: PacketReader, kind: PacketType, version: Version) -> Suback:
    packet_id = _packet_id(reader)
    properties = _properties(reader, kind, version)
    return Suback(kind, packet_id, tuple(reader.rest()), properties)


# --- the others ---------------------------------------------------------------------------------


def _ping(_: PacketReader, kind: PacketType, __: Version) -> Ping:
    return Ping(kind)


def _disconnect(reader: PacketReader, kind: PacketType, version: Version) -> Disconnect:
    if version is not Version.V5 or not reader.remaining:
        return Disconnect()
    code = _code(reader, kind)
    return Disconnect(code, read_properties(reader, kind) if reader.remaining else NO_PROPERTIES)


def _auth(reader: PacketReader, kind: PacketType, _: Version) -> Auth:
    if not reader.remaining:
        return Auth()
    code = _code(reader, kind)
    return Auth(code, read_properties(reader, kind) if reader.remaining else NO_PROPERTIES)


_READERS: Final[dict[PacketType, Callable[[PacketReader, PacketType, Version], Packet]]] = {
    PacketType.CONNECT: _connect,
    PacketType.CONNACK: _connack,
    PacketType.PUBACK: _acknowledgement,
    PacketType.PUBREC: _acknowledgement,
    PacketType.PUBREL: _acknowledgement,
    PacketType.PUBCOMP: _acknowledgement,
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _suback,
    PacketType.PINGREQ: _ping,
    PacketType.PINGRESP: _ping,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}
