"""A cluster of any number of brokers under faults: afterwards nothing is lost, doubled or stranded.

    senders ─▶ any node ═ bridges between all of them ═▶ consumers that wander ─▶ one that takes all
                                                      ═▶ subscribers of a topic: mesh_topic.py

    python -m tests.sim.mesh --seeds 200
    python -m tests.sim.mesh --seeds 5 --nodes 50
    python -m tests.sim.mesh --case "seed 7 nodes 50"

Nodes start at once, and some later. Some are stopped for good, and keep their disk. In some stories
a stop in good order moves the messages to another node. At the end all is mended and started, and
one consumer of each queue, at a node of the seed, takes what is left. What is looked at then:

    lost, duplicated, unexpected    messages by their keys
    stranded                        a message in any queue, those of bridges among them
    apart                           a node that does not know all others
    route                           a queue of another node that is gone, or is not known
    demand                          consumers of another node, counted wrong
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from broker.client import AckMode
from broker.client.errors import ClientError
from broker.errors import BrokerError
from broker.server import protocols
from journal.errors import JournalError
from tests.sim.bridge_run import BETWEEN_TWO, FAULT_S, LONG_FAULT_S, RATES
from tests.sim.faults import FAULTS, start
from tests.sim.loop import DeadlockError, LivelockError, SimLoop, free_buried
from tests.sim.mesh_case import (
    CONNECTION,
    FLEETING,
    MESSAGES,
    NODES,
    QUEUE,
    MeshCase,
    options_of,
    request_of,
)
from tests.sim.mesh_clients import Ledger, Sender, Wanderer, client_of, take
from tests.sim.mesh_topic import SUBSCRIBERS, Topic
from tests.sim.network import Network
from tests.sim.node import Node
from tests.sim.story import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.cluster.cluster_connection import ClusterConnection
    from tests.sim.loop import Process
    from tests.sim.network import Host

SENDERS = 3
WANDERERS = 4
SECONDS = 3.0
QUIET_S = 5.0
# Nothing is wrong any more: all know each other, and all is taken, within so long.
JOINS_S = 120.0
DRAINS_S = 300.0
AGREES_S = 60.0
LOOK_S = 0.2
# Of this module, beside FAULTS.
OWN_RATES = {"alone": 2, "delete": 6}
MESH_RATES = {name: rate for name, rate in RATES.items() if name != "repeat"} | OWN_RATES
_protocols = functools.cache(protocols.installed_protocols)


@dataclass
class Result:
    """What came of a case; no problems is how it should be."""

    case: MeshCase
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    trace_hash: str = ""


class Mesh:
    """One story; see the module's text."""

    def __init__(self, case: MeshCase) -> None:
        self.case = case
        self.result = Result(case)
        self.seeded = seeded = random.Random(f"mesh {case.seed} {case.nodes}")
        self.loop = SimLoop(random.Random(seeded.getrandbits(64)))
        self.network = Network(self.loop)
        self.ledger = Ledger()
        names = list(case.names)
        later = seeded.sample(names, seeded.randrange(0, 1 + case.nodes // 4))
        self._home = seeded.choice([one for one in names if one not in later])
        # To a node that has no room it would wait for a consumer, and this for it.
        scales_down = seeded.random() < 0.3 and not case.is_full
        self.nodes: dict[str, Node] = {}
        for name in names:
            part = random.Random(seeded.getrandbits(64))
            options = options_of(
                case, name, part, is_home=name == self._home, scales_down=scales_down
            )
            self.nodes[name] = Node(self.network, name, part, options)
        # As faults ask for them: no store has two brokers.
        self.absent: set[str] = set() if case.is_calm else set(later)
        self.pairs: dict[str, Any] = {}
        self._client = self.loop.process("client", self.network.host("client"))
        self.topic = Topic(self.nodes, self._client, str(case.seed))
        self._is_over = False

    # --- what faults use ----------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """A broker by its name."""
        return self.nodes[name]

    def host(self, name: str) -> Host:
        """A machine by its name."""
        return self.network.names[name][0]

    def client_process(self, name: str) -> Process:
        """The clients."""
        del name
        return self._client

    def problem(self, text: str) -> None:
        """Something is wrong."""
        self.result.problems.append(text)

    def told(self, text: str) -> None:
        """Something that may happen."""
        self.result.counts[text.partition(":")[0].partition(" ")[0]] += 1

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run it; the loop is closed afterwards."""
        try:
            self.loop.run_until_complete(self._direct())
        except (DeadlockError, LivelockError) as error:
            self.problem(f"stuck: {type(error).__name__}: {error}")
        except (ClientError, OSError) as error:
            self.problem(f"refused: the last consumer: {type(error).__name__}: {error}")
        for text, error in self.loop.problems:
            self.problem(f"exception: {text}: {error!r}")
        self.result.trace_hash = self.loop.trace_hash
        self.result.counts["confirmed"] += len(self.ledger.confirmed)
        self.result.counts["unknown"] += len(self.ledger.unknown)
        self.loop.close()
        return self.result

    async def _direct(self) -> None:
        events = [] if self.case.is_calm else self._events()
        await self._start_all()
        faults = [asyncio.ensure_future(self._fault(one)) for one in events]
        await self._client.spawn(self._use())
        for one in faults:
            await one
        await self._mend()
        if await self._joined():
            self.result.counts["acknowledged on the way"] += self.ledger.taken.total()
            await self._client.spawn(self._look())
        self.result.counts["redistributed"] += sum(
            one.broker.parts.counters.redistributed
            for one in self.nodes.values()
            if one.broker is not None
        )
        await asyncio.gather(
            *(one.stop() for one in self.nodes.values() if one.process is not None)
        )

    async def _start_all(self) -> None:
        """Start those that do not run, all at once."""
        await asyncio.gather(
            *(start(self, one) for one in self.nodes.values())  # type: ignore[arg-type]
        )

    async def _use(self) -> None:
        """Send all, while consumers wander."""
        case, names, seed = self.case, self.case.names, str(self.case.seed)
        share = max(1, case.nodes // 10)
        wandering = [
            Wanderer(str(number), self._client, names, self.ledger, seed).wander(
                lambda: self._is_over
            )
            for number in range(WANDERERS * share)
        ]
        senders = [Sender("s0", self._client, (self._home,), self._home, self.ledger, seed)]
        senders += [
            Sender(f"s{number}", self._client, case.roomy, self._home, self.ledger, seed)
            for number in range(1, SENDERS * min(share, 3))
        ]
        wandering += [
            self.topic.subscribe(number, lambda: self._is_over) for number in range(SUBSCRIBERS)
        ]
        going = [asyncio.ensure_future(one) for one in wandering]
        await asyncio.gather(
            *(one.send(case.messages) for one in senders), self.topic.send(case.messages)
        )
        self._is_over = True
        await asyncio.gather(*going)

    # --- faults -------------------------------------------------------------------------------

    def _events(self) -> list[Event]:
        """The faults of the seed."""
        seeded, names = self.seeded, self.case.names
        events = [
            Event(round(seeded.uniform(0, SECONDS), 3), "join", (name,), 0.0)
            for name in sorted(self.absent)
            if seeded.random() < 0.7
        ]
        stays = [one for one in names if one != self._home and one not in self.absent]
        events += [
            Event(round(seeded.uniform(0, SECONDS), 3), "remove", (name,), 0.0)
            for name in seeded.sample(stays, seeded.randrange(0, 1 + len(stays) // 4))
        ]
        for _ in range(seeded.randrange(1, 6 + self.case.nodes // 4)):
            fault = seeded.choices(list(MESH_RATES), list(MESH_RATES.values()))[0]
            targets = tuple(seeded.sample(names, 2 if fault in BETWEEN_TWO else 1))
            seconds = round(seeded.uniform(0.05, LONG_FAULT_S.get(fault, FAULT_S)), 3)
            events.append(Event(round(seeded.uniform(0, SECONDS), 3), fault, targets, seconds))
        return events

    async def _fault(self, event: Event) -> None:
        await asyncio.sleep(event.at_s)
        self.loop.note(str(event).encode())
        self.result.counts[f"fault {event.fault}"] += 1
        own = {"join": self._join, "alone": self._alone, "delete": self._delete}
        if event.fault in own:
            await own[event.fault](event.seconds, *event.targets)
        else:
            await FAULTS[event.fault](self, event.seconds, *event.targets)  # type: ignore[arg-type]

    async def _join(self, seconds: float, name: str) -> None:
        """A node comes that was not there."""
        del seconds
        self.absent.discard(name)
        await start(self, self.nodes[name])  # type: ignore[arg-type]

    async def _alone(self, seconds: float, name: str) -> None:
        """A node reaches no other one, and sometimes is reached all the same."""
        both = self.seeded.random() < 0.5
        here = self.host(name)
        others = [self.host(one) for one in self.case.names if one != name]
        for other in others:
            self.network.cut(here, other, both=both)
        await asyncio.sleep(seconds)
        for other in others:
            self.network.mend(here, other)

    async def _delete(self, seconds: float, name: str) -> None:
        """Make FLEETING, and delete it while nothing is in it; perhaps make it again."""
        self._make(name)
        deadline = self.loop.time() + seconds
        while self.loop.time() < deadline and not self._delete_empty(name):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S / 4)
        await asyncio.sleep(self.seeded.uniform(0, seconds))
        if self.seeded.random() < 0.5:
            self._make(name)

    def _make(self, name: str) -> None:
        node = self.nodes[name]
        if node.process is None or node.broker is None or not node.is_active:
            return
        with contextlib.suppress(BrokerError, JournalError):
            node.process.call(node.broker.parts.administration.create_queue, request_of(FLEETING))

    def _delete_empty(self, name: str) -> bool:
        node = self.nodes[name]
        if node.process is None or node.broker is None or not node.is_active:
            return False
        addresses = node.broker.parts.postoffice.addresses
        queue = addresses.queues.get(FLEETING)
        if name == self._home or queue is None or queue.message_count:
            return False
        try:
            node.process.call(addresses.delete_queue, FLEETING)
        except (BrokerError, JournalError):
            return False
        self.result.counts["deleted"] += 1
        return True

    async def _mend(self) -> None:
        self.network.heal()
        self.absent.clear()
        for node in self.nodes.values():
            node.storage.disk.is_full = node.storage.disk.fails = False
            node.host.clock_offset_ms = 0
            if node.process is not None:
                node.process.go_on()
                if node.broker is not None and node.broker.failure is not None:
                    node.kill()
        await self._start_all()

    # --- what came of it ----------------------------------------------------------------------

    def _connections(self) -> Iterator[tuple[str, ClusterConnection]]:
        for name, node in self.nodes.items():
            if node.broker is not None and node.is_active:
                yield name, node.broker.cluster.connections[CONNECTION]

    async def _until_none(self, within_s: float, look: Callable[[], list[str]]) -> bool:
        """Wait until a look finds nothing; what it finds at the end are problems."""
        deadline = self.loop.time() + within_s
        while found := look():
            if self.loop.time() >= deadline:
                self.result.problems += found
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def _joined(self) -> bool:
        return await self._until_none(JOINS_S, self._apart)

    def _apart(self) -> list[str]:
        others = self.case.nodes - 1
        told = {
            name: sum(one.bindings.is_told for one in connection.peers.values())
            for name, connection in self._connections()
        }
        return [
            f"apart: {name} knows {told.get(name, 0)} of {others} others"
            for name in self.nodes
            if told.get(name) != others
        ]

    def _left(self) -> dict[tuple[str, str], int]:
        """What waits anywhere, by node and queue."""
        return {
            (name, queue.name): queue.message_count
            for name, node in self.nodes.items()
            if node.broker is not None and node.is_active
            for queue in node.broker.parts.postoffice.addresses.queues.values()
            if queue.message_count and not queue.name.startswith(("notif.", "answers."))
        }

    async def _look(self) -> None:
        place = self.seeded.choice(self.case.names)
        self._make(place)
        async with client_of(place, self._client, random.Random(1)) as client:
            session = await client.session(AckMode.INDIVIDUAL)
            async with (
                await session.consumer(QUEUE) as consumer,
                await session.consumer(FLEETING) as fleeting,
            ):
                await self._until_none(AGREES_S, self._misjudged)
                deadline = self.loop.time() + DRAINS_S
                while self.loop.time() < deadline:
                    await asyncio.gather(
                        take(consumer, self.ledger, QUIET_S),
                        take(fleeting, self.ledger, QUIET_S),
                        self.topic.take(QUIET_S),
                    )
                    if not self._left():
                        break
        # It has gone: no node may count it any more.
        await self._until_none(AGREES_S, self._misjudged)
        for at, count in self._left().items():
            self.problem(f"stranded: {count} in {at}")
        for one in (*self.ledger.problems(), *self.topic.problems()):
            self.problem(one)

    def _misjudged(self) -> list[str]:
        """Routes and consumers of other nodes that a node has wrong."""
        found = []
        for name, connection in self._connections():
            for node in self.nodes.values():
                if node.name != name:
                    found += _misjudged_of(name, connection, node)
        return found


def _misjudged_of(name: str, connection: ClusterConnection, node: Node) -> Iterator[str]:
    assert node.broker is not None, "all are started"
    bindings = connection.peers[node.broker.node_id].bindings.by_name
    queues = node.broker.parts.postoffice.addresses.queues
    for one in (QUEUE, FLEETING):
        queue, binding = queues.get(one), bindings.get(one + node.broker.node_id)
        where = f"{one} of {node.name}"
        if queue is None or binding is None:
            if queue is not binding:
                what = (
                    "does not know" if binding is None else "has a route to a queue that is gone:"
                )
                yield f"route: {name} {what} {where}"
        elif binding.remote_id != queue.queue_id:
            yield f"route: {name} has one to a queue that was made again since: {where}"
        elif binding.consumer_count != queue.consumers.count:
            yield (
                f"demand: {name} counts {binding.consumer_count} consumers at {where}, there are "
                f"{queue.consumers.count}"
            )


def run_case(case: MeshCase, patches: Iterable[Callable[[], Any]] = ()) -> Result:
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
            return Mesh(case).run()
    finally:
        log.setLevel(level)


def wrong(results: Iterable[Result]) -> list[str]:
    """What is wrong, with the command that finds it again."""
    return [f"{one.case.command}: {problem}" for one in results for problem in one.problems]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases from the command line; 1 where anything is wrong."""
    made = argparse.ArgumentParser(prog="python -m tests.sim.mesh")
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--first", type=int, default=1)
    made.add_argument("--nodes", type=int, default=NODES)
    made.add_argument("--messages", type=int, default=MESSAGES, help="of each sender")
    made.add_argument("--full", action="store_true", help="some nodes have little room")
    made.add_argument("--case", help="one, by its text")
    made.add_argument("--hashes", action="store_true", help="a line a seed, with its trace's hash")
    options = made.parse_args(arguments)
    if options.case:
        cases = [MeshCase.parse(options.case)]
    else:
        seeds = range(options.first, options.first + options.seeds)
        cases = [
            MeshCase(one, options.nodes, options.messages, is_full=options.full) for one in seeds
        ]
    failed = 0
    counts: Counter[str] = Counter()
    began = time.process_time()
    for case in cases:
        result = run_case(case)
        counts.update(result.counts)
        if options.hashes:
            print(case, result.trace_hash, flush=True)
        if result.problems:
            failed += 1
            print(case.command, *result.problems, sep="\n    ", flush=True)
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    rate = len(cases) / (time.process_time() - began)
    free_buried()
    print(f"{len(cases)} cases, {rate:.2f} a second of processor: {told}; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
