"""A broker rejects a session: a new one fails at once, a lost one is asked for again."""

import asyncio
import contextlib
import time

import pytest

from broker.client import AsyncClient, BrokerRefused, NotConnected
from broker.errors import BrokerError, ErrorCode
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.sessions.resource_limits import UserLimits
from broker.transport.acceptor import AcceptorOptions
from tests.interop.asynchronous import asynchronous

WAIT_S = 30
ANYWHERE = (AcceptorOptions(name="a", host="127.0.0.1", port=0),)


@contextlib.asynccontextmanager
async def serving(**options):
    broker = Broker(BrokerOptions(acceptors=ANYWHERE, **options))
    await broker.start()
    try:
        yield broker, f"tcp://127.0.0.1:{broker.acceptors[0].port}"
    finally:
        await broker.stop()


class Starting:
    """Rejects the sessions of a broker, as one that has not started yet, so many times."""

    def __init__(self, broker, times):
        self.left = times
        self.rejected = 0
        self._create = broker.clients.create_session
        broker.clients.create_session = self._create_or_reject

    def _create_or_reject(self, *args, **options):
        if self.rejected == self.left:
            return self._create(*args, **options)
        self.rejected += 1
        raise BrokerError(ErrorCode.SESSION_CREATION_REJECTED, "AMQ229034: Server not started")


@asynchronous
async def test_a_session_too_many_is_an_error_at_once():
    async with (
        serving(resource_limits={"anna": UserLimits(max_sessions=1)}) as (_, uri),
        AsyncClient(uri, user="anna") as client,
    ):
        connection = await client.connect()
        await connection.session()

        with pytest.raises(BrokerRefused, match="Too many sessions for user 'anna'") as refused:
            await asyncio.wait_for(connection.session(), WAIT_S)

        assert refused.value.code == ErrorCode.SESSION_CREATION_REJECTED


@asynchronous
async def test_a_lost_session_waits_for_a_broker_that_is_starting():
    async with (
        serving() as (broker, uri),
        AsyncClient(uri, reconnect_attempts=1) as client,
    ):
        connection = await client.connect()
        session = await connection.session()
        back = asyncio.Event()
        connection.on_reconnected = back.set
        starting = Starting(broker, 5)

        connection.fail(NotConnected("a test"))
        await asyncio.wait_for(back.wait(), WAIT_S)

        assert starting.rejected == 5
        await session.create_queue("q")


@asynchronous
async def test_a_lost_session_that_is_rejected_for_good_ends_with_the_broker_s_words():
    async with (
        serving() as (broker, uri),
        AsyncClient(uri, reconnect_attempts=2, retry_interval=10, call_timeout=200) as client,
    ):
        connection = await client.connect()
        await connection.session()
        ended = asyncio.get_running_loop().create_future()
        connection.on_ended = ended.set_result
        starting = Starting(broker, -1)

        began = time.monotonic()
        connection.fail(NotConnected("a test"))
        error = await asyncio.wait_for(ended, WAIT_S)

        # Two attempts of call_timeout each, with a pause of 10 ms between two questions.
        assert time.monotonic() - began >= 0.4
        assert 2 < starting.rejected <= 50
        assert str(error) == (
            "no attempt is left: a test; the last one: AMQ229034: Server not started"
        )
        with pytest.raises(NotConnected, match="AMQ229034"):
            await connection.session()
