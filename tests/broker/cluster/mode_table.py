"""Who gets a message, by mode, definition of the queue, position of consumers, and their selector.

Messages are sent to the first of two nodes, with a redistribution-delay of 0. The same is run
against ours and against Artemis, by clients alone.
"""

import asyncio
import contextlib
import itertools
import re
from typing import NamedTuple

from broker.client import AsyncClient, ClientError
from broker.model.routing_type import RoutingType

MODES = ("OFF", "STRICT", "ON_DEMAND", "OFF_WITH_REDISTRIBUTION")
DEFINITIONS = ("configured", "auto-created")
POSITIONS = ("local", "remote", "both", "late", "beside")
SELECTORS = {"none": None, "matching": "color = 'red'", "not matching": "color = 'blue'"}
COUNT = 12
HALF = COUNT // 2


class Cell(NamedTuple):
    """One row of the table.

    Attributes:
        mode: message-load-balancing.
        definition: the queue is in the configuration of both nodes, or made by a client where and
            when it sends or consumes.
        position: of consumers: on the first node, on the other, on both; on the other one after
            the messages were sent; the same beside one on the first node that takes none of them.
        selector: of all consumers but that last one.
    """

    mode: str
    definition: str
    position: str
    selector: str

    @property
    def queue(self):
        """Its name, and that of its address; it begins with the mode."""
        words = "-".join((self.definition, self.position, self.selector)).replace(" ", "-")
        return f"{self.mode.lower()}.{words}"


class Counts(NamedTuple):
    """Where the messages are in the end.

    Attributes:
        consumed_here: by consumers on the first node.
        consumed_there: on the other.
        waiting_here: in the queue of the first node.
        waiting_there: of the other.
    """

    consumed_here: int = 0
    consumed_there: int = 0
    waiting_here: int = 0
    waiting_there: int = 0


def cells(mode):
    return [Cell(mode, *rest) for rest in itertools.product(DEFINITIONS, POSITIONS, SELECTORS)]


HERE, THERE, WAITS = Counts(COUNT), Counts(0, COUNT), Counts(0, 0, COUNT)
BOTH = Counts(HALF, HALF)
# By mode and position: where a consumer takes the messages; where none does, below.
TAKEN = {
    "OFF": {"local": HERE, "remote": WAITS, "both": HERE, "late": WAITS},
    "STRICT": {
        "local": Counts(HALF, 0, 0, HALF),
        "remote": Counts(0, HALF, HALF, 0),
        "both": BOTH,
        "late": Counts(0, HALF, HALF, 0),
    },
    "ON_DEMAND": {"local": HERE, "remote": THERE, "both": BOTH, "late": THERE},
    "OFF_WITH_REDISTRIBUTION": {"local": HERE, "remote": THERE, "both": HERE, "late": THERE},
}
SPLIT = Counts(0, 0, HALF, HALF)


def expected(cell):
    """What the manual says, and ours does."""
    if cell.position == "beside":
        # A consumer that takes none of the messages changes nothing.
        return expected(cell._replace(position="late"))
    is_taken = cell.selector != "not matching"
    if cell.mode != "STRICT":
        return TAKEN[cell.mode][cell.position] if is_taken else WAITS
    # Each node that has the queue in turn, with consumers or not.
    has_both = cell.definition == "configured" or cell.position in ("remote", "both")
    if has_both:
        return TAKEN["STRICT"][cell.position] if is_taken else SPLIT
    return HERE if is_taken and cell.position == "local" else WAITS


class Node:
    """A node as clients have it.

    Args:
        uri: of the node alone.
        login: options of the client.
    """

    def __init__(self, uri, **login):
        self._client = AsyncClient(f"{uri}?useTopologyForLoadBalancing=false", **login)
        self.received = {}

    @contextlib.asynccontextmanager
    async def connected(self):
        async with self._client as client:
            self.session = await client.session()
            self.consuming = await client.session()
            yield self

    async def make(self, name):
        """Make a queue as a client does that needs it."""
        await self.session.create_queue(
            name, name, routing_type=RoutingType.ANYCAST, auto_created=True, durable=True
        )

    async def consume(self, cell, selector=None):
        if cell.definition == "auto-created":
            # The producer may have made it on this node.
            with contextlib.suppress(ClientError):
                await self.make(cell.queue)
        received = self.received[cell] = []
        await self.consuming.consumer(
            cell.queue,
            selector or SELECTORS[cell.selector],
            listener=lambda one: received.append(one),
        )

    async def waiting(self, cell):
        try:
            return await self.session.attribute(f"queue.{cell.queue}", "messageCount")
        except ClientError:
            # It has no such queue.
            return 0

    async def knows(self, cell, consumers):
        """Whether this node knows of the other one's queue, and of so many consumers there.

        None of the queue where there is none. Artemis does not tell of consumers.
        """
        text = await self.session.manage("broker", "listBindingsForAddress", cell.queue)
        counts = re.findall(r"consumerCount=(\d+)", text)
        queues = int(consumers > 0 or cell.definition == "configured")
        is_known = text.count("RemoteQueueBindingImpl") == queues
        return is_known and (not counts or sum(map(int, counts)) == consumers)


async def run(mode, here, there, wait_s, told_s=0):
    """Run all cells of a mode on two nodes; what each has in the end.

    Args:
        mode: which.
        here: where messages are sent.
        there: the other node.
        wait_s: what is not as expected then is what was seen.
        told_s: until a node has heard of consumers, where it does not tell.
    """
    rows = cells(mode)
    for cell in rows:
        if cell.definition == "auto-created":
            await here.make(cell.queue)
        if cell.position in ("local", "both"):
            await here.consume(cell)
        elif cell.position == "beside":
            await here.consume(cell, "color = 'green'")
        if cell.position in ("remote", "both"):
            await there.consume(cell)
    async with asyncio.timeout(wait_s):
        for cell in rows:
            consumers = int(cell.position in ("remote", "both"))
            while not await here.knows(cell, consumers):  # noqa: ASYNC110 - of a broker.
                await asyncio.sleep(0.02)
    await asyncio.sleep(told_s)
    answers = []
    for cell in rows:
        producer = here.session.producer(cell.queue)
        for number in range(COUNT):
            sent = await producer.post(str(number), durable=True, properties={"color": "red"})
            answers.append(sent)
    await asyncio.gather(*answers)
    for cell in rows:
        if cell.position in ("late", "beside"):
            await there.consume(cell)
    return await settled(rows, here, there, wait_s)


async def settled(rows, here, there, wait_s):
    """Wait until all cells are as expected, and stay so; else what was seen last."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + wait_s
    seen = {}
    while loop.time() < until_s:
        seen = {cell: await counted(cell, here, there) for cell in rows}
        if all(seen[cell] == expected(cell) for cell in rows):
            break
        await asyncio.sleep(0.1)
    # What must not move has its time to do so.
    await asyncio.sleep(0.3)
    return {cell: await counted(cell, here, there) for cell in rows}


async def counted(cell, here, there):
    return Counts(
        len(here.received.get(cell, ())),
        len(there.received.get(cell, ())),
        await here.waiting(cell),
        await there.waiting(cell),
    )


def differences(seen):
    """The cells that are not as expected: what was wanted, and what was seen."""
    return {cell: (expected(cell), got) for cell, got in seen.items() if got != expected(cell)}
