"""Bridges between brokers on files, PostgreSQL and SQLite, in every pairing, through faults.

Each pairing moves messages with every quality of service at once. Connections are reset, and source
and target are killed (-9) and started again on the same port.
"""

import contextlib
import itertools
import time
from collections import Counter

import pytest

from broker.bridges.jms import CoreConnectionFactory, Destination, JMSBridge
from broker.client import Client, make_message
from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE, WAYS
from tests.broker.serve import BrokerProcess
from tests.proxy import Proxy

pytest.importorskip("psycopg", reason="psycopg is not installed: quiver-mq[postgresql] brings it")

STORES = ("file", "postgresql", "sqlite")
# In `make test-all`; the others are for the full length.
QUICK = {("file", "postgresql")}
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.soak)
    for pair in itertools.product(STORES, STORES)
]
COUNT, LEAST, ROUNDS = 600, 60, 10
END_S = 180


class Sides:
    """Source and target, each with a proxy before it, and a bridge for each quality of service."""

    def __init__(self, places, folder, stack):
        self.places, self.brokers, self.proxies = places, {}, {}
        for side, place in places.items():
            self.brokers[side] = BrokerProcess(place)
            # On the same port after a kill.
            stack.callback(lambda side=side: self.brokers[side].kill())
        self.ports = {side: one.port for side, one in self.brokers.items()}
        for side, port in self.ports.items():
            self.proxies[side] = stack.enter_context(Proxy(port))
        self.queues = {way: f"q{number}" for number, way in enumerate(WAYS)}
        for side in places:
            with self.session(side) as session:
                for queue in self.queues.values():
                    session.create_queue(queue)
        self.bridges = {way: self._bridge(way, folder) for way in WAYS}

    def _bridge(self, way, folder):
        quality, exactly_once = WAYS[way]
        queue = self.queues[way]
        factories = [
            (lambda made: lambda: made)(CoreConnectionFactory(f"tcp://127.0.0.1:{one.port}"))
            for one in (self.proxies["source"], self.proxies["target"])
        ]
        return JMSBridge(
            *factories,
            *2 * [lambda: Destination.queue(queue)],
            name=queue,
            quality_of_service=quality,
            exactly_once=exactly_once,
            max_batch_size=5,
            max_batch_time=20,
            failure_retry_interval=20,
            transaction_log=folder / f"log-{queue}",
        )

    @contextlib.contextmanager
    def session(self, side):
        with Client(f"tcp://127.0.0.1:{self.ports[side]}") as client, client.session() as session:
            yield session

    def send(self, count):
        with self.session("source") as session:
            for queue in self.queues.values():
                with session.producer(queue) as producer:
                    for number in range(count):
                        producer.send(make_message(str(number)))

    def left(self, side="source"):
        with self.session(side) as session:
            return sum(session.query_queue(one).message_count for one in self.queues.values())

    def kill(self, side):
        self.brokers[side].kill()
        self.brokers[side] = BrokerProcess(self.places[side], self.ports[side])

    def wait_until_moved(self):
        end_s = time.monotonic() + END_S
        while (left := self.left()) or any(
            one.snapshot()["in_doubt"] for one in self.bridges.values()
        ):
            assert time.monotonic() < end_s, (
                f"{left} messages are left: {[one.why for one in self.bridges.values()]}"
            )
            time.sleep(0.05)

    def taken(self, way):
        found = Counter()
        with self.session("target") as session, session.consumer(self.queues[way]) as consumer:
            while (one := consumer.receive_now()) is not None:
                found[one.content] += 1
        return found


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_faults_between_stores(tmp_path, new_database, effort, figures, source, target):
    def place(side, kind):
        return tmp_path / side if kind == "file" else new_database(kind).url

    count, rounds = effort(COUNT, least=LEAST), effort(ROUNDS)
    faults = 0
    with contextlib.ExitStack() as stack:
        sides = Sides({"source": place("s", source), "target": place("t", target)}, tmp_path, stack)
        sides.send(count)
        running = stack.enter_context(contextlib.ExitStack())
        for one in sides.bridges.values():
            running.enter_context(one)
        whole = len(WAYS) * count
        for turn in range(rounds):
            for number, side in enumerate(("source", "target")):
                # Each once a part of the messages has gone.
                share = 1 - (2 * turn + number + 1) / (2 * rounds + 1)
                while sides.left() > whole * share:
                    time.sleep(0.005)
                sides.proxies[side].reset()
                sides.kill(side)
                faults += 2
        sides.wait_until_moved()
        running.close()
        found = {way: sides.taken(way) for way in WAYS}

    told = {}
    for way, counted in found.items():
        lost = sum(not counted[str(number)] for number in range(count))
        doubled = sum(times > 1 for times in counted.values())
        told[way] = (lost, doubled)
        figures(
            f"JMS bridge between stores, {way}",
            fault_points=faults,
            messages=count,
            lost=lost,
            doubled=doubled,
        )
    assert all(not lost or way in MAY_LOSE for way, (lost, _) in told.items()), told
    assert all(not doubled or way in MAY_DOUBLE for way, (_, doubled) in told.items()), told
