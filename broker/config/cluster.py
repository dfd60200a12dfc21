"""Cluster connections, bridges and grouping; discovery stands in discovery.py, pairs in ha.py.

Defaults of ActiveMQDefaultConfiguration and ActiveMQClient; milliseconds unless the name says
otherwise. The cluster decides what these elements do; here they are read and checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.config.acceptors import acceptors
from broker.config.addressing import ComponentRoutingType, Transformer, transformer
from broker.config.cluster_connections import (
    ATTEMPTS,
    BYTES,
    CALL_FAILOVER_TIMEOUT,
    FACTOR,
    GT_0,
    NAME,
    WINDOW,
    ClusterConnection,
    MessageLoadBalancing,
    StaticConnectors,
)
from broker.config.cluster_uri import read_cluster_connection_uri
from broker.config.connectors import connectors
from broker.config.core import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from broker.config.discovery import BroadcastGroup, DiscoveryGroup
from broker.config.ha import HaPolicy, ha_policy
from broker.config.xml_fields import (
    Context,
    attribute,
    check_names,
    child_attribute,
    custom,
    element,
    grouped,
    line,
    nested,
    optional,
    read,
    secret,
    unused,
)
from broker.settings.value_types import (
    BOOLEAN,
    INT,
    TEXT,
    at_least,
    choice,
)

if TYPE_CHECKING:
    from broker.config.document import Element
    from broker.config.transport import TransportConfig

__all__ = [
    "BridgeConfig",
    "BroadcastGroup",
    "ClusterConfig",
    "ClusterConnection",
    "DiscoveryGroup",
    "GroupingHandler",
    "MessageLoadBalancing",
    "StaticConnectors",
]


class GroupingType(Enum):
    """Who decides which node has a message group."""

    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeConfig:
    """Takes from a queue here and sends to an address elsewhere."""

    name: str = attribute("name", NAME)
    queue_name: str = element("queue-name", NAME)
    forwarding_address: str | None = optional("forwarding-address", TEXT)
    ha: bool = element("ha", BOOLEAN, False)
    filter: str | None = child_attribute("filter", "string")
    transformer: Transformer | None = custom("transformer", transformer, None)
    transformer_class_name: str | None = optional("transformer-class-name", TEXT)
    min_large_message_size_bytes: int = element("min-large-message-size", BYTES, 100 * 1024)
    check_period_ms: int = element("check-period", GT_0, 30_000)
    connection_ttl_ms: int = element("connection-ttl", GT_0, 60_000)
    retry_interval_ms: int = element("retry-interval", GT_0, 2000)
    retry_interval_multiplier: float = element("retry-interval-multiplier", FACTOR, 1.0)
    max_retry_interval_ms: int = element("max-retry-interval", GT_0, 2000)
    initial_connect_attempts: int = element("initial-connect-attempts", ATTEMPTS, -1)
    reconnect_attempts: int = element("reconnect-attempts", ATTEMPTS, -1)
    reconnect_attempts_same_node: int = element("reconnect-attempts-same-node", ATTEMPTS, 10)
    use_duplicate_detection: bool = element("use-duplicate-detection", BOOLEAN, True)
    confirmation_window_size_bytes: int = element(
        "confirmation-window-size", WINDOW, 10 * 1024 * 1024
    )
    producer_window_size_bytes: int = element("producer-window-size", WINDOW, 1024 * 1024)
    user: str = element("user", TEXT, DEFAULT_CLUSTER_USER)
    password: str = secret("password", DEFAULT_CLUSTER_PASSWORD)
    routing_type: ComponentRoutingType = element(
        "routing-type", choice(ComponentRoutingType), ComponentRoutingType.PASS
    )
    concurrency: int = element("concurrency", at_least(INT, 1), 1)
    pending_ack_timeout_ms: int = element("pending-ack-timeout", GT_0, 60_000)
    client_id: str | None = optional("client-id", TEXT)
    static_connectors: StaticConnectors | None = nested("static-connectors", StaticConnectors)
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    obsolete: None = unused("failover-on-server-shutdown")
    where: str = line()

    def __post_init__(self) -> None:
        """Somewhere to go.

        Raises:
            ValueError: no target, or two kinds of them.
        """
        if (self.static_connectors is None) == (self.discovery_group_ref is None):
            raise ValueError("it takes <static-connectors> or <discovery-group-ref>")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingHandler:
    """Message groups that stay on one node of a cluster."""

    name: str = attribute("name", NAME)
    type: GroupingType = element("type", choice(GroupingType))
    address: str = element("address", TEXT, "")
    timeout_ms: int = element("timeout", at_least(INT, 1), 5000)
    group_timeout_ms: int = element("group-timeout", CALL_FAILOVER_TIMEOUT, -1)
    reaper_period_ms: int = element("reaper-period", GT_0, 30_000)


_URI: Final = "cluster-connection-uri"


def _cluster_connections(parent: Element, context: Context) -> tuple[ClusterConnection, ...]:
    check_names(parent, ("cluster-connection", _URI), (), context)
    return tuple(
        read_cluster_connection_uri(child, context)
        if child.name == _URI
        else read(ClusterConnection, child, context)
        for child in parent.children
        if child.name in ("cluster-connection", _URI)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Acceptors, connectors and all that leads to other brokers."""

    acceptors: tuple[TransportConfig, ...] = custom("acceptors", acceptors, ())
    connectors: tuple[TransportConfig, ...] = custom("connectors", connectors, ())
    broadcast_groups: tuple[BroadcastGroup, ...] = grouped(
        "broadcast-groups", "broadcast-group", BroadcastGroup
    )
    discovery_groups: tuple[DiscoveryGroup, ...] = grouped(
        "discovery-groups", "discovery-group", DiscoveryGroup
    )
    # Those of either element, in the order of the file.
    cluster_connections: tuple[ClusterConnection, ...] = custom(
        "cluster-connections", _cluster_connections, ()
    )
    bridges: tuple[BridgeConfig, ...] = grouped("bridges", "bridge", BridgeConfig)
    grouping_handler: GroupingHandler | None = nested("grouping-handler", GroupingHandler)
    ha_policy: HaPolicy | None = custom("ha-policy", ha_policy, None)
