"""The topology of a cluster connection, as this broker tells it: itself, and who announced itself.

    NODE_ANNOUNCE of a peer     ─▶ merge     ─▶ listeners: connections of any protocol
    its last connection is lost ─▶ departure ─▶ the same

A statement of this broker's own node id with another primary comes from a second broker of that id,
and is refused.

Belongs to one event loop.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from broker.discovery.topology import Departure, Member, MemberUpdate, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["ClusterTopology"]

log = logging.getLogger("broker")


class ClusterTopology:
    """See the module's text. Implements `broker.protocols.peer.ToldTopology`.

    Args:
        node_id: of this broker.
        connector: how it is reached; None is not told.
        now_ms: wall clock, ms since 1970.
        scale_down_group: of brokers that scale down to each other.
        backup: how its backup is reached, where that is known before it announces itself.
    """

    def __init__(
        self,
        node_id: str,
        connector: TransportConfiguration | None,
        now_ms: Callable[[], int],
        scale_down_group: str | None = None,
        backup: TransportConfiguration | None = None,
    ) -> None:
        self.node_id = node_id
        self._own = Member(node_id, now_ms(), connector, scale_down_group_name=scale_down_group)
        self._now_ms = now_ms
        self._topology = Topology()
        self._topology.merge(replace(self._own, backup=backup))
        self._listeners: dict[Callable[[Member | Departure], object], None] = {}
        # On which connections each peer has announced itself.
        self._announced: dict[str, dict[Hashable, None]] = {}
        self._has_told_copy = False
        self._has_introduced = False

    @property
    def members(self) -> tuple[Member, ...]:
        """All of them, this broker among them."""
        return self._topology.members

    def listen(self, listener: Callable[[Member | Departure], object]) -> None:
        """Have every change told from now on."""
        self._listeners[listener] = None

    def unlisten(self, listener: Callable[[Member | Departure], object]) -> None:
        """Have nothing told any more. Idempotent."""
        self._listeners.pop(listener, None)

    # --- what is heard ------------------------------------------------------------------------

    def announced(self, update: MemberUpdate, connection: Hashable) -> bool:
        """Take what a peer says of itself, as long as the connection lasts.

        Args:
            update: what it says.
            connection: on which it was said; see `disconnected()`.

        Returns:
            Whether it was taken: False for another broker with this one's node id.
        """
        if update.node_id == self.node_id:
            return self._merge_own(update)
        self._announced.setdefault(update.node_id, {})[connection] = None
        self._merge(update)
        return True

    def told(self, statement: MemberUpdate | Departure) -> None:
        """Take what another broker says of a member.

        What a member says itself counts more: one that is connected has not gone.
        """
        node_id = statement.node_id
        if node_id == self.node_id:
            if not isinstance(statement, Departure):
                self._merge_own(statement)
        elif not isinstance(statement, Departure) or node_id not in self._announced:
            self._merge(statement)

    def reached(self, node_id: str, connection: Hashable) -> None:
        """This broker has a connection to a member: see disconnected()."""
        self._announced.setdefault(node_id, {})[connection] = None

    def _merge_own(self, update: MemberUpdate) -> bool:
        """Take a backup of ours; refuse a second primary."""
        if update.primary is not None and update.primary != self._own.primary:
            if not self._has_told_copy:
                self._has_told_copy = True
                log.error(
                    "another broker, at %s:%s, has this broker's node id %s: stop one of the two. "
                    "If its data were copied from here, give it a data folder of its own",
                    update.primary.parameters.get("host"),
                    update.primary.parameters.get("port"),
                    self.node_id,
                )
            return False
        self._merge(replace(update, primary=self._own.primary))
        return True

    def disconnected(self, connection: Hashable) -> None:
        """A connection is lost: peers that have announced themselves on no other one are gone.

        A peer that comes back announces itself anew, with a later event id of its own clock. So the
        departure has the event id of what is known, not the time of this broker's clock.
        """
        gone = []
        for node_id, connections in self._announced.items():
            connections.pop(connection, None)
            if not connections:
                gone.append(node_id)
        for node_id in gone:
            del self._announced[node_id]
            known = self._topology.member(node_id)
            if known is not None:
                self._merge(Departure(node_id, known.unique_event_id))

    def lost(self, node_id: str) -> None:
        """A connection that found a member is lost: it is gone, unless another one has it.

        It has announced nothing, and if it is found again it is the one that it was.
        """
        if node_id in self._announced or node_id == self.node_id:
            return
        known = self._topology.forget(node_id)
        if known is not None:
            self._tell(Departure(node_id, known.unique_event_id))

    def _merge(self, statement: MemberUpdate | Departure) -> None:
        if not self._topology.merge(statement):
            return
        # The statement may say less than is known: the whole member is told.
        node_id = statement.node_id
        known = self._topology.member(node_id)
        self._tell(Departure(node_id, statement.unique_event_id) if known is None else known)

    def _tell(self, told: Member | Departure) -> None:
        for listener in tuple(self._listeners):
            listener(told)

    # --- what is told -------------------------------------------------------------------------

    def event_id_after(self, said: int | None) -> int:
        """Give the event id of this broker; see `Identity`.

        It is the same for all that hear of it. Each new one is news, which every member tells on to
        all others: one for each connection would make a mesh of n members tell n⁴ statements.
        """
        if said is not None and said >= self._event_id:
            self.announce()
        self._has_introduced = True
        return self._event_id

    def started_again(self) -> None:
        """This broker has left its members, if it had any, and is about to join them."""
        if self._has_introduced:
            # They have taken it for gone.
            self.announce()

    @property
    def _event_id(self) -> int:
        known = self._topology.member(self.node_id)
        return self._own.unique_event_id if known is None else known.unique_event_id

    def announce(self) -> None:
        """Tell all members of this broker once more, as if it had just come.

        That repairs what a member did not get (notification-interval, -attempts).
        """
        # A clock that was set back must not make the news old.
        event_id = max(self._now_ms(), self._event_id + 1)
        self._merge(replace(self._own, unique_event_id=event_id))
