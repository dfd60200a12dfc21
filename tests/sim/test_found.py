"""What simulations have found in the broker, each as a test of its own."""

import random

import pytest

from broker.client import AckMode
from broker.client.aio import AsyncClient
from broker.client.errors import BrokerRefused
from tests.sim.loop import SimLoop
from tests.sim.network import Network
from tests.sim.node import Node, environment_of
from tests.sim.store import RECORD_SIZE_MAX


class OneNode:
    """A broker, and a client on another machine."""

    def __init__(self, seed=1):
        self.loop = SimLoop(random.Random(seed))
        self.network = Network(self.loop)
        self.node = Node(self.network, "a", random.Random(seed))
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
                # Without a waiter: nobody has told the broker yet.
                one.node.broker.storage._messages._fail("cannot write")
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
