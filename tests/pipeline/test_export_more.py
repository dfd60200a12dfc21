"""What an export chooses, adds, and leaves where it is killed."""

import re

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from journal.errors import OptionError
from pipeline.cli.exit_status import run
from pipeline.cli.main import pipeline as commands
from pipeline.export import Target, _Place, export

ID = "0123456789abcdef" * 2


@pytest.fixture(scope="module")
def frame(spark):
    """What stands for messages of two brokers, in four tasks; no worker of Python is needed."""
    return spark.range(0, 60, 1, 4).selectExpr(
        "IF(id < 40, 'broker_basic', 'broker_tx_xa') AS node",
        "id AS message_id",
        "IF(id % 2 = 0, 'a b', 'c:d') AS address",
        "1700000000000L AS timestamp_ms",
        "id * 10 AS body_size",
        "CAST(repeat('x', 100) AS BINARY) AS body",
    )


@pytest.fixture
def pipeline(spark, monkeypatch, capsys):
    """`pipeline("export", ...)`: the command line on the session of all tests."""
    monkeypatch.setattr(type(spark), "stop", lambda self: None)

    def call(*words):
        status = run(commands, "pipeline", [str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def rows(folder):
    found = ds.dataset(folder, partitioning="hive", exclude_invalid_files=True).to_table()
    return found.num_rows


def data_files(folder):
    return {path for path in folder.rglob("part-*") if not path.name.startswith(".")}


def test_columns_are_those_that_are_asked_for(frame, tmp_path):
    columns = ["message_id", "body_size"]

    export(frame, "messages", Target("csv", str(tmp_path / "csv")), columns=columns)
    export(frame, "messages", Target("parquet", str(tmp_path / "out")), columns=columns)

    (file, *_) = (tmp_path / "csv").glob("*.csv")
    assert file.read_text().splitlines()[0] == "message_id,body_size"
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert pq.read_schema(files[0]).names == columns
    assert all("node=" in str(path) and "/hour=" in str(path) for path in files)
    assert rows(tmp_path / "out") == frame.count()


def test_rows_are_those_that_are_asked_for(frame, tmp_path):
    where = "node = 'broker_basic' AND message_id % 2 = 1"

    export(frame, "messages", Target("parquet", str(tmp_path / "out")), where=where)

    assert rows(tmp_path / "out") == frame.where(where).count() > 0
    assert not list((tmp_path / "out").glob("node=broker_tx_xa"))


def test_the_command_takes_both_and_says_what_is_wrong_in_a_line(pipeline, golden, tmp_path):
    words = ("export", golden / "broker_basic", "--what", "bindings")
    words = (*words, "--to", f"csv:{tmp_path / 'out'}")

    status, _, err = pipeline(*words, "--columns", "name, nmae")
    assert (status, len(err.splitlines())) == (2, 1)
    assert err.startswith("pipeline: no column 'nmae'; there are: node, journal, record_id")
    status, _, err = pipeline(*words, "--where", "name = ")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "PARSE_SYNTAX_ERROR" in err
    status, _, err = pipeline(*words, "--where", "nmae = 'a'")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "UNRESOLVED_COLUMN" in err
    assert not list(tmp_path.iterdir())

    words = (*words, "--columns", "name", "--where", "record_type = 'QUEUE_BINDING_RECORD'")
    assert pipeline(*words)[0] == 0
    lines = [line for path in (tmp_path / "out").glob("*.csv") for line in path.open()]
    assert lines[0] == "name\n"
    assert len(lines) > 1


def test_files_of_many_tasks_become_few(spark, frame, tmp_path):
    def files_of(folder):
        return len(data_files(tmp_path / folder))

    before = spark.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes")

    export(frame, "messages", Target("parquet", str(tmp_path / "plain")))
    export(frame, "messages", Target("parquet", str(tmp_path / "sized")), file_size=1 << 20)
    export(frame, "messages", Target("jsonl", str(tmp_path / "one")), file_size=1 << 20)
    export(frame, "messages", Target("jsonl", str(tmp_path / "small")), file_size=200)

    folders = {path.parent for path in data_files(tmp_path / "plain")}
    assert files_of("sized") == len(folders) < files_of("plain")
    assert files_of("one") == 1 < files_of("small")
    assert rows(tmp_path / "sized") == rows(tmp_path / "plain") == frame.count()
    assert spark.conf.get("spark.sql.adaptive.advisoryPartitionSizeInBytes") == before


# --- what is added -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_rows_are_added(form, frame, tmp_path, spark):
    target = Target(form, str(tmp_path / "a b" / "out"))
    where = ["node = 'broker_basic'", "node <> 'broker_basic'"]

    for one in where:
        export(frame, "messages", target, where=one, append=True)

    reader = spark.read.format("json" if form == "jsonl" else form)
    found = reader.load(target.folder).select("node", "message_id").collect()
    assert sorted(found) == sorted(frame.select("node", "message_id").collect())
    assert [path.name for path in (tmp_path / "a b").iterdir()] == ["out"]


def test_rows_are_added_to_files_of_one_format(frame, tmp_path):
    export(frame, "messages", Target("csv", str(tmp_path / "out")))

    with pytest.raises(OptionError, match="has files of another format"):
        export(frame, "messages", Target("parquet", str(tmp_path / "out")), append=True)


def test_adding_and_replacing_exclude_each_other(pipeline, tmp_path):
    status, _, err = pipeline("export", ".", "--to", "csv:out", "--append", "--overwrite")

    assert (status, err) == (2, "pipeline: --overwrite and --append exclude each other\n")


class Killed(BaseException):
    """The process ends, and nothing more is done."""


@pytest.fixture
def killed(monkeypatch):
    """`killed(count, export)`: the process ends before its rename of that number; False: it had
    fewer.
    """

    def call(count, make):
        renamed = []

        def rename(self, old, new):
            renamed.append(new)
            if len(renamed) == count:
                raise Killed
            return plain(self, old, new)

        plain, undo = _Place._rename, _Place.undo
        done = []

        def first(self):
            # At its beginning; at the end no caller is left to undo anything.
            if not done:
                done.append(1)
                undo(self)

        with monkeypatch.context() as patched:
            patched.setattr(_Place, "_rename", rename)
            patched.setattr(_Place, "undo", first)
            try:
                make()
            except Killed:
                return True
        return False

    return call


@pytest.mark.parametrize("count", range(1, 3))
def test_a_kill_while_a_folder_is_replaced_loses_neither(count, frame, killed, tmp_path):
    target = Target("parquet", str(tmp_path / "out"))
    export(frame, "messages", target, where="node = 'broker_basic'")
    was = rows(tmp_path / "out")

    assert killed(count, lambda: export(frame, "messages", target, overwrite=True))
    assert len(list(tmp_path.iterdir())) > 1

    with pytest.raises(OptionError, match="is there already"):
        export(frame, "messages", target)
    assert rows(tmp_path / "out") == was
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    export(frame, "messages", target, overwrite=True)
    assert rows(tmp_path / "out") == frame.count()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_kill_while_rows_are_added_adds_none(frame, killed, tmp_path):
    target = Target("parquet", str(tmp_path / "out"))
    export(frame, "messages", target, where="node = 'broker_basic'")
    where = "node <> 'broker_basic'"
    was, count = data_files(tmp_path / "out"), 1

    # Before each rename, but that of the last file.
    while killed(count, lambda: export(frame, "messages", target, where=where, append=True)):
        count += 1
        with pytest.raises(OptionError, match="is there already"):
            export(frame, "messages", target)
        assert data_files(tmp_path / "out") == was
        assert not list(tmp_path.rglob(f"{'[0-9a-f]' * 32}-*"))
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    assert count > 2
    assert rows(tmp_path / "out") == frame.count()


def test_what_others_have_beside_it_stays(frame, tmp_path):
    kept = [f".out.b.{ID}", f".out.{ID}x", f"out.{ID}", ".out.old"]
    for name in kept:
        (tmp_path / name).mkdir()
    (tmp_path / f".out.{ID}").mkdir()

    export(frame, "messages", Target("csv", str(tmp_path / "out")))

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "out"])
    assert not [path for path in (tmp_path / "out").iterdir() if re.match(ID, path.name)]
