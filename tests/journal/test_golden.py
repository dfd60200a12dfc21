"""Every folder that Artemis wrote is read as Artemis reads it, byte for byte."""

import pytest

from journal.errors import UnsupportedFormat
from journal.folder import JournalName, list_files
from journal.reader import read_folder
from tests.journal.golden import is_body, scenarios, unsigned

SCENARIOS = scenarios()
READABLE = [s for s in SCENARIOS if "files" in s.expected["raw"]]
REFUSED = [s for s in SCENARIOS if "order_files_error" in s.expected["raw"]]


# Artemis's reader does not pass on the compact count of these.
WITHOUT_COUNT = ("delete", "prepare", "commit", "rollback")


def raw_record(record):
    """Our raw record in the words of the report, but for its body."""
    names = {
        "kind": record.kind,
        "offset": record.offset,
        "size": record.size,
        "id": record.record_id,
        "tx": record.tx_id,
        "user_type": record.user_type,
        "compact_count": None if record.kind in WITHOUT_COUNT else record.compact_count,
        "number_of_records": record.records_in_file,
    }
    return {name: value for name, value in names.items() if value is not None}


def reported_record(record):
    ours = ("kind", "offset", "size", "id", "tx", "user_type", "compact_count", "number_of_records")
    report = {name: value for name, value in record.items() if name in ours}
    if "user_type" in report:
        report["user_type"] = unsigned(report["user_type"])
    return report


def open_scenario(scenario, tmp_path):
    config = scenario.expected["config"]
    folder = scenario.unpack(tmp_path)
    return folder, JournalName(config["prefix"], config["extension"])


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_raw_view_equals_artemis(scenario, tmp_path):
    folder, name = open_scenario(scenario, tmp_path)
    files = [file for file in list_files(folder, name) if not file.is_short]

    views = list(read_folder(files, user_version=scenario.expected["config"]["user_version"]))

    reports = scenario.expected["raw"]["files"]
    assert [(view.name, view.file_id, view.version) for view in views] == [
        (report["file"], report["file_id"], report["version"]) for report in reports
    ]
    for view, report in zip(views, reports, strict=True):
        records = list(view)
        assert [raw_record(record) for record in records] == [
            reported_record(record) for record in report["records"]
        ]
        assert all(
            is_body(record.body, told)
            for record, told in zip(records, report["records"], strict=True)
            if "len" in told
        )
        assert {record.verdict for record in records} <= {"live"}
        assert {record.checksum for record in records} <= {"none"}
        assert view.last_data_position == report["last_data_pos"]
        assert view.data_file_marks == report["marked_as_data_file_by_corruption"]


@pytest.mark.parametrize("scenario", REFUSED, ids=str)
def test_foreign_version_is_refused_in_one_line(scenario, tmp_path):
    folder, name = open_scenario(scenario, tmp_path)
    files = list_files(folder, name)

    with pytest.raises(UnsupportedFormat) as refusal:
        list(read_folder(files))

    assert "\n" not in str(refusal.value)
    assert "version" in str(refusal.value)
