"""A query from a broker into a broker is killed and started again: each message comes out once."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.client import Client
from journal.errors import WrongUse
from pipeline.session import check_installed
from tests.broker.serve import BrokerProcess

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300


class Producer:
    """Sends numbers until stopped."""

    def __init__(self, port):
        self.port = port
        self.count = 0
        self.error = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            with (
                Client(f"tcp://127.0.0.1:{self.port}") as client,
                client.session() as session,
                session.producer("in") as producer,
            ):
                while not self._is_over.wait(0.1):
                    producer.send(str(self.count), priority=self.count % 10)
                    self.count += 1
        except BaseException as error:
            self.error = error
            raise

    def stop(self):
        self._is_over.set()
        self._thread.join()
        assert self.error is None


def start(root, port, how):
    # A group of its own, so that a kill takes Java and the workers along.
    return subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.relayed", str(root), str(port), how],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=(root / "relayed.log").open("ab"),
        start_new_session=True,
    )


def numbers(root, log):
    folder = root / "checkpoint" / log
    return {int(path.name) for path in folder.glob("[0-9]*")} if folder.exists() else set()


def wait_until(process, root, holds):
    end = time.monotonic() + WAIT_S
    while not holds():
        assert process.poll() is None, (root / "relayed.log").read_text()[-3000:]
        assert time.monotonic() < end, "no batch comes"
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # Each start of Spark takes a minute on a busy machine.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_each_message_is_relayed_once_over_restarts(tmp_path, effort):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    broker = BrokerProcess(tmp_path / "broker")
    try:
        with Client(f"tcp://127.0.0.1:{broker.port}") as client, client.session() as session:
            session.create_queue("in")
            session.create_queue("out")
            interrupted = relay(tmp_path, broker.port, effort(20, least=2))
            found = [int(message.text) for message in session.browse("out")]
            sent = session.attribute("queue.in", "messageCount")
    finally:
        broker.stop()

    # The first ones may have come before the query's queue was there.
    assert sorted(found) == list(range(min(found), sent))
    assert interrupted >= 1


def relay(root, port, restarts):
    """Let a query be killed so often, then end; how often it was in the middle of a batch."""
    luck = random.Random(5)
    interrupted = 0
    producer = Producer(port)
    for number in range(restarts):
        process = start(root, port, "forever")
        try:
            done = numbers(root, "commits")
            wait_until(
                process, root, lambda before=done: len(numbers(root, "commits") - before) > 1
            )
            if number % 2:
                time.sleep(luck.random())
            else:
                # What is planned is not done.
                wait_until(
                    process, root, lambda: numbers(root, "offsets") - numbers(root, "commits")
                )
                time.sleep(luck.random() / 10)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        interrupted += bool(numbers(root, "offsets") - numbers(root, "commits"))
    producer.stop()
    last = start(root, port, "available-now")
    assert last.wait(WAIT_S) == 0, (root / "relayed.log").read_text()[-3000:]
    return interrupted
