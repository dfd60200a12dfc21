"""Two brokers on one store: the backup waits, and takes over when that is asked for, and only then.

Each is a process of its own, `broker run` on an instance of its own.
"""

import json
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from broker.client import Client
from broker.client.errors import ClientError
from tests.sighup import default_sighup

ROOT = Path(__file__).resolve().parents[2]
END_S = 60
SENT_S = 0.2  # Until what is sent waits at the broker's socket.
XML = """<core>
<name>{name}</name>
{store}
<acceptors><acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>
<security-enabled>false</security-enabled>
<ha-policy><shared-store><{role}>
<failover-on-shutdown>{failover}</failover-on-shutdown>{more}
</{role}></shared-store></ha-policy>
</core>
"""
FILES = """<journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>
<bindings-directory>{place}/bindings</bindings-directory>
<journal-directory>{place}/journal</journal-directory>
<paging-directory>{place}/paging</paging-directory>
<large-messages-directory>{place}/large</large-messages-directory>"""
# A machine that stands still for a while is not a failure.
TABLES = """<store><database-store>
<jdbc-connection-url>sqlite:///{place}/broker.db</jdbc-connection-url>
<jdbc-lock-expiration>600000</jdbc-lock-expiration>
<jdbc-lock-renew-period>50</jdbc-lock-renew-period>
</database-store></store>"""
STORES = {"files": FILES, "tables": TABLES}
# What a backup says while the primary serves, and when it has stopped in good order.
WAITS = {"files": "in use by another broker", "tables": "the primary's state is ACTIVE"}
# And when another backup waits already.
QUEUES = {"files": "has another backup that waits", "tables": "waiting for the lease held by"}
STOPPED = {"files": "not active, or was stopped", "tables": "the primary's state is PAUSED"}


class Member:
    """One of the two, running."""

    def __init__(self, instance):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "broker.cli.main", "run", str(instance)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=default_sighup,
        )

    def says(self, text):
        """Read what it logs until it says so; the line."""
        lines = []
        for line in self.process.stderr:
            print(line, end="")  # What a test that fails shows, one whose time is over too.
            if text in line:
                return line
            lines.append(line)
        raise AssertionError("".join(lines))

    def end(self, number=signal.SIGTERM):
        """Its exit status, and the rest of what it says."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=END_S)
        print(said)
        return self.process.returncode, said


@pytest.fixture
def member(tmp_path):
    """`member(role, kind)`: one of the two, started."""
    made = []

    def start(role, kind, *, failover=False, more=""):
        instance = tmp_path / role
        (instance / "etc").mkdir(parents=True, exist_ok=True)
        store = STORES[kind].format(place=tmp_path)
        flag = str(failover).lower()
        text = XML.format(name=role, store=store, role=role, failover=flag, more=more)
        # Another one of its role may be reading it.
        new = instance / "etc/broker.new"
        new.write_text(text)
        new.replace(instance / "etc/broker.xml")
        made.append(Member(instance))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("kind", STORES)
def test_a_backup_stays_where_it_is_when_the_primary_stops(member, kind):
    primary = member("primary", kind)
    primary.says("serving at")
    backup = member("backup", kind)
    backup.says(WAITS[kind])

    stopped = primary.end()
    backup.says(STOPPED[kind])
    again = member("primary", kind)
    again.says("serving at")
    waited = backup.end()

    assert stopped[0] == 0
    assert waited[0] == 0
    assert "serving at" not in waited[1]
    assert again.end()[0] == 0


@pytest.mark.parametrize("kind", STORES)
def test_a_backup_takes_over_at_a_stop_with_failover_on_shutdown(member, kind):
    primary = member("primary", kind, failover=True)
    primary.says("serving at")
    backup = member("backup", kind)
    backup.says(WAITS[kind])

    assert primary.end()[0] == 0

    backup.says("serving at")
    assert backup.end()[0] == 0


def test_a_backup_takes_over_from_a_primary_that_was_killed(member):
    primary = member("primary", "files")
    primary.says("serving at")
    backup = member("backup", "files")
    backup.says(WAITS["files"])

    primary.end(signal.SIGKILL)

    backup.says("serving at")
    assert backup.end()[0] == 0


@pytest.mark.parametrize("kind", ["files", pytest.param("tables", marks=pytest.mark.slow)])
def test_a_backup_gives_its_place_to_a_primary_that_comes_back_and_waits_again(member, kind):
    primary = member("primary", kind, failover=True)
    primary.says("serving at")
    backup = member("backup", kind)
    backup.says(WAITS[kind])
    assert primary.end()[0] == 0
    backup.says("serving at")

    back = member("primary", kind, failover=True)

    told = backup.says("AMQ221008")
    backup.says("failing-back -> waiting")
    back.says("serving at")
    # And once more, by the same process.
    assert back.end()[0] == 0
    backup.says("serving at")
    assert backup.end()[0] == 0
    assert "restarting server in backup" in told


@pytest.mark.slow
def test_a_backup_that_does_not_restart_ends_when_it_has_given_its_place_back(member):
    more = "<restart-backup>false</restart-backup>"
    primary = member("primary", "files", failover=True)
    primary.says("serving at")
    backup = member("backup", "files", more=more)
    backup.says(WAITS["files"])
    assert primary.end()[0] == 0
    backup.says("serving at")

    back = member("primary", "files")

    back.says("serving at")
    _, said = backup.process.communicate(timeout=END_S)
    assert backup.process.returncode == 0
    assert "failing-back -> stopped" in said
    assert back.end()[0] == 0


def test_the_guide_shows_what_status_prints(tmp_path):
    instance = tmp_path / "first"
    made = subprocess.run(
        [
            *(sys.executable, "-m", "broker.cli.main", "create", str(instance)),
            *("--shared-store", "--data", str(tmp_path / "data")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=END_S,
    )
    guide = (ROOT / "docs/guide/failover.md").read_text()

    status, shown = ha("status", instance)

    assert made.returncode == 0, made.stderr
    assert status == 1
    names = [line.split()[0] for line in shown.splitlines()]
    assert all(f"\n    {name} " in guide for name in names)
    for command in ("status", "demote", "promote", "fence"):
        assert f"`broker ha {command}" in guide


def ha(*arguments):
    """`broker ha` with these arguments; its exit status and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "broker.cli.main", "ha", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=END_S,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["files", pytest.param("tables", marks=pytest.mark.slow)])
