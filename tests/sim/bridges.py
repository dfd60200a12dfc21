"""Core bridges in the simulation: a chain of three brokers, and a fault at a place or at random.

    client ─▶ a: start ═bridge═▶ b: middle ═bridge═▶ c: end ─▶ drained, and looked at

    python -m tests.sim.bridges --seeds 200          faults by seed
    python -m tests.sim.bridges --case "seed 7 cut a-b 31"

A case is its text: `seed N` alone is a story of faults by that seed, `calm` has none. `cut a-b N`
cuts the connection between two brokers behind the N-th frame that went over it, whichever way, 0
before the first; `kill a N` and `power a N` end a broker at its N-th synced point, `early` before
the sync has come. `cache N` is the id-cache-size of every broker, `messages N` how many are sent.

Each message is sent once. What was confirmed at `a` has to be at `c` once; what got no answer, at
most once; and nothing anywhere else. What was confirmed has to come in the order in which it was
sent, unless a disk was full or failed: what a target refuses may be overtaken by what follows it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.config import BrokerConfig
from broker.config.cluster import BridgeConfig, ClusterConfig, StaticConnectors
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.server import protocols
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from tests.sim.faults import FAULTS, start
from tests.sim.frames import Frames
from tests.sim.loop import DeadlockError, LivelockError, SimLoop
from tests.sim.network import Network
from tests.sim.node import PORT, Node, environment_of
from tests.sim.store import MemoryStore
from tests.sim.story import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.sim.loop import Process
    from tests.sim.network import Host

CHAIN = ("a", "b", "c")
QUEUES = {"a": "start", "b": "middle", "c": "end"}
MESSAGES = 20
CACHE = 20_000
LARGE = 120_000
SECONDS = 3.0
# Nothing is wrong any more, and all has to arrive within so long.
ARRIVES_S = 300.0
LOOK_S = 0.1
OPTIONS = {"call_timeout": 15_000, "connection_ttl": 4_000, "check_period": 1_500}
RATES = {
    "kill": 3,
    "power": 3,
    "stop": 2,
    "partition": 3,
    "one_way": 3,
    "reset": 4,
    "pause": 2,
    "pause_then_kill": 1,
    "slow_disk": 2,
    "full_disk": 1,
    "fail_disk": 1,
    "clock": 1,
}


@dataclass(frozen=True)
class Case:
    """See the module's text.

    Attributes:
        fault: none, cut, kill, power, or "" for those of the seed.
        where: a broker, or two with `-` between.
        number: of the frame or the sync.
        is_early: before the sync.
    """

    seed: int = 1
    fault: str = ""
    where: str = ""
    number: int = 0
    is_early: bool = False
    messages: int = MESSAGES
    cache: int = CACHE

    def __str__(self) -> str:
        words = [f"seed {self.seed}"]
        if self.fault == "calm":
            words.append("calm")
        elif self.fault:
            early = " early" if self.is_early else ""
            words.append(f"{self.fault} {self.where} {self.number}{early}")
        if self.messages != MESSAGES:
            words.append(f"messages {self.messages}")
        if self.cache != CACHE:
            words.append(f"cache {self.cache}")
        return " ".join(words)

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read one."""
        case, words = cls(), iter(text.split())
        for word in words:
            if word in ("seed", "messages", "cache"):
                case = replace(case, **{word: int(next(words))})
            elif word == "calm":
                case = replace(case, fault=word)
            elif word == "early":
                case = replace(case, is_early=True)
            elif word in ("cut", "kill", "power"):
                case = replace(case, fault=word, where=next(words), number=int(next(words)))
            else:
                raise ValueError(f"a case has no {word!r}")
        return case


@dataclass
class Result:
    """What came of a case.

    Attributes:
        problems: none is how it should be.
        frames: that went between two brokers, by both names.
        syncs: of each broker.
        counts: of what was sent, what had no answer, and so on.
    """

    case: Case
    problems: list[str] = field(default_factory=list)
    frames: Counter[str] = field(default_factory=Counter)
    syncs: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    trace_hash: str = ""


class CountedStore(MemoryStore):
    """Tells of its syncs."""

    node = ""
    on_sync: Callable[[str, bool], None]

    def _synced(self, position: int) -> None:
        self.on_sync(self.node, True)
        super()._synced(position)
        self.on_sync(self.node, False)


