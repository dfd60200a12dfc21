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
from broker.routing.duplicates import BRIDGE_ID, DUPLICATE_ID, id_bytes
from broker.routing.elsewhere import elsewhere
from broker.routing.enqueuer import Enqueuer, committed
from broker.routing.large_copies import DIVERT_DEPTH_MAX
from broker.routing.lifetime import limit_lifetime, limits_lifetime
from broker.routing.message_copies import mark_original
from broker.routing.named_queues import DONE, MISSING, NamedQueues
from broker.routing.queue_ids import ACK_ROUTE_TO, ROUTE_TO, ids_in
from broker.routing.remote_bindings import forget_routes
from broker.routing.route import Route
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.paging.paging import Paging
    from broker.ports import Settings
    from broker.queues.counters import Counters
    from broker.queues.queue import Queue
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import RoutingContext
    from broker.routing.duplicates import DuplicateCache, DuplicateCaches
    from broker.routing.elsewhere import Elsewhere
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
        named_queues: for messages that name their queues by ids.
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
        self.enqueuer = Enqueuer(addresses, paging, storage, transactions, copies)
        self.named_queues = NamedQueues(addresses, counters)
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
        self.duplicates.close()
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
            self._forget_routes()
        found = self._routes.get(address)
        if found is None:
            found = self._find(address)
            if len(self._routes) >= _ROUTES_MAX:
                self._routes.clear()
            self._routes[address] = found
        return found

    def _forget_routes(self) -> None:
        """Of addresses where something has changed; with 10,000 others one does not matter."""
        changed = self.addresses.changed_names
        for name in changed:
            if name is None:
                self._routes.clear()
                break
            self._routes.pop(name, None)
        changed.clear()

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
            or (route.is_exclusive and route.remote)
            or (self.grouping is not None and self.grouping.pins_alone)
            or not route.has_queues
            or limits_lifetime(settings)
        ):
            return None
        version = self.addresses.version
        return CachedRoute(
            address, route, settings, self.paging, version, until_s, self._monotonic_s
        )

    def elsewhere(
        self, message: Message, named: Iterable[bindings.Binding] | None, avoided: Queue
    ) -> Elsewhere:
        """Give the queues that may have a message in place of those of another broker.

        Args:
            message: that waits for them.
            named: the queues that it is for; None where one of them is not known.
            avoided: the store-and-forward queue of that broker.
        """
        route = self.route_of(split_fqqn(message.address or "")[0])
        return elsewhere(message, route, named, avoided, self.grouping)

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
        if cached.route.remote and len(routing.queues) > 1:
            self.enqueuer.put_and_forward(message, routing.queues, context, None)
        else:
            self.enqueuer.put_in_memory(message, routing.queues, 0, cached.memory, context, None)
        return True

    def send_with_id(
        self, cached: CachedRoute, message: Message, context: OperationContext
    ) -> bool:
        """Send a message alone, in which nothing is special but its duplicate id; send_cached().

        One that a peer of a cluster sends may name its queue, too.

        Returns:
            Whether it was: else nothing has happened, and route() decides.

        Raises:
            BrokerError: the disk is full; nothing happened.
            JournalError: it does not fit the storage, or that has failed.
        """
        if not cached.holds(self.addresses.version) or not cached.is_open(message.routing_number):
            return False
        name = cached.address.name
        bridged = message.get(BRIDGE_ID)
        named: Queue | None = None
        named_id: object = None
        if isinstance(bridged, bytes):
            found, ids, rest = bridged, self.duplicates.of_bridges(name), message
            named_id = message.get(ROUTE_TO)
            if named_id is not None:
                named = self.named_queues.only_one(named_id, name)
                if named is None:
                    return False
        else:
            own = id_bytes(message.get(DUPLICATE_ID))
            if own is None:
                return False
            # The message keeps it.
            found, ids, rest = own, self.duplicates.of(name), message.copy()
        if found in ids or (named is None and cached.route.remote):
            return False
        rest.remove(BRIDGE_ID if rest is message else DUPLICATE_ID)
        if named is not None:
            rest.remove(ROUTE_TO)
        routing = bindings.routing_context(self, context, None, 0)
        if not rest.has_own_properties:
            if named is None:
                cached.route.route(message, routing)
            else:
                routing.queues.append(named)
        if not routing.queues:
            if rest is message:
                message.set_bytes(BRIDGE_ID, found)
            if isinstance(named_id, bytes):
                message.set_bytes(ROUTE_TO, named_id)
            return False
        self.enqueuer.put_with_id(message, routing.queues, cached.memory, context, ids, found)
        cached.address.routed_count += 1
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
            BrokerError: the message is refused, perhaps because it names a queue that is gone;
                nothing happened, but `tx`, where there is one, can only be rolled back.
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
                    tx.add_duplicate_id(cache, duplicate_id, message.message_id)
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
            own_tx.commit(context, committed)
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
        is_missing = self._choose(message, route, queue_name, routing)
        if not routing.queues:
            if known is not None:
                known.unrouted_count += 1
            self._counters.unrouted += 1
            result = self._without_queue(
                message, address, context, tx, is_dead=is_dead, depth=depth
            )
            if is_missing and result is Routing.NO_BINDINGS:
                raise broker_error(
                    "no_such_queue",
                    f"the queue that message {message.message_id} to {address} names is gone, and "
                    "no other one takes it",
                )
            return result
        if known is not None:
            known.routed_count += 1
        if acknowledged and tx is not None:
            self.enqueuer.put_acknowledged(message, routing.queues, acknowledged, context, tx)
        elif route.remote:
            self.enqueuer.put_and_forward(message, routing.queues, context, tx)
        else:
            self.enqueuer.put(message, routing.queues, context, tx)
        return Routing.ROUTED

    def _choose(
        self, message: Message, route: Route, queue_name: str | None, routing: RoutingContext
    ) -> bool:
        """Let queues take a message: those it names by id, the one its address names, or any.

        Returns:
            Whether it names an anycast queue that is gone, and there is no other one.
        """
        grouping = self.grouping
        if message.has_own_properties:
            named = self.named_queues.route(message, route, queue_name, grouping, routing)
            if named == DONE:
                return False
            if named == MISSING:
                return True
        if grouping is not None and (
            (route.is_exclusive and route.remote)
            or (message.has_own_properties and message.get(GROUP_ID) is not None)
        ):
            for group in route.groups_for(message, queue_name):
                chosen = grouping.binding_for(group.bindings, group.next_for, message)
                if chosen is not None:
                    chosen.route(message, routing)
        elif queue_name is None:
            route.route(message, routing)
        else:
            binding = route.next_to_queue(queue_name, message)
            if (
                binding is not None
                and binding.accepts(message)
                and binding.is_for(message.routing_type)
            ):
                binding.route(message, routing)
        return False

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
