"""What a configuration says of a cluster, seen together: names that have to be there, and doubts.

Artemis logs a warning and leaves a group or cluster connection out if its connector is missing.
Here the configuration is refused: the broker would be alone in its cluster.
"""

from __future__ import annotations

import logging
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

from broker.config.errors import ConfigError
from broker.config.ha import Colocated
from journal.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from broker.config.cluster import ClusterConfig
    from broker.config.cluster_connections import ClusterConnection
    from broker.config.transport import TransportConfig

__all__ = ["check_cluster", "overlap"]

log = logging.getLogger("broker.config")

# Names by which every machine reaches itself.
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def check_cluster(cluster: ClusterConfig) -> None:
    """See that what is named exists; warn of what is seldom meant.

    Raises:
        ConfigError: with file and line.
    """
    connectors = {one.name: one for one in cluster.connectors}
    groups = {one.name for one in cluster.discovery_groups}
    _check_unique("broadcast-group", cluster.broadcast_groups)
    _check_unique("discovery-group", cluster.discovery_groups)
    connections = cluster.cluster_connections
    _check_unique("cluster-connection", connections)
    for group in cluster.broadcast_groups:
        for name in group.connector_refs:
            _check_connector(name, connectors, group.where)
    for connection in connections:
        _check_connector(connection.connector_ref, connectors, connection.where)
        group_name = connection.discovery_group_ref
        if group_name is not None and group_name not in groups:
            raise _at(connection.where, f"no discovery group is called {group_name!r}")
        for other in _others(connection, connectors):
            if _is_same(connectors[connection.connector_ref], other):
                log.warning(
                    "%s: cluster connection %s lists this broker itself (%s:%d); it is left out",
                    connection.where,
                    connection.name,
                    other.host,
                    other.port,
                )
    policy = cluster.ha_policy
    if isinstance(policy, Colocated) and not policy.is_replicated:
        for name in policy.excludes:
            _check_connector(name, connectors, policy.where)
    _check_routers(cluster, connectors, groups)
    for one, two in combinations(connections, 2):
        if overlap(one.address, two.address):
            log.warning(
                "%s: cluster connections %s and %s have overlapping addresses (%r, %r): between "
                "nodes that are in both, messages would be sent twice",
                two.where,
                one.name,
                two.name,
                one.address,
                two.address,
            )


def _check_routers(
    cluster: ClusterConfig, connectors: Mapping[str, TransportConfig], groups: Collection[str]
) -> None:
    """See that routers have targets, and acceptors their routers."""
    _check_unique("connection-router", cluster.connection_routers)
    connections = {one.name for one in cluster.cluster_connections}
    for router in cluster.connection_routers:
        pool = router.pool
        if pool is None:
            continue
        if pool.cluster_connection not in (None, *connections):
            raise _at(router.where, f"no cluster connection is called {pool.cluster_connection!r}")
        if pool.discovery_group_ref not in (None, *groups):
            raise _at(router.where, f"no discovery group is called {pool.discovery_group_ref!r}")
        for name in () if pool.static_connectors is None else pool.static_connectors.connector_refs:
            _check_connector(name, connectors, router.where)
    routers = {one.name for one in cluster.connection_routers}
    for acceptor in cluster.acceptors:
        wanted = acceptor.parameters.get("router")
        if wanted is not None and wanted not in routers:
            raise _at(
                acceptor.where,
                f"acceptor {acceptor.name!r}: no connection router is called {wanted!r}"
                f"{nearest(wanted, routers, '{!r}')}",
            )


class _Named(Protocol):
    """Anything with a name and a place."""

    @property
    def name(self) -> str:
        """That has to be unique."""

    @property
    def where(self) -> str:
        """`FILE:LINE`."""


def _check_unique(kind: str, found: Iterable[_Named]) -> None:
    places: dict[str, str] = {}
    for one in found:
        if one.name in places:
            raise _at(one.where, f"{kind} {one.name!r} is there already, {places[one.name]}")
        places[one.name] = one.where


def _check_connector(name: str, connectors: Mapping[str, TransportConfig], where: str) -> None:
    if name not in connectors:
        raise _at(where, f"no connector is called {name!r}")


def _others(
    connection: ClusterConnection, connectors: Mapping[str, TransportConfig]
) -> list[TransportConfig]:
    """Give the brokers that a connection lists."""
    listed = connection.static_connectors
    names = () if listed is None else listed.connector_refs
    for name in names:
        _check_connector(name, connectors, connection.where)
    return [*(connectors[name] for name in names), *connection.members]


def _is_same(one: TransportConfig, other: TransportConfig) -> bool:
    """Whether two connectors lead to one broker, as far as their texts tell."""
    return one.port == other.port and (one.host == other.host or {one.host, other.host} <= _LOCAL)


def overlap(one: str, other: str) -> bool:
    """Whether there can be an address that both lists of prefixes take.

    >>> overlap("orders,jms", "ord"), overlap("eu", "us"), overlap("", "us"), overlap("!eu", "eu")
    (True, False, True, False)
    """
    (taken, excluded), (other_taken, other_excluded) = _prefixes(one), _prefixes(other)
    for first in taken:
        for second in other_taken:
            if not (first.startswith(second) or second.startswith(first)):
                continue
            narrow = max(first, second, key=len)
            if not any(narrow.startswith(out) for out in (*excluded, *other_excluded)):
                return True
    return False


def _prefixes(text: str) -> tuple[list[str], list[str]]:
    """Give what is taken and what is excluded; nothing but exclusions takes all others."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    excluded = [item[1:] for item in items if item.startswith("!")]
    return [item for item in items if not item.startswith("!")] or [""], excluded


def _at(where: str, what: str) -> ConfigError:
    return ConfigError(f"{where}: {what}")
