"""Queues and addresses that the client of one session makes, removes and asks about.

The session's user must be allowed to, and names lose the prefixes of their acceptor. What was
recorded is durable once the session's context says so.

Threads: the event loop's alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from broker.sessions.queries import AddressQuery, QueueQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.routing_type import RoutingType
    from broker.ports import Management, Settings
    from broker.queues.queue import Queue
    from broker.routing.administration import Administration
    from broker.routing.postoffice import PostOffice
    from broker.sessions.permissions import Permissions
    from broker.sessions.resource_limits import ResourceLimits
    from broker.sessions.session_options import SessionOptions
    from broker.settings.queue_defaults import QueueRequest
    from broker.storage.context import OperationContext

__all__ = ["ClientAdministration"]


class AdministeringSession(Protocol):
    """What this needs of a session."""

    user: str | None
    options: SessionOptions
    temporary: set[str]
    """Names of its connection's temporary queues."""
    context: OperationContext
    """What it waits by."""


class ClientAdministration:
    """See the module's text.

    Args:
        session: of the client.
        permissions: of its user.
        postoffice: where messages go.
        administration: makes queues and addresses.
        resource_limits: what one user may have.
        settings: of addresses.
        management: answers messages to the management address; None without one.
    """

    __slots__ = (
        "_addresses",
        "_administration",
        "_management",
        "_permissions",
        "_postoffice",
        "_prefixes",
        "_resource_limits",
        "_session",
        "_settings",
    )

    def __init__(
        self,
        session: AdministeringSession,
        permissions: Permissions,
        postoffice: PostOffice,
        administration: Administration,
        resource_limits: ResourceLimits,
        settings: Settings,
        management: Management | None,
    ) -> None:
        self._session = session
        self._permissions = permissions
        self._postoffice = postoffice
        self._addresses = postoffice.addresses
        self._administration = administration
        self._resource_limits = resource_limits
        self._settings = settings
        self._management = management
        self._prefixes = session.options.prefixes

    @property
    def version(self) -> int:
        """Rises with every change of queues, addresses, settings and permissions.

        As long as it is the same, what was found out about a name holds.
        """
        return self._addresses.version

    def create_address(
        self, name: str, routing_types: Iterable[RoutingType], *, is_auto_created: bool
    ) -> None:
        """Make an address, or add routing types to it.

        Raises:
            BrokerError: no permission, or it exists and was not asked for by the way.
        """
        name, routing_type = self._prefixes.split(name)
        if routing_type is not None:
            routing_types = [routing_type]
        self._permissions.check("createAddress", name, None)
        if is_auto_created:
            self._administration.ensure_address(name, routing_types, is_auto_created=True)
        else:
            self._addresses.create(name, routing_types)
        self._session.context.note()

    def create_queue(self, request: QueueRequest, *, is_shared: bool = False) -> Queue:
        """Make a queue, or with `is_shared` give the same one if it is there.

        Raises:
            BrokerError: no permission, or it cannot be made.
        """
        if self._prefixes:
            address, routing_type = self._prefixes.split(request.address)
            request = replace(
                request,
                address=address,
                name=self._prefixes.split(request.name)[0],
                routing_type=request.routing_type if routing_type is None else routing_type,
            )
        kind = "createDurableQueue" if request.is_durable else "createNonDurableQueue"
        self._permissions.check(kind, request.address, request.name)
        if request.address not in self._addresses.by_name:
            self._permissions.check("createAddress", request.address, None)
        self._resource_limits.check_queue(self._session.user, self._addresses.queues.values())
        if is_shared:
            queue = self._administration.create_shared_queue(request)
        else:
            queue = self._administration.create_queue(request)
        if request.is_temporary:
            self._session.temporary.add(queue.name)
        self._session.context.note()
        return queue

    def delete_queue(self, name: str) -> None:
        """Remove a queue that has no consumer.

        Raises:
            BrokerError: no such queue, no permission, or it has consumers.
        """
        _, plain = self._prefixes.split_queue(name)
        queue = self._addresses.queue(plain)
        kind = "deleteDurableQueue" if queue.is_durable else "deleteNonDurableQueue"
        self._permissions.check(kind, queue.binding.address, queue.name)
        self._addresses.delete_queue(plain, check_consumers=True, delete_address=True)
        self._session.temporary.discard(plain)
        self._session.context.note()

    def delete_address(self, name: str) -> None:
        """Remove an address that has no queue; nothing where there is none of that name.

        Raises:
            BrokerError: no permission, or it has queues.
        """
        name, _ = self._prefixes.split(name)
        self._permissions.check("deleteAddress", name, None)
        if name in self._addresses.by_name:
            self._addresses.delete(name)
            self._session.context.note()

    def query_queue(self, name: str) -> QueueQuery:
        """Tell what is known of a queue name, which may be qualified."""
        address, plain = self._prefixes.split_queue(name)
        queue = self._addresses.queues.get(plain)
        if address is None:
            address = plain if queue is None else queue.binding.address
        return QueueQuery(
            plain,
            address,
            queue,
            self._settings.match(address),
            is_management=self._is_management(plain),
        )

    def query_address(self, name: str) -> AddressQuery:
        """Tell what is known of an address name, patterns that match it included."""
        name, _ = self._prefixes.split(name)
        route = self._postoffice.route_of(name)
        return AddressQuery(
            self._addresses.by_name.get(name),
            tuple(one.unique_name for one in (*route.anycast, *route.multicast)),
            self._settings.match(name),
            is_management=self._is_management(name),
        )

    def _is_management(self, name: str) -> bool:
        return self._management is not None and name == self._management.address
