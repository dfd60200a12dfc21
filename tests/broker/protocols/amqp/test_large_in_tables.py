"""Large AMQP messages of a broker on a database: rows, whole after a restart, read in pieces."""

import asyncio

import pytest

from broker.client.aio import AsyncClient
from tests.broker.protocols.amqp.client import Capability, Client
from tests.broker.protocols.amqp.test_large import BODIES, READ
from tests.broker.serve import BrokerProcess
from tests.broker.test_large_in_tables import names
from tests.interop.asynchronous import asynchronous

KINDS = [
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.slow),
    pytest.param("mariadb", marks=pytest.mark.slow),
]


async def send(port):
    async with Client.of(port) as client:
        sender = await client.sender("q", Capability("queue"))
        for message in BODIES.values():
            message.durable = True
            await sender.send(message)


async def received(port):
    async with Client.of(port) as client:
        receiver = await client.receiver("q")
        found = []
        for _ in BODIES:
            found.append((await receiver.get()).body)
            await receiver.accept()
        return found


async def received_as_core(port):
    async with AsyncClient(f"tcp://127.0.0.1:{port}") as client, await client.session() as session:
        consumer = await session.consumer("q")
        found = []
        for kind in BODIES:
            one = await consumer.receive(60)
            found.append(READ[kind](await one.read()))
            await one.acknowledge()
        return found


@pytest.mark.parametrize("kind", KINDS)
@asynchronous
async def test_they_are_whole_after_a_restart(new_database, kind):
    database = new_database(kind)
    broker = await asyncio.to_thread(BrokerProcess, database.url)
    await send(broker.port)
    await send(broker.port)
    assert len(names(database)) == 2 * len(BODIES)
    assert await asyncio.to_thread(broker.stop) == 0
    broker = await asyncio.to_thread(BrokerProcess, database.url)
    try:
        sent = [message.body for message in BODIES.values()]
        assert await received(broker.port) == sent
        plain = [dict(one) if isinstance(one, dict) else one for one in sent]
        assert await received_as_core(broker.port) == plain
    finally:
        assert await asyncio.to_thread(broker.stop) == 0
    assert names(database) == set()
