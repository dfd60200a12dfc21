"""What a session asks of a broker about queues and addresses."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypedDict, Unpack

from broker.model.routing_type import RoutingType
from broker.protocols.core.packet_connection import NullResponse
from broker.protocols.core.packet_queue import (
    BindingQuery,
    BindingQueryResponse,
    CreateAddress,
    CreateQueue,
    CreateSharedQueue,
    DeleteQueue,
    QueueQuery,
    QueueQueryResponse,
)

if TYPE_CHECKING:
    from collections.abc import KeysView

    from broker.client.aio.calls import Calls

# Arguments of `create_queue` that stand first, and what the client itself fills in.
_SETTINGS = {item.name for item in dataclasses.fields(CreateQueue)} - {
    *("address", "queue", "filter", "durable", "temporary", "requires_response", "routing_type"),
}
_SHARED_SETTINGS = {item.name for item in dataclasses.fields(CreateSharedQueue)} - {
    *("address", "queue", "filter", "durable", "requires_response", "routing_type"),
}


class _CommonSettings(TypedDict, total=False):
    exclusive: bool | None
    last_value: bool | None
    last_value_key: str | None
    non_destructive: bool | None
    consumers_before_dispatch: int | None
    delay_before_dispatch: int | None
    group_rebalance: bool | None
    group_buckets: int | None
    auto_delete: bool | None
    auto_delete_delay: int | None
    auto_delete_message_count: int | None
    group_first_key: str | None
    ring_size: int | None
    enabled: bool | None
    group_rebalance_pause_dispatch: bool | None


class QueueSettings(_CommonSettings, total=False):
    """Keyword arguments of `create_queue`, for type checkers; of None address settings decide."""

    auto_created: bool
    max_consumers: int
    purge_on_no_consumers: bool


class SharedQueueSettings(_CommonSettings, total=False):
    """Keyword arguments of `create_shared_queue`, for type checkers; as QueueSettings."""

    max_consumers: int | None
    purge_on_no_consumers: bool | None


class Administration:
    """Queues and addresses; the part of a session that has nothing to do with messages."""

    _calls: Calls

    async def create_address(
        self, address: str, *routing_types: RoutingType, auto_created: bool = False
    ) -> None:
        """Create an address.

        Args:
            address: its name.
            *routing_types: how it hands on messages; ANYCAST where nothing is said.
            auto_created: whether the broker may delete it when it is not used any more.

        Raises:
            BrokerRefused: ADDRESS_EXISTS, or the user may not.
        """
        kinds = routing_types or (RoutingType.ANYCAST,)
        await self._calls.call(CreateAddress(address, kinds, True, auto_created), NullResponse)

    async def create_queue(
        self,
        queue: str,
        address: str | None = None,
        *,
        routing_type: RoutingType = RoutingType.ANYCAST,
        selector: str | None = None,
        durable: bool = True,
        temporary: bool = False,
        **settings: Unpack[QueueSettings],
    ) -> None:
        """Create a queue.

        Args:
            queue: its name.
            address: what it is bound to; its own name where nothing is said.
            routing_type: how the address hands messages to it.
            selector: only messages for which this holds.
            durable: survives a restart of the broker.
            temporary: ends with the connection.
            **settings: further ones, such as `exclusive` or `ring_size`: see `QueueSettings`.

        Raises:
            QueueExists: a queue of this name exists.
            BrokerRefused: the user may not, or the settings do not go together.
        """
        _check(settings.keys(), _SETTINGS)
        request = CreateQueue(
            address or queue,
            queue,
            selector,
            durable,
            temporary,
            True,
            routing_type=routing_type,
            **settings,
        )
        await self._calls.call(request, NullResponse)
        if temporary or not durable or request.auto_created:
            self._calls.state.remember_queue(request)

    async def create_shared_queue(
        self,
        queue: str,
        address: str,
        *,
        routing_type: RoutingType = RoutingType.MULTICAST,
        selector: str | None = None,
        durable: bool = True,
        **settings: Unpack[SharedQueueSettings],
    ) -> None:
        """Create a queue, or find the same one; for subscriptions that several consumers share.

        Args:
            queue: its name.
            address: what it is bound to.
            routing_type: how the address hands messages to it.
            selector: only messages for which this holds.
            durable: survives a restart of the broker.
            **settings: further ones, such as `max_consumers`: see `SharedQueueSettings`.

        Raises:
            QueueExists: a queue of this name has another address or selector.
        """
        _check(settings.keys(), _SHARED_SETTINGS)
        request = CreateSharedQueue(
            address,
            queue,
            selector,
            durable,
            routing_type,
            True,
            **settings,
        )
        await self._calls.call(request, NullResponse)

    async def delete_queue(self, queue: str) -> None:
        """Delete a queue with its messages.

        Args:
            queue: its name.

        Raises:
            QueueMissing: the queue does not exist.
            BrokerRefused: it has consumers, or the user may not.
        """
        self._calls.state.forget_queue(queue)
        await self._calls.call(DeleteQueue(queue), NullResponse)

    async def query_queue(self, queue: str) -> QueueQueryResponse:
        """Ask about a queue; `exists` of the answer says whether it is there.

        Args:
            queue: its name.
        """
        return await self._calls.call(QueueQuery(queue), QueueQueryResponse)

    async def query_address(self, address: str) -> BindingQueryResponse:
        """Ask about an address; `exists` of the answer says whether it is there.

        Args:
            address: its name.
        """
        return await self._calls.call(BindingQuery(address), BindingQueryResponse)


def _check(settings: KeysView[str], known: set[str]) -> None:
    unknown = sorted(settings - known)
    if unknown:
        raise TypeError(f"a queue has no setting {unknown[0]!r}")
