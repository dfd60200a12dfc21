"""Exports, read back by somebody else."""

import csv
import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from journal.errors import OptionError
from pipeline.cli.exit_status import run
from pipeline.cli.main import COMMANDS
from pipeline.cli.main import pipeline as commands
from pipeline.export import Target, export, with_hour
from pipeline.schema import MESSAGES


@pytest.fixture(scope="module")
def messages(spark, golden):
    folders = [str(golden / name) for name in ("broker_basic", "broker_tx_xa")]
    return spark.read.format("messages").option("asOfMs", "0").load(folders).cache()


def test_parquet_is_partitioned_and_holds_every_row(messages, tmp_path):
    target = tmp_path / "out"

    export(messages, "messages", Target("parquet", str(target)))

    table = ds.dataset(target, partitioning="hive", exclude_invalid_files=True).to_table()
    rows = messages.collect()
    keys = [
        (row["node"], row["message_id"]) for row in table.select(["node", "message_id"]).to_pylist()
    ]
    assert sorted(keys) == sorted((row.node, row.message_id) for row in rows)
    assert {path.parent.parent.parent.name for path in target.rglob("*.parquet")} == {
        f"node={row.node}" for row in rows
    }
    (one,) = [row for row in rows if (row.node, row.message_id) == ("broker_basic", 23)]
    place = keys.index(("broker_basic", 23))
    assert table["text"][place].as_py() == one.text
    assert table["body"][place].as_py() == (None if one.body is None else bytes(one.body))
    assert (one.body, one.text) != (None, None)
    assert dict(table["properties"][place].as_py()) == one.properties
    assert table["references"][place].as_py() == [part.asDict() for part in one.references]
    files = list(target.rglob("*.parquet"))
    assert set(pq.read_schema(files[0]).names) == {column.name for column in MESSAGES} - {
        *("node", "address"),
    }


def test_an_hour_is_utc_whatever_the_session(spark):
    frame = spark.sql(
        "SELECT explode(array(0L, NULL, 1700000000000L, 4611686018427387904L, -5L)) timestamp_ms"
    )

    assert [row.hour for row in with_hour(frame, "timestamp_ms").collect()] == [
        *(None, None, "2023-11-14-22", None, None),
    ]


