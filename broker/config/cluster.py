"""Discovery, cluster connections, bridges and grouping; high availability stands in ha.py.

Defaults of ActiveMQDefaultConfiguration and ActiveMQClient; milliseconds unless the name says
otherwise. The cluster decides what these elements do; here they are read and checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.config.acceptors import acceptors
from broker.config.addressing import ComponentRoutingType, Transformer, transformer
from broker.config.connectors import connectors
from broker.config.core import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
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
    repeated,
    secret,
    unused,
)
from broker.settings.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LONG,
    SIZE,
    TEXT,
    at_least,
    between,
    choice,
    minus_one_or_more_than,
)

if TYPE_CHECKING:
    from broker.config.document import Element
    from broker.config.transport import TransportConfig

__all__ = [
    "BridgeConfig",
    "BroadcastGroup",
    "ClusterConfig",
    "ClusterConnection",
    "ClusterConnectionUri",
    "DiscoveryGroup",
    "GroupingHandler",
    "MessageLoadBalancing",
]

_NAME: Final = TEXT.within(bool, "not empty")
_GT_0: Final = at_least(LONG, 1)
_PORT: Final = INT.within(lambda value: value == -1 or 0 < value < 65536, "-1, or 1 to 65535")
_ATTEMPTS: Final = minus_one_or_more_than(INT, -1)
_BYTES: Final = between(SIZE, 1, INT_MAX)
_WINDOW: Final = minus_one_or_more_than(SIZE, 0, most=INT_MAX)
_FACTOR: Final = DOUBLE.within(lambda value: value > 0, "more than 0")


class MessageLoadBalancing(Enum):
    """When a message goes to another node."""

    OFF = "OFF"
    STRICT = "STRICT"
    ON_DEMAND = "ON_DEMAND"
    OFF_WITH_REDISTRIBUTION = "OFF_WITH_REDISTRIBUTION"


class GroupingType(Enum):
    """Who decides which node has a message group."""

    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


def _check_group(group: BroadcastGroup | DiscoveryGroup) -> None:
    """UDP or JGroups, whole.

    Raises:
        ValueError: both, or half of one.
    """
    is_jgroups = group.jgroups_file is not None or group.jgroups_channel is not None
    is_udp = group.group_address is not None or group.group_port != -1
    if is_jgroups == is_udp:
        raise ValueError("it takes group-address and group-port, or jgroups-file and its channel")
    if is_udp and (group.group_address is None or group.group_port == -1):
        raise ValueError("it takes both group-address and group-port")


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastGroup:
    """Says by UDP who this node is."""

    name: str = attribute("name", _NAME)
    local_bind_address: str | None = optional("local-bind-address", TEXT)
    local_bind_port: int = element("local-bind-port", _PORT, -1)
    group_address: str | None = optional("group-address", TEXT)
    group_port: int = element("group-port", _PORT, -1)
    broadcast_period_ms: int = element("broadcast-period", _GT_0, 2000)
    connector_refs: tuple[str, ...] = repeated("connector-ref", _NAME)
    jgroups_file: str | None = optional("jgroups-file", TEXT)
    jgroups_channel: str | None = optional("jgroups-channel", TEXT)
    where: str = line()

    def __post_init__(self) -> None:
        """As `_check_group`."""
        _check_group(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryGroup:
    """Hears who the others are."""

    name: str = attribute("name", _NAME)
    local_bind_address: str | None = optional("local-bind-address", TEXT)
    local_bind_port: int = element("local-bind-port", _PORT, -1)
    group_address: str | None = optional("group-address", TEXT)
    group_port: int = element("group-port", _PORT, -1)
    refresh_timeout_ms: int = element("refresh-timeout", _GT_0, 10_000)
    initial_wait_timeout_ms: int = element("initial-wait-timeout", _GT_0, 10_000)
    jgroups_file: str | None = optional("jgroups-file", TEXT)
    jgroups_channel: str | None = optional("jgroups-channel", TEXT)
    where: str = line()

    def __post_init__(self) -> None:
        """As `_check_group`."""
        _check_group(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConnectors:
    """Nodes by the names of their connectors."""

    connector_refs: tuple[str, ...] = repeated("connector-ref", _NAME)
    allow_direct_connections_only: bool = attribute("allow-direct-connections-only", BOOLEAN, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """How this node and others form a cluster."""

    name: str = attribute("name", _NAME)
    # Prefixes separated by commas, `!` before one excludes; empty is everything.
    address: str = element("address", TEXT, "")
    connector_ref: str = element("connector-ref", _NAME)
    check_period_ms: int = element("check-period", _GT_0, 30_000)
    connection_ttl_ms: int = element("connection-ttl", _GT_0, 60_000)
    min_large_message_size_bytes: int = element("min-large-message-size", _BYTES, 100 * 1024)
    call_timeout_ms: int = element("call-timeout", _GT_0, 30_000)
    call_failover_timeout_ms: int = element(
        "call-failover-timeout", minus_one_or_more_than(LONG, 0), -1
    )
    retry_interval_ms: int = element("retry-interval", _GT_0, 500)
    retry_interval_multiplier: float = element("retry-interval-multiplier", _FACTOR, 1.0)
    max_retry_interval_ms: int = element("max-retry-interval", _GT_0, 2000)
    initial_connect_attempts: int = element("initial-connect-attempts", _ATTEMPTS, -1)
    reconnect_attempts: int = element("reconnect-attempts", _ATTEMPTS, -1)
    use_duplicate_detection: bool = element("use-duplicate-detection", BOOLEAN, True)
    message_load_balancing: MessageLoadBalancing = element(
        "message-load-balancing", choice(MessageLoadBalancing), MessageLoadBalancing.ON_DEMAND
    )
    # Deprecated; where it is there it decides: True is STRICT, False is ON_DEMAND.
    forward_when_no_consumers: bool | None = optional("forward-when-no-consumers", BOOLEAN)
    max_hops: int = element("max-hops", at_least(INT, 0), 1)
    confirmation_window_size_bytes: int = element(
        "confirmation-window-size", _BYTES, 10 * 1024 * 1024
    )
    producer_window_size_bytes: int = element("producer-window-size", _WINDOW, 1024 * 1024)
    notification_interval_ms: int = element("notification-interval", _GT_0, 1000)
    notification_attempts: int = element("notification-attempts", at_least(INT, 1), 2)
    topology_scanner_attempts: int = element("topology-scanner-attempts", _ATTEMPTS, 30)
    client_id: str | None = optional("client-id", TEXT)
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    static_connectors: StaticConnectors | None = nested("static-connectors", StaticConnectors)
    obsolete: None = unused("scale-down-connector")
    where: str = line()

    def __post_init__(self) -> None:
        """Discovery or a list.

        Raises:
            ValueError: both.
        """
        if self.discovery_group_ref is not None and self.static_connectors is not None:
            raise ValueError("it takes <discovery-group-ref> or <static-connectors>")

    @property
    def load_balancing(self) -> MessageLoadBalancing:
        """What holds, the deprecated element considered."""
        if self.forward_when_no_consumers is None:
            return self.message_load_balancing
        if self.forward_when_no_consumers:
            return MessageLoadBalancing.STRICT
        return MessageLoadBalancing.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnectionUri:
    """A cluster connection as one URI: `static:(tcp://…)?…` or `multicast://…?…`."""

    name: str = attribute("name", _NAME)
    address: str = attribute("address", _NAME)
    where: str = line()


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeConfig:
    """Takes from a queue here and sends to an address elsewhere."""

    name: str = attribute("name", _NAME)
    queue_name: str = element("queue-name", _NAME)
    forwarding_address: str | None = optional("forwarding-address", TEXT)
    ha: bool = element("ha", BOOLEAN, False)
    filter: str | None = child_attribute("filter", "string")
    transformer: Transformer | None = custom("transformer", transformer, None)
    transformer_class_name: str | None = optional("transformer-class-name", TEXT)
    min_large_message_size_bytes: int = element("min-large-message-size", _BYTES, 100 * 1024)
    check_period_ms: int = element("check-period", _GT_0, 30_000)
    connection_ttl_ms: int = element("connection-ttl", _GT_0, 60_000)
    retry_interval_ms: int = element("retry-interval", _GT_0, 2000)
    retry_interval_multiplier: float = element("retry-interval-multiplier", _FACTOR, 1.0)
    max_retry_interval_ms: int = element("max-retry-interval", _GT_0, 2000)
    initial_connect_attempts: int = element("initial-connect-attempts", _ATTEMPTS, -1)
    reconnect_attempts: int = element("reconnect-attempts", _ATTEMPTS, -1)
    reconnect_attempts_same_node: int = element("reconnect-attempts-same-node", _ATTEMPTS, 10)
    use_duplicate_detection: bool = element("use-duplicate-detection", BOOLEAN, True)
    confirmation_window_size_bytes: int = element(
        "confirmation-window-size", _WINDOW, 10 * 1024 * 1024
    )
    producer_window_size_bytes: int = element("producer-window-size", _WINDOW, 1024 * 1024)
    user: str = element("user", TEXT, DEFAULT_CLUSTER_USER)
    password: str = secret("password", DEFAULT_CLUSTER_PASSWORD)
    routing_type: ComponentRoutingType = element(
        "routing-type", choice(ComponentRoutingType), ComponentRoutingType.PASS
    )
    concurrency: int = element("concurrency", at_least(INT, 1), 1)
    pending_ack_timeout_ms: int = element("pending-ack-timeout", _GT_0, 60_000)
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

    name: str = attribute("name", _NAME)
    type: GroupingType = element("type", choice(GroupingType))
    address: str = element("address", TEXT, "")
    timeout_ms: int = element("timeout", at_least(INT, 1), 5000)
    group_timeout_ms: int = element("group-timeout", minus_one_or_more_than(LONG, 0), -1)
    reaper_period_ms: int = element("reaper-period", _GT_0, 30_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnections:
    """What stands in <cluster-connections>."""

    connections: tuple[ClusterConnection, ...] = ()
    uris: tuple[ClusterConnectionUri, ...] = ()


def _cluster_connections(parent: Element, context: Context) -> ClusterConnections:
    check_names(parent, ("cluster-connection", "cluster-connection-uri"), (), context)
    return ClusterConnections(
        connections=tuple(
            read(ClusterConnection, child, context)
            for child in parent.children
            if child.name == "cluster-connection"
        ),
        uris=tuple(
            read(ClusterConnectionUri, child, context)
            for child in parent.children
            if child.name == "cluster-connection-uri"
        ),
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
    cluster_connections: ClusterConnections = custom(
        "cluster-connections", _cluster_connections, ClusterConnections()
    )
    bridges: tuple[BridgeConfig, ...] = grouped("bridges", "bridge", BridgeConfig)
    grouping_handler: GroupingHandler | None = nested("grouping-handler", GroupingHandler)
    ha_policy: HaPolicy | None = custom("ha-policy", ha_policy, None)
