"""Rows of Artemis's folders are what `journal print-data` prints of them."""

import shutil

import pytest

from journal.compaction_recovery import apply_recovery, plan_recovery
from journal.folder import guess_name
from tests.journal.golden import scenarios
from tests.pipeline.conftest import rows_by

OF_MESSAGES = [one for one in scenarios() if one.part != "bindings"]
READABLE = [one for one in OF_MESSAGES if "load_error" not in one.expected["load"]]
USER_VERSION = 7


def user_version(scenario):
    return scenario.expected["config"]["user_version"]


PLAIN = [one for one in READABLE if user_version(one) == 0]


def has_files(scenario):
    return any(
        file["name"].endswith(f".{scenario.expected['config']['extension']}")
        for file in scenario.expected["files"]
    )


@pytest.fixture(scope="module")
def raw(spark, golden):
    """All records of all folders, by scenario."""
    paths = [str(golden / one.name) for one in PLAIN if has_files(one)]
    return rows_by(spark.read.format("journal").option("failOnDataLoss", "false").load(paths))


@pytest.fixture(scope="module")
def live(spark, golden):
    """What a load of each folder gives, by scenario."""
    paths = [str(golden / one.name) for one in PLAIN if has_files(one)]
    reader = spark.read.format("journal").option("failOnDataLoss", "false")
    return rows_by(reader.option("records", "live").load(paths))


def as_printed(row):
    line = {
        "file": row["file"],
        "file_id": row["file_id"],
        "offset": row["offset"],
        "record": row["kind"],
        "id": row["record_id"],
        "tx_id": row["tx_id"],
        "user_type": row["user_type"],
        "compact_count": row["compact_count"],
        "body": None if row["body"] is None else bytes(row["body"]).hex(),
        "records_in_file": row["records_in_file"],
        "checksum": row["checksum"],
    }
    return line if row["verdict"] == "live" else {**line, "verdict": row["verdict"]}


@pytest.fixture
def recovered(golden, tmp_path):
    """A copy of a scenario's journal in which the next start's file operations are done.

    Rows are given so; `print-data --raw` shows the folder as it is.
    """

    def copy(scenario):
        folder = shutil.copytree(golden / scenario.name / "journal", tmp_path / "journal")
        apply_recovery(plan_recovery(folder, guess_name(folder)))
        return folder

    return copy


@pytest.mark.parametrize("scenario", [one for one in PLAIN if has_files(one)], ids=str)
def test_every_record_of_every_file_is_a_row(scenario, raw, recovered, printed):
    lines, notes = printed(recovered(scenario), "--raw")
    rows = raw.get(scenario.name, [])

    assert [as_printed(row) for row in rows if row["kind"] != "damage"] == lines
    damages = [f"{row['file']}:{row['offset']}: {row['damage']}" for row in rows if row["damage"]]
    assert sorted(damages) == sorted(notes[:-1])


@pytest.mark.parametrize("scenario", [one for one in PLAIN if has_files(one)], ids=str)
def test_live_rows_are_what_a_load_gives(scenario, live, golden, printed):
    lines, notes = printed(golden / scenario.name / "journal")
    rows = live.get(scenario.name, [])

    committed = [row for row in rows if row["verdict"] == "live"]
    assert [(row["kind"], row["record_id"], row["user_type"]) for row in committed] == [
        (line["record"], line["id"], line["user_type"])
        for line in lines
        if line["record"] in ("add", "update")
    ]
    assert [bytes(row["body"]).hex() for row in committed] == [
        line["body"] for line in lines if line["record"] in ("add", "update")
    ]
    for verdict in ("prepared", "failed"):
        operations = [
            (line["tx_id"], one["id"], one["body"])
            for line in lines
            if line["record"] == verdict
            for one in line["adds"]
        ]
        assert [
            (row["tx_id"], row["record_id"], bytes(row["body"]).hex())
            for row in rows
            if row["verdict"] == verdict and row["kind"] in ("add_tx", "update_tx")
        ] == operations
        deletes = [
            (line["tx_id"], one)
            for line in lines
            if line["record"] == verdict
            for one in line["deletes"]
        ]
        assert [
            (row["tx_id"], row["record_id"])
            for row in rows
            if row["verdict"] == verdict and row["kind"] == "delete_tx"
        ] == deletes
    assert len([row for row in rows if row["damage"]]) == len(
        [note for note in notes[:-1] if ": shown as" not in note]
    )


def test_another_user_version_is_an_option(spark, golden, printed):
    (scenario,) = [one for one in READABLE if user_version(one)]
    version = user_version(scenario)
    frame = spark.read.format("journal").option("userVersion", version)

    rows = rows_by(frame.load(str(golden / scenario.name)))[scenario.name]

    lines, _ = printed(golden / scenario.name / "journal", "--raw", "--user-version", version)
    assert [as_printed(row) for row in rows] == lines


@pytest.mark.parametrize("name", ["bad_header_version", "bad_user_version"])
def test_a_file_of_a_foreign_version_is_a_row_of_damage(name, spark, golden):
    frame = spark.read.format("journal").option("failOnDataLoss", "false")

    rows = rows_by(frame.load(str(golden / name)))[name]

    assert {row["verdict"] for row in rows if row["kind"] == "damage"} == {"damaged"}
    assert any("version" in row["damage"] for row in rows if row["kind"] == "damage")
