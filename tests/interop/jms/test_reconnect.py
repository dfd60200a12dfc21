"""Artemis's JMS client loses its connection, and its broker; nothing is lost or doubled."""

import random
import time

import pytest

from broker.client.blocking import Client
from broker.client.errors import BrokerRefused
from broker.protocols.core.packet_queue import QueueQuery, QueueQueryResponse
from tests.broker.serve import BrokerProcess
from tests.broker.wire_client import WireClient
from tests.interop.artemis import PeerUnavailableError
from tests.interop.jms.client import JmsClient
from tests.proxy import Proxy

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COUNT = 3000
CUTS = 12
# More than can be on its way when a connection is lost: both clients are at work again.
PROGRESS = 20
KILLS = 4
FOR_EVER = "?reconnectAttempts=-1&initialConnectAttempts=-1&retryInterval=20&callFailoverTimeout=-1"
# A session with a confirmation window is taken up where it was.
REATTACH = f"{FOR_EVER}&blockOnAcknowledge=true&confirmationWindowSize=20000"


@pytest.fixture
def clients():
    """`clients(port)`: a producer and a consumer, each in a JVM of its own."""
    made = []

    def new(port):
        try:
            made.extend(JmsClient(port) for _ in range(2))
        except PeerUnavailableError as missing:
            pytest.skip(str(missing))
        return made

    yield new
    for client in made:
        client.close()


@pytest.fixture
def brokers(tmp_path):
    """`brokers(port)`: a broker on this test's folder, which ends with the test."""
    made = []

    def new(port=0):
        made.append(BrokerProcess(tmp_path, port))
        return made[-1]

    yield new
    made[-1].stop()


class Progress:
    """How far both clients have come, asked of the broker on a connection that stays.

    Artemis's client waits for `callTimeout` when its connection is lost while it reattaches: the
    thread that fails the new connection waits for the one that reattaches, and that one for an
    answer. Its own broker sees the same. So the next cut comes when both work again.
    """

    def __init__(self, session):
        self._session = session

    def wait(self):
        """Until both have come further than now."""
        least = [min(COUNT, count + PROGRESS) for count in self._counts()]
        while any(count < wanted for count, wanted in zip(self._counts(), least, strict=True)):
            time.sleep(0.02)

    def _counts(self):
        try:
            return [
                self._session.attribute("queue.q", name)
                for name in ("messagesAdded", "messagesAcknowledged")
            ]
        except BrokerRefused:
            return [0, 0]  # The queue comes with the first message.


def wait_until_consumed(port):
    """Until both clients work: the queue is there, and its first messages were taken."""
    with WireClient(port, "looking") as looking:
        while True:
            looking.put(QueueQuery("q"))
            answer = looking.get(QueueQueryResponse)
            if answer.exists and answer.consumer_count:
                return
            time.sleep(0.05)


def test_a_session_taken_up_again_loses_and_doubles_nothing(brokers, clients):
    seeded = random.Random(5)
    broker = brokers()
    with Proxy(broker.port) as proxy, Client(f"tcp://127.0.0.1:{broker.port}") as looking:
        progress = Progress(looking.session())
        producer, consumer = clients(proxy.port)
        producer.begin("produce", "q", COUNT, REATTACH)
        consumer.begin("consume", "q", COUNT - 1, REATTACH)
        for _ in range(CUTS):
            progress.wait()
            time.sleep(seeded.uniform(0, 0.1))
            proxy.reset()

        assert producer.end() == "0"
        found = consumer.end().split()

    assert found == [str(number) for number in range(COUNT)]
    assert broker.stop() == 0


def test_after_kill_9_of_the_broker_the_client_goes_on(brokers, clients):
    seeded = random.Random(6)
    broker = brokers()
    producer, consumer = clients(broker.port)
    producer.begin("produce", "q", COUNT, FOR_EVER, "id")
    consumer.begin("consume", "q", COUNT - 1, FOR_EVER)
    # What a client asks for before it has a session that it can begin anew fails.
    wait_until_consumed(broker.port)
    for _ in range(KILLS):
        time.sleep(seeded.uniform(0.3, 1))
        broker.kill()
        broker = brokers(broker.port)

    producer.end()
    found = [int(text.rstrip("!")) for text in consumer.end().split()]

    # What was delivered, and not known to be acknowledged when the broker died, comes again.
    assert list(dict.fromkeys(found)) == list(range(COUNT))
    assert broker.stop() == 0
