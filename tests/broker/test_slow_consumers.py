"""Consumers that take less than they should."""

import asyncio

import pytest

from broker.client import errors
from broker.client.aio import AsyncClient
from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.sessions.slow_consumers import SlowConsumers
from broker.settings.policies import SlowConsumerPolicy, SlowConsumerUnit
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bench import done, message
from tests.broker.management.managed import ManagedBench


class Watched(ManagedBench):
    def __init__(self, **settings):
        super().__init__()
        self.set("q", **settings)
        self.queue("q")
        self.killed = []
        self.slow_ones = []
        self.slow = SlowConsumers(
            self.clock_ms,
            self.addresses.queues,
            self.notifications,
            lambda: {
                consumer: session
                for session in self.sessions.values()
                for consumer in session.consumers.values()
            },
            lambda session: self.killed.append(session.name),
            self.slow_ones.append,
        )
        self.queue("told", "activemq.notifications", is_durable=False)
        self.slow.look()

    def pass_period(self, consumer, acknowledged, sent=200, seconds=5):
        """Let time pass in which so many messages come and are acknowledged."""
        session = self.session()
        for number in range(sent):
            session.send(message(str(number)), done)
        for identity in consumer.ids[:acknowledged]:
            consumer.session.acknowledge(0, identity, done)
        del consumer.got[:acknowledged]
        self.loop.pass_time(seconds)
        self.slow.look()

    @property
    def told(self):
        found = self.addresses.queues["told"].references()
        kinds = [one.message for one in found]
        return [one for one in kinds if one.get("_AMQ_NotifType") == "CONSUMER_SLOW"]


def test_one_that_is_slow_is_told_of_again_and_again():
    bench = Watched(slow_consumer_threshold=10)
    consumer = bench.consume("q")

    bench.pass_period(consumer, 0)
    assert bench.told == []  # It came in this period.
    bench.pass_period(consumer, 49)
    bench.pass_period(consumer, 50)
    bench.pass_period(consumer, 0)

    assert len(bench.told) == 2
    told = bench.told[0]
    assert (told.get("_AMQ_Address"), told.get("_AMQ_ConsumerName")) == ("q", 0)
    assert told.get("_AMQ_SessionName") == consumer.session.name
    assert bench.killed == []
    assert bench.slow_ones == [consumer.consumer] * 2


def test_one_that_is_slow_is_killed_if_so_wanted():
    bench = Watched(slow_consumer_threshold=10, slow_consumer_policy=SlowConsumerPolicy.KILL)
    fast, slow = bench.consume("q"), bench.consume("q")

    bench.pass_period(fast, 0)
    bench.pass_period(fast, 60)

    assert bench.killed == [slow.session.name]
    assert bench.told == []


@pytest.mark.parametrize(
    ("settings", "acknowledged", "sent", "is_slow"),
    [
        ({"slow_consumer_threshold": -1}, 0, 200, False),
        # Nothing comes, nothing waits: no consumer could be fast.
        ({"slow_consumer_threshold": 10}, 0, 0, False),
        (
            {
                "slow_consumer_threshold": 60,
                "slow_consumer_threshold_measurement_unit": SlowConsumerUnit.MESSAGES_PER_MINUTE,
            },
            4,
            10,
            True,
        ),
        ({"slow_consumer_threshold": 10, "slow_consumer_check_period_s": 60}, 0, 200, False),
    ],
)
def test_thresholds_units_and_periods(settings, acknowledged, sent, is_slow):
    bench = Watched(**settings)
    consumer = bench.consume("q")
    bench.pass_period(consumer, 0, sent=0)

    bench.pass_period(consumer, acknowledged, sent=sent)

    assert bool(bench.told) == is_slow


async def receive_slowly(consumer):
    while True:
        await consumer.receive(0.5)
        await asyncio.sleep(0.1)


def test_a_client_that_is_killed_does_not_come_back():
    async def run():
        settings = SettingsRepository()
        settings.add(
            "q",
            AddressSettings(
                slow_consumer_threshold=1000,
                slow_consumer_check_period_s=1,
                slow_consumer_policy=SlowConsumerPolicy.KILL,
            ),
        )
        broker = Broker(
            BrokerOptions(acceptors=(AcceptorOptions(host="127.0.0.1", port=0),), settings=settings)
        )
        await broker.start()
        try:
            uri = f"tcp://127.0.0.1:{broker.acceptors[0].port}?reconnectAttempts=-1"
            async with AsyncClient(uri) as client:
                session = await client.session()
                await session.create_queue("q")
                consumer = await session.consumer("q")
                async with session.producer("q") as producer:
                    for number in range(2000):
                        await producer.post(str(number))
                with pytest.raises(errors.ClientError):
                    await asyncio.wait_for(receive_slowly(consumer), 60)
                with pytest.raises(errors.ClientError):
                    await client.session()
            assert broker.clients.connections == {}
        finally:
            await broker.stop()

    asyncio.run(run())
