"""An audit of three brokers' journals and histories finds each planted fault, and nothing else."""

import itertools
import json
from uuid import UUID

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.xid import Xid
from broker.records.records import encode_prepared
from journal.folder import JournalName
from journal.retention import list_history
from pipeline.audit import FINDINGS
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from tests.pipeline.planted import (
    ACK,
    BILLS,
    HOUR_MS,
    IDLE,
    LINE,
    MESSAGE,
    NOW_MS,
    ORDERS,
    PAUSED,
    REF,
    SCHEDULED,
    Node,
)

ROUNDS = 25


def traffic(node, name, others):
    """What brokers do all day: nothing of it is a fault."""
    for number in range(ROUNDS):
        label = f"{name}{number}"
        node.done(node.send(ORDERS, duplicate=label, user=label), ORDERS)
        # Acknowledged in another order, as several consumers do.
        pair = [node.send(ORDERS), node.send(ORDERS)]
        for one in reversed(pair):
            node.done(one, ORDERS)
        # What has no consumer here goes on, with the ids that its sender gave.
        ids = {"duplicate": f"far-{label}", "user": f"f{label}"}
        for other in others:
            way = node.forwards[other]
            ids = {one: f"{text}{way}" for one, text in ids.items()}
            sent = node.send(way, **ids)
            brought = other.accept(node, sent, ORDERS, **ids)
            node.forward(sent, other)
            other.done(brought, ORDERS)
    ids = {"duplicate": f"all-{name}", "user": f"all{name}"}
    # To a queue here and to both others.
    ways = [node.forwards[other] for other in others]
    sent = node.send(ORDERS, *ways, **ids)
    for other in others:
        other.done(other.accept(node, sent, ORDERS, **ids), ORDERS)
    node.done(sent, *ways, ORDERS)
    # Redistributed: what was in a queue here is copied into a forwarding one.
    ids = {"duplicate": f"re-{name}", "user": f"re{name}"}
    old = node.send(ORDERS, **ids)
    copy = node.send(ways[0], **ids)
    node.done(old, ORDERS)
    others[0].done(others[0].accept(node, copy, ORDERS, **ids), ORDERS)
    node.forward(copy, others[0])
    # In order within their group, or their priority, though not among each other.
    groups = [node.send(ORDERS, properties={"_AMQ_GROUP_ID": group}) for group in "abab"]
    lines = [node.send(LINE, priority=priority) for priority in (4, 9, 4, 9)]
    for order in (1, 0, 3, 2):
        node.done(groups[order], ORDERS)
    for order in (1, 3, 0, 2):
        node.done(lines[order], LINE)
    # Not sent after all, and then sent.
    for end in (node.journal.rollback, node.journal.commit):
        tx = node.journal.begin()
        twice = node.send(ORDERS, duplicate=f"tx-{name}", tx=tx)
        end(tx)
    node.done(twice, ORDERS)
    # Its dead letter.
    dead = node.send(ORDERS, user=f"dead{name}")
    again = node.send(
        BILLS, user=f"dead{name}", properties={"_AMQ_ORIG_MESSAGE_ID": str(dead)}, age_ms=0
    )
    node.done(dead, ORDERS)
    node.done(again, BILLS)
    # It was not forwarded, but has expired, or died, on its way.
    gone = node.send(ways[0], user=f"gone{name}")
    way = f"$.artemis.internal.sf.my-cluster.{others[0].node_id}"
    origin = {"_AMQ_ORIG_MESSAGE_ID": str(gone), "_AMQ_ORIG_QUEUE": way}
    again = node.send(BILLS, user=f"gone{name}", properties=origin, age_ms=0)
    node.done(gone, ways[0])
    node.done(again, BILLS)
    node.send(ORDERS, left_ms=5000)
    node.count(node.send(ORDERS), 2)
    node.update(node.send(ORDERS, age_ms=10 * HOUR_MS), SCHEDULED, ORDERS, NOW_MS + 1)
    # This one has no finding: the node that it goes to is not audited.
    node.done(node.send(90, user=f"away{name}"), 90)


