"""Packets that create, delete and ask about addresses and queues; session channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from broker.model.encoding import BOOLEAN, INT, LONG, NSS, SS, counted
from broker.protocols.core import versions
from broker.protocols.core.packet import (
    N_BOOLEAN,
    N_INT,
    N_LONG,
    ROUTING_TYPE,
    ROUTING_TYPES,
    Packet,
    field,
)

if TYPE_CHECKING:
    from broker.model.routing_type import RoutingType

# An empty name: its length.
_NAMES: Final = counted(SS, item_size_min=4)


@dataclass(slots=True)
class CreateAddress(Packet):
    """Creates an address; the answer, where required, is a NullResponse."""

    types: ClassVar = ((0, -11),)

    address: str = field(SS)
    routing_types: tuple[RoutingType, ...] = field(ROUTING_TYPES)
    requires_response: bool = field(BOOLEAN, default=True)
    auto_created: bool = field(BOOLEAN, default=False)


@dataclass(slots=True)
class CreateQueue(Packet):
    """Creates a queue; of what is None the address settings decide."""

    types: ClassVar = ((versions.ADDRESSING, -12), (0, 34))

    address: str = field(SS)
    queue: str = field(SS)
    filter: str | None = field(NSS, default=None)
    durable: bool = field(BOOLEAN, default=True)
    temporary: bool = field(BOOLEAN, default=False)
    requires_response: bool = field(BOOLEAN, default=True)
    auto_created: bool = field(BOOLEAN, since=versions.ADDRESSING, default=False)
    routing_type: RoutingType | None = field(ROUTING_TYPE, since=versions.ADDRESSING, default=None)
    max_consumers: int = field(INT, since=versions.ADDRESSING, default=-1)
    purge_on_no_consumers: bool = field(BOOLEAN, since=versions.ADDRESSING, default=False)
    exclusive: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )
    last_value: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    last_value_key: str | None = field(NSS, since=versions.ADDRESSING, default=None, optional=True)
    non_destructive: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    consumers_before_dispatch: int | None = field(N_INT, since=versions.ADDRESSING, default=None)
    delay_before_dispatch: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    group_rebalance: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    group_buckets: int | None = field(N_INT, since=versions.ADDRESSING, default=None)
    auto_delete: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    auto_delete_delay: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    auto_delete_message_count: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    group_first_key: str | None = field(NSS, since=versions.ADDRESSING, default=None, optional=True)
    ring_size: int | None = field(N_LONG, since=versions.ADDRESSING, default=None, optional=True)
    enabled: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True)
    group_rebalance_pause_dispatch: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )


@dataclass(slots=True)
class CreateSharedQueueV1(Packet):
    """Creates a queue, or finds the same one; as clients before version 129 ask for it."""

    types: ClassVar = ((0, 36),)

    address: str = field(SS)
    queue: str = field(SS)
    filter: str | None = field(NSS, default=None)
    durable: bool = field(BOOLEAN, default=True)
    requires_response: bool = field(BOOLEAN, default=True)


@dataclass(slots=True)
class CreateSharedQueue(Packet):
    """Creates a queue, or does nothing where one of this name, address and filter is there."""

    types: ClassVar = ((0, -13),)

    address: str = field(SS)
    queue: str = field(SS)
    filter: str | None = field(NSS, default=None)
    durable: bool = field(BOOLEAN, default=True)
    routing_type: RoutingType | None = field(ROUTING_TYPE, default=None)
    requires_response: bool = field(BOOLEAN, default=True)
    max_consumers: int | None = field(N_INT, default=None, optional=True)
    purge_on_no_consumers: bool | None = field(N_BOOLEAN, default=None)
    exclusive: bool | None = field(N_BOOLEAN, default=None)
    last_value: bool | None = field(N_BOOLEAN, default=None)
    last_value_key: str | None = field(NSS, default=None, optional=True)
    non_destructive: bool | None = field(N_BOOLEAN, default=None)
    consumers_before_dispatch: int | None = field(N_INT, default=None)
    delay_before_dispatch: int | None = field(N_LONG, default=None)
    group_rebalance: bool | None = field(N_BOOLEAN, default=None)
    group_buckets: int | None = field(N_INT, default=None)
    auto_delete: bool | None = field(N_BOOLEAN, default=None)
    auto_delete_delay: int | None = field(N_LONG, default=None)
    auto_delete_message_count: int | None = field(N_LONG, default=None)
    group_first_key: str | None = field(NSS, default=None, optional=True)
    ring_size: int | None = field(N_LONG, default=None, optional=True)
    enabled: bool | None = field(N_BOOLEAN, default=None, optional=True)
    group_rebalance_pause_dispatch: bool | None = field(N_BOOLEAN, default=None, optional=True)


@dataclass(slots=True)
class DeleteQueue(Packet):
    """Deletes a queue that has no consumer; answered by a NullResponse."""

    types: ClassVar = ((0, 35),)

    queue: str = field(SS)


@dataclass(slots=True)
class QueueQuery(Packet):
    """Asks about a queue; answered by a QueueQueryResponse."""

    types: ClassVar = ((0, 45),)

    queue: str = field(SS)


@dataclass(slots=True)
class QueueQueryResponse(Packet):
    """What a queue is; of a missing one, what the address settings would make it.

    Attributes:
        auto_create_queues: whether a client may create a missing queue by using it.
        default_consumer_window_size: bytes, for clients that set no window of their own.
    """

    types: ClassVar = ((versions.ADDRESSING, -14), (versions.QUERY_RESPONSE_V2, -7), (0, 46))

    exists: bool = field(BOOLEAN)
    durable: bool = field(BOOLEAN, default=False)
    temporary: bool = field(BOOLEAN, default=False)
    consumer_count: int = field(INT, default=0)
    message_count: int = field(LONG, default=0)
    filter: str | None = field(NSS, default=None)
    address: str | None = field(NSS, default=None)
    name: str | None = field(NSS, default=None)
    auto_create_queues: bool = field(BOOLEAN, since=versions.QUERY_RESPONSE_V2, default=False)
    auto_created: bool = field(BOOLEAN, since=versions.ADDRESSING, default=False)
    purge_on_no_consumers: bool = field(BOOLEAN, since=versions.ADDRESSING, default=False)
    routing_type: RoutingType | None = field(ROUTING_TYPE, since=versions.ADDRESSING, default=None)
    max_consumers: int = field(INT, since=versions.ADDRESSING, default=-1)
    exclusive: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )
    last_value: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    default_consumer_window_size: int | None = field(
        N_INT, since=versions.ADDRESSING, default=None, optional=True
    )
    last_value_key: str | None = field(NSS, since=versions.ADDRESSING, default=None, optional=True)
    non_destructive: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    consumers_before_dispatch: int | None = field(N_INT, since=versions.ADDRESSING, default=None)
    delay_before_dispatch: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    group_rebalance: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    group_buckets: int | None = field(N_INT, since=versions.ADDRESSING, default=None)
    auto_delete: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    auto_delete_delay: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    auto_delete_message_count: int | None = field(N_LONG, since=versions.ADDRESSING, default=None)
    group_first_key: str | None = field(NSS, since=versions.ADDRESSING, default=None, optional=True)
    ring_size: int | None = field(N_LONG, since=versions.ADDRESSING, default=None, optional=True)
    enabled: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True)
    group_rebalance_pause_dispatch: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )
    configuration_managed: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )


@dataclass(slots=True)
class BindingQuery(Packet):
    """Asks about an address; answered by a BindingQueryResponse."""

    types: ClassVar = ((0, 49),)

    address: str = field(SS)


@dataclass(slots=True)
class BindingQueryResponse(Packet):
    """Whether the address exists, its queues, and what its settings allow and default to."""

    types: ClassVar = (
        (versions.BINDING_QUERY_RESPONSE_V5, -22),
        (versions.ADDRESSING, -15),
        (versions.BINDING_QUERY_RESPONSE_V3, -10),
        (versions.QUERY_RESPONSE_V2, -8),
        (0, 50),
    )

    exists: bool = field(BOOLEAN)
    queue_names: tuple[str, ...] = field(_NAMES, default=())
    auto_create_queues: bool = field(BOOLEAN, since=versions.QUERY_RESPONSE_V2, default=False)
    auto_create_addresses: bool = field(
        BOOLEAN, since=versions.BINDING_QUERY_RESPONSE_V3, default=False
    )
    default_purge_on_no_consumers: bool = field(BOOLEAN, since=versions.ADDRESSING, default=False)
    default_max_consumers: int = field(INT, since=versions.ADDRESSING, default=-1)
    default_exclusive: bool | None = field(
        N_BOOLEAN, since=versions.ADDRESSING, default=None, optional=True
    )
    default_last_value: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    default_last_value_key: str | None = field(
        NSS, since=versions.ADDRESSING, default=None, optional=True
    )
    default_non_destructive: bool | None = field(N_BOOLEAN, since=versions.ADDRESSING, default=None)
    default_consumers_before_dispatch: int | None = field(
        N_INT, since=versions.ADDRESSING, default=None
    )
    default_delay_before_dispatch: int | None = field(
        N_LONG, since=versions.ADDRESSING, default=None
    )
    supports_multicast: bool = field(
        BOOLEAN, since=versions.BINDING_QUERY_RESPONSE_V5, default=False, optional=True
    )
    supports_anycast: bool = field(BOOLEAN, since=versions.BINDING_QUERY_RESPONSE_V5, default=False)
