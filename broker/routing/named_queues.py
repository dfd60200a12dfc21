"""Messages that name their queues by ids: those moved, imported, or sent by a bridge.

    _AMQ_ROUTE_TO       ─▶ queues of this broker, or of others behind it
    _AMQ_SCALEDOWN_TO   ─▶ queues of a third node, from a node that has scaled down

Such a message goes to these queues, whatever its address, its routing type and their filters say.
If none of them is there, it is routed by its address.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.routing.queue_ids import ROUTE_TO, SCALEDOWN_NODE, SCALEDOWN_TO, ids_in, queue_ids

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.queues.counters import Counters
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import RoutingContext

__all__ = ["NamedQueues"]

log = logging.getLogger("broker")


class NamedQueues:
    """See the module's text.

    Args:
        addresses: whose queues they are, and those of other brokers.
        counters: for metrics.
    """

    __slots__ = ("_addresses", "_counters")

    def __init__(self, addresses: Addresses, counters: Counters) -> None:
        self._addresses = addresses
        self._counters = counters

    def route(self, message: Message, routing: RoutingContext) -> bool:
        """Let the queues that a message names take it, and remove the names.

        Returns:
            Whether any did.

        Raises:
            BrokerError: a property is not a list of ids.
        """
        ids = queue_ids(message)
        there = ids_in(message, SCALEDOWN_TO)
        if there is not None:
            node_id = message.get(SCALEDOWN_NODE)
            message.remove(SCALEDOWN_TO)
            message.remove(SCALEDOWN_NODE)
            self._to_third_node(message, there, node_id, routing)
            if routing.queues:
                return True
        if ids is None:
            return False
        message.remove(ROUTE_TO)
        self._to_ids(message, ids, routing)
        return bool(routing.queues)

    def targets(self, message: Message) -> list[tuple[str, str]]:
        """Give address and name of the queues that a bridge, or an import, names by their ids.

        Raises:
            BrokerError: the property is not a list of ids.
        """
        ids = queue_ids(message) if message.has_own_properties else None
        if ids is None:
            return []
        by_id, remote = self._addresses.queues_by_id, self._addresses.remote.by_id
        found = [by_id[one] for one in ids if one in by_id]
        there = [remote[one] for one in ids if one in remote]
        return [
            *[(one.binding.address, one.name) for one in found],
            *[(one.address, one.queue_name) for one in there],
        ]

    def _to_third_node(
        self, message: Message, ids: list[int], node_id: object, routing: RoutingContext
    ) -> None:
        """Let queues of another node take what one that scales down had for it."""
        for binding in self._addresses.remote.by_id.values():
            if binding.remote_id in ids and (
                not isinstance(node_id, str) or binding.forwarding.name.endswith(node_id)
            ):
                binding.route(message, routing)

    def _to_ids(self, message: Message, ids: list[int], routing: RoutingContext) -> None:
        """Let the queues of these ids take a message; an id without a queue is logged."""
        addresses = self._addresses
        for queue_id in ids:
            queue = addresses.queues_by_id.get(queue_id)
            remote = None if queue is not None else addresses.remote.by_id.get(queue_id)
            if queue is not None:
                routing.queues.append(queue)
            elif remote is not None:
                remote.route(message, routing)
            else:
                self._counters.stale_routes += 1
                log.warning(
                    "AMQ222196: no queue has id %d, which message %d to %s names",
                    queue_id,
                    message.message_id,
                    message.address,
                )
        if not routing.queues:
            log.warning(
                "message %d is routed by its address %s alone", message.message_id, message.address
            )
