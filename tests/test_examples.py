"""Each program of examples/ prints what it should, and its README has all of them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.cli.main import broker
from broker.config.load import load
from journal.errors import WrongUse
from pipeline.session import check_installed

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
END_S = 120
SCREEN_LINES = 40
# Programs with a folder or a test of their own come from others.
OUTPUT = {
    "bridge": """\
received from the target: early 0, early 1, early 2, early 3, early 4
the target has stopped
waiting at the source: 5 messages
the target is back
received from the target: late 0, late 1, late 2, late 3, late 4
""",
    "duplicate_ids": """\
attempt 1: answered
attempt 2: answered
messages in the queue: 1
""",
    "failover": None,
    "groups": None,
    "large": """\
sent: 64 MB
received: 64 MB
the same bytes: True
in many parts: True
""",
    "mesh": """\
three nodes: a, b, c
sent to a: 6 messages
waiting: a 6, b 0, c 0
received from c: a0 a1 a2 a3 a4 a5
waiting: a 0, b 0, c 0
sent to b: 6 messages
waiting: a 0, b 6, c 0
received from a: b0 b1 b2 b3 b4 b5
waiting: a 0, b 0, c 0
""",
    "request_reply": """\
2 3: 5
20 22: 42
1 -1: 0
""",
    "scheduled": """\
now: at once
later: after its delay
""",
    "spark_stream": None,
    "topic": """\
all: apples 80, figs 250, pears 120
dear: figs 250, pears 120
""",
    "transactions": """\
rolled back:
  orders: 1
  invoices: 0
  parcels: 0
committed:
  orders: 0
  invoices: 1
  parcels: 1
""",
    "work_queue": None,
}


def run(name):
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=END_S,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) <= SCREEN_LINES
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, text in OUTPUT.items() if text is not None])
def test_it_prints(name):
    assert run(name) == OUTPUT[name]


@pytest.mark.slow
def test_every_job_is_done_once_and_one_of_them_again():
    lines = run("work_queue").splitlines()

    done = [line for line in lines if " done" in line]
    assert sorted(re.search(r"job \d", line)[0] for line in done) == [
        f"job {number}" for number in range(6)
    ]
    assert [line for line in lines if "failed" in line and "job 2" in line]
    assert [line for line in done if line.endswith("job 2 done (redelivered)")]


@pytest.mark.slow
def test_the_steps_of_a_customer_are_in_order_at_one_consumer():
    found = {
        name: text.split(", ") for name, text in re.findall(r"^(\w+): (.+)$", run("groups"), re.M)
    }

    for customer in ("ann", "bob", "cleo"):
        steps = [f"{customer} {step}" for step in ("ordered", "paid", "sent")]
        assert [one for text in found.values() for one in text if one in steps] == steps
        assert sum(steps[0] in text for text in found.values()) == 1


@pytest.mark.slow
def test_a_client_of_a_pair_sends_on_when_the_primary_is_killed():
    lines = run("failover").splitlines()

    assert lines[:-1] == [
        "the primary serves, the backup waits",
        "sent a third; connected to the primary",
        "the primary is killed",
        "sent a third; connected to the backup",
        "the primary is back, and has its place again",
        "sent a third; connected to the primary",
        "received: 300 messages, each once and in order: True",
    ]
    assert re.fullmatch(r"the slowest send of the failover took \d+\.\d s", lines[-1])


@pytest.mark.slow
def test_spark_counts_each_message_once():
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))

    lines = run("spark_stream").splitlines()

    assert lines == [
        "a batch: 2 blue, 1 green, 3 red",
        "a batch: 2 blue, 1 green, 3 red",
        "waiting for other consumers: 12 messages",
    ]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_container_of_the_mesh_makes_a_node_that_knows_the_others(name, tmp_path):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML: quiver-mq[docs]")
    composed = yaml.safe_load((FOLDER / "mesh.yaml").read_text())
    service = composed["services"][name]
    others = {one["hostname"] for one in composed["services"].values()} - {name}
    words = service["command"][2].replace("\\\n", "")
    words = shlex.split(words.split("|| broker ")[1].split("\nexec ")[0])
    words = [one.replace("$$OTHERS", service["environment"]["OTHERS"]) for one in words]
    words[1] = str(tmp_path / name)

    done = CliRunner(env={"QUIVER_PASSWORD": "secret"}).invoke(broker, words)

    assert done.exit_code == 0, done.output
    cluster = load(tmp_path / name / "etc/broker.xml").cluster
    (connection,) = cluster.cluster_connections
    refs = connection.static_connectors.connector_refs
    named = [one for one in cluster.connectors if one.name in refs]
    assert {one.host for one in named} == others
    assert {one.port for one in named} == {61616}


def test_each_has_its_line_in_the_list():
    listed = re.findall(r"`python examples/(\w+)\.py`", (FOLDER / "README.md").read_text())

    assert listed == list(dict.fromkeys(listed))
    assert set(listed) <= {path.stem for path in FOLDER.glob("*.py")}
    assert OUTPUT.keys() <= set(listed)
