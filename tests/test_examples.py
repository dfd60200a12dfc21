"""Each program of examples/ prints what it should, and its README has all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
END_S = 120
SCREEN_LINES = 40
# Programs with a folder or a test of their own come from others.
OUTPUT = {
    "duplicate_ids": """\
attempt 1: answered
attempt 2: answered
messages in the queue: 1
""",
    "groups": None,
    "large": """\
sent: 64 MB
received: 64 MB
the same bytes: True
in many parts: True
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


def test_each_has_its_line_in_the_list():
    listed = re.findall(r"`python examples/(\w+)\.py`", (FOLDER / "README.md").read_text())

    assert listed == list(dict.fromkeys(listed))
    assert set(listed) <= {path.stem for path in FOLDER.glob("*.py")}
    assert OUTPUT.keys() <= set(listed)
