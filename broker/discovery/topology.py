"""The members of a cluster, merged from what brokers say of them, in whichever order it comes.

Every statement about a node has an event id, ms of the clock of the broker that made it. The newest
statement with a primary decides what the primary is; likewise for the backup and for the groups. A
departure ends all statements up to its own event id. So the outcome depends on the statements
alone: not on their order, and not on how often one is heard.

This follows Artemis (Topology.updateMember, removeMember) wherever its outcome does not depend on
the order. A statement without a primary or backup keeps the known one. A statement that is older
than a departure does not count, nor does a departure that is older than a statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.encoding import BodyWriter
from broker.model.transport_configuration import TRANSPORT

if TYPE_CHECKING:
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["DEPARTED_COUNT_MAX", "Departure", "Member", "MemberUpdate", "NodeState", "Topology"]

DEPARTED_COUNT_MAX: Final = 10_000
"""Nodes whose departure is remembered: those that left first are forgotten first. A statement from
before such a departure would bring the node back until its next departure."""

_NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class Member:
    """One broker of a cluster, with its backup.

    Attributes:
        node_id: of both, UUID as text.
        unique_event_id: of the newest statement, ms.
        primary: how it is reached.
        backup: how its backup is.
        backup_group_name: whose backups it takes.
        scale_down_group_name: to which of its like it scales down.
    """

    node_id: str
    unique_event_id: int
    primary: TransportConfiguration | None = None
    backup: TransportConfiguration | None = None
    backup_group_name: str | None = None
    scale_down_group_name: str | None = None


MemberUpdate = Member
"""A statement: a connector that is None says nothing of it."""


class Departure(NamedTuple):
    """A statement that a node is gone.

    Attributes:
        node_id: which.
        unique_event_id: what is as old as this, or older, counts no more; ms.
    """

    node_id: str
    unique_event_id: int


class _Said(NamedTuple):
    """A connector, or None for none, and when it was said; the larger one is the newer one."""

    event_id: int
    order: bytes
    connector: TransportConfiguration | None

    @property
    def key(self) -> tuple[int, bytes]:
        return self.event_id, self.order


class _Groups(NamedTuple):
    event_id: int
    backup: str | None
    scale_down: str | None

    @property
    def key(self) -> tuple[int, str, str]:
        return self.event_id, self.backup or "", self.scale_down or ""


_UNSAID: Final = _Said(_NEVER, b"", None)
_NO_GROUPS: Final = _Groups(_NEVER, None, None)


def _said(event_id: int, connector: TransportConfiguration | None) -> _Said:
    """Give a statement; two of one moment are told apart by their bytes."""
    if connector is None:
        return _UNSAID
    writer = BodyWriter()
    TRANSPORT.write(writer, connector)
    return _Said(event_id, writer.getvalue(), connector)


@dataclass(frozen=True, slots=True)
class NodeState:
    """All that is known of one node; merging two of them is commutative, associative, idempotent.

    Attributes:
        departed_id: event id of its last departure; -1 for none.
    """

    primary: _Said = _UNSAID
    backup: _Said = _UNSAID
    groups: _Groups = _NO_GROUPS
    departed_id: int = _NEVER

    def merged(self, other: NodeState) -> NodeState:
        """Give what both say together."""
        departed_id = max(self.departed_id, other.departed_id)
        primary = max(self.primary, other.primary, key=lambda one: one.key)
        backup = max(self.backup, other.backup, key=lambda one: one.key)
        groups = max(self.groups, other.groups, key=lambda one: one.key)
        return NodeState(
            primary if primary.event_id > departed_id else _UNSAID,
            backup if backup.event_id > departed_id else _UNSAID,
            groups if groups.event_id > departed_id else _NO_GROUPS,
            departed_id,
        )

    @property
    def is_there(self) -> bool:
        """Whether anything that counts was said of it."""
        return self.groups.event_id > self.departed_id

    def member(self, node_id: str) -> Member:
        """Give it as others are told of it."""
        return Member(
            node_id,
            self.groups.event_id,
            self.primary.connector,
            self.backup.connector,
            self.groups.backup,
            self.groups.scale_down,
        )


def state_of(statement: MemberUpdate | Departure) -> NodeState:
    """Give what one statement says."""
    event_id = statement.unique_event_id
    if isinstance(statement, Departure):
        return NodeState(departed_id=event_id)
    return NodeState(
        _said(event_id, statement.primary),
        _said(event_id, statement.backup),
        _Groups(event_id, statement.backup_group_name, statement.scale_down_group_name),
    )


class Topology:
    """All members that are known. No I/O."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self._departed: dict[str, None] = {}

    @property
    def members(self) -> tuple[Member, ...]:
        """The members, in the order they were heard of."""
        return tuple(
            state.member(node_id) for node_id, state in self._nodes.items() if state.is_there
        )

    def member(self, node_id: str) -> Member | None:
        """Give the member of this name."""
        state = self._nodes.get(node_id)
        return None if state is None or not state.is_there else state.member(node_id)

    def forget(self, node_id: str) -> Member | None:
        """Take out a member, and give it; what it says next counts, whatever its event id."""
        known = self.member(node_id)
        if known is not None:
            del self._nodes[node_id]
        return known

    def merge(self, statement: MemberUpdate | Departure) -> bool:
        """Take a statement; whether the member is another one now, came or went."""
        node_id = statement.node_id
        before = self.member(node_id)
        old = self._nodes.get(node_id, NodeState())
        new = old.merged(state_of(statement))
        if new == old:
            return False
        if not new.is_there or not old.is_there:
            # In the order they were heard of, also when one comes back.
            self._nodes.pop(node_id, None)
        self._nodes[node_id] = new
        self._note_departed(node_id, is_departed=not new.is_there)
        return self.member(node_id) != before

    def _note_departed(self, node_id: str, *, is_departed: bool) -> None:
        self._departed.pop(node_id, None)
        if is_departed:
            self._departed[node_id] = None
            if len(self._departed) > DEPARTED_COUNT_MAX:
                first = next(iter(self._departed))
                del self._departed[first]
                del self._nodes[first]
