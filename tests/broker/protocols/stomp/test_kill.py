"""Kill -9 while STOMP clients send and receive; the history checker says whether it may be."""

import asyncio
import contextlib
import itertools

import pytest

from tests.broker.protocols.killing import IN_FLIGHT, Clients, first_of, kill_and_check
from tests.broker.protocols.stomp.client import Stomp
from tests.interop.asynchronous import asynchronous

GONE = (ConnectionError, asyncio.IncompleteReadError, OSError)


class StompClients(Clients):
    """Producers of STOMP."""

    @staticmethod
    def put(client, queue, message, **headers):
        body = message.body
        headers = {"destination": queue, "destination-type": "ANYCAST", **headers}
        client.put("SEND", {**headers, "persistent": "true", "content-length": len(body)}, body)

    async def produce(self, queue, version):
        """Many in flight, each with a receipt."""
        history, flying = self.history, {}
        producer = self.new_producer()
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
        producer = self.new_producer()
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
        self.give_up(unit)


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
            await first_of(
                consumer.read(),
                work(consumer, history, seeded, taken, ack, patience_s, rounds, batch),
            )
    clients.give_up(*taken)


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


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
@asynchronous
async def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    clients = StompClients()

    def working():
        versions = [clients.seeded.choice(("1.0", "1.1", "1.2")) for _ in range(6)]
        tasks = [
            clients.produce("plain", versions[0]),
            clients.produce("single", versions[1]),
            clients.transact("plain", versions[2]),
            consume(clients, "plain", versions[3], "client"),
            consume(clients, "plain", versions[4], "client-individual"),
            consume(clients, "single", versions[5], "client"),
        ]
        return [asyncio.ensure_future(one) for one in tasks]

    # Of a queue in pages so many are in memory that more are not delivered until some are
    # acknowledged: a larger batch would wait for its patience each time.
    batch = 200 if max_messages < 0 else max_messages // 2

    def drain(queue):
        return consume(clients, queue, "1.2", "client", patience_s=1, rounds=3, batch=batch)

    rounds = effort(20, least=3)
    await kill_and_check(clients, tmp_path, rounds, max_messages, working, drain)
