"""The connection routers of a broker: made of the configuration, started, asked, stopped.

    acceptor with router= ─▶ protocol ─▶ route() ─▶ served here, by another broker, or refused

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.bridges.core.target import transport_of
from broker.client.options import ClientOptions
from broker.cluster.connectors import told_connector
from broker.routers.cache import TargetCache
from broker.routers.policies import Policy
from broker.routers.pools import ClusterSource, DiscoverySource, Pool, Source, StaticSource
from broker.routers.router import ConnectionRouter
from broker.routers.targets import FoundTarget, LocalTarget, TargetOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker.config.connection_routers import ConnectionRouterConfig, PoolConfig
    from broker.config.transport import TransportConfig
    from broker.discovery.group import DiscoveryGroup
    from broker.environment import Environment
    from broker.model.wire import WireRecord
    from broker.protocols.peer import ToldTopology
    from broker.protocols.redirection import Redirection, RoutingRefusal
    from broker.routers.cache import RecordedPairs
    from broker.routers.keys import RoutedClient

__all__ = ["ConnectionRouters", "RoutedCluster"]


class RoutedCluster(Protocol):
    """What routers need of a cluster; `broker.cluster.cluster_manager.ClusterManager` is one."""

    def topology(self, cluster_connection: str) -> ToldTopology:
        """Give the topology of a cluster connection."""

    async def start_discovery(self, name: str) -> DiscoveryGroup | None:
        """Start a discovery group, where it is not started yet; None where it cannot be."""


class ConnectionRouters:
    """See the module's text.

    Args:
        configs: of the routers.
        connectors: by name.
        cluster: whose members and discovery groups pools have.
        node_id: of this broker.
        environment: clock, ids, chance and network.
        count_connections: gives how many connections this broker has.
        storage: where caches are recorded.
        recorded: what the store has, in log order.

    Attributes:
        by_name: all of them.
    """

    def __init__(
        self,
        configs: Iterable[ConnectionRouterConfig],
        *,
        connectors: Mapping[str, TransportConfig],
        cluster: RoutedCluster,
        node_id: str,
        environment: Environment,
        count_connections: Callable[[], int],
        storage: RecordedPairs,
        recorded: Iterable[tuple[int, WireRecord]],
    ) -> None:
        self._connectors = connectors
        self._cluster = cluster
        self._environment = environment
        self._storage = storage
        self._recorded = recorded
        self._local = LocalTarget(node_id, count_connections)
        self._node_id = node_id
        self.by_name = {one.name: self._router(one) for one in configs}

    def _router(self, config: ConnectionRouterConfig) -> ConnectionRouter:
        # ROUND_ROBIN begins anywhere: many brokers with the same targets begin with different ones.
        policy = config.policy and Policy(config.policy, self._environment.chance.randrange(2**31))
        return ConnectionRouter(
            config,
            self._local,
            None if config.pool is None else self._pool(config, config.pool, policy),
            policy,
            None
            if config.cache is None
            else TargetCache(
                config.cache,
                config.name,
                storage=self._storage,
                monotonic_s=self._environment.clock.monotonic_s,
                recorded=self._recorded,
            ),
        )

    def _pool(
        self, config: ConnectionRouterConfig, pool: PoolConfig, policy: Policy | None
    ) -> Pool:
        how = TargetOptions(
            router=config.name,
            own_node_id=self._node_id,
            check_period_s=pool.check_period_ms / 1000,
            counts_connections=policy is not None and policy.counts_connections,
            client=ClientOptions(user=pool.username, password=pool.password),
        )
        local = self._local if pool.local_target_enabled else None
        return Pool(pool, self._source(pool), how, self._environment, local)

    def _source(self, pool: PoolConfig) -> Source:
        if pool.cluster_connection is not None:
            return ClusterSource(self._cluster.topology(pool.cluster_connection), self._node_id)
        if pool.discovery_group_ref is not None:
            name = pool.discovery_group_ref
            return DiscoverySource(lambda: self._cluster.start_discovery(name))
        assert pool.static_connectors is not None, "the configuration has one of the three"
        found = (self._connectors[name] for name in pool.static_connectors.connector_refs)
        return StaticSource(
            tuple(FoundTarget(None, transport_of(one), told_connector(one)) for one in found)
        )

    async def start(self) -> None:
        """Look for targets; the broker serves, and its cluster connections are started."""
        for router in self.by_name.values():
            if router.pool is not None:
                await router.pool.start()

    async def stop(self) -> None:
        """Look for none any more, and hold no client. Idempotent."""
        for router in self.by_name.values():
            if router.pool is not None:
                await router.pool.stop()

    def route(self, router: str, client: RoutedClient) -> Redirection | RoutingRefusal | None:
        """Say where a client is served; None is here.

        Args:
            router: that its acceptor names.
            client: what is known of it.
        """
        return self.by_name[router].route(client)

    def wait(self, router: str, release: Callable[[], object]) -> Callable[[], object] | None:
        """Have a client wait until its router can answer; see `ConnectionRouter.wait`."""
        return self.by_name[router].wait(release)