def transactions(node, other):
    """Their records tell less of the order than one would think: nothing of it is a fault."""
    way = node.forwards[other]

    def accepted(*sent):
        for one in sent:
            other.done(other.accept(node, one, ORDERS), ORDERS)

    # The commit of what is in a page waits until that is durable.
    tx = node.journal.begin()
    first = node.send(way, is_paged=True, tx=tx)
    second = node.send(way, is_paged=True)
    node.commit_paged(tx)
    accepted(first, second)
    # Events of a page's messages are written with the commit, the messages long before.
    tx = node.journal.begin()
    first = node.new_id()
    second = node.send(way, is_paged=True)
    node.send(way, is_paged=True, tx=tx, message_id=first)
    node.commit_paged(tx)
    accepted(first, second)
    # The first one to commit acknowledged something in a page, and waited for that.
    both = [node.journal.begin() for _ in range(2)]
    sent = [node.send(way, tx=tx) for tx in both]
    for tx in both:
        node.journal.commit(tx, sync=False)
    accepted(*reversed(sent))
    for one in sent:
        node.forward(one, other)
    # So does the target's commit, in an address of which it has pages.
    sent = [node.send(way, address=address) for address in ("paged", "orders")]
    tx = other.journal.begin()
    waits = other.accept(node, sent[0], ORDERS, within=tx, address="paged")
    other.done(other.accept(node, sent[1], ORDERS), ORDERS)
    other.journal.commit(tx, sync=False)
    other.done(waits, ORDERS)
    for one in sent:
        node.forward(one, other)


def plant(left, middle, right):
    """One fault of each kind, at least; what an audit must say of it."""
    old = {"age_ms": 2 * HOUR_MS}
    found = set()

    def fault(finding, reason, node, queue, message_id):
        found.add((finding, reason, node.folder.name, queue, message_id))

    stuck = left.send(ORDERS)
    left.count(stuck, 3)
    fault("stuck", "redelivery", left, "orders", stuck)
    fault("stuck", "paused", middle, "paused", middle.send(PAUSED, **old))
    fault("stuck", "no consumer", right, "idle", right.send(IDLE, **old))
    far = left.send(ORDERS, **old)
    left.update(far, SCHEDULED, ORDERS, NOW_MS + 2 * HOUR_MS)
    fault("stuck", "scheduled", left, "orders", far)
    waits = left.send(left.forwards[right], **old)
    name = f"$.artemis.internal.sf.my-cluster.{right.node_id}"
    # Later ones were forwarded.
    fault("never acknowledged", "passed over", left, name, waits)
    tx = middle.journal.begin()
    fault("stuck", "prepared", middle, "orders", middle.send(ORDERS, tx=tx))
    undecided = middle.send(ORDERS)
    middle.update(undecided, ACK, ORDERS, tx=tx)
    fault("stuck", "prepared", middle, "orders", undecided)
    middle.journal.prepare(tx, encode_prepared(Xid(1, b"branch", b"global")))

    fault("never acknowledged", "passed over", right, "bills", right.send(BILLS, **old))
    right.done(right.send(BILLS), BILLS)

    fault("expired", "waits", right, "orders", right.send(ORDERS, left_ms=-5000))
    moved = {"_AMQ_ACTUAL_EXPIRY": str(NOW_MS), "_AMQ_ORIG_QUEUE": "orders"}
    fault("expired", "moved", left, "bills", left.send(BILLS, properties=moved))

    lost = left.send(left.forwards[middle], user="gone")
    left.forward(lost, middle)
    name = f"$.artemis.internal.sf.my-cluster.{middle.node_id}"
    fault("lost", "between nodes", left, name, lost)
    # A copy that another node got does not make up for it.
    half = left.send(left.forwards[middle], left.forwards[right], user="half")
    right.done(right.accept(left, half, ORDERS, user="half"), ORDERS)
    left.done(half, left.forwards[middle], left.forwards[right])
    fault("lost", "between nodes", left, name, half)
    deleted = middle.send(ORDERS)
    middle.journal.delete(deleted)
    fault("lost", "deleted", middle, "orders", deleted)

    for node in (left, right):
        twice = node.send(ORDERS, duplicate="twice")
        node.done(twice, ORDERS)
        fault("duplicated", "duplicate id", node, None, twice)
    sent = left.send(left.forwards[right], user="same")
    for _ in range(2):
        brought = right.accept(left, sent, ORDERS, user="same")
        right.done(brought, ORDERS)
        fault("duplicated", "user id", right, None, brought)
    left.forward(sent, right)

    name = f"$.artemis.internal.sf.my-cluster.{left.node_id}"
    # In memory and in a page; alone, two in one transaction, and each in its own.
    for is_paged, counts in itertools.product((False, True), ((), (2,), (1, 1))):
        pair = []
        for count in counts or (2,):
            tx = middle.journal.begin() if counts else None
            way = middle.forwards[left]
            pair += [middle.send(way, is_paged=is_paged, tx=tx) for _ in range(count)]
            if tx is not None:
                middle.commit_paged(tx)
        for one in reversed(pair):
            left.done(left.accept(middle, one, ORDERS), ORDERS)
            if not is_paged:
                middle.forward(one, left)
        fault("out of order", "between nodes", middle, name, pair[0])
    first, second = right.send(LINE), right.send(LINE)
    right.done(second, LINE)
    right.done(first, LINE)
    fault("out of order", "acknowledged", right, "line", first)
    group = {"_AMQ_GROUP_ID": "a"}
    first, second = (left.send(ORDERS, properties=group) for _ in range(2))
    left.done(second, ORDERS)
    left.done(first, ORDERS)
    fault("out of order", "acknowledged", left, "orders", first)

    fault("unreferenced", "no queue", right, None, right.send())
    fault("unknown queue", "no binding", left, "999", left.send(999))
    left.journal.add(999, MESSAGE, b"\x09nonsense")
    left.update(999, REF, ORDERS)
    fault("damaged", "unreadable", left, None, 999)
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    root = tmp_path_factory.mktemp("cluster")
    names = ("left", "middle", "right")
    nodes = [Node(root / name, keeps_history=True) for name in names]
    for node in nodes:
        node.forward_to(nodes)
        node.bind(90, f"$.artemis.internal.sf.my-cluster.{UUID(int=0)}")
    for node, name in zip(nodes, names, strict=True):
        traffic(node, name, [other for other in nodes if other is not node])
        transactions(node, next(other for other in nodes if other is not node))
    planted = plant(*nodes)
    for node, name in zip(nodes, names, strict=True):
        traffic(node, f"{name}-", [other for other in nodes if other is not node])
    for node in nodes:
        # What is over is in the history alone.
        node.journal.compact()
        node.close()
        assert len(list_history(node.folder / "retention", JournalName())) > 2
    return root, planted


