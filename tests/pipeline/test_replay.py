"""`pipeline replay`: each message that is asked for is sent once, and nothing else."""

import json

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from jdbcstore import SqlStore
from jdbcstore.options import DatabaseStoreOptions
from journal.reader import read_file
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from pipeline.cli.replay import Moment
from pipeline.replay_progress import ReplayProgress
from tests.journal.golden import GOLDEN
from tests.pipeline.instances import Instance
from tests.pipeline.planted import HOUR_MS, MESSAGE, NOW_MS, ORDERS, Node
from tests.pipeline.test_large_tables import fill
from tests.unpack import unpack

COUNT = 60


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


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Two brokers' data: all is acknowledged and gone, but in the histories; what they had sent."""
    root = tmp_path_factory.mktemp("nodes")
    made = [Node(root / name, keeps_history=True) for name in ("left", "right")]
    sent = {}
    for node in made:
        name = node.folder.name
        for number in range(COUNT):
            key = f"{name}{number}"
            sent[key] = node.send(
                ORDERS,
                # The first one is the oldest, by the sender's clock.
                age_ms=(COUNT - number) * HOUR_MS,
                duplicate=key,
                priority=number % 10,
                properties={"key": key, "filler": "x" * 2000},
            )
            node.send(ORDERS, address="bills", properties={"key": "bill"})
            for end, kept in ((node.journal.rollback, None), (node.journal.commit, "-tx")):
                tx = node.journal.begin()
                message_id = node.send(
                    ORDERS, age_ms=-HOUR_MS, properties={"key": key + "-tx"}, tx=tx
                )
                end(tx)
                if kept:
                    sent[key + kept] = message_id
            node.done(sent[key], ORDERS)
            node.done(sent[key + "-tx"], ORDERS)
        # Never decided.
        tx = node.journal.begin()
        node.send(ORDERS, properties={"key": "undecided"}, tx=tx)
        node.journal.compact()
        node.close()
    return root, sent


