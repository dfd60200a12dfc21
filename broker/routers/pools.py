"""The targets of a router: where they come from, and whether enough of them are ready.

    cluster connection ─▶ members of its topology ┐
    static connectors  ─▶ as configured           ├─▶ targets ─▶ ready ones ─▶ the quorum is there
    discovery group    ─▶ brokers that it hears   ┘

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeAlias

from broker.routers.targets import FoundTarget, LocalTarget, RemoteTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker.config.connection_routers import PoolConfig
    from broker.discovery.entries import DiscoveryEntry
    from broker.discovery.group import DiscoveryGroup
    from broker.discovery.topology import Departure, Member
    from broker.environment import Environment
    from broker.protocols.peer import ToldTopology
    from broker.routers.targets import TargetOptions

__all__ = ["ClusterSource", "DiscoverySource", "Pool", "Source", "StaticSource", "Target"]

Target: TypeAlias = LocalTarget | RemoteTarget


class Source(Protocol):
    """Where the targets of a pool come from."""

    async def start(self, pool: Pool) -> None:
        """Tell the pool of them, now and whenever they change."""

    def stop(self) -> None:
        """Tell it no more. Idempotent."""


class Pool:
    """See the module's text.

    Args:
        config: of it.
        source: where its targets come from.
        how: they are checked.
        environment: clock, ids, chance and network.
        local: this broker, where it is one of them.
    """

    def __init__(
        self,
        config: PoolConfig,
        source: Source,
        how: TargetOptions,
        environment: Environment,
        local: LocalTarget | None = None,
    ) -> None:
        self.config = config
        self._source = source
        self._how = how
        self._environment = environment
        self._local = local
        # By what their source calls them.
        self._remote: dict[str, RemoteTarget] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._waiting: dict[Callable[[], object], asyncio.TimerHandle] = {}

    async def start(self) -> None:
        """Look for the targets, and check them."""
        await self._source.start(self)

    async def stop(self) -> None:
        """Check nothing any more; no target is left. Idempotent."""
        self._source.stop()
        self.update({})
        while self._leaving:
            await asyncio.wait(tuple(self._leaving))
        for release in tuple(self._waiting):
            self._release(release)

    # --- its targets --------------------------------------------------------------------------

    def update(self, found: Mapping[str, FoundTarget]) -> None:
        """Take what the source has now, by names of its own."""
        loop = asyncio.get_running_loop()
        for name, target in tuple(self._remote.items()):
            if found.get(name) != target.found:
                del self._remote[name]
                task = loop.create_task(target.stop())
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
        for name, one in found.items():
            if name not in self._remote:
                target = RemoteTarget(one, self._how, self._environment, self._changed)
                self._remote[name] = target
                target.start()

    @property
    def targets(self) -> tuple[Target, ...]:
        """All of them, ready or not."""
        local = () if self._local is None else (self._local,)
        return (*local, *self._remote.values())

    @property
    def ready(self) -> list[Target]:
        """Those that are ready; of several connectors to one broker the first one counts."""
        found: dict[str | None, Target] = {}
        for one in self.targets:
            if one.is_ready:
                found.setdefault(one.node_id, one)
        return list(found.values())

    @property
    def has_quorum(self) -> bool:
        """Whether enough are ready for any of them to be used."""
        return len(self.ready) >= self.config.quorum_size

    def ready_target(self, node_id: str) -> Target | None:
        """Give the ready target of a node id."""
        return next((one for one in self.ready if one.node_id == node_id), None)

    # --- who waits for the quorum -------------------------------------------------------------

    @property
    def waiting_count(self) -> int:
        """How many clients are held."""
        return len(self._waiting)

    def wait(self, release: Callable[[], object]) -> None:
        """Call `release` once the quorum is there, or quorum-timeout is over: not before."""
        timeout_s = self.config.quorum_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        self._waiting[release] = loop.call_later(timeout_s, self._release, release)

    def cancel(self, release: Callable[[], object]) -> None:
        """Do not call it any more. Idempotent."""
        timer = self._waiting.pop(release, None)
        if timer is not None:
            timer.cancel()

    def _changed(self) -> None:
        if self.has_quorum:
            for release in tuple(self._waiting):
                self._release(release)

    def _release(self, release: Callable[[], object]) -> None:
        self.cancel(release)
        release()


class StaticSource:
    """Connectors as they are configured.

    Args:
        found: in their order.
    """

    def __init__(self, found: tuple[FoundTarget, ...]) -> None:
        self._found = found

    async def start(self, pool: Pool) -> None:
        """Tell the pool of them."""
        pool.update({str(at): one for at, one in enumerate(self._found)})

    def stop(self) -> None:
        """Nothing changes."""


class ClusterSource:
    """The other members of a cluster connection.

    Args:
        topology: of it.
        own_node_id: which is this broker.
    """

    def __init__(self, topology: ToldTopology, own_node_id: str) -> None:
        self._topology = topology
        self._own_node_id = own_node_id
        self._pool: Pool | None = None

    async def start(self, pool: Pool) -> None:
        """Tell the pool of the members there are, and of changes."""
        self._pool = pool
        self._topology.listen(self._changed)
        self._tell(pool)

    def _changed(self, change: Member | Departure) -> None:
        del change
        if self._pool is not None:
            self._tell(self._pool)

    def _tell(self, pool: Pool) -> None:
        pool.update(
            {
                one.node_id: FoundTarget(one.node_id, one.primary, one.primary)
                for one in self._topology.members
                if one.primary is not None and one.node_id != self._own_node_id
            }
        )

    def stop(self) -> None:
        """Hear of no change any more."""
        self._pool = None
        self._topology.unlisten(self._changed)


class DiscoverySource:
    """The brokers that a discovery group hears.

    Args:
        open_group: starts the group; gives None where it cannot be opened, which is logged.
    """

    def __init__(self, open_group: Callable[[], Awaitable[DiscoveryGroup | None]]) -> None:
        self._open_group = open_group
        self._pool: Pool | None = None
        self._group: DiscoveryGroup | None = None

    async def start(self, pool: Pool) -> None:
        """Tell the pool of the brokers that are heard."""
        self._pool = pool
        self._group = await self._open_group()
        if self._group is not None:
            self._group.listen(self._heard)

    def _heard(self, entries: tuple[DiscoveryEntry, ...]) -> None:
        if self._pool is not None:
            # Behind its own connector an entry has that of its backup.
            self._pool.update(
                {
                    one.node_id: FoundTarget(one.node_id, one.connectors[0], one.connectors[0])
                    for one in entries
                }
            )

    def stop(self) -> None:
        """Hear of no broker any more."""
        self._pool = None
        if self._group is not None:
            self._group.unlisten(self._heard)
