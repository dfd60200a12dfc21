"""One Spark for all tests of a process, and Artemis's folders and ours to compare."""

import json
import os
import sys
from pathlib import Path

import pytest

from journal.cli.main import journal as commands
from journal.commands.exit_status import run
from journal.errors import WrongUse
from pipeline.session import check_installed
from tests.journal.golden import GOLDEN, scenarios

HERE = Path(__file__).parent
# What of Spark is in `make test`: it takes half a minute to start, in each worker that meets it.
QUICK = ("test_guide.py",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Spark and its bridge to Java leave sockets to the garbage collector."""
    for item in items:
        if HERE in item.path.parents:
            if "spark" in item.fixturenames and item.path.name not in QUICK:
                item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session of two threads; tests are skipped where PySpark or Java is missing."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("Java does not start beside the sanitizers' libraries")
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    from tests.pipeline.small_spark import small_spark

    place = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = small_spark(place, **{"spark.sql.codegen.wholeStage": "false"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """Artemis's folders, below one: ROOT/<scenario>/journal, and /bindings of brokers."""
    root = tmp_path_factory.mktemp("golden")
    for scenario in scenarios():
        if scenario.part != "bindings":
            scenario.unpack(root / scenario.name)
    assert len(list(root.iterdir())) == len(
        [folder for folder in GOLDEN.iterdir() if folder.is_dir()]
    )
    return root


@pytest.fixture
def printed(capsys):
    """`printed(folder, "--raw")`: what `journal print-data --format jsonl` says, and its notes."""

    def call(folder, *arguments):
        capsys.readouterr()
        words = ["print-data", str(folder), "--format", "jsonl", *map(str, arguments)]
        run(commands, "journal", words)
        said = capsys.readouterr()
        return [json.loads(line) for line in said.out.splitlines()], said.err.splitlines()

    return call


def rows_by(frame, name="node"):
    """The rows of a frame as dicts, in order, by the value of a column."""
    found = {}
    for row in frame.collect():
        found.setdefault(row[name], []).append(row.asDict(recursive=True))
    return found