def replayed(capsys, *words):
    capsys.readouterr()
    status = run(commands, "pipeline", ["replay", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err


def keys(instance, address):
    with instance.client() as client, client.session() as session:
        return [message.properties["key"].value for message in session.browse(address)]


def in_order(sent, name, tail=""):
    return [
        key for key in sorted(sent, key=sent.get) if key.startswith(name) and key.endswith(tail)
    ]


def test_all_nodes_are_sent_once_and_again_only_by_another_name(spark, nodes, served, capsys):
    root, sent = nodes
    words = [
        root / "*",
        "--address",
        "orders",
        "--target",
        "all",
        "--routing-type",
        "anycast",
        "--url",
        served.url,
        "--json",
    ]
    expected = sorted(sent)

    first = replayed(capsys, *words)
    again = replayed(capsys, *words)

    assert first[0] == again[0] == 0, first[2]
    assert json.loads(first[1])["sent"] == len(sent)
    assert json.loads(again[1])["sent"] == 0
    found = keys(served, "all")
    assert sorted(found) == expected
    for name in ("left", "right"):
        of_node = [key for key in found if key.startswith(name)]
        # Behind the queue's priorities: those that have the same are in the order of sending.
        for priority in range(10):
            ones = [key for key in of_node if key.endswith(str(priority))]
            assert ones == in_order(sent, name, str(priority))

    named = replayed(capsys, *words, "--job", "again")

    assert json.loads(named[1])["sent"] == len(sent)
    assert sorted(keys(served, "all")) == sorted(2 * expected)


def test_what_a_job_has_come_past_and_never_found_is_told(spark, nodes, served, capsys):
    root, _ = nodes
    words = [
        *(root / "left", "--address", "orders", "--target", "later", "--routing-type", "anycast"),
        *("--url", served.url, "--json", "--job", "later"),
    ]
    first_ms = NOW_MS - (COUNT // 2) * HOUR_MS
    assert replayed(capsys, *words, "--from", first_ms)[0] == 0

    for _ in range(2):
        status, out, _ = replayed(capsys, *words)
        said = json.loads(out)
        assert (status, said["sent"]) == (1, 0)
        (problem,) = said["problems"]
        assert (
            f"{said['found'] - len(keys(served, 'later'))} messages that no run before" in problem
        )


def test_without_its_notes_the_broker_refuses_what_it_has(spark, nodes, served, capsys, tmp_path):
    root, sent = nodes
    words = [
        root / "*",
        "--address",
        "orders",
        "--target",
        "notes",
        "--routing-type",
        "anycast",
        "--url",
        served.url,
        "--json",
    ]

    for number in range(2):
        status, *_ = replayed(capsys, *words, "--checkpoint", tmp_path / f"notes{number}")
        assert status == 0

    assert sorted(keys(served, "notes")) == sorted(sent)


def test_times_and_a_filter(spark, nodes, served, capsys):
    root, _ = nodes
    ones = [root / "left" / "journal", root / "left" / "retention"]
    span = ["--from", NOW_MS - 20 * HOUR_MS, "--to", NOW_MS - 10 * HOUR_MS]
    more = [
        "--address",
        "orders",
        "--target",
        "some",
        "--routing-type",
        "anycast",
        "--url",
        served.url,
    ]

    status, _, said = replayed(capsys, *ones, *more, *span, "--filter", "JMSPriority > 4")

    expected = [f"left{COUNT - age}" for age in range(20, 10, -1) if (COUNT - age) % 10 > 4]
    assert status == 0, said
    assert sorted(keys(served, "some")) == sorted(expected)
    assert f"{len(expected)} of {len(expected)} messages sent to some" in said


def test_copies_of_one_node_are_one(spark, nodes, served, capsys, tmp_path):
    root, sent = nodes
    for name in ("monday", "tuesday"):
        (tmp_path / name).symlink_to(root / "left")

    status, out, _ = replayed(
        capsys,
        *(tmp_path / "*day", "--address", "orders", "--target", "copies"),
        *("--routing-type", "anycast", "--url", served.url, "--json"),
    )

    assert status == 0
    assert sorted(keys(served, "copies")) == sorted(in_order(sent, "left"))
    assert json.loads(out)["sent"] == 2 * COUNT


def test_a_database_has_what_it_has(spark, nodes, served, capsys, tmp_path):
    url = f"sqlite:///{tmp_path / 'store.db'}"
    node = Node(tmp_path / "node")
    message_id = node.send(ORDERS, properties={"key": "row"})
    node.close()
    (file, *_) = sorted((tmp_path / "node" / "journal").glob("*.amq"))
    (body,) = [
        one.body
        for one in read_file(file, is_newest=True)
        if one.record_id == message_id and one.kind == "add"
    ]
    with SqlStore(DatabaseStoreOptions(connection_url=url)) as store:
        store.load()
        store.add(message_id, MESSAGE, body)

    status, _, said = replayed(
        capsys,
        url,
        "--address",
        "orders",
        "--target",
        "rows",
        "--routing-type",
        "anycast",
        "--url",
        served.url,
    )

    assert status == 0, said
    assert keys(served, "rows") == ["row"]


def test_a_large_message_of_a_database_has_its_body(spark, served, capsys, tmp_path):
    unpack(GOLDEN / "broker_large" / "broker.tar.gz", tmp_path / "data")
    # The other one's is gone.
    bodies = [tmp_path / "data" / "large" / f"{number}.msg" for number in (11, 12)]
    kept = bodies[0].read_bytes()
    bodies[1].unlink()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    fill(url, tmp_path / "data")

    status, out, _ = replayed(
        capsys,
        *(url, "--address", "large", "--target", "large.rows", "--routing-type", "anycast"),
        *("--url", served.url, "--json"),
    )

    assert status == 1
    said = json.loads(out.splitlines()[-1])
    assert (said["found"], said["sent"]) == (3, 2)
    assert said["problems"] == ["store: message 12: its body is not there"]
    with (
        served.client() as client,
        client.session() as session,
        session.consumer("large.rows") as consumer,
    ):
        found = [consumer.receive(60) for _ in range(2)]
        assert [one.read() for one in found if one.is_large] == [kept]


def test_a_body_that_comes_back_is_sent_by_the_next_run(spark, served, capsys, tmp_path):
    unpack(GOLDEN / "broker_large" / "broker.tar.gz", tmp_path / "data")
    lost = tmp_path / "data" / "large" / "11.msg"
    body = lost.read_bytes()
    lost.unlink()
    words = [
        *(tmp_path / "data", "--address", "large", "--target", "back", "--routing-type", "anycast"),
        *("--url", served.url, "--json"),
    ]

    said = []
    for number in range(4):
        if number == 2:
            lost.write_bytes(body)
        status, out, _ = replayed(capsys, *words)
        said.append((status, json.loads(out)["sent"], len(json.loads(out)["problems"])))

    # Of one that was acknowledged and deleted the body is gone for good.
    assert said == [(1, 2, 2), (1, 0, 2), (1, 1, 1), (1, 0, 1)]


def test_damage_is_told_and_the_rest_is_sent_where_that_is_asked_for(
    spark, served, capsys, tmp_path
):
    node = Node(tmp_path / "node", keeps_history=True)
    for number in range(100):
        node.send(ORDERS, properties={"key": str(number), "filler": "x" * 2000})
    node.close()
    copies = sorted((tmp_path / "node" / "retention").iterdir())
    whole = bytearray(copies[0].read_bytes())
    whole[len(whole) // 2] ^= 1
    copies[0].write_bytes(whole)
    words = [tmp_path / "node" / "retention", "--address", "orders", "--target", "rest"]
    words += ["--routing-type", "anycast", "--url", served.url]

    refused = replayed(capsys, *words)
    status, out, said = replayed(capsys, *words, "--skip-damage", "--json")

    assert refused[0] == 1
    assert len(refused[2].strip().splitlines()) == 1
    assert copies[0].name in refused[2]
    assert status == 1
    found = keys(served, "rest")
    assert len(found) == json.loads(out)["sent"] == len(set(found)) > 30
    assert any(copies[0].name in problem for problem in json.loads(out)["problems"])
    assert copies[0].name in said


WRONG = {
    "no such folder": (["/nowhere", "--address", "a", "--url", "tcp://127.0.0.1:1"], 2),
    "--address": (["{}", "--url", "tcp://127.0.0.1:1"], 2),
    "--url": (["{}", "--address", "a"], 2),
    "url: ": (["{}", "--address", "a", "--url", "tcp://h:port"], 2),
    "is not a valid time": (
        ["{}", "--address", "a", "--url", "tcp://127.0.0.1:1", "--from", "soon"],
        2,
    ),
    "--from is not before": (
        ["{}", "--address", "a", "--url", "tcp://127.0.0.1:1", "--from", "2", "--to", "2"],
        2,
    ),
    "--filter": (["{}", "--address", "a", "--url", "tcp://127.0.0.1:1", "--filter", "a >"], 2),
    "Connect": (["{}", "--address", "a", "--url", "tcp://127.0.0.1:1"], 1),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_is_one_line(what, tmp_path, capsys):
    node = Node(tmp_path / "node")
    node.close()
    words, expected = WRONG[what]

    status, out, said = replayed(capsys, *[word.format(tmp_path / "node") for word in words])

    assert status == expected, said
    assert what in said
    assert not out
    assert len(said.strip().splitlines()) == 1


def test_notes_that_cannot_be_read_are_one_line(served, tmp_path, capsys):
    Node(tmp_path / "node").close()
    words = [tmp_path / "node", "--address", "a", "--routing-type", "anycast", "--url", served.url]
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / ReplayProgress(folder, "mine", served.url).path.name).write_text("{}")

    status, _, said = replayed(capsys, *words, "--checkpoint", folder, "--job", "mine")

    assert status == 2
    assert "does not say how far a replay came" in said
    assert len(said.strip().splitlines()) == 1


def test_times_are_written_in_three_ways():
    moment = Moment()

    assert moment.convert("1700000000000", None, None) == 1700000000000
    assert moment.convert("2023-11-14T22:13:20+00:00", None, None) == 1700000000000
    assert moment.convert("20231114221320", None, None) == moment.convert(
        "2023-11-14T22:13:20", None, None
    )
