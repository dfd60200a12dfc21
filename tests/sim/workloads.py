"""What clients do: the ways of tests/broker/history, and those that need a clock that jumps.

Senders: confirmed one at a time, many in flight, in local and in XA transactions, with duplicate
ids, and again what got no answer. Consumers: client, individual and automatic acknowledgement, in
transactions that forward, with selectors, by groups; browsers. Subscribers and operators have files
of their own.

Half of the clients reconnect, with a confirmation window (their sessions are reattached) or
without one (their sessions are created again), and go on with the session they have.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
from typing import TYPE_CHECKING, Any

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import (
    BrokerRefused,
    CallInterrupted,
    ClientError,
    TransactionOutcomeUnknown,
)
from broker.model.routing_type import RoutingType
from broker.settings.queue_defaults import QueueRequest
from tests.broker.history import consumers, producers
from tests.broker.history.consumers import consumer_of, take
from tests.broker.history.record import Wait
from tests.broker.history.world import ORDERED, World
from tests.sim import operators, subscribers
from tests.sim.node import environment_of
from tests.sim.operators import PASSING
from tests.sim.story import Client

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from broker.client.aio.session import AsyncSession
    from tests.broker.history.record import Take, Unit
    from tests.sim.node import Node
    from tests.sim.run import Run

    Style = Callable[["SimWorld", str], Awaitable[None]]

FLEETING = "fleeting"
ADDRESSES = {
    "plain": ("plain",),
    "single": ("single",),
    "grouped": ("grouped",),
    "paged": ("paged",),
    "fan": ("fan.a", "fan.b"),
    "out": ("out",),
    # Its consumers let the broker acknowledge before it delivers.
    FLEETING: (FLEETING,),
    # Its queues come with subscribers.
    "topic": (),
}
# What a consumer may wait for at most while a message is there and nothing is wrong.
PATIENCE_S = 5.0
POLL_S = 1.0
# Share of sends that wait; between two of these a sender sends as fast as it can.
WAITS = 0.3
# So long after a fault something may still follow from it: a connection is given up, say.
AFTERMATH_S = 12.0
OPTIONS = {
    "call_timeout": 15_000,
    "connection_ttl": 6_000,
    "call_failover_timeout": 15_000,
    "check_period": 3_000,
    "retry_interval": 200,
}
# Of clients that reconnect; without a window no session is reattached.
WINDOWS = (-1, 500, 5_000, 1_000_000)
ATTEMPTS = (-1, 10)

_STYLE: contextvars.ContextVar[str] = contextvars.ContextVar("style", default="operator")
_PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="")
_CLIENT: contextvars.ContextVar[_Client | None] = contextvars.ContextVar("client", default=None)


class _Client(AsyncClient):
    """Knows which run of the broker its sessions are of.

    Attributes:
        reconnects: it goes on when its connection is lost.
        broker_run: of the broker that it is connected to.
    """

    def __init__(self, node: Node, uri: str, **options: Any) -> None:
        super().__init__(uri, **options)
        self._node = node
        self._made: AsyncSession | None = None
        self.reconnects = self.options.reconnect_attempts != 0
        self.broker_run = 0

    async def session(self, *args: Any, **options: Any) -> AsyncSession:
        made = self._made = await super().session(*args, **options)
        self.connections[0].on_reconnected = self._is_connected
        self._is_connected()
        _CLIENT.set(self)
        return made

    def _is_connected(self) -> None:
        self.broker_run = self._node.run_of(self.connections[0].connector.host)

    @property
    def session_name(self) -> str:
        """Another one, when the session had to be created again."""
        return "" if self._made is None else self._made.state.name


class SimWorld(World):
    """What the clients of one node share.

    Args:
        run: that they are part of.
        node: whose clients they are.
        seeded: where every choice comes from.

    Attributes:
        in_flight: how many units of each style were asked for and not answered.
        patience_s: see PATIENCE_S.
        fixed_queues: those that are always there.
        paused: queues that an operator has paused, for now.
        subscriptions: of topics.
        has_distributed: some clients have XA transactions.
    """

    patience_s = PATIENCE_S
    poll_s = POLL_S

    def __init__(self, run: Run, node: Node, seeded: random.Random) -> None:
        clients = [one for one in run.story.clients if one.node == node.name]
        super().__init__(seeded, has_large=True, addresses=_used_by(clients))
        self.run = run
        for one in node.members:
            one.options |= self.configured
        senders = sum(one.style in SENDERS for one in run.story.clients)
        # Of a sender, so that all together need the time of the story.
        self._pace_s = run.story.seconds * senders / max(1, run.story.messages)
        self.node = node
        self.uri = node.uri
        self.in_flight: dict[str, int] = {}
        self.refusals = 0
        self.fixed_queues = self.queues
        self.has_distributed = any("distributed" in one.style for one in clients)
        self.paused: set[str] = set()
        self.subscriptions = subscribers.Subscriptions()
        # The session that the takes of a unit came by.
        self._session_of: dict[Unit, str] = {}
        # Since when the consumer of a queue gets nothing: consumer, moment, time.
        self._waiting: dict[str, tuple[object, int, float]] = {}

    def begin_anew(self) -> None:
        super().begin_anew()
        self.history.lossy = frozenset((FLEETING,))

    async def make_queues(self) -> None:
        """Nothing: they are configured. Subscribers and operators create others."""

    @property
    def configured(self) -> dict[str, Any]:
        """Options of a broker that has the addresses and the queues."""
        kinds = {
            address: RoutingType.ANYCAST if queues == (address,) else RoutingType.MULTICAST
            for address, queues in self.addresses.items()
        }
        return {
            "addresses": tuple((address, (kind,)) for address, kind in kinds.items()),
            "queues": tuple(
                QueueRequest(name=queue, address=address, routing_type=kinds[address])
                for address, queues in self.addresses.items()
                for queue in queues
            ),
        }

    @property
    def broker_run(self) -> int:  # type: ignore[override] # set by the base, read here.
        """Of the broker, when the client that asks had connected."""
        client = _CLIENT.get()
        return 0 if client is None else client.broker_run

    @broker_run.setter
    def broker_run(self, value: int) -> None:
        """The base sets it once; it follows from the node here."""

    @contextlib.asynccontextmanager
    async def client(self, **changes: object) -> AsyncIterator[AsyncClient]:
        process = self.run.loop.current_process()
        environment = environment_of(process, self.seeded)
        options = OPTIONS | self._reconnecting() | changes
        made = _Client(self.node, self.uri, environment=environment, **options)
        try:
            yield made
        finally:
            await made.close()

    def _reconnecting(self) -> dict[str, object]:
        """Options of a client that reconnects, of half of them."""
        if self.chance(0.5):
            return {}
        # A second session beside one that the broker has not given up: two consumers at a time.
        least = 1 if _PLACE.get() in ORDERED else 0
        return {
            "reconnect_attempts": self.seeded.choice(ATTEMPTS),
            "confirmation_window_size": self.seeded.choice(WINDOWS[least:]),
        }

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
        if self.chance(WAITS):
            await asyncio.sleep(self.seeded.uniform(0, 2 * self._pace_s / WAITS))
        await super().wait_for_room()

    async def count(self, unit: Unit, call: Callable[[], Awaitable[object]]) -> bool:
        style = _STYLE.get()
        self.in_flight[style] = self.in_flight.get(style, 0) + 1
        try:
            return await super().count(unit, call)
        except (CallInterrupted, TransactionOutcomeUnknown):
            self.interrupted(unit)
            if not self._reconnects:
                raise
            return False
        finally:
            self.in_flight[style] -= 1

    @property
    def _reconnects(self) -> bool:
        client = _CLIENT.get()
        return client is not None and client.reconnects

    def interrupted(self, unit: Unit) -> None:
        """What the lost connection still carries may arrive behind what the next one does."""
        if self._reconnects:
            unit.is_late = True

    def lose(self, client: AsyncClient, *units: Unit) -> None:
        """As the base; a session that is reattached and closed has not failed, for the broker."""
        super().lose(client, *units)
        if self._reconnects:
            for unit in units:
                self.history.undone(unit)

    def refused(self, refusal: BrokerRefused) -> None:
        """Only a fault is a reason."""
        self.refusals += 1
        if not self.run.is_disturbed and not self.is_over:
            told = f"refused: {type(refusal).__name__}: {refusal}"
            self.history.problems.append(told)

    def waited(self, queue: str, consumer: object) -> None:
        now = self.run.loop.time()
        if self.run.is_disturbed or queue not in ORDERED or queue in self.paused:
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
        self._split(unit)
        return super().took(unit, queue, received, body)

    def _split(self, unit: Unit) -> None:
        """Take out of a unit what a session delivered that was lost: it is not acknowledged."""
        client = _CLIENT.get()
        if client is None or not client.reconnects:
            return
        before = self._session_of.setdefault(unit, client.session_name)
        if before != client.session_name:
            self._session_of[unit] = client.session_name
            self.history.split(unit)


# --- senders ---------------------------------------------------------------------------------


async def colouring(world: SimWorld, address: str) -> None:
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
                async with asyncio.timeout(world.poll_s):
                    received = await consumer.next_unacknowledged()
            except TimeoutError:
                continue
            unit = world.history.unit()
            world.took(unit, queue, received, await received.read())
            world.history.count(unit)
            world.history.tried(unit)
            try:
                await consumer.done_with(received)
            except CallInterrupted:
                world.interrupted(unit)
                continue
            if mode is AckMode.AUTO:
                world.history.done(unit)


async def unacknowledged(world: SimWorld, queue: str) -> None:
    """The broker acknowledges before it delivers, and tells no client when that is durable."""
    async with (
        world.client() as client,
        await client.session(AckMode.PRE) as session,
        consumer_of(world, session, queue) as consumer,
    ):
        for _ in range(world.seeded.randrange(1, 100)):
            unit = world.history.unit()
            received = await take(world, consumer, queue, unit)
            if world.is_over:
                return
            if received is not None:
                world.history.tried(unit)
                world.history.count(unit)


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


SENDERS: dict[str, Style] = {one.__name__: one for one in (*producers.STYLES, colouring)}
CONSUMERS: dict[str, Style] = {
    one.__name__: one
    for one in (*consumers.STYLES, automatically, unacknowledged, selecting, browsing)
}
SUBSCRIBERS: dict[str, Style] = {"subscribing": subscribers.subscribing}
OPERATORS: dict[str, Style] = {one.__name__: one for one in operators.STYLES}
# What they ask for is not counted one by one: they are in flight as long as they work.
_AT_WORK = {*OPERATORS, "automatically", "unacknowledged", "browsing", "many_in_flight"}
STYLES = SENDERS | CONSUMERS | SUBSCRIBERS | OPERATORS


def _used_by(clients: list[Client]) -> dict[str, tuple[str, ...]]:
    """The addresses that these clients work with."""
    used = {one.place.partition(".")[0] for one in clients}
    return {
        name: queues
        for name, queues in ADDRESSES.items()
        if name in used or name in ("plain", "out")
    }


def clients_of(seeded: random.Random, node: str, node_count: int = 1) -> list[Client]:
    """The clients of one node, by the seed: a few at each of some addresses.

    Of one node these are most addresses; of many nodes each has one or two, with all who use them.
    """
    names = [address for address in ADDRESSES if address != "out"]
    if node_count == 1:
        sent_to = [one for one in names if seeded.random() < 0.7]
        taken_from = [one for one in _queues_of(ADDRESSES) if seeded.random() < 0.8]
        likely = 0.7
    else:
        sent_to = seeded.sample(names, 3 if node_count < 4 else seeded.choice((1, 1, 2)))
        taken_from = list(_queues_of({one: ADDRESSES[one] for one in sent_to}))
        taken_from += ["out"] * (seeded.random() < 0.2)
        likely = float("topic" in sent_to)
    found = [Client(seeded.choice(list(SENDERS)), address, node) for address in sent_to]
    for queue in taken_from:
        # Of groups, each has one consumer at a time; of most queues, the whole has.
        count = seeded.choice((1, 2, 2, 3)) if queue == "grouped" else 1
        found += (Client(seeded.choice(_consumers_of(queue)), queue, node) for _ in range(count))
    # Now and then two, for what they share.
    count = seeded.choice((1, 1, 1, 2)) if seeded.random() < likely else 0
    found += itertools.repeat(Client("subscribing", "topic", node), count)
    if seeded.random() < 0.4 / node_count**0.5:
        found.append(Client(seeded.choice(list(OPERATORS)), PASSING, node))
    return found


def _consumers_of(queue: str) -> list[str]:
    if queue == FLEETING:
        return [unacknowledged.__name__, browsing.__name__]
    styles = [one for one in CONSUMERS if one != unacknowledged.__name__]
    if queue in ORDERED or queue == "grouped":
        # None that sees a part of it only.
        styles.remove(selecting.__name__)
    return styles


def _queues_of(addresses: dict[str, tuple[str, ...]]) -> Iterator[str]:
    return itertools.chain.from_iterable(addresses.values())


async def work(world: SimWorld, client: Client) -> None:
    """What one client does until the end."""
    _STYLE.set(client.style)
    _PLACE.set(client.place if client.style in CONSUMERS else "")
    style = STYLES[client.style]
    if client.style in _AT_WORK:
        world.in_flight[client.style] = world.in_flight.get(client.style, 0) + 1
    await world.keep(lambda: style(world, client.place))
    if client.style in _AT_WORK:
        world.in_flight[client.style] -= 1
