"""A query from a broker into a broker is killed and started again: each message comes out once."""

import random
import time

import pytest

pytest.importorskip(
    "pyspark.sql.streaming.datasource", reason="needs PySpark 4.2: quiver-mq[spark]"
)

from broker.client import Client
from journal.errors import WrongUse
from pipeline.session import check_installed
from tests.pipeline.outages import Outages, Persistent
from tests.pipeline.programs import Program


def start(root, port, how):
    return Program(root / "relayed.log", "tests.pipeline.relayed", root, port, how)


def numbers(root, log):
    folder = root / "checkpoint" / log
    return {int(path.name) for path in folder.glob("[0-9]*")} if folder.exists() else set()


@pytest.mark.soak  # Else test_broker_outages.py and test_stream_restarts.py do nearly as much.
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


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_query_goes_on_while_its_broker_is_killed_and_started_again(tmp_path, effort):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    broker = Outages(tmp_path / "broker")
    program = None
    try:
        create_queues(broker)
        with Persistent(broker.url, "in") as producer:
            program = begin(tmp_path, broker.port)
            kills = effort(20, least=2)
            broker.begin(kills, random.Random(9), lambda: len(numbers(tmp_path, "commits")))
            assert program.wait_until(lambda: broker.is_over, wait_s=3600)
            broker.check()
        # The one query that there was, and it still runs.
        assert program.is_running
        program.kill()
        end_relay(tmp_path, broker.port)
        check_relayed(broker, producer)
        assert broker.count == kills
    finally:
        if program is not None:
            program.kill()
        broker.stop()


def begin(root, port):
    """A query that has come to its second batch."""
    while True:
        program = start(root, port, "forever")
        if program.wait_until(lambda: len(numbers(root, "commits")) > 1):
            return program


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
    interrupted = number = 0
    while number < restarts:
        program = start(root, port, "forever")
        try:
            # Where Spark gave it up it is started again: a restart, but not one of ours.
            number += relays(program, root, luck, is_planned=number % 2 == 0)
        finally:
            program.kill()
        interrupted += bool(numbers(root, "offsets") - numbers(root, "commits"))
    return interrupted


def relays(program, root, luck, *, is_planned):
    """Until a query has done two batches more and, perhaps, has planned another one.

    Returns:
        False where Spark gave up the query's Python.
    """
    before = numbers(root, "commits")
    if not program.wait_until(lambda: len(numbers(root, "commits") - before) > 1):
        return False
    if not is_planned:
        time.sleep(luck.random())
        return True
    # What is planned is not done.
    came = program.wait_until(lambda: numbers(root, "offsets") - numbers(root, "commits"))
    time.sleep(luck.random() / 10)
    return came


def end_relay(root, port):
    """Let a query read what is left."""
    while not start(root, port, "available-now").finish():
        pass
