"""Where messages go: every routing type with every pattern and filter, as cells of one table.

A cell makes queues bound to patterns around one address, sends `SENT` messages to it, red and blue
in turn, and says how many each queue has then. `tests/broker/routing.json` holds Artemis's answers:
`python -m tests.broker.routing_cells URI` asks a running Artemis (admin, secret) for them again.
"""

import asyncio
import itertools
import json
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

from broker.client.aio import AsyncClient
from broker.client.errors import BrokerRefused
from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from tests.broker.bench import Bench, done

TABLE = Path(__file__).with_name("routing.json")
SENT = 6
# Names that no cell had before, in this run or in another one against the same broker.
RUN = uuid.uuid4().hex
NUMBERS = itertools.count()
A, M = RoutingType.ANYCAST, RoutingType.MULTICAST
LETTERS = {A: "A", M: "M", None: "-"}
# Below it nothing is made on its own: CONFIGURATION says so.
FIXED = "fixed"
CONFIGURATION = (
    f'<address-setting match="{FIXED}.#"><auto-create-queues>false</auto-create-queues>'
    "<auto-create-addresses>false</auto-create-addresses></address-setting>"
)
PATTERNS = [
    list(some) for count in (1, 2, 3) for some in itertools.combinations(("rx", "*", "#"), count)
]
PLACES = {"rx": "own", "*": "one", "#": "any"}
FILTERS = {
    "one": [None],
    "red": ["color = 'red'"],
    "none": ["color = 'green'"],
    "two": [None, None],
    "none+all": ["color = 'green'", None],
    "red+blue": ["color = 'red'", "color = 'blue'"],
}
TYPES = {"A": [A], "M": [M], "AM": [A, M]}


class QueueOf(NamedTuple):
    """A queue of a cell; names are told without the cell's prefix."""

    name: str
    address: str
    routing_type: RoutingType
    filter: str | None = None
    consumers: tuple[str | None, ...] = ()  # Their selectors.


class Cell(NamedTuple):
    """One cell: queues, and the type of what is sent to `target`."""

    name: str
    is_fixed: bool
    sent: RoutingType | None
    queues: list[QueueOf]
    target: str = "rx"
    addresses: tuple[str, ...] = ()


def cells():
    """Give all, each with a name of its own."""
    yield from _crossed()
    yield from _special()


def _crossed():
    for is_fixed, sent, patterns, types, filters in itertools.product(
        (True, False), (None, A, M), PATTERNS, TYPES, FILTERS
    ):
        queues = [
            QueueOf(f"{LETTERS[kind]}{number}{PLACES[pattern]}", pattern, kind, filter)
            for pattern in patterns
            for kind in TYPES[types]
            for number, filter in enumerate(FILTERS[filters])
        ]
        mode = "fixed" if is_fixed else "auto"
        yield Cell(
            f"{mode} {LETTERS[sent]} to {types} at {','.join(patterns)} by {filters}",
            is_fixed,
            sent,
            queues,
            addresses=("rx",) if is_fixed else (),
        )


def _special():
    for is_fixed, sent in itertools.product((True, False), (None, A, M)):
        mode = f"{'fixed' if is_fixed else 'auto'} {LETTERS[sent]}"

        def cell(name, *queues, mode=mode, is_fixed=is_fixed, sent=sent, **more):
            return Cell(f"{mode} {name}", is_fixed, sent, list(queues), **more)

        yield cell("nothing bound")
        yield cell("an address without queues", addresses=("rx",))
        # ANYCAST queues with consumers come before those without.
        yield cell("a consumer", QueueOf("1", "rx", A), QueueOf("2", "rx", A, None, (None,)))
        yield cell(
            "a consumer of a pattern", QueueOf("1", "*", A), QueueOf("2", "*", A, None, (None,))
        )
        yield cell(
            "reds and all",
            QueueOf("1", "rx", A, "color = 'red'"),
            QueueOf("2", "rx", A),
        )
        yield cell(
            "a consumer of reds",
            QueueOf("1", "rx", A),
            QueueOf("2", "rx", A, None, ("color = 'red'",)),
        )
        yield cell(
            "consumers of both",
            QueueOf("1", "rx", A, None, ("color = 'red'",)),
            QueueOf("2", "rx", A, None, ("color = 'blue'",)),
        )
        yield cell(
            "a consumer of a queue that takes none",
            QueueOf("1", "rx", A, "color = 'green'", (None,)),
            QueueOf("2", "rx", A),
        )
        # Fully qualified names.
        for kind in (A, M):
            for pattern in ("rx", "*", "#"):
                one, two = QueueOf("1", pattern, kind), QueueOf("2", pattern, kind)
                at = f"{LETTERS[kind]} at {pattern}"
                yield cell(f"qualified {at}", one, two, target="rx::1")
                yield cell(f"qualified, its own {at}", one, two, target=f"{pattern}::1")
                reds = QueueOf("1", pattern, kind, "color = 'red'")
                yield cell(f"qualified, filtered {at}", reds, two, target="rx::1")
        yield cell("qualified, another address", QueueOf("1", "ry", A), target="rx::1")
        yield cell("qualified, nothing there", QueueOf("1", "rx", A), target="rx::2")
        # A queue that has the name of its address, or of its pattern.
        for kind in (A, M):
            for name in ("rx", "*", "#"):
                yield cell(f"namesake {LETTERS[kind]} {name}", QueueOf(name, name, kind))
            yield cell(f"namesake elsewhere {LETTERS[kind]}", QueueOf("rx", "ry", kind))
        yield cell("all namesakes", *(QueueOf(name, name, A) for name in ("rx", "*", "#")))
        # What is sent to a pattern goes to what is bound to it.
        for kind in (A, M):
            some = (QueueOf(f"q{n}", at, kind) for n, at in enumerate(("rx", "*", "#")))
            yield cell(f"deeper {LETTERS[kind]}", *some, target="rx.deeper")
            inner = QueueOf("1", "*.x", kind), QueueOf("2", "#.x", kind), QueueOf("3", "r.#", kind)
            yield cell(f"inner {LETTERS[kind]}", *inner, target="r.x")


