"""Brokers of a cluster, each on a machine of its own, that are killed, paused and cut off.

    with Machines(3) as machines:
        service = MeshService(Nodes(folder, machines), MeshWorld(random.Random(4)))
        asyncio.run(service.run(600))

Clients connect to any node, as behind a balancer, and go on with another one. Faults come one after
another on two lanes, so that two at a time may last; then all is healed, and the queues are drained
at all nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from tests.broker.history import consumers, producers
from tests.broker.history.checker import problems
from tests.broker.history.consumers import take
from tests.broker.history.world import World
from tests.interop.our_broker import OurBroker

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.broker.history.record import Take, Unit
    from tests.machines import Cut, Machine, Machines

PORT = 61616
ADDRESSES = {
    "plain": ("plain",),
    "small": ("small",),
    "wide": ("wide.a", "wide.b"),
    "out": ("out",),
}
CLUSTER = ("--cluster-user", "cluster", "--cluster-password", "cluster's secret")
# A peer that says nothing is given up after so long; the default is a minute.
CHANGES = (
    ("<max-delivery-attempts>10<", "<max-delivery-attempts>-1<"),
    ("<redistribution-delay>5000<", "<redistribution-delay>500<"),
    (
        "<connector-ref>artemis</connector-ref>\n",
        (
            "<connector-ref>artemis</connector-ref>\n"
            "<check-period>1000</check-period><connection-ttl>4000</connection-ttl>"
            "<retry-interval>200</retry-interval>"
            "<max-retry-interval>1000</max-retry-interval><call-timeout>5000</call-timeout>"
        ),
    ),
    (
        "<address-settings>",
        """<journal-retention-directory period="7" unit="DAYS"
      >data/retention</journal-retention-directory>
    <address-settings>
      <address-setting match="small">
        <max-size-messages>40</max-size-messages>
        <page-size-bytes>20K</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
        <max-delivery-attempts>-1</max-delivery-attempts>
        <redistribution-delay>500</redistribution-delay>
      </address-setting>""",
    ),
)
CLIENT = {"call_timeout": 20_000, "connection_ttl": 5_000, "check_period": 1_500}
STYLES = (
    *(producers.one_at_a_time, producers.many_in_flight, producers.in_transactions),
    *(consumers.acknowledging, consumers.forwarding),
)
# Clients of each address and queue.
SENDERS, TAKERS = 2, 3
FAULT_S = (0.2, 10.0)
CALM_S = (0.5, 4.0)
# Once all is healed, and consumers are at each node in turn.
DRAIN_S = 300.0
# Queues of what waits for another node.
FORWARDING = "$.artemis.internal.sf."


class MeshWorld(World):
    """Clients of all nodes. A message keeps its key on its way; numbers of brokers do not last.

    Args:
        seeded: where every choice comes from.

    Attributes:
        uris: of the nodes.
    """

    def __init__(self, seeded: random.Random) -> None:
        super().__init__(seeded, has_large=True, addresses=ADDRESSES)
        self.uris: list[str] = []
        self.refused_for: Counter[str] = Counter()
        self._takes = itertools.count()
        self._copies: dict[str, int] = {}
        # Nodes stop, and lose their connections, all the time.
        self.may_refuse = True

    def begin_anew(self) -> None:
        super().begin_anew()
        # Each node remembers duplicate ids of its own: none is sent again to another one.
        self.again = deque(maxlen=0)  # type: ignore[assignment] # of the same methods.

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        uri = self.seeded.choice(self.uris)
        made = AsyncClient(uri, user=self.user, password=self.password, **CLIENT)
        try:
            yield made
        finally:
            await made.close()

    async def wait_for_room(self) -> None:
        """Think, too: the history of a quarter of an hour has to fit."""
        if self.chance(0.2):
            await asyncio.sleep(self.seeded.uniform(0, 0.1))
        await super().wait_for_room()

    def refused(self, refusal: Exception) -> None:
        self.refused_for[f"{type(refusal).__name__}: {refusal}"[:100]] += 1

    def took(self, unit: Unit, queue: str, received: object, body: bytes) -> Take:
        self.counts["deliveries"] += 1
        key = body.partition(b"|")[0].decode(errors="replace")
        # A run of its own: each node counts deliveries for itself.
        run, copy = next(self._takes), self._copies.setdefault(key, len(self._copies))
        return self.history.take(unit, queue, copy, 1, run, body)


async def selecting(world: World, queue: str) -> None:
    """Take a part of the messages at one node, and leave for another."""
    sign = world.seeded.choice(("<", ">"))
    options = {"ack_batch_size": 0, "block_on_acknowledge": True}
    async with (
        world.client() as client,
        await client.session(AckMode.INDIVIDUAL, **options) as session,
        await session.consumer(queue, selector=f"AMQSize {sign} 1500") as consumer,
    ):
        for _ in range(world.seeded.randrange(1, 40)):
            unit = world.history.unit()
            received = await take(world, consumer, queue, unit)
            if world.is_over:
                return
            if received is not None:
                await world.count(unit, received.acknowledge)


class Nodes:
    """The brokers.

    Args:
        folder: of all of them.
        machines: where they run, one each.
    """

    def __init__(self, folder: Path, machines: Machines) -> None:
        self.machines = machines
        self.all = [self._made(folder, one) for one in machines]

    def _made(self, folder: Path, machine: Machine) -> OurBroker:
        place = folder / f"node{machine.number}"
        place.mkdir()
        others = [one for one in self.machines if one is not machine]
        uris = ",".join(f"tcp://{one.address}:{PORT}" for one in others)
        # Behind the options of its own, and so in their place.
        options = ("--name", place.name, "--port", PORT, "--static-cluster", uris, *CLUSTER)
        return OurBroker(place, *CHANGES, options=options, starts=False, machine=machine)

    async def start(self) -> None:
        """All, at once."""
        await asyncio.gather(*(asyncio.to_thread(one.start) for one in self.all))

    def ensure_ended(self) -> None:
        for one in self.all:
            if one.process is not None and one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
            one.ensure_ended()

    def faults(self) -> list[str]:
        """What they have logged with a traceback."""
        return [
            one.log()[at - 200 : at + 2000]
            for one in self.all
            if (at := one.log().find("Traceback")) >= 0
        ]


class MeshService:
    """The nodes under load and faults, and what came of it."""

    def __init__(self, nodes: Nodes, world: MeshWorld) -> None:
        self.nodes = nodes
        self.world = world
        self.faults: Counter[str] = Counter()
        self._locks = {one: asyncio.Lock() for one in nodes.all}
        self._cuts: set[object] = set()
        world.user, world.password = OurBroker.USER, OurBroker.PASSWORD

    async def run(self, seconds: float) -> list[str]:
        """Faults for so long, then peace; what was wrong."""
        world = self.world
        await self.nodes.start()
        world.uris = [one.uri for one in self.nodes.all]
        for uri in world.uris:
            await self._make_queues(uri)
        end_s = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for style, place in self._works():
                group.create_task(world.keep(lambda style=style, place=place: style(world, place)))
            lanes = [group.create_task(self._disturb(end_s)) for _ in range(2)]
            await asyncio.gather(*lanes)
            world.is_over = True
        world.end_run()
        await self._drain()
        for one in self.nodes.all:
            status = await asyncio.to_thread(one.end)
            if status != 0:
                world.history.problems.append(f"ended: {one.folder} with status {status}")
        return problems(world.history)

    def _works(self):
        for address, queues in ADDRESSES.items():
            if address != "out":
                for _ in range(SENDERS):
                    yield self.world.seeded.choice(STYLES[:3]), address
            for queue in queues:
                yield selecting, queue
                for _ in range(TAKERS):
                    yield self.world.seeded.choice(STYLES[3:]), queue

    async def _make_queues(self, uri: str) -> None:
        world = self.world
        before, world.uris = world.uris, [uri]
        await world.make_queues()
        world.uris = before

    # --- faults ---------------------------------------------------------------------------------

    async def _disturb(self, end_s: float) -> None:
        seeded = self.world.seeded
        kinds = (
            *(self._kill, self._stop, self._pause, self._pause_then_kill),
            *(self._cut, self._cut_one_way, self._isolate, self._leave_during_a_cut),
        )
        while time.monotonic() < end_s:
            await asyncio.sleep(seeded.uniform(*CALM_S))
            fault = seeded.choice(kinds)
            if await fault(seeded.uniform(*FAULT_S)):
                self.faults[fault.__name__.removeprefix("_").replace("_", " ")] += 1

    async def _kill(self, seconds: float, how: signal.Signals = signal.SIGKILL) -> bool:
        async with self._one() as node:
            await self._end(node, how)
            await asyncio.sleep(seconds / 3)
            await asyncio.to_thread(node.start)
        return True

    async def _stop(self, seconds: float) -> bool:
        return await self._kill(seconds, signal.SIGTERM)

    async def _end(self, node: OurBroker, how: signal.Signals) -> None:
        status = await asyncio.to_thread(node.end, how)
        expected = 0 if how is signal.SIGTERM else -how
        if status != expected:
            self.world.history.problems.append(f"ended: {node.folder} with status {status}")

    async def _pause(self, seconds: float, *, is_killed: bool = False) -> bool:
        async with self._one() as node:
            node.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            if is_killed:
                await self._end(node, signal.SIGKILL)
                await asyncio.to_thread(node.start)
            else:
                node.process.send_signal(signal.SIGCONT)
        return True

    async def _pause_then_kill(self, seconds: float) -> bool:
        return await self._pause(seconds, is_killed=True)

    async def _cut(self, seconds: float, *, is_one_way: bool = False) -> bool:
        machines = self.nodes.machines
        first, second = self.world.seeded.sample(list(machines), 2)
        pair = frozenset((first.name, second.name))
        cut = machines.between(first, second, is_one_way=is_one_way)
        return await self._lasts(pair, cut, seconds)

    async def _cut_one_way(self, seconds: float) -> bool:
        return await self._cut(seconds, is_one_way=True)

    async def _isolate(self, seconds: float) -> bool:
        machine = self.world.seeded.choice(list(self.nodes.machines))
        return await self._lasts(machine.name, machine.to_everything(), seconds)

    async def _leave_during_a_cut(self, seconds: float) -> bool:
        """The members change while two of them do not hear of it from each other."""
        is_cut, _ = await asyncio.gather(self._cut(3 * seconds), self._stop(seconds))
        return is_cut

    async def _lasts(self, what: object, cut: Cut, seconds: float) -> bool:
        if what in self._cuts:
            return False
        self._cuts.add(what)
        await asyncio.to_thread(cut.stall)
        try:
            await asyncio.sleep(seconds)
        finally:
            await asyncio.to_thread(cut.resume)
            self._cuts.discard(what)
        return True

    @contextlib.asynccontextmanager
    async def _one(self) -> AsyncIterator[OurBroker]:
        """A node that no other fault ends at this time."""
        node = self.world.seeded.choice(self.nodes.all)
        async with self._locks[node]:
            yield node

    # --- the end --------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Consumers at each node take all that is anywhere; what stays is stranded."""
        world = self.world
        world.is_over = False
        uris, deadline_s = world.uris, time.monotonic() + DRAIN_S
        while (left := await self._left(uris)) and time.monotonic() < deadline_s:
            for uri in uris:
                world.uris = [uri]
                with contextlib.suppress(ClientError, OSError):
                    await self._take_all()
            world.uris = uris
            await asyncio.sleep(0.2)
        for place, count in left.items():
            world.history.problems.append(f"stranded: {count} in {place}")

    async def _take_all(self) -> None:
        options = {"ack_batch_size": 0, "block_on_acknowledge": True}
        async with (
            self.world.client() as client,
            await client.session(AckMode.CLIENT, **options) as session,
        ):
            await consumers.drain(self.world, session)

    async def _left(self, uris: list[str]) -> dict[str, int]:
        """Messages by node and queue, those that wait for another node among them."""
        found = {}
        for uri in uris:
            async with AsyncClient(
                uri, user=self.world.user, password=self.world.password, **CLIENT
            ) as client:
                session = await client.session()
                names = await session.attribute("broker", "queueNames")
                forwarding = [one for one in names if one.startswith(FORWARDING)]
                for name in (*self.world.queues, *forwarding):
                    if count := (await session.query_queue(name)).message_count:
                        found[f"{uri} {name}"] = count
        return found
