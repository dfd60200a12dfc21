"""Two brokers on one store: the backup waits, and takes over when that is asked for, and only then.

Each is a process of its own, `broker run` on an instance of its own.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sighup import default_sighup

ROOT = Path(__file__).resolve().parents[2]
END_S = 60
XML = """<core>
<name>{name}</name>
{store}
<acceptors><acceptor name="a">tcp://127.0.0.1:0</acceptor></acceptors>
<security-enabled>false</security-enabled>
<ha-policy><shared-store><{role}><failover-on-shutdown>{failover}</failover-on-shutdown></{role}>
</shared-store></ha-policy>
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
            if text in line:
                return line
            lines.append(line)
        raise AssertionError("".join(lines))

    def end(self, number=signal.SIGTERM):
        """Its exit status, and the rest of what it says."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=END_S)
        return self.process.returncode, said


@pytest.fixture
def member(tmp_path):
    """`member(role, kind)`: one of the two, started."""
    made = []

    def start(role, kind, *, failover=False):
        instance = tmp_path / role
        (instance / "etc").mkdir(parents=True, exist_ok=True)
        store = STORES[kind].format(place=tmp_path)
        flag = str(failover).lower()
        text = XML.format(name=role, store=store, role=role, failover=flag)
        (instance / "etc/broker.xml").write_text(text)
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
    named = backup.says("without effect")
    backup.says(WAITS[kind])

    stopped = primary.end()
    backup.says(STOPPED[kind])
    again = member("primary", kind)
    again.says("serving at")
    waited = backup.end()

    assert "<allow-failback> of <ha-policy>" in named
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


def test_a_second_primary_says_whose_lease_it_waits_for_and_stops_when_told(member):
    first = member("primary", "tables")
    first.says("serving at")
    second = member("primary", "tables")

    said = second.says("waiting for the lease held by")
    ended = second.end(signal.SIGHUP)

    assert re.search(r"held by [0-9a-f-]{36} \(row 1 of node_manager_store\)", said, re.IGNORECASE)
    assert ended[0] == 0
    assert first.end()[0] == 0
