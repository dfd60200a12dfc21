"""A connection that is lost again while its sessions are restored."""

import asyncio

import pytest

from broker.client import AsyncClient, NotConnected
from broker.client.aio import restoring
from tests.broker.client.test_rejected_sessions import serving
from tests.interop.asynchronous import asynchronous

# Far less than a call may take.
WAIT_S = 15
CALL_TIMEOUT_MS = 60_000


class Cut:
    """Has a broker leave while a queue or a consumer is asked for again, so many times."""

    def __init__(self, monkeypatch, acceptor, times):
        self.left = times
        self._acceptor = acceptor
        self._settled = restoring.settled
        monkeypatch.setattr(restoring, "settled", self._cut)

    async def _cut(self, reply, timeout_s, what):
        if self.left:
            self.left -= 1
            for connection in list(self._acceptor.connections):
                connection.abort()
        return await self._settled(reply, timeout_s, what)


@pytest.mark.parametrize("window", [-1, 1 << 20], ids=["gone", "kept by the broker"])
@asynchronous
async def test_it_is_tried_again_at_once_and_all_of_it_is_there(monkeypatch, window):
    options = {"call_timeout": CALL_TIMEOUT_MS, "confirmation_window_size": window}
    async with (
        serving() as (broker, uri),
        AsyncClient(uri, reconnect_attempts=-1, retry_interval=10, **options) as client,
    ):
        connection = await client.connect()
        session = await connection.session()
        await session.create_queue("q")
        consumer = await session.consumer("q")
        back = asyncio.Event()
        connection.on_reconnected = back.set
        cut = Cut(monkeypatch, broker.acceptors[0], 3)

        # The broker knows no session of that name.
        session.state.new_name()
        connection.fail(NotConnected("a test"))
        await asyncio.wait_for(back.wait(), WAIT_S)

        assert not cut.left
        await session.producer("q").send("arrives")
        received = await asyncio.wait_for(consumer.receive(), WAIT_S)
        assert received.content == "arrives"
