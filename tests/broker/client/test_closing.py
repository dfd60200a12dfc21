"""A client that is closed while its broker does not answer leaves nothing behind."""

import asyncio

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