class Run:
    """One case, from the start of the brokers to what came of it.

    Args:
        case: as written.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.result = Result(case)
        self.seeded = seeded = random.Random(f"bridges {case.seed}")
        self.loop = SimLoop(random.Random(seeded.getrandbits(64)))
        self.network = Network(self.loop)
        self.nodes: dict[str, Node] = {}
        for name in CHAIN:
            part = random.Random(seeded.getrandbits(64))
            node = self.nodes[name] = Node(self.network, name, part, _options(case, name))
            node.storage.store_type = self._store_type(name)
        # As faults ask for them: membership does not change here, and no store has two brokers.
        self.absent: set[str] = set()
        self.pairs: dict[str, Any] = {}
        self._client = self.loop.process("client", self.network.host("client"))
        cuts = frozenset(case.where.split("-")) if case.fault == "cut" else None
        for pair in (frozenset("ab"), frozenset("bc")):
            behind = case.number if pair == cuts else None
            Frames(self.network, pair, behind, self.result.frames)
        self._confirmed: list[str] = []
        # A disk may refuse one message and take the next, which overtakes it.
        self._refuses = False
        self._unknown: set[str] = set()

    def _store_type(self, name: str) -> type[CountedStore]:
        return type(
            "CountedStore", (CountedStore,), {"node": name, "on_sync": staticmethod(self._synced)}
        )

    def _synced(self, name: str, is_early: bool) -> None:
        case = self.case
        if not is_early:
            self.result.syncs[name] += 1
        count = self.result.syncs[name] + is_early
        is_fault = case.fault in ("kill", "power") and case.where == name
        if is_fault and count == case.number and case.is_early is is_early:
            # Once: a broker that starts again counts on.
            self.case = replace(case, fault="calm")
            self.loop.call_in(self.loop.director, self.loop.time(), self._end, name, case.fault)

    def _end(self, name: str, fault: str) -> None:
        event = Event(0, fault, (name,), 0.2)
        self._tasks.append(asyncio.ensure_future(self._fault(event)))

    # --- what faults use ----------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """A node by its name."""
        return self.nodes[name]

    def host(self, name: str) -> Host:
        """A machine by its name."""
        return self.network.names[name][0]

    def client_process(self, name: str) -> Process:
        """The client."""
        del name
        return self._client

    def problem(self, text: str) -> None:
        """Something is wrong."""
        self.result.problems.append(text)

    def told(self, text: str) -> None:
        """Something that may happen."""
        self.result.counts[text.partition(":")[0]] += 1

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run it; the loop is closed afterwards."""
        self._tasks: list[asyncio.Future[None]] = []
        try:
            self.loop.run_until_complete(self._direct())
        except (DeadlockError, LivelockError) as error:
            self.problem(f"stuck: {type(error).__name__}: {error}")
        for text, error in self.loop.problems:
            self.problem(f"exception: {text}: {error!r}")
        self.result.trace_hash = self.loop.trace_hash
        self.loop.close()
        return self.result

    async def _direct(self) -> None:
        for node in self.nodes.values():
            await node.start()
        sending = self._client.spawn(self._send())
        if not self.case.fault:
            self._tasks += [asyncio.ensure_future(self._fault(one)) for one in self._events()]
        await sending
        while self._tasks:
            await self._tasks.pop(0)
        await self._mend()
        arrived = await self._arrived()
        # Faults end before the result is looked at.
        self.case = replace(self.case, fault="calm")
        while self._tasks:
            await self._tasks.pop(0)
        self.result.syncs, self.result.frames = +self.result.syncs, +self.result.frames
        if arrived:
            await self._client.spawn(self._look())
        for node in self.nodes.values():
            if node.process is not None:
                await node.stop()

    def _events(self) -> list[Event]:
        """The faults of the seed."""
        seeded = self.seeded
        events = []
        for _ in range(seeded.randrange(1, 6)):
            fault = seeded.choices(list(RATES), list(RATES.values()))[0]
            place = seeded.randrange(3)
            other = CHAIN[place + 1] if place < 2 else CHAIN[place - 1]
            targets = (CHAIN[place],)
            if fault in ("partition", "one_way"):
                targets = (CHAIN[place], other)
            seconds = round(seeded.uniform(0.05, 6 if fault == "pause" else 1.5), 3)
            events.append(Event(round(seeded.uniform(0, SECONDS), 3), fault, targets, seconds))
        return events

    async def _fault(self, event: Event) -> None:
        await asyncio.sleep(event.at_s)
        self.loop.note(str(event).encode())
        self._refuses |= event.fault in ("full_disk", "fail_disk")
        await FAULTS[event.fault](self, event.seconds, *event.targets)  # type: ignore[arg-type]

    async def _send(self) -> None:
        """Send each message once, some at a time."""
        seeded = random.Random(self.seeded.getrandbits(64))
        environment = environment_of(self._client, seeded)
        keys = [f"{number:04d}" for number in range(self.case.messages)]
        while keys:
            try:
                async with AsyncClient(
                    f"tcp://a:{PORT}", environment=environment, **OPTIONS
                ) as client:
                    producer = (await client.session()).producer(QUEUES["a"])
                    while keys:
                        count = seeded.randrange(1, 6)
                        now, keys = keys[:count], keys[count:]
                        self._unknown.update(now)
                        answers = []
                        for key in now:
                            answer = await producer.post(_body(key, seeded), durable=True)
                            # Looked at even where the next one raises.
                            answer.add_done_callback(lambda one: one.cancelled() or one.exception())
                            answers.append(answer)
                        told = await asyncio.gather(*answers, return_exceptions=True)
                        for key, answer in zip(now, told, strict=True):
                            if not isinstance(answer, BaseException):
                                self._unknown.discard(key)
                                self._confirmed.append(key)
                        for answer in told:
                            if isinstance(answer, BaseException):
                                raise answer
                        if not self.case.fault:
                            await asyncio.sleep(seeded.uniform(0, 0.4))
            except (ClientError, OSError):
                await asyncio.sleep(0.1)
        self.result.counts["confirmed"] += len(self._confirmed)
        self.result.counts["unknown"] += len(self._unknown)

    async def _mend(self) -> None:
        self.network.heal()
        for node in self.nodes.values():
            node.storage.disk.is_full = node.storage.disk.fails = False
            node.host.clock_offset_ms = 0
            if node.process is not None:
                node.process.go_on()
                if node.broker is not None and node.broker.failure is not None:
                    node.kill()
            await start(self, node)  # type: ignore[arg-type]

    async def _arrived(self) -> bool:
        """Wait until nothing is left behind."""
        deadline = self.loop.time() + ARRIVES_S
        while self.loop.time() < deadline:
            left = {
                name: node.broker.parts.postoffice.addresses.queues[QUEUES[name]].message_count
                for name, node in self.nodes.items()
                if node.is_active and node.broker is not None
            }
            if len(left) == len(CHAIN) and not left["a"] and not left["b"]:
                return True
            await asyncio.sleep(LOOK_S)
        told = {
            name: node.broker.bridges.by_name["onward"].status.reason
            for name, node in self.nodes.items()
            if node.broker is not None and name != "c"
        }
        self.problem(f"stranded: {left} are left, {told}")
        return False

    async def _look(self) -> None:
        """Take all that has come, and see that it is what was sent."""
        environment = environment_of(self._client, random.Random(1))
        came: list[str] = []
        async with AsyncClient(f"tcp://c:{PORT}", environment=environment, **OPTIONS) as client:
            session = await client.session()
            async with await session.consumer(QUEUES["c"]) as consumer:
                while (received := await consumer.receive(2)) is not None:
                    body = await received.read()
                    key = body[:4].decode()
                    came.append(key)
                    if body != _bytes(key, len(body)):
                        self.problem(f"changed: {key}")
        found = Counter(came)
        for key in self._confirmed:
            if not found[key]:
                self.problem(f"lost: {key}")
        for key, count in found.items():
            if count > 1:
                self.problem(f"duplicated: {key} came {count} times")
            if key not in self._unknown and key not in self._confirmed:
                self.problem(f"unexpected: {key}")
        # What got no answer may have come late, over a connection that its client had given up.
        once = [key for key in dict.fromkeys(came) if key not in self._unknown]
        if once != sorted(once) and not self._refuses:
            self.problem(f"reordered: {once}")
        self.result.counts["recovered"] += sum(key in found for key in self._unknown)


