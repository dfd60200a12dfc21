"""A bridge as it is recorded for the next start (BridgeConfiguration.encode), and back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from broker.config.addressing import ComponentRoutingType, Transformer
from broker.config.cluster import BridgeConfig, StaticConnectors
from broker.model.routing_type import RoutingType
from broker.records import binding_records

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["config_of", "record_of"]

# Field of the configuration: field of the record.
_SAME: Final[Mapping[str, str]] = {
    "name": "name",
    "queue_name": "queue_name",
    "forwarding_address": "forwarding_address",
    "filter": "filter_string",
    "discovery_group_ref": "discovery_group_name",
    "ha": "ha",
    "retry_interval_ms": "retry_interval",
    "retry_interval_multiplier": "retry_interval_multiplier",
    "initial_connect_attempts": "initial_connect_attempts",
    "reconnect_attempts": "reconnect_attempts",
    "reconnect_attempts_same_node": "reconnect_attempts_on_same_node",
    "use_duplicate_detection": "use_duplicate_detection",
    "confirmation_window_size_bytes": "confirmation_window_size",
    "producer_window_size_bytes": "producer_window_size",
    "check_period_ms": "client_failure_check_period",
    "user": "user",
    "password": "password",
    "connection_ttl_ms": "connection_ttl",
    "max_retry_interval_ms": "max_retry_interval",
    "min_large_message_size_bytes": "min_large_message_size",
    "concurrency": "concurrency",
    "pending_ack_timeout_ms": "pending_ack_timeout",
    "client_id": "client_id",
}
# BridgeConfiguration.callTimeout, which no configuration can set.
_CALL_TIMEOUT_MS: Final = 30_000


def record_of(config: BridgeConfig) -> binding_records.Bridge:
    """Give the record of a bridge that an operator made."""
    transformer = config.transformer
    connectors = config.static_connectors
    values: dict[str, Any] = {there: getattr(config, here) for here, there in _SAME.items()}
    return binding_records.Bridge(
        **values,
        parent_name=config.name,
        call_timeout=_CALL_TIMEOUT_MS,
        configuration_managed=False,
        routing_type=RoutingType[config.routing_type.name],
        transformer=None
        if transformer is None
        else binding_records.Transformer(transformer.class_name, transformer.properties),
        static_connectors=() if connectors is None else connectors.connector_refs,
    )


def config_of(record: binding_records.Bridge) -> BridgeConfig:
    """Give the bridge of a record; what that leaves open has its default."""
    values: dict[str, Any] = {
        here: value
        for here, there in _SAME.items()
        if (value := getattr(record, there)) is not None
    }
    values["name"] = record.parent_name or record.name
    values.setdefault("queue_name", "")
    transformer = record.transformer
    if transformer is not None and transformer.class_name:
        values["transformer"] = Transformer(
            class_name=transformer.class_name,
            properties=tuple((key or "", value or "") for key, value in transformer.properties),
        )
    refs = tuple(name for name in record.static_connectors if name)
    is_static = record.discovery_group_name is None
    values["static_connectors"] = StaticConnectors(connector_refs=refs) if is_static else None
    values["routing_type"] = ComponentRoutingType[record.routing_type.name]
    return dataclasses.replace(_DEFAULT, **values)


_DEFAULT: Final = BridgeConfig(name="", queue_name="", static_connectors=StaticConnectors())
