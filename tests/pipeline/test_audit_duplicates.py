"""Without histories an audit takes for a duplicate only what nothing else explains."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from broker.model.routing_type import RoutingType
from broker.records.binding_records import QueueBinding
from broker.records.records import encode_record
from pipeline.audit import NEEDED, Limits, findings
from tests.pipeline.planted import BILLS, NOW_MS, ORDERS, QUEUE, Node

NEWS = 60


@pytest.fixture
def nodes(tmp_path):
    nodes = [Node(tmp_path / name) for name in ("left", "right")]
    for node in nodes:
        binding = QueueBinding("news", "news", None, "", False, routing_type=RoutingType.MULTICAST)
        node.bindings.add(NEWS, QUEUE, encode_record(binding))
        node.forward_to(nodes)
    return nodes


@pytest.fixture
def found(spark, tmp_path, nodes):
    def call():
        for node in nodes:
            node.close()
        reader = spark.read.option("failOnDataLoss", "false").option("asOfMs", NOW_MS)
        paths = [str(tmp_path / name) for name in ("left", "right")]
        messages, bindings = (reader.format(name).load(paths) for name in ("messages", "bindings"))
        rows = findings(messages.select(*NEEDED).cache(), bindings, Limits(NOW_MS)).collect()
        return sorted((row.finding, row.reason, row.node, row.message_id) for row in rows)

    return call


def test_what_each_node_has_for_its_subscribers_is_no_duplicate(nodes, found):
    left, right = nodes
    ids = {"user": "news", "duplicate": "news", "address": "news"}
    left.send(NEWS, left.forwards[right], **ids)
    right.accept(left, left.next_id, NEWS, **ids)
    twice = [left.send(NEWS, address="news", user="twice") for _ in range(2)]

    assert found() == [("duplicated", "user id", "left", number) for number in twice]


def test_what_a_bridge_has_brought_and_not_yet_acknowledged_is_no_duplicate(nodes, found):
    left, right = nodes
    sent = left.send(left.forwards[right], user="way", duplicate="way")
    right.accept(left, sent, ORDERS, user="way", duplicate="way")
    both = [node.send(ORDERS, user="twice") for node in nodes]

    assert found() == [
        ("duplicated", "user id", name, number)
        for name, number in zip(("left", "right"), both, strict=True)
    ]


def test_dead_letters_of_one_message_are_no_duplicates(nodes, found):
    for queue in ("orders", "bills"):
        origin = {"_AMQ_ORIG_MESSAGE_ID": "7", "_AMQ_ORIG_QUEUE": queue}
        nodes[0].send(BILLS, address="DLA", user="dead", properties=origin)

    assert found() == []
