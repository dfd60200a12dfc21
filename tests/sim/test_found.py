"""What simulations have found in the broker and its client, each as a test of its own."""

import asyncio
import contextlib
import random

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import (
    BrokerRefused,
    CallInterrupted,
    ClientError,
    TransactionRolledBack,
)
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from jdbcstore.node import NodeManager
from journal.errors import JournalClosed
from tests.sim.loop import SimLoop
from tests.sim.network import Network
from tests.sim.node import Node, environment_of
from tests.sim.pair import Pair
from tests.sim.sql_pair import SqlPair, SqlStorage
from tests.sim.store import RECORD_SIZE_MAX
from tests.sim.threads import Threads


class OneNode:
    """A broker, and a client on another machine."""

    def __init__(self, seed=1):
        self.loop = SimLoop(random.Random(seed))
        self.network = Network(self.loop)
        options = {"settings": SettingsRepository()}
        self.node = Node(self.network, "a", random.Random(seed), options)
        self.process = self.loop.process("client", self.network.host("client"))
        self.loop.run_until_complete(self.node.start())

    def client(self, **options):
        environment = environment_of(self.process, random.Random(1))
        return AsyncClient("tcp://a:61616", environment=environment, **options)

    def run(self, work):
        return self.loop.run_until_complete(self.process.spawn(work))


@pytest.fixture
def one():
    made = OneNode()
    yield made
    made.loop.close()


def test_a_commit_is_refused_where_the_store_has_failed_before_its_acknowledgements(one):
    """Nothing of it was recorded, and the client was told that it counts."""

    async def work():
        async with (
            one.client() as client,
            await client.session() as sender,
            await client.session(AckMode.TRANSACTED) as session,
        ):
            await sender.create_queue("q", "q")
            await sender.producer("q").send(b"x")
            async with await session.consumer("q") as consumer:
                assert await consumer.receive(5) is not None
                # Without a waiter: the broker is not told yet.
                one.node.broker.parts.storage._messages._fail("cannot write")
                with pytest.raises(BrokerRefused):
                    await session.commit()

    one.run(work())


def test_a_record_that_is_too_large_fails_its_whole_transaction(one):
    """What the transaction had acknowledged is delivered again."""

    async def work():
        async with (
            one.client(min_large_message_size=10_000_000) as client,
            await client.session() as sender,
            await client.session(AckMode.TRANSACTED) as session,
        ):
            await sender.create_queue("q", "q")
            await sender.producer("q").send(b"x")
            async with await session.consumer("q") as consumer:
                await consumer.receive(5)
                await session.producer("q").send(bytes(RECORD_SIZE_MAX))
                with pytest.raises(BrokerRefused):
                    await session.commit()
                again = await consumer.receive(5)
                assert again is not None
                assert again.is_redelivered

    one.run(work())


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_a_large_message_that_finds_the_disk_full_fails_its_transaction(one, size):
    """Its client waits for no answer but the commit's."""

    async def work():
        async with (
            one.client() as client,
            await client.session() as sender,
            await client.session(AckMode.TRANSACTED) as session,
        ):
            await sender.create_queue("q", "q")
            one.node.storage.disk.is_full = True
            await session.producer("q").send(bytes(size))
            with pytest.raises(BrokerRefused):
                await session.commit()
            one.node.storage.disk.is_full = False
            await session.producer("q").send(bytes(size))
            await session.commit()
            assert (await sender.query_queue("q")).message_count == 1

    one.run(work())


def test_a_browser_is_closed_while_a_page_is_read_for_it(one):
    """The broker ended: what was read was shown to a browser that was not there any more."""
    settings = one.node.options["settings"]
    settings.add("paged", AddressSettings(max_size_messages=5, page_size_bytes=4096))

    async def work():
        async with one.client() as client, await client.session() as session:
            await session.create_queue("paged", "paged")
            for _ in range(20):
                await session.producer("paged").send(b"x")
            for delay_ms in range(20):
                consumer = await session.consumer("paged", browse=True)
                await asyncio.sleep(delay_ms / 2000)
                await consumer.close()

    one.run(work())

    assert one.loop.problems == []


# --- clients that reconnect ------------------------------------------------------------------


