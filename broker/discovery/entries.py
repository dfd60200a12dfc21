"""What a discovery group has heard: one entry for each broker, dropped when it is silent too long.

No I/O and no clock: the moment is given with every call, so that any order of datagrams can be
tried. The rules are those of Artemis (DiscoveryGroup), with three differences. Silence ends an
entry even if no other datagram comes. All connectors of a broker are kept, where Artemis keeps the
last one. There is a maximum of entries.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.discovery.datagram import Broadcast
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["ENTRY_COUNT_MAX", "DiscoveryEntries", "DiscoveryEntry", "Heard"]

ENTRY_COUNT_MAX: Final = 4096
"""Brokers that one discovery group knows at most. Anybody in the network can send datagrams: what
comes from more brokers than that is dropped, and told once. Far above any cluster."""


@dataclass(frozen=True, slots=True)
class DiscoveryEntry:
    """A broker that was heard.

    Attributes:
        node_id: of the broker, UUID as text.
        connectors: how it is reached, at least one; its backup's come behind its own.
        last_update_s: when it was heard last, in the seconds of the caller's clock.
    """

    node_id: str
    connectors: tuple[TransportConfiguration, ...]
    last_update_s: float


class Heard(enum.Flag):
    """What a datagram, or the time, has changed."""

    NOTHING = 0
    CHANGED = enum.auto()
    """A broker is new, or one is gone: listeners are told."""
    DUPLICATE_NODE = enum.auto()
    """Another broadcast group than before uses the node id."""
    TOO_MANY = enum.auto()
    """The first broker that is one too many."""


class DiscoveryEntries:
    """See the module's text.

    Args:
        own_node_id: whose datagrams make no entry; empty for clients.
        refresh_timeout_s: seconds of silence that end an entry.
    """

    def __init__(self, own_node_id: str, refresh_timeout_s: float) -> None:
        self._own_node_id = own_node_id
        self._refresh_timeout_s = refresh_timeout_s
        self._entries: dict[str, DiscoveryEntry] = {}
        self._unique_ids: dict[str, str] = {}
        self._has_dropped = False

    @property
    def entries(self) -> tuple[DiscoveryEntry, ...]:
        """The brokers, in the order in which they were heard first."""
        return tuple(self._entries.values())

    def receive(self, broadcast: Broadcast, now_s: float) -> Heard:
        """Take what a broker says of itself.

        Listeners are not told that a known broker has another connector, as in Artemis.

        Args:
            broadcast: the datagram.
            now_s: the moment.
        """
        node_id = broadcast.node_id
        heard = self._note_unique_id(broadcast)
        if node_id != self._own_node_id and broadcast.connectors:
            if node_id not in self._entries:
                if len(self._entries) >= ENTRY_COUNT_MAX:
                    return heard | self._drop() | self.expire(now_s)
                heard |= Heard.CHANGED
            self._entries[node_id] = DiscoveryEntry(node_id, broadcast.connectors, now_s)
        return heard | self.expire(now_s)

    def _note_unique_id(self, broadcast: Broadcast) -> Heard:
        known = self._unique_ids.get(broadcast.node_id)
        if known is None and len(self._unique_ids) > ENTRY_COUNT_MAX:
            # Those of brokers that are gone: a copy is noticed anew when both are heard again.
            kept = self._entries.keys() | {self._own_node_id}
            self._unique_ids = {one: id_ for one, id_ in self._unique_ids.items() if one in kept}
        self._unique_ids[broadcast.node_id] = broadcast.unique_id
        return Heard.NOTHING if known in (None, broadcast.unique_id) else Heard.DUPLICATE_NODE

    def _drop(self) -> Heard:
        if self._has_dropped:
            return Heard.NOTHING
        self._has_dropped = True
        return Heard.TOO_MANY

    def expire(self, now_s: float) -> Heard:
        """Drop what was silent for refresh-timeout.

        Args:
            now_s: the moment.
        """
        limit_s = now_s - self._refresh_timeout_s
        gone = [one.node_id for one in self._entries.values() if one.last_update_s <= limit_s]
        for node_id in gone:
            del self._entries[node_id]
        return Heard.CHANGED if gone else Heard.NOTHING

    @property
    def next_expiry_s(self) -> float | None:
        """When expire() has something to drop, if nothing is heard before; None without entries."""
        if not self._entries:
            return None
        oldest_s = min(one.last_update_s for one in self._entries.values())
        return oldest_s + self._refresh_timeout_s

    def clear(self) -> None:
        """Forget everything: the group was stopped."""
        self._entries.clear()
        self._unique_ids.clear()
        self._has_dropped = False
