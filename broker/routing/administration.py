"""Addresses and queues made on request, or at their first use.

What a client may do is checked by the session, before; here stands what follows from a request:
the address that a queue needs, the queue that an anycast message needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from broker.errors import broker_error
from broker.model.routing_type import RoutingType
from broker.routing.address import queue_exists
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.ports import Settings
    from broker.queues.queue import Queue
    from broker.routing.address import Address
    from broker.routing.addresses import Addresses

__all__ = ["Administration"]


class Administration:
    """See the module's text.

    Args:
        addresses: of the broker.
        settings: of addresses.
    """

    __slots__ = ("_addresses", "_settings")

    def __init__(self, addresses: Addresses, settings: Settings) -> None:
        self._addresses = addresses
        self._settings = settings

    def ensure_address(
        self,
        name: str,
        routing_types: Iterable[RoutingType],
        *,
        is_auto_created: bool,
        is_temporary: bool = False,
    ) -> Address:
        """Give an address that has these routing types, made or extended where need be."""
        wanted = set(routing_types)
        found = self._addresses.by_name.get(name)
        if found is None:
            return self._addresses.create(
                name, wanted, is_auto_created=is_auto_created, is_temporary=is_temporary
            )
        if not wanted <= found.routing_types:
            self._addresses.update(name, found.routing_types | wanted)
        return found

    def create_queue(self, request: QueueRequest) -> Queue:
        """Make a queue, and its address where that may be made.

        Raises:
            BrokerError: the queue exists, or its address does not, or cannot have it.
        """
        if not request.name:
            raise broker_error("invalid_queue_name", "Invalid queue name: ")
        settings = self._settings.match(request.address)
        found = self._addresses.queues.get(request.name)
        if found is not None:
            raise queue_exists(found)
        binding = request.binding(settings)
        may_create = (
            request.auto_create_address
            if request.auto_create_address is not None
            else settings.auto_create_addresses
        ) or request.is_temporary
        address = self._addresses.by_name.get(request.address)
        if may_create and (address is None or binding.routing_type not in address.routing_types):
            self.ensure_address(
                request.address,
                [binding.routing_type],
                is_auto_created=True,
                is_temporary=request.is_temporary,
            )
        return self._addresses.create_queue(
            binding, is_durable=request.is_durable, is_temporary=request.is_temporary
        )

    def create_shared_queue(self, request: QueueRequest) -> Queue:
        """Make a queue, or give the same one if it is there: same name, address and filter.

        Its address is made, too, whatever the settings say.

        Raises:
            BrokerError: it is there with something different, or cannot be made. Not QUEUE_EXISTS,
                which a JMS client takes for success.
        """
        found = self._addresses.queues.get(request.name)
        if found is None:
            return self.create_queue(replace(request, auto_create_address=True))
        if found.binding.address != request.address:
            raise broker_error(
                "shared_queue_address",
                f"Queue {request.name} already exists on another subscription",
            )
        if (found.binding.filter or None) != (request.filter or None):
            raise broker_error(
                "shared_queue_filter",
                f"Queue {request.name} has a different filter than requested",
            )
        return found

    def prepare_for_send(
        self, address: str, queue: str | None, routing_type: RoutingType | None
    ) -> None:
        """Make what a message needs that found no queue, as far as the settings allow.

        Raises:
            BrokerError: what it needs is not there and may not be made.
        """
        if routing_type is None:
            # Older clients do not say; then what is not there is not made, and nothing is refused.
            return
        found = self._addresses.by_name.get(address)
        settings = self._settings.match(address)
        if found is None or routing_type not in found.routing_types:
            if not settings.auto_create_addresses:
                raise broker_error("no_such_address", f"Address Does Not Exist: {address}")
            found = self.ensure_address(address, [routing_type], is_auto_created=True)
        name = address if queue is None else queue
        if routing_type is RoutingType.ANYCAST or queue is not None:
            self._ensure_queue(found, name, routing_type, is_qualified=queue is not None)

    def _ensure_queue(
        self, address: Address, name: str, routing_type: RoutingType, *, is_qualified: bool
    ) -> None:
        queue = self._addresses.queues.get(name)
        if queue is not None:
            if not is_qualified and queue.binding.routing_type is not RoutingType.ANYCAST:
                raise broker_error("no_such_address", f"Address Does Not Exist: {address.name}")
            return
        if not is_qualified and address.queues:
            return
        if not self._settings.match(address.name).auto_create_queues:
            raise broker_error("no_such_address", f"Address Does Not Exist: {address.name}")
        self.create_queue(
            QueueRequest(
                name=name, address=address.name, routing_type=routing_type, is_auto_created=True
            )
        )

    def delete_temporary(self, name: str) -> None:
        """Remove a temporary queue, and its address, when its connection ends."""
        queue = self._addresses.queues.get(name)
        if queue is not None and queue.is_temporary:
            self._addresses.delete_queue(name, delete_address=True)
