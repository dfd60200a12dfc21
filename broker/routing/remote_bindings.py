"""Queues of other brokers of a cluster, as bindings of this one.

    message ─▶ RemoteQueueBinding.route() ─▶ _AMQ_ROUTE_TO<store-and-forward queue> + id
                                          ─▶ store-and-forward queue ─▶ bridge ─▶ the other broker

A remote binding knows what the other broker told: its queue's filter, and how many consumers with
which filters it has. Whether a message goes there, and which of several bindings gets it, is
decided in `balancing`.

A queue may be told by several peers, in a ring. The nearest one is in use; the others wait until
that is gone.

Threads: the event loop's alone.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.model.address import AddressTree, split_fqqn
from broker.model.load_balancing import MessageLoadBalancing
from broker.model.routing_type import RoutingType
from broker.routing.bindings import Binding, BindingType
from broker.routing.queue_ids import ROUTE_TO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.address import WildcardConfiguration
    from broker.model.message import Message
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.routing.bindings import RoutingContext

__all__ = [
    "SENT_TO",
    "STORE_AND_FORWARD",
    "RemoteBindings",
    "RemoteQueueBinding",
    "forget_routes",
    "name_queues_there",
    "sf_owner",
]

STORE_AND_FORWARD: Final = "$.artemis.internal.sf."
"""How names of store-and-forward queues begin; connection and node id follow."""
SENT_TO: Final = "_QUIVER_SENT_TO_"
"""The node id follows: that node may have the message too, by the duplicate id in this property."""
_ID: Final = struct.Struct(">q")
# Of a node id behind the name of a queue: a UUID as text.
_NODE_ID_SIZE: Final = 36


def sf_owner(name: str) -> tuple[str, str] | None:
    """Give the cluster connection and the node of a store-and-forward queue; None: it is none.

    Names of connections may have dots, ids of nodes have none.

    >>> sf_owner("$.artemis.internal.sf.my.mesh.edc1334e-ecfd-11f1-a1f9-02fc00000001")
    ('my.mesh', 'edc1334e-ecfd-11f1-a1f9-02fc00000001')
    >>> sf_owner("orders")
    """
    if not name.startswith(STORE_AND_FORWARD):
        return None
    connection, _, node_id = name.removeprefix(STORE_AND_FORWARD).rpartition(".")
    return (connection, node_id) if connection and node_id else None


def forget_routes(message: Message) -> None:
    """Remove what names queues of other brokers: it means something to a bridge alone."""
    for name in message.names_with(ROUTE_TO):
        if name != ROUTE_TO:
            message.remove(name)


def name_queues_there(
    message: Message, forwarding: Queue, ids: Iterable[int], routing: RoutingContext
) -> None:
    """Name queues of another broker in a message, the newest id first, and let it wait for that.

    Args:
        message: on its way.
        forwarding: the store-and-forward queue of the other broker.
        ids: of its queues.
        routing: takes the queue.
    """
    name = ROUTE_TO + forwarding.name
    value = b"".join(map(_ID.pack, ids))
    known = message.get(name) if message.has_own_properties else None
    if isinstance(known, bytes):
        value += known
    message.set_bytes(name, value)
    if forwarding not in routing.queues:
        routing.queues.append(forwarding)


class RemoteQueueBinding(Binding):
    """A queue of another broker; see the module's text.

    Args:
        address: of the queue there.
        cluster_name: its name and the node id of its broker, as the cluster knows it.
        routing_name: of those that share it one gets a message.
        binding_id: of this binding, in this broker: a peer behind it names it so.
        remote_id: of the binding in the peer.
        filter: of the queue there; None takes all.
        distance: how many brokers away it is, 1 or more.
        forwarding: the store-and-forward queue of the peer.
        mode: of the cluster connection.
        routing_type: of the queue there; None where the other broker did not tell, as Artemis. One
            with its address's name then gets what is sent as either, and its broker decides.

    Attributes:
        queue_name: of the queue there.
        remote_id: as given.
        forwarding: as given.
        mode: as given.
        is_connected: the peer is reached.
        is_given_up: it was not reached for so long that others take over its message groups.
        is_peer_pinning: the peer keeps to the owners of groups, as all of our brokers do.
        filters: of its consumers with a filter: how many have it, by its text.
        unfiltered_count: of its consumers without one.
    """

    def __init__(
        self,
        *,
        address: str,
        cluster_name: str,
        routing_name: str,
        binding_id: int,
        remote_id: int,
        filter: Filter | None,
        distance: int,
        forwarding: Queue,
        mode: MessageLoadBalancing,
        routing_type: RoutingType | None = None,
    ) -> None:
        is_multicast = routing_name != address
        self._is_type_known = is_multicast or routing_type is not None
        if routing_type is None:
            routing_type = RoutingType.MULTICAST if is_multicast else RoutingType.ANYCAST
        super().__init__(
            BindingType.REMOTE_QUEUE,
            address=address,
            unique_name=cluster_name,
            routing_name=routing_name,
            routing_type=routing_type,
            binding_id=binding_id,
            filter=filter,
            distance=distance,
        )
        self.queue_name = cluster_name[:-_NODE_ID_SIZE]
        self.remote_id = remote_id
        self.forwarding = forwarding
        self.mode = mode
        self.is_connected = True
        self.is_given_up = False
        self.is_peer_pinning = False
        self.unfiltered_count = 0
        self.filters: dict[str, tuple[Filter, int]] = {}

    # --- what the other broker tells ----------------------------------------------------------

    @property
    def consumer_count(self) -> int:
        """How many consumers it has, as far as was told."""
        return self.unfiltered_count + sum(count for _, count in self.filters.values())

    def consumer_created(self, filter: Filter | None) -> None:
        """One more consumer is there."""
        if filter is None:
            self.unfiltered_count += 1
            return
        known = self.filters.get(filter.text)
        self.filters[filter.text] = (filter, 1 if known is None else known[1] + 1)

    def consumer_closed(self, filter: Filter | None) -> bool:
        """One of them is gone; whether it was known."""
        if filter is None:
            is_known = self.unfiltered_count > 0
            self.unfiltered_count -= is_known
            return is_known
        known = self.filters.get(filter.text)
        if known is None:
            return False
        if known[1] == 1:
            del self.filters[filter.text]
        else:
            self.filters[filter.text] = (filter, known[1] - 1)
        return True

    def consumers(self) -> Iterable[Filter | None]:
        """Give the filter of each consumer, None for none."""
        for _ in range(self.unfiltered_count):
            yield None
        for filter, count in self.filters.values():
            for _ in range(count):
                yield filter

    def forget_consumers(self) -> None:
        """It is not known any more which there are."""
        self.unfiltered_count = 0
        self.filters.clear()

    # --- whether it takes a message -----------------------------------------------------------

    @property
    def is_reached(self) -> bool:
        """Whether the peer is connected."""
        return self.is_connected

    @property
    def pins_groups(self) -> bool:
        """Whether the peer keeps to the owners of groups."""
        return self.is_peer_pinning

    def cluster_name(self, node_id: str) -> str:
        """Give the name by which a cluster knows the queue."""
        return self.unique_name

    def is_queue(self, name: str) -> bool:
        """Whether the queue there has this name."""
        return self.queue_name == name

    @property
    def is_type_known(self) -> bool:
        """Whether the other broker told it, or it has another name than its address."""
        return self._is_type_known

    def is_for(self, routing_type: RoutingType | None) -> bool:
        """Whether it gets what is sent as this; None is either."""
        return not self.is_type_known or super().is_for(routing_type)

    def takes(self, message: Message) -> bool:
        """Whether its queue would take a message, whatever the mode."""
        _, queue = split_fqqn(message.address or "")
        if queue is not None and queue != self.queue_name:
            return False
        return self.filter is None or self.filter.matches(message)

    def accepts(self, message: Message) -> bool:
        """Whether it takes a message when that comes.

        A subscription gets its copy in every mode. Artemis asks for the routing type of the message
        there (BindingsImpl.matchBinding), so one that says none would be missed.
        """
        is_subscription = self.routing_type is not RoutingType.ANYCAST or (
            not self.is_type_known and message.routing_type is RoutingType.MULTICAST
        )
        return (is_subscription or self.mode.distributes) and self.takes(message)

    def has_consumer_for(self, message: Message) -> bool:
        """Whether a consumer there takes it (RemoteQueueBindingImpl.isHighAcceptPriority).

        Unlike there, a consumer without a filter counts beside those with one.
        """
        return self.mode is not MessageLoadBalancing.OFF and self.wants(message)

    def wants(self, message: Message) -> bool:
        """The same, whatever the mode."""
        return self.unfiltered_count > 0 or any(
            filter.matches(message) for filter, _ in self.filters.values()
        )

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Name the queue in the message, and let the peer's queue get it."""
        name_queues_there(message, self.forwarding, (self.remote_id,), routing)

    def describe(self) -> str:
        """Give it as lists of management show it."""
        return (
            f"RemoteQueueBindingImpl [name={self.unique_name}, address={self.address}, "
            f"consumerCount={self.consumer_count}, distance={self.distance}, "
            f"connected={str(self.is_connected).lower()}, id={self.binding_id}]"
        )


