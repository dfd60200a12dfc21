"""Kill -9 while STOMP clients send and receive; the history checker says whether it may be."""

import asyncio
import contextlib
import itertools
import random

import pytest

from tests.broker.history.checker import problems
from tests.broker.history.record import History, Outcome
from tests.broker.protocols.stomp.client import Stomp
from tests.broker.serve import BrokerProcess
from tests.interop.asynchronous import asynchronous

QUEUES = ("plain", "single")
ORDERED = frozenset({"single"})
IN_FLIGHT = 20
LARGE = 150_000
GONE = (ConnectionError, asyncio.IncompleteReadError, OSError)


class Clients:
    """What all clients of all runs of a broker share."""

    def __init__(self, seed):
        self.seeded = random.Random(seed)
        self.history = History()
        self.names = itertools.count()
        self.run = 0
        self.port = 0

    def new_message(self, queue, producer, number, unit):
        size = self.seeded.choice((0, 30, 300, 3000))
        if self.seeded.random() < 0.02:
            size = LARGE
        message = self.history.message(f"m{next(self.names)}", size, (queue,))
        self.history.send(unit, message, producer, number)
        return message

    @staticmethod
    def put(client, queue, message, **headers):
        body = message.body
        headers = {"destination": queue, "destination-type": "ANYCAST", **headers}
        client.put("SEND", {**headers, "persistent": "true", "content-length": len(body)}, body)

    async def produce(self, queue, version):
        """Many in flight, each with a receipt."""
        history, flying = self.history, {}
        producer = f"p{next(self.names)}"
        with contextlib.suppress(*GONE):
            async with Stomp.of(self.port, version) as client:
                for number in itertools.count(1):
                    unit = history.unit()
                    message = self.new_message(queue, producer, number, unit)
                    history.tried(unit)
                    flying[str(number)] = unit
                    self.put(client, queue, message, receipt=number)
                    await client.writer.drain()
                    while len(flying) >= IN_FLIGHT:
                        reply = await client.get("RECEIPT")
                        history.done(flying.pop(reply.headers["receipt-id"]))

    async def transact(self, queue, version):
        """Some messages a transaction, some of which are aborted."""
        history = self.history
        producer = f"p{next(self.names)}"
        numbers = itertools.count(1)
        unit = None
        with contextlib.suppress(*GONE):
            async with Stomp.of(self.port, version) as client:
                while True:
                    unit = history.unit()
                    await client.do("BEGIN", {"transaction": "t"})
                    for _ in range(self.seeded.randrange(1, 8)):
                        message = self.new_message(queue, producer, next(numbers), unit)
                        self.put(client, queue, message, transaction="t")
                    if self.seeded.random() < 0.2:
                        await client.do("ABORT", {"transaction": "t"})
                        history.undone(unit)
                        continue
                    history.tried(unit)
                    await client.do("COMMIT", {"transaction": "t"})
                    history.done(unit)
        if unit is not None and unit.outcome is Outcome.OPEN:
            history.undone(unit)


class Consumer:
    """A client of one queue, whose messages and receipts are told apart as they come."""

    def __init__(self, clients, client, queue):
        self.clients, self.client, self.queue = clients, client, queue
        self.messages, self.receipts = asyncio.Queue(), asyncio.Queue()

    async def read(self):
        while True:
            reply = await self.client._next()
            assert reply.command in ("MESSAGE", "RECEIPT"), reply
            (self.messages if reply.command == "MESSAGE" else self.receipts).put_nowait(reply)

    async def take(self, unit, patience_s):
        """The next message, noted; None where there is none for a while."""
        try:
            async with asyncio.timeout(patience_s):
                reply = await self.messages.get()
        except TimeoutError:
            return None
        copy = int(reply.headers["message-id"].split(",")[1])
        count = 2 if reply.headers["redelivered"] == "true" else 1
        self.clients.history.take(unit, self.queue, copy, count, self.clients.run, reply.body)
        return reply

    async def acknowledge(self, message, unit):
        history = self.clients.history
        history.tried(unit)
        self.client.put("ACK", {**self.client.of_message(message), "receipt": "a"})
        await self.receipts.get()
        history.done(unit)


async def consume(clients, queue, version, ack, *, patience_s=0.5, rounds=None, batch=5):
    """All up to the last of at most `batch`, or one by one, each with a receipt."""
    history, seeded, taken = clients.history, clients.seeded, []
    with contextlib.suppress(*GONE):
        async with Stomp.of(clients.port, version) as client:
            window = clients.seeded.choice(("0", "10240", "-1")) if rounds is None else "-1"
            await client.subscribe(
                queue, "s", ack, subscription_type="ANYCAST", consumer_window_size=window
            )
            consumer = Consumer(clients, client, queue)
            reading = asyncio.ensure_future(consumer.read())
            working = asyncio.ensure_future(
                work(consumer, history, seeded, taken, ack, patience_s, rounds, batch)
            )
            done, others = await asyncio.wait(
                (reading, working), return_when=asyncio.FIRST_COMPLETED
            )
            for one in others:
                one.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            for one in done:
                one.result()
    for unit in taken:
        if unit.outcome is Outcome.OPEN:
            history.undone(unit)


async def work(consumer, history, seeded, taken, ack, patience_s, rounds, batch):
    empty = 0
    while rounds is None or empty < rounds:
        got, unit = [], history.unit()
        for _ in range(seeded.randrange(1, batch + 1)):
            if got and ack == "client-individual":
                unit = history.unit()
            taken.append(unit)
            message = await consumer.take(unit, patience_s)
            if message is None:
                break
            got.append((message, unit))
        empty = 0 if got else empty + 1
        for message, of in got[-1:] if ack == "client" else got:
            await consumer.acknowledge(message, of)


async def killed_after(clients, broker, seconds):
    """Let clients work until the broker is killed."""
    versions = [clients.seeded.choice(("1.0", "1.1", "1.2")) for _ in range(6)]
    tasks = [
        clients.produce("plain", versions[0]),
        clients.produce("single", versions[1]),
        clients.transact("plain", versions[2]),
        consume(clients, "plain", versions[3], "client"),
        consume(clients, "plain", versions[4], "client-individual"),
        consume(clients, "single", versions[5], "client"),
    ]
    running = [asyncio.ensure_future(one) for one in tasks]
    await asyncio.sleep(seconds)
    await asyncio.to_thread(broker.kill)
    for one in running:
        await one


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
@asynchronous
async def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    clients = Clients(22)
    for clients.run in range(effort(20, least=3)):
        broker = await asyncio.to_thread(BrokerProcess, tmp_path, max_messages=max_messages)
        clients.port = broker.port
        await killed_after(clients, broker, clients.seeded.uniform(0.3, 2))

    clients.run += 1
    broker = await asyncio.to_thread(BrokerProcess, tmp_path, max_messages=max_messages)
    clients.port = broker.port
    # Of a queue in pages so many are in memory that more are not delivered until some are
    # acknowledged: a larger batch would wait for its patience each time.
    batch = 200 if max_messages < 0 else max_messages // 2
    for queue in QUEUES:
        await consume(clients, queue, "1.2", "client", patience_s=1, rounds=3, batch=batch)
    assert await asyncio.to_thread(broker.stop) == 0

    history = clients.history
    done = [unit for unit in history.units if unit.outcome is Outcome.DONE]
    assert any(unit.sends for unit in done)
    assert any(unit.takes for unit in done)
    assert problems(history, ORDERED) == []
