"""What is known of one peer's queues and consumers, and what follows from each thing it tells.

    RESET            told from the beginning: consumers are counted anew
    BINDING_ADDED    a RemoteQueueBinding is in use; queues behind the peer are one broker further
    CONSUMER_…       its counts change
    RESET_COMPLETE   what was not told again is gone
    disconnected()   bindings stay, as the last choice; their consumers are not counted any more

What changes here is told on, with its distance, so that brokers behind this one hear of it. Nothing
that comes before the first RESET counts.

No I/O: the registry, and who is told, are handed in. Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final

from broker.cluster.told import ToldGroup, ToldType
from broker.notifications import NotificationType
from broker.routing.queue_ids import ROUTE_TO

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.told import Told
    from broker.model.message import Message
    from broker.notifications import Notifications
    from broker.queues.filter import Filter
    from broker.routing.remote_bindings import RemoteBindings, RemoteQueueBinding

__all__ = ["PeerBindings"]

log = logging.getLogger("broker.cluster")

_ID: Final = struct.Struct(">q")
# Queues that are gone there and whose names are known: more than the messages on their way.
_GONE_MAX: Final = 4_000


class PeerBindings:
    """See the module's text.

    Args:
        name: of the cluster connection and the peer, for logs.
        node_id: of this broker.
        make: makes a binding of what was told, with an id of its own.
        registry: bindings of all peers.
        parse_filter: a selector's text to a Filter; raises BrokerError.
        notifications: who is told on.
        on_demand: called with a binding whose consumers have changed.
        on_group: called with what the peer tells of groups.
        on_told: called when the peer has told all that it has.

    Attributes:
        by_name: by cluster name.
        is_told: all that the peer has was told since it was connected.
        is_pinning: the peer keeps to the owners of groups.
        is_given_up: the peer was not reached for so long that others take over its groups.
    """

    def __init__(
        self,
        name: str,
        *,
        node_id: str,
        make: Callable[[Told, Filter | None], RemoteQueueBinding],
        registry: RemoteBindings,
        parse_filter: Callable[[str], Filter | None],
        notifications: Notifications,
        on_demand: Callable[[RemoteQueueBinding], object] = lambda binding: None,
        on_group: Callable[[ToldGroup], object] = lambda told: None,
        on_told: Callable[[], object] = lambda: None,
    ) -> None:
        self._name = name
        self._node_id = node_id
        self._make = make
        self._registry = registry
        self._parse_filter = parse_filter
        self._notifications = notifications
        self._on_demand = on_demand
        self._on_group = on_group
        self._on_told = on_told
        self.by_name: dict[str, RemoteQueueBinding] = {}
        # By their ids there, those that are gone too, the oldest first: messages name them so.
        self._by_id: dict[int, RemoteQueueBinding] = {}
        self._gone: dict[int, RemoteQueueBinding] = {}
        self._is_listening = False
        self.is_told = self.is_pinning = self.is_given_up = False
        self._warned: set[str] = set()

    def apply(self, told: Told | ToldGroup) -> None:
        """Take what the peer tells.

        Raises:
            BrokerError: a filter cannot be read.
        """
        if isinstance(told, ToldGroup):
            if self._is_listening:
                self._on_group(told)
            return
        if told.type is ToldType.RESET:
            self.is_pinning = told.is_pinning
            self._reset()
            return
        if not self._is_listening:
            return
        if told.type is ToldType.RESET_COMPLETE:
            for binding in [one for one in self.by_name.values() if not one.is_connected]:
                self._remove(binding)
            self.is_told = True
            self._on_told()
        elif told.type is ToldType.BINDING_ADDED:
            self._added(told)
        else:
            self._changed(told)

    def names_in(self, message: Message, forwarding: str) -> set[tuple[str, str]] | None:
        """Give address and name of the queues that a message is for; None where one is not known.

        Args:
            message: of the store-and-forward queue.
            forwarding: name of that queue.
        """
        found = self.named(message, forwarding)
        return None if found is None else {(one.address, one.queue_name) for one in found}

    def named(self, message: Message, forwarding: str) -> list[RemoteQueueBinding] | None:
        """Give the queues that a message is for, there or gone; as names_in()."""
        ids = message.get(ROUTE_TO + forwarding)
        if not isinstance(ids, bytes) or not ids:
            return None
        found = []
        for (remote_id,) in _ID.iter_unpack(ids):
            binding = self._by_id.get(remote_id) or self._gone.get(remote_id)
            if binding is None:
                return None
            found.append(binding)
        return found

    def _reset(self) -> None:
        self._is_listening = True
        self.is_given_up = False
        for binding in self.by_name.values():
            binding.is_connected = False
            self._forget_consumers(binding)

    def _added(self, told: Told) -> None:
        if told.cluster_name.endswith(self._node_id):
            # Of this broker, told around a ring.
            return
        known = self.by_name.get(told.cluster_name)
        if known is not None:
            if known.remote_id == told.binding_id:
                self._filtered(known, told)
                if known.is_connected and told.cluster_name not in self._warned:
                    self._warned.add(told.cluster_name)
                    log.warning(
                        "AMQ222139: %s: queue %s was told twice: max-hops is too large for these "
                        "brokers, or the addresses of two cluster connections overlap",
                        *(self._name, told.cluster_name),
                    )
                known.is_connected = True
                known.is_given_up = False
                known.is_peer_pinning = self.is_pinning
                self._registry.peer_changed(known)
                return
            self._remove(known)
        filter = None if told.filter is None else self._parse_filter(told.filter)
        binding = self.by_name[told.cluster_name] = self._make(told, filter)
        self._by_id[binding.remote_id] = binding
        binding.is_peer_pinning = self.is_pinning
        self._registry.add(binding)
        if self._registry.is_used(binding):
            self._notifications.binding(NotificationType.BINDING_ADDED, binding)

    def _changed(self, told: Told) -> None:
        binding = self.by_name.get(told.cluster_name)
        if binding is None:
            if not told.cluster_name.endswith(self._node_id):
                log.debug("%s: %s of unknown %s", self._name, told.type.name, told.cluster_name)
            return
        if told.type is ToldType.BINDING_REMOVED:
            self._remove(binding)
            return
        if told.type is ToldType.BINDING_UPDATED:
            self._filtered(binding, told)
            return
        filter = None if told.filter is None else self._parse_filter(told.filter)
        if told.type is ToldType.CONSUMER_CREATED:
            binding.consumer_created(filter)
            self._tell(NotificationType.CONSUMER_CREATED, binding, filter)
            self._on_demand(binding)
        elif binding.consumer_closed(filter):
            self._tell(NotificationType.CONSUMER_CLOSED, binding, filter)
            self._on_demand(binding)

    def _filtered(self, binding: RemoteQueueBinding, told: Told) -> None:
        """The filter of a queue may be another one, also since the peer was connected last."""
        before = None if binding.filter is None else binding.filter.text
        if told.filter == before:
            return
        binding.filter = None if told.filter is None else self._parse_filter(told.filter)
        if self._registry.is_used(binding):
            self._notifications.binding(NotificationType.BINDING_UPDATED, binding)

    def _tell(
        self, kind: NotificationType, binding: RemoteQueueBinding, filter: Filter | None
    ) -> None:
        if self._registry.is_used(binding):
            self._notifications.remote_consumer(kind, binding, filter)

    def _forget_consumers(self, binding: RemoteQueueBinding) -> None:
        gone = list(binding.consumers())
        binding.forget_consumers()
        for filter in gone:
            self._tell(NotificationType.CONSUMER_CLOSED, binding, filter)
        if gone:
            self._on_demand(binding)

    def _remove(self, binding: RemoteQueueBinding) -> None:
        self._forget_consumers(binding)
        del self.by_name[binding.unique_name]
        self._by_id.pop(binding.remote_id, None)
        self._gone[binding.remote_id] = binding
        # A peer that has left has all of them there, however many.
        if self._is_listening and len(self._gone) > _GONE_MAX:
            del self._gone[next(iter(self._gone))]
        is_used = self._registry.is_used(binding)
        if is_used:
            self._notifications.binding(NotificationType.BINDING_REMOVED, binding)
        self._registry.remove(binding)

    def disconnected(self) -> None:
        """The peer is not reached: what it has is not known any more."""
        self._is_listening = self.is_told = False
        for binding in self.by_name.values():
            binding.is_connected = False
            self._forget_consumers(binding)
            self._registry.peer_changed(binding)

    def give_up(self) -> None:
        """The peer was not reached for long: others may take over what it alone delivers."""
        self.is_given_up = True
        for binding in self.by_name.values():
            binding.is_given_up = True

    def is_stale(self, remote_id: int) -> bool:
        """Forget a queue that the peer refuses; whether it was known."""
        for binding in self.by_name.values():
            if binding.remote_id == remote_id:
                self._remove(binding)
                return True
        return False

    def clear(self) -> None:
        """Forget everything: the peer has left in good order."""
        self._is_listening = self.is_told = False
        for binding in list(self.by_name.values()):
            self._remove(binding)
