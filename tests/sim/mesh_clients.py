"""The clients of a large mesh, and what they know of their messages.

A sender sends each message once, to whichever node it is connected to. A consumer wanders from node
to node: with a selector or without, and acknowledges what it takes or nothing. What has no answer
is unknown: a message may have been sent, or been acknowledged, or not.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from tests.sim.mesh_case import FLEETING, QUEUE
from tests.sim.node import PORT, environment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.producer import AsyncProducer
    from tests.sim.loop import Process

OPTIONS = {
    "call_timeout": 15_000,
    "connection_ttl": 4_000,
    "check_period": 1_500,
    "block_on_acknowledge": True,
}
# A message has one of so many kinds, that selectors ask for.
KINDS = 3
KEY_SIZE = 6
SIZES = (KEY_SIZE, 100, 1000)
LARGE = 120_000
LARGE_SHARE = 0.03
BURST_MAX = 5
AGAIN_S = 0.1


class Ledger:
    """What was sent and what came of it.

    Attributes:
        confirmed: keys that a broker has taken, in order.
        unknown: keys that were sent and not answered.
        taken: how often a key was acknowledged, and the broker said so.
        maybe: keys of which an acknowledgement got no answer.
    """

    def __init__(self) -> None:
        self.confirmed: dict[str, None] = {}
        self.unknown: set[str] = set()
        self.taken: Counter[str] = Counter()
        self.maybe: set[str] = set()

    def problems(self) -> Iterator[str]:
        """Give what is wrong once all was taken."""
        for key in self.confirmed:
            if not self.taken[key] and key not in self.maybe:
                yield f"lost: {key}"
        for key, count in sorted((self.taken | Counter(dict.fromkeys(self.maybe, 0))).items()):
            if count > 1:
                yield f"duplicated: {key} was acknowledged {count} times"
            if key not in self.unknown and key not in self.confirmed:
                yield f"unexpected: {key}"


def client_of(place: str, process: Process, seeded: random.Random) -> AsyncClient:
    return AsyncClient(
        f"tcp://{place}:{PORT}", environment=environment_of(process, seeded), **OPTIONS
    )


class Sender:
    """Sends its messages.

    Args:
        name: of two characters; its keys begin with it.
        process: it runs in.
        places: it may connect to.
        home: where it may send to FLEETING too.
        ledger: knows of it.
        seed: chooses all of that.
    """

    def __init__(
        self,
        name: str,
        process: Process,
        places: Sequence[str],
        home: str,
        ledger: Ledger,
        seed: str,
    ) -> None:
        self._name = name
        self._process = process
        self._places = places
        self._home = home
        self._ledger = ledger
        self._seeded = random.Random(f"sender {name} {seed}")

    async def send(self, count: int) -> None:
        """Send so many, a few at a time."""
        keys = [f"{self._name}{number:04d}" for number in range(count)]
        while keys:
            place = self._seeded.choice(self._places)
            try:
                async with client_of(place, self._process, self._seeded) as client:
                    session = await client.session()
                    while keys:
                        queue = QUEUE
                        if place == self._home and self._seeded.random() < 0.5:
                            queue = FLEETING
                        size = self._seeded.randrange(1, BURST_MAX + 1)
                        now, keys = keys[:size], keys[size:]
                        await self._burst(session.producer(queue), now)
                        await asyncio.sleep(self._seeded.uniform(0, 0.4))
                        if self._seeded.random() < 0.3:
                            break
            except (ClientError, OSError):
                await asyncio.sleep(AGAIN_S)

    async def _burst(self, producer: AsyncProducer, keys: Sequence[str]) -> None:
        ledger, seeded = self._ledger, self._seeded
        ledger.unknown.update(keys)
        answers = []
        for key in keys:
            size = LARGE if seeded.random() < LARGE_SHARE else seeded.choice(SIZES)
            answer = await producer.post(
                key.encode().ljust(size, b"x"),
                durable=True,
                properties={"kind": seeded.randrange(KINDS)},
            )
            # Looked at even where the next one raises.
            answer.add_done_callback(lambda one: one.cancelled() or one.exception())
            answers.append(answer)
        told = await asyncio.gather(*answers, return_exceptions=True)
        for key, answer in zip(keys, told, strict=True):
            if not isinstance(answer, BaseException):
                ledger.unknown.discard(key)
                ledger.confirmed[key] = None
        for answer in told:
            if isinstance(answer, BaseException):
                raise answer


class Wanderer:
    """A consumer that is here and there.

    Args:
        name: of it.
        process: it runs in.
        places: it may connect to.
        ledger: knows what it has taken.
        seed: chooses.
    """

    def __init__(
        self, name: str, process: Process, places: Sequence[str], ledger: Ledger, seed: str
    ) -> None:
        self._process = process
        self._places = places
        self._ledger = ledger
        self._seeded = random.Random(f"wanderer {name} {seed}")

    async def wander(self, is_over: Callable[[], bool]) -> None:
        """Go on until it is over."""
        seeded = self._seeded
        while not is_over():
            queue = FLEETING if seeded.random() < 0.3 else QUEUE
            selector = f"kind = {seeded.randrange(KINDS)}" if seeded.random() < 0.5 else None
            takes = seeded.random() < 0.3
            seconds = seeded.uniform(0.1, 1.0)
            try:
                async with client_of(seeded.choice(self._places), self._process, seeded) as client:
                    session = await client.session(AckMode.INDIVIDUAL)
                    async with await session.consumer(queue, selector) as consumer:
                        if takes:
                            await take(consumer, self._ledger, seconds)
                        else:
                            await asyncio.sleep(seconds)
            except (ClientError, OSError):
                await asyncio.sleep(AGAIN_S)


async def take(consumer: AsyncConsumer, ledger: Ledger, seconds: float) -> None:
    """Acknowledge what comes, until nothing comes for so long.

    Raises:
        ClientError: the connection is lost.
    """
    while (received := await consumer.receive(seconds)) is not None:
        key = (await received.read())[:KEY_SIZE].decode()
        is_new = key not in ledger.maybe
        ledger.maybe.add(key)
        await received.acknowledge()
        if is_new:
            ledger.maybe.discard(key)
        ledger.taken[key] += 1
