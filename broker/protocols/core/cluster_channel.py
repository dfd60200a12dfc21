"""A connection's part in a cluster: its client is told of the members, a peer tells of itself.

    SUBSCRIBE_TOPOLOGY ─▶ a CLUSTER_TOPOLOGY for each member, then for each change
    CLUSTER_CONNECT(user, password) ─▶ CLUSTER_CONNECT_REPLY ─▶ NODE_ANNOUNCE …
    QUORUM_VOTE, BACKUP_REQUEST        ─▶ an answer each

As in Artemis (ClusterController), every other packet of channel 3 is dropped until a peer has shown
the credentials of the cluster.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.discovery.topology import Member
from broker.protocols.core import versions
from broker.protocols.core.backup_vote import BACKUP_HANDLER, HELD, BackupVote
from broker.protocols.core.packet_cluster import (
    BackupRequest,
    BackupRequestResponse,
    ClusterConnect,
    ClusterConnectReply,
    ClusterTopology,
    NodeAnnounce,
    QuorumVote,
    QuorumVoteReply,
    ScaleDownAnnouncement,
)
from broker.protocols.core.packet_connection import CLUSTER_CHANNEL, PING_CHANNEL
from broker.protocols.core.quorum import vote_on
from broker.protocols.peer import WantedBackup

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.discovery.topology import Departure
    from broker.protocols.core.packet import Packet
    from broker.protocols.peer import Sessions, ToldTopology

__all__ = ["ClusterChannel"]

log = logging.getLogger("broker")


class _Send(Protocol):
    def __call__(self, channel_id: int, packet: Packet) -> None:
        """Send a packet on a channel of the connection."""


class ClusterChannel:
    """See the module's text.

    Args:
        sessions: the broker.
        topology: that its client is told of.
        send: sends on the connection.
        remote: address of the other side.
        trust: called once the other side has shown who it is.
    """

    def __init__(
        self,
        sessions: Sessions,
        topology: ToldTopology,
        send: _Send,
        remote: str,
        trust: Callable[[], None],
    ) -> None:
        self._sessions = sessions
        self._topology = topology
        self._send = send
        self._remote = remote
        self._trust = trust
        self._is_peer = False

    def subscribe(self) -> None:
        """Tell of all members, and of every change from now on."""
        members = self._topology.members
        for index, member in enumerate(members, start=1):
            self._tell(member, is_last=index == len(members))
        self._topology.listen(self._tell)

    def _tell(self, told: Member | Departure, *, is_last: bool = True) -> None:
        if not isinstance(told, Member):
            gone = ClusterTopology(True, told.node_id, told.unique_event_id)
            self._send(PING_CHANNEL, gone)
            return
        self._send(
            PING_CHANNEL,
            ClusterTopology(
                exit=False,
                node_id=told.node_id,
                unique_event_id=told.unique_event_id,
                primary=told.primary,
                backup=told.backup,
                last=is_last,
                backup_group_name=told.backup_group_name,
                scale_down_group_name=told.scale_down_group_name,
                server_version=versions.CURRENT,
            ),
        )

    def receive(self, packet: Packet) -> None:
        """Take a packet of channel 3."""
        if isinstance(packet, ClusterConnect):
            self._is_peer = self._sessions.is_peer(
                packet.cluster_user, packet.cluster_password, self._remote
            )
            if self._is_peer:
                self._trust()
            self._send(CLUSTER_CHANNEL, ClusterConnectReply(self._is_peer))
        elif not self._is_peer:
            log.debug("%s: %s before CLUSTER_CONNECT: dropped", self._remote, type(packet).__name__)
        elif isinstance(packet, NodeAnnounce):
            self._announced(packet)
        elif isinstance(packet, ScaleDownAnnouncement):
            self._sessions.scaled_down(packet.scaled_down_node_id)
        elif isinstance(packet, QuorumVote):
            self._asked(packet)
        elif isinstance(packet, BackupRequest):
            self._requested(packet)

    def _asked(self, packet: QuorumVote) -> None:
        if packet.handler == BACKUP_HANDLER:
            asked = BackupVote.decode(packet.vote)
            self._send(
                CLUSTER_CHANNEL, QuorumVoteReply(packet.handler, self._backups(asked).encode())
            )
            return
        reply = vote_on(packet, self._topology.members)
        if reply is None:
            log.warning(
                "%s asks for a vote that is not known here: %s", self._remote, packet.handler
            )
        else:
            self._send(CLUSTER_CHANNEL, reply)

    def _backups(self, asked: BackupVote) -> BackupVote:
        """Say whether this process runs one more backup; Artemis without <colocated> is silent."""
        backups, node_id = self._sessions.backups, self._sessions.node_id
        if backups is None:
            return BackupVote(0, node_id, is_available=False)
        if asked.node_id is not None and backups.holds(asked.node_id):
            return BackupVote(HELD, node_id, is_available=True)
        return BackupVote(backups.count, node_id, is_available=backups.takes_more)

    def _requested(self, packet: BackupRequest) -> None:
        backups = self._sessions.backups
        if backups is None:
            log.warning(
                "%s asks for a backup, and this broker runs none of others: it has no <colocated>",
                self._remote,
            )
            self._send(CLUSTER_CHANNEL, BackupRequestResponse(backup_started=False))
            return
        wanted = WantedBackup(
            packet.backup_size,
            packet.node_id,
            packet.journal_directory,
            packet.bindings_directory,
            packet.large_messages_directory,
            packet.paging_directory,
        )
        backups.request(
            wanted,
            lambda is_started: self._send(CLUSTER_CHANNEL, BackupRequestResponse(is_started)),
        )

    def _announced(self, packet: NodeAnnounce) -> None:
        self._topology.announced(
            Member(
                packet.node_id,
                packet.current_event_id,
                # A backup's one connector is its own (ClusterController).
                None if packet.backup else packet.connector,
                packet.connector if packet.backup else packet.backup_connector,
                packet.backup_group_name,
                packet.scale_down_group_name,
            ),
            self,
        )

    def close(self) -> None:
        """The connection is gone. Idempotent."""
        self._topology.unlisten(self._tell)
        self._topology.disconnected(self)
