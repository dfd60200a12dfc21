"""Packets of a whole connection: pings, answers, disconnects, sessions begun and taken up again.

Channels: ping, disconnect and topology on 0, sessions on 1; answers on the channel of the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from broker.model.encoding import BOOLEAN, BYTE, INT, LONG, NSS, NSTR, STR
from broker.model.transport_configuration import (
    OPTIONAL_TRANSPORT,
    TransportConfiguration,
)
from broker.protocols.core import versions
from broker.protocols.core.packet import Packet, field

PING_CHANNEL: Final = 0
SESSION_CHANNEL: Final = 1
REPLICATION_CHANNEL: Final = 2
CLUSTER_CHANNEL: Final = 3
FEDERATION_CHANNEL: Final = 4
FIRST_CLIENT_CHANNEL: Final = 10
"""Sessions use the channels from here on; the client counts them."""

NO_CORRELATION: Final = -1


@dataclass(slots=True)
class Ping(Packet):
    """A sign of life; the broker sends the same back.

    Attributes:
        connection_ttl: ms without a byte after which the broker closes the connection; -1 never.
    """

    types: ClassVar = ((0, 10),)
    always_confirmed: ClassVar = False

    connection_ttl: int = field(LONG)


class DisconnectReason(IntEnum):
    """Why the broker ends a connection."""

    REDIRECT = 0
    REDIRECT_ON_CRITICAL_ERROR = 1
    SCALE_DOWN = 2
    SCALE_DOWN_ON_CRITICAL_ERROR = 3
    SHUT_DOWN = 4
    SHUT_DOWN_ON_CRITICAL_ERROR = 5


@dataclass(slots=True)
class Disconnect(Packet):
    """The broker ends this connection.

    Attributes:
        reason: a `DisconnectReason`, or -1.
        target_node_id: where to go instead.
        target_connector: how to reach it.
    """

    types: ClassVar = ((versions.CLIENT_ID, -19), (versions.DISCONNECT_V2, 124), (0, 11))
    always_confirmed: ClassVar = False

    node_id: str | None = field(NSS, default=None)
    # DisconnectMessage_V3 says so by its reason, and has the target behind it.
    scale_down_node_id: str | None = field(
        NSS, since=versions.DISCONNECT_V2, until=versions.CLIENT_ID, default=None
    )
    reason: int = field(BYTE, since=versions.CLIENT_ID, default=-1)
    target_node_id: str | None = field(NSS, since=versions.CLIENT_ID, default=None)
    target_connector: TransportConfiguration | None = field(
        OPTIONAL_TRANSPORT, since=versions.CLIENT_ID, default=None
    )


@dataclass(slots=True)
class DisconnectConsumer(Packet):
    """The broker closed this consumer, such as because its queue was deleted."""

    types: ClassVar = ((0, 12),)

    consumer_id: int = field(LONG)


@dataclass(slots=True)
class DisconnectConsumerKill(Packet):
    """The broker killed a consumer that was too slow; the client must not come back."""

    types: ClassVar = ((0, 13),)

    node_id: str | None = field(NSS)


@dataclass(slots=True)
class ExceptionResponse(Packet):
    """The request was refused; `code` is an `ErrorCode`."""

    types: ClassVar = ((0, 20),)

    code: int = field(INT)
    message: str | None = field(NSTR, default=None)
    correlation_id: int = field(
        LONG, since=versions.ASYNC_RESPONSE, default=NO_CORRELATION, optional=True
    )


@dataclass(slots=True)
class NullResponse(Packet):
    """The request was done.

    Attributes:
        correlation_id: that of a request that has one; else -1. Artemis's client would lose any
            other number.
    """

    types: ClassVar = ((0, 21),)

    correlation_id: int = field(
        LONG, since=versions.ASYNC_RESPONSE, default=NO_CORRELATION, optional=True
    )


@dataclass(slots=True)
class PacketsConfirmed(Packet):
    """Everything up to this number, counted from 0, was handled and need not be sent again."""

    types: ClassVar = ((0, 22),)
    always_confirmed: ClassVar = False

    command_id: int = field(INT)


@dataclass(slots=True)
class CheckForFailover(Packet):
    """Asks a broker whether it has taken over for that node."""

    types: ClassVar = ((0, -4),)

    node_id: str | None = field(NSTR)


@dataclass(slots=True)
class CheckForFailoverReply(Packet):
    """Whether sessions of that node may go on here."""

    types: ClassVar = ((0, -5),)

    ok_to_failover: bool = field(BOOLEAN)


@dataclass(slots=True)
class CreateSession(Packet):
    """Begins a session on a channel that the client picked.

    Attributes:
        session_channel_id: from `FIRST_CLIENT_CHANNEL` on.
        version: the newest protocol version of the client.
        min_large_message_size: bytes; also the largest chunk the client takes.
        window_size: bytes of the confirmation window, -1 for none.
        client_id: known to brokers from version 131 on.
    """

    types: ClassVar = ((versions.CLIENT_ID, -18), (0, 30))
    always_confirmed: ClassVar = False

    name: str = field(STR)
    session_channel_id: int = field(LONG)
    version: int = field(INT)
    username: str | None = field(NSTR)
    password: str | None = field(NSTR)
    min_large_message_size: int = field(INT)
    xa: bool = field(BOOLEAN)
    auto_commit_sends: bool = field(BOOLEAN)
    auto_commit_acks: bool = field(BOOLEAN)
    window_size: int = field(INT)
    pre_acknowledge: bool = field(BOOLEAN)
    default_address: str | None = field(NSTR)
    client_id: str | None = field(NSTR, since=versions.CLIENT_ID, default=None)

    def __repr__(self) -> str:
        """Everything but the password."""
        return f"CreateSession(name={self.name!r}, username={self.username!r})"


@dataclass(slots=True)
class CreateSessionResponse(Packet):
    """The session is there; `server_version` is what the broker speaks."""

    types: ClassVar = ((0, 31),)
    always_confirmed: ClassVar = False

    server_version: int = field(INT)


@dataclass(slots=True)
class ReattachSession(Packet):
    """Takes up a session after its connection was lost."""

    types: ClassVar = ((0, 32),)
    always_confirmed: ClassVar = False

    name: str = field(STR)
    last_confirmed_command_id: int = field(INT)


@dataclass(slots=True)
class ReattachSessionResponse(Packet):
    """Whether the session was still there, and what of the client's packets it has handled."""

    types: ClassVar = ((0, 33),)
    always_confirmed: ClassVar = False

    last_confirmed_command_id: int = field(INT)
    reattached: bool = field(BOOLEAN)
