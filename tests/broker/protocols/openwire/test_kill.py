"""Kill -9 while OpenWire clients send and receive; the history checker says whether it may be."""

import asyncio
import contextlib
import itertools
import zlib

import pytest

from broker.protocols.openwire import commands as c
from tests.broker.protocols.killing import IN_FLIGHT, Clients, first_of, kill_and_check
from tests.broker.protocols.openwire.client import OpenWire
from tests.interop.asynchronous import asynchronous

GONE = (OSError, EOFError)
BEGIN, COMMIT, ROLLBACK = 0, 2, 4
INDIVIDUAL, STANDARD = 4, 2


class OpenWireClients(Clients):
    """Each on a connection of its own."""

    def connected(self):
        """A connection."""
        name = f"ID:client-{self.new_producer()}"
        version = self.seeded.choice((1, 6, 10, 12))
        tight = self.seeded.random() < 0.5
        return OpenWire.of(self.port, name, version, tight, name)

    def put(self, client, queue, producer, number, unit, *, wants=False, **fields):
        """Send a message; the number of its command."""
        body = self.new_message(queue, producer, number, unit).body
        to = c.ActiveMQQueue(queue)
        return client.put(client.sent(c.ActiveMQBytesMessage, to, body, **fields), wants)

    async def produce(self, queue):
        """Many in flight, each with its answer."""
        history, flying, producer = self.history, {}, self.new_producer()
        with contextlib.suppress(*GONE):
            async with self.connected() as client:
                for number in itertools.count(1):
                    unit = history.unit()
                    history.tried(unit)
                    flying[self.put(client, queue, producer, number, unit, wants=True)] = unit
                    await client.writer.drain()
                    while len(flying) >= IN_FLIGHT:
                        answer = await client.next()
                        assert type(answer) is c.Response, answer
                        history.done(flying.pop(answer.correlation_id))

    async def transact(self, queue):
        """Some messages a transaction, some of which are rolled back."""
        history, producer, unit = self.history, self.new_producer(), None
        numbers = itertools.count(1)
        with contextlib.suppress(*GONE):
            async with self.connected() as client:
                for transaction in itertools.count(1):
                    unit = history.unit()
                    begin = client.transaction(transaction, BEGIN)
                    await client.ask(begin)
                    for _ in range(self.seeded.randrange(1, 8)):
                        id = begin.transaction_id
                        self.put(client, queue, producer, next(numbers), unit, transaction_id=id)
                    if self.seeded.random() < 0.2:
                        await client.ask(client.transaction(transaction, ROLLBACK))
                        history.undone(unit)
                        continue
                    history.tried(unit)
                    await client.ask(client.transaction(transaction, COMMIT))
                    history.done(unit)
        self.give_up(unit)

    async def consume(self, queue, kind, *, prefetch=20, patience_s=0.5, rounds=None, batch=5):
        """All up to the last of at most `batch`, or one by one, each acknowledgement answered."""
        taken = []
        with contextlib.suppress(*GONE):
            async with self.connected() as client:
                id = await client.consume(c.ActiveMQQueue(queue), prefetch=prefetch)
                consumer = Consumer(self, client, queue, id)
                await first_of(
                    consumer.read(), self.work(consumer, taken, kind, patience_s, rounds, batch)
                )
        self.give_up(*taken)

    async def work(self, consumer, taken, kind, patience_s, rounds, batch):
        empty = 0
        while rounds is None or empty < rounds:
            got, unit = [], self.history.unit()
            for _ in range(self.seeded.randrange(1, batch + 1)):
                if got and kind == INDIVIDUAL:
                    unit = self.history.unit()
                taken.append(unit)
                dispatch = await consumer.take(unit, patience_s)
                if dispatch is None:
                    break
                got.append((dispatch, unit))
            empty = 0 if got else empty + 1
            if kind == INDIVIDUAL:
                for dispatch, of in got:
                    await consumer.acknowledge(of, kind, dispatch, dispatch, 1)
            elif got:
                await consumer.acknowledge(unit, kind, got[0][0], got[-1][0], len(got))


class Consumer:
    """A client of one queue, whose messages and answers are told apart as they come."""

    def __init__(self, clients, client, queue, id):
        self.clients, self.client, self.queue, self.id = clients, client, queue, id
        self.messages, self.answers = asyncio.Queue(), asyncio.Queue()

    async def read(self):
        while True:
            got = await self.client.message()
            (self.answers if type(got) is c.Response else self.messages).put_nowait(got)

    async def take(self, unit, patience_s):
        """The next message, noted; None where there is none for a while."""
        try:
            async with asyncio.timeout(patience_s):
                dispatch = await self.messages.get()
        except TimeoutError:
            return None
        assert isinstance(dispatch, c.MessageDispatch), dispatch
        body = bytes(dispatch.message.content or b"")
        count = dispatch.redelivery_counter + 1
        history, run = self.clients.history, self.clients.run
        history.take(unit, self.queue, zlib.crc32(body), count, run, body)
        return dispatch

    async def acknowledge(self, unit, kind, first, last, count):
        history = self.clients.history
        ack = self.client.ack(self.id, last, kind, count)
        ack.first_message_id = first.message.message_id
        history.tried(unit)
        self.client.put(ack, True)
        await self.answers.get()
        history.done(unit)


@pytest.mark.slow
@pytest.mark.parametrize("max_messages", [-1, 50], ids=["in memory", "paging"])
@asynchronous
async def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    clients = OpenWireClients()

    def working():
        tasks = [
            clients.produce("plain"),
            clients.produce("single"),
            clients.transact("plain"),
            clients.consume("plain", STANDARD),
            clients.consume("plain", INDIVIDUAL),
            clients.consume("single", STANDARD),
        ]
        return [asyncio.ensure_future(one) for one in tasks]

    # One large message fills what a queue holds of its pages: no other comes before its answer.
    batch = 200 if max_messages < 0 else 1

    def drain(queue):
        return clients.consume(queue, STANDARD, prefetch=200, patience_s=1, rounds=3, batch=batch)

    rounds = effort(20, least=2)
    await kill_and_check(clients, tmp_path, rounds, max_messages, working, drain)