class Answer(NamedTuple):
    """What became of a cell's messages."""

    counts: dict[str, int]
    error: str | None


class OverTheWire:
    """Asks a running broker."""

    def __init__(self, session, wait_s):
        self._session = session
        self._wait_s = wait_s

    async def create_address(self, name):
        await self._session.create_address(name, A, M)

    async def create_queue(self, name, address, routing_type, filter):
        await self._session.create_queue(name, address, routing_type=routing_type, selector=filter)

    async def consume(self, queue, selector):
        await self._session.consumer(queue, selector)

    async def send(self, messages):
        producer = self._session.producer()
        posted = [await producer.post(one) for one in messages]
        ends = await asyncio.gather(*posted, return_exceptions=True)
        await asyncio.sleep(self._wait_s)
        return next(
            (ErrorCode(one.code).name for one in ends if isinstance(one, BrokerRefused)), None
        )

    async def count(self, name):
        found = await self._session.query_queue(name)
        return found.message_count if found.exists else None


class OnTheBench:
    """Asks the broker's own parts."""

    def __init__(self, bench):
        self._bench = bench
        self._session = bench.session()
        self._consumer_count = 0

    async def create_address(self, name):
        self._bench.addresses.create(name, [A, M])

    async def create_queue(self, name, address, routing_type, filter):
        self._bench.queue(name, address, routing_type, filter=filter)

    async def consume(self, queue, selector):
        self._consumer_count += 1
        number = self._consumer_count
        self._bench.consume(queue, self._session, 0, number, filter_text=selector)

    async def send(self, messages):
        try:
            for message in messages:
                self._session.send(Message.decode(message.encode()), done)
        except BrokerError as error:
            return error.code.name
        return None

    async def count(self, name):
        queue = self._bench.addresses.queues.get(name)
        return None if queue is None else queue.message_count


async def run(cell, number, broker):
    """Give what a broker makes of a cell, by names of its own, and of this run."""
    mode = FIXED if cell.is_fixed else "free"
    prefix = f"{mode}.{RUN}.c{number}."

    bound = [one.address for one in cell.queues] if cell.is_fixed else []
    for address in dict.fromkeys([*cell.addresses, *bound]):
        await broker.create_address(prefix + address)
    for name, address, kind, filter, selectors in cell.queues:
        await broker.create_queue(prefix + name, prefix + address, kind, filter)
        for selector in selectors:
            await broker.consume(prefix + name, selector)
    address, separator, queue = cell.target.partition("::")
    target = prefix + address + (separator + prefix + queue if separator else "")
    error = await broker.send([_message(target, cell.sent, n) for n in range(SENT)])
    counts = {}
    # Also the one that was made for what was sent.
    for name in dict.fromkeys([*(one.name for one in cell.queues), queue or address]):
        if (count := await broker.count(prefix + name)) is not None:
            counts[name] = count
    return Answer(counts, error)


def _message(target, routing_type, number):
    message = Message(target, b"", durable=False)
    message.set("color", PropertyType.STRING, ("red", "blue")[number % 2])
    message.routing_type = routing_type
    return message


def read_table():
    """Give Artemis's answers by the cells' names."""
    return {name: Answer(*one) for name, one in json.loads(TABLE.read_text()).items()}


async def ask(uri, user, password, names=None, wait_s=0.0):
    """Give a running broker's answers by the cells' names, of some or of all.

    Artemis counts a message behind its answer, in a thread of the queue: `wait_s` lets it.
    """
    async with AsyncClient(uri, user=user, password=password, consumer_window_size=0) as client:
        broker = OverTheWire(await client.session(), wait_s)
        return {
            cell.name: await run(cell, next(NUMBERS), broker)
            for cell in cells()
            if names is None or cell.name in names
        }


def on_the_bench():
    """Give the answers of the broker's own parts."""

    async def one(cell, number):
        bench = Bench()
        bench.set(f"{FIXED}.#", auto_create_queues=False, auto_create_addresses=False)
        return await run(cell, number, OnTheBench(bench))

    async def all_of_them():
        return {cell.name: await one(cell, number) for number, cell in enumerate(cells())}

    return asyncio.run(all_of_them())


def main():
    found = asyncio.run(ask(sys.argv[1], "admin", "secret"))
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items())
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
