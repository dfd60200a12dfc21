"""XML of stored data between Artemis's command line and ours, both ways."""

import json
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from broker.client import Client
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from journal.cli.main import journal
from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import VERSIONS, ArtemisBroker, distribution
from tests.interop.our_broker import OurBroker
from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
# Each JVM takes its seconds: one scenario of a kind always, the others in `make test-all`.
SCENARIOS = (
    *("broker_large", "broker_paging"),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            *("broker_basic", "broker_config", "broker_restart_compacted"),
            *("broker_storage_api", "broker_tx_xa"),
        )
    ),
)
END_S = 300
WAIT_S = 60
LARGE = bytes(range(256)) * 1200


@pytest.fixture(scope="module")
def artemis():
    """Artemis's command line: status, and what it wrote to standard output."""
    try:
        home = distribution()
    except PeerUnavailableError as missing:
        pytest.skip(f"Artemis's command line cannot be run here: {missing}")

    def call(*words):
        done = subprocess.run(
            [str(home / "bin" / "artemis"), *map(str, words)],
            capture_output=True,
            timeout=END_S,
            env={**os.environ, "TZ": "UTC"},
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return call


def ours(capsys, *words):
    status = run(commands, "broker", ["data", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err


def folders(data):
    for name in ("paging", "large"):
        (data / name).mkdir(exist_ok=True)
    return [
        *("--bindings", data / "bindings", "--journal", data / "journal"),
        *("--paging", data / "paging", "--large-messages", data / "large"),
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_same_data_give_the_same_text(scenario, artemis, tmp_path, capsys):
    data = unpack(GOLDEN / scenario / "broker.tar.gz", tmp_path)
    status, mine, said = ours(capsys, "exp", data)
    # Last, for it changes what it reads.
    _, theirs, wrong = artemis("data", "exp", *folders(data))

    assert theirs.endswith("</activemq-journal>"), wrong
    assert status == 0, said
    assert mine.splitlines() == theirs.splitlines()


# Hash codes of objects, which differ in every run; ours are 0.
IDENTITY = re.compile(r"(?<=\]@)\d+")


def paging_of(text):
    lines = text.splitlines()
    return [IDENTITY.sub("0", line) for line in lines[lines.index("P A G I N G") + 2 :]]


@pytest.mark.parametrize(
    "options",
    [
        (),
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (("--safe",), ("--max-pages", "2"), ("--max-pages", "0"))
        ),
    ],
)
def test_pages_are_printed_in_the_same_words(options, artemis, tmp_path, capsys):
    data = unpack(GOLDEN / "broker_paging" / "broker.tar.gz", tmp_path)
    status, mine, _ = ours(capsys, "print", data, *options)
    _, theirs, wrong = artemis("data", "print", *folders(data), *options)

    assert status == 0
    assert paging_of(mine) == paging_of(theirs), wrong


def records_of(capsys, folder):
    """Kind, id, type and body of each record, in order."""
    assert run(journal, "journal", ["print-data", str(folder), "--raw", "--format", "jsonl"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(one["record"], one["id"], one["user_type"], one["body"]) for one in found]


@pytest.mark.parametrize(
    "scenario",
    [
        "broker_tx_xa",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("broker_basic", "broker_paging")),
    ],
)
def test_the_same_is_recovered(scenario, artemis, tmp_path, capsys):
    data = unpack(GOLDEN / scenario / "broker.tar.gz", tmp_path)
    status, said, wrong = ours(capsys, "recover", data, "--target", tmp_path / "mine")
    theirs = artemis("data", "recover", *folders(data), "--target", tmp_path / "theirs")

    assert status == 0, wrong
    assert theirs[0] == 0, theirs[1] + theirs[2]
    found = records_of(capsys, tmp_path / "mine")
    assert found == records_of(capsys, tmp_path / "theirs")
    assert said.startswith(f"recovered: {sum(one[2] in (30, 45) for one in found)} messages")


QUEUES = ("plain", "filtered", "a.one", "a.two")


def fill(session):
    session.create_queue("plain")
    session.create_queue("filtered", "things", selector="colour = 'red'")
    session.create_address("a", RoutingType.MULTICAST)
    for queue in ("a.one", "a.two"):
        session.create_queue(queue, "a", routing_type=RoutingType.MULTICAST)
    typed = [Property("", kind, value) for kind, value in VALUES.items()]
    with session.producer("plain") as sender:
        sender.send("text é", properties={one.type.name: one for one in typed})
        sender.send(b"bytes", priority=7)
        sender.send({"key": 1})
        sender.send([1, "two"])
        sender.send(None)
        sender.send(LARGE, properties={"n": 1})
    session.producer("things").send("kept", properties={"colour": "red"})
    for number in range(4):
        session.producer("a").send(f"m{number}")
    with session.consumer("a.two") as consumer:
        for _ in range(2):
            consumer.receive(WAIT_S).acknowledge()


# A character is lost on this way: Artemis's export has no word for it.
VALUES = {
    PropertyType.NULL: None,
    PropertyType.BOOLEAN: True,
    PropertyType.BYTE: -128,
    PropertyType.BYTES: b"\xff\x00",
    PropertyType.SHORT: -2,
    PropertyType.INT: 2**31 - 1,
    PropertyType.LONG: -(2**63),
    PropertyType.FLOAT: 0.5,
    PropertyType.DOUBLE: 1e-300,
    PropertyType.STRING: "<&> \"'",
}


def content_of(session):
    """What each queue has: contents, priorities and the users' properties, in order."""
    return {
        queue: [
            (
                one.read() if one.is_large else one.content,
                one.message.priority,
                {
                    name: item
                    for name, item in one.properties.items()
                    if not name.startswith("_AMQ_")
                },
            )
            for one in session.browse(queue)
        ]
        for queue in QUEUES
    }


def session_of(broker, stack):
    connected = stack.enter_context(Client(broker.uri, user=broker.USER, password=broker.PASSWORD))
    return stack.enter_context(connected.session())


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_an_export_of_ours_goes_through_artemis_and_back(artemis, version, tmp_path, capsys):
    first = OurBroker(tmp_path)
    with ExitStack() as stack:
        session = session_of(first, stack)
        fill(session)
        before = content_of(session)
    assert [len(before[queue]) for queue in QUEUES] == [6, 1, 4, 2]
    assert first.end() == 0
    document = tmp_path / "ours.xml"
    assert ours(capsys, "exp", first.folder, "--output", document)[0] == 0

    theirs = ArtemisBroker(tmp_path, version=version)
    theirs.start()
    try:
        login = ("--user", theirs.USER, "--password", theirs.PASSWORD)
        status, said, wrong = artemis(
            "data", "imp", "--input", document, "--url", theirs.uri, *login
        )
        assert status == 0, said + wrong
        with ExitStack() as stack:
            assert content_of(session_of(theirs, stack)) == before
    finally:
        theirs.stop()
    data = theirs._folder / "data"
    # The newest makes it at the first page only, and the command line asks for it.
    (data / "paging").mkdir(exist_ok=True)
    status, text, wrong = artemis(
        *("data", "exp", "--bindings", data / "bindings", "--journal", data / "journal"),
        *("--paging", data / "paging", "--large-messages", data / "large-messages"),
    )
    assert text.endswith("</activemq-journal>"), wrong
    back = tmp_path / "theirs.xml"
    back.write_text(text)

    (tmp_path / "second").mkdir()
    second = OurBroker(tmp_path / "second")
    try:
        login = ("--user", second.USER, "--password", second.PASSWORD)
        status, _, said = ours(capsys, "imp", "--input", back, "--url", second.uri, *login)
        assert status == 0, said
        with ExitStack() as stack:
            assert content_of(session_of(second, stack)) == before
    finally:
        assert second.end() == 0
