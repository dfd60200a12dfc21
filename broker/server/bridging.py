"""The core bridges of a broker, from one start to the next stop.

    configured, recorded ─▶ prepare() ─▶ (the broker is active) ─▶ start() ─▶ … ─▶ stop()

What operators make is recorded (PersistedBridgeConfiguration), and there again after a restart
until they destroy it. The configuration is not: it is read at each start.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from broker.bridges.core.bridges import CoreBridges
from broker.bridges.core.records import config_of, record_of
from broker.errors import BrokerError
from broker.records.binding_records import Bridge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker.bridges.core.bridge import CoreBridge
    from broker.config.cluster import BridgeConfig
    from broker.environment import Environment
    from broker.model.wire import WireRecord
    from broker.notifications import Notifications
    from broker.options import BrokerOptions
    from broker.queues.queue import Queue
    from broker.server.clients import Clients
    from broker.server.composition import Parts
    from broker.sessions.session import Session

__all__ = ["Bridging"]

log = logging.getLogger("broker.bridge")


class Bridging:
    """See the module's text. Implements `broker.bridges.core.ports.BridgingBroker`.

    Args:
        options: of the broker; without bridges where it is opened by a tool.
        parts: of the broker.
        clients: makes sessions.
        node_id: of the broker.
        environment: clock, ids, chance and network.
        recorded: what was recorded at run time, bridges among it, in log order.

    Attributes:
        environment: as given.
        notifications: who tells of what happens.
    """

    def __init__(
        self,
        options: BrokerOptions,
        parts: Parts,
        clients: Clients,
        node_id: str,
        environment: Environment,
        recorded: Iterable[tuple[int, WireRecord]],
    ) -> None:
        self._runs = options.bridges is not None
        self._configured: Sequence[BridgeConfig] = options.bridges or ()
        self._parts = parts
        self._clients = clients
        self.environment = environment
        self.notifications: Notifications = parts.notifications
        self._node_id = node_id
        self._record_ids: dict[str, int] = {}
        self._recorded: list[BridgeConfig] = []
        self._bridges = CoreBridges(
            self,
            lambda: parts.stored_connectors.by_name,
            {one.name: one for one in options.configuration.cluster.discovery_groups},
        )
        self._load(recorded)

    def _load(self, records: Iterable[tuple[int, WireRecord]]) -> None:
        for record_id, record in records:
            if not isinstance(record, Bridge) or not record.name:
                continue
            if record.configuration_managed:
                # Of Artemis, which records what a reload brought; here the configuration says it.
                log.debug("recorded bridge %s is that of a configuration", record.name)
                continue
            self._record_ids[record.name] = record_id
            self._recorded.append(config_of(record))

    # --- lifecycle ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the bridges; none of them runs before start().

        Raises:
            BrokerError: one of the configuration cannot be.
        """
        if not self._runs:
            return
        for error in self._bridges.apply(self._configured):
            raise error
        for config in self._recorded:
            if config.name in self._bridges.configs:
                log.warning("bridge %s is configured: what was recorded of it waits", config.name)
                continue
            try:
                self._bridges.create(config)
            except BrokerError as error:
                log.warning("AMQ222118: unable to start Bridge %s: %s", config.name, error)

    def start(self) -> None:
        """Let them run: the broker is active."""
        self._bridges.start()

    async def stop(self) -> None:
        """Stop all, and wait for it. Idempotent."""
        await self._bridges.stop()

    def apply(self, configured: Sequence[BridgeConfig]) -> list[BrokerError]:
        """Let these be instead of the configured ones before; what could not be done."""
        return self._bridges.apply(configured) if self._runs else []

    # --- what management does -----------------------------------------------------------------

    @property
    def by_name(self) -> Mapping[str, CoreBridge]:
        """All there are, whether they run or not."""
        return self._bridges.by_name

    def create(self, config: BridgeConfig) -> None:
        """Make a bridge, start and record it.

        Raises:
            BrokerError: there is one of the name; a connector or transformer is not there.
            JournalError: the storage has failed.
        """
        self._bridges.create(config)
        self._record_ids[config.name] = self._parts.storage.add_setting(record_of(config))

    def destroy(self, name: str) -> bool:
        """Stop a bridge and forget it, a configured one until the next start.

        Returns:
            Whether it was there.

        Raises:
            JournalError: the storage has failed.
        """
        record_id = self._record_ids.pop(name, 0)
        if record_id:
            self._parts.storage.delete_setting(record_id)
        return self._bridges.destroy(name)

    async def left(self, name: str) -> None:
        """Wait until what was destroyed has stopped."""
        await self._bridges.left(name)

    # --- what bridges ask ---------------------------------------------------------------------

    @property
    def node_uuid(self) -> UUID:
        """Of the broker, the same after a restart."""
        return UUID(self._node_id)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """All there are, by name."""
        return self._parts.postoffice.addresses.queues

    def new_session(self, name: str) -> Session:
        """Make a session of the broker itself, to which nothing is refused; it is not listed."""
        return self._clients.internal_session(name)
