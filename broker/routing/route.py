"""What is bound to one address, patterns included, and which of it gets a message.

    diverts        asked first, in order; an exclusive one that takes the message ends it
    multicast      each gets it, but one of those that share a routing name
    anycast        one of each routing name, in turn; those with a consumer for it come first
    other brokers  take part in the turns, by the mode of their cluster connection: balancing.py

ANYCAST goes to the anycast bindings, MULTICAST to the multicast ones, a message without a routing
type to both. Artemis does not tell whether a queue with its address's name is anycast or multicast:
such a one counts as what else has this name, or else takes each kind.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.routing_type import RoutingType
from broker.routing.balancing import choose
from broker.routing.bindings import BindingType
from broker.routing.queue_ids import names_queues
from broker.routing.remote_bindings import RemoteQueueBinding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.load_balancing import MessageLoadBalancing
    from broker.model.message import Message
    from broker.queues.filter import Filter
    from broker.routing.bindings import Binding, RoutingContext

__all__ = ["Route", "RoutingGroup", "group_of"]

# Looked up once: in Python 3.11 a member of an enum costs a call of Python, for each message.
_ANYCAST: Final = RoutingType.ANYCAST
_MULTICAST: Final = RoutingType.MULTICAST
_DIVERT: Final = BindingType.DIVERT
_LOCAL_QUEUE: Final = BindingType.LOCAL_QUEUE


class RoutingGroup:
    """Bindings with one routing name: each message goes to one of them.

    Attributes:
        bindings: of the group.
    """

    __slots__ = ("_position", "bindings")

    def __init__(self, bindings: list[Binding]) -> None:
        self.bindings = bindings
        self._position = 0

    def next_for(self, message: Message) -> Binding | None:
        """Give the binding whose turn it is; those with a consumer for the message come first."""
        bindings = self.bindings
        count = len(bindings)
        if count == 1:
            binding = bindings[0]
            return binding if binding.accepts(message) else None
        chosen: int | None = None
        for step in range(count):
            position = (self._position + step) % count
            binding = bindings[position]
            if not binding.accepts(message):
                continue
            if binding.has_consumer_for(message):
                chosen = position
                break
            if chosen is None:
                chosen = position
        if chosen is None:
            return None
        self._position = chosen + 1
        return bindings[chosen]


class BalancedGroup(RoutingGroup):
    """A group of which some bindings are in other brokers.

    Args:
        bindings: with one routing name.
        mode: of the cluster connection that told of the newest one.
    """

    __slots__ = ("_mode",)

    def __init__(self, bindings: list[Binding], mode: MessageLoadBalancing) -> None:
        super().__init__(bindings)
        self._mode = mode

    def next_for(self, message: Message) -> Binding | None:
        """Give the binding whose turn it is, by the mode."""
        chosen = choose(self.bindings, self._position, message, self._mode)
        if chosen is None:
            return None
        self._position = chosen + 1
        return self.bindings[chosen]


class SameFilter:
    """Multicast queues of this broker with equal filters, which is asked once for all of them.

    Every member of a cluster has such a queue for notifications, and few of these are for it.

    Args:
        filter: of all of them.
    """

    __slots__ = ("bindings", "filter")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self.bindings: list[Binding] = []

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Let those take a message that accept it."""
        if not self.filter.matches(message):
            return
        for binding in self.bindings:
            if binding.accepts(message):
                binding.route(message, routing)


