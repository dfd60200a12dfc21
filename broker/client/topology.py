"""The members of a cluster, as its brokers tell a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.discovery.topology import Departure, Member
from broker.discovery.topology import Topology as Members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet_cluster import ClusterTopology

__all__ = ["Member", "Topology", "distinct"]


def distinct(connectors: Iterable[TransportConfiguration]) -> list[TransportConfiguration]:
    """Give the connectors in their order; of several to one place the first one."""
    found: dict[tuple[str, int], TransportConfiguration] = {}
    for one in connectors:
        found.setdefault((one.host, one.port), one)
    return list(found.values())


class Topology(Members):
    """All members that are known; the newest word on each counts."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners: dict[Callable[[], None], None] = {}

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called behind every change.

        Args:
            listener: called in the event loop that the client belongs to.
        """
        self._listeners[listener] = None

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Have a function called no more. Idempotent."""
        self._listeners.pop(listener, None)

    def update(self, packet: ClusterTopology) -> bool:
        """Take what a broker said; whether it changed anything."""
        statement: Member | Departure
        if packet.exit:
            statement = Departure(packet.node_id, packet.unique_event_id)
        else:
            statement = Member(
                packet.node_id,
                packet.unique_event_id,
                packet.primary,
                packet.backup,
                packet.backup_group_name,
                packet.scale_down_group_name,
            )
        is_changed = self.merge(statement)
        if is_changed:
            for listener in tuple(self._listeners):
                listener()
        return is_changed

    def member_at(self, connector: TransportConfiguration) -> Member | None:
        """Give the member that is reached by this connector; None if that is not known.

        A lone broker that does not tell how it is reached is the one.
        """
        place = (connector.host, connector.port)
        members = self.members
        for member in members:
            for one in (member.primary, member.backup):
                if one is not None and (one.host, one.port) == place:
                    return member
        if len(members) == 1 and members[0].primary is None:
            return members[0]
        return None
