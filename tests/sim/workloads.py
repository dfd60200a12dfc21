"""What clients do: the ways of tests/broker/history, and those that need a clock that jumps.

Senders: confirmed one at a time, many in flight, in local and in XA transactions, with duplicate
ids, and again what got no answer. Consumers: client, individual and automatic acknowledgement, in
transactions that forward, with selectors, by groups; browsers; durable subscriptions of a topic
("fan"). Operators create, pause and delete.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from typing import TYPE_CHECKING, Any

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import BrokerRefused, ClientError, QueueMissing
from broker.model.routing_type import RoutingType
from tests.broker.history import consumers, producers
from tests.broker.history.consumers import consumer_of, take
from tests.broker.history.record import History, Wait
from tests.broker.history.world import ORDERED, World
from tests.sim.node import PORT, environment_of
from tests.sim.story import Client

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Awaitable, Callable

    from broker.client.aio.session import AsyncSession
    from tests.broker.history.record import Message, Send, Take, Unit
    from tests.sim.node import Node
    from tests.sim.run import Run

ADDRESSES = {
    "plain": ("plain",),
    "single": ("single",),
    "grouped": ("grouped",),
    "paged": ("paged",),
    "fan": ("fan.a", "fan.b"),
    "out": ("out",),
}
# Comes and goes; what is in it when it is deleted is gone.
PASSING = "passing"
# What a consumer may wait for at most while a message is there and nothing is wrong.
PATIENCE_S = 5.0
POLL_S = 0.2
# So long after a fault something may still follow from it: a connection is given up, say.
AFTERMATH_S = 8.0
OPTIONS = {
    "call_timeout": 15_000,
    "connection_ttl": 4_000,
    "check_period": 1_500,
    "retry_interval": 200,
}

_STYLE: contextvars.ContextVar[str] = contextvars.ContextVar("style", default="operator")
_BROKER_RUN: contextvars.ContextVar[int] = contextvars.ContextVar("broker_run", default=0)


class _Client(AsyncClient):
    """Knows which run of the broker its sessions are of."""

    def __init__(self, node: Node, uri: str, **options: Any) -> None:
        super().__init__(uri, **options)
        self._node = node

    async def session(self, *args: Any, **options: Any) -> AsyncSession:
        made = await super().session(*args, **options)
        _BROKER_RUN.set(self._node.process_number)
        return made


class _History(History):
    """Knows that a plain send to several queues has a record for each, as in Artemis.

    A crash before its answer may leave the first ones. With a duplicate id it is a transaction.
    """

    def send(self, unit: Unit, message: Message, producer: str, number: int) -> Send:
        is_plain = "transactions" not in _STYLE.get() and not message.has_duplicate_id
        if len(message.queues) > 1 and is_plain:
            unit.is_atomic = False
        return super().send(unit, message, producer, number)


class SimWorld(World):
    """What the clients of one node share.

    Args:
        run: that they are part of.
        node: whose clients they are.
        seeded: where every choice comes from.

    Attributes:
        in_flight: how many units of each style were asked for and not answered.
    """

    def __init__(self, run: Run, node: Node, seeded: random.Random) -> None:
        super().__init__(seeded, has_large=True, addresses=ADDRESSES)
        self.run = run
        self.node = node
        self.uri = f"tcp://{node.name}:{PORT}"
        self.in_flight: dict[str, int] = {}
        self.refusals = 0
        # Since when the consumer of a queue gets nothing: consumer, moment, time.
        self._waiting: dict[str, tuple[object, int, float]] = {}

    def begin_anew(self) -> None:
        super().begin_anew()
        self.history = _History()

    @property
    def broker_run(self) -> int:  # type: ignore[override] # set by the base, read here.
        """Of the broker, when the client that asks had connected."""
        return _BROKER_RUN.get()

    @broker_run.setter
    def broker_run(self, value: int) -> None:
        """The base sets it once; it follows from the node here."""

    @contextlib.asynccontextmanager
    async def client(self, **changes: object) -> AsyncIterator[AsyncClient]:
        process = self.run.loop.current_process()
        environment = environment_of(process, self.seeded)
        made = _Client(self.node, self.uri, environment=environment, **(OPTIONS | changes))
        try:
            yield made
        finally:
            await made.close()

    async def keep(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again until the end, whatever becomes of the connection."""
        while not self.is_over:
            try:
                await work()
            except BrokerRefused as refusal:
                self.refused(refusal)
            except (ClientError, OSError):
                pass
            await asyncio.sleep(self.seeded.uniform(0.05, 0.5))

    async def wait_for_room(self) -> None:
        """Think, too: faults shall find clients at work."""
        if self.chance(0.3):
            await asyncio.sleep(self.seeded.uniform(0, 0.3))
        await super().wait_for_room()

    async def count(self, unit: Unit, call: Callable[[], Awaitable[object]]) -> bool:
        style = _STYLE.get()
        self.in_flight[style] = self.in_flight.get(style, 0) + 1
        try:
            return await super().count(unit, call)
        finally:
            self.in_flight[style] -= 1

    def refused(self, refusal: BrokerRefused) -> None:
        """Only a fault is a reason."""
        self.refusals += 1
        if not self.run.is_disturbed and not self.is_over:
            told = f"refused: {type(refusal).__name__}: {refusal}"
            self.history.problems.append(told)

    def waited(self, queue: str, consumer: object) -> None:
        now = self.run.loop.time()
        if self.run.is_disturbed or queue not in ORDERED:
            self._waiting.pop(queue, None)
            return
        who, moment, since = self._waiting.get(queue, (None, 0, 0.0))
        if who is not consumer:
            self._waiting[queue] = consumer, self.history.moment(), now
        elif now - since >= PATIENCE_S:
            wait = Wait(queue, moment, self.history.moment(), now - since)
            self.history.waits.append(wait)
            del self._waiting[queue]

    def took(self, unit: Unit, queue: str, received: object, body: bytes) -> Take:
        self._waiting.pop(queue, None)
        return super().took(unit, queue, received, body)


