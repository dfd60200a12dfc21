"""What decides about nearly every message, found once for a user and an address.

    message, sent alone, nothing special in it ─▶ CachedRoute ─▶ queues      no look-up but this

The post office makes a CachedRoute after it has routed a message in full, on these conditions. The
user may send, the address exists and accepts the routing type, nothing is diverted, and no rule
limits how long messages live. The route is valid until one of these changes: each change of
bindings, settings or permissions raises one version. Room in memory changes with every message, and
is asked each time.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.routing_type import RoutingType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.paging.paging import Paging
    from broker.queues.memory import AddressMemory
    from broker.routing.address import Address
    from broker.routing.route import Route
    from broker.settings.settings import AddressSettings

__all__ = ["CachedRoute"]


class CachedRoute:
    """See the module's text.

    Args:
        address: where it leads.
        route: what is bound there; no diverts.
        settings: of the address; no rules about expiry.
        paging: of the broker.
        version: of all bindings, settings and permissions.
        until_s: how long the user may send, by `monotonic_s`.
        monotonic_s: seconds.

    Attributes:
        address: as given.
        memory: of the address.
        route: as given.
    """

    __slots__ = (
        "_bytes_max",
        "_count_max",
        "_monotonic_s",
        "_paging",
        "_takes",
        "_until_s",
        "_version",
        "address",
        "memory",
        "route",
    )

    def __init__(
        self,
        address: Address,
        route: Route,
        settings: AddressSettings,
        paging: Paging | None,
        version: int,
        until_s: float,
        monotonic_s: Callable[[], float],
    ) -> None:
        self.address = address
        self.memory: AddressMemory = address.memory
        self.route = route
        self._paging = paging
        self._bytes_max = settings.max_size_bytes
        self._count_max = settings.max_size_messages
        # A message without a routing type is never refused for that.
        self._takes = (
            RoutingType.MULTICAST in address.routing_types,
            RoutingType.ANYCAST in address.routing_types,
        )
        self._version = version
        self._until_s = until_s
        self._monotonic_s = monotonic_s

    def holds(self, version: int) -> bool:
        """Whether it is still right, all changes up to `version` counted."""
        return version == self._version and self._monotonic_s() < self._until_s

    def is_open(self, routing: int) -> bool:
        """Whether a message may go there now, into memory.

        Args:
            routing: number of its routing type, below 0 where it has none.
        """
        if routing >= 0 and not self._takes[routing]:
            return False
        paging = self._paging
        if paging is not None and paging.active_count:
            return False
        return self.memory.has_room(self._bytes_max, self._count_max)
