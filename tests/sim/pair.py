"""A pair of brokers on one store: a primary, and a backup that waits until the primary fails.

There may be more backups. They wait one behind the other.

    pair = Pair(network, ("a", "b"), SqlPair(…), seeded, options)
    await pair.start()   pair.primary.kill()   await pair.until_settled(10)   …

Each node is what `broker run` is under a service manager: a broker whose store, or whose lease on
it, has failed stops, its process ends, and another one is started a second later. A broker that
came back waits for the active one; clients connect to the one that answers.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from broker.server.server import Broker
from journal.errors import JournalClosed, JournalIOError
from tests.sim.node import PORT, SeededIds
from tests.sim.served import ServedNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.sim.loop import Process
    from tests.sim.network import Network

LOOK_S = 0.05
# One that has lost its lock or lease, and reaches its store, knows it by then.
SETTLED_S = 3.0


def pair_store(kind: str, network: Network, name: str, seeded: random.Random) -> Any:
    """Make the store of a pair, on a machine of its own.

    Args:
        kind: lease or lock.
        network: it is part of.
        name: of the machine.
        seeded: decides what it does.
    """
    if kind == "lease":
        from tests.sim.sql_pair import SqlPair

        return SqlPair(network, name, seeded)
    from tests.sim.folder_pair import FolderPair

    return FolderPair(network, name, seeded)


class PairNode(ServedNode):
    """One of them; a start does not wait until it is active."""

    async def _run(self, process: Process) -> Exception:
        """What `broker run` does; the end of the process is the system's."""
        await self._start(process)
        assert self.broker is not None, "it was started"
        error = await self.broker.failed()
        await self.broker.stop()
        return error

    def _end(self, *, is_power: bool = False) -> None:
        super()._end(is_power=is_power)
        self.storage.ended()


class Pair:
    """All of them, as their clients see them.

    Args:
        network: they are part of.
        names: of the primary and its backups.
        store: that they share.
        seeded: decides what they do.
        options: of all of them.
        broker_type: a subclass, with a fault in it.

    Attributes:
        nodes: the primary and its backups.
        name: of them all, for the run.
        fails_back: a primary that comes back gets its place.
    """

    def __init__(
        self,
        network: Network,
        names: Sequence[str],
        store: Any,
        seeded: random.Random,
        options: dict[str, Any] | None = None,
        broker_type: type[Broker] = Broker,
    ) -> None:
        self.network = network
        self.store = store
        self.name = names[0]
        self.fails_back = (options or {}).get("allow_failback", True)
        self.nodes = tuple(
            PairNode(
                network,
                name,
                random.Random(seeded.getrandbits(64)),
                (options or {}) | {"is_backup": number > 0, "shares_store": True},
                broker_type,
                storage=lambda host, seeded: store.storage(host, SeededIds(seeded)),
            )
            for number, name in enumerate(names)
        )

    @property
    def primary(self) -> PairNode:
        return self.nodes[0]

    @property
    def backup(self) -> PairNode:
        """The first one."""
        return self.nodes[1]

    @property
    def members(self) -> tuple[PairNode, ...]:
        """All."""
        return self.nodes

    @property
    def uri(self) -> str:
        """All, for clients."""
        return f"({','.join(f'tcp://{one.name}:{PORT}' for one in self.nodes)})"

    def run_of(self, host: str) -> int:
        """Which activation of the pair the node on a host is, or was."""
        return next(one.storage.activation for one in self.nodes if one.name == host)

    async def start(self) -> None:
        """Start store and primary, and the backups behind it."""
        await self.store.start()
        await self.primary.start()
        while not self.primary.is_active:  # noqa: ASYNC110 -- a broker has no event of it.
            await asyncio.sleep(LOOK_S)
        for one in self.nodes[1:]:
            await one.start()

    @property
    def is_settled(self) -> bool:
        """Whether one node is active, and none will ask for its place."""
        active = [one for one in self.nodes if one.is_active]
        return active == [self.primary] or (len(active) == 1 and not self.fails_back)

    async def until_settled(self, timeout_s: float) -> bool:
        """Wait until it stays with one active node; False if not by then."""
        clock = self.network.loop.time
        end, since_s = clock() + timeout_s, clock()
        while clock() - since_s < SETTLED_S:
            if clock() >= end:
                return False
            await asyncio.sleep(LOOK_S)
            if not self.is_settled:
                since_s = clock()
        return True

    def faults(self) -> list[str]:
        """Why processes ended that a lost store or lease does not explain."""
        return [
            f"{node.name}: {type(error).__name__}: {error}"
            for node in self.nodes
            for error in node.exits
            if not isinstance(error, JournalIOError | JournalClosed)
        ]

    async def stop(self) -> None:
        """Stop all, those that are not active first."""
        for node in sorted(self.nodes, key=lambda one: one.is_active):
            await node.stop()
