"""Where a message goes: address, duplicate ids, diverts, queues, records.

    route() ─▶ expiry of the address ─▶ duplicate ids ─▶ diverts ─▶ queues ─▶ records ─▶ references

ANYCAST goes to one of the anycast queues of each address or pattern, in turn; MULTICAST to every
multicast queue; a message without a routing type to both. A queue bound to a pattern takes part for
every address that matches. What is found for an address is kept until a binding changes.

The references of a message sent alone get into their queues once its records are durable, those of
a transaction with its commit.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import enum
import logging
import struct
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType
from broker.model.scheduled_time import SCHEDULED, time_ms
from broker.queues.reference import reference_to
from broker.routing.cached_routes import CachedRoute
from broker.routing.duplicates import BRIDGE_ID
from broker.routing.large_copies import DIVERT_DEPTH_MAX
from broker.routing.message_copies import mark_original
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.paging.paging import Paging
    from broker.ports import Settings
    from broker.queues.counters import Counters
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.addresses import Addresses
    from broker.routing.divert import Divert
    from broker.routing.duplicates import DuplicateCache, DuplicateCaches
    from broker.routing.message_copies import MessageCopies
    from broker.storage.context import OperationContext
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["ROUTE_TO", "PostOffice", "Routing"]

log = logging.getLogger("broker")

ROUTE_TO: Final = "_AMQ_ROUTE_TO"
# Names are chosen by clients: what is remembered for them is dropped when there are that many.
_ROUTES_MAX: Final = 20_000


class Routing(enum.Enum):
    """What became of a message."""

    ROUTED = enum.auto()
    NO_BINDINGS = enum.auto()
    NO_BINDINGS_DLA = enum.auto()
    DUPLICATE = enum.auto()


class AnycastQueues:
    """The ANYCAST queues of one address or pattern: each message goes to one of them."""

    __slots__ = ("_position", "_queues")

    def __init__(self, queues: list[Queue]) -> None:
        self._queues = queues
        self._position = 0

    def next_for(self, message: Message) -> Queue | None:
        """Give the queue whose turn it is; those with a consumer for the message come first."""
        queues = self._queues
        count = len(queues)
        if count == 1:
            queue = queues[0]
            return queue if queue.accepts(message) else None
        chosen: int | None = None
        for step in range(count):
            position = (self._position + step) % count
            queue = queues[position]
            if not queue.accepts(message):
                continue
            if queue.has_consumer_for(message):
                chosen = position
                break
            if chosen is None:
                chosen = position
        if chosen is None:
            return None
        self._position = chosen + 1
        return queues[chosen]


class Route:
    """What is bound to one address, patterns included."""

    __slots__ = ("_anycast_by_address", "anycast", "diverts", "multicast")

    def __init__(self, queues: list[Queue], diverts: list[Divert]) -> None:
        self.anycast = [one for one in queues if one.binding.routing_type == RoutingType.ANYCAST]
        self.multicast = [one for one in queues if one.binding.routing_type != RoutingType.ANYCAST]
        self.diverts = diverts
        by_address: dict[str, list[Queue]] = {}
        for queue in self.anycast:
            by_address.setdefault(queue.binding.address, []).append(queue)
        self._anycast_by_address = [AnycastQueues(some) for some in by_address.values()]

    def has(self, queue: Queue) -> bool:
        """Whether a queue is bound here."""
        return queue in self.anycast or queue in self.multicast

    def queues_for(self, message: Message, routing_type: RoutingType | None) -> list[Queue]:
        """Give the queues that get a message of this type, where None is both."""
        found: list[Queue] = []
        if routing_type is not RoutingType.ANYCAST:
            for queue in self.multicast:
                if queue.accepts(message):
                    found.append(queue)  # noqa: PERF401 - a comprehension's variable has no type.
        if routing_type is not RoutingType.MULTICAST:
            for queues in self._anycast_by_address:
                chosen = queues.next_for(message)
                if chosen is not None:
                    found.append(chosen)
        return found


class PostOffice:
    """See the module's text.

    Args:
        addresses: what is bound where.
        duplicates: ids that addresses have seen.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        storage: where records go.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        transactions: where those begin that record an id and its message together.
        copies: makes those that diverts send.
        counters: for metrics.
    """

    def __init__(
        self,
        *,
        addresses: Addresses,
        duplicates: DuplicateCaches,
        paging: Paging | None,
        storage: StorageManager,
        clock_ms: Callable[[], int],
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
        self._settings = settings
        self._transactions = transactions
        self._copies = copies
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
        queues = [] if own is None else list(own.queues.values())
        for pattern in self.addresses.patterns.matching(address):
            # A pattern is an address too: what is sent to it literally it has already.
            if pattern is not own:
                queues += pattern.queues.values()
        return Route(queues, [] if own is None else list(own.diverts.values()))

    def has_queues(self, address: str) -> bool:
        """Whether anything but diverts is bound to an address."""
        route = self.route_of(address)
        return bool(route.anycast or route.multicast)

    def cached_route(self, name: str, until_s: float) -> CachedRoute | None:
        """Give what nearly every message to an address needs to know; None where it is not enough.

        Args:
            name: of the address that a user may send to.
            until_s: until when the user may.
        """
        address = self.addresses.by_name.get(name)
        route = self.route_of(name)
        settings = self._settings.match(name)
        if (
            address is None
            or route.diverts
            or not (route.anycast or route.multicast)
            or settings.no_expiry
            or settings.expiry_delay_ms >= 0
            or settings.min_expiry_delay_ms >= 0
            or settings.max_expiry_delay_ms >= 0
        ):
            return None
        version = self.addresses.version
        return CachedRoute(address, route, settings, self.paging, version, until_s)

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
        route = cached.route
        queues = route.queues_for(message, message.routing_type)
        if not queues:
            return False
        cached.address.routed_count += 1
        self._put(message, queues, 0, cached.memory, context, None)
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
        self._limit_lifetime(message, address)
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

    def _limit_lifetime(self, message: Message, address: str) -> None:
        """Apply the address's no-expiry, expiry-delay, min- and max-expiry-delay."""
        settings = self._settings.match(address)
        if settings.no_expiry:
            if message.expiration:
                message.expiration = 0
            return
        delay, least, most = (
            settings.expiry_delay_ms,
            settings.min_expiry_delay_ms,
            settings.max_expiry_delay_ms,
        )
        if delay < 0 and least < 0 and most < 0:
            return
        now_ms = self._clock_ms()
        expiration = message.expiration
        if delay >= 0:
            if expiration == 0:
                message.expiration = now_ms + delay
        elif expiration == 0:
            message.expiration = now_ms + (most if most >= 0 else least)
        elif 0 <= most < expiration - now_ms:
            message.expiration = now_ms + most
        elif least >= 0 and expiration - now_ms < least:
            message.expiration = now_ms + least

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
        if route.diverts and depth < DIVERT_DEPTH_MAX:
            for divert in route.diverts:
                if divert.takes(message):
                    self._forward(divert, message, context, tx, depth + 1)
                    if divert.is_exclusive:
                        return Routing.ROUTED
        known = self.addresses.by_name.get(address)
        queues = self._queues(message, route, queue_name)
        if not queues:
            if known is not None:
                known.unrouted_count += 1
            self._counters.unrouted += 1
            return self._without_queue(message, address, context, tx, is_dead=is_dead, depth=depth)
        if known is not None:
            known.routed_count += 1
        self.put(message, queues, context, tx)
        return Routing.ROUTED

    def _forward(
        self,
        divert: Divert,
        message: Message,
        context: OperationContext,
        tx: Transaction | None,
        depth: int,
    ) -> None:
        for copy in divert.copies(message, self._copies.copy_of):
            self.route(copy, context, tx, rejects_duplicates=False, depth=depth)

    def _queues(self, message: Message, route: Route, queue_name: str | None) -> list[Queue]:
        explicit = message.get(ROUTE_TO)
        if isinstance(explicit, bytes):
            found = self._named_queues(message, explicit)
            message.remove(ROUTE_TO)
            if found:
                return found
        routing_type = message.routing_type
        if queue_name is None:
            return route.queues_for(message, routing_type)
        queue = self.addresses.queues.get(queue_name)
        if queue is None or not route.has(queue) or not queue.accepts(message):
            return []
        if routing_type is not None and routing_type != queue.binding.routing_type:
            return []
        return [queue]

    def queues_by_id(self, message: Message) -> list[Queue]:
        """Give the queues that a bridge, or an import, names by their ids; [] where it names none.

        Raises:
            BrokerError: the property is not a list of ids.
        """
        explicit = message.get(ROUTE_TO) if message.has_own_properties else None
        if not isinstance(explicit, bytes):
            return []
        by_id = self.addresses.queues_by_id
        return [by_id[one] for one in _queue_ids(explicit) if one in by_id]

    def _named_queues(self, message: Message, ids: bytes) -> list[Queue]:
        """Give the queues of these ids; an id without a queue is logged."""
        found = []
        for queue_id in _queue_ids(ids):
            queue = self.addresses.queues_by_id.get(queue_id)
            if queue is None:
                log.warning(
                    "AMQ222196: no queue has id %d, which message %d to %s names",
                    queue_id,
                    message.message_id,
                    message.address,
                )
            else:
                found.append(queue)
        if not found:
            log.warning(
                "message %d is routed by its address %s alone", message.message_id, message.address
            )
        return found

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

    # --- records and references ---------------------------------------------------------------

    def put(
        self,
        message: Message,
        queues: list[Queue],
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        """Record a message for these queues, and give it to them once that is durable."""
        scheduled = message.get(SCHEDULED)
        scheduled_ms = 0 if scheduled is None else time_ms(scheduled)
        memory = self._memory_of(message, queues[0])
        paging = self.paging
        if paging is not None:
            queues, paged = paging.split(message, queues, memory)
            if paged:
                # What may be refused comes first: there is room in the pages.
                if queues:
                    self._put(message, queues, scheduled_ms, memory, context, tx)
                paging.append(paged, context, tx)
                return
        self._put(message, queues, scheduled_ms, memory, context, tx)

    def _put(
        self,
        message: Message,
        queues: list[Queue],
        scheduled_ms: int,
        memory: AddressMemory,
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        if message.durable:
            self._record(message, queues, scheduled_ms, context, tx)
        for queue in queues:
            reference = reference_to(message, queue, scheduled_ms)
            memory.add(message)
            if tx is None:
                context.then(_add, (reference,))
            else:
                tx.send(reference)

    def _record(
        self,
        message: Message,
        queues: list[Queue],
        scheduled_ms: int,
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        durable = []
        for queue in queues:
            if queue.is_durable:
                durable.append(queue)  # noqa: PERF401 - as above.
        if not durable:
            return
        storage, message_id = self._storage, message.message_id
        tx_id = None if tx is None else tx.tx_id
        storage.store_message(message, tx_id)
        last = durable[-1]
        try:
            for queue in durable:
                is_last = queue is last and not scheduled_ms
                storage.store_reference(queue.queue_id, message_id, tx_id, is_last)
                if scheduled_ms:
                    storage.update_scheduled_time(queue.queue_id, message_id, scheduled_ms, tx_id)
        except BrokerError:
            # The disk is full: no queue has it, whatever was recorded before.
            if tx_id is None:
                storage.delete_message(message_id)
            raise
        message.durable_references = len(durable)
        if tx is not None:
            tx.has_records = True
        else:
            context.note()

    def _memory_of(self, message: Message, queue: Queue) -> AddressMemory:
        address, _ = split_fqqn(message.address or "")
        known = self.addresses.by_name.get(address)
        if known is None:
            # Sent to a name that only patterns match: it counts where it is kept.
            known = self.addresses.by_name[queue.binding.address]
        return known.memory


def _queue_ids(ids: bytes) -> list[int]:
    if len(ids) % 8:
        raise BrokerError(
            ErrorCode.ILLEGAL_STATE, f"{ROUTE_TO} of {len(ids)} bytes is not a list of queue ids"
        )
    return [one for (one,) in struct.iter_unpack(">q", ids)]


def _add(error: Exception | None, reference: Reference) -> None:
    if error is None:
        queue = reference.queue
        queue.add(reference)


def _delete_body(error: Exception | None, body: LargeBody) -> None:
    # A storage that has failed leaves it: the next start knows whether anybody has it.
    if error is None:
        body.delete()


def _committed(error: Exception | None) -> None:
    """Who sent it is told by his own context, behind this one."""
