"""A connection router: a client's key, then this broker, a kept target, or what the policy selects.

    key ─▶ local-target-filter ─▶ cache ─▶ pool and policy ─▶ this broker, another one, or none

No I/O: its pool has that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.protocols.redirection import Redirection, RoutingRefusal
from broker.routers.keys import NO_KEY, key_of
from broker.routers.targets import ROUTER_CLIENT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.config.connection_routers import ConnectionRouterConfig
    from broker.routers.cache import TargetCache
    from broker.routers.keys import RoutedClient
    from broker.routers.policies import Policy
    from broker.routers.pools import Pool, Target
    from broker.routers.targets import LocalTarget

__all__ = ["ConnectionRouter"]

log = logging.getLogger("broker")


class ConnectionRouter:
    """See the module's text.

    Args:
        config: of it.
        local: this broker.
        pool: other brokers; None for a router that only accepts or refuses.
        policy: how a target is selected.
        cache: of targets.

    Attributes:
        config: as given.
        local: as given.
        pool: as given.
        cache: as given.
    """

    def __init__(
        self,
        config: ConnectionRouterConfig,
        local: LocalTarget,
        pool: Pool | None = None,
        policy: Policy | None = None,
        cache: TargetCache | None = None,
    ) -> None:
        self.config = config
        self.local = local
        self.pool = pool
        self.cache = cache
        self._policy = policy

    def route(self, client: RoutedClient) -> Redirection | RoutingRefusal | None:
        """Say where a client is served; None is here."""
        found = self._target_of(client)
        if isinstance(found, RoutingRefusal):
            log.info("AMQ221086: Cannot route %s: %s", client.remote, found.text)
            return found
        if found.is_local or found.connector is None or found.node_id is None:
            return None
        answer = Redirection(self.config.name, found.node_id, found.connector)
        log.info("AMQ221085: Route %s to %s", client.remote, answer.place)
        return answer

    def _target_of(self, client: RoutedClient) -> Target | RoutingRefusal:
        if client.client_id is not None and client.client_id.startswith(ROUTER_CLIENT_PREFIX):
            return self.local
        return self.target(key_of(self.config.key_type, self.config.key_filter, client))

    def target(self, key: str) -> Target | RoutingRefusal:
        """Give the target of a key, as `key_of` gives it."""
        name, policy, pool = self.config.name, self._policy, self.pool
        if policy is not None and key != NO_KEY:
            key = policy.transformed(key)
        local_filter = self.config.local_target_filter
        if local_filter is not None and local_filter.fullmatch(key):
            return self.local
        if policy is None or pool is None:
            return RoutingRefusal(name, is_unavailable=False)
        found = self._kept(key, pool)
        if found is not None:
            return found
        found = policy.select(pool.ready, key) if pool.has_quorum else None
        if found is None:
            return RoutingRefusal(name, is_unavailable=True)
        if self.cache is not None and found.node_id is not None:
            self.cache.put(key, found.node_id)
        return found

    def _kept(self, key: str, pool: Pool) -> Target | None:
        node_id = None if self.cache is None else self.cache.get(key)
        return None if node_id is None else pool.ready_target(node_id)

    def wait(self, release: Callable[[], object]) -> Callable[[], object] | None:
        """Have a client wait until the pool has its quorum, or quorum-timeout is over.

        Args:
            release: called then, once.

        Returns:
            What ends the wait without a call; None where there is nothing to wait for.
        """
        pool = self.pool
        if pool is None or self._policy is None or pool.has_quorum:
            return None
        if pool.config.quorum_timeout_ms == 0:
            return None
        pool.wait(release)
        return lambda: pool.cancel(release)
