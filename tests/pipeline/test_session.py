"""A session of our own is set up by the size of what is read."""

import pytest

from pipeline.cli.sources import Nodes
from pipeline.session import settings_for

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
