"""Which queue gets a message in place of one that is gone, or that its broker is gone with.

Of the bindings with one routing name each message goes to one. So another one with that name gets
it: any anycast queue of the address, or the subscription of the same name.

Functions without I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.model.address import split_fqqn
from broker.model.message import GROUP_ID
from broker.model.routing_type import RoutingType
from broker.routing.remote_bindings import RemoteQueueBinding
from broker.routing.route import group_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message
    from broker.queues.queue import Queue
    from broker.routing.bindings import Binding
    from broker.routing.grouping import Grouping
    from broker.routing.route import Route, RoutingGroup

__all__ = ["Elsewhere", "chosen_of", "elsewhere"]


class Elsewhere(NamedTuple):
    """Where a message may go that waits for queues of a broker.

    Attributes:
        bindings: in place of them.
        is_queue_missing: no anycast queue takes it.
        is_subscription_missing: no multicast queue is known that has the name of one of them, or
            their names are not known.
    """

    bindings: list[Binding]
    is_queue_missing: bool = False
    is_subscription_missing: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether each queue that the message is for has another one."""
        return bool(self.bindings) and not (self.is_queue_missing or self.is_subscription_missing)


def chosen_of(
    group: RoutingGroup,
    message: Message,
    queue_name: str | None,
    grouping: Grouping | None,
    avoided: Queue | None = None,
) -> Binding | None:
    """Give the binding of a group that gets a message; None for none.

    Args:
        group: bindings with one routing name.
        message: to come.
        queue_name: that its address names; None for none.
        grouping: which queue has which message groups; None in a broker that is alone.
        avoided: the store-and-forward queue of the broker that it is not to go to; None for none.
    """
    if queue_name is not None:
        named = [one for one in group.bindings if one.is_queue(queue_name)]
        if not named:
            return None
        group = group_of(named)
    bindings = group.bindings
    if grouping is not None and (
        message.get(GROUP_ID) is not None or any(one.is_exclusive_queue for one in bindings)
    ):
        found = grouping.binding_for(bindings, group.next_for, message)
        # It waits for the one that has its group.
        return None if _leads_to(found, avoided) else found
    found = group.next_for(message)
    if not _leads_to(found, avoided):
        return found
    others = [one for one in bindings if not _leads_to(one, avoided)]
    return group_of(others).next_for(message) if others else None


def elsewhere(
    message: Message,
    route: Route,
    named: Iterable[Binding] | None,
    avoided: Queue,
    grouping: Grouping | None,
) -> Elsewhere:
    """Give the queues that may have a message in place of those of another broker.

    Args:
        message: that waits for them.
        route: of its address.
        named: the queues that it is for; None where one of them is not known.
        avoided: the store-and-forward queue of that broker.
        grouping: as for chosen_of().
    """
    _, queue_name = split_fqqn(message.address or "")
    is_subscription_missing = is_queue_missing = False
    names: list[tuple[str, RoutingType]]
    if named is not None:
        names = [(one.routing_name or "", one.routing_type) for one in named]
    else:
        routing_type = message.routing_type
        # One that says no type may be for either: as far as is known here.
        is_subscription_missing = routing_type is RoutingType.MULTICAST or (
            routing_type is None and bool(route.multicast)
        )
        names = [(one, RoutingType.ANYCAST) for one in route.anycast_names]
        is_queue_missing = not names
    found: list[Binding] = []
    if is_subscription_missing:
        return Elsewhere(found, is_subscription_missing=True)
    for name, routing_type in dict.fromkeys(names):
        group = route.group(name, routing_type)
        chosen = None
        if group is not None:
            chosen = chosen_of(group, message, queue_name, grouping, avoided)
        if chosen is not None:
            found.append(chosen)
        elif routing_type is RoutingType.ANYCAST:
            is_queue_missing = True
        else:
            is_subscription_missing = True
    return Elsewhere(found, is_queue_missing, is_subscription_missing)


def _leads_to(binding: Binding | None, queue: Queue | None) -> bool:
    return (
        queue is not None
        and isinstance(binding, RemoteQueueBinding)
        and binding.forwarding is queue
    )