def audited(root, capsys, *more):
    words = ["audit", str(root / "*"), "--as-of", str(NOW_MS), "--json", *more]
    capsys.readouterr()
    status = run(commands, "pipeline", words)
    said = capsys.readouterr()
    return status, [json.loads(line) for line in said.out.splitlines()], said.err


def keys(rows):
    names = ("finding", "reason", "node", "queue", "message_id")
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


def test_every_planted_fault_is_found_and_nothing_else(cluster, capsys):
    root, planted = cluster

    status, rows, said = audited(root, capsys, "--retention", str(root / "*" / "retention"))

    assert status == 1, said
    assert keys(rows) == sorted(planted, key=repr)
    assert {row["finding"] for row in rows} == set(FINDINGS)
    assert all(row["detail"] for row in rows)
    late = next(row for row in rows if row["finding"] == "out of order" and row["queue"] == "line")
    assert late["detail"] == f"acknowledged behind message {late['message_id'] + 1}"


def test_without_histories_nothing_is_said_of_the_past(cluster, capsys):
    root, planted = cluster
    of_the_past = {"lost", "duplicated", "out of order"}

    _, rows, _ = audited(root, capsys)

    # What passed the message by is gone, too.
    expected = {
        ("stuck", "no consumer", *one[2:]) if one[0] == "never acknowledged" else one
        for one in planted
        if one[0] not in of_the_past
    }
    assert keys(rows) == sorted(expected, key=repr)


def test_damage_in_a_history_is_told_beside_what_may_be_its_fault(tmp_path, capsys):
    node = Node(tmp_path / "node", keeps_history=True)
    for _ in range(300):
        node.done(node.send(ORDERS, properties={"filler": "x" * 500}), ORDERS)
    node.journal.compact()
    node.close()
    first = list_history(node.folder / "retention", JournalName())[0]
    whole = bytearray(first.path.read_bytes())
    # In a message: a mark that is damaged loses nothing, and the middle of the file may be one.
    whole[whole.index("x".encode("utf-16-le") * 100) + 50] ^= 1
    first.path.write_bytes(whole)

    status, rows, said = audited(tmp_path, capsys, "--retention", str(node.folder / "retention"))

    assert status == 1, said
    damaged = [row for row in rows if row["finding"] == "damaged"]
    assert damaged
    assert {row["node"] for row in damaged} == {"node"}
    assert all(row["detail"].startswith(f"{first.name}:") for row in damaged)


def test_a_report_draws_what_happened(cluster, tmp_path):
    root, _ = cluster
    target = tmp_path / "report.html"
    words = ["report", str(root / "*"), "--skip-damage", "--title", "Three nodes"]

    status = run(
        commands,
        "pipeline",
        [*words, "--retention", str(root / "*" / "retention"), "--to", str(target)],
    )

    text = target.read_text()
    assert status == 0
    assert text.count("<svg") == 6
    assert "<h1>Three nodes</h1>" in text
    for name in ("left", "middle", "right", "left · orders"):
        assert name in text
