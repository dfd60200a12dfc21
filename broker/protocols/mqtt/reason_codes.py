"""Reason codes of MQTT 5, and the return codes of CONNACK before it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["DISCONNECT_CODES", "FAILURE", "ReasonCode", "disconnect_code", "return_code"]

FAILURE: Final = 0x80
"""From here on a code says that something was refused."""


class ReasonCode(IntEnum):
    """What a packet of MQTT 5 says became of something (2.4)."""

    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


DISCONNECT_CODES: Final = frozenset(
    {
        *(0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93),
        *(0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1),
        0xA2,
    }
)
"""Those that a DISCONNECT may have (3.14.2.1)."""


def disconnect_code(code: int) -> int:
    """Give what DISCONNECT has for a reason: what only a CONNECT is told is a protocol error.

    >>> hex(disconnect_code(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION))
    '0x82'
    """
    return code if code in DISCONNECT_CODES else int(ReasonCode.PROTOCOL_ERROR)


# Artemis answers wrong passwords by 5, not by 4: who asks is not to learn which of both it was.
_RETURN_CODES: Final = {
    ReasonCode.SUCCESS: 0,
    ReasonCode.UNSUPPORTED_PROTOCOL_VERSION: 1,
    ReasonCode.CLIENT_IDENTIFIER_NOT_VALID: 2,
    ReasonCode.SERVER_UNAVAILABLE: 3,
    ReasonCode.SERVER_BUSY: 3,
    # It has no word for another server.
    ReasonCode.USE_ANOTHER_SERVER: 3,
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: 5,
    ReasonCode.NOT_AUTHORIZED: 5,
}


def return_code(code: int) -> int | None:
    """Give what CONNACK of MQTT 3 has for a reason; None where it has nothing for it.

    >>> return_code(ReasonCode.NOT_AUTHORIZED), return_code(ReasonCode.MALFORMED_PACKET)
    (5, None)
    """
    return _RETURN_CODES.get(ReasonCode(code))