def test_an_operator_sees_and_orders_a_pair(member, tmp_path, kind):
    primary = member("primary", kind)
    port = re.search(r"serving at 127.0.0.1:(\d+)", primary.says("serving at"))[1]
    refused, said = ha("demote", "--url", f"tcp://127.0.0.1:{port}")
    assert refused
    assert "no backup waits to take over" in said
    backup = member("backup", kind)
    backup.says(WAITS[kind])

    status, shown = ha("status", tmp_path / "primary", "--json")
    found = json.loads(shown)
    assert status == 0
    assert found["state"] == "L"
    assert found["primary"]
    assert found["backup"]
    refused = ha("promote", tmp_path / "backup")
    assert refused[0]

    # Though failover-on-shutdown is false.
    assert ha("demote", "--url", f"tcp://127.0.0.1:{port}")[0] == 0
    backup.says("serving at")
    assert primary.process.wait(END_S) == 0

    # A stop in good order; the next backup waits until it is told.
    assert backup.end()[0] == 0
    second = member("backup", kind)
    second.says(STOPPED[kind])
    status, shown = ha("status", tmp_path / "backup")
    assert status == 1
    assert "P (stopped in good order" in shown
    assert ha("promote", tmp_path / "backup")[0] == 0
    second.says("serving at")

    assert ha("fence", tmp_path / "backup", "--yes")[0] == 0
    assert second.process.wait(END_S) == 1


@pytest.mark.slow
def test_a_backup_without_failback_keeps_its_place(member, tmp_path):
    primary = member("primary", "files", failover=True)
    primary.says("serving at")
    backup = member("backup", "files", more="<allow-failback>false</allow-failback>")
    backup.says(WAITS["files"])
    assert primary.end()[0] == 0
    backup.says("serving at")

    back = member("primary", "files")
    back.says("in use by another broker")
    asked = (tmp_path / "journal/server.lock").read_bytes()[:1]

    # A stop in good order lets the primary go on, too: it waits already.
    assert backup.end()[0] == 0
    back.says("serving at")
    assert asked == b"F"
    assert back.end()[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_backups_of_one_primary_serve_one_after_the_other(member, kind):
    # A lease of tables that was not given back lasts longer than this test.
    how = signal.SIGKILL if kind == "files" else signal.SIGTERM
    serving = member("primary", kind, failover=True)
    serving.says("serving at")
    first = member("backup", kind, failover=True)
    first.says(WAITS[kind])
    others = [member("backup", kind, failover=True) for _ in range(2)]
    for one in others:
        one.says(QUEUES[kind])

    served = queue.Queue()
    for one in others:
        threading.Thread(target=lambda one=one: (one.says("serving at"), served.put(one))).start()

    serving.end(how)
    first.says("serving at")
    first.end(how)
    # Either of the two is next; the other one waits for it.
    second = served.get(timeout=END_S)
    assert served.empty()
    second.end(how)

    assert served.get(timeout=END_S) is not second


def test_each_transition_of_the_picture_is_in_the_table_and_tried():
    guide = (ROOT / "docs/guide/failover.md").read_text()
    section = guide[guide.index("## States") : guide.index("## In a cluster")]
    drawn = set(re.findall(r'-->\|"(\d+) ', section))
    listed = set(re.findall(r"^\| (\d+) \|", section, re.MULTILINE))
    named = set(re.findall(r"`(test_\w+)`", section))
    tests = "".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))

    assert drawn == listed
    assert len(named) > len(drawn)
    assert {one for one in named if f"def {one}(" not in tests} == set()


