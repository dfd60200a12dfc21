"""One simulation of bridges, from the start of the brokers to what came of it.

    client ─▶ a: start ═bridge═▶ b: middle ═bridge═▶ c: end ─▶ drained, and looked at

See bridges.py for what is looked at, and bridge_cases.py for what a case is.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.config import BrokerConfig
from broker.config.cluster import BridgeConfig, ClusterConfig, StaticConnectors
from broker.config.transport import TransportConfig
from broker.model.routing_type import RoutingType
from broker.settings.queue_defaults import QueueRequest
from tests.sim.bridge_cases import AT_FRAMES, CHAIN, CORE, ENDS, QUEUES, Case, Result
from tests.sim.faults import FAULTS, start
from tests.sim.frames import FrameFault, Frames
from tests.sim.jms_bridge import JMSBridgeNode
from tests.sim.loop import DeadlockError, LivelockError, SimLoop
from tests.sim.network import Network
from tests.sim.node import PORT, Node, environment_of
from tests.sim.store import MemoryStore
from tests.sim.story import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tests.sim.loop import Process
    from tests.sim.network import Host

LARGE = 120_000
SECONDS = 3.0
# A process that ends at a place is started again so much later.
END_S = 0.2
# Nothing is wrong any more, and all has to arrive within so long.
ARRIVES_S = 100.0
# Brokers have noticed by then that a bridge has stopped.
ENDS_S = 30.0
LOOK_S = 0.1
OPTIONS = {"call_timeout": 15_000, "connection_ttl": 4_000, "check_period": 1_500}
RATES = {
    "kill": 3,
    "power": 3,
    "stop": 2,
    "partition": 3,
    "one_way": 3,
    "late": 3,
    "repeat": 2,
    "slow_link": 1,
    "reset": 4,
    "pause": 2,
    "pause_then_kill": 1,
    "slow_disk": 2,
    "full_disk": 1,
    "fail_disk": 1,
    "clock": 1,
}
BETWEEN_TWO = ("partition", "one_way", "late", "repeat", "slow_link")
# Most seconds of a fault.
FAULT_S = 1.5
LONG_FAULT_S = {"pause": 6.0, "late": 9.0, "repeat": 4.0}


class CountedStore(MemoryStore):
    """Tells of its syncs."""

    node = ""
    on_sync: Callable[[str, bool], None]

    def _synced(self, position: int) -> None:
        self.on_sync(self.node, True)
        if self.is_dead:
            return
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
        self.bridges: dict[str, JMSBridgeNode] = {}
        for name in CHAIN:
            part = random.Random(seeded.getrandbits(64))
            self.nodes[name] = Node(self.network, name, part, _options(case, name))
        for link in case.links:
            if link.host is not None:
                part = random.Random(seeded.getrandbits(64))
                self.bridges[link.host] = JMSBridgeNode(self.network, link, part)
        for node in self._all:
            node.storage.store_type = self._store_type(node.name)
        # As faults ask for them: membership does not change here, and no store has two brokers.
        self.absent: set[str] = set()
        self.pairs: dict[str, Any] = {}
        self._client = self.loop.process("client", self.network.host("client"))
        result = self.result
        self._frames: dict[str, Frames] = {}
        for pair in (one for link in case.links for one in link.pairs):
            fault = None
            if case.fault in AT_FRAMES and case.where == pair:
                fault = FrameFault(case.fault, case.number, case.seconds, self._at_frame)
            self._frames[pair] = Frames(self.network, pair, fault, result.frames, result.answers)
        # The fault of a place is still to come.
        self._is_armed = case.fault in ENDS
        # What still happens by itself.
        self._tasks: list[asyncio.Future[None]] = []
        self._confirmed: list[str] = []
        # A disk may refuse one message and take the next, which overtakes it.
        self._refuses = False
        self._unknown: set[str] = set()

    @property
    def _all(self) -> list[Node]:
        return [*self.nodes.values(), *self.bridges.values()]

    def _store_type(self, name: str) -> type[CountedStore]:
        return type(
            "CountedStore", (CountedStore,), {"node": name, "on_sync": staticmethod(self._synced)}
        )

    def _synced(self, name: str, is_early: bool) -> None:
        case, syncs = self.case, self.result.syncs
        if not is_early:
            syncs[name] += 1
        if not self._is_armed or name != (case.of or case.where):
            return
        if syncs[name] + is_early == case.number and case.is_early is is_early:
            self._is_armed = False
            self._end(self.node(case.where))

    def _end(self, node: Node) -> None:
        """End it at once, in the middle of what it does, and start it again later."""
        fault = "kill" if self.case.fault == "kill" else "power"
        if node.process is not None:
            node.kill() if fault == "kill" else node.power_off()
        self._later(FAULTS[fault](self, END_S, node.name))  # type: ignore[arg-type]

    def _at_frame(self, host: str) -> None:
        """Who has sent what comes twice ends; the end of the run waits for what is late."""
        if self.case.fault == "repeat":
            self._end(self.node(host))
        self._later(asyncio.sleep(self.case.seconds))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin it as the director, also where another process runs now."""
        self._tasks.append(self.loop.director.spawn(work))

    # --- what faults use ----------------------------------------------------------------------

    def node(self, name: str) -> Node:
        """A broker or a JMS bridge by its name."""
        return self.nodes.get(name) or self.bridges[name]

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
        for node in self._all:
            await node.start()
        sending = self._client.spawn(self._send())
        if not self.case.fault:
            self._tasks += [asyncio.ensure_future(self._fault(one)) for one in self._events()]
        await sending
        has_arrived = await self._mended()
        while has_arrived and self._tasks:
            # A fault came meanwhile.
            has_arrived = await self._mended()
        self._is_armed = False
        self.result.syncs, self.result.frames = +self.result.syncs, +self.result.frames
        if has_arrived:
            for bridge in self.bridges.values():
                self.result.counts["again"] += bridge.again_count
                await bridge.stop()
            await self._look_for_transactions()
            await self._client.spawn(self._look())
        for node in self._all:
            if node.process is not None:
                await node.stop()
        for bridge in self.bridges.values():
            self.result.counts["exits"] += len(bridge.exits)
            for error in () if self._refuses else bridge.exits:
                self.problem(f"gave up: {bridge.name}: {error}")

    async def _mended(self) -> bool:
        """Wait for the ends of faults, mend what is left, and see that all arrives."""
        while self._tasks:
            await self._tasks.pop(0)
        await self._mend()
        return await self._arrived()

    def _events(self) -> list[Event]:
        """The faults of the seed."""
        seeded = self.seeded
        hosts = self.case.hosts
        events = []
        for _ in range(seeded.randrange(1, 6)):
            fault = seeded.choices(list(RATES), list(RATES.values()))[0]
            place = seeded.randrange(len(hosts))
            other = hosts[place + 1] if place + 1 < len(hosts) else hosts[place - 1]
            targets: tuple[str, ...] = (hosts[place],)
            if fault in BETWEEN_TWO:
                targets = (hosts[place], other)
            if fault == "late" and seeded.random() < 0.5:
                targets = (other, hosts[place])
            seconds = round(seeded.uniform(0.05, LONG_FAULT_S.get(fault, FAULT_S)), 3)
            events.append(Event(round(seeded.uniform(0, SECONDS), 3), fault, targets, seconds))
        return events

    async def _fault(self, event: Event) -> None:
        await asyncio.sleep(event.at_s)
        self.loop.note(str(event).encode())
        self._refuses |= event.fault in ("full_disk", "fail_disk")
        if event.fault == "repeat":
            await self._repeat(event)
        else:
            await FAULTS[event.fault](self, event.seconds, *event.targets)  # type: ignore[arg-type]

    async def _repeat(self, event: Event) -> None:
        """Answers between two hosts come twice for a while."""
        frames = self._frames["-".join(sorted(event.targets))]
        frames.repeats = True
        await asyncio.sleep(event.seconds)
        frames.repeats = False

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
        for node in self._all:
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
            settled = all(one.is_settled for one in self.bridges.values())
            if len(left) == len(CHAIN) and not left["a"] and not left["b"] and settled:
                return True
            await asyncio.sleep(LOOK_S)
        told = {
            name: node.broker.bridges.by_name["onward"].status.reason
            for name, node in self.nodes.items()
            if node.broker is not None and "onward" in node.broker.bridges.by_name
        }
        told |= {name: bridge.why for name, bridge in self.bridges.items()}
        told |= {f"{name}'s transactions": self._transactions(self.nodes[name]) for name in left}
        self.problem(f"stranded: {left} are left, {told}")
        return False

    async def _look_for_transactions(self) -> None:
        """See that none is open at a broker; one whose connection has just ended has its time."""
        deadline = self.loop.time() + ENDS_S
        while any(self._transactions(node) for node in self.nodes.values()):
            if self.loop.time() >= deadline:
                told = {name: self._transactions(node) for name, node in self.nodes.items()}
                self.problem(f"in doubt: {told}")
                return
            await asyncio.sleep(LOOK_S)

    @staticmethod
    def _transactions(node: Node) -> list[str]:
        if node.broker is None:
            return []
        return [f"{one.xid} {one.state.name}" for one in node.broker.parts.transactions.all()]

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
                self._came_wrong(f"lost: {key}", is_allowed=self.case.may_lose)
        for key, count in found.items():
            if count > 1:
                text = f"duplicated: {key} came {count} times"
                self._came_wrong(text, is_allowed=self.case.may_double)
            if key not in self._unknown and key not in self._confirmed:
                self.problem(f"unexpected: {key}")
        # What got no answer may have come late, over a connection that its client had given up.
        once = [key for key in dict.fromkeys(came) if key not in self._unknown]
        if once != sorted(once) and not self._refuses and self.case.keeps_order:
            self.problem(f"reordered: {once}")
        self.result.counts["recovered"] += sum(key in found for key in self._unknown)

    def _came_wrong(self, text: str, *, is_allowed: bool) -> None:
        """Note what only some bridges may do."""
        if is_allowed:
            self.told(text)
        else:
            self.problem(text)


def _bytes(key: str, size: int) -> bytes:
    return key.encode() + b"x" * (size - 4)


def _body(key: str, seeded: random.Random) -> bytes:
    """One in twenty is large."""
    return _bytes(key, LARGE if seeded.random() < 0.05 else seeded.choice((4, 100, 1000)))


def _options(case: Case, name: str) -> dict[str, Any]:
    request = QueueRequest(
        name=QUEUES[name],
        address=QUEUES[name],
        routing_type=RoutingType.ANYCAST,
        is_durable=True,
        auto_create_address=True,
    )
    options: dict[str, Any] = {
        "queues": (request,),
        "id_cache_size": case.cache,
    }
    link = next((one for one in case.links if one.source == name), None)
    if link is None or link.kind != CORE:
        return options
    target = link.target
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
