"""Connection routers: which broker serves a client that connects to an acceptor with `router=`.

Defaults of Artemis's ConnectionRouterConfiguration, PoolConfiguration and CacheConfiguration;
milliseconds. Regular expressions are Python's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.config.cluster_connections import GT_0, NAME, StaticConnectors
from broker.config.xml_fields import (
    Context,
    attribute,
    check_names,
    child_attribute,
    custom,
    element,
    line,
    nested,
    optional,
    secret,
    unused,
)
from broker.settings.value_types import BOOLEAN, INT, LONG, TEXT, ValueType, at_least, choice

if TYPE_CHECKING:
    from broker.config.document import Element

__all__ = [
    "CacheConfig",
    "ConnectionRouterConfig",
    "KeyType",
    "PolicyConfig",
    "PolicyName",
    "PoolConfig",
]

MODULO: Final = "MODULO"
CONNECTION_COUNT_THRESHOLD: Final = "CONNECTION_COUNT_THRESHOLD"


class KeyType(Enum):
    """Which text of a client is its key."""

    CLIENT_ID = "CLIENT_ID"
    SNI_HOST = "SNI_HOST"
    SOURCE_IP = "SOURCE_IP"
    USER_NAME = "USER_NAME"
    ROLE_NAME = "ROLE_NAME"


class PolicyName(Enum):
    """How a target is selected."""

    FIRST_ELEMENT = "FIRST_ELEMENT"
    ROUND_ROBIN = "ROUND_ROBIN"
    CONSISTENT_HASH = "CONSISTENT_HASH"
    LEAST_CONNECTIONS = "LEAST_CONNECTIONS"
    CONSISTENT_HASH_MODULO = "CONSISTENT_HASH_MODULO"


class PolicyConfig(NamedTuple):
    """A policy with its properties.

    Attributes:
        name: which policy.
        modulo: how many keys CONSISTENT_HASH_MODULO makes; 0 for all others.
        connection_count_threshold: connections below which LEAST_CONNECTIONS counts a target as
            empty.
    """

    name: PolicyName
    modulo: int = 0
    connection_count_threshold: int = 0


def _regular_expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error:
        raise ValueError(text) from None


_PATTERN: Final = ValueType("a regular expression", _regular_expression)
_COUNT: Final = at_least(INT, 1)


def _policy(parent: Element, context: Context) -> PolicyConfig:
    check_names(parent, ("property",), ("name",), context)
    try:
        name = choice(PolicyName).parse(parent.attributes.get("name", ""))
    except ValueError as error:
        raise parent.wrong(f"<policy>: {error}") from None
    known = _PROPERTIES.get(name, {})
    values: dict[str, int] = {}
    for child in parent.children:
        check_names(child, (), ("key", "value"), context)
        key = child.attributes.get("key", "")
        if key not in known:
            context.unknown(child, f"policy {name.value} has no property {key!r}")
            continue
        field, kind = known[key]
        try:
            values[field] = kind.parse(child.attributes.get("value", ""))
        except ValueError as error:
            raise child.wrong(f"property {key}: {error}") from None
    if name is PolicyName.CONSISTENT_HASH_MODULO and "modulo" not in values:
        raise parent.wrong(f"policy {name.value} needs the property {MODULO}")
    return PolicyConfig(name, **values)


_PROPERTIES: Final = {
    PolicyName.CONSISTENT_HASH_MODULO: {MODULO: ("modulo", _COUNT)},
    PolicyName.LEAST_CONNECTIONS: {
        CONNECTION_COUNT_THRESHOLD: ("connection_count_threshold", at_least(INT, 0))
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """Keeps the target of a key."""

    persisted: bool = element("persisted", BOOLEAN, False)
    """Whether entries survive a restart."""
    timeout_ms: int = element("timeout", at_least(INT, 0), 0)
    """How long an entry stays after its last use; 0 without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolConfig:
    """The brokers that clients are sent to."""

    username: str | None = optional("username", TEXT)
    """As whom the router logs in to them."""
    password: str | None = secret("password")
    """With what."""
    check_period_ms: int = element("check-period", GT_0, 5000)
    """How often a target is checked."""
    quorum_size: int = element("quorum-size", _COUNT, 1)
    """How many targets have to be ready before any is used."""
    quorum_timeout_ms: int = element("quorum-timeout", at_least(LONG, 0), 3000)
    """How long a client that connects waits until so many are ready; 0 does not wait."""
    local_target_enabled: bool = element("local-target-enabled", BOOLEAN, False)
    """Whether this broker is one of the targets."""
    cluster_connection: str | None = optional("cluster-connection", NAME)
    """Targets: the other members of this cluster connection."""
    static_connectors: StaticConnectors | None = nested("static-connectors", StaticConnectors)
    """Targets by the names of their connectors."""
    discovery_group_ref: str | None = child_attribute("discovery-group-ref", "discovery-group-name")
    """Targets: the brokers that this discovery group hears."""

    def __post_init__(self) -> None:
        """Its targets come from one place.

        Raises:
            ValueError: from none, or from several.
        """
        places = (self.cluster_connection, self.static_connectors, self.discovery_group_ref)
        if sum(one is not None for one in places) != 1:
            raise ValueError(
                "it takes one of <cluster-connection>, <static-connectors> and "
                "<discovery-group-ref>"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRouterConfig:
    """Which broker serves a client."""

    name: str = attribute("name", NAME)
    """By which an acceptor names it (`router`)."""
    key_type: KeyType = element("key-type", choice(KeyType), KeyType.SOURCE_IP)
    """Which text of a client is its key."""
    key_filter: re.Pattern[str] | None = optional("key-filter", _PATTERN)
    """Regular expression: its first match is the key."""
    local_target_filter: re.Pattern[str] | None = optional("local-target-filter", _PATTERN)
    """Regular expression: clients whose whole key it matches are served by this broker."""
    cache: CacheConfig | None = nested("cache", CacheConfig)
    """Keeps the target of a key, as long as that is ready."""
    policy: PolicyConfig | None = custom("policy", _policy, None)
    """How a target is selected."""
    pool: PoolConfig | None = nested("pool", PoolConfig)
    """The brokers that clients are sent to."""
    obsolete: None = unused("key-transformer")
    where: str = line()