class Route:
    """See the module's text.

    Args:
        bindings: of the address and of patterns that match it, in order.
        remote: the same of other brokers, in the order in which they were told.

    Attributes:
        remote: as given.
        anycast: bindings to queues, here or in other brokers.
        multicast: likewise.
        diverts: all others.
        is_exclusive: a queue here is exclusive.
    """

    __slots__ = (
        "_alone_groups",
        "_anycast_groups",
        "_by_name",
        "_either_groups",
        "_multicast_alone",
        "_multicast_groups",
        "_named_groups",
        "_same_filters",
        "_single",
        "anycast",
        "diverts",
        "is_exclusive",
        "multicast",
        "remote",
    )

    def __init__(
        self, bindings: Iterable[Binding], remote: list[RemoteQueueBinding] | None = None
    ) -> None:
        self.anycast: list[Binding] = []
        self.multicast: list[Binding] = []
        self.diverts: list[Binding] = []
        for binding in bindings:
            if binding.binding_type is _DIVERT:
                self.diverts.append(binding)
            elif binding.routing_type == _ANYCAST:
                self.anycast.append(binding)
            else:
                self.multicast.append(binding)
        self.remote: list[RemoteQueueBinding] = remote or []
        unknown: list[Binding] = []
        for remote_binding in self.remote:
            if not remote_binding.is_type_known:
                unknown.append(remote_binding)
            elif remote_binding.routing_type == _ANYCAST:
                self.anycast.append(remote_binding)
            else:
                self.multicast.append(remote_binding)
        names = {binding.routing_name for binding in self.multicast}
        either: list[Binding] = []
        for binding in unknown:
            if binding.routing_name in names:
                self.multicast.append(binding)
            else:
                # Only what is sent as MULTICAST is for it as a multicast queue, too.
                self.anycast.append(binding)
                either.append(binding)
        self._either_groups = [group_of(some) for some in _by_routing_name(either)]
        self._named_groups: dict[str, RoutingGroup] = {}
        self._by_name = {one.unique_name: one for one in (*self.anycast, *self.multicast)}
        self._anycast_groups = [group_of(some) for some in _by_routing_name(self.anycast)]
        # Nearly all multicast bindings have a routing name of their own, and take no turns.
        groups = _by_routing_name(self.multicast)
        self._multicast_alone = [some[0] for some in groups if len(some) == 1]
        self._multicast_groups = [group_of(some) for some in groups if len(some) > 1]
        self._same_filters, self._single = _by_filter(self._multicast_alone)
        self._alone_groups: list[RoutingGroup] | None = None
        self.is_exclusive = False
        for binding in (*self.anycast, *self.multicast):
            if binding.is_exclusive_queue:
                self.is_exclusive = True

    @property
    def has_queues(self) -> bool:
        """Whether a queue of this broker is bound here."""
        return len(self.anycast) + len(self.multicast) > len(self.remote)

    def to_queue(self, name: str) -> Binding | None:
        """Give the binding of this name, which is not a divert's."""
        return self._by_name.get(name)

    def next_to_queue(self, name: str, message: Message) -> Binding | None:
        """Give the binding to a queue of this name, here or in another broker, whose turn it is."""
        if not self.remote:
            return self._by_name.get(name)
        group = self._named_groups.get(name)
        if group is None:
            some = [one for one in (*self.anycast, *self.multicast) if one.is_queue(name)]
            group = self._named_groups[name] = group_of(some)
        return group.next_for(message)

    @property
    def anycast_names(self) -> list[str]:
        """The routing names of anycast queues, here and in other brokers."""
        return [group.bindings[0].routing_name or "" for group in self._anycast_groups]

    def group(self, routing_name: str, routing_type: RoutingType) -> RoutingGroup | None:
        """Give the queues with a routing name, of which one gets a message; None without any."""
        if routing_type is _ANYCAST:
            groups = self._anycast_groups
        else:
            groups = self._multicast_groups
            for binding in self._multicast_alone:
                if binding.routing_name == routing_name:
                    return group_of([binding])
        for group in groups:
            if group.bindings[0].routing_name == routing_name:
                return group
        return None

    def groups_for(self, message: Message, queue_name: str | None) -> list[RoutingGroup]:
        """Give the groups of bindings of which each has one that gets a message.

        Args:
            message: that comes.
            queue_name: that its address names; None for none.
        """
        routing_type = message.routing_type
        found: list[RoutingGroup] = []
        if queue_name is not None:
            named = []
            for binding in (*self.anycast, *self.multicast):
                if binding.is_queue(queue_name) and binding.is_for(routing_type):
                    named.append(binding)  # noqa: PERF401 - a comprehension's variable has no type.
            return [group_of(named)] if named else []
        if routing_type is not _ANYCAST:
            if self._alone_groups is None:
                self._alone_groups = [group_of([one]) for one in self._multicast_alone]
            found += self._alone_groups
            found += self._multicast_groups
            if routing_type is not None:
                found += self._either_groups
        if routing_type is not _MULTICAST:
            found += self._anycast_groups
        return found

    def divert(self, message: Message, routing: RoutingContext) -> bool:
        """Let the diverts take their part of a message; whether that was all of it.

        Of one that names its queues exclusive ones alone: the others had their part of it where it
        was sent to its address (BindingsImpl.route).

        Raises:
            BrokerError: a copy of it is refused elsewhere.
        """
        is_named = names_queues(message)
        for divert in self.diverts:
            if (divert.is_exclusive or not is_named) and divert.accepts(message):
                divert.route(message, routing)
                if divert.is_exclusive:
                    return True
        return False

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Let those take a message whose turn it is, diverts not asked."""
        routing_type = message.routing_type
        if routing_type is not _ANYCAST:
            for binding in self._single:
                if binding.accepts(message):
                    binding.route(message, routing)
            for same in self._same_filters:
                same.route(message, routing)
            for group in self._multicast_groups:
                chosen = group.next_for(message)
                if chosen is not None:
                    chosen.route(message, routing)
        groups = self._anycast_groups
        if routing_type is _MULTICAST:
            groups = self._either_groups
        for group in groups:
            chosen = group.next_for(message)
            if chosen is not None:
                chosen.route(message, routing)


def group_of(bindings: list[Binding]) -> RoutingGroup:
    """Let bindings take turns, by the mode of the newest one of another broker."""
    for binding in reversed(bindings):
        if binding.distance and isinstance(binding, RemoteQueueBinding):
            return BalancedGroup(bindings, binding.mode)
    return RoutingGroup(bindings)


def _by_filter(bindings: list[Binding]) -> tuple[list[SameFilter], list[Binding]]:
    """Give the queues here that share a filter with another one, and all other bindings."""
    found: dict[Filter, SameFilter] = {}
    for binding in bindings:
        filter = binding.filter
        if filter is not None and binding.binding_type is _LOCAL_QUEUE:
            if filter not in found:
                found[filter] = SameFilter(filter)
            found[filter].bindings.append(binding)
    shared = [same for same in found.values() if len(same.bindings) > 1]
    among = {id(binding) for same in shared for binding in same.bindings}
    return shared, [binding for binding in bindings if id(binding) not in among]


def _by_routing_name(bindings: list[Binding]) -> list[list[Binding]]:
    """Give the bindings of each routing name, in the order of the first of each."""
    found: dict[str | None, list[Binding]] = {}
    for binding in bindings:
        found.setdefault(binding.routing_name, []).append(binding)
    return list(found.values())
