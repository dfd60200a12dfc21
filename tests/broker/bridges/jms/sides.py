"""Two brokers, each a process, and a bridge between them for each quality of service."""

import contextlib
import json
import time
import uuid
from collections import defaultdict

from broker.bridges.jms import CoreConnectionFactory, Destination, JMSBridge
from broker.client import Client
from tests.broker.bridges.jms.faults import WAYS
from tests.broker.serve import BrokerProcess
from tests.proxy import Proxy

END_S = 180
CORE = "core bridge"


class Sides:
    """Source and target, each with a proxy before it; bridges go through both proxies.

    Args:
        places: folder or URL of `source` and `target`.
        folder: for the logs of two-phase commits.
        stack: ends the brokers and proxies.
        has_core_bridge: a core bridge runs in the source from its start on.
        with_header: ways of the bridges that write the list of ids.
        process: more of BrokerProcess.

    Attributes:
        queues: by the way of the bridge that consumes from it; of the same name at both sides.
        bridges: JMS bridges by their ways; the test starts and stops them.
        brokers: by side.
    """

    def __init__(self, places, folder, stack, *, has_core_bridge=False, with_header=(), **process):
        self.places, self.brokers, self.proxies = places, {}, {}
        # Lost connections make no dead letters, at the default either.
        self._process = process = {"max_deliveries": 10, **process}
        for side, place in places.items():
            self.brokers[side] = BrokerProcess(place, **process)
            # On the same port after a kill.
            stack.callback(lambda side=side: self.brokers[side].kill())
        self.ports = {side: one.port for side, one in self.brokers.items()}
        for side, port in self.ports.items():
            self.proxies[side] = stack.enter_context(Proxy(port))
        self.queues = {way: f"q{number}" for number, way in enumerate(WAYS)}
        if has_core_bridge:
            self.queues[CORE] = "core"
        for side in places:
            with self.session(side) as session:
                for queue in self.queues.values():
                    session.create_queue(queue)
        self.bridges = {way: self._bridge(way, folder, way in with_header) for way in WAYS}

    def _bridge(self, way, folder, has_header):
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
            add_message_id_in_header=has_header,
        )

    def start_core_bridge(self):
        """Make it by management, which the source records."""
        queue = self.queues[CORE]
        made = {
            "name": "core",
            "queue-name": queue,
            "forwarding-address": queue,
            "static-connectors": ["target"],
            "retry-interval": 20,
            "max-retry-interval": 50,
            "reconnect-attempts": -1,
            "initial-connect-attempts": -1,
        }
        with self.session("source") as session:
            url = f"tcp://127.0.0.1:{self.proxies['target'].port}"
            session.manage("broker", "addConnector", "target", url)
            session.manage("broker", "createBridge", json.dumps(made))

    @contextlib.contextmanager
    def session(self, side):
        """A session of a client, past the proxy."""
        with Client(f"tcp://127.0.0.1:{self.ports[side]}") as client, client.session() as session:
            yield session

    def send(self, count, size=1):
        """Send the numbers 0, 1, … to each queue of the source, in messages of that size."""
        with self.session("source") as session:
            for queue in self.queues.values():
                with session.producer(queue) as producer:
                    for number in range(count):
                        producer.send(str(number).ljust(size), user_id=uuid.uuid1().bytes)

    def left(self, side="source"):
        """Messages in all queues of a side."""
        with self.session(side) as session:
            return sum(session.query_queue(one).message_count for one in self.queues.values())

    def kill(self, side):
        """Kill a broker (-9) and start it again."""
        self.brokers[side].kill()
        self.brokers[side] = BrokerProcess(self.places[side], self.ports[side], **self._process)

    def fail_while_moving(self, whole, rounds):
        """Reset the connections of each side and kill it, each once a part has gone.

        Args:
            whole: messages that were sent.
            rounds: kills of each side.

        Returns:
            How many faults there were.
        """
        for turn in range(rounds):
            for number, side in enumerate(("source", "target")):
                share = 1 - (2 * turn + number + 1) / (2 * rounds + 1)
                while self.left() > whole * share:
                    time.sleep(0.005)
                self.proxies[side].reset()
                self.kill(side)
        return 4 * rounds

    def wait_until_moved(self):
        """Wait until the source is empty, and nothing is in doubt."""
        end_s = time.monotonic() + END_S
        while (left := self.left()) or any(
            one.snapshot()["in_doubt"] for one in self.bridges.values()
        ):
            assert time.monotonic() < end_s, (
                f"{left} messages are left: {[one.why for one in self.bridges.values()]}"
            )
            time.sleep(0.05)

    def taken(self, way):
        """Take all that has arrived; the ids of messages by the number that each has."""
        found = defaultdict(list)
        with self.session("target") as session, session.consumer(self.queues[way]) as consumer:
            while (one := consumer.receive_now()) is not None:
                found[one.content.rstrip()].append(one.message.message_id)
        return found
