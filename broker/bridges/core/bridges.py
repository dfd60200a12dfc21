"""The core bridges of a broker: those of its configuration, and those that operators made.

    apply(configured) ─▶ new ones start, changed ones start anew, those no longer named stop
    create(), destroy() ─▶ the same for one, by an operator

Before start() they are made and do nothing: a broker that starts is not active yet.

A bridge with `concurrency` of n is n bridges, `NAME-0` to `NAME-n-1`. One that takes the place of
another starts once that has stopped, so that messages keep their order.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
from typing import TYPE_CHECKING, Final

from broker.discovery.group import DiscoveryGroup
from broker.errors import BrokerError, ErrorCode
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from broker.bridges.core.bridge import CoreBridge
    from broker.bridges.core.discovered import DiscoveredTarget
    from broker.bridges.core.ports import BridgingBroker
    from broker.config.cluster import BridgeConfig
    from broker.config.discovery import DiscoveryGroup as DiscoveryGroupConfig
    from broker.config.transport import TransportConfig

__all__ = ["CoreBridges"]

log = logging.getLogger("broker.bridge")

STOP_S: Final = 10.0
"""Seconds that a bridge which is removed, or stopped with its broker, may wait for confirmations:
as Artemis waits for it (BridgeImpl.flushExecutor), less than a service manager does."""


class CoreBridges:
    """See the module's text.

    Args:
        broker: that they belong to.
        connectors: gives those there are, by name.
        discovery_groups: by name.

    Attributes:
        by_name: all there are, whether they run or not.
        configs: by the names that were configured.
    """

    def __init__(
        self,
        broker: BridgingBroker,
        connectors: Callable[[], Mapping[str, TransportConfig]],
        discovery_groups: Mapping[str, DiscoveryGroupConfig],
    ) -> None:
        self._broker = broker
        self._connectors = connectors
        self._discovery_groups = discovery_groups
        self.by_name: dict[str, CoreBridge] = {}
        self.configs: dict[str, BridgeConfig] = {}
        # By the same names, where the connectors led to when the bridge was made.
        self._places: dict[str, list[TransportConfig]] = {}
        self._configured: set[str] = set()
        self._is_started = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        # By name: bridges that have not stopped yet, which the next one of the name waits for.
        self._leaving: dict[str, asyncio.Task[None]] = {}

    def apply(self, configured: Iterable[BridgeConfig]) -> list[BrokerError]:
        """Let these be, and of the earlier configured ones no other; what could not be done.

        Args:
            configured: of a name the last one counts.
        """
        wanted = {one.name: one for one in configured}
        errors: list[BrokerError] = []
        for name in [name for name in self._configured if name not in wanted]:
            self._remove(name)
        for name, config in wanted.items():
            before = self.configs.get(name)
            is_there = before is not None and name in self._configured
            try:
                if (
                    before is not None
                    and is_there
                    and _is_same(before, config)
                    # A connector of it may lead elsewhere.
                    and _places(self._connectors_of(config)) == self._places[name]
                ):
                    continue
                made = self._make(config)
            except BrokerError as error:
                errors.append(error)
                continue
            if name in self.configs:
                self._remove(name)
            self._add(config, made)
            self._configured.add(name)
        return errors

    def create(self, config: BridgeConfig) -> None:
        """Make a bridge, and start it.

        Raises:
            BrokerError: there is one of the name; a connector or transformer is not there.
        """
        if config.name in self.configs:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"AMQ222124: There is already a bridge with name {config.name} deployed",
            )
        self._add(config, self._make(config))

    def destroy(self, name: str) -> bool:
        """Stop a bridge and forget it; whether it was there.

        Args:
            name: as configured; all bridges of it with `concurrency`.
        """
        if name not in self.configs:
            return False
        self._remove(name)
        return True

    def start(self) -> None:
        """Start all, and from now on what is made at once."""
        self._is_started = True
        for bridge in self.by_name.values():
            bridge.start()

    async def left(self, name: str) -> None:
        """Wait until what was destroyed has stopped.

        Args:
            name: as it was configured.
        """
        leaving = [task for one, task in self._leaving.items() if _is_of(one, name)]
        if leaving:
            await asyncio.wait(leaving)

    async def stop(self) -> None:
        """Stop all, at the same time. Idempotent."""
        for name in list(self.configs):
            self._remove(name)
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    # --- one ----------------------------------------------------------------------------------

    def _make(self, config: BridgeConfig) -> list[CoreBridge]:
        # A broker without bridges does not load the client.
        from broker.bridges.core.bridge import CoreBridge

        connectors = self._connectors_of(config)
        own = _names_of(self.configs[config.name]) if config.name in self.configs else []
        for name in _names_of(config):
            if name in self.by_name and name not in own:
                raise _wrong(config, f"another bridge is called {name}; see concurrency")
        try:
            made = [
                CoreBridge(config, name, connectors, self._broker, target=self._discovered(config))
                for name in _names_of(config)
            ]
        except ValueError as error:
            raise _wrong(config, str(error)) from None
        if config.forwarding_address is None:
            log.warning(
                "AMQ222123: Forward address is not specified on bridge %s. Will use original "
                "message address instead",
                config.name,
            )
        return made

    def _connectors_of(self, config: BridgeConfig) -> list[TransportConfig]:
        """Give those that a bridge names; none where it leads to a discovery group."""
        if config.static_connectors is None:
            return []
        known = self._connectors()
        names = config.static_connectors.connector_refs
        missing = [name for name in names if name not in known]
        if missing or not names:
            told = f"no connector is called {missing[0]!r}" if missing else "it has no connector"
            raise _wrong(config, told)
        connectors = [known[name] for name in names]
        for one in connectors:
            if one.scheme != "tcp":
                raise _wrong(config, f"connector {one.name!r} is {one.scheme}://, not tcp://")
        return connectors

    def _discovered(self, config: BridgeConfig) -> DiscoveredTarget | None:
        """Give the target of a bridge that leads to a discovery group; each has one of its own."""
        from broker.bridges.core.discovered import DiscoveredTarget

        name = config.discovery_group_ref
        if name is None:
            return None
        group = self._discovery_groups.get(name)
        if group is None:
            raise _wrong(config, f"no discovery group is called {name!r}")
        environment = self._broker.environment
        try:
            endpoint = group.open_with(environment)
        except BrokerError as error:
            raise _wrong(config, f"discovery group {name!r}: {error.text}") from None
        listening = DiscoveryGroup(
            name,
            endpoint,
            refresh_timeout_ms=group.refresh_timeout_ms,
            monotonic_s=environment.clock.monotonic_s,
            own_node_id=str(self._broker.node_uuid),
        )
        return DiscoveredTarget(config, listening, group.initial_wait_timeout_ms, environment)

    def _add(self, config: BridgeConfig, bridges: Iterable[CoreBridge]) -> None:
        self.configs[config.name] = config
        self._places[config.name] = _places(self._connectors_of(config))
        for bridge in bridges:
            self.by_name[bridge.name] = bridge
            before = self._leaving.get(bridge.name)
            if not self._is_started:
                continue
            if before is None:
                bridge.start()
            else:
                self._spawn(self._start_behind(before, bridge))

    def _remove(self, name: str) -> None:
        config = self.configs.pop(name)
        del self._places[name]
        self._configured.discard(name)
        for one in _names_of(config):
            bridge = self.by_name.pop(one)
            before = self._leaving.get(one)
            task = self._leaving[one] = self._spawn(self._stop(before, bridge))
            task.add_done_callback(functools.partial(self._left, one))

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(name) is task:
            del self._leaving[name]

    async def _start_behind(self, before: asyncio.Task[None], bridge: CoreBridge) -> None:
        await asyncio.wait((before,))
        # Unless it was removed meanwhile.
        if self.by_name.get(bridge.name) is bridge:
            bridge.start()

    @staticmethod
    async def _stop(before: asyncio.Task[None] | None, bridge: CoreBridge) -> None:
        if before is not None:
            await asyncio.wait((before,))
        try:
            await bridge.stop(within_s=STOP_S)
        except JournalError as error:
            # The storage has failed, which ends the broker; messages are on the disk as they are.
            log.debug("bridge %s: %s", bridge.name, error)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task


def _names_of(config: BridgeConfig) -> list[str]:
    if config.concurrency == 1:
        return [config.name]
    return [f"{config.name}-{number}" for number in range(config.concurrency)]


def _is_of(bridge: str, name: str) -> bool:
    """Whether a bridge is one of those of a name."""
    return bridge == name or bridge.rpartition("-")[0] == name


def _is_same(before: BridgeConfig, config: BridgeConfig) -> bool:
    """Whether they say the same, in whatever line."""
    return dataclasses.replace(before, where=config.where) == config


def _places(connectors: Iterable[TransportConfig]) -> list[TransportConfig]:
    """Give where they lead to, in whatever line they are."""
    return [dataclasses.replace(one, where="") for one in connectors]


def _wrong(config: BridgeConfig, what: str) -> BrokerError:
    where = f"{config.where}: " if config.where else ""
    return BrokerError(ErrorCode.ILLEGAL_STATE, f"{where}bridge {config.name}: {what}")
