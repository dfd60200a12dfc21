"""An audit finds what was planted in three brokers' data, and nothing else."""

import json
import struct

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.records.binding_records import QueueBinding
from broker.records.records import encode_prepared, encode_record
from broker.records.stored_messages import CoreMessage, MessageHeaders
from journal import Journal, JournalOptions
from pipeline.audit import FINDINGS, NEEDED, Limits, findings, summary
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
LIMITS = Limits(NOW_MS, age_ms=HOUR_MS, deliveries=3)
QUEUE_ID = 5
QUEUE, MESSAGE, REF, ACK, COUNT, SCHEDULED = 21, 45, 32, 33, 34, 36


class Node:
    """A broker's two journals, in the making."""

    def __init__(self, folder):
        with Journal(
            JournalOptions(
                directory=folder / "bindings",
                prefix="activemq-bindings",
                extension="bindings",
                file_size=1 << 16,
            )
        ) as bindings:
            bindings.load()
            for queue_id, name in ((QUEUE_ID, "orders"), (QUEUE_ID + 1, "bills")):
                binding = QueueBinding(
                    name, name, None, "", False, routing_type=RoutingType.ANYCAST
                )
                bindings.add(queue_id, QUEUE, encode_record(binding))
        self.journal = Journal(JournalOptions(directory=folder / "journal", file_size=1 << 16))
        self.journal.open()
        self.journal.load()
        self.next_id = 100

    def send(self, queue_id=QUEUE_ID, *, age_ms=1000, left_ms=0, duplicate="", user="", tx=None):
        """A message in a queue; its id. `left_ms`: until it expires."""
        self.next_id += 1
        properties = ()
        if duplicate:
            properties = (Property("_AMQ_DUPL_ID", PropertyType.STRING, duplicate),)
        headers = MessageHeaders(
            message_id=self.next_id,
            address="orders",
            user_id=user.encode().rjust(16, b"0") if user else None,
            type=4,
            durable=True,
            expiration=NOW_MS + left_ms if left_ms else 0,
            timestamp=NOW_MS - age_ms,
            priority=4,
            properties=properties,
        )
        body = encode_record(CoreMessage(self.next_id, "orders", b"body", headers))
        self.journal.add(self.next_id, MESSAGE, body, tx=tx)
        if queue_id is not None:
            self.update(self.next_id, REF, queue_id, tx=tx)
        return self.next_id

    def update(self, message_id, kind, *values, tx=None):
        self.journal.update(message_id, kind, struct.pack(f">{len(values)}q", *values), tx=tx)

    def count(self, message_id, count):
        self.journal.update(message_id, COUNT, struct.pack(">qi", QUEUE_ID, count))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three nodes full of what is as it should be, and what was planted among it."""
    root = tmp_path_factory.mktemp("cluster")
    nodes = {name: Node(root / name) for name in ("left", "middle", "right")}
    planted = set()
    for name, node in nodes.items():
        for number in range(20):
            node.send(duplicate=f"{name}-{number}", user=f"{name}-{number}")
        done = node.send(age_ms=10 * HOUR_MS)
        node.update(done, ACK, QUEUE_ID)
        node.update(node.send(age_ms=10 * HOUR_MS), SCHEDULED, QUEUE_ID, NOW_MS + 1)
        node.count(node.send(), 2)
        node.send(left_ms=5000)

    left, middle, right = nodes.values()
    stuck = left.send(age_ms=2 * HOUR_MS)
    left.count(stuck, 3)
    planted.add(("stuck", "left", "orders", stuck))
    planted.add(("stuck", "middle", "bills", middle.send(6, age_ms=2 * HOUR_MS)))
    planted.add(("expired", "right", "orders", right.send(left_ms=-5000, age_ms=2 * HOUR_MS)))
    planted.add(("unreferenced", "right", None, right.send(None)))
    planted.add(("unknown queue", "left", "999", left.send(999)))
    for node, name in ((left, "left"), (right, "right")):
        planted.add(("duplicated", name, None, node.send(duplicate="twice")))
        planted.add(("duplicated", name, None, node.send(user="same")))
    tx = middle.journal.begin()
    planted.add(("stuck", "middle", "orders", middle.send(tx=tx)))
    acknowledged = middle.send()
    middle.update(acknowledged, ACK, QUEUE_ID, tx=tx)
    planted.add(("stuck", "middle", "orders", acknowledged))
    middle.journal.prepare(tx, encode_prepared(Xid(1, b"branch", b"global")))
    left.journal.add(999, MESSAGE, b"\x09nonsense")
    left.update(999, REF, QUEUE_ID)
    planted.add(("damaged", "left", None, 999))
    for node in nodes.values():
        node.journal.close()
    return root, planted


@pytest.fixture(scope="module")
def found(spark, cluster):
    paths = str(cluster[0] / "*")
    reader = spark.read.option("failOnDataLoss", "false").option("asOfMs", NOW_MS)
    messages, bindings = (reader.format(name).load(paths) for name in ("messages", "bindings"))
    return findings(messages.select(*NEEDED).cache(), bindings, LIMITS).cache()


def test_all_that_was_planted_is_found_and_nothing_else(found, cluster):
    _, planted = cluster

    rows = found.collect()

    assert sorted(
        ((row.finding, row.node, row.queue, row.message_id) for row in rows), key=repr
    ) == sorted(planted, key=repr)
    of_histories = {"lost", "out of order", "never acknowledged"}
    assert {row.finding for row in rows} == set(FINDINGS) - of_histories
    assert all(row.detail for row in rows)


def test_a_duplicate_names_the_other_one(found, cluster):
    _, planted = cluster
    ids = {(node, number) for finding, node, _, number in planted if finding == "duplicated"}

    rows = found.where("finding = 'duplicated' AND detail LIKE 'duplicate id%'").collect()

    assert len({row.detail for row in rows}) == 1
    assert all(f"{row.node}:{row.message_id}" in row.detail for row in rows)
    assert {(row.node, row.message_id) for row in rows} < ids


def test_a_summary_counts_by_queue(found):
    rows = {tuple(row) for row in summary(found).collect()}

    assert ("stuck", "prepared", "middle", "orders", "orders", 2) in rows
    assert ("stuck", "no consumer", "middle", "orders", "bills", 1) in rows
    assert ("duplicated", "duplicate id", "left", "orders", None, 1) in rows
    assert ("duplicated", "user id", "left", "orders", None, 1) in rows


def test_the_command_prints_a_summary_or_every_finding(spark, cluster, golden, monkeypatch, capsys):
    root, planted = cluster
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    expected = [key for key in planted if key[1] == "right"]
    words = ["audit", str(root / "right"), "--as-of", str(NOW_MS)]
    capsys.readouterr()

    assert run(commands, "pipeline", [*words, "--json"]) == 1
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    # On one node alone nothing is there twice.
    assert sorted((one["finding"], one["message_id"]) for one in found) == sorted(
        (finding, number) for finding, _, _, number in expected if finding != "duplicated"
    )
    assert said.err == f"{len(found)} findings\n"

    assert run(commands, "pipeline", words) == 1
    titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split() == ["finding", "reason", "node", "address", "queue", "count"]
    assert [line.split()[0] for line in lines] == [
        "expired",
        "unreferenced",
    ]


@pytest.mark.parametrize("option", ["--as-of", "--age"])
def test_a_time_that_no_calendar_has_is_wrong_usage(option, tmp_path, capsys):
    Node(tmp_path / "node").journal.close()

    assert run(commands, "pipeline", ["audit", str(tmp_path / "node"), option, str(10**30)]) == 2

    assert f"{option}': {10**30} is not in the range" in capsys.readouterr().err
