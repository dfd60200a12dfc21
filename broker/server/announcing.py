"""While a broker of a pair waits for its store: the cluster is told of it as the backup."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.options import BrokerOptions
    from broker.storage.waiting import StartWait

__all__ = ["announced_as_backup"]


@contextlib.asynccontextmanager
async def announced_as_backup(
    options: BrokerOptions, environment: Environment, wait: StartWait
) -> AsyncIterator[dict[str, TransportConfiguration]]:
    """Announce the broker from when it waits for another one of its pair, until the block ends.

    Gives, filled when the block ends, where the one that it waited for was reached, by the names of
    cluster connections.

    Args:
        options: of the broker.
        environment: clock, ids, chance and network.
        wait: for the store.
    """
    cluster = options.configuration.cluster
    if not options.shares_store or not cluster.cluster_connections:
        yield {}
        return
    # A pair without a cluster needs no client, which takes 3 MB.
    from broker.cluster.backup_announcer import BackupAnnouncer, ClusterUser

    security = options.configuration.security
    user = ClusterUser(security.cluster_user, security.cluster_password)
    announcer = BackupAnnouncer(cluster, user, environment)
    loop = asyncio.get_running_loop()
    is_over = False
    served_at: dict[str, TransportConfiguration] = {}

    def start(node_id: str) -> None:
        if not is_over:
            announcer.start(node_id)

    wait.on_waiting(lambda node_id: loop.call_soon_threadsafe(start, node_id))
    try:
        yield served_at
    finally:
        is_over = True
        served_at |= announcer.served_at()
        await announcer.stop()