# --- senders ---------------------------------------------------------------------------------


async def colouring(world: World, address: str) -> None:
    """Messages that selectors can tell apart."""
    async with world.client() as client, await client.session() as session:
        producer = session.producer(address)
        name = world.name("p")
        for number in range(world.seeded.randrange(1, 100)):
            await world.wait_for_room()
            if world.is_over:
                return
            unit = world.history.unit()
            message = world.new_message(address)
            world.counts["sends"] += 1
            world.history.send(unit, message, name, number)
            headers = producers.headers(message)
            properties = {"colour": ("red", "green")[number % 2]}
            await world.count(
                unit,
                lambda message=message, headers=headers, properties=properties: producer.send(
                    message.body, properties=properties, **headers
                ),
            )


# --- consumers -------------------------------------------------------------------------------


async def automatically(world: World, queue: str) -> None:
    """The client acknowledges by itself, and may wait for the broker's word."""
    mode = world.seeded.choice((AckMode.AUTO, AckMode.DUPS_OK))
    options = {"block_on_acknowledge": mode is AckMode.AUTO}
    async with (
        world.client() as client,
        await client.session(mode, **options) as session,
        consumer_of(world, session, queue) as consumer,
    ):
        for _ in range(world.seeded.randrange(1, 100)):
            if world.is_over:
                return
            # As `async for` does: receive() hands out nothing where its acknowledgement gets no
            # answer, and the message is gone all the same.
            try:
                async with asyncio.timeout(POLL_S):
                    received = await consumer.next_unacknowledged()
            except TimeoutError:
                continue
            unit = world.history.unit()
            world.took(unit, queue, received, await received.read())
            world.history.count(unit)
            world.history.tried(unit)
            await consumer.done_with(received)
            if mode is AckMode.AUTO:
                world.history.done(unit)


async def selecting(world: World, queue: str) -> None:
    """Two consumers of one session that see different messages."""
    options = {"ack_batch_size": 0, "block_on_acknowledge": True}
    async with (
        world.client() as client,
        await client.session(AckMode.CLIENT, **options) as session,
        await session.consumer(queue, selector="colour = 'red'") as red,
        await session.consumer(queue, selector="colour <> 'red' OR colour IS NULL") as other,
    ):
        for _ in range(world.seeded.randrange(1, 50)):
            for consumer in (red, other):
                if world.is_over:
                    return
                unit = world.history.unit()
                received = await take(world, consumer, queue, unit)
                if received is None:
                    continue
                if (received.get("colour") == "red") is not (consumer is red):
                    told = f"unexpected: {received.get('colour')} from a selector"
                    world.history.problems.append(told)
                await world.count(unit, received.acknowledge)


