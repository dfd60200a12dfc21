"""A broker that is not active while its machine reaches no network.

What a backup does meanwhile needs the lock on the store: all but the web server stops, and clients
go to another node.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.server.server import Broker
from journal.errors import JournalClosed, JournalError

if TYPE_CHECKING:
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.server.reload import ConfigurationSource
    from broker.transport.network_check import NetworkCheck

__all__ = ["WatchedBroker"]

log = logging.getLogger("broker")


class WatchedBroker(Broker):
    """A Broker for `serve()`: each activation waits for the network, too.

    Args:
        options: of the broker.
        network: how to look for the network.
        security: as for Broker.
        configuration: likewise.
    """

    def __init__(
        self,
        options: BrokerOptions,
        network: NetworkCheck,
        *,
        security: Security | None = None,
        configuration: ConfigurationSource | None = None,
    ) -> None:
        super().__init__(options, security=security, configuration=configuration)
        self._network = network
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start; it is active once the network is there; errors as of Broker."""
        await super().start()
        self._watch = asyncio.ensure_future(self._look())

    async def stop(self) -> None:
        """Stop for good; errors as of Broker."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
        await super().stop()

    async def _activate(self) -> None:
        await self._reach()
        await super()._activate()

    async def _reach(self) -> None:
        self.lifecycle.begin("waiting for the network")
        if await self._network.is_healthy():
            return
        log.warning("AMQ201001: Network is unhealthy: the broker does not run until one answers")
        is_healthy = False
        while not is_healthy:
            await self._pause()
            is_healthy = await self._network.is_healthy()
        log.info("AMQ201000: Network is healthy: the broker starts")

    async def _pause(self) -> None:
        """Wait for the next look, unless stop() is called before."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._told_to_stop.wait(), self._network.period_ms / 1000)
            raise JournalClosed("the broker was stopped before it was active")

    async def _look(self) -> None:
        """Stop and start it, as the network goes and comes."""
        try:
            while True:
                await asyncio.sleep(self._network.period_ms / 1000)
                if self.is_active and not await self._network.is_healthy():
                    log.warning("AMQ201001: Network is unhealthy: the broker stops")
                    await self._restart(
                        "it reaches no network",
                        hands_over=self.options.failover_on_shutdown,
                        stays=True,
                    )
        except (BrokerError, JournalError) as error:
            # As a storage that fails: the process ends with status 1.
            self._storage_failed(error)
