"""Prefixes of names that choose a routing type: anycastPrefix and multicastPrefix of an acceptor.

    anycastPrefix=queue://      queue://orders ─▶ orders, ANYCAST

Names in the broker have no prefix. A session takes it off whatever its client names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message

__all__ = ["NO_PREFIXES", "Prefixes"]


class Prefixes:
    """See the module's text. Immutable.

    Args:
        anycast: prefixes of names that mean ANYCAST.
        multicast: likewise, MULTICAST.
    """

    __slots__ = ("_types",)

    def __init__(self, anycast: Iterable[str] = (), multicast: Iterable[str] = ()) -> None:
        self._types = (
            *((prefix, RoutingType.ANYCAST) for prefix in anycast if prefix),
            *((prefix, RoutingType.MULTICAST) for prefix in multicast if prefix),
        )

    def __bool__(self) -> bool:
        return bool(self._types)

    def split(self, name: str) -> tuple[str, RoutingType | None]:
        """Give a name without its prefix, and what that means; None where it has none.

        >>> Prefixes(["queue://"]).split("queue://orders")
        ('orders', <RoutingType.ANYCAST: 1>)
        """
        for prefix, routing_type in self._types:
            if name.startswith(prefix):
                return name.removeprefix(prefix), routing_type
        return name, None

    def split_queue(self, name: str) -> tuple[str | None, str]:
        """Give the address, if it is told, and the queue of a name that may be qualified."""
        first, second = split_fqqn(self.split(name)[0])
        return (None, first) if second is None else (first, second)

    def remove_from(self, message: Message) -> None:
        """Take the prefix from a message's address; what it means becomes its routing type."""
        name = message.address
        if name is not None:
            plain, routing_type = self.split(name)
            if routing_type is not None:
                message.address = plain
                message.routing_type = routing_type


NO_PREFIXES: Final = Prefixes()
