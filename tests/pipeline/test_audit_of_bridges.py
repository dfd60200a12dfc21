"""Bridges between two brokers, through faults: an audit of both folders says what the test counts.

Connections are reset, and both brokers killed (-9). A core bridge and JMS bridges of each quality
of service move messages at once. What is lost or doubled is known by content; the audit has to find
these messages, and no other. Faults are planted, too: a bridge that drops, and one that repeats.
"""

import contextlib
import copy
import json
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.bridges.jms.core.batch_sender import CoreBatchSender
from broker.bridges.jms.core.branches import CoreBranchSender
from broker.bridges.jms.core.session import _CoreSender
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from pipeline.finding_rules import DUPLICATED, LOST
from tests.broker.bridges.jms.faults import MAY_DOUBLE, MAY_LOSE, WAYS
from tests.broker.bridges.jms.sides import CORE, Sides

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "jms-bridge.md"
COUNT, LEAST, ROUNDS = 600, 60, 10
PLANTED = 20
WAIT_S = 30
BY_IDS = "ONCE_AND_ONLY_ONCE by duplicate ids"
# Of the others nothing else would tell which message became which.
WITH_HEADER = [way for way in WAYS if way != BY_IDS]


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


class Counted:
    """What a run has come to, by content: what arrived, and which id each message had.

    Args:
        sides: of the run; their brokers run.
        contents: of the messages of each queue of the source, by their ids.
    """

    def __init__(self, sides, contents):
        self.sides = sides
        self._sent = contents
        self._arrived = {way: sides.taken(way) for way in sides.queues}

    def lost(self, way):
        return set(self._sent[way].values()) - set(self._arrived[way])

    def doubled(self, way):
        return {content for content, ids in self._arrived[way].items() if len(ids) > 1}

    def told(self):
        """As an audit tells it: the finding, the node, and the id of each message."""
        found = set()
        for way in self.sides.queues:
            lost, doubled = self.lost(way), self.doubled(way)
            found |= {
                (LOST, "source", one) for one, content in self._sent[way].items() if content in lost
            }
            found |= {
                (DUPLICATED, "target", one)
                for content in doubled
                for one in self._arrived[way][content]
            }
        return found


def contents_of(sides):
    """By queue, the content of each message by its id."""
    with sides.session("source") as session:
        return {
            way: {one.message.message_id: one.content for one in session.browse(queue)}
            for way, queue in sides.queues.items()
        }


def audited(root, sides, capsys):
    """All that an audit says of both brokers, which do not run, called as the guide does."""
    line = re.search(r"^    pipeline (audit .*)$", GUIDE.read_text(), re.MULTILINE)[1]
    # Spark's workers are in a folder of their own.
    *words, name = [str(root / one) if "/" in one else one for one in shlex.split(line)]
    assert name == "source:orders"
    option = words.pop()
    for way, queue in sides.queues.items():
        # The other side has a queue of that name; a core bridge is recorded.
        words += [] if way == CORE else [option, name.replace("orders", queue)]
    words.append("--json")
    capsys.readouterr()
    status = run(commands, "pipeline", words)
    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert status == bool(rows), said.err
    return {(one["finding"], one["node"], one["message_id"]) for one in rows}


def moved(root, stack, count, *, before=lambda sides: None, during=lambda sides: None):
    """Move messages through all bridges, and stop both brokers.

    Args:
        root: a folder for all.
        stack: ends what runs.
        count: messages of each bridge.
        before: called once they are sent, and no bridge has started.
        during: called once all have; what it gives is given.
    """
    sides = Sides(
        {side: root / side / "data" for side in ("source", "target")},
        root,
        stack,
        has_core_bridge=True,
        with_header=WITH_HEADER,
        keeps_history=True,
        file_size=256 << 10,
    )
    sides.send(count)
    contents = contents_of(sides)
    before(sides)
    with contextlib.ExitStack() as running:
        for one in sides.bridges.values():
            running.enter_context(one)
        sides.start_core_bridge()
        given = during(sides)
        sides.wait_until_moved()
    counted = Counted(sides, contents)
    for one in sides.brokers.values():
        assert one.stop() == 0
    return counted, given


def test_through_faults_both_say_the_same(tmp_path, effort, figures, capsys):
    count, rounds = effort(COUNT, least=LEAST), effort(ROUNDS)

    def fail(sides):
        return sides.fail_while_moving(len(sides.queues) * count, rounds)

    with contextlib.ExitStack() as stack:
        counted, faults = moved(tmp_path, stack, count, during=fail)

    said = audited(tmp_path, counted.sides, capsys)
    for way in counted.sides.queues:
        lost, doubled = counted.lost(way), counted.doubled(way)
        figures(
            f"audit of bridges, {way}",
            fault_points=faults,
            messages=count,
            lost=len(lost),
            doubled=len(doubled),
        )
        assert not lost or way in MAY_LOSE, way
        assert not doubled or way in MAY_DOUBLE, way
    assert said == counted.told()


def test_what_is_planted_is_found(tmp_path, capsys, monkeypatch):
    """JMS bridges drop one message and send another twice; clients do so to the core bridge."""
    lost, doubled = "3", "4"
    send, send_batch = _CoreSender.send, CoreBatchSender.send_batch
    send_branch = CoreBranchSender.send_branch

    def wrong_ones(messages):
        for message in messages:
            times = {lost: 0, doubled: 2}.get(message.content(), 1)
            if times:
                yield message
            if times == 2:
                again = copy.copy(message)
                again.native = message.native.copy()
                yield again

    async def wrong(self, message):
        for one in wrong_ones([message]):
            await send(self, one)

    def wrong_batch(self, messages, done):
        if found := list(wrong_ones(messages)):
            send_batch(self, found, done)
        else:
            done(None)

    def wrong_branch(self, xid, messages, done):
        send_branch(self, xid, list(wrong_ones(messages)), done)

    def meddle(sides):
        with sides.session("source") as session:
            found = {one.content: one for one in session.browse(sides.queues[CORE])}
            with session.consumer(sides.queues[CORE]) as consumer:
                # In its order: the first of them is taken, and no other acknowledged.
                assert consumer.receive(WAIT_S).content == "0"
        with sides.session("target") as session, session.producer(sides.queues[CORE]) as producer:
            producer.send(doubled, user_id=found[doubled].message.user_id)

    monkeypatch.setattr(_CoreSender, "send", wrong)
    monkeypatch.setattr(CoreBatchSender, "send_batch", wrong_batch)
    monkeypatch.setattr(CoreBranchSender, "send_branch", wrong_branch)
    with contextlib.ExitStack() as stack:
        counted, _ = moved(tmp_path, stack, PLANTED, before=meddle)

    for way in WAYS:
        assert counted.lost(way) == {lost}, way
        # The target drops what has the same duplicate id.
        assert counted.doubled(way) == (set() if way == BY_IDS else {doubled}), way
    assert counted.lost(CORE) == {"0"}
    assert counted.doubled(CORE) == {doubled}
    assert audited(tmp_path, counted.sides, capsys) == counted.told()
