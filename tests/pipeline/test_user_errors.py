"""What a user did wrong is a line, in a session and on the command line."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from journal.errors import WrongUse
from pipeline.cli.audit import _table
from pipeline.options import SourceOptions
from pipeline.places import find_histories, find_places
from pipeline.session import SMALL, check_installed, check_master, open_session
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[2]


def told(frame):
    """The lines of what Spark says."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of Spark, of whatever class.
        frame()
    return str(raised.value).strip().splitlines()


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("journal", {"path": "/none"}, "/none: no such folder"),
        ("journal", {"path": "/none", "live": "perhaps"}, "live='perhaps': must be true or false"),
        ("messages", {}, "no path; give load() a folder"),
        ("messages", {"path": "hdfs://host/a"}, "is neither an object store nor a database"),
        ("bindings", {"path": "/none"}, "/none: no such folder"),
        ("retention", {"path": "/none"}, "/none: no such folder"),
        (
            "broker",
            {"url": "tcp://127.0.0.1:1", "queue": "a", "reconnectTimeoutMs": "0"},
            "ClientError",
        ),
    ],
)
def test_a_session_is_told_in_a_line(source, options, said, spark):
    lines = told(lambda: spark.read.format(source).options(**options).load().count())

    assert said in lines[0] or source == "broker"
    # The second is Spark's own, of SQLSTATE.
    assert len(lines) <= 2
    assert not [line for line in lines if "Traceback" in line or ".java" in line]


def test_damage_that_a_task_finds_is_told_without_lines_of_code(spark, golden):
    frame = spark.read.format("journal").load(str(golden / "corrupt_tx_middle"))

    text = "\n".join(told(frame.count))

    assert "activemq-data-1.amq:" in text
    assert "with failOnDataLoss=false" in text
    assert "Traceback" not in text
    assert "/pipeline/" not in text


@pytest.mark.parametrize("source", ["journal", "messages", "bindings", "retention", "broker"])
def test_a_table_of_sql_is_refused_with_what_to_write(source, spark, golden):
    lines = told(lambda: spark.sql(f"CREATE TABLE one USING {source} OPTIONS (path '/a')"))

    assert f"write CREATE TEMPORARY VIEW name USING {source} OPTIONS (" in lines[0]
    assert not spark.catalog.tableExists("one")


def test_what_it_says_to_write_works(spark, golden):
    path = golden / "broker_basic"
    spark.sql(f"CREATE TEMPORARY VIEW told USING journal OPTIONS (path '{path}')")

    assert spark.sql("SELECT * FROM told").count() > 0


@pytest.mark.parametrize("url", ["hdfs://host/a", "ftp://u:secret@h/a"])
def test_what_is_no_database_is_told_what_is(url):
    options = SourceOptions.read({"path": url})
    for find in (find_histories, lambda given: find_places(given, "messages", is_decoded=True)):
        with pytest.raises(WrongUse) as raised:
            find(options)
        said = str(raised.value)
        assert "of an object store (s3, s3a," in said
        assert "SQLAlchemy (sqlite, postgresql," in said
        assert "plugin" not in said
        assert "secret" not in said


# --- the command line ----------------------------------------------------------------------------


def test_a_master_that_does_not_answer_is_told():
    port = free_port()

    with pytest.raises(WrongUse, match=f"no master of Spark answers at spark://127.0.0.1:{port}"):
        check_master(f"spark://127.0.0.1:{port}")


def test_a_master_of_no_known_kind_is_told_before_java_starts():
    with pytest.raises(WrongUse, match="'nowhere' is not a Spark master"):
        check_master("nowhere")


def test_one_of_several_masters_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:{free_port()},127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "local-cluster[1,1,512]", "spark://host"])
def test_other_masters_are_spark_s_to_judge(master):
    check_master(master)


def pipeline(*words):
    """Run a command; its status, lines of errors, and seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli.main", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Of Java's own start, not of log4j.
    lines = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    return done.returncode, lines, time.monotonic() - began


def test_the_command_says_in_a_line_that_no_master_is_there(golden):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    url = f"spark://127.0.0.1:{free_port()}"

    status, lines, _ = pipeline("audit", golden / "broker_basic", "--master", url)

    assert (status, len(lines)) == (2, 1)
    assert lines[0].startswith(f"pipeline: no master of Spark answers at {url}: ")


@pytest.mark.slow
@pytest.mark.timeout(900)  # Spark itself asks for a minute.
def test_what_answers_and_is_no_master_is_told_in_a_line(golden):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"spark://127.0.0.1:{mute.getsockname()[1]}"

        status, lines, _ = pipeline("audit", golden / "broker_basic", "--master", url)

    assert status == 2
    assert lines[-1].startswith(f"pipeline: what answers at {url} is not a master of Spark")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "count"),
    [
        (["--what", "bindings", "broker_basic"], 0, 0),
        pytest.param(["--what", "journal", "corrupt_tx_middle"], 1, 1, marks=pytest.mark.soak),
        (["--what", "journal", "broker_basic", "--master", "nowhere"], 2, 1),
    ],
)
def test_a_command_prints_nothing_of_log4j(words, status, count, golden, tmp_path):
    try:
        check_installed()
    except WrongUse as missing:
        pytest.skip(str(missing))
    words = [golden / word if (golden / word).is_dir() else word for word in words]
    if "--master" not in words:
        words += ["--master", "local[1]"]

    found, lines, _ = pipeline("export", *words, "--to", f"csv:{tmp_path / 'out'}")

    assert (found, len(lines)) == (status, count), lines


def test_a_table_of_findings_is_as_wide_as_it_is():
    (_, line) = _table([("lost", "deleted", "node", "address" * 30, "queue" * 30, 5)])

    assert len(line) > 300
    assert line.split() == ["lost", "deleted", "node", "address" * 30, "queue" * 30, "5"]


def test_settings_of_java_are_kept(monkeypatch):
    taken = {}

    class Builder:
        def __getattr__(self, name):
            return lambda *given: taken.update([given] if name == "config" else []) or self

    import pyspark.sql

    monkeypatch.setattr(pyspark.sql.SparkSession, "builder", Builder())
    monkeypatch.setattr("pipeline.session.check_installed", lambda: None)
    name = "spark.driver.extraJavaOptions"

    open_session("local[1]", {name: "-Xss4m"})
    assert taken[name].startswith("-Xss4m -Dlog4j2.configurationFile=file:///")
    open_session("local[1]", {name: "-Dlog4j2.configurationFile=mine"})
    assert taken[name] == "-Dlog4j2.configurationFile=mine"
    # A short job is over before Java's second compiler pays. What a user asks for comes behind.
    ours = "spark.driver.defaultJavaOptions"
    open_session("local[1]", size=SMALL - 1)
    assert "-XX:TieredStopAtLevel=1" in taken[ours]
    open_session("local[1]", {name: "-Xss8m"}, size=SMALL - 1)
    assert "-XX:TieredStopAtLevel=1" in taken[ours]
    assert taken[name].startswith("-Xss8m ")
    # Java refuses to have two collectors.
    taken.clear()
    open_session("local[1]", {name: "-XX:+UseG1GC"}, size=SMALL - 1)
    assert ours not in taken
    open_session("local[1]", size=SMALL)
    assert ours not in taken
    assert "-XX:" not in taken[name]
