"""Bridges by files: in a running broker, alone as a command, and what is wrong with a file."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest
from click.testing import CliRunner

from broker.bridges.jms import BridgeConfigError, BridgeState, JMSBridge
from broker.bridges.jms.definition import read_definition
from broker.bridges.jms.deployed import DeployedBridges
from broker.bridges.jms.provider_types import make_bridge
from broker.cli.bridge import bridge as command
from broker.cli.create import create
from broker.embedded import EmbeddedBroker
from broker.errors import BrokerError
from tests.broker.bridges.jms.ends import WAIT_S, End, an_end, wait_for

GOOD = """
quality-of-service = "ONCE_AND_ONLY_ONCE"
max-batch-size = 10
max-batch-time = 20
failure-retry-interval = 10
add-message-id-in-header = true

[source]
url = "{source}"
queue = "q"

[target]
url = "{target}"
queue = "q"
"""


@pytest.fixture
def target():
    with an_end() as end:
        end.create("q")
        yield end


def url(end):
    return f"tcp://127.0.0.1:{end.port}"


def instance(tmp_path, *options):
    words = [str(tmp_path / "b"), "--queues", "q", "--port", "0", "--allow-anonymous"]
    found = CliRunner().invoke(create, [*words, "--max-disk-usage", "-1", *options])
    assert found.exit_code == 0, found.output
    folder = tmp_path / "b" / "etc" / "bridges"
    folder.mkdir()
    return tmp_path / "b" / "etc" / "broker.xml", folder


def run(*arguments):
    return CliRunner().invoke(command, arguments)


def test_a_running_broker_has_the_bridges_of_its_folder(tmp_path, target):
    xml, folder = instance(tmp_path)
    (folder / "orders.toml").write_text(GOOD.format(source="vm://", target=url(target)))

    with EmbeddedBroker.from_xml(xml) as running:
        end = End(running)
        here = ("--url", url(end))
        with end.client:
            end.send("q", "one")
            assert target.contents("q", 1) == ["one"]
            wait_for(lambda: json.loads(run("status", "--json", *here).output)["moved"] == 1)
            row = json.loads(run("status", "orders", "--json", *here).output)
            assert row["name"] == "orders"
            assert row["state"] == "started"
            assert run("why", "orders", *here).output == "it moves messages\n"

            assert run("pause", "orders", *here).exit_code == 0
            assert run("why", "orders", *here).output == "paused\n"
            end.send("q", "two")
            assert run("resume", "orders", *here).exit_code == 0
            assert target.contents("q", 1) == ["two"]

            assert run("stop", "orders", *here).exit_code == 0
            assert run("why", "orders", *here).output == "not started\n"
            end.send("q", "three")
            assert run("start", "orders", *here).exit_code == 0
            assert target.contents("q", 1) == ["three"]

            assert "orders" in run("status", *here).output
            wrong = run("why", "other", *here)
            assert wrong.exit_code == 1
            assert "no bridge 'other'; the broker has orders" in wrong.output


def test_metrics_have_the_bridges(tmp_path, target):
    xml, folder = instance(tmp_path, "--http-port", "0")
    (folder / "orders.toml").write_text(GOOD.format(source="vm://", target=url(target)))

    with EmbeddedBroker.from_xml(xml) as running:
        end = End(running)
        with end.client:
            end.send("q", "one")
            target.contents("q", 1)
            place = f"http://127.0.0.1:{running.broker.web[0].port}/metrics"

            def moved():
                text = urllib.request.urlopen(place).read().decode()
                return 'quiver_jms_bridge_messages{bridge="orders",broker=' in text and any(
                    line.startswith("quiver_jms_bridge_messages{") and line.endswith(" 1.0")
                    for line in text.splitlines()
                )

            wait_for(moved)


def test_a_wrong_file_refuses_the_start_of_the_broker(tmp_path):
    xml, folder = instance(tmp_path)
    (folder / "orders.toml").write_text("[source]\nqueue = 'q'\n")

    with (
        pytest.raises(BrokerError, match=r"orders.toml: \[target\] is missing"),
        EmbeddedBroker.from_xml(xml),
    ):
        pass


def test_object_names_are_unique(tmp_path):
    xml, folder = instance(tmp_path)
    text = 'object-name = "one"\n' + GOOD.format(source="vm://", target="tcp://127.0.0.1:1")
    for name in ("a", "b"):
        (folder / f"{name}.toml").write_text(text)

    with (
        pytest.raises(BrokerError, match="another bridge is called 'one'"),
        EmbeddedBroker.from_xml(xml),
    ):
        pass


WRONG = {
    "not-toml": ("= 1", "Invalid"),
    "unknown": ("max-batch-sise = 1\n", "no parameter 'max-batch-sise'; did you mean"),
    "type": ("max-batch-size = '1'\n", "max-batch-size is '1'; it must be of type int"),
    "quality": ("quality-of-service = 'TWICE'\n", "AT_MOST_ONCE or DUPLICATES_OK or ONCE"),
    "value": ("max-batch-size = 0\n", "max_batch_size is 0; it must be at least 1"),
    "provider": ("", "no provider 'carrier-pigeon'; there are core, jms, stomp, amqp, and any"),
    "module": ("", "provider 'no.such:thing': No module named 'no'"),
    "url": ("", r"\[source\]: url is missing"),
    "vm": ("", r"\[source\]: vm:// is for bridges that a broker runs"),
    "setting": ("", "provider core has no setting 'jars'"),
    "object-name": ("object-name = 'x'\n", "no management here"),
}
SOURCES = {
    "provider": 'provider = "carrier-pigeon"',
    "module": 'provider = "no.such:thing"',
    "url": "",
    "vm": 'url = "vm://"',
    "setting": 'url = "tcp://x"\njars = []',
}


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_error_for_a_wrong_file(tmp_path, case):
    top, expected = WRONG[case]
    source = SOURCES.get(case, 'url = "tcp://x"')
    file = tmp_path / "orders.toml"
    file.write_text(
        f'{top}[source]\n{source}\nqueue = "q"\n[target]\nurl = "tcp://y"\nqueue = "q"\n'
    )

    with pytest.raises(BridgeConfigError, match=expected):
        make_bridge(read_definition(file))


def test_both_or_no_destination_is_an_error(tmp_path):
    file = tmp_path / "orders.toml"
    for names in ("", 'queue = "q"\ntopic = "t"\n'):
        file.write_text(f'[source]\nurl = "tcp://x"\n{names}[target]\n')
        with pytest.raises(BridgeConfigError, match="either a queue or a topic"):
            read_definition(file)


@pytest.fixture
def source():
    with an_end() as end:
        end.create("q")
        yield end


def test_the_command_runs_a_bridge_until_a_signal(tmp_path, source, target):
    file = tmp_path / "orders.toml"
    file.write_text(GOOD.format(source=url(source), target=url(target)))
    process = subprocess.Popen(
        [sys.executable, "-m", "broker.cli.main", "bridge", "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert any("bridging: orders, duplicate ids" in line for line in process.stdout)
        source.send("q", "one")
        assert target.contents("q", 1) == ["one"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_wrong_password_is_one_clear_error(tmp_path, target):
    created = CliRunner().invoke(
        create,
        [
            *(str(tmp_path / "b"), "--queues", "q", "--port", "0", "--no-web"),
            *("--user", "admin", "--password", "right", "--max-disk-usage", "-1"),
        ],
    )
    assert created.exit_code == 0, created.output
    with EmbeddedBroker.from_xml(tmp_path / "b" / "etc" / "broker.xml") as running:
        file = tmp_path / "orders.toml"
        text = GOOD.format(source=f"tcp://127.0.0.1:{running.port}", target=url(target))
        text = text.replace("[source]\n", '[source]\nuser = "admin"\npassword = "wrong"\n')
        file.write_text(text + "\n")
        made = make_bridge(read_definition(file))
        with made:
            assert made.wait_until(BridgeState.RETRYING, timeout_s=WAIT_S)
            wait_for(lambda: made.why is not None and "AMQ229031" in made.why)


def test_an_unknown_queue_is_one_clear_error_until_it_is_there(tmp_path, source, target):
    file = tmp_path / "orders.toml"
    text = GOOD.format(source=url(source), target=url(target))
    file.write_text(text.replace('queue = "q"', 'queue = "n"', 1))
    made = make_bridge(read_definition(file))

    with made:
        wait_for(lambda: made.why is not None and "AMQ229017" in made.why)
        assert "'n'" in made.why or " n " in made.why
        source.create("n")
        source.send("n", "one")
        assert target.contents("q", 1) == ["one"]


def test_orphans_of_a_bridge_are_listed_and_ended(tmp_path, source, target):
    file = tmp_path / "orders.toml"
    file.write_text(GOOD.format(source=url(source), target=url(target)))

    nothing = run("recover", str(file))
    assert nothing.output == "no transaction is left\n"
    transaction = leave_prepared(source)
    listed = json.loads(run("recover", str(file), "--json").output)
    assert listed["transaction"] == transaction.hex()
    assert (listed["outcome"], listed["ended"]) == ("in doubt", False)
    kept = run("recover", str(file), "--end")
    assert kept.exit_code == 1
    assert "to end: in doubt, because the target may list its branch after" in kept.output
    assert "in doubt: 1; restart source and target, then use --restarted" in kept.output
    assert source.count("q") == 1
    listed = json.loads(run("recover", str(file), "--json", "--restarted").output)
    assert (listed["outcome"], listed["ended"]) == ("commit", False)
    ended = run("recover", str(file), "--end", "--restarted")
    assert ended.exit_code == 0
    assert "prepared at source  ended: commit, because the target has committed" in ended.output
    assert source.count("q") == 0


def test_orphans_of_a_bridge_in_a_broker_are_found_by_its_url(tmp_path, source, target):
    file = tmp_path / "orders.toml"
    file.write_text(GOOD.format(source="vm://", target=url(target)))
    leave_prepared(source)

    refused = run("recover", str(file))
    ended = run("recover", str(file), "--end", "--restarted", "--vm-url", url(source))

    assert refused.exit_code == 1
    assert "source: vm:// leads to the broker that runs the bridge" in refused.output
    assert "ended: commit, because the target has committed" in ended.output
    assert source.count("q") == 0


def leave_prepared(source):
    from broker.bridges.jms.coordinator import branch
    from broker.bridges.jms.transactions import Role
    from broker.client import AckMode

    source.send("q", "one")
    transaction = bytes(24) + b"orders"
    xid = branch(Role.SOURCE, transaction)
    with source.client.session(AckMode.XA) as session:
        session.xa_start(xid)
        assert session.consumer("q").receive(WAIT_S) is not None
        session.xa_end(xid)
        session.xa_prepare(xid)
    return transaction


def test_bridges_are_stopped_at_the_same_time(tmp_path, monkeypatch):
    """Each may take its failover_timeout before a target that hangs."""
    for name in "abc":
        text = GOOD.format(source="tcp://localhost:1", target="tcp://localhost:2")
        (tmp_path / f"{name}.toml").write_text(text)
    together = threading.Barrier(3, timeout=WAIT_S)
    monkeypatch.setattr(JMSBridge, "stop", lambda self: together.wait())

    DeployedBridges(tmp_path, broker=None).stop()

    assert not together.broken