def _bytes(key: str, size: int) -> bytes:
    return key.encode() + b"x" * (size - 4)


def _body(key: str, seeded: random.Random) -> bytes:
    """One in twenty is large."""
    return _bytes(key, LARGE if seeded.random() < 0.05 else seeded.choice((4, 100, 1000)))


def _options(case: Case, name: str) -> dict[str, Any]:
    settings: SettingsRepository[Any] = SettingsRepository()
    settings.add("#", AddressSettings(max_delivery_attempts=-1))
    request = QueueRequest(
        name=QUEUES[name],
        address=QUEUES[name],
        routing_type=RoutingType.ANYCAST,
        is_durable=True,
        auto_create_address=True,
    )
    options: dict[str, Any] = {
        "settings": settings,
        "queues": (request,),
        "id_cache_size": case.cache,
    }
    if name == CHAIN[-1]:
        return options
    target = CHAIN[CHAIN.index(name) + 1]
    bridge = BridgeConfig(
        name="onward",
        queue_name=QUEUES[name],
        forwarding_address=QUEUES[target],
        filter=None,
        retry_interval_ms=100,
        max_retry_interval_ms=500,
        check_period_ms=1_500,
        connection_ttl_ms=4_000,
        pending_ack_timeout_ms=1_000,
        static_connectors=StaticConnectors(connector_refs=("next",)),
        discovery_group_ref=None,
    )
    connector = TransportConfig(name="next", scheme="tcp", host=target, port=PORT)
    cluster = ClusterConfig(connectors=(connector,), bridges=(bridge,))
    return options | {
        "bridges": (bridge,),
        "configuration": BrokerConfig(cluster=cluster),
    }


