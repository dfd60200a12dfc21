"""Cluster connections: how this broker and others form a cluster.

Defaults of ActiveMQDefaultConfiguration, where the manual of Artemis names others. A window of -1
is none, as the manual has it; Artemis's own parser refuses it for confirmations. Milliseconds
unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.config.xml_fields import (
    attribute,
    child_attribute,
    element,
    line,
    nested,
    optional,
    repeated,
    unused,
)
from broker.model.load_balancing import MessageLoadBalancing
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
    from broker.config.transport import TransportConfig

__all__ = [
    "ATTEMPTS",
    "BYTES",
    "CALL_FAILOVER_TIMEOUT",
    "FACTOR",
    "GT_0",
    "NAME",
    "WINDOW",
    "ClusterConnection",
    "MessageLoadBalancing",
    "StaticConnectors",
]

# Kinds of values, for elements here and for parameters of <cluster-connection-uri>.
NAME: Final = TEXT.within(bool, "not empty")
GT_0: Final = at_least(LONG, 1)
ATTEMPTS: Final = minus_one_or_more_than(INT, -1)
BYTES: Final = between(SIZE, 1, INT_MAX)
WINDOW: Final = minus_one_or_more_than(SIZE, 0, most=INT_MAX)
FACTOR: Final = DOUBLE.within(lambda value: value > 0, "more than 0")
CALL_FAILOVER_TIMEOUT: Final = minus_one_or_more_than(LONG, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticConnectors:
    """Nodes by the names of their connectors."""

    connector_refs: tuple[str, ...] = repeated("connector-ref", NAME)
    """Name of a connector."""
    allow_direct_connections_only: bool = attribute("allow-direct-connections-only", BOOLEAN, False)
    """Whether only these are connected to, and not others that they tell of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """How this node and others form a cluster."""

    name: str = attribute("name", NAME)
    """Of the connection."""
    # Prefixes separated by commas, `!` before one excludes; empty is everything.
    address: str = element("address", TEXT, "")
    """Prefixes of addresses, separated by commas; `!` before one excludes it. Empty: all."""
    connector_ref: str = element("connector-ref", NAME)
    """Connector that others are told to reach this broker by."""
    check_period_ms: int = element("check-period", GT_0, 30_000)
    """How often the silence of others is looked at."""
    connection_ttl_ms: int = element("connection-ttl", GT_0, 60_000)
    """Silence after which they give the connection up."""
    min_large_message_size_bytes: int = element("min-large-message-size", BYTES, 100 * 1024)
    """Size from which a message is sent in pieces."""
    call_timeout_ms: int = element("call-timeout", GT_0, 30_000)
    """How long an answer may take."""
    call_failover_timeout_ms: int = element("call-failover-timeout", CALL_FAILOVER_TIMEOUT, -1)
    """How long it may take during a failover; -1 without limit."""
    retry_interval_ms: int = element("retry-interval", GT_0, 500)
    """Wait before the next attempt to connect."""
    retry_interval_multiplier: float = element("retry-interval-multiplier", FACTOR, 1.0)
    """How much longer each further attempt waits."""
    max_retry_interval_ms: int = element("max-retry-interval", GT_0, 2000)
    """Longest wait."""
    initial_connect_attempts: int = element("initial-connect-attempts", ATTEMPTS, -1)
    """Attempts at the start; -1 without limit."""
    reconnect_attempts: int = element("reconnect-attempts", ATTEMPTS, -1)
    """Attempts after a lost connection; -1 without limit."""
    use_duplicate_detection: bool = element("use-duplicate-detection", BOOLEAN, True)
    """Whether messages get a duplicate id on their way."""
    message_load_balancing: MessageLoadBalancing = element(
        "message-load-balancing", choice(MessageLoadBalancing), MessageLoadBalancing.ON_DEMAND
    )
    """Where messages go: OFF nowhere, STRICT to all nodes in turn, ON_DEMAND to those with
    consumers, OFF_WITH_REDISTRIBUTION only when the last consumer has left."""
    # Deprecated; where it is there it decides: True is STRICT, False is ON_DEMAND.
    forward_when_no_consumers: bool | None = optional("forward-when-no-consumers", BOOLEAN)
    """Older form: true is STRICT, false is ON_DEMAND."""
    max_hops: int = element("max-hops", at_least(INT, 0), 1)
    """Brokers that a message may pass; 1 is the neighbours only."""
    confirmation_window_size_bytes: int = element(
        "confirmation-window-size", WINDOW, 10 * 1024 * 1024
    )
    """Bytes that may be sent and not confirmed; -1 without limit."""
    producer_window_size_bytes: int = element("producer-window-size", WINDOW, 8 * 1024 * 1024)
    """Bytes of credits that are asked for; -1 without."""
    notification_interval_ms: int = element("notification-interval", GT_0, 1000)
    """How often this broker says that it is there."""
    notification_attempts: int = element("notification-attempts", at_least(INT, 1), 2)
    """How many times it says so when it connects."""
    topology_scanner_attempts: int = element("topology-scanner-attempts", ATTEMPTS, 30)
    """How often a start looks for its own place in the cluster; -1 without limit."""
    client_id: str | None = optional("client-id", TEXT)
    """Of its connections."""
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    """Discovery group that finds the others."""
    static_connectors: StaticConnectors | None = nested("static-connectors", StaticConnectors)
    """The others by the names of their connectors."""
    # In place of names, the other brokers of a <cluster-connection-uri>.
    members: tuple[TransportConfig, ...] = ()
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
