"""An audit knows what JMS bridges have brought: by duplicate ids, or by the list in the header."""

import json
import uuid

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.bridges.jms.message import ID_LISTS
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from tests.pipeline.planted import BILLS, LINE, NOW_MS, ORDERS, Node


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


@pytest.fixture
def sides(tmp_path):
    made = [Node(tmp_path / name, keeps_history=True) for name in ("source", "target")]
    yield made
    for one in made:
        one.close()


def found(capsys, sides, *options):
    """(finding, reason, node, message id) of what an audit says of messages."""
    for one in sides:
        # What is over is in the history alone.
        one.journal.compact()
    folders = [str(one.folder) for one in sides]
    words = ["audit", *folders, "--as-of", str(NOW_MS), "--json", "--live", *options]
    capsys.readouterr()
    status = run(commands, "pipeline", words)
    said = capsys.readouterr()
    assert status in (0, 1), said.err
    rows = map(json.loads, said.out.splitlines())
    names = ("finding", "reason", "node", "message_id")
    return {tuple(row[name] for name in names) for row in rows}


def moved_by_ids(source, target):
    """From `bills`, by duplicate ids; those that are lost."""
    lost = set()
    for number in range(20):
        sent = source.send(BILLS)
        source.done(sent, BILLS)
        if number % 5 == 4:
            lost.add(sent)
        else:
            as_text = number % 2 == 1
            target.done(target.bring(source, sent, "bills", ORDERS, as_text=as_text), ORDERS)
    for queue, is_undone in (("orders", False), ("bills", True)):
        # The first id is one of another queue's message.
        sent = source.send(BILLS)
        source.done(sent, BILLS)
        brought = target.bring(source, sent, queue, ORDERS, is_undone=is_undone)
        if not is_undone:
            target.done(brought, ORDERS)
        lost.add(sent)
    return {("lost", "between nodes", "source", one) for one in lost}


def moved_with_header(source, target):
    """From `orders`, which both have; what is lost, and doubled."""
    expected = set()
    for number in range(20):
        user = f"u{number}"
        sent = source.send(ORDERS, user=user)
        source.done(sent, ORDERS)
        copies = {4: 0, 5: 2}.get(number, 1)
        brought = [with_list(target, user, ORDERS) for _ in range(copies)]
        for one in brought:
            target.done(one, ORDERS)
        if copies > 1:
            expected |= {("duplicated", "bridged id", "target", one) for one in brought}
        if not copies:
            expected.add(("lost", "between nodes", "source", sent))
    return expected


def with_list(target, user, *queues):
    """What a bridge with add-message-id-in-header makes of a message of a user id."""
    own = f"ID:{uuid.UUID(bytes=user.encode().rjust(16, b'0'))}"
    return target.send(*queues, properties=dict.fromkeys(ID_LISTS, f"ID:first,{own}"))


def test_what_bridges_have_lost_and_doubled_is_found_and_nothing_else(sides, capsys):
    source, target = sides
    expected = moved_by_ids(source, target) | moved_with_header(source, target)
    # No bridge consumes from that one.
    source.done(source.send(LINE), LINE)
    histories = ("--retention", str(source.folder.parent / "*" / "retention"))
    queues = ("--bridge-queue", "bills", "--bridge-queue", "source:orders")

    assert found(capsys, sides, *histories, *queues) == expected


def test_what_waits_twice_is_seen_without_histories(sides, capsys):
    source, target = sides
    source.done(source.send(BILLS, user="one"), BILLS)
    brought = [with_list(target, "one", ORDERS) for _ in range(2)]
    with_list(target, "two", ORDERS)

    said = found(capsys, sides)

    assert said == {("duplicated", "bridged id", "target", one) for one in brought}
