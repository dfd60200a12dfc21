"""Coverage-guided fuzzing of everything that reads bytes from a disk (target.py).

Only documented errors may come out, within 1 GiB and 10 s of a processor an input. The corpus is
what Artemis wrote.
"""

import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from journal.reader import FileView
from tests.journal.golden import GOLDEN
from tests.unpack import unpack

TARGET = Path(__file__).with_name("target.py")
FULL_S = 60  # of each of the four targets
LEAST_S = 15  # together a minute, in `make test-all`
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


def corpus(name, files):
    """Inputs for a target."""
    if name in ("read", "load"):
        yield from (b"\x40\x00" * (name == "load") + file for file in files)
        return
    for file in files:
        try:
            records = list(FileView("x-1.amq", file))
        except Exception:  # noqa: BLE001 - some scenarios are refused: left out.
            continue
        for record in records:
            if record.body is None:
                continue
            if name == "record" and record.user_type is not None:
                yield bytes([record.user_type, record.kind.startswith("update")]) + record.body
            elif name == "control":
                yield record.body


@pytest.mark.parametrize("name", ["read", "load", "control", "record"])
def test_no_input_ends_in_anything_but_a_documented_error(
    name, golden_files, tmp_path, effort, figures
):
    inputs = sorted(set(corpus(name, golden_files)))
    random.Random(name).shuffle(inputs)
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number, data in enumerate(inputs[:500]):
        (folder / str(number)).write_bytes(data)

    fuzzer = subprocess.run(
        [
            *BY_A_SMALL_PARENT,
            *(sys.executable, str(TARGET), name, str(folder)),
            *(f"-max_total_time={effort(FULL_S, least=LEAST_S)}", f"-artifact_prefix={tmp_path}/"),
            *(
                f"-timeout={HANG_S}",
                "-rss_limit_mb=1024",
                f"-max_len={2 * FILE_MAX}",
                "-print_final_stats=1",
            ),
        ],
        capture_output=True,
        check=False,
        timeout=FULL_S * 30,
    )

    report = (fuzzer.stdout + fuzzer.stderr).decode(errors="replace")
    assert fuzzer.returncode == 0, report[-4000:]
    executed = int(re.search(r"stat::number_of_executed_units:\s*(\d+)", report)[1])
    assert executed > 0
    figures(f"fuzzing, {name}", executions=executed)
