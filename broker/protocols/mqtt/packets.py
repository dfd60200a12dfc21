"""Packets as values; what is on the wire of them: decoding.py, encoding.py."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from broker.protocols.mqtt.properties import NO_PROPERTIES, PacketType, Properties
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.versions import Version

__all__ = [
    "Acknowledgement",
    "Auth",
    "Connack",
    "Connect",
    "Disconnect",
    "Filter",
    "Packet",
    "PacketType",
    "Part",
    "Ping",
    "Publish",
    "Suback",
    "Subscribe",
    "Unsubscribe",
    "Version",
    "Will",
]


class Will(NamedTuple):
    """What is published if a client goes without saying so.

    Attributes:
        topic: where.
        payload: what.
        qos: 0 … 2.
        retain: it is retained.
        properties: of it.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = NO_PROPERTIES


class Connect(NamedTuple):
    """The first packet of a client.

    Attributes:
        version: of the protocol.
        client_id: may be empty.
        clean_start: forget the session of that client, if there is one (Clean Session in 3).
        keep_alive_s: the client says something as often; 0 is never.
        will: None without one.
        user: None without one.
        password: None without one.
        properties: of it.
    """

    version: Version
    client_id: str
    clean_start: bool
    keep_alive_s: int
    will: Will | None = None
    user: str | None = None
    password: bytes | None = None
    properties: Properties = NO_PROPERTIES


class Connack(NamedTuple):
    """The answer to CONNECT; `code` is a return code in version 3."""

    session_present: bool
    code: int
    properties: Properties = NO_PROPERTIES


class Publish(NamedTuple):
    """A message.

    Attributes:
        topic: where to; empty where an alias stands for it.
        payload: what; its beginning where it comes in parts.
        qos: 0 … 2.
        retain: it is to be, or was, retained.
        dup: it may have come before.
        packet_id: 0 with QoS 0.
        properties: of it.
        is_streamed: its payload follows as `Part`s.
    """

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = NO_PROPERTIES
    is_streamed: bool = False


class Part(NamedTuple):
    """Some bytes of the payload of a PUBLISH that is streamed."""

    data: bytes
    is_last: bool


class Acknowledgement(NamedTuple):
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    type: PacketType
    packet_id: int
    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


class Filter(NamedTuple):
    """One filter of a SUBSCRIBE, with its options.

    Attributes:
        text: the topic filter.
        qos: at most.
        no_local: nothing that the same client publishes.
        retain_as_published: messages keep the flag that they were published with.
        retain_handling: 0 retained messages come, 1 if it is a new subscription, 2 never.
    """

    text: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(NamedTuple):
    """A client's wish for messages."""

    packet_id: int
    filters: tuple[Filter, ...]
    properties: Properties = NO_PROPERTIES


class Unsubscribe(NamedTuple):
    """The end of it."""

    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


class Suback(NamedTuple):
    """The answer to SUBSCRIBE or UNSUBSCRIBE, a code for each filter; none in an UNSUBACK of 3."""

    type: PacketType
    packet_id: int
    codes: tuple[int, ...] = ()
    properties: Properties = NO_PROPERTIES


class Ping(NamedTuple):
    """PINGREQ or PINGRESP."""

    type: PacketType


class Disconnect(NamedTuple):
    """The last packet of either side; only a client's in version 3."""

    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


class Auth(NamedTuple):
    """Of enhanced authentication."""

    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


Packet: TypeAlias = (
    Connect
    | Connack
    | Publish
    | Acknowledgement
    | Subscribe
    | Suback
    | Unsubscribe
    | Ping
    | Disconnect
    | Auth
)
