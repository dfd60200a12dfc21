"""`broker data exp` and `imp`: what one broker stored goes into another, whole."""

import io
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from broker.client import AckMode, Client, make_message
from broker.model.message_types import Persister
from broker.model.routing_type import RoutingType
from broker.model.wire import RecordType
from broker.model.xid import Xid
from broker.printing.xml.reader import MessageElement, read_document
from broker.records.records import encode_record
from broker.records.stored_messages import AmqpMessageV3
from broker.storage.open import messages_options
from journal.journal import Journal
from tests.broker.serve import BrokerProcess
from tests.unpack import unpack

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
END_S = 120
# Above this a body is large.
LARGE = bytes(range(256)) * 1200
BACKSLASHED = "a\tb\nc <&> \"'"


def call(capsys, *words):
    status = run(commands, "broker", ["data", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err.splitlines()


def client(process):
    return Client(f"tcp://127.0.0.1:{process.port}")


def content_of(process, *queues):
    """What each queue has: contents and properties, in order."""
    with client(process) as connected, connected.session() as session:
        return {
            queue: [
                (
                    one.read() if one.is_large else one.content,
                    one.message.priority,
                    {
                        name: item.value
                        for name, item in one.properties.items()
                        if not name.startswith("_AMQ_")
                    },
                )
                for one in session.browse(queue)
            ]
            for queue in queues
        }


QUEUES = ("plain", "filtered", "a.one", "a.two", "paged")


def fill(process):
    """One of everything that is exported, and of what is not."""
    with client(process) as connected:
        with connected.session() as session:
            session.create_queue("plain")
            session.create_queue("filtered", "things", selector="colour = 'red'")
            session.create_address("a", RoutingType.MULTICAST)
            for queue in ("a.one", "a.two"):
                session.create_queue(queue, "a", routing_type=RoutingType.MULTICAST)
            sender = session.producer("plain")
            sender.send("text é", properties={"none": None, "half": 0.5, BACKSLASHED: BACKSLASHED})
            sender.send(b"bytes", priority=7)
            sender.send({"key": 1})
            sender.send([1, "two"])
            sender.send(None)
            sender.send(LARGE, properties={"n": 1})
            session.producer("things").send("kept", properties={"colour": "red"})
            for number in range(4):
                session.producer("a").send(f"m{number}")
        with connected.session() as session, session.consumer("a.two") as consumer:
            for _ in range(2):
                consumer.receive(END_S).acknowledge()
        with connected.session(AckMode.TRANSACTED) as session:
            session.producer("plain").send("never committed")
        with connected.session(AckMode.TRANSACTED) as session:
            xid = Xid(1, b"branch", b"global")
            session.xa_start(xid)
            session.producer("plain").send("only prepared")
            session.xa_end(xid)
            session.xa_prepare(xid)


def fill_pages(process):
    with client(process) as connected, connected.session() as session:
        session.create_queue("paged")
        sender = session.producer("paged")
        for number in range(60):
            sender.send(b"%03d" % number * 1000)
        sender.send(LARGE)
        with session.consumer("paged") as consumer:
            for _ in range(20):
                consumer.receive(END_S).acknowledge()


def test_everything_of_one_broker_goes_into_another(tmp_path, capsys):
    first = BrokerProcess(tmp_path / "first", max_messages=10)
    try:
        fill(first)
        fill_pages(first)
        before = content_of(first, *QUEUES)
    finally:
        assert first.stop() == 0
    assert [len(before[queue]) for queue in QUEUES] == [6, 1, 4, 2, 41]
    exported = tmp_path / "exported.xml"

    status, out, said = call(capsys, "exp", tmp_path / "first", "--output", exported)

    assert (status, out) == (0, "")
    assert said[-1].endswith("52 messages")
    second = BrokerProcess(tmp_path / "second")
    try:
        url = f"tcp://127.0.0.1:{second.port}"
        assert call(capsys, "imp", "--input", exported, "--url", url)[::2] == (
            0,
            ["imported: 52 messages"],
        )
        assert content_of(second, *QUEUES) == before
    finally:
        assert second.stop() == 0
    # Bindings are there already, and nothing else is: all in one transaction, sorted.
    third = BrokerProcess(tmp_path / "third")
    try:
        url = f"tcp://127.0.0.1:{third.port}"
        words = ("imp", "--input", exported, "--url", url, "--transaction", "--sort")
        assert call(capsys, *words)[0] == 0
        assert content_of(third, *QUEUES) == before
    finally:
        third.stop()


def instance_on(tmp_path, name, *options):
    folder = tmp_path / name
    words = ["create", str(folder), "--password", "p", "--no-web", "--user", "u"]
    # Whether the disk of this machine is full says nothing.
    words += ["--max-disk-usage", "-1", *options]
    assert run(commands, "broker", words) == 0
    xml = folder / "etc" / "broker.xml"
    xml.write_text(xml.read_text().replace(":61616", ":0"))
    return folder


class Running:
    """The broker of an instance."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "broker.cli.main", "run", str(folder)],
            cwd=folder.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self._process.stderr:
            said.append(line)
            found = re.match(r"serving at .*:(\d+)", line)
            if found:
                self.port = int(found[1])
                return
        raise AssertionError("".join(said))

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=END_S)
        return self._process.returncode


def test_a_database_is_exported_like_files(tmp_path, capsys):
    instance = instance_on(tmp_path, "sql", "--jdbc", f"sqlite:///{tmp_path}/broker.db")
    xml = instance / "etc" / "broker.xml"
    # Held for long: it must not expire on a machine that stands still.
    lease = "<database-store><jdbc-lock-expiration>3600000</jdbc-lock-expiration>"
    assert "<database-store>" in xml.read_text()
    xml.write_text(xml.read_text().replace("<database-store>", lease))
    running = Running(instance)
    try:
        with (
            Client(f"tcp://127.0.0.1:{running.port}", user="u", password="p") as connected,
            connected.session() as session,
        ):
            session.create_queue("orders")
            for number in range(5):
                session.producer("orders").send(f"m{number}")
        capsys.readouterr()
        refused = call(capsys, "exp", instance)
        assert (refused[0], len(refused[2])) == (2, 1)
        assert "a broker runs on" in refused[2][0]
    finally:
        assert running.stop() == 0

    status, out, said = call(capsys, "exp", instance)

    assert (status, out.count("<message ")) == (0, 5)
    assert '<queue-binding address="orders" filter-string="" name="orders"' in out
    assert said[-1].endswith("5 messages")


@pytest.fixture
def folder(tmp_path):
    """Data of Artemis's broker."""

    def unpacked(name):
        return unpack(GOLDEN / name / "broker.tar.gz", tmp_path / name)

    return unpacked


def test_data_of_artemis_are_exported(folder, capsys):
    status, out, said = call(capsys, "exp", folder("broker_large"))

    assert status == 0
    assert out.count('isLarge="true"') == 2
    assert said[-1].endswith(f"{out.count('<message ')} messages")


def test_pages_of_artemis_are_exported_without_what_was_acknowledged(folder, capsys):
    status, out, _ = call(capsys, "exp", folder("broker_paging"))

    assert status == 0
    assert out.count("<message ") > 50


def test_a_large_message_without_a_body_is_told(folder, capsys):
    data = folder("broker_large")
    shutil.rmtree(data / "large")

    status, out, said = call(capsys, "exp", data)

    assert status == 1
    assert 'isLarge="true"' not in out
    assert sum("has no body: left out" in line for line in said) == 2


@pytest.mark.parametrize("count", [2, 12])
def test_messages_of_a_kind_not_read_here_are_counted_and_told_in_one_line(tmp_path, capsys, count):
    broker = BrokerProcess(tmp_path / "data")
    with client(broker) as connected, connected.session() as session:
        session.create_queue("q")
        session.producer("q").send("of Core")
    assert broker.stop() == 0
    _, before, _ = call(capsys, "exp", tmp_path / "data")
    queue_id = int(re.search(r'<queue-binding[^>]* name="q" id="(\d+)"', before)[1])
    with Journal(messages_options(tmp_path / "data" / "journal", journal_type="NIO")) as journal:
        journal.load()
        for number in range(100_001, 100_001 + count):
            journal.add(number, RecordType.ADD_MESSAGE_PROTOCOL, bytes([Persister.AMQP_LARGE]))
            journal.update(number, RecordType.ADD_REF, struct.pack(">q", queue_id))
        sent = AmqpMessageV3(100_100, 0, "q", b"\x00\x53\x77\xa1\x02hi", None, 0)
        journal.add(100_100, sent.record_type, encode_record(sent))
        journal.update(100_100, RecordType.ADD_REF, struct.pack(">q", queue_id))

    status, out, said = call(capsys, "exp", tmp_path / "data")

    ids = ", ".join(map(str, range(100_001, 100_001 + min(count, 10))))
    more = " and 2 more" if count > 10 else ""
    assert status == 1
    assert out.count("<message ") == 2
    # The AMQP message, as Artemis exports it: as the Core message that it becomes.
    assert '<message id="100100" priority="4"' in out
    assert '<property name="JMS_AMQP_ORIGINAL_ENCODING" value="5" type="short"/>' in out
    assert said == [
        f"left out, of a kind not read here: {count} messages, of ids {ids}{more}",
        "exported: 2 addresses, 1 queues, 2 messages",
    ]


def test_a_queue_without_a_binding_is_exported_under_a_name_of_its_id(folder, capsys):
    data = folder("broker_basic")
    for file in (data / "bindings").iterdir():
        file.unlink()
    other = folder("broker_tx_xa")
    shutil.rmtree(data / "bindings")
    (other / "bindings").rename(data / "bindings")

    status, out, said = call(capsys, "exp", data, "--undefined-prefix", "Lost_")

    names = set(re.findall(r'<queue name="(Lost_\d+)"', out))
    assert (status, len(names)) == (1, sum("has no binding" in line for line in said))


def test_the_output_is_there_whole_or_not_at_all(folder, tmp_path, capsys):
    data = folder("broker_basic")
    target = tmp_path / "out.xml"
    target.write_text("before")
    shutil.rmtree(data / "journal")

    assert call(capsys, "exp", data, "--output", target)[0] == 2

    assert target.read_text() == "before"
    assert list(tmp_path.glob("*.partial")) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no XML", "line 1: syntax error; 0 imported"),
        ("<activemq-journal><messages><message/></messages></activemq-journal>", "is for no queue"),
    ],
)
def test_what_cannot_be_imported_is_one_line(text, said, tmp_path, capsys):
    document = tmp_path / "document.xml"
    document.write_text(text)
    running = BrokerProcess("-")
    try:
        url = f"tcp://127.0.0.1:{running.port}"
        status, _, lines = call(capsys, "imp", "--input", document, "--url", url)
    finally:
        running.stop()

    assert (status, len(lines)) == (2, 1)
    assert said in lines[0]


