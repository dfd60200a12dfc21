"""`pipeline replay` of messages of AMQP: they come as their sender sent them, each once."""

import asyncio
import json

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")
pytest.importorskip("proton", reason="python-qpid-proton is not installed")

from proton import Message, symbol

from broker.records.records import encode_record
from broker.records.stored_messages import AmqpMessageV3
from tests.broker.protocols.amqp.client import Capability, Client
from tests.pipeline.instances import Instance
from tests.pipeline.planted import MESSAGE, NOW_MS, ORDERS, Node
from tests.pipeline.test_replay import replayed
from tests.pipeline.test_replay_restarts import HISTORY

# Below amqpMinLargeMessageSize; inside of one of Core it is larger than a client sends whole.
NOT_LARGE = 102_399
LARGE = 300_000


@pytest.fixture(autouse=True)
def _keep_spark(request, monkeypatch, tmp_path):
    if "spark" in request.fixturenames:
        monkeypatch.setattr(type(request.getfixturevalue("spark")), "stop", lambda self: None)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A broker that messages are sent to."""
    instance = Instance(tmp_path_factory.mktemp("target") / "target").start()
    yield instance
    instance.stop()


def sent(body, number, **more):
    return Message(
        body=body,
        durable=True,
        priority=number,
        id=f"id-{number}",
        subject="s",
        creation_time=NOW_MS // 1000 + number,
        properties={"n": number, **more},
        annotations={symbol("x-opt-mark"): "m"},
    )


MESSAGES = [
    sent("text", 0),
    sent(b"bytes", 1, _AMQ_DUPL_ID="its own"),
    sent({"a": [1, None]}, 2),
    sent("x" * (NOT_LARGE - len(sent("x" * NOT_LARGE, 3).encode()) + NOT_LARGE), 3),
    sent(b"y" * LARGE, 4),
    sent("z" * LARGE, 5, _AMQ_DUPL_ID="and the other one's"),
]


async def send(port, messages):
    async with Client.of(port) as client:
        sender = await client.sender("orders", Capability("queue"))
        for one in messages:
            await sender.send(one)


async def receive(port, address, count):
    found = []
    async with Client.of(port) as client:
        queue = await client.receiver(address, Capability("queue"))
        for _ in range(count):
            found.append(await queue.get())
            await queue.accept()
    return found


def fields(message):
    names = {name: value for name, value in message.properties.items() if name[:1] != "_"}
    body = bytes(message.body) if isinstance(message.body, memoryview) else message.body
    mark = message.annotations[symbol("x-opt-mark")]
    return (
        *(message.id, body, names, mark, message.subject, message.priority),
        *(message.durable, message.creation_time, message.inferred),
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """What a broker leaves of whose messages all were consumed."""
    source = Instance(tmp_path_factory.mktemp("source") / "source", HISTORY).start()
    asyncio.run(send(source.port, MESSAGES))
    assert len(asyncio.run(receive(source.port, "orders", len(MESSAGES)))) == len(MESSAGES)
    assert source.stop() == 0
    return source.data


def words(source, served, target, *more):
    return [
        *(source, "--address", "orders", "--target", target, "--routing-type", "anycast"),
        *("--url", served.url, "--json", *more),
    ]


def test_all_come_as_they_were_sent_and_each_once(spark, history, served, capsys, tmp_path):
    for job in ("a", "b"):
        given = words(history, served, "again", "--job", job)
        status, out, said = replayed(capsys, *given)
        assert status == 0, said
        assert json.loads(out)["sent"] == len(MESSAGES)
        # Without its notes: the broker knows their ids.
        assert replayed(capsys, *given, "--checkpoint", tmp_path / job)[0] == 0

    found = asyncio.run(receive(served.port, "again", 2 * len(MESSAGES)))

    # Behind the queue's priorities; no message has the id of its first sender.
    ordered = sorted(MESSAGES, key=lambda one: -one.priority)
    assert [fields(one) for one in found] == [fields(one) for one in ordered for _ in "ab"]
    assert {one.annotations[symbol("x-opt-routing-type")] for one in found} == {1}
    ids = {one.properties["_AMQ_DUPL_ID"] for one in found}
    assert len(ids) == len(found)
    assert {one.partition(":")[0] for one in ids} == {"a", "b"}
    with served.client() as client, client.session() as session:
        assert not list(session.browse("again"))


def test_a_filter_and_times_are_for_them_too(spark, history, served, capsys):
    time_ms = NOW_MS // 1000 * 1000
    more = (
        "--filter",
        "n <> 2 AND JMSType = 's'",
        "--from",
        time_ms + 1000,
        "--to",
        time_ms + 5000,
    )

    status, _, said = replayed(capsys, *words(history, served, "some", *more))

    assert status == 0, said
    found = asyncio.run(receive(served.port, "some", 3))
    assert sorted(one.properties["n"] for one in found) == [1, 3, 4]


def test_what_is_damaged_or_not_whole_is_told_and_the_others_are_sent(
    spark, served, capsys, tmp_path
):
    source = Instance(tmp_path / "source").start()
    asyncio.run(send(source.port, MESSAGES))
    assert source.stop() == 0
    cut, gone = sorted((source.data / "large-messages").glob("*.msg"))
    with cut.open("r+b") as file:
        file.truncate(LARGE - 5)
    gone.unlink()

    status, out, _ = replayed(capsys, *words(source.data, served, "rest"))

    said = json.loads(out)
    assert (status, said["found"], said["sent"]) == (1, 6, 4)
    assert [problem.partition(": ")[2] for problem in said["problems"]] == [
        f"message {cut.stem}: its body is not whole",
        f"message {gone.stem}: its body is not there",
    ]
    assert len(asyncio.run(receive(served.port, "rest", 4))) == 4


def test_one_that_cannot_be_read_is_told_of(spark, served, capsys, tmp_path):
    node = Node(tmp_path / "node")
    ids = []
    for encoded in (b"\x00Sw\xa1\x02hi", b"\x00Sw\xa1\xffhi"):
        ids.append(node.new_id())
        amqp = AmqpMessageV3(ids[-1], 0, "orders", encoded, None, 0)
        node.journal.add(ids[-1], MESSAGE, encode_record(amqp))
    node.send(ORDERS, properties={"key": "core"})
    node.close()

    status, out, _ = replayed(capsys, *words(node.folder, served, "damaged"))

    assert status == 1
    (problem,) = json.loads(out)["problems"]
    assert problem.startswith(f"{node.node_id}: message {ids[1]}: of persister AMQP_V3: ")
    first, second = asyncio.run(receive(served.port, "damaged", 2))
    assert (first.body, second.properties["key"]) == ("hi", "core")
