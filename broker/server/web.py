"""The web servers of a broker: metrics and health over HTTP, from its start to its stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.management.access import ManagedBroker
    from broker.management.web import WebServer
    from broker.options import WebOptions

__all__ = ["start_web", "stop_web"]


async def start_web(
    broker: ManagedBroker, options: Iterable[WebOptions], servers: list[WebServer]
) -> None:
    """Start them.

    Args:
        broker: that they tell of.
        options: where they listen.
        servers: takes each before it listens, for stop_web().

    Raises:
        BrokerError: an address to listen on is taken.
    """
    if options:
        # A fifth of a second, and 25 MiB, that a broker without it does not pay.
        from broker.management.web import WebServer

        for one in options:
            servers.append(WebServer(broker, one))
            await servers[-1].start()


async def stop_web(servers: list[WebServer]) -> None:
    """Stop them, and forget them. Idempotent."""
    for server in servers:
        await server.stop()
    servers.clear()
