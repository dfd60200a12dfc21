"""kill -9 of the source, the target and the bridge, each a process, while messages are moved."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from broker.client import Client, ClientError, make_message
from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE, WAYS
from tests.broker.serve import BrokerProcess

ROOT = Path(__file__).resolve().parents[4]
COUNT, LEAST, KILLS = 600, 240, 5
END_S = 120
FILE = """
name = "killed"
quality-of-service = "{quality}"
exactly-once = "{exactly_once}"
max-batch-size = 3
max-batch-time = 20
failure-retry-interval = 20
transaction-log = "log"

[source]
url = "tcp://127.0.0.1:{source}"
queue = "q"

[target]
url = "tcp://127.0.0.1:{target}"
queue = "q"
"""


class BridgeProcess:
    """`broker bridge run`."""

    def __init__(self, file):
        self._file = file
        self._said = file.with_name("bridge.log")
        self.start()

    def start(self):
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "broker.cli.main", "bridge", "run", str(self._file)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(END_S)

    def stop(self):
        """Once it has connected: before, a signal may come ahead of what handles it."""
        end_s = time.monotonic() + END_S
        while "bridging: " not in (said := self._said.read_text()):
            assert time.monotonic() < end_s, said
            time.sleep(0.02)
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(END_S)


class Parties:
    """Source, target and bridge; each can be killed and started again."""

    def __init__(self, folder, way):
        self._folder = folder
        self.brokers = {}
        for side in ("source", "target"):
            self.brokers[side] = BrokerProcess(folder / side, max_deliveries=10)
        self.ports = {side: one.port for side, one in self.brokers.items()}
        for side in self.brokers:
            with self.session(side) as session:
                session.create_queue("q")
        quality, exactly_once = WAYS[way]
        file = folder / "bridge.toml"
        file.write_text(
            FILE.format(quality=quality.value, exactly_once=exactly_once.value, **self.ports)
        )
        self._file = file
        self.bridge = None

    @contextlib.contextmanager
    def session(self, side):
        with Client(f"tcp://127.0.0.1:{self.ports[side]}") as client, client.session() as session:
            yield session

    def start_bridge(self):
        self.bridge = BridgeProcess(self._file)

    def kill(self, party):
        if party == "bridge":
            self.bridge.kill()
            self.bridge.start()
        else:
            self.brokers[party].kill()
            self.brokers[party] = BrokerProcess(
                self._folder / party, self.ports[party], max_deliveries=10
            )

    def left(self):
        with self.session("source") as session:
            return session.query_queue("q").message_count

    def close(self):
        if self.bridge is not None:
            self.bridge.kill()
        for one in self.brokers.values():
            one.kill()


def wait_until_empty(parties):
    end_s = time.monotonic() + END_S
    while parties.left():
        assert time.monotonic() < end_s, f"{parties.left()} messages are left"
        time.sleep(0.05)


PARTIES = ("source", "target", "bridge")
# Of the ways that do less than two phases one party each; all of them in a soak.
SHORT = {
    "AT_MOST_ONCE": "source",
    "DUPLICATES_OK": "target",
    "ONCE_AND_ONLY_ONCE by duplicate ids": "bridge",
}
KILLED = [
    pytest.param(way, party, marks=() if SHORT.get(way, party) == party else pytest.mark.soak)
    for way in WAYS
    for party in PARTIES
]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "party"), KILLED)
def test_killed_again_and_again(tmp_path, effort, figures, way, party):
    count = effort(COUNT, least=LEAST)
    chance = random.Random(f"{way} {party}")
    parties = Parties(tmp_path, way)
    try:
        with parties.session("source") as session, session.producer("q") as producer:
            for number in range(count):
                producer.send(make_message(str(number)))
        parties.start_bridge()
        kills = 0
        for share in range(KILLS, 0, -1):
            # Each once a part of the messages has gone.
            while parties.left() > count * share / (KILLS + 1):
                time.sleep(0.002)
            time.sleep(chance.random() / 50)
            parties.kill(party)
            kills += 1
        wait_until_empty(parties)
        assert parties.bridge.stop() == 0
        with parties.session("target") as session, session.consumer("q") as consumer:
            found = Counter()
            while (one := consumer.receive_now()) is not None:
                found[one.content] += 1
    finally:
        with contextlib.suppress(ClientError):
            parties.close()

    lost = [number for number in range(count) if not found[str(number)]]
    doubled = [content for content, count in found.items() if count > 1]
    figures(
        f"JMS bridge, {way}, {party} killed",
        fault_points=kills,
        messages=count,
        lost=len(lost),
        doubled=len(doubled),
    )
    assert lost == [] or way in MAY_LOSE
    assert doubled == [] or way in MAY_DOUBLE