class Sender:
    """Sends to a broker until that fails, one message after the answer for another.

    Attributes:
        answered: so many succeeded.
        failure: what ended it.
        goes: unset it to have no message sent.
    """

    def __init__(self, port, queue, *, durable):
        self.answered = 0
        self.failure = None
        self.goes = threading.Event()
        self.goes.set()
        self._is_quiet = threading.Event()
        self._url = f"tcp://127.0.0.1:{port}?blockOnNonDurableSend=true&reconnectAttempts=0"
        self._queue = queue
        self._is_durable = durable
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            with Client(self._url) as client, client.session() as session:
                session.create_queue(self._queue)
                with session.producer(self._queue) as producer:
                    while True:
                        if not self.goes.is_set():
                            self._is_quiet.set()
                            self.goes.wait()
                        producer.send(str(self.answered), durable=self._is_durable)
                        self.answered += 1
        except ClientError as error:
            self.failure = error

    def wait_for(self, count):
        while self.answered < count:
            assert self.failure is None, self.failure
            time.sleep(0.01)

    def pause(self):
        """Return once all that was sent is answered."""
        self.goes.clear()
        assert self._is_quiet.wait(END_S)

    def join(self):
        self._thread.join(END_S)
        assert not self._thread.is_alive()


def content(place):
    """All that lies in the folders of a pair."""
    folders = (place / name for name in ("bindings", "journal", "paging", "large"))
    return {
        path: path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_owner_whose_lock_file_was_replaced_stops_and_answers_nobody(member, tmp_path):
    primary = member("primary", "files")
    port = re.search(r"serving at 127.0.0.1:(\d+)", primary.says("serving at"))[1]
    senders = [Sender(port, "kept", durable=True), Sender(port, "passing", durable=False)]
    for one in senders:
        one.wait_for(100)
    lock = tmp_path / "journal/serverlock.1"

    # Nothing is on its way; what comes finds another owner's lock.
    for one in senders:
        one.pause()
    primary.process.send_signal(signal.SIGSTOP)
    lock.unlink()
    lock.touch()
    written = content(tmp_path)
    answered = [one.answered for one in senders]
    for one in senders:
        one.goes.set()
    time.sleep(SENT_S)
    primary.process.send_signal(signal.SIGCONT)

    primary.says("serverlock.1 was deleted or replaced")
    assert primary.end()[0] == 1
    for one in senders:
        one.join()
    assert content(tmp_path) == written
    assert [one.answered for one in senders] == answered
    # The next owner has each message that was answered, in its order.
    again = member("primary", "files")
    port = re.search(r"serving at 127.0.0.1:(\d+)", again.says("serving at"))[1]
    with (
        Client(f"tcp://127.0.0.1:{port}") as client,
        client.session() as session,
        session.consumer("kept") as consumer,
    ):
        for number in range(answered[0]):
            assert consumer.receive(END_S).text == str(number)
    assert again.end()[0] == 0


def test_a_policy_that_is_not_there_is_refused_with_what_to_take_instead(member, tmp_path):
    instance = tmp_path / "primary"
    (instance / "etc").mkdir(parents=True)
    for policy, words in (
        ("<replication><primary/></replication>", "<shared-store> on a folder or a database"),
        ("<replication><colocated/></replication>", "<shared-store> on a folder or a database"),
        (
            (
                "<shared-store><colocated><request-backup>true</request-backup></colocated>"
                "</shared-store>"
            ),
            "needs a <cluster-connection>",
        ),
    ):
        text = f"<core><name>a</name><ha-policy>{policy}</ha-policy></core>"
        (instance / "etc/broker.xml").write_text(text)
        refused = Member(instance).process
        _, said = refused.communicate(timeout=END_S)
        assert refused.returncode
        assert words in said
    assert not (instance / "data").exists()


def test_a_second_primary_says_whose_lease_it_waits_for_and_stops_when_told(member):
    first = member("primary", "tables")
    first.says("serving at")
    second = member("primary", "tables")

    said = second.says("waiting for the lease held by")
    ended = second.end(signal.SIGHUP)

    assert re.search(r"held by [0-9a-f-]{36} \(row 1 of node_manager_store\)", said, re.IGNORECASE)
    assert ended[0] == 0
    assert first.end()[0] == 0
