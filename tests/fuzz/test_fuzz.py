"""Coverage-guided fuzzing of everything that reads bytes from a disk or from a peer (target.py).

Only documented errors may come out, within 1 GiB and 10 s of a processor an input. It begins with
what Artemis and clients wrote (corpora.py).
"""

import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import corpora
from tests.journal.golden import GOLDEN
from tests.unpack import unpack

TARGET = Path(__file__).with_name("target.py")
DISK_S = 60  # of each target of bytes from a disk
LEAST_DISK_S = 15  # the same in `make test-all`
PEER_S = 60  # of each target of bytes from a peer, in `make test-all`
PEER_RUNS = 10_000_000  # of all of these together, in the soak
CONNECTION_RUNS = 1_000_000  # likewise, of whole connections, which take longer
HANG_S = 300  # of the clock, which goes on while a machine stands still
FILE_MAX = 32768
# libFuzzer takes the most memory that a process ever had. A process begins with that of its parent,
# here a worker with thousands of tests behind it.
BY_A_SMALL_PARENT = ("sh", "-c", '"$@"; exit $?', "sh")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this Python"
    ),
]


@pytest.fixture(scope="session")
def golden_files(tmp_path_factory):
    """Journal files of Artemis, the small ones whole, the large ones cut."""
    folder = tmp_path_factory.mktemp("golden")
    files = []
    for scenario in sorted(GOLDEN.iterdir()):
        for archive in sorted(scenario.glob("*.tar*")):
            place = folder / scenario.name / archive.name
            place.mkdir(parents=True)
            unpack(archive, place)
            files += [
                file.read_bytes()[:FILE_MAX]
                for file in sorted(place.rglob("*"))
                if file.suffix in (".amq", ".bindings", ".jms", ".ctr")
            ]
    assert files
    return files


@pytest.fixture
def fuzz(tmp_path, figures):
    """Run a target on inputs and what follows from them."""

    def run(name, inputs, *limits):
        inputs = sorted(set(inputs))
        assert inputs
        random.Random(name).shuffle(inputs)
        folder = tmp_path / "corpus"
        folder.mkdir()
        for number, data in enumerate(inputs[:500]):
            (folder / str(number)).write_bytes(data)
        fuzzer = subprocess.run(
            [
                *BY_A_SMALL_PARENT,
                *(sys.executable, str(TARGET), name, str(folder), *limits),
                *(f"-artifact_prefix={tmp_path}/", f"-timeout={HANG_S}", "-rss_limit_mb=1024"),
                *(f"-max_len={2 * FILE_MAX}", "-print_final_stats=1"),
            ],
            capture_output=True,
            check=False,
        )
        report = (fuzzer.stdout + fuzzer.stderr).decode(errors="replace")
        assert fuzzer.returncode == 0, report[-4000:]
        executed = int(re.search(r"stat::number_of_executed_units:\s*(\d+)", report)[1])
        assert executed > 0
        figures(f"fuzzing, {name}", executions=executed)

    return run


@pytest.mark.parametrize("name", ["read", "load", "control", "record"])
def test_no_bytes_of_a_disk_end_in_anything_but_a_documented_error(
    name, golden_files, fuzz, effort
):
    inputs = corpora.of_files(name, golden_files)

    fuzz(f"disk.{name}", inputs, f"-max_total_time={effort(DISK_S, least=LEAST_DISK_S)}")


@pytest.mark.parametrize("name", corpora.OF_PEERS)
def test_no_bytes_of_a_peer_end_in_anything_but_a_documented_error(name, fuzz, effort):
    limits = limits_of_peers(effort, PEER_RUNS, corpora.OF_PEERS)

    fuzz(f"peers.{name}", corpora.OF_PEERS[name](), *limits)


@pytest.mark.parametrize("name", corpora.OF_CONNECTIONS)
def test_whatever_a_peer_says_its_connection_ends_and_nothing_of_it_is_left(name, fuzz, effort):
    limits = limits_of_peers(effort, CONNECTION_RUNS, corpora.OF_CONNECTIONS)

    fuzz(f"connections.{name}", corpora.OF_CONNECTIONS[name](), *limits)


def limits_of_peers(effort, runs, targets):
    if effort(runs) == runs:
        return [f"-runs={runs // len(targets)}"]
    # The same inputs each time: what is new is looked for in the soak.
    return [f"-max_total_time={PEER_S}", "-seed=1"]
