"""A session of our own is set up by the size of what is read."""

import logging
import threading

import pytest

from pipeline import session
from pipeline.cli.sources import Nodes
from pipeline.session import settings_for
from pipeline.side_by_side import side_by_side

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize(
    ("size", "partitions"),
    [(0, 2), (16 << 20, 2), (1 << 30, 16), ((1 << 30) + 1, 17), (10 << 30, 160)],
)
def test_partitions_follow_the_bytes(size, partitions):
    assert settings_for(size)[PARTITIONS] == str(partitions)


def test_small_data_are_not_worth_code_that_is_made_for_a_query():
    assert settings_for(16 << 20)["spark.sql.codegen.wholeStage"] == "false"
    assert settings_for(1 << 30).keys() == {PARTITIONS}


def test_of_a_database_nobody_knows_the_size(monkeypatch):
    from pipeline.cli import sources

    opened = []
    monkeypatch.setattr(sources, "open_session", lambda *given: opened.append(given))
    given = {"settings": (), "master": "local[1]"}

    sources.spark_of(given, Nodes({}, (), has_database=False, size=1 << 30))
    sources.spark_of({**given, "settings": (f"{PARTITIONS}=7",)})
    sources.spark_of(given, Nodes({}, (), has_database=True, size=0))

    assert opened == [
        ("local[1]", {}, 1 << 30),
        ("local[1]", {PARTITIONS: "7"}, None),
        ("local[1]", {}, None),
    ]


def test_workers_import_what_this_process_has(spark):
    import pyspark

    def imported(_number):
        return __import__("pyspark").__file__

    assert spark.sparkContext.parallelize([0], 1).map(imported).first() == pyspark.__file__


def test_what_runs_side_by_side_has_the_properties_of_the_caller(spark):
    name = "spark.job.description"
    spark.sparkContext.setLocalProperty(name, "ours")
    both = threading.Barrier(2, timeout=60)

    def look():
        both.wait()
        return spark.sparkContext.getLocalProperty(name), spark.range(5).count()

    try:
        assert side_by_side(spark, look, look) == [("ours", 5)] * 2
    finally:
        spark.sparkContext.setLocalProperty(name, None)


def test_one_that_fails_is_told_once_the_others_have_ended(spark):
    ended = []

    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        side_by_side(spark, fail, lambda: ended.append(spark.range(5).count()))
    assert ended == [5]


@pytest.mark.parametrize(("path", "is_taken"), [("/x/py4j/a.py", False), ("/x/ours/a.py", True)])
def test_what_py4j_logs_beside_raising_it_is_not_printed(path, is_taken):
    record = logging.LogRecord("root", logging.ERROR, path, 1, "Exception while …", (), None)

    assert session._is_not_of_py4j(record) is is_taken


def test_the_links_to_the_package_are_made_once_and_have_all_but_the_archive(tmp_path, monkeypatch):
    pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark]")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    home = session._links()

    assert session._links() == home
    assert (home / "jars").resolve() == session.Path(pyspark.__file__).parent / "jars"
    assert not (home / "python").exists()
    assert list((tmp_path / "quiver").iterdir()) == [home]


def test_without_a_place_for_the_links_spark_s_own_home_is_taken(tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark]")
    (tmp_path / "quiver").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert session._links() is None