@contextlib.asynccontextmanager
async def reconnecting(one, mode, **options):
    """A client that has lost a session: that session, its consumer, another session."""
    async with (
        one.client(reconnect_attempts=-1, retry_interval=10) as client,
        await client.session() as other,
        await client.session(mode, **options) as session,
    ):
        await other.create_queue("q", "q")
        async with await session.consumer("q") as consumer:
            yield client, session, consumer, other


def lose(client):
    client.connections[0].fail(ClientError("lost"))


def test_a_commit_that_waits_for_a_reconnect_is_rolled_back(one):
    """The session is a new one, without the work: its commit says nothing."""

    async def work():
        async with reconnecting(one, AckMode.TRANSACTED) as (client, session, _, other):
            await session.producer("q").send(b"x")
            lose(client)
            with pytest.raises(TransactionRolledBack):
                await session.commit()
            assert (await other.query_queue("q")).message_count == 0

    one.run(work())


def test_a_transaction_that_only_received_is_rolled_back_with_its_connection(one):
    """Its acknowledgements were still collected: the broker had not heard of any."""

    async def work():
        async with reconnecting(one, AckMode.TRANSACTED) as (client, session, consumer, other):
            await other.producer("q").send(b"x")
            assert await consumer.receive(5) is not None
            lose(client)
            await asyncio.sleep(1)
            with pytest.raises(TransactionRolledBack):
                await session.commit()
            assert await consumer.receive(5) is not None
            await session.commit()
            assert await consumer.receive(1) is None
            assert (await other.query_queue("q")).message_count == 0

    one.run(work())


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_what_a_lost_session_delivered_is_not_acknowledged_by_the_next(one, mode):
    """It is at hand again: to acknowledge it unseen would deliver what is acknowledged."""
    options = {"ack_batch_size": 0, "block_on_acknowledge": True}

    async def work():
        async with reconnecting(one, mode, **options) as (client, _, consumer, other):
            await other.producer("q").send(b"x")
            received = await consumer.receive(5)
            lose(client)
            await asyncio.sleep(1)
            for _ in range(2):
                with pytest.raises(CallInterrupted, match="delivered again"):
                    await received.acknowledge()
            again = await consumer.receive(5)
            assert again.is_redelivered
            await again.acknowledge()
            assert (await other.query_queue("q")).message_count == 0

    one.run(work())


def test_a_session_delivers_behind_a_rollback_that_was_interrupted(one):
    async def work():
        async with reconnecting(one, AckMode.TRANSACTED) as (client, session, consumer, other):
            await other.producer("q").send(b"x")
            assert await consumer.receive(5) is not None
            rolling = asyncio.ensure_future(session.rollback())
            await asyncio.sleep(0)
            lose(client)
            with pytest.raises(CallInterrupted):
                await rolling
            assert await consumer.receive(5) is not None

    one.run(work())


class AlmostActive:
    """A primary whose database goes away when it has loaded, before it says that it is active."""

    def __init__(self):
        self.loop = SimLoop(random.Random(1))
        Threads(self.loop)
        network = Network(self.loop)
        store = self.store = SqlPair(network, "store", random.Random(1))

        class LosesItsDatabase(NodeManager):
            def activated(self):
                if store.activations == 1:
                    store.kill(is_power=False)
                super().activated()

        class Storage(SqlStorage):
            node_type = LosesItsDatabase

        store.storage_type = Storage
        self.primary = Pair(network, ("a", "b"), store, random.Random(1)).primary

    async def start(self):
        await self.store.start()
        await self.primary.start()
        await asyncio.sleep(1)
        assert self.store.process is None


@pytest.fixture
def almost():
    made = AlmostActive()
    yield made
    made.loop.close()


def test_a_stop_ends_a_start_whose_database_is_away_before_it_is_active(almost):
    """The event loop itself waited for the database: nothing else ran, not even the stop."""

    async def work():
        await almost.start()
        async with asyncio.timeout(3):
            await almost.primary.stop()
        assert almost.primary.process is None

    almost.loop.run_until_complete(work())


def test_a_start_ends_with_its_lease_where_the_database_stays_away(almost):
    """It went on asking the database whether it may be active, for ever."""

    async def work():
        await almost.start()
        await asyncio.sleep(20)
        assert isinstance(almost.primary.exits[0], JournalClosed)
        await almost.store.start()
        await asyncio.sleep(10)
        assert almost.primary.is_active

    almost.loop.run_until_complete(work())
