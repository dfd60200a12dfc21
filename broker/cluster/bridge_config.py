"""How what waits for a member of a cluster is forwarded: a core bridge with settings of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config.cluster import BridgeConfig
from broker.config.cluster_connections import StaticConnectors

if TYPE_CHECKING:
    from broker.config.cluster_connections import ClusterConnection

__all__ = ["bridge_config"]


def bridge_config(
    config: ClusterConnection, queue: str, *, user: str, password: str
) -> BridgeConfig:
    """Give how a queue is forwarded to a member, as the configuration of a bridge.

    Args:
        config: of the cluster connection.
        queue: store-and-forward queue of the member.
        user: of the cluster.
        password: of the cluster.
    """
    return BridgeConfig(
        name=queue,
        queue_name=queue,
        forwarding_address=None,
        filter=None,
        min_large_message_size_bytes=config.min_large_message_size_bytes,
        check_period_ms=config.check_period_ms,
        connection_ttl_ms=config.connection_ttl_ms,
        retry_interval_ms=config.retry_interval_ms,
        retry_interval_multiplier=config.retry_interval_multiplier,
        max_retry_interval_ms=config.max_retry_interval_ms,
        initial_connect_attempts=config.initial_connect_attempts,
        reconnect_attempts=config.reconnect_attempts,
        reconnect_attempts_same_node=0,
        use_duplicate_detection=config.use_duplicate_detection,
        confirmation_window_size_bytes=config.confirmation_window_size_bytes,
        producer_window_size_bytes=config.producer_window_size_bytes,
        user=user,
        password=password,
        client_id=config.client_id,
        static_connectors=StaticConnectors(connector_refs=()),
        discovery_group_ref=None,
    )
