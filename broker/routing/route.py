"""What is bound to one address, patterns included, and which of it gets a message.

    diverts        asked first, in order; an exclusive one that takes the message ends it
    multicast      each gets it, but one of those that share a routing name
    anycast        one of each routing name, in turn; those with a consumer for it come first

ANYCAST goes to the anycast bindings, MULTICAST to the multicast ones, a message without a routing
type to both.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.routing_type import RoutingType
from broker.routing.bindings import BindingType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message
    from broker.routing.bindings import Binding, RoutingContext

__all__ = ["Route", "RoutingGroup"]


class RoutingGroup:
    """Bindings with one routing name: each message goes to one of them."""

    __slots__ = ("_bindings", "_position")

    def __init__(self, bindings: list[Binding]) -> None:
        self._bindings = bindings
        self._position = 0

    def next_for(self, message: Message) -> Binding | None:
        """Give the binding whose turn it is; those with a consumer for the message come first."""
        bindings = self._bindings
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


class Route:
    """See the module's text.

    Args:
        bindings: of the address and of patterns that match it, in order.

    Attributes:
        anycast: bindings to queues, here or in other brokers.
        multicast: likewise.
        diverts: all others.
    """

    __slots__ = (
        "_anycast_groups",
        "_by_name",
        "_multicast_alone",
        "_multicast_groups",
        "anycast",
        "diverts",
        "multicast",
    )

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self.anycast: list[Binding] = []
        self.multicast: list[Binding] = []
        self.diverts: list[Binding] = []
        for binding in bindings:
            if binding.binding_type is BindingType.DIVERT:
                self.diverts.append(binding)
            elif binding.routing_type == RoutingType.ANYCAST:
                self.anycast.append(binding)
            else:
                self.multicast.append(binding)
        self._by_name = {one.unique_name: one for one in (*self.anycast, *self.multicast)}
        self._anycast_groups = [RoutingGroup(some) for some in _by_routing_name(self.anycast)]
        # Nearly all multicast bindings have a routing name of their own, and take no turns.
        groups = _by_routing_name(self.multicast)
        self._multicast_alone = [some[0] for some in groups if len(some) == 1]
        self._multicast_groups = [RoutingGroup(some) for some in groups if len(some) > 1]

    @property
    def has_queues(self) -> bool:
        """Whether anything but diverts is bound here."""
        return bool(self.anycast or self.multicast)

    def to_queue(self, name: str) -> Binding | None:
        """Give the binding of this name, which is not a divert's."""
        return self._by_name.get(name)

    def divert(self, message: Message, routing: RoutingContext) -> bool:
        """Let the diverts take their part of a message; whether that was all of it.

        Raises:
            BrokerError: a copy of it is refused elsewhere.
        """
        for divert in self.diverts:
            if divert.accepts(message):
                divert.route(message, routing)
                if divert.is_exclusive:
                    return True
        return False

    def route(self, message: Message, routing: RoutingContext) -> None:
        """Let those take a message whose turn it is, diverts not asked."""
        routing_type = message.routing_type
        if routing_type is not RoutingType.ANYCAST:
            for binding in self._multicast_alone:
                if binding.accepts(message):
                    binding.route(message, routing)
            for group in self._multicast_groups:
                chosen = group.next_for(message)
                if chosen is not None:
                    chosen.route(message, routing)
        if routing_type is not RoutingType.MULTICAST:
            for group in self._anycast_groups:
                chosen = group.next_for(message)
                if chosen is not None:
                    chosen.route(message, routing)


def _by_routing_name(bindings: list[Binding]) -> list[list[Binding]]:
    """Give the bindings of each routing name, in the order of the first of each."""
    found: dict[str | None, list[Binding]] = {}
    for binding in bindings:
        found.setdefault(binding.routing_name, []).append(binding)
    return list(found.values())
