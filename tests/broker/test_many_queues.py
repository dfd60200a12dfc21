"""10,000 queues with a message each, made by sending, before and after a restart."""

import asyncio
import time
from pathlib import Path

import pytest

from broker.client import AckMode, AsyncClient, make_message
from broker.model.routing_type import RoutingType
from tests.interop.our_broker import OurBroker

COUNT = 10_000
CALL_TIMEOUT_MS = 120_000
BATCHES = [range(first, first + 200) for first in range(0, COUNT, 200)]
# Of the broker's memory, for an address with a queue and a message. 5 KiB were seen.
EACH_MAX = 40 * 1024


def memory(process):
    """Bytes of a process that are in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def queued(text):
    """A message that makes a queue where there is none."""
    message = make_message(text)
    message.routing_type = RoutingType.ANYCAST
    return message


async def fill(client):
    async with await client.session() as session:
        producer = session.producer()
        for batch in BATCHES:
            await asyncio.gather(
                *(producer.send(queued(str(n)), address=f"many.{n}") for n in batch)
            )


async def take(session, number):
    consumer = await session.consumer(f"many.{number}")
    received = await consumer.receive()
    await received.acknowledge()
    await consumer.close()
    return received.text


async def drain(client):
    """Take from all; what came from each."""
    found = []
    async with await client.session(AckMode.CLIENT) as session:
        for batch in BATCHES:
            found += await asyncio.gather(*(take(session, number) for number in batch))
    return found


@pytest.mark.slow
def test_ten_thousand_queues_are_filled_restarted_and_drained(tmp_path, figures):
    broker = OurBroker(tmp_path)

    async def run(work):
        client = AsyncClient(
            broker.uri, user=broker.USER, password=broker.PASSWORD, call_timeout=CALL_TIMEOUT_MS
        )
        async with client:
            return await work(client)

    before = memory(broker.process)
    begun_s = time.monotonic()
    asyncio.run(run(fill))
    filled_s = time.monotonic() - begun_s
    each = (memory(broker.process) - before) // COUNT
    assert broker.end() == 0

    begun_s = time.monotonic()
    broker.start()
    started_s = time.monotonic() - begun_s
    found = asyncio.run(run(drain))
    assert found == [str(number) for number in range(COUNT)]
    figures(
        "many queues",
        queues=COUNT,
        bytes_each=each,
        filled_s=round(filled_s, 1),
        started_s=round(started_s, 1),
    )
    assert each < EACH_MAX
    assert broker.end() == 0
    assert "Traceback" not in broker.log()