# A start looks at every distribution that is installed: a quarter of a short simulation.
_protocols = functools.cache(protocols.installed_protocols)


def run_case(case: Case, patches: Iterable[Callable[[], Any]] = ()) -> Result:
    """Run a case; the log is silent meanwhile.

    Args:
        case: as written.
        patches: of faults that are planted.
    """
    log = logging.getLogger("broker")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(protocols, "installed_protocols", _protocols))
            for patch in patches:
                stack.enter_context(patch())
            return Run(case).run()
    finally:
        log.setLevel(level)


def places(case: Case) -> list[Case]:
    """Every place of a calm run that a fault may come at: frames and syncs."""
    calm = run_case(replace(case, fault="calm"))
    assert not calm.problems, calm.problems
    found = [
        replace(case, fault="cut", where=pair, number=number)
        for pair, count in sorted(calm.frames.items())
        for number in range(count + 1)
    ]
    found += [
        replace(case, fault=fault, where=name, number=number, is_early=is_early)
        for name, count in sorted(calm.syncs.items())
        for fault in ("kill", "power")
        for number in range(1, count + 1)
        for is_early in (True, False)
    ]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases from the command line; 1 where anything is wrong."""
    made = argparse.ArgumentParser(prog="python -m tests.sim.bridges")
    made.add_argument("--seeds", type=int, default=100)
    made.add_argument("--first", type=int, default=1)
    made.add_argument("--messages", type=int, default=MESSAGES)
    made.add_argument("--cache", type=int, default=CACHE)
    made.add_argument("--places", action="store_true", help="every frame and sync of each seed")
    made.add_argument("--case", help="one, by its text")
    options = made.parse_args(arguments)
    if options.case:
        cases = [Case.parse(options.case)]
    else:
        seeds = range(options.first, options.first + options.seeds)
        cases = [Case(seed, messages=options.messages, cache=options.cache) for seed in seeds]
        if options.places:
            cases = [place for one in cases for place in places(one)]
    failed = 0
    counts: Counter[str] = Counter()
    for case in cases:
        result = run_case(case)
        counts.update(result.counts)
        if result.problems:
            failed += 1
            print(f'python -m tests.sim.bridges --case "{case}"', *result.problems, sep="\n    ")
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"{len(cases)} cases: {told}; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
