"""What a header `destination` names, and what is made so that it is there.

    queue://orders            prefix of the acceptor, ANYCAST
    orders::eu                the queue eu of the address orders
    orders                    routing type as the frame says, else as the address has it

An address that is missing is made with the routing type of the frame, else with its settings'
default-address-routing-type. One that is there gets another type only where the frame names it:
Artemis gives it the default type as well, without asking whether the user may change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.address import split_fqqn
from broker.model.message import ROUTING_TYPE_PROPERTY
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.sent_message import encoded
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from broker.sessions.client_administration import ClientAdministration
    from broker.sessions.prefixes import Prefixes

__all__ = ["Destination", "Destinations"]

# Names are chosen by clients: what is remembered of them is dropped when there are that many.
_KNOWN_MAX: Final = 100
_ROUTING_TYPES: Final = {one.name: one for one in (RoutingType.ANYCAST, RoutingType.MULTICAST)}
_PROPERTIES: Final = {
    one: encoded(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(one))
    for one in _ROUTING_TYPES.values()
}


class Destination(NamedTuple):
    """What a header `destination` names.

    Attributes:
        name: without prefix; may be qualified by a queue.
        address: of it.
        queue: that it is qualified by.
        routing_type: by prefix or header; None leaves it to the address.
        prefix: that it had.
        routing_property: of messages sent there, encoded; None without a routing type.
    """

    name: str
    address: str
    queue: str | None
    routing_type: RoutingType | None
    prefix: str
    routing_property: bytes | None


class Destinations:
    """Of one connection.

    Args:
        administration: of its session.
        prefixes: of its acceptor.
    """

    __slots__ = (
        "_administration",
        "_known",
        "_known_version",
        "_prefixes",
    )

    def __init__(self, administration: ClientAdministration, prefixes: Prefixes) -> None:
        self._administration = administration
        self._prefixes = prefixes
        self._known: dict[tuple[str | None, str | None], Destination] = {}
        self._known_version = -1

    def for_sending(self, headers: Mapping[str, str]) -> Destination:
        """Give where a SEND goes, which is there or was made.

        Raises:
            StompError: no or no valid destination, or it cannot be made.
            BrokerError: the user may not make it.
        """
        administration = self._administration
        key = (headers.get("destination"), headers.get("destination-type"))
        if self._known_version == administration.version:
            found = self._known.get(key)
            if found is not None:
                return found
        else:
            self._known.clear()
        made = self.named(headers, "destination-type")
        self.prepare(made)
        # Making it may have changed that.
        if self._known_version != administration.version or len(self._known) >= _KNOWN_MAX:
            self._known.clear()
            self._known_version = administration.version
        self._known[key] = made
        return made

    def plain(self, name: str) -> str:
        """Give a name without its prefix."""
        return self._prefixes.split(name)[0]

    def named(self, headers: Mapping[str, str], type_header: str) -> Destination:
        """Give what a frame names.

        Args:
            headers: of the frame.
            type_header: name of that which has the routing type.

        Raises:
            StompError: no destination, or no such routing type.
        """
        given = headers.get("destination")
        if not given:
            raise StompError("the frame has no header destination")
        plain, routing_type = self._prefixes.split(given)
        prefix = given.removesuffix(plain) if routing_type is not None else ""
        wanted = headers.get(type_header)
        if wanted is not None:
            routing_type = _ROUTING_TYPES.get(wanted)
            if routing_type is None:
                raise StompError(
                    f"header {type_header} is not one of {', '.join(sorted(_ROUTING_TYPES))}: "
                    f"{wanted[:40]}"
                )
        address, queue = split_fqqn(plain)
        if not address or queue == "":
            raise StompError(f"the destination {given!r} names nothing")
        made = None if routing_type is None else _PROPERTIES[routing_type]
        return Destination(plain, address, queue, routing_type, prefix, made)

    def prepare(self, destination: Destination) -> AbstractSet[RoutingType]:
        """Make what is missing of it; its routing types.

        Raises:
            StompError: it is not there and may not be made, or has another routing type.
            BrokerError: the user may not make it.
        """
        administration = self._administration
        name, wanted = destination.address, destination.routing_type
        query = administration.query_address(name)
        if query.is_management:
            return frozenset()
        settings = query.settings
        types = frozenset() if query.address is None else frozenset(query.address.routing_types)
        if wanted is None:
            wanted = RoutingType(settings.default_address_routing_type)
            if types and wanted not in types:
                (wanted,) = types
        if wanted not in types and settings.auto_create_addresses:
            administration.create_address(name, [wanted], is_auto_created=True)
            types |= {wanted}
        if not types and administration.query_address(name).address is None:
            raise StompError(f"AMQ339001: Destination does not exist: {destination.name}")
        if destination.routing_type is not None and destination.routing_type not in types:
            raise StompError(
                f"AMQ339041: Not allowed to specify {destination.routing_type.name} semantics on "
                f"{', '.join(sorted(one.name for one in types))} address."
            )
        queue = destination.queue
        if queue is None and wanted is RoutingType.ANYCAST:
            queue = name
        if (
            queue is not None
            and settings.auto_create_queues
            and administration.query_queue(queue).queue is None
        ):
            administration.create_queue(
                QueueRequest(name=queue, address=name, routing_type=wanted, is_auto_created=True)
            )
        return types
