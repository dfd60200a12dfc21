"""Large messages and those in pages: an audit finds lost bodies, a report counts all of them."""

import json
import re

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.records.records import encode_record
from broker.records.stored_messages import CoreMessage, LargeCoreMessage, MessageHeaders
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from tests.pipeline.planted import ACK, MESSAGE, NOW_MS, ORDERS, REF, Node
from tests.pipeline.test_page_rows import entry, page

LARGE = 30


def _headers(message_id):
    return MessageHeaders(
        message_id=message_id,
        address="orders",
        user_id=None,
        type=4,
        durable=True,
        expiration=0,
        timestamp=NOW_MS - 1000,
        priority=4,
        properties=(),
    )


def send_large(node, body):
    """A large message in a queue; its id. `body` None: its file is gone."""
    node.next_id += 1
    node.journal.add(
        node.next_id, LARGE, encode_record(LargeCoreMessage(_headers(node.next_id))), sync=False
    )
    node.update(node.next_id, REF, ORDERS)
    if body is not None:
        folder = node.folder / "large-messages"
        folder.mkdir(exist_ok=True)
        (folder / f"{node.next_id}.msg").write_bytes(body)
    return node.next_id


@pytest.fixture(autouse=True)
def _keep_spark(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


def audited(capsys, *sources):
    capsys.readouterr()
    words = ["audit", *map(str, sources), "--as-of", str(NOW_MS), "--json"]
    run(commands, "pipeline", words)
    said = capsys.readouterr()
    return [json.loads(line) for line in said.out.splitlines()]


def test_a_large_message_whose_body_is_gone_is_damaged(tmp_path, capsys):
    node = Node(tmp_path / "node")
    send_large(node, b"whole")
    gone = send_large(node, None)
    # The body goes with the last acknowledgement, before the record.
    done = send_large(node, None)
    node.update(done, ACK, ORDERS)
    node.close()

    (found,) = audited(capsys, node.folder)

    assert (found["finding"], found["reason"], found["node"]) == ("damaged", "no body", "node")
    assert (found["message_id"], found["address"], found["queue"]) == (gone, "orders", None)
    assert found["detail"].endswith(f": the body of large message {gone} is not there")


def cells(tmp_path, node, *more):
    target = tmp_path / "page.html"
    words = ["report", str(node.folder), "--to", str(target), *more]
    assert run(commands, "pipeline", words) == 0
    text = target.read_text()
    return re.findall(r"<td>([^<]*)</td>", text), text


def test_a_report_counts_what_is_in_pages_and_what_is_large(tmp_path):
    pytest.importorskip("matplotlib", reason="quiver-mq[report] brings it")
    node = Node(tmp_path / "node")
    for _ in range(50):
        node.send(ORDERS)
    for _ in range(3):
        send_large(node, bytes(1 << 20))
    node.done(node.send(ORDERS), ORDERS)
    node.close()
    page(node.folder, 1, *(entry(20_000 + number, (ORDERS,)) for number in range(100)))

    found, text = cells(tmp_path, node)

    # node, messages, in pages, large, to queues, acknowledged, in queues, bodies
    assert found[:7] == ["node", "154", "100", "3", "154", "1", "153"]
    assert found[7].endswith("MiB")
    assert "node · orders" in text


def test_what_was_paged_and_is_gone_was_acknowledged(tmp_path):
    pytest.importorskip("matplotlib", reason="quiver-mq[report] brings it")
    node = Node(tmp_path / "node", keeps_history=True)
    node.send(ORDERS)
    for number in (20_000, 20_001, 20_002):
        body = encode_record(CoreMessage(number, "orders", b"body", _headers(number)))
        node.journal.event(number, MESSAGE, body, sync=False)
        node.journal.event(number, REF, ORDERS.to_bytes(8, "big"), sync=False)
    node.journal.compact()
    node.close()
    page(node.folder, 1, entry(20_002, (ORDERS,)))

    found, _ = cells(tmp_path, node, "--retention", str(node.folder / "retention"))

    assert found[:7] == ["node", "4", "3", "0", "4", "2", "2"]
