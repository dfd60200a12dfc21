"""Our client loses its connection to Artemis's broker, and the broker itself."""

import asyncio
import contextlib
import uuid

import pytest

from broker.client import errors
from broker.client.aio import AsyncClient
from broker.client.session_state import AckMode
from tests.interop.asynchronous import asynchronous
from tests.proxy import Proxy

WAIT_S = 30
FOR_EVER = {"reconnect_attempts": -1, "retry_interval": 50}


@pytest.fixture
def proxy(artemis_broker):
    with Proxy(artemis_broker.port) as proxy:
        yield proxy


def client_by(proxy, broker, **options):
    uri = f"tcp://127.0.0.1:{proxy.port}"
    return AsyncClient(uri, user=broker.USER, password=broker.PASSWORD, **options)


async def make_queue(session):
    name = f"queue.{uuid.uuid4()}"
    await session.create_queue(name)
    return name


def reconnected(connection):
    """An event set at the next reconnect."""
    event = asyncio.Event()
    connection.on_reconnected = event.set
    return event


@asynchronous
async def test_sends_of_a_reattached_session_arrive_all(artemis_broker, proxy):
    options = {"confirmation_window_size": 20_000, **FOR_EVER}
    async with client_by(proxy, artemis_broker, **options) as client:
        for _ in range(3):
            # Artemis counts a packet as handled when its sync is done. So it handles some
            # of what was under way twice, hence the duplicate id; and then its count is too
            # high, hence a session for each time.
            session = await client.session()
            queue = await make_queue(session)
            producer = session.producer(queue)
            confirmations = []
            for number in range(100):
                headers = {"properties": {"n": number}, "duplicate_id": f"{queue}.{number}"}
                confirmations.append(await producer.post(bytes(300), **headers))
                if number == 40:
                    back = reconnected(client.connections[0])
                    proxy.reset()
                    await back.wait()
            await asyncio.gather(*confirmations)

            async with await session.consumer(queue) as consumer:
                received = [(await consumer.receive(WAIT_S)).get("n") for _ in range(100)]
                assert await consumer.receive_now() is None
            assert received == list(range(100))
            await session.close()


@asynchronous
async def test_a_reattached_consumer_gets_what_was_lost_and_nothing_twice(artemis_broker, proxy):
    options = {"confirmation_window_size": 20_000, **FOR_EVER}
    async with (
        client_by(proxy, artemis_broker, **options) as client,
        client_by(proxy, artemis_broker, **FOR_EVER) as other,
    ):
        session = await client.session()
        queue = await make_queue(session)
        consumer = await session.consumer(queue)
        received = []
        for first in range(0, 200, 50):
            back = reconnected(client.connections[0])
            producer = (await other.session()).producer(queue)
            for number in range(first, first + 50):
                await producer.send(bytes(300), properties={"n": number})
            proxy.reset()
            await back.wait()
            while len(received) < first + 50:
                received.append((await consumer.receive(WAIT_S)).get("n"))
            # What the broker is still writing when a session is taken up, Artemis does twice.
            await session.query_queue(queue)

        assert received == list(range(200))
        assert await consumer.receive_now() is None
        assert (await session.query_queue(queue)).message_count == 0


@asynchronous
async def test_without_a_confirmation_window_the_session_begins_anew(artemis_broker, proxy):
    async with client_by(proxy, artemis_broker, **FOR_EVER) as client:
        session = await client.session(AckMode.CLIENT, ack_batch_size=0)
        queue = await make_queue(session)
        await session.create_queue(f"{queue}.own", durable=False, temporary=True)
        await session.add_metadata("whose", "ours")
        producer = session.producer(queue)
        await producer.send("before")
        consumer = await session.consumer(queue)
        own = await session.consumer(f"{queue}.own")
        first = await consumer.receive(WAIT_S)

        back = reconnected(client.connections[0])
        proxy.reset()
        await back.wait()
        again = await consumer.receive(WAIT_S)
        await again.acknowledge()
        await producer.send("to our own", address=f"{queue}.own")

        assert (first.text, again.text) == ("before", "before")
        assert (await own.receive(WAIT_S)).text == "to our own"
        other = await client.session()
        with pytest.raises(errors.BrokerRefused):
            await other.add_metadata("whose", "ours", unique=True)


