"""`pipeline replay` and its broker are killed and started again: each message comes out once.

The history is a real broker's, of which nothing is left but that: it paged, had large messages and
transactions, and all was consumed.
"""

import random
from collections import Counter

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.client import AckMode
from broker.model.routing_type import RoutingType
from journal.errors import WrongUse
from pipeline.session import check_installed
from tests.pipeline.instances import Instance
from tests.pipeline.programs import WAIT_S, Program

COUNT = 3000
LARGE = 7
LARGE_SIZE = 250_000
HISTORY = (
    '<journal-retention-directory unit="DAYS" period="7">data/retention'
    "</journal-retention-directory>"
)
# Far fewer than there are messages: without notes of how far it came most would be sent twice.
FEW_IDS = "<id-cache-size>200</id-cache-size>"


def large_body(number):
    return bytes([number]) * LARGE_SIZE


def make_history(instance):
    """Send, roll back, and consume all; the keys that were sent."""
    sent = []
    with instance.client() as client:
        with client.session() as session:
            session.create_queue("in", routing_type=RoutingType.ANYCAST)
            with session.producer("in") as producer:
                waiting = []
                for number in range(COUNT):
                    waiting.append(producer.post(f"{number}", properties={"key": f"{number}"}))
                    sent.append(f"{number}")
                for one in waiting:
                    one.result()
                for number in range(LARGE):
                    producer.send(large_body(number), properties={"key": f"large{number}"})
                    sent.append(f"large{number}")
        with client.session(AckMode.TRANSACTED) as session, session.producer("in") as producer:
            for end in ("rollback", "commit"):
                for number in range(10):
                    producer.send("", properties={"key": f"{end}{number}"})
                getattr(session, end)()
            sent += [f"commit{number}" for number in range(10)]
        with client.session() as session, session.consumer("in") as consumer:
            for _ in sent:
                consumer.receive(WAIT_S).read()
            # With a file of the history that has the last of them.
            session.manage("broker", "replay", "nowhere", None, None)
    return sent


def start(instance, target, tmp_path):
    words = ["replay", instance.folder, "--address", "in", "--target", "out", "--url", target.url]
    words += ["--checkpoint", tmp_path / "checkpoint", "--master", "local[2]"]
    words += ["--conf", "spark.driver.memory=512m", "--conf", "spark.sql.shuffle.partitions=2"]
    words += ["--conf", f"spark.local.dir={tmp_path / 'local'}"]
    words += ["--conf", "spark.driver.bindAddress=127.0.0.1"]
    words += ["--conf", "spark.driver.host=127.0.0.1"]
    return Program(tmp_path / "replay.log", "pipeline.cli.main", *words)


def count_of(target):
    with target.client() as client, client.session() as session:
        return session.attribute("queue.out", "messageCount")


def wait_for(target, count, program):
    """Until the queue has so many, or the replay has ended."""
    program.wait_until(lambda: not program.is_running or count_of(target) >= count)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # Each start of Spark takes a minute on a busy machine.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_each_message_is_sent_once_over_kills(tmp_path, effort):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    luck = random.Random(9)
    source = Instance(
        tmp_path / "source",
        HISTORY,
        "<max-size-messages>50</max-size-messages>",
    )
    target = Instance(tmp_path / "target", FEW_IDS).start()
    interrupted = 0
    try:
        source.start()
        sent = make_history(source)
        assert source.stop() == 0
        with target.client() as client, client.session() as session:
            session.create_queue("out", routing_type=RoutingType.ANYCAST)
        rounds = effort(8, least=2)
        for number in range(rounds):
            program = start(source, target, tmp_path)
            try:
                before = count_of(target)
                step = luck.randint(1, 2 * (len(sent) - before) // (rounds - number + 1) + 1)
                wait_for(target, min(before + step, len(sent) - 1), program)
                interrupted += program.is_running
                if number % 2 == 0:
                    was_running = program.is_running
                    target.kill()
                    target.start()
                    # It goes on by itself.
                    wait_for(target, min(before + 2 * step, len(sent) - 1), program)
                    assert not was_running or program.exit_status in (None, 0)
            finally:
                program.kill()
        assert start(source, target, tmp_path).finish()
        found = []
        with (
            target.client() as client,
            client.session() as session,
            session.consumer("out") as consumer,
        ):
            for _ in range(session.attribute("queue.out", "messageCount")):
                message = consumer.receive(WAIT_S)
                key = message.get("key")
                body = message.read()
                if key.startswith("large"):
                    assert body == large_body(int(key.removeprefix("large")))
                found.append(key)
    finally:
        try:
            target.stop()
        finally:
            if source.process.poll() is None:
                source.kill()

    assert Counter(found) == Counter(sent)
    assert interrupted >= 1
