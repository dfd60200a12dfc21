"""Filters that sources take over give what Spark's own give, and spare reading."""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from pyspark.sql import functions as f
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    Not,
)

from pipeline.filters import LONG_MAX, LONG_MIN, Conditions, Wanted
from pipeline.options import SourceOptions
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.messages import MessagesReader


def options(folder, **given):
    return SourceOptions.read({"path": str(folder), "filterPushdown": "true", **given})


def test_what_cannot_be_taken_exactly_is_left_to_spark():
    left = [
        EqualTo(("user_type",), "45"),
        EqualTo(("size",), 4),
        IsNull(("user_type",)),
        Not(EqualTo(("user_type",), 45)),
        EqualTo(("references", "queue_id"), 1),
        In(("user_type",), (None,)),
    ]
    taken = [EqualTo(("user_type",), 45), In(("user_type",), (45, 46)), IsNotNull(("user_type",))]
    wanted = Wanted({"user_type": int})

    assert list(wanted.take([*left, *taken])) == left
    assert [number for number in range(256) if wanted.fits(user_type=number)] == [45]
    assert not wanted.fits(user_type=None)


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([], (LONG_MIN, LONG_MAX)),
        ([("=", 5)], (5, 5)),
        ([(">", 5), ("<", 9)], (6, 8)),
        ([(">=", 5), ("<=", 9), ("in", (1, 7, 30))], (5, 9)),
        # Nothing fits; the bounds are 64-bit integers still.
        ([(">", LONG_MAX)], (LONG_MAX, LONG_MAX)),
        ([("<", LONG_MIN)], (LONG_MIN, LONG_MIN)),
    ],
)
def test_tests_of_integers_have_bounds(tests, expected):
    assert Conditions(tests).integers() == expected


def rows(reader):
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


def files_of(reader):
    return [file.name for part in reader.partitions() for file in part.files]


def test_a_source_reads_only_what_is_wanted(golden):
    folder = golden / "tx_spanning_files"
    everything, one_file, one_type = (RawReader(options(folder)) for _ in range(3))
    files = files_of(everything)
    name = files[0]

    assert list(one_file.pushFilters([EqualTo(("file",), name)])) == []
    assert list(one_type.pushFilters([EqualTo(("kind",), "commit")])) == []

    assert len(files) > 1
    assert files_of(one_file) == [name]
    assert 0 < rows(one_type) < rows(everything)


def test_a_task_reads_files_of_about_so_many_bytes(golden):
    folder = golden / "tx_spanning_files"
    size = min(file.stat().st_size for file in folder.rglob("*.amq"))
    whole = RawReader(options(folder))
    tasks = {
        count: RawReader(options(folder, bytesPerTask=str(count * size))).partitions()
        for count in (1, 2)
    }

    assert len(whole.partitions()) == 1
    assert {len(part.files) for part in tasks[1]} == {1}
    assert {len(part.files) for part in tasks[2][:-1]} == {2}
    for parts in tasks.values():
        found = [batch for part in parts for batch in whole.read(part)]
        assert sum(batch.num_rows for batch in found) == rows(whole)
        assert [file.name for part in parts for file in part.files] == files_of(whole)


@pytest.mark.parametrize("test", [GreaterThan(("id",), LONG_MAX), LessThan(("id",), LONG_MIN)])
@pytest.mark.parametrize(
    ("kind", "column"), [(RawReader, "record_id"), (MessagesReader, "message_id")]
)
def test_beyond_the_last_id_there_is_nothing(kind, column, test, golden):
    reader = kind(options(golden / "broker_basic"))

    assert list(reader.pushFilters([type(test)((column,), test.value)])) == []
    assert rows(reader) == 0


def test_another_node_is_not_read_at_all(golden):
    reader = MessagesReader(options(golden / "broker_*"))

    list(reader.pushFilters([EqualTo(("node",), "broker_basic")]))

    assert [part.place.node for part in reader.partitions()] == ["broker_basic"]


