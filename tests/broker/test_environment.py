"""A broker and a client whose clock, ids, network and stores are handed in."""

import asyncio
import time
import uuid

import pytest

from broker.client.aio import AsyncClient
from broker.client.errors import NotConnected
from broker.environment import Environment
from broker.options import AcceptorOptions, BrokerOptions
from broker.server.server import Broker
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.open import Stores
from tests.broker.memory_store import MemoryStore

START_MS = 1_000_000_000_000
NODE_ID = "00000000-0000-0000-0000-00000000abcd"
URI = "tcp://orders.example:61616"


class MovedClock:
    """Stands still, unless it is moved."""

    def __init__(self):
        self.wall_ms = START_MS

    def now_ms(self):
        return self.wall_ms

    def now_s(self):
        return self.wall_ms / 1000

    def monotonic_s(self):
        return time.monotonic()


class CountedIds:
    """The first one is 1."""

    def __init__(self):
        self._count = 0

    def _next(self):
        self._count += 1
        return self._count

    def time_uuid(self):
        return uuid.UUID(int=self._next())

    random_uuid = time_uuid

    def token(self, size):
        return f"{self._next():0{2 * size}x}"


class NamedNetwork:
    """Any name can be bound, and is known to who connects by the same object."""

    def __init__(self):
        self._machine = Environment().network
        self._ports = {}

    def bind(self, host, port):
        (listener,) = self._machine.bind("127.0.0.1", 0)
        self._ports[host, port] = listener.port
        return [listener]

    async def connect(self, make, host, port, **tls):
        return await self._machine.connect(make, "127.0.0.1", self._ports[host, port], **tls)


def machine(network, clock=None):
    return Environment(clock=clock or MovedClock(), ids=CountedIds(), network=network)


def broker_at(environment, **stores):
    settings = SettingsRepository()
    settings.add("#", AddressSettings(expiry_address="Expired"))
    acceptor = AcceptorOptions(host="orders.example", port=61616)
    options = BrokerOptions(acceptors=(acceptor,), settings=settings)
    return Broker(options, environment=environment, **stores)


def run(work):
    return asyncio.run(asyncio.wait_for(work, 60))


def test_a_message_expires_by_the_clock_that_was_handed_in():
    async def live():
        network, clock = NamedNetwork(), MovedClock()
        broker = broker_at(machine(network, clock))
        await broker.start()
        try:
            async with AsyncClient(URI, environment=machine(network, clock)) as client:
                session = await client.session()
                for name in ("orders", "Expired"):
                    await session.create_queue(name)
                producer = session.producer("orders")
                await producer.send("too late", time_to_live_ms=1000)
                await producer.send("in time", time_to_live_ms=2000)
                clock.wall_ms += 1001
                async with await session.consumer("orders") as consumer:
                    received = await consumer.receive()
                    assert await consumer.receive_now() is None
                async with await session.consumer("Expired") as consumer:
                    expired = await consumer.receive()
            return received, expired
        finally:
            await broker.stop()

    received, expired = run(live())

    assert received.content == "in time"
    assert received.message.timestamp == START_MS
    assert received.message.expiration == START_MS + 2000
    assert expired.content == "too late"


def test_ids_are_those_that_were_handed_in():
    async def live():
        network = NamedNetwork()
        broker = broker_at(machine(network))
        await broker.start()
        try:
            async with AsyncClient(URI, environment=machine(network)) as client:
                session = await client.session()
                await session.create_queue("orders")
                await session.producer("orders").send("x")
                (seen,) = broker.clients.sessions.values()
                producers = [one.name for one in seen.producers.values()]
                return broker.node_id, list(broker.clients.connections), seen.name, producers
        finally:
            await broker.stop()

    node_id, connections, session, producers = run(live())

    assert node_id == str(uuid.UUID(int=1))
    assert connections == ["00000002"]
    assert session == str(uuid.UUID(int=1))
    assert producers == [f"artemis:sender:ID:{uuid.UUID(int=3)}"]


class Memory:
    """The stores of a broker; what it loses of messages is what was not durable."""

    def __init__(self, folder):
        self._folder = folder
        self.bindings = MemoryStore(is_prompt=True)
        self.messages = MemoryStore()

    def crash(self):
        """What a next broker finds."""
        left = Memory(self._folder)
        left.bindings = MemoryStore(self.bindings.ops, is_prompt=True)
        left.messages = MemoryStore(self.messages.ops[: self.messages.durable], is_prompt=True)
        return left

    async def open(self, options, *, on_lost, wait):
        return Stores(
            bindings=self.bindings,
            messages=self.messages,
            node_id=NODE_ID,
            is_shared=False,
            large=None,
            pages=None,
            history=None,
            folders=(),
            spill_folder=self._folder,
            page_size_max=None,
            sync_transactional=True,
            sync_non_transactional=True,
            _activated=lambda: None,
            _paused=lambda: None,
            _closers=[],
        )


async def appended(store, count):
    while len(store.ops) < count:  # noqa: ASYNC110 - it has no event.
        await asyncio.sleep(0)


def test_a_sender_is_answered_when_a_store_without_a_thread_says_it_is_durable(tmp_path):
    async def send(memory):
        network = NamedNetwork()
        broker = broker_at(machine(network), open_stores=memory.open)
        await broker.start()
        async with AsyncClient(URI, environment=machine(network)) as client:
            session = await client.session()
            await session.create_queue("orders")
            producer = session.producer("orders")
            first = asyncio.ensure_future(producer.send("durable"))
            await appended(memory.messages, 1)
            was_answered = first.done()
            memory.messages.step(1000)
            await first
            count = len(memory.messages.ops)
            second = asyncio.ensure_future(producer.send("lost"))
            await appended(memory.messages, count + 1)
            left = memory.crash()
            broker.acceptors[0].close_connections()
            with pytest.raises(NotConnected):
                await second
        await broker.stop()
        return was_answered, left

    async def receive(memory):
        network = NamedNetwork()
        broker = broker_at(machine(network), open_stores=memory.open)
        await broker.start()
        async with AsyncClient(URI, environment=machine(network)) as client:
            session = await client.session()
            async with await session.consumer("orders") as consumer:
                found = await consumer.receive(), await consumer.receive_now()
        await broker.stop()
        return broker.node_id, found

    was_answered, left = run(send(Memory(tmp_path)))
    node_id, (first, second) = run(receive(left))

    assert not was_answered
    assert node_id == NODE_ID
    assert first.content == "durable"
    assert second is None
