"""Large messages of OpenWire: kept beside the journal, whole after a restart, and for others."""

import pytest

from broker.model.bodies import decode_text
from broker.protocols.openwire import commands as c
from tests.broker.protocols.openwire.client import OpenWire, text_of
from tests.broker.protocols.stomp.client import Stomp, core, serving
from tests.interop.asynchronous import asynchronous

QUEUE = c.ActiveMQQueue("q")
TEXT = "Größe — " * 60_000


def bodies(folder):
    return list((folder / "large").iterdir())


async def send(broker):
    async with OpenWire.of(broker) as client:
        await client.ask(client.text(QUEUE, TEXT))


@asynchronous
async def test_it_is_whole_after_a_restart(tmp_path):
    async with serving(tmp_path) as broker:
        await send(broker)
    async with serving(tmp_path) as broker, OpenWire.of(broker) as client:
        consumer = await client.consume(QUEUE)
        got = await client.message()
        assert text_of(got) == TEXT
        await client.ask(client.ack(consumer, got))
    assert bodies(tmp_path) == []


@pytest.mark.parametrize("restarts", [False, True])
@asynchronous
async def test_a_core_consumer_reads_it(tmp_path, restarts):
    async with serving(tmp_path) as broker:
        await send(broker)
        if not restarts:
            await read(broker)
    if restarts:
        async with serving(tmp_path) as broker:
            await read(broker)
    assert bodies(tmp_path) == []


async def read(broker):
    async with core(broker) as session:
        got = await (await session.consumer("q")).receive(30)
        assert got.is_large
        assert decode_text(await got.read()) == TEXT
        await got.acknowledge()


@asynchronous
async def test_a_stomp_consumer_reads_it(tmp_path):
    async with serving(tmp_path) as broker:
        await send(broker)
        async with Stomp.of(broker) as stomp:
            stomp.put("SUBSCRIBE", {"id": "1", "destination": "q"})
            assert (await stomp.get("MESSAGE")).body.decode() == TEXT
