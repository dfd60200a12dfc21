"""What the name in a link's source or target means, and what is made for it.

    target    an address; missing ones are made as settings allow
    source    a queue of it, or a subscription: a queue made for it alone
    dynamic   a temporary queue or address, whose name the broker chooses

The routing type is that of a capability, else of a prefix, else as the address has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType
from broker.protocols.amqp.conditions import ILLEGAL_STATE, NOT_FOUND, AmqpError
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.protocols.amqp.termini import Filters
    from broker.protocols.peer import Sessions
    from broker.queues.queue import Queue
    from broker.sessions.prefixes import Prefixes
    from broker.sessions.session import Session

__all__ = ["CONTAINER_ID", "Nodes", "Source", "Subscription", "capability_type"]

CONTAINER_ID: Final = "__AMQ_CID"
"""Property of the connection that sent a message; subscriptions with no-local look at it."""

_TYPES: Final = {
    "topic": RoutingType.MULTICAST,
    "temporary-topic": RoutingType.MULTICAST,
    "queue": RoutingType.ANYCAST,
    "temporary-queue": RoutingType.ANYCAST,
}
# Of names in those of Core's subscriptions (DestinationUtil.escape).
_ESCAPES: Final = str.maketrans({"\\": "\\\\", ".": "\\."})
_TEXTS: Final = {RoutingType.MULTICAST: "topic", RoutingType.ANYCAST: "queue"}


def capability_type(capabilities: Sequence[str]) -> RoutingType | None:
    """Give the routing type that a capability asks for; the first one counts."""
    return next((_TYPES[one] for one in capabilities if one in _TYPES), None)


class Subscription(NamedTuple):
    """What a source says of the subscription that it wants.

    Attributes:
        link: name of the link.
        is_durable: it survives its connection.
        is_shared: several links may consume from it.
        is_global: of any container.
    """

    link: str
    is_durable: bool
    is_shared: bool
    is_global: bool


class Source(NamedTuple):
    """Where a link takes messages from.

    Attributes:
        queue: its name.
        selector: of the consumer; None where the queue has it, or there is none.
        is_subscription: made for the link, not of its own name.
        is_temporary: goes with the link.
        is_durable: goes with a link that is closed, not with one that is detached.
    """

    queue: str
    selector: str | None = None
    is_subscription: bool = False
    is_temporary: bool = False
    is_durable: bool = False


class Nodes:
    """Of one session.

    Args:
        session: of the broker.
        prefixes: of the acceptor.
        container_id: of the peer.
        sessions: the broker.
    """

    __slots__ = (
        "_container_id",
        "_ids",
        "_implicit",
        "_names_as_core",
        "_prefixes",
        "_session",
        "_version",
    )

    def __init__(
        self, session: Session, prefixes: Prefixes, container_id: str, sessions: Sessions
    ) -> None:
        self._session = session
        self._prefixes = prefixes
        self._container_id = container_id
        self._ids = sessions.ids
        self._names_as_core = sessions.amqp_core_subscription_naming
        # Implicit routing types by address, and the version of the broker's names that they are of.
        self._implicit: dict[str, RoutingType | None] = {}
        self._version = -1

    # --- targets ------------------------------------------------------------------------------

    def target(self, name: str, capabilities: Sequence[str]) -> RoutingType | None:
        """See that messages may be sent somewhere; the routing type that they are sent with.

        Raises:
            AmqpError: there is no such address, and it may not be made.
            BrokerError: the user may not send there.
        """
        plain, by_prefix = self._prefixes.split(name)
        explicit = capability_type(capabilities)
        if explicit is None:
            explicit = by_prefix
        address = split_fqqn(plain)[0]
        wanted = explicit if explicit is not None else self.implicit_type(address)
        administration = self._session.administration
        try:
            self._session.create_sender(plain, wanted)
        except BrokerError as error:
            if error.code is ErrorCode.ADDRESS_DOES_NOT_EXIST:
                raise _no_target(name) from error
            raise
        query = administration.query_address(address)
        if query.address is None and not query.is_management:
            raise _no_target(name)
        return wanted

    def implicit_type(self, address: str) -> RoutingType | None:
        """Give the routing type of an address for which none was asked: its only one.

        None where it has both; the default of its settings where it is missing.
        """
        administration = self._session.administration
        if self._version != administration.version:
            self._implicit.clear()
            self._version = administration.version
        elif address in self._implicit:
            return self._implicit[address]
        query = administration.query_address(address)
        found: RoutingType | None
        if query.address is None:
            found = RoutingType(query.settings.default_address_routing_type)
        else:
            types = query.address.routing_types
            found = next(iter(types)) if len(types) == 1 else None
        self._implicit[address] = found
        return found

    def dynamic_target(self, capabilities: Sequence[str]) -> tuple[str, RoutingType]:
        """Make a temporary queue or address to send to; its name and type.

        Raises:
            BrokerError: the user may not make it.
        """
        name = str(self._ids.random_uuid())
        asked = capability_type(capabilities)
        if asked is RoutingType.MULTICAST:
            self._session.administration.create_address(name, [asked], is_auto_created=True)
            return name, asked
        self._make_temporary(name, name, RoutingType.ANYCAST, None)
        return name, RoutingType.ANYCAST

    def without_prefix(self, name: str) -> str:
        """Give an address as the broker knows it."""
        return self._prefixes.split(name)[0]

    def type_for(self, name: str) -> RoutingType | None:
        """Give the routing type of a message that says where it goes, and nothing else."""
        plain, by_prefix = self._prefixes.split(name)
        return self.implicit_type(split_fqqn(plain)[0]) if by_prefix is None else by_prefix

    # --- sources ------------------------------------------------------------------------------

    def dynamic_source(self) -> str:
        """Make a temporary queue to receive from; its name.

        Raises:
            BrokerError: the user may not make it.
        """
        name = str(self._ids.random_uuid())
        self._make_temporary(name, name, RoutingType.ANYCAST, None)
        return name

    def _make_temporary(
        self, name: str, address: str, routing_type: RoutingType, filter: str | None
    ) -> None:
        self._session.administration.create_queue(
            QueueRequest(
                name=name,
                address=address,
                filter=filter,
                is_durable=False,
                is_temporary=True,
                routing_type=routing_type,
            )
        )

    def source(
        self,
        name: str,
        capabilities: Sequence[str],
        filters: Filters,
        wanted: Subscription,
    ) -> Source:
        """Give where a link takes messages from, made where it is missing.

        Args:
            name: as the link says it.
            capabilities: of the source.
            filters: of the source.
            wanted: what is made of it where it is a topic.

        Raises:
            AmqpError: it is refused.
            BrokerError: the user may not, or a name cannot be made.
        """
        plain, by_prefix = self._prefixes.split(name)
        address, queue = split_fqqn(plain)
        explicit = capability_type(capabilities)
        if explicit is None:
            explicit = by_prefix
        routing_type = self._ensure_address(address, explicit, is_qualified=queue is not None)
        if queue is not None:
            return self._qualified(address, queue, routing_type, filters)
        if routing_type is RoutingType.MULTICAST:
            return self._subscription(address, filters, wanted)
        return Source(self._queue_of(address), filters.selector)

    def _ensure_address(
        self, address: str, explicit: RoutingType | None, *, is_qualified: bool
    ) -> RoutingType:
        administration = self._session.administration
        query = administration.query_address(address)
        settings = query.settings
        types = frozenset() if query.address is None else frozenset(query.address.routing_types)
        wanted = explicit
        if wanted is None:
            if not types:
                wanted = RoutingType(settings.default_address_routing_type)
            else:
                is_topic = types == frozenset({RoutingType.MULTICAST})
                return RoutingType.MULTICAST if is_topic else RoutingType.ANYCAST
        if wanted in types:
            return wanted
        if not types:
            if not settings.auto_create_addresses:
                raise AmqpError(NOT_FOUND, "AMQ119010: source address does not exist")
            administration.create_address(address, [wanted], is_auto_created=True)
            return wanted
        if is_qualified and wanted is RoutingType.ANYCAST:
            return wanted
        if settings.auto_create_addresses and wanted is RoutingType.ANYCAST:
            administration.create_address(address, [wanted], is_auto_created=True)
            return wanted
        raise AmqpError(
            ILLEGAL_STATE, f"Address {address} is not configured for {_TEXTS[wanted]} support"
        )

    def _qualified(
        self, address: str, queue: str, routing_type: RoutingType, filters: Filters
    ) -> Source:
        administration = self._session.administration
        found = administration.query_queue(queue).queue
        if found is None:
            if not administration.query_address(address).settings.auto_create_queues:
                raise AmqpError(
                    NOT_FOUND, f"Queue: '{queue}' does not exist for address '{address}'"
                )
            is_topic = routing_type is RoutingType.MULTICAST
            administration.create_queue(
                QueueRequest(
                    name=queue,
                    address=address,
                    filter=filters.selector if is_topic else None,
                    routing_type=routing_type,
                    is_auto_created=True,
                )
            )
            return Source(queue, None if is_topic else filters.selector)
        if found.binding.address != address:
            raise AmqpError(NOT_FOUND, f"Queue: '{queue}' does not exist for address '{address}'")
        if found.binding.routing_type is RoutingType.MULTICAST:
            if filters.selector is not None and filters.selector != found.binding.filter:
                raise AmqpError(
                    ILLEGAL_STATE, f"Queue: '{queue}' filter mismatch {found.binding.filter}"
                )
            return Source(queue)
        return Source(queue, filters.selector)

    def _queue_of(self, address: str) -> str:
        """Give an anycast queue of an address: the first one, else one of its name."""
        administration = self._session.administration
        query = administration.query_address(address)
        if query.is_management:
            return address
        for name in query.queues:
            queue = administration.query_queue(name).queue
            if (
                queue is not None
                and queue.binding.address == address
                and queue.binding.routing_type is RoutingType.ANYCAST
            ):
                return queue.name
        if not query.settings.auto_create_queues:
            raise AmqpError(NOT_FOUND, "AMQ119010: source address does not exist")
        administration.create_queue(
            QueueRequest(
                name=address,
                address=address,
                routing_type=RoutingType.ANYCAST,
                is_auto_created=True,
            )
        )
        return address

    # --- subscriptions ------------------------------------------------------------------------

    def queue_name(self, wanted: Subscription) -> str:
        """Give the name of a subscription's queue (AmqpSupport.createQueueName)."""
        container = "" if wanted.is_global else self._container_id
        base = wanted.link.partition("|")[0]
        if self._names_as_core:
            parts = [*((container,) if container else ()), base]
            first = [] if wanted.is_durable else ["nonDurable"]
            return ".".join(first + [part.translate(_ESCAPES) for part in parts])
        if not wanted.is_shared:
            base = wanted.link
        name = f"{container}.{base}" if container else base
        if not wanted.is_shared:
            return name
        kind = "" if wanted.is_durable else ":shared-volatile"
        return f"{name}{kind}:global" if wanted.is_global else f"{name}{kind}"

    def filter_of(self, filters: Filters) -> str | None:
        """Give the selector of a subscription's queue."""
        if not filters.is_no_local:
            return filters.selector
        other = self._of_others()
        # Artemis's has no second half, and so nothing that other protocols send.
        other = f"({other} OR {CONTAINER_ID} IS NULL)"
        return f"({filters.selector}) AND {other}" if filters.selector else other

    def _of_others(self) -> str:
        return f"{CONTAINER_ID}<>'{self._container_id.replace(chr(39), chr(39) * 2)}'"

    def filters_of(self, filter: str | None) -> tuple[str | None, bool]:
        """Give the selector in a queue's filter, and whether it leaves out what comes from here."""
        other = self._of_others()
        for end in (f"({other} OR {CONTAINER_ID} IS NULL)", other):
            if filter == end:
                return None, True
            if filter is not None and filter.endswith(f" AND {end}"):
                selector = filter.removesuffix(f" AND {end}")
                return selector.removeprefix("(").removesuffix(")"), True
        return filter, False

    def _subscription(self, address: str, filters: Filters, wanted: Subscription) -> Source:
        administration = self._session.administration
        selector = self.filter_of(filters)
        if not wanted.is_durable and not wanted.is_shared:
            name = str(self._ids.random_uuid())
            self._make_temporary(name, address, RoutingType.MULTICAST, selector)
            return Source(name, is_subscription=True, is_temporary=True)
        name = self.queue_name(wanted)
        found = administration.query_queue(name).queue
        if found is not None and self._is_other(found, address, filters):
            if found.consumer_count:
                raise AmqpError(
                    ILLEGAL_STATE, "Unable to recreate subscription, consumers already exist"
                )
            administration.delete_queue(name)
            found = None
        if found is None:
            administration.create_queue(
                QueueRequest(
                    name=name,
                    address=address,
                    filter=selector,
                    routing_type=RoutingType.MULTICAST,
                    is_durable=wanted.is_durable,
                    # As Artemis: a shared one is deleted when it is not used, unless it is durable.
                    is_auto_created=not wanted.is_durable,
                    max_consumers=None if wanted.is_shared else 1,
                )
            )
        return Source(name, is_subscription=True, is_durable=wanted.is_durable)

    def _is_other(self, queue: Queue, address: str, filters: Filters) -> bool:
        binding = queue.binding
        if binding.configuration_managed:
            return False
        known = self.filters_of(binding.filter or None)
        return binding.address != address or known != (filters.selector, filters.is_no_local)

    def known(self, link: str) -> Queue:
        """Give the queue of a subscription that a link without a source names.

        The capabilities by which such a link says of what kind it is are not seen here: the engine
        leaves them out. So each kind is looked for. Artemis finds the shared ones alone.

        Raises:
            AmqpError: there is none.
        """
        administration = self._session.administration
        for is_shared, is_global in ((True, False), (False, False), (True, True)):
            name = self.queue_name(Subscription(link, True, is_shared, is_global))
            queue = administration.query_queue(name).queue
            if queue is not None:
                return queue
        raise AmqpError(NOT_FOUND, f"Unknown subscription link: {link}")


def _no_target(name: str) -> AmqpError:
    return AmqpError(NOT_FOUND, f"AMQ119002: target address {name} does not exist")
