"""A broadcast group: says every broadcast-period how this broker is reached.

    start() ─▶ datagram at once ─▶ broadcast-period ─▶ datagram … ─▶ stop()

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from broker.discovery.datagram import Broadcast, encode_broadcast
from broker.notifications import NotificationType

if TYPE_CHECKING:
    from broker.config.discovery import BroadcastGroup as BroadcastGroupConfig
    from broker.discovery.endpoints import Broadcaster, Endpoint
    from broker.model.transport_configuration import TransportConfiguration
    from broker.notifications import Notifications

__all__ = ["BroadcastGroup"]

log = logging.getLogger("broker")


class BroadcastGroup:
    """See the module's text.

    Args:
        config: name and period.
        endpoint: what carries the datagrams.
        node_id: of this broker.
        unique_id: of this group and this start of the broker: others tell by it whether two brokers
            have one node id.
        connectors: how this broker is reached, then its backup.
        notifications: hear of start and stop.

    Attributes:
        config: as given.
    """

    def __init__(
        self,
        config: BroadcastGroupConfig,
        endpoint: Endpoint,
        *,
        node_id: str,
        unique_id: str,
        connectors: tuple[TransportConfiguration, ...],
        notifications: Notifications,
    ) -> None:
        self.config = config
        self._endpoint = endpoint
        self._broadcast = Broadcast(node_id, unique_id, connectors)
        self._notifications = notifications
        self._broadcaster: Broadcaster | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        """Whether it broadcasts."""
        return self._task is not None

    async def start(self) -> None:
        """Broadcast from now on. Does nothing where it does so already.

        Raises:
            OSError: that is not possible on this machine.
            ValueError: its connectors do not fit a datagram.
        """
        if self._task is not None:
            return
        data = encode_broadcast(self._broadcast)
        broadcaster = await self._endpoint.open_broadcaster()
        self._broadcaster = broadcaster
        self._task = asyncio.get_running_loop().create_task(self._run(broadcaster, data))
        self._notifications.discovery(NotificationType.BROADCAST_GROUP_STARTED, self.config.name)

    async def _run(self, broadcaster: Broadcaster, data: bytes) -> None:
        has_failed = False
        while True:
            try:
                await broadcaster.broadcast(data)
                has_failed = False
            except OSError as error:
                # Once, not every two seconds for as long as a network is down.
                level = logging.DEBUG if has_failed else logging.ERROR
                has_failed = True
                log.log(
                    level,
                    "AMQ224033: Failed to broadcast connector configs: broadcast group %s: %s",
                    self.config.name,
                    error,
                )
            await asyncio.sleep(self.config.broadcast_period_ms / 1000)

    async def stop(self) -> None:
        """Broadcast no more. Idempotent."""
        task, self._task = self._task, None
        broadcaster, self._broadcaster = self._broadcaster, None
        if task is None or broadcaster is None:
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        try:
            await broadcaster.close()
        except OSError as error:
            log.warning("broadcast group %s: %s", self.config.name, error)
        self._notifications.discovery(NotificationType.BROADCAST_GROUP_STOPPED, self.config.name)
