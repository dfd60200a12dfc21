"""A topic in a large mesh: subscriptions of its own on some nodes, one that they share, and others.

    sender ─▶ any node ─▶ NEWS ─▶ d.NODE     durable, on that node
                               ─▶ shared     durable, on each of those nodes: one of them gets it
                               ─▶ v.NUMBER   not durable, on any node, while its subscriber is there

A message is for the subscriptions that its node routes to when it is sent, and still when it is
confirmed. Each gets it once. Any other one gets it once or not at all.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.client.errors import ClientError
from broker.model.routing_type import RoutingType
from tests.sim.mesh_case import NEWS, SHARED, holders_of, subscriptions_at
from tests.sim.mesh_clients import AGAIN_S, BURST_MAX, Ledger, client_of, take

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.client.aio.producer import AsyncProducer
    from tests.sim.loop import Process
    from tests.sim.node import Node

SUBSCRIBERS = 2


class Topic:
    """What was sent to it, and what each subscription got.

    Args:
        nodes: by their names.
        process: where its clients run.
        seed: chooses what they do.
    """

    def __init__(self, nodes: dict[str, Node], process: Process, seed: str) -> None:
        self._nodes = nodes
        self._names = tuple(nodes)
        self._process = process
        self._seed = seed
        self._holders = holders_of(self._names)
        self._sent: set[str] = set()
        self._ledgers: dict[str, Ledger] = {}

    def ledger(self, subscription: str) -> Ledger:
        """Give what one of them got."""
        return self._ledgers.setdefault(subscription, Ledger())

    async def take(self, seconds: float) -> None:
        """Take what waits for durable subscriptions, until nothing comes for so long.

        Raises:
            ClientError: a connection is lost.
        """
        places = [(name, f"d.{name}") for name in self._holders]
        places.append((self._holders[0], SHARED))
        await asyncio.gather(*(self._take(*one, seconds) for one in places))

    async def _take(self, place: str, name: str, seconds: float) -> None:
        seeded = random.Random(f"last {name} {self._seed}")
        async with client_of(place, self._process, seeded) as client:
            session = await client.session(AckMode.INDIVIDUAL)
            async with await session.consumer(name) as consumer:
                await take(consumer, self.ledger(name), seconds)

    def problems(self) -> Iterator[str]:
        """Give what is wrong once all was taken."""
        for name, ledger in self._ledgers.items():
            ledger.unknown |= self._sent - set(ledger.confirmed)
            for problem in ledger.problems():
                yield f"{problem} by {name}"

    async def send(self, count: int) -> None:
        """Send so many, a few at a time."""
        seeded = random.Random(f"topic {self._seed}")
        keys = [f"t0{number:04d}" for number in range(count)]
        while keys:
            place = seeded.choice(self._names)
            try:
                async with client_of(place, self._process, seeded) as client:
                    producer = (await client.session()).producer(NEWS)
                    while keys and seeded.random() < 0.7:
                        size = seeded.randrange(1, BURST_MAX + 1)
                        now, keys = keys[:size], keys[size:]
                        await self._burst(place, producer, now)
                        await asyncio.sleep(seeded.uniform(0, 0.4))
            except (ClientError, OSError):
                await asyncio.sleep(AGAIN_S)

    async def _burst(self, place: str, producer: AsyncProducer, keys: Sequence[str]) -> None:
        self._sent.update(keys)
        before = self._routes_at(place)
        answers = [await producer.post(key.encode(), durable=True) for key in keys]
        told = await asyncio.gather(*answers, return_exceptions=True)
        wanted = {name for name, _ in before & self._routes_at(place) if not name.startswith("v.")}
        for key, answer in zip(keys, told, strict=True):
            if not isinstance(answer, BaseException):
                for name in wanted:
                    self.ledger(name).confirmed[key] = None

    def _routes_at(self, place: str) -> set[tuple[str, int]]:
        """Give name and binding of the subscriptions that a node knows."""
        broker = self._nodes[place].broker
        if broker is None or not self._nodes[place].is_active:
            return set()
        found = broker.parts.postoffice.route_of(NEWS).multicast
        return {(getattr(one, "queue_name", one.unique_name), int(one.binding_id)) for one in found}

    async def subscribe(self, number: int, is_over: Callable[[], bool]) -> None:
        """Be a subscriber here and there, of a durable subscription or of one's own."""
        seeded = random.Random(f"subscriber {number} {self._seed}")
        while not is_over():
            is_own = seeded.random() < 0.6
            place = seeded.choice(self._names if is_own else self._holders)
            name = f"v.{number}" if is_own else seeded.choice(subscriptions_at(place))
            try:
                async with client_of(place, self._process, seeded) as client:
                    session = await client.session(AckMode.INDIVIDUAL)
                    if is_own:
                        await session.create_queue(
                            name,
                            NEWS,
                            routing_type=RoutingType.MULTICAST,
                            durable=False,
                            temporary=True,
                        )
                    async with await session.consumer(name) as consumer:
                        await take(consumer, self.ledger(name), seeded.uniform(0.1, 1.0))
            except (ClientError, OSError):
                await asyncio.sleep(AGAIN_S)
