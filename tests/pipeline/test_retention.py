"""The history of a journal as rows."""

from datetime import datetime

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from journal import Journal, JournalOptions, JournalType
from journal.errors import WrongUse
from journal.folder import JournalName
from journal.retention import list_history
from pipeline.options import SourceOptions
from pipeline.places import find_histories

COUNT = 40
TURN = datetime.fromisoformat("2000-01-01")  # Of no zone, as the names of copies.


@pytest.fixture
def history(tmp_path):
    """The copies of a small journal's files; all that was ever added is in them."""
    options = JournalOptions(
        directory=tmp_path / "journal",
        journal_type=JournalType.NIO,
        file_size=4096,
        retention_directory=tmp_path / "history",
        retention_period_ms=10**9,
    )
    with Journal(options) as journal:
        journal.load()
        for number in range(1, COUNT + 1):
            journal.add(number, 45, b"%0900d" % number)
            journal.delete(number)
    return tmp_path / "history"


def test_records_that_are_gone_are_in_the_history(spark, history):
    copies = list_history(history, JournalName())
    frame = spark.read.format("retention").load(str(history))

    rows = frame.orderBy("file_id", "offset").collect()

    adds = [row.record_id for row in rows if row.kind == "add"]
    assert len(copies) > 3
    assert adds == list(range(1, len(adds) + 1))
    assert COUNT - 5 < len(adds) <= COUNT
    assert {row.file for row in rows} == {copy.name for copy in copies}
    assert {row.copied for row in rows} == {copy.time for copy in copies}
    assert {row.node for row in rows} == {history.parent.name}


def files_of(reader):
    return [file.name for part in reader.partitions() for file in part.files]


def test_a_time_keeps_other_copies_unread(history):
    from pyspark.sql.datasource import GreaterThan, LessThan

    from pipeline.sources.retention import HistoryReader

    copies = list_history(history, JournalName())
    old = history / copies[0].name.replace(copies[0].time.strftime("%Y"), "1999", 1)
    copies[0].path.rename(old)
    given = SourceOptions.read({"path": str(history), "filterPushdown": "true"})
    newer, older = HistoryReader(given), HistoryReader(given)

    assert list(newer.pushFilters([GreaterThan(("copied",), TURN)])) == []
    assert list(older.pushFilters([LessThan(("copied",), TURN)])) == []

    assert len(files_of(newer)) == len(copies) - 1
    assert files_of(older) == [old.name]


def test_spark_filters_by_the_time_of_the_copy(spark, history):
    frame = spark.read.format("retention").load(str(history))

    assert frame.filter("copied < timestamp_ntz'2000-01-01 00:00:00'").count() == 0
    assert frame.filter("copied > timestamp_ntz'2000-01-01 00:00:00'").count() > 0


def test_an_instance_names_its_history(tmp_path):
    from broker.cli.exit_status import run
    from broker.cli.main import broker as commands

    instance = tmp_path / "shop"
    assert run(commands, "broker", ["create", str(instance), "--password", "p", "--no-web"]) == 0
    options = SourceOptions.read({"path": str(instance)})
    with pytest.raises(WrongUse, match="keeps no history"):
        find_histories(options)
    xml = instance / "etc" / "broker.xml"
    text = xml.read_text()
    place = text.index("<bindings-directory>")
    kept = '<journal-retention-directory period="7">data/kept</journal-retention-directory>'
    xml.write_text(text[:place] + kept + text[place:])

    (found,) = find_histories(options)

    assert (found.node, found.folder) == ("shop", instance / "data" / "kept")
