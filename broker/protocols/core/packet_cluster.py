"""Packets between brokers, and those by which a client learns of a cluster's members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Self

from broker.model.encoding import (
    BOOLEAN,
    INT,
    LONG,
    NSS,
    NSTR,
    REST,
    SS,
    STR,
    BodyReader,
    BodyWriter,
)
from broker.model.transport_configuration import (
    OPTIONAL_TRANSPORT,
    TRANSPORT,
    TransportConfiguration,
)
from broker.protocols.core import versions
from broker.protocols.core.packet import Packet, field

_V1, _V2, _V3, _V4 = 110, 114, 122, -17
_TOPOLOGY_NUMBERS: Final = (_V1, _V2, _V3, _V4)


@dataclass(slots=True)
class ClusterTopology(Packet):
    """A member came or went.

    A client goes on to create sessions only behind a packet that says `last`. A member that went
    is told in the form of version 122 to everybody.

    Attributes:
        exit: it went; then neither connectors nor `last` are there.
        unique_event_id: ms; a later one counts more.
        server_version: what the broker speaks.
    """

    types: ClassVar = (
        (versions.CLIENT_ID, _V4),
        (versions.TOPOLOGY_V3, _V3),
        (versions.TOPOLOGY_V2, _V2),
        (0, _V1),
    )

    exit: bool
    node_id: str
    unique_event_id: int = 0
    primary: TransportConfiguration | None = None
    backup: TransportConfiguration | None = None
    last: bool = False
    backup_group_name: str | None = None
    scale_down_group_name: str | None = None
    server_version: int = 0

    def type_for(self, version: int) -> int:
        """As for any packet, but a member that went has one form."""
        if self.exit and version >= versions.TOPOLOGY_V2:
            return _V2
        # `super()` without arguments does not work in a class that `slots=True` made anew.
        return Packet.type_for(self, version)

    def encode(self, version: int) -> bytes:
        """Give the body for a peer of `version`."""
        form = _TOPOLOGY_NUMBERS.index(self.type_for(version))
        writer = BodyWriter()
        writer.write_boolean(self.exit)
        STR.write(writer, self.node_id)
        if form >= 1:
            writer.write_long(self.unique_event_id)
        if not self.exit:
            OPTIONAL_TRANSPORT.write(writer, self.primary)
            OPTIONAL_TRANSPORT.write(writer, self.backup)
            writer.write_boolean(self.last)
        if form >= 1:
            NSTR.write(writer, self.backup_group_name)
        if form >= 2:
            NSTR.write(writer, self.scale_down_group_name)
        if form >= 3:
            writer.write_int(self.server_version)
        return writer.getvalue()

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read the body of a frame of type `number`."""
        form = _TOPOLOGY_NUMBERS.index(_V4 if number is None else number)
        reader = BodyReader(body)
        packet = cls(BOOLEAN.read(reader), STR.read(reader))
        if form >= 1:
            packet.unique_event_id = LONG.read(reader)
        if not packet.exit:
            packet.primary = OPTIONAL_TRANSPORT.read(reader)
            packet.backup = OPTIONAL_TRANSPORT.read(reader)
            packet.last = BOOLEAN.read(reader)
        if form >= 1 and reader.remaining:
            packet.backup_group_name = NSTR.read(reader)
        if form >= 2:
            packet.scale_down_group_name = NSTR.read(reader)
        if form >= 3:
            packet.server_version = INT.read(reader)
        return packet


@dataclass(slots=True)
class SubscribeTopology(Packet):
    """Asks to be told of the members, now and later; `client_version` sets the connection's."""

    types: ClassVar = ((versions.TOPOLOGY_V2, 113), (0, 112))

    cluster_connection: bool = field(BOOLEAN)
    client_version: int = field(INT, since=versions.TOPOLOGY_V2, default=0)


@dataclass(slots=True)
class NodeAnnounce(Packet):
    """A member tells another of itself."""

    types: ClassVar = ((0, 111),)

    node_id: str = field(STR)
    backup_group_name: str | None = field(NSTR)
    backup: bool = field(BOOLEAN)
    current_event_id: int = field(LONG)
    connector: TransportConfiguration | None = field(OPTIONAL_TRANSPORT)
    backup_connector: TransportConfiguration | None = field(OPTIONAL_TRANSPORT)
    scale_down_group_name: str | None = field(NSTR, default=None, optional=True)


@dataclass(slots=True)
class ClusterConnect(Packet):
    """Tells who the other broker is; answered by a ClusterConnectReply."""

    types: ClassVar = ((0, 125),)

    cluster_user: str = field(STR)
    cluster_password: str = field(STR)

    def __repr__(self) -> str:
        """Everything but the password."""
        return f"ClusterConnect(cluster_user={self.cluster_user!r})"


@dataclass(slots=True)
class ClusterConnectReply(Packet):
    """Whether it is one of us."""

    types: ClassVar = ((0, 126),)

    authorized: bool = field(BOOLEAN)


@dataclass(slots=True)
class ScaleDownAnnouncement(Packet):
    """One member's messages went to another, which now answers for it."""

    types: ClassVar = ((0, -6),)

    target_node_id: str = field(SS)
    scaled_down_node_id: str = field(SS)


@dataclass(slots=True)
class BackupRegistration(Packet):
    """A backup wants to follow this broker."""

    types: ClassVar = ((0, 115),)

    cluster_user: str = field(STR)
    cluster_password: str = field(STR)
    backup_wants_failback: bool = field(BOOLEAN)
    connector: TransportConfiguration = field(TRANSPORT)

    def __repr__(self) -> str:
        """Everything but the password."""
        return f"BackupRegistration(cluster_user={self.cluster_user!r})"


@dataclass(slots=True)
class BackupRegistrationFailed(Packet):
    """It may not: 0 an error, 1 who it is, 2 another one does."""

    types: ClassVar = ((0, 116),)

    problem: int = field(INT)


@dataclass(slots=True)
class BackupRequest(Packet):
    """A broker asks another to run a backup for it."""

    types: ClassVar = ((0, 127),)

    backup_size: int = field(INT)
    journal_directory: str | None = field(NSTR, default=None)
    bindings_directory: str | None = field(NSTR, default=None)
    large_messages_directory: str | None = field(NSTR, default=None)
    paging_directory: str | None = field(NSTR, default=None)
    node_id: str | None = field(NSS, default=None)


@dataclass(slots=True)
class BackupRequestResponse(Packet):
    """Whether it does."""

    types: ClassVar = ((0, -1),)

    backup_started: bool = field(BOOLEAN)


@dataclass(slots=True)
class QuorumVote(Packet):
    """A vote; `vote` is laid out by its handler."""

    types: ClassVar = ((0, -2),)

    handler: str = field(SS)
    vote: bytes = field(REST, default=b"")


@dataclass(slots=True)
class QuorumVoteReply(Packet):
    """The answer to a vote."""

    types: ClassVar = ((0, -3),)

    handler: str = field(SS)
    vote: bytes = field(REST, default=b"")


@dataclass(slots=True)
class FederationDownstreamConnect(Packet):
    """A broker tells another to pull from it; the configuration is the federation's own matter."""

    types: ClassVar = ((0, -16),)

    configuration: bytes = field(REST)
