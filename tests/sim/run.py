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
from tests.sim.store import MemoryStore
from tests.sim.workloads import AFTERMATH_S, SimWorld, work

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.loop import Process
    from tests.sim.network import Host
    from tests.sim.story import Event, Story

LOOK_S = 0.05
# Clients that go home may still wait for answers, for connections, for the death of a peer.
ENDS_S = 120.0
DRAIN_S = 600.0
TRANSACTION_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class Planted:
    """Types in the place of the real ones, with a fault in them.

    Attributes:
        broker, store, world: as Broker, MemoryStore, SimWorld.
        patches: make context managers, for the time of a run.
    """

    broker: type[Broker] = Broker
    store: type[MemoryStore] = MemoryStore
    world: type[SimWorld] = SimWorld
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
    """

    story: Story
    violations: tuple[Violation, ...] = ()
    trace_hash: str = ""
    seconds: float = 0.0
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

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
        self.worlds: dict[str, SimWorld] = {}
        for name in story.nodes:
            node = self.nodes[name] = Node(
                self.network, name, _part(seeded), _options(), planted.broker
            )
            node.storage.store_type = planted.store
            self.worlds[name] = planted.world(self, node, _part(seeded))
        self.clients: dict[str, Process] = {}
        self.coverage: Counter[tuple[str, str]] = Counter()
        self.counts: Counter[str] = Counter()
        self._problems: list[Violation] = []
        self._active = 0
        self._calm_at = 0.0

    # --- what faults use ----------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """A node by its name."""
        return self.nodes[name]

    def client_process(self, name: str) -> Process:
        """A client by its name."""
        return self.clients[name]

    def host(self, name: str) -> Host:
        """The machine of a node or a client."""
        return self.network.names[name][0]

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
        seconds, trace = self.loop.time(), self.loop.trace_hash
        self.loop.close()
        return Result(self.story, tuple(violations), trace, seconds, self.coverage, self.counts)

    async def _direct(self) -> None:
        operators = {
            name: self.loop.process(f"operator-{name}", self.network.host(f"operator-{name}"))
            for name in self.nodes
        }
        for name, node in self.nodes.items():
            await node.start()
            await operators[name].spawn(self.worlds[name].make_queues())
        tasks = []
        for number, client in enumerate(self.story.clients, 1):
            name = f"client-{number}"
            process = self.clients[name] = self.loop.process(name, self.network.host(name))
            tasks.append(process.spawn(work(self.worlds[client.node], client)))
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
            emptying = operators[name].spawn(self._empty(world))
            await asyncio.wait((emptying,), timeout=DRAIN_S)
            if not emptying.done():
                self.problem(f"stuck: {name} is not drained in {DRAIN_S:.0f} s")
            elif emptying.exception() is not None:
                self.problem(f"stuck: {name} cannot be drained: {emptying.exception()!r}")
        for node in self.nodes.values():
            if node.process is not None:
                await node.stop()

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
        for name, world in self.worlds.items():
            if name in event.targets or any(one in self.clients for one in event.targets):
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

    async def _mend(self) -> None:
        """Nothing is wrong any more, and every node runs."""
        self.network.heal()
        for process in self.clients.values():
            process.go_on()
        for node in self.nodes.values():
            node.storage.disk.is_full = node.storage.disk.fails = False
            node.host.clock_offset_ms = 0
            if node.process is not None:
                node.process.go_on()
                if node.broker is not None and node.broker.failure is not None:
                    node.kill()
            await start(self, node)

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
    log = logging.getLogger("broker")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(protocols, "installed_protocols", _protocols))
            for patch in planted.patches:
                stack.enter_context(patch())
            return Run(story, planted).run()
    finally:
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
