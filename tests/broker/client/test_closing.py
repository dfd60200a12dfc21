"""A client that is closed while its broker does not answer leaves nothing behind."""

import asyncio
import gc

import pytest

from broker.client import AsyncClient
from broker.embedded import EmbeddedBroker
from tests.broker.bridges.jms.cutting import UP, CuttingProxy
from tests.interop.asynchronous import asynchronous

WAIT_S = 10
LATE_S = 1


@pytest.mark.parametrize("attempts", [0, 5])
@asynchronous
async def test_a_cancelled_close_ends_the_connection(attempts):
    """Also one that would be taken up again: its consumers would hold messages for good."""
    async with EmbeddedBroker() as running, CuttingProxy(running.port) as proxy:
        client = AsyncClient(f"tcp://127.0.0.1:{proxy.port}", reconnect_attempts=attempts)
        session = await client.session()
        await session.create_queue("q")
        await session.consumer("q")
        proxy.late_at(UP, 1, LATE_S)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.close()

        assert client.connections == ()
        async with asyncio.timeout(WAIT_S):
            while running.broker.clients.sessions:  # noqa: ASYNC110 - what is asked has no event.
                await asyncio.sleep(0.01)


@asynchronous
async def test_a_send_that_nobody_waits_for_fails_in_silence():
    """asyncio would report an exception that was never retrieved."""
    reported = []
    async with EmbeddedBroker() as running, CuttingProxy(running.port) as proxy:
        client = AsyncClient(f"tcp://127.0.0.1:{proxy.port}")
        session = await client.session()
        await session.create_queue("q")
        producer = session.producer("q")
        await producer.send("one")
        proxy.late_at(UP, 1, LATE_S)
        await producer.post("two")

        # The broker has set one, too.
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        proxy.reset()
        async with asyncio.timeout(WAIT_S):
            while not client.connections[0].is_ended:  # noqa: ASYNC110 - likewise.
                await asyncio.sleep(0.01)
        await client.close()
        gc.collect()

    assert reported == []
