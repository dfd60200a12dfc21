"""The targets of a bridge that leads to a discovery group: those that are heard there now.

At each attempt to connect the brokers of the group take the place of the connectors; it waits for
the first of them. What is known of a node that was connected to, and of its backup, counts as for
connectors. Each bridge listens by itself, from its first attempt until it is stopped.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.bridges.core.target import Target
from broker.client.errors import NotConnected

if TYPE_CHECKING:
    from broker.bridges.core.target import Link
    from broker.config.cluster import BridgeConfig
    from broker.discovery.group import DiscoveryGroup
    from broker.environment import Environment

__all__ = ["DiscoveredTarget"]


class DiscoveredTarget(Target):
    """See the module's text.

    Args:
        config: of the bridge.
        group: of this bridge alone; not started.
        initial_wait_timeout_ms: how long an attempt waits until a broker is heard.
        environment: clock, ids, chance and network.
    """

    def __init__(
        self,
        config: BridgeConfig,
        group: DiscoveryGroup,
        initial_wait_timeout_ms: int,
        environment: Environment,
    ) -> None:
        super().__init__(config, (), environment)
        self._group = group
        self._wait_ms = initial_wait_timeout_ms
        self.name = f"discovery group {group.name}"

    async def connect(self, attempt: int) -> Link:
        """Connect once, and open a session; as Target.connect()."""
        try:
            await self._group.start()
        except OSError as error:
            raise NotConnected(f"{self.name} cannot be listened to: {error}") from error
        heard = await self._group.wait_for_broadcast(self._wait_ms)
        if heard:
            self.connectors = tuple(
                entry.connectors[0] for entry in self._group.entries if entry.connectors
            )
        if not self.connectors:
            raise NotConnected(f"{self.name}: no broker was heard in {self._wait_ms} ms")
        return await super().connect(attempt)

    def close(self) -> None:
        """Listen no more."""
        self._group.stop()