def test_nothing_wanted_is_one_task_without_rows(golden):
    reader = LiveReader(options(golden / "broker_basic"))

    list(reader.pushFilters([EqualTo(("node",), "no_such_node")]))

    (part,) = reader.partitions()
    assert type(part) is InputPartition
    assert list(reader.read(part)) == []


def filtered(reader, *filters):
    """The rows of a reader that has taken all of the filters."""
    assert list(reader.pushFilters(list(filters))) == []
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


OF_RECORDS = {
    "one type": ([EqualTo(("user_type",), 45)], lambda row: row["user_type"] == 45),
    "types": ([In(("user_type",), (32, 33))], lambda row: row["user_type"] in (32, 33)),
    "from an id": (
        [GreaterThan(("record_id",), 30)],
        lambda row: row["record_id"] is not None and row["record_id"] > 30,
    ),
    "ids with gaps": (
        [In(("record_id",), (23, 31, 1000)), LessThan(("record_id",), 900)],
        lambda row: row["record_id"] in (23, 31),
    ),
    "a kind": ([EqualTo(("kind",), "update")], lambda row: row["kind"] == "update"),
    "with a type": ([IsNotNull(("user_type",))], lambda row: row["user_type"] is not None),
}


@pytest.mark.parametrize("name", OF_RECORDS)
@pytest.mark.parametrize("kind", [RawReader, LiveReader])
def test_filtered_records_are_those_that_fit(kind, name, golden):
    filters, keeps = OF_RECORDS[name]
    given = options(golden / "broker_*", failOnDataLoss="false")

    rows = filtered(kind(given), *filters)

    assert rows == [row for row in filtered(kind(given)) if keeps(row)]
    assert rows


@pytest.mark.parametrize(
    ("filter_", "keeps"),
    [
        (EqualTo(("address",), "orders"), lambda row: row["address"] == "orders"),
        (LessThan(("message_id",), 40), lambda row: row["message_id"] < 40),
        (GreaterThan(("timestamp_ms",), 0), lambda row: (row["timestamp_ms"] or 0) > 0),
    ],
)
def test_filtered_messages_are_those_that_fit(filter_, keeps, golden):
    given = options(golden / "broker_*")

    rows = filtered(MessagesReader(given), filter_)

    assert rows == [row for row in filtered(MessagesReader(given)) if keeps(row)]
    assert rows


def test_spark_hands_its_filters_over_and_keeps_the_others(spark, golden):
    reading = spark.read.format("journal").option("filterPushdown", "true")
    frame = reading.load(str(golden / "broker_basic"))
    taken = frame.where("user_type IN (32, 45) AND record_id > 3 AND kind = 'add'")
    left = taken.where((f.col("size") % 2 == 0) | (f.col("record_id") == 23))

    plans = [one._jdf.queryExecution().executedPlan().toString() for one in (taken, left)]
    rows = left.select("record_id", "size", "user_type").collect()

    assert ["Filter (" in plan for plan in plans] == [False, True]
    assert [tuple(row) for row in rows] == [
        (row["record_id"], row["size"], row["user_type"])
        for row in filtered(RawReader(options(golden / "broker_basic")))
        if row["kind"] == "add"
        and row["user_type"] in (32, 45)
        and row["record_id"] > 3
        and (row["size"] % 2 == 0 or row["record_id"] == 23)
    ]
    assert rows


def test_a_frame_stands_in_a_query_twice_with_different_filters(spark, golden):
    frame = spark.read.format("journal").load(str(golden / "tx_spanning_files"))
    adds, commits = (frame.where(f.col("kind") == kind) for kind in ("add", "commit"))

    both = adds.union(commits).groupBy("kind").count().collect()

    assert {row["kind"]: row["count"] for row in both} == {
        "add": adds.count(),
        "commit": commits.count(),
    }
    assert len(both) == 2