async def browsing(world: World, queue: str) -> None:
    """Look at a queue; nothing may come of it."""
    async with world.client() as client, await client.session() as session:
        for _ in range(5):
            if world.is_over:
                return
            async for received in session.browse(queue):
                key = (await received.read()).partition(b"|")[0].decode(errors="replace")
                if key not in world.history.messages:
                    world.history.problems.append(f"unexpected: {key!r} was browsed in {queue}")
            await asyncio.sleep(world.seeded.uniform(0.05, 1))


# --- operators -------------------------------------------------------------------------------


async def operating(world: World, queue: str) -> None:
    """Make a queue, send to it, empty it, delete it; nothing of it is left afterwards."""
    del queue
    async with world.client() as client, await client.session() as session:
        while not world.is_over:
            name = f"{PASSING}-{world.name('q')}"
            await session.create_queue(name, name, routing_type=RoutingType.ANYCAST)
            producer = session.producer(name)
            for number in range(world.seeded.randrange(1, 4)):
                await producer.send(b"%d" % number)
            found = (await session.query_queue(name)).message_count
            if found == 0:
                world.history.problems.append(f"lost: what was sent to {name}, just now")
            await session.delete_queue(name)
            await _expect_missing(world, session, name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


async def _expect_missing(world: World, session: AsyncSession, name: str) -> None:
    try:
        found = await session.query_queue(name)
    except QueueMissing:
        return
    if found.exists and found.message_count:
        world.history.problems.append(f"unexpected: {name} was deleted, and has messages")


async def sending_to_what_comes_and_goes(world: World, queue: str) -> None:
    """A queue of an address is made again and again: what was confirmed meanwhile is in it."""
    async with world.client() as client, await client.session() as session:
        while not world.is_over:
            name = f"{PASSING}-{world.name('q')}"
            for _ in range(2):
                await session.create_queue(name, PASSING, routing_type=RoutingType.MULTICAST)
                await session.producer(PASSING).send(b"x")
                if (await session.query_queue(name)).message_count == 0:
                    world.history.problems.append(f"lost: what was sent to {name}, a new queue")
                await session.delete_queue(name)
            await asyncio.sleep(world.seeded.uniform(0.1, 1))


SENDERS: dict[str, Callable[[World, str], Awaitable[None]]] = {
    one.__name__: one for one in (*producers.STYLES, colouring)
}
CONSUMERS: dict[str, Callable[[World, str], Awaitable[None]]] = {
    one.__name__: one for one in (*consumers.STYLES, automatically, selecting, browsing)
}
OPERATORS: dict[str, Callable[[World, str], Awaitable[None]]] = {
    one.__name__: one for one in (operating, sending_to_what_comes_and_goes)
}
STYLES = SENDERS | CONSUMERS | OPERATORS


def clients_of(seeded: random.Random, node: str) -> list[Client]:
    """The clients of one node, by the seed."""
    found = [
        Client(seeded.choice(list(SENDERS)), address, node)
        for address in ADDRESSES
        if address != "out" and seeded.random() < 0.7
    ]
    for queues in ADDRESSES.values():
        for queue in queues:
            if seeded.random() < 0.8:
                names = list(CONSUMERS)
                if queue in ORDERED or queue == "grouped":
                    # One consumer at a time, or one of a group: none that sees a part of it only.
                    names.remove(selecting.__name__)
                found.append(Client(seeded.choice(names), queue, node))
    if seeded.random() < 0.3:
        found.append(Client(seeded.choice(list(OPERATORS)), PASSING, node))
    return found


async def work(world: SimWorld, client: Client) -> None:
    """What one client does until the end."""
    _STYLE.set(client.style)
    style = STYLES[client.style]
    await world.keep(lambda: style(world, client.place))
