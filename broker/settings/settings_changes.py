"""The keyword arguments of AddressSettings, for type checkers: one for each setting.

tests/house/test_keywords.py compares them with the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from broker.model.routing_type import RoutingType
    from broker.settings.policies import (
        AddressFullPolicy,
        DeletionPolicy,
        DiskFullPolicy,
        PageFullPolicy,
        SlowConsumerPolicy,
        SlowConsumerUnit,
    )

__all__ = ["AddressSettingsChanges"]


class AddressSettingsChanges(TypedDict, total=False):
    """Keyword arguments of AddressSettings, for type checkers; None gives nothing."""

    address_full_policy: AddressFullPolicy | None
    max_size_bytes: int | None
    max_read_page_bytes: int | None
    max_read_page_messages: int | None
    prefetch_page_bytes: int | None
    prefetch_page_messages: int | None
    page_limit_bytes: int | None
    page_limit_messages: int | None
    page_full_policy: PageFullPolicy | None
    disk_full_policy: DiskFullPolicy | None
    max_size_messages: int | None
    page_size_bytes: int | None
    page_max_cache_size: int | None
    max_delivery_attempts: int | None
    message_counter_history_day_limit: int | None
    redelivery_delay_ms: int | None
    redelivery_delay_multiplier: float | None
    redelivery_collision_avoidance_factor: float | None
    max_redelivery_delay_ms: int | None
    dead_letter_address: str | None
    expiry_address: str | None
    expiry_delay_ms: int | None
    min_expiry_delay_ms: int | None
    max_expiry_delay_ms: int | None
    no_expiry: bool | None
    default_last_value_queue: bool | None
    default_last_value_key: str | None
    default_non_destructive: bool | None
    default_exclusive_queue: bool | None
    default_group_rebalance: bool | None
    default_group_rebalance_pause_dispatch: bool | None
    default_group_buckets: int | None
    default_group_first_key: str | None
    redistribution_delay_ms: int | None
    send_to_dla_on_no_route: bool | None
    slow_consumer_threshold: int | None
    slow_consumer_threshold_measurement_unit: SlowConsumerUnit | None
    slow_consumer_check_period_s: int | None
    slow_consumer_policy: SlowConsumerPolicy | None
    auto_create_jms_queues: bool | None
    auto_delete_jms_queues: bool | None
    auto_create_jms_topics: bool | None
    auto_delete_jms_topics: bool | None
    auto_create_queues: bool | None
    auto_delete_queues: bool | None
    auto_delete_created_queues: bool | None
    auto_delete_queues_delay_ms: int | None
    auto_delete_queues_skip_usage_check: bool | None
    auto_delete_queues_message_count: int | None
    default_ring_size: int | None
    retroactive_message_count: int | None
    config_delete_queues: DeletionPolicy | None
    auto_create_addresses: bool | None
    auto_delete_addresses: bool | None
    auto_delete_addresses_delay_ms: int | None
    auto_delete_addresses_skip_usage_check: bool | None
    config_delete_addresses: DeletionPolicy | None
    config_delete_diverts: DeletionPolicy | None
    management_browse_page_size: int | None
    max_size_bytes_reject_threshold: int | None
    default_max_consumers: int | None
    default_purge_on_no_consumers: bool | None
    default_consumers_before_dispatch: int | None
    default_delay_before_dispatch_ms: int | None
    default_queue_routing_type: RoutingType | None
    default_address_routing_type: RoutingType | None
    default_consumer_window_size: int | None
    auto_create_dead_letter_resources: bool | None
    dead_letter_queue_prefix: str | None
    dead_letter_queue_suffix: str | None
    auto_create_expiry_resources: bool | None
    expiry_queue_prefix: str | None
    expiry_queue_suffix: str | None
    enable_metrics: bool | None
    management_message_attribute_size_limit: int | None
    enable_ingress_timestamp: bool | None
    id_cache_size: int | None
    initial_queue_buffer_size: int | None
