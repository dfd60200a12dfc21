"""What a destination of OpenWire means: an address and a queue, and what is made for it.

    queue://a.b             address a.b, queue a.b, ANYCAST
    topic://a.b             address a.b, MULTICAST, a queue for each subscription
    temp-queue://…          temporary: gone with the connection
    a,queue://b,topic://c   composite: each for itself
    a::q                    the queue q of the address a
    a.*.>                   wildcards, in consumers alone: a.*.#

What is missing is made, where the settings of its address say so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType
from broker.protocols.name_syntax import converted, syntax_of
from broker.protocols.openwire.commands import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from broker.protocols.openwire.errors import INVALID_DESTINATION, OpenWireError
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from broker.model.address import WildcardConfiguration
    from broker.sessions.client_administration import ClientAdministration

__all__ = [
    "ADVISORY_PREFIX",
    "Destinations",
    "Target",
    "destination_of",
    "is_advisory",
    "is_queue",
    "is_temporary",
    "parts_of",
    "qualified",
]

ADVISORY_PREFIX: Final = "ActiveMQ.Advisory."
_SYNTAX: Final = ".*>"
# Names are chosen by clients: what is remembered of them is dropped when there are that many.
_KNOWN_MAX: Final = 1000
_PARTS_MAX: Final = 256
_PREFIXES: Final[dict[type, str]] = {
    ActiveMQQueue: "queue://",
    ActiveMQTopic: "topic://",
    ActiveMQTempQueue: "temp-queue://",
    ActiveMQTempTopic: "temp-topic://",
}
_TYPES: Final[dict[str, type[ActiveMQDestination]]] = {
    "queue": ActiveMQQueue,
    "topic": ActiveMQTopic,
    "temp-queue": ActiveMQTempQueue,
    "temp-topic": ActiveMQTempTopic,
}
_WORDS: Final[dict[type, str]] = {
    ActiveMQQueue: "Queue",
    ActiveMQTopic: "Topic",
    ActiveMQTempQueue: "TempQueue",
    ActiveMQTempTopic: "TempTopic",
}


def is_queue(destination: ActiveMQDestination) -> bool:
    """Whether each message goes to one consumer."""
    return isinstance(destination, ActiveMQQueue | ActiveMQTempQueue)


def is_temporary(destination: ActiveMQDestination) -> bool:
    """Whether it ends with its connection."""
    return isinstance(destination, ActiveMQTempQueue | ActiveMQTempTopic)


def is_advisory(destination: ActiveMQDestination) -> bool:
    """Whether the broker tells there of what happens in it."""
    name = destination.physical_name or ""
    return isinstance(destination, ActiveMQTopic) and name.startswith(ADVISORY_PREFIX)


def qualified(destination: ActiveMQDestination) -> str:
    """Give the text of a destination, which says its type; a composite one has none."""
    name = destination.physical_name or ""
    return name if "," in name else _PREFIXES[type(destination)] + name


def destination_of(text: str, default: type[ActiveMQDestination]) -> ActiveMQDestination:
    """Read the text of a destination.

    >>> destination_of("topic://a", ActiveMQQueue)
    ActiveMQTopic(physical_name='a')
    """
    for word, made in _TYPES.items():
        # Both forms are Classic's (ActiveMQDestination.createDestination).
        for prefix in (f"{word}://", f"{word}:"):
            if text.startswith(prefix):
                return made(text.removeprefix(prefix))
    return default(text)


def parts_of(destination: ActiveMQDestination) -> list[ActiveMQDestination]:
    """Give each destination of a composite one, or it alone.

    Raises:
        OpenWireError: it has no name, or too many parts.
    """
    name = (destination.physical_name or "").partition("?")[0]
    if not name:
        raise OpenWireError("a destination without a name", INVALID_DESTINATION)
    kind = type(destination)
    if "," not in name:
        return [destination if name == destination.physical_name else kind(name)]
    texts = [text.strip() for text in name.split(",")]
    texts = [text for text in texts if text]
    if not 0 < len(texts) <= _PARTS_MAX:
        raise OpenWireError(f"a destination of {len(texts)} parts", INVALID_DESTINATION)
    return [destination_of(text, kind) for text in texts]


class Target(NamedTuple):
    """A destination of one part, as Core sees it.

    Attributes:
        name: address, or address and queue.
        address: of it.
        queue: that it is qualified by; None for a plain one.
        routing_type: of its kind.
    """

    name: str
    address: str
    queue: str | None
    routing_type: RoutingType


@lru_cache(maxsize=4096)
def _pattern(name: str, wildcards: WildcardConfiguration) -> str:
    return converted(name, _SYNTAX, syntax_of(wildcards), _SYNTAX)


class Destinations:
    """Of one connection.

    Args:
        administration: of its session.
        wildcards: how addresses are written.
    """

    __slots__ = (
        "_administration",
        "_known",
        "_known_version",
        "_wildcards",
    )

    def __init__(
        self, administration: ClientAdministration, wildcards: WildcardConfiguration
    ) -> None:
        self._administration = administration
        self._wildcards = wildcards
        # A dict is a third of an empty set.
        self._known: dict[tuple[str, RoutingType], None] = {}
        self._known_version = -1

    def target(self, destination: ActiveMQDestination, *, is_consumer: bool = False) -> Target:
        """Give what a destination of one part means.

        Args:
            destination: of the client.
            is_consumer: its wildcards count.

        Raises:
            OpenWireError: it has no name.
        """
        name = destination.physical_name or ""
        if is_consumer and not (is_temporary(destination) or is_advisory(destination)):
            name = _pattern(name, self._wildcards)
        address, queue = split_fqqn(name)
        if not address or queue == "":
            raise OpenWireError(f"the destination {name!r} names nothing", INVALID_DESTINATION)
        kind = RoutingType.ANYCAST if is_queue(destination) else RoutingType.MULTICAST
        return Target(name, address, queue, kind)

    def prepare(
        self, destination: ActiveMQDestination, target: Target, filter: str | None = None
    ) -> bool:
        """Make what is missing; whether an address or queue was made.

        Args:
            destination: of the client.
            target: what it means.
            filter: of a queue that is made.

        Raises:
            OpenWireError: it is not there and may not be made.
            BrokerError: the user may not make it.
        """
        administration = self._administration
        key = (target.name, target.routing_type)
        if self._known_version == administration.version:
            if key in self._known:
                return False
        else:
            self._known.clear()
        has_made = self._make(destination, target, filter)
        # Making it may have changed that.
        if self._known_version != administration.version or len(self._known) >= _KNOWN_MAX:
            self._known.clear()
            self._known_version = administration.version
        self._known[key] = None
        return has_made

    def _make(self, destination: ActiveMQDestination, target: Target, filter: str | None) -> bool:
        administration = self._administration
        name, kind = target.address, target.routing_type
        query = administration.query_address(name)
        if query.is_management:
            return False
        has_made = False
        is_own = is_temporary(destination)
        if query.address is None or kind not in query.address.routing_types:
            if not (query.settings.auto_create_addresses or is_own):
                if query.address is None:
                    raise missing(destination)
            else:
                administration.create_address(name, [kind], is_auto_created=True)
                has_made = query.address is None
        queue = target.queue
        if queue is None and kind is RoutingType.ANYCAST:
            queue = name
        if queue is None or administration.query_queue(queue).queue is not None:
            return has_made
        if not (query.settings.auto_create_queues or is_own):
            # A queue of the address by another name takes what is sent to it.
            if kind is RoutingType.ANYCAST and not query.queues:
                raise missing(destination)
            return has_made
        administration.create_queue(
            QueueRequest(
                name=queue,
                address=name,
                filter=filter,
                routing_type=kind,
                is_durable=not is_own,
                is_temporary=is_own,
                is_auto_created=not is_own,
            )
        )
        return True

    def remove(self, destination: ActiveMQDestination, target: Target) -> bool:
        """Remove a destination's queue, or the address of a topic; whether it was there.

        Raises:
            BrokerError: the user may not, or it has consumers.
        """
        administration = self._administration
        if not is_queue(destination):
            administration.delete_address(target.address)
            return True
        if administration.query_queue(target.queue or target.address).queue is None:
            return False
        administration.delete_queue(target.queue or target.address)
        return True


def missing(destination: ActiveMQDestination) -> OpenWireError:
    """Give the error of a destination that is not there and may not be made."""
    text = f"{_WORDS[type(destination)]} {destination.physical_name} does not exist."
    return OpenWireError(text, INVALID_DESTINATION)