class RemoteBindings:
    """All of a broker.

    Args:
        wildcards: how names with wildcards are written.
        on_change: called with an address when other ones are in use there.

    Attributes:
        by_name: those in use, by their cluster names.
        by_id: the same, by their ids.
        on_promoted: called with one that is in use in place of another one, and with that one; None
            if that is gone, which was told before.
    """

    def __init__(
        self, wildcards: WildcardConfiguration, on_change: Callable[[str], object]
    ) -> None:
        self.by_name: dict[str, RemoteQueueBinding] = {}
        self.by_id: dict[int, RemoteQueueBinding] = {}
        self.on_promoted: Callable[[RemoteQueueBinding, RemoteQueueBinding | None], object] = (
            lambda binding, instead_of: None
        )
        self._wildcards = wildcards
        self._on_change = on_change
        self._by_address: dict[str, dict[str, RemoteQueueBinding]] = {}
        self._patterns: AddressTree[RemoteQueueBinding] = AddressTree(wildcards)
        # The same queues by other ways, by their cluster names.
        self._others: dict[str, list[RemoteQueueBinding]] = {}

    def at(self, address: str) -> list[RemoteQueueBinding]:
        """Give those of an address, and of patterns that match it."""
        found = list(self._by_address.get(address, {}).values())
        if self._wildcards.routing_enabled:
            found += [one for one in self._patterns.matching(address) if one.address != address]
        return found

    def is_used(self, binding: RemoteQueueBinding) -> bool:
        """Whether it is the one in use of its queue."""
        return self.by_name.get(binding.unique_name) is binding

    def add(self, binding: RemoteQueueBinding) -> None:
        """Use a binding, unless one of its queue whose peer is reached is in use."""
        used = self.by_name.get(binding.unique_name)
        if used is not None:
            self._others.setdefault(binding.unique_name, []).append(binding)
            self.peer_changed(binding)
            return
        self._use(binding)

    def peer_changed(self, binding: RemoteQueueBinding) -> None:
        """A peer is reached, or no more: a queue is reached by another way where that helps.

        In a ring a queue is told by both neighbours. What is for it would wait for the one that is
        away, though the other one is there.

        Args:
            binding: of the peer.
        """
        used = self.by_name.get(binding.unique_name)
        others = [one for one in self._others.get(binding.unique_name, ()) if one.is_connected]
        if used is None or used.is_connected or not others:
            return
        nearest = min(others, key=lambda one: one.distance)
        self._others[binding.unique_name].remove(nearest)
        self._others[binding.unique_name].append(used)
        self._unuse(used)
        self._use(nearest)
        self.on_promoted(nearest, used)

    def _unuse(self, binding: RemoteQueueBinding) -> None:
        del self.by_name[binding.unique_name]
        del self.by_id[binding.binding_id]
        at = self._by_address[binding.address]
        del at[binding.unique_name]
        if not at:
            del self._by_address[binding.address]
        if self._wildcards.is_wild(binding.address):
            self._patterns.remove(binding.address, binding)
        self._on_change(binding.address)

    def _use(self, binding: RemoteQueueBinding) -> None:
        self.by_name[binding.unique_name] = binding
        self.by_id[binding.binding_id] = binding
        self._by_address.setdefault(binding.address, {})[binding.unique_name] = binding
        if self._wildcards.is_wild(binding.address):
            self._patterns.add(binding.address, binding)
        self._on_change(binding.address)

    def remove(self, binding: RemoteQueueBinding) -> None:
        """Use it no more; the nearest other one takes its place. Idempotent."""
        name = binding.unique_name
        others = self._others.get(name, [])
        if binding in others:
            others.remove(binding)
            if not others:
                del self._others[name]
            return
        if self.by_name.get(name) is not binding:
            return
        self._unuse(binding)
        if others:
            nearest = min(others, key=lambda one: (not one.is_connected, one.distance))
            others.remove(nearest)
            if not others:
                del self._others[name]
            self._use(nearest)
            self.on_promoted(nearest, None)
