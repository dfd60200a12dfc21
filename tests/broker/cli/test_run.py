"""`broker run`: serves until it is told to stop; says in one line why it cannot."""

import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from broker.client import Client
from tests.sighup import default_sighup

ROOT = Path(__file__).resolve().parents[3]
END_S = 60


def broker(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "broker.cli.main", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_sighup,
        **options,
    )


def ended(process):
    """Its exit status, and what it said."""
    _, said = process.communicate(timeout=END_S)
    return process.returncode, said


@pytest.fixture
def instance(tmp_path):
    folder = tmp_path / "instance"
    words = ("--password", "p", "--queues", "orders", "--http-port", "0", "--max-disk-usage", "-1")
    created = broker("create", folder, *words)
    assert ended(created)[0] == 0
    xml = folder / "etc" / "broker.xml"
    xml.write_text(xml.read_text().replace(":61616", ":0"))
    return folder


def test_it_serves_until_it_is_told_to_stop(instance):
    running = broker("run", instance)
    try:
        while not running.stderr.readline().startswith("serving at"):
            assert running.poll() is None
        second = ended(broker("run", instance))
    finally:
        running.send_signal(signal.SIGTERM)

    assert second[0] == 2
    assert f"in use by another broker (process {running.pid})" in second[1].splitlines()[-1]
    assert ended(running)[0] == 0


def test_a_terminal_that_is_closed_stops_it_in_good_order(instance):
    running = broker("run", instance)
    while not running.stderr.readline().startswith("serving at"):
        assert running.poll() is None

    running.send_signal(signal.SIGHUP)

    status, said = ended(running)
    assert status == 0
    assert "stopped" in said


def test_a_second_signal_ends_the_wait_for_clients(instance):
    xml = instance / "etc" / "broker.xml"
    graceful = "<graceful-shutdown-enabled>true</graceful-shutdown-enabled>"
    xml.write_text(xml.read_text().replace("</core>", f"{graceful}</core>"))
    running = broker("run", instance)

    def line_with(words):
        while words not in (line := running.stderr.readline()):
            assert running.poll() is None
        return line

    port = re.findall(r":(\d+)", line_with("serving at"))[0]
    with Client(f"tcp://127.0.0.1:{port}", user="admin", password="p") as client:
        session = client.session()
        running.send_signal(signal.SIGTERM)
        line_with("when its clients have left")
        # It serves on as long as they are there.
        session.producer("orders").send("late")
        running.send_signal(signal.SIGTERM)
        status, said = ended(running)

    assert status == 0
    assert "stopping at once after a second signal: clients are not waited for" in said


def test_under_nohup_a_closed_terminal_stops_nothing(instance):
    ignored = "trap '' HUP; exec " + shlex.join(
        [sys.executable, "-m", "broker.cli.main", "run", str(instance)]
    )
    running = subprocess.Popen(
        ["sh", "-c", ignored],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not running.stderr.readline().startswith("serving at"):
        assert running.poll() is None

    running.send_signal(signal.SIGHUP)
    is_ignored = has_ignored(running.pid, signal.SIGHUP)
    running.send_signal(signal.SIGTERM)

    assert is_ignored
    assert ended(running)[0] == 0


def has_ignored(pid, number):
    """Whether a process ignores a signal, as the kernel says."""
    (mask,) = re.findall(r"SigIgn:\s*(\S+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) & (1 << (number - 1)))


def test_it_logs_for_machines_and_tells_its_health(instance):
    xml = instance / "etc" / "broker.xml"
    text = xml.read_text().replace(
        "<acceptors>", "<grouping-handler name='g'><type>LOCAL</type></grouping-handler><acceptors>"
    )
    xml.write_text(text)
    running = broker("run", instance, "--log-format", "json", "--verbose")
    lines = []
    try:
        for line in running.stderr:
            lines.append(line)
            if line.startswith("serving at"):
                break
        (web,) = re.findall(r"http://\S+", lines[-1])
        with urllib.request.urlopen(f"{web}/readyz", timeout=END_S) as answer:
            assert answer.read() == b"ready\n"
        with urllib.request.urlopen(f"{web}/metrics", timeout=END_S) as answer:
            assert b"artemis_active" in answer.read()
    finally:
        running.send_signal(signal.SIGTERM)

    assert ended(running)[0] == 0
    events = [json.loads(line) for line in lines[:-1]]
    assert "AMQ221007" in [event.get("code") for event in events]
    loop = [event["message"] for event in events if event["message"].startswith("event loop")]
    assert loop == [f"event loop: {'uvloop' if find_spec('uvloop') else 'asyncio.unix_events'}"]
    frozen = [event["message"] for event in events if "cycle collections" in event["message"]]
    assert len(frozen) == 1
    assert int(frozen[0].split()[0]) > 10_000
    useless = [event["message"] for event in events if "without effect" in event["message"]]
    assert useless == ["configured, and without effect in this version: <grouping-handler>"]


def test_a_configuration_that_cannot_be_is_one_line(instance):
    xml = instance / "etc" / "broker.xml"
    xml.write_text(xml.read_text().replace("<acceptors>", "<acceptor>", 1))

    status, said = ended(broker("run", instance))

    assert status == 2
    assert len(said.splitlines()) == 1


def test_a_port_that_is_taken_is_one_line(instance):
    xml = instance / "etc" / "broker.xml"
    text = xml.read_text().replace("tcp://0.0.0.0:0", "tcp://198.51.100.1:1")
    xml.write_text(text)

    status, said = ended(broker("run", instance))

    assert status == 2
    assert "cannot listen on 198.51.100.1:1" in said.splitlines()[-1]


def test_a_changed_file_is_applied_and_a_bad_one_is_a_line_in_the_log(instance):
    xml = instance / "etc" / "broker.xml"
    good = xml.read_text().replace(
        "<acceptors>",
        "<configuration-file-refresh-period>50</configuration-file-refresh-period><acceptors>",
    )
    xml.write_text(good)
    running = broker("run", instance)

    def line_with(text):
        for line in running.stderr:
            if text in line:
                return line
        raise AssertionError(f"the broker ended without {text!r}")

    def request(*words):
        status, said = ended(broker(*words, "--url", url, "--user", "admin", "--password", "p"))
        return status, said.splitlines()[-1] if said else ""

    try:
        url = "tcp://127.0.0.1:" + re.findall(r":(\d+)", line_with("serving at"))[0]
        xml.write_text(good.replace('name="orders"', 'name="bills"'))
        line_with("AMQ221056: Reloading configuration")
        assert request("queue", "purge", "bills")[0] == 0
        xml.write_text(good.replace("<acceptors>", "<acceptor>"))
        assert "nothing changed" in line_with("AMQ224069")
        status, said = request("reload")
        assert status == 1
        assert "broker.xml" in said
        xml.write_text(good)
        assert request("reload") == (0, "reloaded")
    finally:
        running.send_signal(signal.SIGTERM)

    assert ended(running)[0] == 0
