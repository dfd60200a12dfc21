"""Where a message goes: address, duplicate ids, bindings, and into the queues that these name.

    route() ─▶ expiry of the address ─▶ duplicate ids ─▶ Route: diverts, then queues ─▶ Enqueuer

What is bound to a pattern takes part for every address that matches. What is found for an address
is kept until a binding changes.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Final

import broker.routing.bindings as bindings
from broker.errors import BrokerError, broker_error
from broker.model.address import split_fqqn
from broker.model.message import GROUP_ID
from broker.routing.cached_routes import CachedRoute
from broker.routing.duplicates import BRIDGE_ID
from broker.routing.enqueuer import Enqueuer
from broker.routing.large_copies import DIVERT_DEPTH_MAX
from broker.routing.lifetime import limit_lifetime, limits_lifetime
from broker.routing.message_copies import mark_original
from broker.routing.queue_ids import (
    ACK_ROUTE_TO,
    ROUTE_TO,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
    ids_in,
    queue_ids,
)
from broker.routing.remote_bindings import STORE_AND_FORWARD, forget_routes
from broker.routing.route import Route
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.paging.paging import Paging
    from broker.ports import Settings
    from broker.queues.counters import Counters
    from broker.queues.queue import Queue
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import RoutingContext
    from broker.routing.duplicates import DuplicateCache, DuplicateCaches
    from broker.routing.grouping import Grouping
    from broker.routing.message_copies import MessageCopies
    from broker.storage.context import OperationContext
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["PostOffice", "Routing"]

log = logging.getLogger("broker")

_DIVERT: Final = bindings.BindingType.DIVERT
# Names are chosen by clients: what is remembered for them is dropped when there are that many.
_ROUTES_MAX: Final = 20_000


class Routing(enum.Enum):
    """What became of a message."""

    ROUTED = enum.auto()
    NO_BINDINGS = enum.auto()
    NO_BINDINGS_DLA = enum.auto()
    DUPLICATE = enum.auto()


class PostOffice:
    """See the module's text.

    Args:
        addresses: what is bound where.
        duplicates: ids that addresses have seen.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        storage: where records go.
        clock_ms: wall clock, ms since 1970.
        monotonic_s: seconds, by which permissions end.
        settings: of addresses.
        transactions: where those begin that record an id and its message together.
        copies: makes those that diverts send.
        counters: for metrics.

    Attributes:
        enqueuer: for what goes to a queue without being routed.
        grouping: which queue of a cluster has which groups; None in a broker that is alone.
    """

    def __init__(
        self,
        *,
        addresses: Addresses,
        duplicates: DuplicateCaches,
        paging: Paging | None,
        storage: StorageManager,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        settings: Settings,
        transactions: XaTransactions,
        copies: MessageCopies,
        counters: Counters,
    ) -> None:
        self.addresses = addresses
        self.duplicates = duplicates
        self.paging = paging
        self._storage = storage
        self._clock_ms = clock_ms
        self._monotonic_s = monotonic_s
        self._settings = settings
        self._transactions = transactions
        self._copies = copies
        self.enqueuer = Enqueuer(addresses, paging, storage)
        self.grouping: Grouping | None = None
        self._counters = counters
        self._routes: dict[str, Route] = {}
        self._version = -1
        addresses.memory.on_unused = self.drop_body
        settings.on_change(addresses.changed)

    def close(self) -> None:
        """The broker has stopped: its messages lead here no more. Idempotent.

        No collector of cycles knows of messages: those that wait would keep all of it in memory.
        """
        addresses = self.addresses
        self._settings.off_change(addresses.changed)
        addresses.memory.close(one.memory for one in addresses.by_name.values())

    def drop_body(self, message: Message) -> None:
        """Delete the body of a large message that no queue has, once all records say so."""
        body = message.large
        if body is not None:
            self._storage.after(_delete_body, body)

    def copy_of(self, message: Message) -> Message:
        """Give a copy with an id of its own; a large one has the bytes of its body."""
        return self._copies.copy_of(message)

    # --- where to -----------------------------------------------------------------------------

    def route_of(self, address: str) -> Route:
        """Give what is bound to an address."""
        if self._version != self.addresses.version:
            self._version = self.addresses.version
            self._routes.clear()
        found = self._routes.get(address)
        if found is None:
            found = self._find(address)
            if len(self._routes) >= _ROUTES_MAX:
                self._routes.clear()
            self._routes[address] = found
        return found

    def _find(self, address: str) -> Route:
        own = self.addresses.by_name.get(address)
        found = [] if own is None else list(own.bindings)
        for pattern in self.addresses.patterns.matching(address):
            # A pattern is an address too: what is sent to it literally it has already. Its diverts
            # are for that alone.
            if pattern is not own:
                found += [one for one in pattern.bindings if one.binding_type is not _DIVERT]
        return Route(found, self.addresses.remote.at(address))

    def has_queues(self, address: str) -> bool:
        """Whether a queue of this broker is bound to an address."""
        return self.route_of(address).has_queues

    def cached_route(self, name: str, until_s: float) -> CachedRoute | None:
        """Give what nearly every message to an address needs to know; None where it is not enough.

        Args:
            name: of the address that a user may send to.
            until_s: until when the user may, by `monotonic_s`.
        """
        address = self.addresses.by_name.get(name)
        route = self.route_of(name)
        settings = self._settings.match(name)
        if (
            address is None
            or route.diverts
            or route.remote
            or (self.grouping is not None and self.grouping.pins_alone)
            or not route.has_queues
            or limits_lifetime(settings)
        ):
            return None
        version = self.addresses.version
        return CachedRoute(
            address, route, settings, self.paging, version, until_s, self._monotonic_s
        )

    # --- one message --------------------------------------------------------------------------

    def send_cached(self, cached: CachedRoute, message: Message, context: OperationContext) -> bool:
        """Send a message alone, in which nothing is special, by a route that was cached.

        Returns:
            Whether it was: else nothing has happened, and route() decides.

        Raises:
            JournalError: it does not fit the storage, or that has failed.
        """
        if not cached.holds(self.addresses.version) or not cached.is_open(message.routing_number):
            return False
        routing = bindings.routing_context(self, context, None, 0)
        cached.route.route(message, routing)
        if not routing.queues:
            return False
        cached.address.routed_count += 1
        self.enqueuer.put_in_memory(message, routing.queues, 0, cached.memory, context, None)
        return True

    def send_bridged(
        self, cached: CachedRoute, message: Message, context: OperationContext
    ) -> bool:
        """Send what a bridge brought, alone and with nothing special but its id, as send_cached().

        Returns:
            Whether it was: else nothing has happened, and route() decides.

        Raises:
            BrokerError: the disk is full; nothing happened.
            JournalError: it does not fit the storage, or that has failed.
        """
        if not cached.holds(self.addresses.version) or not cached.is_open(message.routing_number):
            return False
        bridge_id = message.get(BRIDGE_ID)
        if not isinstance(bridge_id, bytes):
            return False
        ids = self.duplicates.of_bridges(cached.address.name)
        if bridge_id in ids:
            return False
        message.remove(BRIDGE_ID)
        routing = bindings.routing_context(self, context, None, 0)
        if not message.has_own_properties:
            cached.route.route(message, routing)
        if not routing.queues:
            message.set_bytes(BRIDGE_ID, bridge_id)
            return False
        # Id and message have to be recorded together.
        tx = self._transactions.begin()
        tx.add_duplicate_id(ids, bridge_id)
        try:
            self.enqueuer.put_in_memory(message, routing.queues, 0, cached.memory, context, tx)
        except (BrokerError, JournalError):
            tx.rollback(context)
            raise
        cached.address.routed_count += 1
        tx.commit(context, _committed)
        return True

    def route(
        self,
        message: Message,
        context: OperationContext,
        tx: Transaction | None = None,
        *,
        rejects_duplicates: bool = True,
        is_dead: bool = False,
        depth: int = 0,
    ) -> Routing:
        """Send a message on its way: it has an id and an address, and permissions were checked.

        Args:
            message: not routed before.
            context: of who sends it: what is recorded here it waits for.
            tx: what it is part of; None lets it count alone.
            rejects_duplicates: false for what the broker moves by itself.
            is_dead: it was sent to a dead letter address already, for want of a queue.
            depth: through how many diverts it came.

        Raises:
            BrokerError: the message is refused; nothing happened, but `tx`, where there is one,
                can only be rolled back.
            JournalError: it does not fit the storage, or that has failed.
        """
        name = message.address
        assert name is not None, "the session filled it in"
        address, queue_name = split_fqqn(name)
        limit_lifetime(message, self._settings.match(address), self._clock_ms)
        ids = self.duplicates.ids_of(message, address) if rejects_duplicates else []
        if ids and self._is_duplicate(ids, tx):
            # Who is told that it is there waits until the first one is durable.
            context.note()
            return Routing.DUPLICATE
        message.remove(BRIDGE_ID)
        own_tx = None
        if ids and tx is None:
            # Id and message have to be recorded together.
            own_tx = tx = self._transactions.begin()
        if tx is not None:
            for cache, duplicate_id in ids:
                if not tx.has_duplicate_id(cache, duplicate_id):
                    tx.add_duplicate_id(cache, duplicate_id)
        try:
            result = self._deliver_to_queues(
                message, address, queue_name, context, tx, is_dead=is_dead, depth=depth
            )
        except (BrokerError, JournalError) as error:
            if own_tx is not None:
                own_tx.rollback(context)
            elif tx is not None:
                tx.fail(error)
            raise
        if own_tx is not None:
            own_tx.commit(context, _committed)
        return result

    def _is_duplicate(
        self, ids: list[tuple[DuplicateCache, bytes]], tx: Transaction | None
    ) -> bool:
        for cache, duplicate_id in ids:
            if duplicate_id in cache:
                cache.rejected_count += 1
                self._counters.duplicates += 1
                error = broker_error(
                    "duplicate_id",
                    "Duplicate message detected - message will not be routed. "
                    f"Address {cache.address}",
                )
                log.warning("%s", error)
                if tx is not None:
                    tx.fail(error)
                return True
        return False

    def _deliver_to_queues(
        self,
        message: Message,
        address: str,
        queue_name: str | None,
        context: OperationContext,
        tx: Transaction | None,
        *,
        is_dead: bool,
        depth: int,
    ) -> Routing:
        route = self.route_of(address)
        routing = bindings.routing_context(self, context, tx, depth)
        if route.remote and message.has_own_properties:
            # Else a client could name queues of other brokers, or a copy the wrong ones.
            forget_routes(message)
        if route.diverts and depth < DIVERT_DEPTH_MAX and route.divert(message, routing):
            return Routing.ROUTED
        known = self.addresses.by_name.get(address)
        acknowledged = None
        if tx is not None and message.has_own_properties:
            acknowledged = ids_in(message, ACK_ROUTE_TO)
            message.remove(ACK_ROUTE_TO)
        self._choose(message, route, queue_name, routing)
        if not routing.queues:
            if known is not None:
                known.unrouted_count += 1
            self._counters.unrouted += 1
            return self._without_queue(message, address, context, tx, is_dead=is_dead, depth=depth)
        if known is not None:
            known.routed_count += 1
        if acknowledged and tx is not None:
            self._put_acknowledged(message, routing.queues, acknowledged, context, tx)
        elif route.remote:
            self._put_and_forward(message, routing.queues, context, tx)
        else:
            self.enqueuer.put(message, routing.queues, context, tx)
        return Routing.ROUTED

    def _put_and_forward(
        self,
        message: Message,
        queues: list[Queue],
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        """Give a message to queues here, and a copy of it to those that lead to other brokers.

        The copy names queues there, which consumers here do not see.
        """
        forwarding = [one for one in queues if one.name.startswith(STORE_AND_FORWARD)]
        if not forwarding or len(forwarding) == len(queues):
            self.enqueuer.put(message, queues, context, tx)
            return
        copy = self._copies.copy_of(message)
        forget_routes(message)
        own = [one for one in queues if one not in forwarding]
        used = self._transactions.begin() if tx is None else tx
        try:
            self.enqueuer.put(copy, forwarding, context, used)
            self.enqueuer.put(message, own, context, used)
        except (BrokerError, JournalError):
            if tx is None:
                used.rollback(context)
            raise
        if tx is None:
            used.commit(context, _committed)

    def _put_acknowledged(
        self,
        message: Message,
        queues: list[Queue],
        acknowledged: list[int],
        context: OperationContext,
        tx: Transaction,
    ) -> None:
        """Take a message of a node that scales down, which its transaction acknowledges there.

        It waits in no queue, and is recorded by itself: a rollback of the prepared transaction has
        to leave it to its queue.
        """
        others = [one for one in queues if one.queue_id not in acknowledged]
        if others:
            self.enqueuer.put(self._copies.copy_of(message), others, context, tx)
        taken = [one for one in queues if one.queue_id in acknowledged]
        if not taken:
            return
        for reference in self.enqueuer.put_taken(message, taken, context):
            tx.acknowledge(reference)
            tx.arrived.append(reference)

    def _to_third_node(
        self, message: Message, ids: list[int], node_id: object, routing: RoutingContext
    ) -> None:
        """Let queues of another node take what one that scales down had for it."""
        for binding in self.addresses.remote.by_id.values():
            if binding.remote_id in ids and (
                not isinstance(node_id, str) or binding.forwarding.name.endswith(node_id)
            ):
                binding.route(message, routing)

    def _choose(
        self, message: Message, route: Route, queue_name: str | None, routing: RoutingContext
    ) -> None:
        """Let queues take a message: those it names by id, the one its address names, or any."""
        ids = None
        if message.has_own_properties:
            ids = queue_ids(message)
            there = ids_in(message, SCALEDOWN_TO)
            if there is not None:
                node_id = message.get(SCALEDOWN_NODE)
                message.remove(SCALEDOWN_TO)
                message.remove(SCALEDOWN_NODE)
                self._to_third_node(message, there, node_id, routing)
                if routing.queues:
                    return
        if ids is not None:
            message.remove(ROUTE_TO)
            self._to_named_queues(message, ids, routing)
            if routing.queues:
                return
        grouping = self.grouping
        if grouping is not None and (
            (route.is_exclusive and route.remote)
            or (message.has_own_properties and message.get(GROUP_ID) is not None)
        ):
            for group in route.groups_for(message, queue_name):
                chosen = grouping.binding_for(group.bindings, group.next_for, message)
                if chosen is not None:
                    chosen.route(message, routing)
            return
        if queue_name is None:
            route.route(message, routing)
            return
        binding = route.next_to_queue(queue_name, message)
        if binding is None or not binding.accepts(message):
            return
        routing_type = message.routing_type
        if routing_type is None or routing_type == binding.routing_type:
            binding.route(message, routing)

    def targets_by_id(self, message: Message) -> list[tuple[str, str]]:
        """Give address and name of the queues that a bridge, or an import, names by their ids.

        Raises:
            BrokerError: the property is not a list of ids.
        """
        ids = queue_ids(message) if message.has_own_properties else None
        if ids is None:
            return []
        by_id, remote = self.addresses.queues_by_id, self.addresses.remote.by_id
        found = [by_id[one] for one in ids if one in by_id]
        there = [remote[one] for one in ids if one in remote]
        return [
            *((one.binding.address, one.name) for one in found),
            *((one.address, one.queue_name) for one in there),
        ]

    def _to_named_queues(self, message: Message, ids: list[int], routing: RoutingContext) -> None:
        """Let the queues of these ids take a message, here or in other brokers.

        An id without a queue is logged.
        """
        addresses = self.addresses
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

    def _without_queue(
        self,
        message: Message,
        address: str,
        context: OperationContext,
        tx: Transaction | None,
        *,
        is_dead: bool,
        depth: int,
    ) -> Routing:
        """No queue wants it: it is dropped, or sent to the dead letter address if asked for."""
        settings = self._settings.match(address)
        if is_dead or not settings.send_to_dla_on_no_route:
            return Routing.NO_BINDINGS
        if not settings.dead_letter_address:
            log.warning("AMQ222150: no dead letter address for %s: message dropped", address)
            return Routing.NO_BINDINGS
        mark_original(message, message, None)
        message.address = settings.dead_letter_address
        message.routing_type = None
        self.route(message, context, tx, rejects_duplicates=False, is_dead=True, depth=depth)
        return Routing.NO_BINDINGS_DLA


def _delete_body(error: Exception | None, body: LargeBody) -> None:
    # A storage that has failed leaves it: the next start knows whether anybody has it.
    if error is None:
        body.delete()


def _committed(error: Exception | None) -> None:
    """Who sent it is told by his own context, behind this one."""