@asynchronous
async def test_calls_wait_while_the_connection_comes_back(artemis_broker, proxy):
    async with client_by(proxy, artemis_broker, **FOR_EVER) as client:
        session = await client.session()
        queue = await make_queue(session)

        proxy.cut()
        waiting = asyncio.ensure_future(session.query_queue(queue))
        await asyncio.sleep(0.2)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.1)
        proxy.resume()

        # The call may have left before the cut was seen: then its outcome is unknown.
        try:
            assert (await waiting).exists
        except errors.CallInterrupted:
            assert (await session.query_queue(queue)).exists


@asynchronous
async def test_a_transaction_that_lost_its_connection_is_rolled_back(artemis_broker, proxy):
    async with client_by(proxy, artemis_broker, **FOR_EVER) as client:
        session = await client.session(AckMode.TRANSACTED)
        queue = await make_queue(session)
        producer = session.producer(queue)
        await producer.send("lost")

        back = reconnected(client.connections[0])
        proxy.reset()
        await back.wait()
        with pytest.raises(errors.TransactionRolledBack):
            await session.commit()
        await producer.send("kept")
        await session.commit()

        async with await session.consumer(queue) as consumer:
            assert (await consumer.receive(WAIT_S)).text == "kept"
            assert await consumer.receive_now() is None


@asynchronous
async def test_without_attempts_the_session_ends(artemis_broker, proxy):
    async with client_by(proxy, artemis_broker) as client:
        session = await client.session()
        queue = await make_queue(session)
        consumer = await session.consumer(queue)
        waiting = asyncio.ensure_future(consumer.receive())
        await asyncio.sleep(0)
        ended = asyncio.get_running_loop().create_future()
        client.connections[0].on_ended = ended.set_result

        proxy.reset()

        assert isinstance(await ended, errors.NotConnected)
        with pytest.raises(errors.NotConnected):
            await waiting
        with pytest.raises(errors.ClosedError):
            await session.query_queue(queue)


@asynchronous
async def test_attempts_come_to_an_end(artemis_broker, proxy):
    options = {"reconnect_attempts": 3, "retry_interval": 1}
    async with client_by(proxy, artemis_broker, **options) as client:
        await client.session()
        ended = asyncio.get_running_loop().create_future()
        client.connections[0].on_ended = ended.set_result

        proxy.cut()

        with pytest.raises(errors.NotConnected, match="no attempt is left"):
            raise await ended


@asynchronous
async def test_a_silent_broker_is_given_up(artemis_broker, proxy):
    options = {"connection_ttl": 600, "check_period": 200, **FOR_EVER}
    async with client_by(proxy, artemis_broker, **options) as client:
        session = await client.session()
        failure = asyncio.get_running_loop().create_future()
        client.connections[0].on_failure = failure.set_result
        back = reconnected(client.connections[0])

        proxy.stall()
        error = await failure
        proxy.resume()
        await back.wait()

        assert "nothing from the broker" in str(error)
        assert not (await session.query_queue("nowhere")).exists


@asynchronous
async def test_what_was_confirmed_is_there_after_a_kill_of_the_broker(artemis_broker):
    broker = artemis_broker
    async with AsyncClient(
        broker.uri, user=broker.USER, password=broker.PASSWORD, **FOR_EVER
    ) as client:
        session = await client.session(call_failover_timeout=-1)
        queue = await make_queue(session)
        producer = session.producer(queue)
        for number in range(20):
            await producer.send(str(number))
        back = reconnected(client.connections[0])

        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
        await back.wait()
        await producer.send("after")

        async with await session.consumer(queue) as consumer:
            texts = [(await consumer.receive(WAIT_S)).text for _ in range(21)]
        assert texts == [*map(str, range(20)), "after"]


@asynchronous
async def test_the_second_broker_of_a_list_is_used_when_the_first_is_not_there(artemis_broker):
    broker = artemis_broker
    uri = f"(tcp://127.0.0.1:1,{broker.uri})?retryInterval=10"
    async with AsyncClient(uri, user=broker.USER, password=broker.PASSWORD) as client:
        session = await client.session()

        assert client.connections[0].connector.port == broker.port
        assert not (await session.query_queue("nowhere")).exists