def test_messages_for_a_missing_queue_create_it(tmp_path, capsys):
    document = tmp_path / "document.xml"
    document.write_text(
        '<activemq-journal><bindings><binding address="jms.topic.news" filter-string=""'
        ' queue-name="jms.topic.mine" id="1"/></bindings><messages>'
        '<message id="1" type="text"><queues><queue name="jms.topic.mine"/><queue name="new"/>'
        "</queues><body><![CDATA[AQAAAARhAGIA]]></body></message></messages></activemq-journal>"
    )
    running = BrokerProcess("-")
    try:
        url = f"tcp://127.0.0.1:{running.port}"
        assert call(capsys, "imp", "--input", document, "--url", url)[0] == 0
        assert content_of(running, "mine", "new") == {
            "mine": [("ab", 0, {})],
            "new": [("ab", 0, {})],
        }
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("exp",), "Missing argument 'DIR'"),
        (("exp", "."), "neither an instance"),
        (("exp", "nowhere"), "does not exist"),
        (("imp",), "Missing option '--input'"),
        (("imp", "--input", "nowhere.xml"), "does not exist"),
        (("imp", "--input", "-", "--sort"), "--sort reads twice: give a file"),
    ],
)
def test_wrong_usage_is_one_line(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    status, _, lines = call(capsys, *words)

    assert (status, len(lines)) == (2, 1)
    assert said in lines[0]


def test_no_broker_at_the_url_is_one_line(tmp_path, capsys):
    document = tmp_path / "document.xml"
    document.write_text("<activemq-journal/>")

    status, _, lines = call(capsys, "imp", "--input", document, "--url", "tcp://127.0.0.1:1")

    assert (status, len(lines)) == (1, 1)


def test_a_message_of_ours_keeps_its_user_id_as_one(tmp_path, capsys):
    """Which one is not kept: there must not be two messages of one id."""
    first = BrokerProcess(tmp_path / "first")
    try:
        with client(first) as connected, connected.session() as session:
            session.create_queue("q")
            session.producer("q").send(make_message("x", user_id=bytes(range(16))))
    finally:
        first.stop()

    _, out, _ = call(capsys, "exp", tmp_path / "first")

    assert 'user-id="00010203-0405-1607-8809-0a0b0c0d0e0f"' in out


def bodies_of(text):
    """Bodies: what is large in one broker need not be in another."""
    found = read_document(io.BytesIO(text.encode()))
    return {one.body.read() for one in found if isinstance(one, MessageElement)}


@pytest.mark.parametrize("kind", ["folder", "instance", "database"])
def test_data_without_a_running_broker_are_imported_into(kind, folder, tmp_path, capsys):
    document = tmp_path / "out.xml"
    assert call(capsys, "exp", folder("broker_large"), "--output", document)[0] == 0
    if kind == "folder":
        target = folder("broker_basic")
        before = call(capsys, "exp", target)[1].count("<message ")
    else:
        jdbc = ("--jdbc", f"sqlite:///{tmp_path}/broker.db") if kind == "database" else ()
        target = instance_on(tmp_path, "instance", *jdbc)
        before = 0
    capsys.readouterr()

    status, _, said = call(capsys, "imp", target, "--input", document)

    count = document.read_text().count("<message ")
    assert (status, said[-1]) == (0, f"imported: {count} messages")
    found = call(capsys, "exp", target)[1]
    assert found.count("<message ") == before + count
    assert bodies_of(document.read_text()) <= bodies_of(found)


def test_data_that_a_broker_runs_on_are_left_to_it(tmp_path, capsys):
    document = tmp_path / "document.xml"
    document.write_text("<activemq-journal/>")
    running = BrokerProcess(tmp_path / "data")
    try:
        status, _, lines = call(capsys, "imp", tmp_path / "data", "--input", document)
    finally:
        assert running.stop() == 0

    assert (status, len(lines)) == (2, 1)
    assert "in use" in lines[0]


def test_data_and_a_url_are_one_too_many(tmp_path, capsys):
    document = tmp_path / "document.xml"
    document.write_text("<activemq-journal/>")

    status, _, lines = call(capsys, "imp", tmp_path, "--input", document, "--url", "tcp://x:1")

    assert (status, len(lines)) == (2, 1)
