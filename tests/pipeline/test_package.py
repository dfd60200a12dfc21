"""The archive for workers: tried in executors that are processes of their own."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

import pyspark

from journal.errors import WrongUse
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from pipeline.package import package, requirements
from pipeline.session import check_installed

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import json, sys
import pipeline
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
pipeline.register(spark)
count = spark.read.format("messages").load(sys.argv[1]).count()

def where(_):
    import journal.format, pipeline
    return [pipeline.__file__, journal.format.__file__]

files = spark.sparkContext.parallelize([0, 1], 2).flatMap(where).collect()
print("FOUND", json.dumps([count, sorted(set(files))]))
"""


def test_what_is_needed_is_found_through_extras():
    assert {"click", "rich", "sqlalchemy", "pyarrow", "psycopg"} <= requirements()
    assert "pytest" not in requirements()


def test_a_package_that_would_not_be_in_it_is_refused(tmp_path):
    with pytest.raises(WrongUse, match="pytest would not be in it"):
        package(tmp_path / "q.tar.gz", without=["pytest"])
    assert not list(tmp_path.iterdir())


def test_an_archive_that_is_there_is_kept(tmp_path):
    (tmp_path / "q.tar.gz").write_bytes(b"mine")

    with pytest.raises(WrongUse, match="is there already: --overwrite replaces it"):
        package(tmp_path / "q.tar.gz")
    assert (tmp_path / "q.tar.gz").read_bytes() == b"mine"


def test_an_archive_that_is_there_is_replaced_if_that_is_asked_for(tmp_path):
    (tmp_path / "q.tar.gz").write_bytes(b"mine")
    others = sorted(requirements() - {"pyspark", "py4j", "click"})
    words = ["package", "--to", str(tmp_path / "q.tar.gz"), "--overwrite"]

    assert run(commands, "pipeline", [*words, *(f"--without={name}" for name in others)]) == 0

    assert tarfile.is_tarfile(tmp_path / "q.tar.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["q.tar.gz"]


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(*given, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", full)

    with pytest.raises(OSError, match="No space left"):
        package(tmp_path / "q.tar.gz")
    assert not list(tmp_path.iterdir())


def test_without_sqlalchemy_it_is_written(tmp_path):
    """As with the extra `spark` alone: nothing of ours is imported to find its files."""
    (tmp_path / "sqlalchemy.py").write_text("raise ModuleNotFoundError(name='sqlalchemy')")
    others = sorted(requirements() - {"pyspark", "py4j", "click"})
    words = ["package", "--to", str(tmp_path / "q.tar.gz")]

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pipeline.cli.main", *words),
            *(f"--without={name}" for name in others),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    with tarfile.open(tmp_path / "q.tar.gz") as archive:
        assert "jdbcstore/database.py" in archive.getnames()


def test_it_has_extension_modules_and_no_sources_of_them(tmp_path):
    others = sorted(requirements() - {"pyspark", "py4j", "click"})

    names = package(tmp_path / "q.tar.gz", without=others)

    assert names == ["journal", "jdbcstore", "broker", "pipeline", "click"]
    with tarfile.open(tmp_path / "q.tar.gz") as archive:
        files = archive.getnames()
    assert {"pipeline/places.py", "click/core.py"} <= set(files)
    assert any(name.startswith("journal/format.") and name.endswith(".so") for name in files)
    assert not [name for name in files if name.endswith((".pyx", ".c")) or "__pycache__" in name]


@pytest.mark.slow
def test_it_has_no_headers_and_no_tests(tmp_path):
    others = sorted(requirements() - {"pyspark", "py4j", "pyarrow"})

    package(tmp_path / "q.tar.gz", without=others)

    with tarfile.open(tmp_path / "q.tar.gz") as archive:
        files = archive.getnames()
    assert "pyarrow/lib.py" in files or any(name.startswith("pyarrow/lib.") for name in files)
    assert not [name for name in files if name.endswith((".h", ".hpp", ".pxd", ".cc", ".pyi"))]
    assert not [name for name in files if "/tests/" in name]


@pytest.mark.slow
def test_executors_of_their_own_read_messages_with_it(tmp_path, golden):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    package(tmp_path / "quiver.tar.gz", without=["pyarrow"])
    (tmp_path / "job.py").write_text(JOB)
    # Executors work below SPARK_HOME: not where PySpark is installed.
    home = tmp_path / "spark"
    home.mkdir()
    for one in Path(pyspark.__file__).parent.iterdir():
        (home / one.name).symlink_to(one)
    shutil.copytree(golden / "broker_basic", tmp_path / "data")

    done = subprocess.run(
        [
            *(str(home / "bin/spark-submit"), "--master", "local-cluster[2,1,2048]"),
            *("--archives", "quiver.tar.gz#quiver"),
            *("--conf", "spark.executorEnv.PYTHONPATH=./quiver"),
            *("--conf", "spark.driver.host=127.0.0.1"),
            *("--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", "spark.ui.enabled=false"),
            *("job.py", str(tmp_path / "data")),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            # The driver imports this tree; executors are given another path.
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    (found,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND")] or [
        pytest.fail(done.stderr[-4000:])
    ]
    count, files = json.loads(found.removeprefix("FOUND "))
    assert count > 0
    assert len(files) >= 2
    # Unpacked beside an executor; nothing came from this tree.
    assert all("/quiver/" in file and str(ROOT) not in file for file in files)
