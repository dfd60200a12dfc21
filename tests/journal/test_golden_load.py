"""Loading every folder that Artemis wrote gives what its own load gives."""

import pytest

from journal.compaction_recovery import apply_recovery, plan_recovery
from journal.errors import UnsupportedFormat
from journal.folder import JournalName
from journal.index import RecordIndex
from journal.loader import Loader
from tests.journal.golden import is_body, scenarios, unsigned

SCENARIOS = scenarios()
LOADED = [s for s in SCENARIOS if "load_error" not in s.expected["load"]]
TOLD_IN_ORDER = [s for s in LOADED if "callback_order" in s.expected["load"]]
REFUSED = [s for s in SCENARIOS if "load_error" in s.expected["load"]]

# At the end of its load Artemis frees a file whose records are all deleted.
RECLAIMED_AT_LOAD = {"tx_spanning_files"}


def plan_of(scenario, tmp_path):
    config = scenario.expected["config"]
    folder = scenario.unpack(tmp_path)
    return plan_recovery(folder, JournalName(config["prefix"], config["extension"]))


def loader_of(scenario, plan):
    return Loader(
        plan.files, RecordIndex(), user_version=scenario.expected["config"]["user_version"]
    )


def same_record(record, report):
    ours = (record.record_id, record.user_type, record.is_update, record.compact_count)
    told = (
        report["id"],
        unsigned(report["user_type"]),
        report["update"],
        report["compact_count"],
    )
    return ours == told and is_body(record.body, report)


def same_records(records, reports):
    return len(records) == len(reports) and all(
        same_record(record, report) for record, report in zip(records, reports, strict=True)
    )


def same_deletes(deletes, reports):
    return [delete.record_id for delete in deletes] == [report["id"] for report in reports]


@pytest.mark.parametrize("scenario", LOADED, ids=str)
def test_load_equals_artemis(scenario, tmp_path):
    report = scenario.expected["load"]
    loader = loader_of(scenario, plan_of(scenario, tmp_path))

    result = loader.load()

    records = list(loader.records())
    assert same_records(records, report["committed"])
    assert result.delivered_count == len(records)
    assert result.record_count == report["number_of_records"]
    assert result.max_id == report["max_id"]
    assert [tx.tx_id for tx in result.prepared] == [tx["tx"] for tx in report["prepared"]]
    for ours, told in zip(result.prepared, report["prepared"], strict=True):
        assert is_body(ours.extra, told["extra_data"])
        assert same_records(ours.records, told["records"])
        assert same_deletes(ours.deletes, told["records_to_delete"])
    failed = report["failed_transactions"]
    assert [tx.tx_id for tx in result.failed] == [tx["tx"] for tx in failed]
    for ours, told in zip(result.failed, failed, strict=True):
        assert same_records(ours.records, told["records"])
        assert [delete.record_id for delete in ours.deletes] == told["deletes"]


@pytest.mark.parametrize("scenario", LOADED, ids=str)
def test_files_are_taken_over_as_artemis_does(scenario, tmp_path):
    state = scenario.expected["load"]["state_after_load"]
    loader = loader_of(scenario, plan_of(scenario, tmp_path))

    result = loader.load()

    data = [file for file in result.files if file.has_data]
    if data:
        rollbacks = 18 * len(result.failed)
        assert data[-1].name == state["current_file"]
        assert data[-1].file_id == state["current_file_id"]
        assert data[-1].last_data_position + rollbacks == state["current_file_position"]
    after = {
        (file["name"], file["hdr_file_id"])
        for file in scenario.expected["load"]["files_after_load_and_stop"]
        if file["name"].endswith(scenario.expected["config"]["extension"])
    }
    kept = after & {(file.name, file.file_id) for file in result.files}
    if scenario.name not in RECLAIMED_AT_LOAD:
        assert kept == {(file.name, file.file_id) for file in data}
    new_ids = {file_id for _, file_id in after - kept}
    assert not new_ids or min(new_ids) == result.last_file_id + 1


@pytest.mark.parametrize("scenario", LOADED, ids=str)
def test_batches_give_the_same_records(scenario, tmp_path):
    loader = loader_of(scenario, plan_of(scenario, tmp_path))
    loader.load()
    batches = []

    count = loader.deliver(
        lambda batch: batches.append([(r.record_id, bytes(r.body)) for r in batch]), batch_records=7
    )

    assert all(1 <= len(batch) <= 7 for batch in batches)
    assert count == sum(map(len, batches))
    assert [pair for batch in batches for pair in batch] == [
        (record.record_id, record.body) for record in loader.records()
    ]


@pytest.mark.parametrize("scenario", LOADED, ids=str)
def test_columns_give_the_same_records(scenario, tmp_path):
    loader = loader_of(scenario, plan_of(scenario, tmp_path))
    loader.load()
    rows = []

    def take(columns):
        assert 1 <= len(columns) <= 7
        for i, start, end in zip(
            range(len(columns)), columns.offsets[:-1], columns.offsets[1:], strict=True
        ):
            head = columns.record_ids[i], columns.user_types[i], bool(columns.updates[i])
            rows.append((*head, columns.bodies[start:end]))

    count = loader.deliver_columns(take, batch_records=7)

    assert count == len(rows)
    assert rows == [(r.record_id, r.user_type, r.is_update, r.body) for r in loader.records()]


@pytest.mark.parametrize("scenario", TOLD_IN_ORDER, ids=str)
def test_order_is_that_of_artemis_callbacks(scenario, tmp_path):
    """Its callbacks tell adds and updates as load goes on, deletes too; ours are given at the end.

    So ours are what its callbacks gave, less every id that they deleted.
    """
    told = [line.split() for line in scenario.expected["load"]["callback_order"]]
    loader = loader_of(scenario, plan_of(scenario, tmp_path))

    loader.load()

    deleted = {int(line[1]) for line in told if line[0] == "delete"}
    expected = [(kind, int(number)) for kind, number, *_ in told if kind in ("add", "update")]
    assert [(r.kind, r.record_id) for r in loader.records()] == [
        (kind, number) for kind, number in expected if number not in deleted
    ]


@pytest.mark.parametrize("scenario", LOADED, ids=str)
def test_recovery_applied_or_planned_loads_the_same(scenario, tmp_path):
    planned = loader_of(scenario, plan_of(scenario, tmp_path))
    planned.load()
    expected = [(r.record_id, r.file, r.offset) for r in planned.records()]

    plan = plan_of(scenario, tmp_path)
    apply_recovery(plan)
    again = plan_recovery(
        plan.folder,
        JournalName(
            scenario.expected["config"]["prefix"], scenario.expected["config"]["extension"]
        ),
    )
    loader = loader_of(scenario, again)
    loader.load()

    assert not again.is_needed
    assert [(r.record_id, r.file, r.offset) for r in loader.records()] == expected


@pytest.mark.parametrize("scenario", REFUSED, ids=str)
def test_load_refuses_what_artemis_refuses(scenario, tmp_path):
    loader = loader_of(scenario, plan_of(scenario, tmp_path))

    with pytest.raises(UnsupportedFormat):
        loader.load()
