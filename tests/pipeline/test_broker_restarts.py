"""A query from a broker into a broker is killed and started again: each message comes out once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.client import Client
from journal.errors import WrongUse
from pipeline.session import check_installed
from tests.pipeline.outages import Outages, Persistent

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300


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


def wait_until(process, root, holds, wait_s=WAIT_S):
    end = time.monotonic() + wait_s
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
    broker = Outages(tmp_path / "broker")
    try:
        create_queues(broker)
        with Persistent(broker.url, "in") as producer:
            interrupted = relay(tmp_path, broker.port, effort(20, least=2))
        end_relay(tmp_path, broker.port)
        check_relayed(broker, producer)
    finally:
        broker.stop()

    assert interrupted >= 1


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_query_goes_on_while_its_broker_is_killed_and_started_again(tmp_path, effort):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    broker = Outages(tmp_path / "broker")
    process = None
    try:
        create_queues(broker)
        with Persistent(broker.url, "in") as producer:
            process = start(tmp_path, broker.port, "forever")
            wait_until(process, tmp_path, lambda: len(numbers(tmp_path, "commits")) > 1)
            kills = effort(20, least=2)
            broker.begin(kills, random.Random(9), lambda: len(numbers(tmp_path, "commits")))
            wait_until(process, tmp_path, lambda: broker.is_over, wait_s=3600)
            broker.check()
        # The one query that there was, and it still runs.
        assert process.poll() is None
        stop(process)
        end_relay(tmp_path, broker.port)
        check_relayed(broker, producer)
        assert broker.count == kills
    finally:
        if process is not None:
            stop(process)
        broker.stop()


def create_queues(broker):
    with Client(broker.url) as client, client.session() as session:
        session.create_queue("in")
        session.create_queue("out")


def check_relayed(broker, producer):
    with Client(broker.url) as client, client.session() as session:
        found = [int(message.text) for message in session.browse("out")]
    # The first ones may have come before the query's queue was there.
    assert sorted(found) == list(range(min(found), producer.count))


def relay(root, port, restarts):
    """Let a query be killed so often; how often it was in the middle of a batch."""
    luck = random.Random(5)
    interrupted = 0
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
            stop(process)
        interrupted += bool(numbers(root, "offsets") - numbers(root, "commits"))
    return interrupted


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_relay(root, port):
    """Let a query read what is left."""
    last = start(root, port, "available-now")
    assert last.wait(WAIT_S) == 0, (root / "relayed.log").read_text()[-3000:]
