"""Messages that name their queues by ids: those moved, imported, or sent by a bridge.

    _AMQ_ROUTE_TO       ─▶ queues of this broker, or of others behind it
    _AMQ_SCALEDOWN_TO   ─▶ queues of a third node, from a node that has scaled down

Such a message goes to these queues, whatever its address, its routing type and their filters say.
Where one is gone, another one with its routing name gets it, here or in another broker: of these
each message goes to one. For an anycast queue that is any of the address. A subscription that is
gone everywhere gets nothing: other ones had their copies from who sent it.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.model.routing_type import RoutingType
from broker.routing.elsewhere import chosen_of
from broker.routing.queue_ids import (
    ID_SIZE,
    ROUTE_TO,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
    ids_in,
    queue_ids,
)
from broker.routing.remote_bindings import STORE_AND_FORWARD, forget_routes, name_queues_there

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.notifications import Binding
    from broker.queues.counters import Counters
    from broker.queues.queue import Queue
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import RoutingContext
    from broker.routing.grouping import Grouping
    from broker.routing.route import Route

__all__ = ["DONE", "MISSING", "NOT_NAMED", "NamedQueues"]

log = logging.getLogger("broker")

NOT_NAMED: Final = 0
"""A message names no queues: its address decides."""
DONE: Final = 1
"""Those that it names have it; or it has no queue, and needs none."""
MISSING: Final = 2
"""An anycast queue is gone, and no other one is there: who sent the message has to keep it."""

# Queues that are gone and whose ids are known: more than the messages of a bridge on their way.
_GONE_MAX: Final = 4_000


class NamedQueues:
    """See the module's text.

    Args:
        addresses: whose queues they are, and those of other brokers.
        counters: for metrics.
    """

    __slots__ = ("_addresses", "_counters", "_forwarding", "_gone")

    def __init__(self, addresses: Addresses, counters: Counters) -> None:
        self._addresses = addresses
        self._counters = counters
        # Routing name and type, by the id of the queue or of another broker's.
        self._gone: dict[int, tuple[str, RoutingType]] = {}
        # Store-and-forward queues by the node ids that were asked for.
        self._forwarding: dict[str, Queue] = {}

    def remember(self, binding: Binding) -> None:
        """A queue is gone, here or in another broker: messages that name it may be on their way."""
        gone = self._gone
        gone[binding.binding_id] = (binding.routing_name or "", binding.routing_type)
        if len(gone) > _GONE_MAX:
            del gone[next(iter(gone))]

    def route(
        self,
        message: Message,
        route: Route,
        queue_name: str | None,
        grouping: Grouping | None,
        routing: RoutingContext,
    ) -> int:
        """Let the queues that a message names take it, and remove the names.

        Args:
            message: on its way.
            route: of its address.
            queue_name: that its address names; None for none.
            grouping: which queue has which groups; None in a broker that is alone.
            routing: takes the queues.

        Returns:
            DONE, MISSING or NOT_NAMED.

        Raises:
            BrokerError: a property is not a list of ids.
        """
        ids = queue_ids(message)
        there = ids_in(message, SCALEDOWN_TO)
        if ids is None and there is None:
            return NOT_NAMED
        node_id = message.get(SCALEDOWN_NODE)
        for name in (ROUTE_TO, SCALEDOWN_TO, SCALEDOWN_NODE):
            message.remove(name)
        # Else a client could add ids to those that are named here.
        forget_routes(message)
        gone: list[int] = []
        if there is not None:
            gone += self._to_third_node(message, there, node_id, routing)
        if ids is not None:
            gone += self._to_ids(message, ids, routing)
        if not gone:
            return DONE
        is_missing = self._in_place_of(gone, message, route, queue_name, grouping, routing)
        return MISSING if is_missing and not routing.queues else DONE

    def targets(self, message: Message) -> list[tuple[str, str]]:
        """Give address and name of the queues that a bridge, or an import, names by their ids.

        Raises:
            BrokerError: the property is not a list of ids.
        """
        if not message.has_own_properties:
            return []
        by_id, remote = self._addresses.queues_by_id, self._addresses.remote
        ids = queue_ids(message) or []
        found = [by_id[one] for one in ids if one in by_id]
        there = [remote.by_id[one] for one in ids if one in remote.by_id]
        third = ids_in(message, SCALEDOWN_TO)
        if third is not None:
            forwarding = self._forwarding_to(message.get(SCALEDOWN_NODE))
            if forwarding is not None:
                found.append(forwarding)
            there += [one for one in remote.by_id.values() if one.remote_id in third]
        return [
            *[(one.binding.address, one.name) for one in found],
            *[(one.address, one.queue_name) for one in there],
        ]

    def only_one(self, ids: object, address: str) -> Queue | None:
        """Give the queue of this broker that these ids name, if it is one, and of this address."""
        if not isinstance(ids, bytes) or len(ids) != ID_SIZE:
            return None
        queue = self._addresses.queues_by_id.get(int.from_bytes(ids, "big", signed=True))
        if queue is None or queue.binding.address != address:
            return None
        return queue

    def _forwarding_to(self, node_id: object) -> Queue | None:
        """Give the store-and-forward queue of a node; None where it was never seen."""
        if not isinstance(node_id, str) or not node_id:
            return None
        queue = self._forwarding.get(node_id)
        if queue is None or queue.is_deleted:
            for name, one in self._addresses.queues.items():
                if name.startswith(STORE_AND_FORWARD) and name.endswith("." + node_id):
                    self._forwarding = {node_id: one}
                    return one
            return None
        return queue

    def _to_third_node(
        self, message: Message, ids: list[int], node_id: object, routing: RoutingContext
    ) -> list[int]:
        """Let queues of another node take what one that scales down had for it.

        Returns:
            The ids of those that are not known.
        """
        forwarding = self._forwarding_to(node_id)
        if forwarding is not None:
            # Whether that node is there or not: it knows its ids.
            name_queues_there(message, forwarding, ids, routing)
            return []
        gone = []
        bindings = list(self._addresses.remote.by_id.values())
        for remote_id in ids:
            # Artemis does not say which node it is.
            found = [] if isinstance(node_id, str) else bindings
            found = [one for one in found if one.remote_id == remote_id]
            for binding in found:
                binding.route(message, routing)
            if not found:
                gone.append(remote_id)
        return gone

    def _to_ids(self, message: Message, ids: list[int], routing: RoutingContext) -> list[int]:
        """Let the queues of these ids take a message; the ids without a queue."""
        addresses = self._addresses
        gone = []
        for queue_id in ids:
            queue = addresses.queues_by_id.get(queue_id)
            remote = None if queue is not None else addresses.remote.by_id.get(queue_id)
            if queue is not None:
                routing.queues.append(queue)
            elif remote is not None:
                remote.route(message, routing)
            else:
                gone.append(queue_id)
        return gone

    def _in_place_of(
        self,
        gone: list[int],
        message: Message,
        route: Route,
        queue_name: str | None,
        grouping: Grouping | None,
        routing: RoutingContext,
    ) -> bool:
        """Let other queues take a message for those that are gone; whether one is missing."""
        names: list[tuple[str, RoutingType]] = []
        is_missing = False
        for queue_id in gone:
            self._counters.stale_routes += 1
            known = self._gone.get(queue_id)
            if known is not None:
                names.append(known)
            elif not routing.queues and message.routing_type is not RoutingType.MULTICAST:
                found = route.anycast_names
                names += [(one, RoutingType.ANYCAST) for one in found]
                # One that says no type was for a subscription where the address has nothing else.
                if not found and (message.routing_type is not None or not route.multicast):
                    is_missing = True
            log.warning(
                "AMQ222196: no queue has id %d, which message %d to %s names",
                *(queue_id, message.message_id, message.address),
            )
        for name, routing_type in dict.fromkeys(names):
            group = route.group(name, routing_type)
            chosen = None if group is None else chosen_of(group, message, queue_name, grouping)
            if chosen is not None:
                log.warning("message %d goes to %s instead", message.message_id, chosen)
                chosen.route(message, routing)
            elif routing_type is RoutingType.ANYCAST:
                is_missing = True
        return is_missing
