"""One of a pair that may have lost its lease, and cannot ask, keeps no client waiting."""

import asyncio
import contextlib
import dataclasses

import pytest

from broker.client.aio import AsyncClient
from broker.client.errors import ClientError
from broker.options import BrokerOptions, WebOptions
from broker.server.lifecycle import HaState, ServerState
from broker.server.server import Broker
from broker.transport.acceptor import AcceptorOptions
from jdbcstore.options import DatabaseStoreOptions
from journal.errors import JournalError
from tests.broker.bridges.two_brokers import until
from tests.broker.management.test_web import get
from tests.broker.test_pair_steps import listen, told
from tests.interop.asynchronous import asynchronous
from tests.proxy import Proxy
from tests.servers import free_port

WAIT_S = 60
KINDS = pytest.mark.parametrize(
    "kind", ["postgresql", pytest.param("mariadb", marks=pytest.mark.slow)]
)
# A busy machine may be late with a renewal.
LEASE_MS = 4000
RETRIES = "reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=20"


@pytest.fixture
def relayed(new_database, kind):
    """A database, and a network to it that can be cut."""
    database = new_database(kind)
    with Proxy(database.server.port) as relay:
        yield database, relay


def options_of(database, port=None, *, is_backup=False, at=0):
    """Of one of a pair that reaches the database at that port; None is its own."""
    url = database.url
    if port is not None:
        url = url.replace(f":{database.server.port}/", f":{port}/")
        assert url != database.url
    return BrokerOptions(
        name="backup" if is_backup else "primary",
        store=DatabaseStoreOptions(
            connection_url=url,
            lock_expiration_ms=LEASE_MS,
            lock_renew_period_ms=LEASE_MS // 4,
            network_timeout_ms=30_000,
        ),
        acceptors=(AcceptorOptions(host="127.0.0.1", port=at),),
        web=(WebOptions(host="127.0.0.1", port=0),),
        is_backup=is_backup,
        shares_store=True,
        failover_on_shutdown=True,
    )


@contextlib.asynccontextmanager
async def stopped(*brokers):
    """Stop them in the end, also those that have failed."""
    try:
        yield
    finally:
        for broker in brokers:
            with contextlib.suppress(JournalError):
                await broker.stop()


async def send(producer, text):
    """Once: what a lost connection leaves open is sent again with its duplicate id."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return await producer.send(text, duplicate_id=text)
            except ClientError:
                await asyncio.sleep(0.02)


@KINDS
@asynchronous
async def test_clients_go_to_the_other_one_while_an_owner_cannot_ask_its_database(relayed):
    database, relay = relayed
    ports = free_port(), free_port()
    primary = Broker(options_of(database, relay.port, at=ports[0]))
    backup = Broker(options_of(database, is_backup=True, at=ports[1]))
    uri = f"(tcp://127.0.0.1:{ports[0]},tcp://127.0.0.1:{ports[1]})?{RETRIES}"
    async with stopped(primary, backup):
        await primary.start()
        starting = asyncio.create_task(backup.start())
        async with AsyncClient(uri) as client:
            session = await client.session()
            await session.create_queue("q")
            producer = session.producer("q")
            await send(producer, "before")
            await until(lambda: backup.lifecycle.ha_state is HaState.WAITING)

            relay.stall()
            await send(producer, "after")

            states = primary.lifecycle.ha_state, backup.lifecycle.ha_state
            not_ready = primary.lifecycle.not_ready
            _, _, metrics = await get(primary.web[0].port, "/metrics")
            await starting
            consumer = await session.consumer("q")
            found = [(await consumer.receive(WAIT_S)).text for _ in range(2)]
            more = await consumer.receive_now()
        relay.resume()
        async with asyncio.timeout(WAIT_S):
            failure = await primary.failed()

    assert states == (HaState.IN_DOUBT, HaState.ACTIVE)
    assert 'artemis_active{broker="primary"} 0.0' in metrics
    assert not_ready == "its lease has expired, and the database does not answer"
    assert found == ["before", "after"]
    assert more is None
    assert "another process has had the lease" in str(failure)


@KINDS
@asynchronous
async def test_an_owner_whose_database_answers_again_in_time_serves_at_the_same_port(relayed):
    database, relay = relayed
    # The system chooses the port.
    broker = Broker(options_of(database, relay.port))
    async with stopped(broker):
        await broker.start()
        await listen(broker)
        port = broker.acceptors[0].port
        async with AsyncClient(f"tcp://127.0.0.1:{port}?{RETRIES}") as client:
            session = await client.session()
            await session.create_queue("q")
            producer = session.producer("q")

            relay.stall()
            await until(lambda: broker.lifecycle.ha_state is HaState.IN_DOUBT)
            is_refused = await refused(port)
            relay.resume()
            await send(producer, "after")

            outage_ms = broker.lifecycle.outage_ms
            again = broker.acceptors[0].port
            # A busy machine may have been late with a renewal before.
            steps = (await told(broker))[-2:]

    assert is_refused
    assert again == port
    assert [one[0] for one in steps] == ["NODE_IN_DOUBT", "NODE_ACTIVE"]
    assert steps[1][2] == f"its lease was renewed, after {outage_ms} ms"
    assert steps[1][3] - steps[0][3] == outage_ms


@KINDS
@asynchronous
async def test_a_broker_without_a_pair_keeps_its_clients_while_its_database_is_away(relayed):
    database, relay = relayed
    broker = Broker(dataclasses.replace(options_of(database, relay.port), shares_store=False))
    async with stopped(broker):
        await broker.start()
        uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}?reconnectAttempts=0"
        async with AsyncClient(uri) as client:
            session = await client.session()
            await session.create_queue("q")
            relay.stall()
            sending = asyncio.create_task(session.producer("q").send("later"))
            await asyncio.sleep(2 * LEASE_MS / 1000)
            is_sent = sending.done()
            relay.resume()
            async with asyncio.timeout(WAIT_S):
                await sending

    assert not is_sent


@asynchronous
async def test_a_fault_of_the_look_at_the_lease_ends_the_broker(new_database, monkeypatch):
    """Ports that were given up would stay so without a word."""
    broker = Broker(options_of(new_database("sqlite")))
    async with stopped(broker):
        await broker.start()

        def fault(ownership):
            raise ValueError("planted")

        monkeypatch.setattr(type(broker.ownership), "check", fault)
        async with asyncio.timeout(WAIT_S):
            failure = await broker.failed()
        monkeypatch.undo()

    assert str(failure) == "planted"
    assert broker.lifecycle.state is ServerState.STOPPED


async def refused(port):
    """Whether nothing listens there any more, soon."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                return True
            writer.close()
            await asyncio.sleep(0.02)