def test_json_lines_hold_every_row(messages, tmp_path):
    export(messages, "messages", Target("jsonl", str(tmp_path / "out")))

    lines = [
        json.loads(line)
        for path in (tmp_path / "out").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert sorted((line["node"], line["message_id"]) for line in lines) == sorted(
        (row.node, row.message_id) for row in messages.collect()
    )
    assert any(line.get("properties") for line in lines)


def test_csv_holds_every_row_as_text(messages, tmp_path):
    export(messages, "messages", Target("csv", str(tmp_path / "out")))

    rows = []
    for path in (tmp_path / "out").glob("*.csv"):
        with path.open(newline="") as file:
            rows += csv.DictReader(file, escapechar="\\")
    expected = messages.collect()
    assert sorted((row["node"], int(row["message_id"])) for row in rows) == sorted(
        (row.node, row.message_id) for row in expected
    )
    by_id = {(row["node"], int(row["message_id"])): row for row in rows}
    for row in expected:
        if row.body:
            assert by_id[row.node, row.message_id]["body"] == bytes(row.body).hex()


def test_other_sources_are_partitioned_by_node(spark, golden, tmp_path):
    frame = spark.read.format("bindings").load(str(golden / "broker_basic"))

    export(frame, "bindings", Target("parquet", str(tmp_path / "out")))

    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == {"node=broker_basic"}
    assert table.num_rows == frame.count() > 0


@pytest.mark.parametrize("text", ["out", "orc:out", "parquet:"])
def test_a_target_that_cannot_be_is_refused(text):
    with pytest.raises(OptionError):
        Target.parse(text)


def call(capsys, *words):
    status = run(commands, "pipeline", [str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_without_java_one_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    status, out, err = call(capsys, "export", tmp_path, "--to", "parquet:out")

    assert (status, out) == (2, "")
    assert err == ("pipeline: Spark needs Java 17 or later, and there is no `java` on the PATH\n")


def test_without_pyspark_one_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("pipeline.session.find_spec", lambda name: None)

    status, out, err = call(capsys, "export", tmp_path, "--to", "parquet:out")

    assert (status, out) == (2, "")
    assert err == (
        "pipeline: Spark needs the Python package pyspark: type pip install 'quiver-mq[spark]'\n"
    )


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_has_an_example(words, capsys):
    status, out, _ = call(capsys, *words)

    assert status == 0
    assert re.search(r"Example:\n +pipeline \w+ ", out)


@pytest.fixture
def pipeline(spark, monkeypatch, capsys):
    """`pipeline("export", ...)`: the command line on the session of all tests."""
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    return lambda *words: call(capsys, *words)


def test_the_command_exports_what_it_is_given(pipeline, golden, tmp_path):
    words = ("export", golden / "broker_basic", golden / "broker_tx_xa", "--what", "bindings")

    status, out, err = pipeline(*words, "--to", f"parquet:{tmp_path / 'out'}")

    assert (status, out, err) == (0, "", "")
    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert set(table["node"].to_pylist()) == {"broker_basic", "broker_tx_xa"}


def test_a_folder_that_is_there_is_replaced_only_if_that_is_asked_for(pipeline, golden, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "kept").write_text("kept")
    words = ("export", golden / "broker_basic", "--what", "bindings", "--to", f"jsonl:{target}")

    status, out, err = pipeline(*words)
    assert (status, out) == (2, "")
    assert err == (
        f"pipeline: {target} is there already: --overwrite replaces it, --append adds to it\n"
    )
    assert [path.name for path in target.iterdir()] == ["kept"]

    assert pipeline(*words, "--overwrite")[0] == 0
    assert list(target.glob("*.json"))
    assert not (target / "kept").exists()
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_there_stays_where_reading_fails(pipeline, golden, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "kept").write_text("kept")
    words = ("export", golden / "corrupt_tx_middle", "--what", "journal", "--overwrite")

    assert pipeline(*words, "--to", f"jsonl:{target}")[0] == 1
    assert pipeline(*words, "--to", f"jsonl:{tmp_path / 'new'}")[0] == 1

    assert list(tmp_path.iterdir()) == [target]
    assert [path.name for path in target.iterdir()] == ["kept"]


def test_damage_is_one_line_and_status_1_unless_it_is_skipped(pipeline, golden, tmp_path):
    words = ("export", golden / "corrupt_tx_middle", "--what", "journal")

    status, out, err = pipeline(*words, "--to", f"jsonl:{tmp_path / 'out'}")
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert re.match(r"pipeline: .*: activemq-data-1.amq:\d+: .*failOnDataLoss", err)

    skipped = (*words, "--skip-damage", "--to", f"jsonl:{tmp_path / 'skipped'}")
    assert pipeline(*skipped)[0] == 0
    lines = [
        json.loads(line)
        for path in (tmp_path / "skipped").glob("*.json")
        for line in path.read_text().splitlines()
    ]
    assert "damage" in {line["kind"] for line in lines}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "none", "--to", "parquet:OUT"), "pipeline: none: no such folder"),
        (("export", ".", "--to", "orc:out"), "pipeline: 'orc:out' is not FORMAT:FOLDER"),
        (("export", ".", "--to", "csv:out", "--conf", "a"), "pipeline: --conf takes NAME=VALUE"),
        (("export",), "pipeline: Missing argument"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(words, said, pipeline, tmp_path):
    # Java's folder is that of the session's start, whatever ours is.
    words = [word.replace("OUT", str(tmp_path / "out")) for word in words]

    status, out, err = pipeline(*words)

    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(said)


@pytest.mark.slow
def test_the_command_brings_a_spark_of_its_own(golden, tmp_path):
    """One start of Spark, which a loaded machine takes minutes for."""
    command = [sys.executable, "-m", "pipeline.cli.main", "export", str(golden / "broker_basic")]

    done = subprocess.run(
        [*command, "--to", f"csv:{tmp_path / 'out'}", "--master", "local[1]"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert list((tmp_path / "out").glob("*.csv"))
