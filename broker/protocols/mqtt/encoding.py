"""Packets to bytes, of both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Ping,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Version,
)
from broker.protocols.mqtt.properties import PacketType, write_properties
from broker.protocols.mqtt.wire import binary, number, text, variable

if TYPE_CHECKING:
    from broker.protocols.mqtt.properties import Properties

__all__ = ["confirmation", "encode", "publish_head", "publish_parts"]

_ID_SIZE: Final = 2
_PUBLISH: Final = int(PacketType.PUBLISH) << 4
_PUBREL_FLAGS: Final = 2


def encode(packet: Packet, version: Version) -> bytes:
    """Give the bytes of a packet.

    Raises:
        ValueError: a field does not fit its place, or the packet is too large.
    """
    if type(packet) is Acknowledgement and not (packet.code or packet.properties):
        return confirmation(packet.type, packet.packet_id)
    is_5 = version is Version.V5
    if isinstance(packet, Publish):
        qos, payload = packet.qos, packet.payload
        parts = publish_parts(packet.topic, qos, packet.properties, version, len(payload))
        return publish_head(parts, qos, packet.retain, packet.dup, packet.packet_id) + payload
    if isinstance(packet, Acknowledgement):
        body = number(packet.packet_id, 2)
        if is_5:
            body += _code(packet)
        return _framed(packet.type, _PUBREL_FLAGS if packet.type is PacketType.PUBREL else 0, body)
    if isinstance(packet, Ping):
        return _framed(packet.type, 0, b"")
    if isinstance(packet, Connack):
        body = bytes((packet.session_present, packet.code))
        return _framed(PacketType.CONNACK, 0, body + (_properties(packet) if is_5 else b""))
    if isinstance(packet, Suback):
        body = number(packet.packet_id, 2) + (_properties(packet) if is_5 else b"")
        return _framed(packet.type, 0, body + bytes(packet.codes))
    if isinstance(packet, Subscribe):
        body = number(packet.packet_id, 2) + (_properties(packet) if is_5 else b"")
        for one in packet.filters:
            options = one.qos
            if is_5:
                options |= one.no_local << 2 | one.retain_as_published << 3
                options |= one.retain_handling << 4
            body += text(one.text) + number(options, 1)
        return _framed(PacketType.SUBSCRIBE, 2, body)
    if isinstance(packet, Unsubscribe):
        body = number(packet.packet_id, 2) + (_properties(packet) if is_5 else b"")
        return _framed(PacketType.UNSUBSCRIBE, 2, body + b"".join(map(text, packet.filters)))
    if isinstance(packet, Connect):
        return _connect(packet)
    kind = PacketType.DISCONNECT if isinstance(packet, Disconnect) else PacketType.AUTH
    return _framed(kind, 0, _code(packet) if is_5 else b"")


def confirmation(kind: PacketType, packet_id: int) -> bytes:
    """Give an acknowledgement that says success and no more: in any version the same bytes."""
    flags = _PUBREL_FLAGS if kind is PacketType.PUBREL else 0
    return b"%c\2%c%c" % (kind << 4 | flags, packet_id >> 8, packet_id & 0xFF)


def _properties(packet: Connack | Suback | Subscribe | Unsubscribe | Disconnect | Auth) -> bytes:
    return write_properties(packet.properties)


def _code(packet: Acknowledgement | Disconnect | Auth) -> bytes:
    if not (packet.code or packet.properties):
        return b""
    return number(packet.code, 1) + (
        write_properties(packet.properties) if packet.properties else b""
    )


def _framed(kind: PacketType, flags: int, body: bytes) -> bytes:
    return bytes((kind << 4 | flags,)) + variable(len(body)) + body


def publish_parts(
    topic: str, qos: int, properties: Properties, version: Version, payload_size: int
) -> tuple[bytes, bytes]:
    """Give what publish_head() puts before the packet id of a PUBLISH, and what behind it.

    Raises:
        ValueError: as for encode().
    """
    before = text(topic)
    behind = write_properties(properties) if version is Version.V5 else b""
    size = len(before) + (_ID_SIZE if qos else 0) + len(behind)
    return variable(size + payload_size) + before, behind


def publish_head(
    parts: tuple[bytes, bytes], qos: int, retain: bool, dup: bool, packet_id: int
) -> bytes:
    """Give all of a PUBLISH before its payload.

    Args:
        parts: by publish_parts(), for the same QoS.
        qos: of the packet.
        retain: of the packet.
        dup: of the packet.
        packet_id: does not count with QoS 0.
    """
    before, behind = parts
    flags = _PUBLISH | dup << 3 | qos << 1 | retain
    if not qos:
        return b"%c%b%b" % (flags, before, behind)
    return b"%c%b%c%c%b" % (flags, before, packet_id >> 8, packet_id & 0xFF, behind)


def _connect(packet: Connect) -> bytes:
    version, will = packet.version, packet.will
    is_5 = version is Version.V5
    flags = packet.clean_start << 1
    payload = text(packet.client_id)
    if will is not None:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
        if is_5:
            payload += write_properties(will.properties)
        payload += text(will.topic) + binary(will.payload)
    if packet.user is not None:
        flags |= 0x80
        payload += text(packet.user)
    if packet.password is not None:
        flags |= 0x40
        payload += binary(packet.password)
    head = text("MQIsdp" if version is Version.V3_1 else "MQTT")
    head += bytes((version, flags)) + number(packet.keep_alive_s, 2)
    if is_5:
        head += write_properties(packet.properties)
    return _framed(PacketType.CONNECT, 0, head + payload)
