"""The members of a cluster, as its brokers tell them; the newest word on each counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.protocols.core.packet_cluster import ClusterTopology
    from broker.protocols.core.transport_configuration import TransportConfiguration


@dataclass(slots=True)
class Member:
    """One broker of a cluster, with its backup."""

    node_id: str
    unique_event_id: int
    primary: TransportConfiguration | None = None
    backup: TransportConfiguration | None = None
    backup_group_name: str | None = None
    scale_down_group_name: str | None = None


class Topology:
    """All members that are known; follows Artemis's rules for what is newer."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        # When a member went; what is older than that must not bring it back.
        self._gone: dict[str, int] = {}

    @property
    def members(self) -> tuple[Member, ...]:
        """The members, in the order they were heard of."""
        return tuple(self._members.values())

    def member(self, node_id: str) -> Member | None:
        """Give the member of this name."""
        return self._members.get(node_id)

    def update(self, packet: ClusterTopology) -> bool:
        """Take what a broker said; whether it changed anything."""
        if packet.exit:
            return self._remove(packet.node_id, packet.unique_event_id)
        if packet.unique_event_id < self._gone.get(packet.node_id, packet.unique_event_id):
            return False
        old = self._members.get(packet.node_id)
        if old is None:
            self._members[packet.node_id] = _member(packet)
            return True
        if packet.unique_event_id <= old.unique_event_id and old.primary is not None:
            return False
        new = _member(packet)
        new.primary = new.primary or old.primary
        new.backup = new.backup or old.backup
        self._members[packet.node_id] = new
        return True

    def _remove(self, node_id: str, event_id: int) -> bool:
        old = self._members.get(node_id)
        if old is None or old.unique_event_id > event_id:
            return False
        self._gone[node_id] = event_id
        del self._members[node_id]
        return True


def _member(packet: ClusterTopology) -> Member:
    return Member(
        packet.node_id,
        packet.unique_event_id,
        packet.primary,
        packet.backup,
        packet.backup_group_name,
        packet.scale_down_group_name,
    )
