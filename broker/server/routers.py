"""The connection routers of a broker, made of its options and parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.environment import Environment
    from broker.model.wire import WireRecord
    from broker.options import BrokerOptions
    from broker.routers.connection_routers import ConnectionRouters
    from broker.server.clients import Clients
    from broker.server.composition import Parts

__all__ = ["make_routers"]


def make_routers(
    options: BrokerOptions,
    parts: Parts,
    clients: Clients,
    environment: Environment,
    recorded: Iterable[tuple[int, WireRecord]],
) -> ConnectionRouters | None:
    """Make the routers that are configured, and set them into the clients; None where none is.

    Args:
        options: of the broker.
        parts: of the broker.
        clients: of the broker; they have its cluster by now.
        environment: clock, ids, chance and network.
        recorded: settings that the store has, in log order.

    Raises:
        BrokerError: an acceptor names a router that is not configured.
    """
    configs = options.configuration.cluster.connection_routers
    names = {one.name for one in configs}
    for acceptor in options.acceptors:
        if acceptor.router and acceptor.router not in names:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"acceptor {acceptor.name}: no connection router is called {acceptor.router!r}",
            )
    clients.routers = None
    if not configs:
        return None
    # A broker without routers does not load the client.
    from broker.routers.connection_routers import ConnectionRouters

    clients.routers = ConnectionRouters(
        configs,
        connectors=parts.stored_connectors.by_name,
        cluster=clients.cluster,
        node_id=clients.node_id,
        environment=environment,
        count_connections=lambda: len(clients.connections),
        storage=parts.storage,
        recorded=recorded,
    )
    return clients.routers
