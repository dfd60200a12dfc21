"""Cluster connections, bridges and grouping; discovery stands in discovery.py, pairs in ha.py.

Defaults of ActiveMQDefaultConfiguration and ActiveMQClient; milliseconds unless the name says
otherwise. The cluster decides what these elements do; here they are read and checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from broker.config.connection_routers import ConnectionRouterConfig
from broker.config.connectors import connectors
from broker.config.core import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from broker.config.discovery import BroadcastGroup, DiscoveryGroup
from broker.config.ha import HaPolicy, ScaleDown, ha_policy, scale_down_of
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
    """Of the bridge."""
    queue_name: str = element("queue-name", NAME)
    """Queue that it takes messages from."""
    forwarding_address: str | None = optional("forwarding-address", TEXT)
    """Where it sends them; without, to the address that they were sent to."""
    ha: bool = element("ha", BOOLEAN, False)
    """Whether it follows the target to its backup."""
    filter: str | None = child_attribute("filter", "string")
    """Selector: only messages that it matches are taken."""
    transformer: Transformer | None = custom("transformer", transformer, None)
    """What changes messages on their way."""
    transformer_class_name: str | None = optional("transformer-class-name", TEXT)
    """Older form of `transformer`."""
    min_large_message_size_bytes: int = element("min-large-message-size", BYTES, 100 * 1024)
    """Size from which a message is sent in pieces."""
    check_period_ms: int = element("check-period", GT_0, 30_000)
    """How often the target's silence is looked at."""
    connection_ttl_ms: int = element("connection-ttl", GT_0, 60_000)
    """Silence after which the target gives the connection up."""
    retry_interval_ms: int = element("retry-interval", GT_0, 2000)
    """Wait before the next attempt to connect."""
    retry_interval_multiplier: float = element("retry-interval-multiplier", FACTOR, 1.0)
    """How much longer each further attempt waits."""
    max_retry_interval_ms: int = element("max-retry-interval", GT_0, 2000)
    """Longest wait."""
    initial_connect_attempts: int = element("initial-connect-attempts", ATTEMPTS, -1)
    """Attempts at the start; -1 without limit."""
    reconnect_attempts: int = element("reconnect-attempts", ATTEMPTS, -1)
    """Attempts after a lost connection; -1 without limit. Then the bridge stops."""
    reconnect_attempts_same_node: int = element("reconnect-attempts-same-node", ATTEMPTS, 10)
    """Attempts at the same broker before the others are tried."""
    use_duplicate_detection: bool = element("use-duplicate-detection", BOOLEAN, True)
    """Whether messages get a duplicate id, so that none is stored twice after a failure."""
    confirmation_window_size_bytes: int = element(
        "confirmation-window-size", WINDOW, 10 * 1024 * 1024
    )
    """Bytes that may be sent and not confirmed; -1 without limit."""
    producer_window_size_bytes: int = element("producer-window-size", WINDOW, 8 * 1024 * 1024)
    """Bytes of credits that are asked for; -1 without."""
    user: str = element("user", TEXT, DEFAULT_CLUSTER_USER)
    """As whom it logs in."""
    password: str = secret("password", DEFAULT_CLUSTER_PASSWORD)
    """With what."""
    routing_type: ComponentRoutingType = element(
        "routing-type", choice(ComponentRoutingType), ComponentRoutingType.PASS
    )
    """Routing type that messages get: PASS keeps theirs, STRIP removes it."""
    concurrency: int = element("concurrency", at_least(INT, 1), 1)
    """Bridges of this name that run at once, each with a connection."""
    pending_ack_timeout_ms: int = element("pending-ack-timeout", GT_0, 60_000)
    """How long a stop waits for confirmations."""
    client_id: str | None = optional("client-id", TEXT)
    """Of its connection."""
    static_connectors: StaticConnectors | None = nested("static-connectors", StaticConnectors)
    """Targets by the names of their connectors."""
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    """Discovery group that finds the targets."""
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
    """Of the handler."""
    type: GroupingType = element("type", choice(GroupingType))
    """LOCAL decides, REMOTE asks the node that does."""
    address: str = element("address", TEXT, "")
    """Addresses that it is for, a prefix."""
    timeout_ms: int = element("timeout", at_least(INT, 1), 5000)
    """How long an answer may take."""
    group_timeout_ms: int = element("group-timeout", CALL_FAILOVER_TIMEOUT, -1)
    """How long an unused group is remembered; -1 for ever."""
    reaper_period_ms: int = element("reaper-period", GT_0, 30_000)
    """How often unused groups are looked for."""


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
    """Where the broker listens: see the parameters of acceptors."""
    connectors: tuple[TransportConfig, ...] = custom("connectors", connectors, ())
    """How others are reached, and how clients reach this broker: see the parameters of connectors.
    """
    broadcast_groups: tuple[BroadcastGroup, ...] = grouped(
        "broadcast-groups", "broadcast-group", BroadcastGroup
    )
    """Tell others by which connectors this broker is reached."""
    discovery_groups: tuple[DiscoveryGroup, ...] = grouped(
        "discovery-groups", "discovery-group", DiscoveryGroup
    )
    """Hear how others are reached."""
    # Those of either element, in the order of the file.
    cluster_connections: tuple[ClusterConnection, ...] = custom(
        "cluster-connections", _cluster_connections, ()
    )
    """Form a cluster with others."""
    bridges: tuple[BridgeConfig, ...] = grouped("bridges", "bridge", BridgeConfig)
    """Move messages from a queue here to an address of another broker."""
    connection_routers: tuple[ConnectionRouterConfig, ...] = grouped(
        "connection-routers", "connection-router", ConnectionRouterConfig
    )
    """Choose the broker that serves a client."""
    grouping_handler: GroupingHandler | None = nested("grouping-handler", GroupingHandler)
    """Keep message groups on one node of a cluster."""
    ha_policy: HaPolicy | None = custom("ha-policy", ha_policy, None)
    """A pair of brokers, of which one serves."""
    scale_down: bool = element("scale-down", BOOLEAN, False)
    """Older spelling of the `scale-down` of `ha-policy`."""
    scale_down_group_name: str | None = optional("scale-down-group-name", TEXT)
    """Older spelling of its `group-name`."""
    scale_down_cluster_name: str | None = optional("scale-down-clustername", TEXT)
    """Cluster connection that finds the target; the first one without."""

    @property
    def scale_down_policy(self) -> ScaleDown | None:
        """Where messages go when the broker stops for good; None keeps them."""
        policy = self.scale_down_config
        return policy if policy.enabled else None

    @property
    def scale_down_group(self) -> str | None:
        """Of this broker, whether it scales down itself or not: others scale down to it."""
        return self.scale_down_config.group_name

    @property
    def scale_down_config(self) -> ScaleDown:
        """What is configured; an operator's scale-down keeps to it where it is not enabled, too."""
        policy = scale_down_of(self.ha_policy)
        if policy is None:
            policy = ScaleDown(enabled=False)
        return replace(
            policy,
            enabled=policy.enabled or self.scale_down,
            group_name=policy.group_name or self.scale_down_group_name,
            cluster_name=policy.cluster_name or self.scale_down_cluster_name,
        )
