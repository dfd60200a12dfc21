"""Defaults of a new queue, from the settings of its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from broker.model.routing_type import RoutingType
from broker.records.binding_records import QueueBinding

if TYPE_CHECKING:
    from broker.settings.settings import AddressSettings

__all__ = ["QueueRequest"]

T = TypeVar("T")


def _first(wanted: T | None, default: T) -> T:
    return default if wanted is None else wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRequest:
    """A queue that a client wants; the settings of its address decide what is None.

    Attributes:
        is_durable: it survives a restart.
        is_temporary: it goes with the connection that made it.
        is_auto_created: created at its first use, and so deleted when it is unused.
        auto_create_address: None takes the settings' auto-create-addresses.
    """

    name: str
    address: str
    filter: str | None = None
    is_durable: bool = True
    is_temporary: bool = False
    is_auto_created: bool = False
    is_internal: bool = False
    is_configuration_managed: bool = False
    user: str | None = None
    auto_create_address: bool | None = None
    routing_type: RoutingType | None = None
    max_consumers: int | None = None
    purge_on_no_consumers: bool | None = None
    exclusive: bool | None = None
    last_value: bool | None = None
    last_value_key: str | None = None
    non_destructive: bool | None = None
    consumers_before_dispatch: int | None = None
    delay_before_dispatch: int | None = None
    group_rebalance: bool | None = None
    group_rebalance_pause_dispatch: bool | None = None
    group_buckets: int | None = None
    group_first_key: str | None = None
    auto_delete: bool | None = None
    auto_delete_delay: int | None = None
    auto_delete_message_count: int | None = None
    ring_size: int | None = None
    enabled: bool | None = None

    def binding(self, settings: AddressSettings) -> QueueBinding:
        """Give the queue's attributes, complete (QueueConfigurationUtils of Artemis)."""
        last_value_key = _first(self.last_value_key, settings.default_last_value_key)
        auto_delete_default = (
            settings.auto_delete_queues
            if self.is_auto_created
            else settings.auto_delete_created_queues
        )
        return QueueBinding(
            name=self.name,
            address=self.address,
            filter=self.filter or None,
            metadata=f"user={self.user};" if self.user else "",
            auto_created=self.is_auto_created,
            max_consumers=_first(self.max_consumers, settings.default_max_consumers),
            purge_on_no_consumers=_first(
                self.purge_on_no_consumers, settings.default_purge_on_no_consumers
            ),
            routing_type=RoutingType(
                _first(self.routing_type, settings.default_queue_routing_type)
            ),
            exclusive=_first(self.exclusive, settings.default_exclusive_queue),
            last_value=_first(
                self.last_value, settings.default_last_value_queue or last_value_key is not None
            ),
            configuration_managed=self.is_configuration_managed,
            consumers_before_dispatch=_first(
                self.consumers_before_dispatch, settings.default_consumers_before_dispatch
            ),
            delay_before_dispatch=_first(
                self.delay_before_dispatch, settings.default_delay_before_dispatch_ms
            ),
            last_value_key=last_value_key,
            non_destructive=_first(self.non_destructive, settings.default_non_destructive),
            group_rebalance=_first(self.group_rebalance, settings.default_group_rebalance),
            group_buckets=_first(self.group_buckets, settings.default_group_buckets),
            auto_delete=_first(self.auto_delete, auto_delete_default),
            auto_delete_delay=_first(self.auto_delete_delay, settings.auto_delete_queues_delay_ms),
            auto_delete_message_count=_first(
                self.auto_delete_message_count, settings.auto_delete_queues_message_count
            ),
            group_first_key=_first(self.group_first_key, settings.default_group_first_key),
            ring_size=_first(self.ring_size, settings.default_ring_size),
            enabled=_first(self.enabled, True),
            group_rebalance_pause_dispatch=_first(
                self.group_rebalance_pause_dispatch,
                settings.default_group_rebalance_pause_dispatch,
            ),
            internal=self.is_internal,
        )
