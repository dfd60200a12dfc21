"""A broker that was stopped in a process that goes on leaves nothing in memory.

Messages are not known to the collector of cycles: what they lead to must not lead back to them.
"""

import asyncio
import dataclasses
import gc
import weakref

import pytest

from benchmarks.bench_broker_start import QUEUE, message, options_of
from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.server.server import Broker
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from jdbcstore.options import DatabaseStoreOptions

COUNT = 20
# Larger than min-large-message-size.
LARGE_SIZE = 300_000


class Taken:
    """Keeps what is delivered."""

    def deliver(self, consumer, message, delivery_count):
        return 0

    def disconnected(self, consumer):
        pass


async def send(broker):
    """Let messages wait, one of them delivered."""
    session = broker.clients.create_session("session", None, SessionOptions(), set())
    broker.parts.administration.create_queue(
        QueueRequest(name=QUEUE, address=QUEUE, routing_type=RoutingType.ANYCAST)
    )
    recorded = asyncio.get_running_loop().create_future()

    def told(error, number):
        if number == COUNT - 1:
            recorded.set_result(error)

    for number in range(COUNT):
        session.send(Message.decode(message(number).encode()), told, number)
    assert await recorded is None
    consumer = session.create_consumer(0, QUEUE, Taken())
    consumer.receive_credits(1)
    session.start()


async def send_large(broker):
    """Let large messages wait, one of them delivered, over a connection that stays."""
    client = AsyncClient(f"tcp://127.0.0.1:{broker.acceptors[0].port}")
    session = await client.session(AckMode.CLIENT)
    await session.create_queue(QUEUE)
    for _ in range(2):
        await session.producer(QUEUE).send(bytes(LARGE_SIZE))
    consumer = await session.consumer(QUEUE)
    message = await consumer.receive(60)
    assert sum([len(chunk) async for chunk in message.chunks()]) == LARGE_SIZE
    return client


async def start_and_stop(folder, work, store=None):
    options = options_of(folder)
    broker = Broker(options if store is None else dataclasses.replace(options, store=store))
    await broker.start()
    client = await work(broker)
    await broker.stop()
    if client is not None:
        await client.close()
    return weakref.ref(broker)


async def nothing(broker):
    """A start that finds messages."""
    assert broker.parts.postoffice.addresses.queues[QUEUE].message_count == COUNT


@pytest.mark.parametrize("found", [False, True], ids=["sent", "found by a start"])
def test_stopped_broker_with_waiting_messages_is_collected(tmp_path, found, monkeypatch):
    monkeypatch.setattr("broker.storage.spill_file.KEPT_SIZE", 0)
    gone = asyncio.run(start_and_stop(tmp_path, send))
    if found:
        gone = asyncio.run(start_and_stop(tmp_path, nothing))

    gc.collect()

    assert gone() is None


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_stopped_broker_with_large_messages_is_collected(tmp_path, kind, new_database):
    store = None
    if kind == "sqlite":
        store = DatabaseStoreOptions(connection_url=new_database("sqlite").url)

    gone = asyncio.run(start_and_stop(tmp_path, send_large, store))
    gc.collect()

    assert gone() is None
