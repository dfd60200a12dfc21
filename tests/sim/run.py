"""Runs a story: nodes, clients and faults on one loop, then peace, then the verdict.

nodes start ─▶ clients, faults ─▶ all is mended ─▶ queues are drained ─▶ checker
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from broker.client import AckMode
from broker.client.errors import BrokerRefused, ClientError
from broker.server import protocols
from broker.server.server import Broker
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from journal.errors import JournalError
from tests.broker.history import consumers
from tests.broker.history.world import ORDERED
from tests.sim.checker import Violation, check
from tests.sim.faults import FAULTS, start
from tests.sim.loop import DeadlockError, LivelockError, SimLoop
from tests.sim.network import Network
from tests.sim.node import Node
from tests.sim.operators import resume_all
from tests.sim.outages import Outages
from tests.sim.store import MemoryStore
from tests.sim.story import store_of
from tests.sim.workloads import AFTERMATH_S, SimWorld, work

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.loop import Process
    from tests.sim.network import Host
    from tests.sim.pair import Pair
    from tests.sim.story import Client, Event, Story

LOOK_S = 0.05
# Clients that go home may still wait for answers, for connections, for the death of a peer.
ENDS_S = 120.0
DRAIN_S = 600.0
# A lease that a clock has made longer ends, and failback is done; `Outages` has the true bound.
SETTLES_S = 60.0
TRANSACTION_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class Planted:
    """Types in the place of the real ones, with a fault in them.

    Attributes:
        broker, store, world: as Broker, MemoryStore, SimWorld.
        pair_storage: as SqlStorage, of pairs with a lease; None is that.
        pair_lock: as FolderLock, of pairs with a lock; None is that.
        patches: make context managers, for the time of a run.
    """

    broker: type[Broker] = Broker
    store: type[MemoryStore] = MemoryStore
    world: type[SimWorld] = SimWorld
    pair_storage: Any = None
    pair_lock: Any = None
    patches: tuple[Callable[[], Any], ...] = ()


@dataclass
class Result:
    """What came of a story.

    Attributes:
        violations: none is how it should be.
        trace_hash: the same for the same story.
        seconds: virtual.
        coverage: how often a style was in flight when a fault came.
        counts: of sends, deliveries and so on.
        outage_s: the longest of a pair that its bound was held against.
    """

    story: Story
    violations: tuple[Violation, ...] = ()
    trace_hash: str = ""
    seconds: float = 0.0
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    outage_s: float = 0.0

    @property
    def words(self) -> frozenset[str]:
        """The kinds of what is wrong."""
        return frozenset(one.word for one in self.violations)


class Run:
    """See the module's text."""

    def __init__(self, story: Story, planted: Planted = Planted()) -> None:
        self.story = story
        self.seeded = seeded = random.Random(f"run {story.seed}")
        self.loop = SimLoop(random.Random(seeded.getrandbits(64)))
        self.network = Network(self.loop)
        self.nodes: dict[str, Node] = {}
        self.pairs: dict[str, Pair] = {}
        self.worlds: dict[str, SimWorld] = {}
        self.outages: dict[str, Outages] = {}
        self._watches: list[asyncio.Task[None]] = []
        for pair in story.pairs:
            self._make_pair(pair, planted)
        for name in story.nodes:
            if name not in self.nodes:
                node = self.nodes[name] = Node(
                    self.network, name, _part(seeded), _options(), planted.broker
                )
                node.storage.store_type = planted.store
                self.worlds[name] = planted.world(self, node, _part(seeded))
        # Nodes that nothing may start, as long as the story goes on.
        self.absent: set[str] = set(story.later)
        self._begun: set[str] = set()
        self._beginnings: list[asyncio.Task[None]] = []
        # Set once a node has its queues: what is sent before is in none.
        self._ready = {name: asyncio.Event() for name in self.worlds}
        self.clients: dict[str, Process] = {}
        self._operators: dict[str, Process] = {}
        self.coverage: Counter[tuple[str, str]] = Counter()
        self.counts: Counter[str] = Counter()
        self._problems: list[Violation] = []
        self._active = 0
        self._calm_at = 0.0

    def _make_pair(self, names: tuple[str, ...], planted: Planted) -> None:
        from tests.sim.pair import Pair, pair_store
        from tests.sim.threads import Threads

        *nodes, kind = names
        primary = nodes[0]
        if self.loop.threads is None:
            Threads(self.loop)
        seeded = self.seeded
        store = pair_store(kind, self.network, store_of(primary), _part(seeded))
        if planted.pair_storage is not None and kind == "lease":
            store.storage_type = planted.pair_storage
        if planted.pair_lock is not None and kind == "lock":
            store.lock_type = planted.pair_lock
        pair = self.pairs[primary] = Pair(
            self.network,
            nodes,
            store,
            _part(seeded),
            _options() | _pair_options(_part(seeded)),
            planted.broker,
        )
        self.nodes |= {one.name: one for one in pair.nodes}
        self.worlds[primary] = planted.world(self, pair, _part(seeded))

    # --- what faults use ----------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """A node by its name."""
        return self.nodes[name]

    def client_process(self, name: str) -> Process:
        """A client by its name."""
        return self.clients[name]

    def host(self, name: str) -> Host:
        """The machine of a node, a client, or a store."""
        return next(one for one in self.network.hosts.values() if one.name == name)

    def store(self, name: str) -> Any:
        """The store of a pair, by its machine."""
        return next(one.store for one in self.pairs.values() if one.store.host.name == name)

    async def begin(self, name: str) -> None:
        """Start a node or a pair for the first time, and make its queues."""
        if name in self._begun:
            return
        self._begun.add(name)
        self.absent.discard(name)
        await self.pairs.get(name, self.nodes[name]).start()
        host = self.network.host(f"operator-{name}")
        operator = self._operators[name] = self.loop.process(f"operator-{name}", host)
        if name in self.pairs:
            outages = self.outages[name] = Outages(self.pairs[name], self.problem)
            self._watches.append(asyncio.ensure_future(outages.watch()))
        await operator.spawn(self._make_queues(self.worlds[name]))
        self._ready[name].set()

    def problem(self, text: str) -> None:
        """Something is wrong, whatever the history says."""
        word, _, rest = text.partition(": ")
        self._problems.append(Violation(word, rest))

    def told(self, text: str) -> None:
        """Something that may happen."""
        self.counts[text.partition(":")[0]] += 1

    @property
    def is_disturbed(self) -> bool:
        """Whether a fault, or what follows from one, may still be felt."""
        return self._active > 0 or self.loop.time() < self._calm_at

    def begin_beside(self, name: str) -> None:
        """The same, and go on: it may be removed before its queues are made."""
        self._beginnings.append(asyncio.ensure_future(self.begin(name)))

    async def _make_queues(self, world: SimWorld) -> None:
        """Until they are all there: faults may come meanwhile."""
        while True:
            try:
                await world.make_queues()
            except BrokerRefused:
                raise
            except (ClientError, OSError):
                await asyncio.sleep(LOOK_S)
            else:
                return

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run it; the loop is closed afterwards."""
        try:
            self.loop.run_until_complete(self._direct())
        except (DeadlockError, LivelockError) as error:
            self.problem(f"stuck: {type(error).__name__}: {error}")
        for text, error in self.loop.problems:
            # A store that has failed may be found out by a callback: that ends the broker, too.
            if not isinstance(error, JournalError):
                self.problem(f"exception: {text}: {error!r}")
        violations = list(self._problems)
        for world in self.worlds.values():
            verdict = check(world.history, ORDERED)
            violations += verdict.violations
            self.counts["unknown"] += verdict.unknown
            self.counts["recovered"] += verdict.recovered
            self.counts["refusals"] += world.refusals
            self.counts.update(world.counts)
        self.counts["turns"] = self.loop.turns
        if self.pairs:
            self.counts["outages"] = sum(one.count for one in self.outages.values())
            stale = sum(one.store.stale_count for one in self.pairs.values())
            self.counts["stale_writes"] = stale
        seconds, trace = self.loop.time(), self.loop.trace_hash
        self.loop.close()
        outage_s = max((one.worst_s for one in self.outages.values()), default=0.0)
        return Result(
            *(self.story, tuple(violations), trace, seconds, self.coverage, self.counts, outage_s)
        )

    async def _direct(self) -> None:
        for name in self.worlds:
            if name not in self.story.later:
                await self.begin(name)
        tasks = []
        for number, client in enumerate(self.story.clients, 1):
            name = f"client-{number}"
            process = self.clients[name] = self.loop.process(name, self.network.host(name))
            tasks.append(process.spawn(self._work(client)))
        faults = [asyncio.ensure_future(self._fault(event)) for event in self.story.events]
        await self._live()
        for one in faults:
            await one
        await self._mend()
        if tasks:
            _, waiting = await asyncio.wait(tasks, timeout=ENDS_S)
            if waiting:
                names = [f"client-{i}" for i, one in enumerate(tasks, 1) if one in waiting]
                self.problem(f"stuck: {', '.join(names)} did not end in {ENDS_S:.0f} s")
            for task in tasks:
                if task not in waiting and task.exception() is not None:
                    self.problem(f"exception: in a client: {task.exception()!r}")
        for name, world in self.worlds.items():
            emptying = self._operators[name].spawn(self._empty(world))
            await asyncio.wait((emptying,), timeout=DRAIN_S)
            if not emptying.done():
                self.problem(f"stuck: {name} is not drained in {DRAIN_S:.0f} s")
            elif emptying.exception() is not None:
                self.problem(f"stuck: {name} cannot be drained: {emptying.exception()!r}")
        for watch in self._watches:
            watch.cancel()
        for pair in self.pairs.values():
            await pair.stop()
        for node in self.nodes.values():
            if node.process is not None:
                await node.stop()

    async def _work(self, client: Client) -> None:
        await self._ready[client.node].wait()
        await work(self.worlds[client.node], client)

    async def _live(self) -> None:
        end = self.loop.time() + self.story.seconds
        while self.loop.time() < end:
            await asyncio.sleep(LOOK_S)
            if sum(one.counts["sends"] for one in self.worlds.values()) >= self.story.messages:
                # The faults of the story come all the same.
                break
        for world in self.worlds.values():
            world.is_over = True

    async def _fault(self, event: Event) -> None:
        await asyncio.sleep(event.at_s)
        # A client counts for the node that it works with.
        meant = {self._node_of(target) for target in event.targets}
        for world in self.worlds.values():
            if any(one.name in meant for one in world.node.members):
                for style, count in world.in_flight.items():
                    self.coverage[event.fault, style] += count
        self.coverage[event.fault, ""] += 1
        self.loop.note(str(event).encode())
        self._active += 1
        try:
            await FAULTS[event.fault](self, event.seconds, *event.targets)
        finally:
            self._active -= 1
            self._calm_at = self.loop.time() + AFTERMATH_S

    def _node_of(self, target: str) -> str:
        if target not in self.clients:
            return target
        return self.story.clients[int(target.rpartition("-")[2]) - 1].node

    async def _mend(self) -> None:
        """Nothing is wrong any more, and every node runs."""
        self.network.heal()
        self.absent.clear()
        for host in self.network.hosts.values():
            self.network.name(host.name, host)
            host.clock_offset_ms = 0
        for process in self.clients.values():
            process.go_on()
        for pair in self.pairs.values():
            await pair.store.start()
        for name in self.worlds:
            await self.begin(name)
        for node in self.nodes.values():
            disk = node.storage.disk
            disk.is_full = disk.fails = disk.fails_to_sync = False
            if node.process is not None:
                node.process.go_on()
                if node.broker is not None and node.broker.failure is not None:
                    node.kill()
            await start(self, node)
        for ready in self._ready.values():
            await ready.wait()
        for pair in self.pairs.values():
            if not await pair.until_settled(SETTLES_S):
                self.problem(f"stuck: not one node of {pair.name} is active in {SETTLES_S:.0f} s")
            for error in pair.faults():
                self.problem(f"exit: {error}")

    async def _empty(self, world: SimWorld) -> None:
        """Decide what is prepared, and take all that is there."""
        options = {"ack_batch_size": 0, "block_on_acknowledge": True}
        await resume_all(world)
        async with world.client() as client:
            if world.has_distributed:
                async with await client.session(AckMode.XA) as session:
                    await world.decide(session)
            async with await client.session(AckMode.CLIENT, **options) as session:
                await consumers.drain(world, session)


def run_story(story: Story, planted: Planted = Planted()) -> Result:
    """Run a story; the log is silent meanwhile, and garbage is collected at its end only."""
    logs = [logging.getLogger(name) for name in ("broker", "jdbcstore")]
    levels = [one.level for one in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(protocols, "installed_protocols", _protocols))
            for patch in planted.patches:
                stack.enter_context(patch())
            return Run(story, planted).run()
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


# A start looks at every distribution that is installed: a quarter of a short simulation.
_protocols = functools.cache(protocols.installed_protocols)


def _part(seeded: random.Random) -> random.Random:
    return random.Random(seeded.getrandbits(64))


def _options() -> dict[str, Any]:
    """Of a broker: its pages are small, and nothing ends among the dead letters."""
    settings: SettingsRepository[Any] = SettingsRepository()
    settings.add("#", AddressSettings(max_delivery_attempts=-1))
    settings.add(
        "paged",
        AddressSettings(
            max_size_messages=10,
            page_size_bytes=4096,
            address_full_policy=AddressFullPolicy.PAGE,
            max_delivery_attempts=-1,
        ),
    )
    # A branch that was ended and not prepared outlives its connection until its time is up.
    return {"settings": settings, "transaction_timeout": TRANSACTION_TIMEOUT_MS}


def _pair_options(seeded: random.Random) -> dict[str, Any]:
    """What both of a pair do when one stops, and when the primary is back."""
    return {
        "failover_on_shutdown": seeded.random() < 0.5,
        "allow_failback": seeded.random() < 0.8,
        "failback_delay": seeded.choice((0, 0, 500, 2_000)),
    }
