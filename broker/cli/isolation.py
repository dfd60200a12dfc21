"""A broker that stops while its machine reaches no network, and starts again when it does.

What a backup does meanwhile needs the lock on the store: so it is a whole stop, and clients go to
another node.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.server.server import Broker
from journal.errors import JournalError

if TYPE_CHECKING:
    from broker.options import BrokerOptions
    from broker.ports import Security
    from broker.server.reload import ConfigurationSource
    from broker.transport.network_check import NetworkCheck

__all__ = ["WatchedBroker"]

log = logging.getLogger("broker")


class WatchedBroker(Broker):
    """A Broker for `serve()`: its first start waits for the network, too.

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
        """Start once the network is there; errors as of Broker."""
        await self._reach()
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

    async def _reach(self) -> None:
        if await self._network.is_healthy():
            return
        log.warning("AMQ201001: Network is unhealthy: the broker does not run until one answers")
        is_healthy = False
        while not is_healthy:
            await asyncio.sleep(self._network.period_ms / 1000)
            is_healthy = await self._network.is_healthy()
        log.info("AMQ201000: Network is healthy: the broker starts")

    async def _look(self) -> None:
        """Stop and start it, as the network goes and comes."""
        try:
            while True:
                await asyncio.sleep(self._network.period_ms / 1000)
                if self.is_started and not await self._network.is_healthy():
                    log.warning("AMQ201001: Network is unhealthy: the broker stops")
                    await super().stop()
                    await self._reach()
                    await super().start()
        except (BrokerError, JournalError) as error:
            # As a storage that fails: the process ends with status 1.
            self._storage_failed(error)
