"""The commands over the folders that Artemis wrote."""

import json
import re

import pytest

from tests.journal.golden import GOLDEN, is_body, scenarios, unsigned
from tests.journal.snapshot import snapshot

SCENARIOS = scenarios()
READABLE = [s for s in SCENARIOS if "load_error" not in s.expected["load"]]
REFUSED = [s for s in SCENARIOS if "load_error" in s.expected["load"]]
DAMAGED = {
    "corrupt_plain_middle",
    "corrupt_prepared",
    "corrupt_tx_middle",
    "corrupt_tx_other_file",
    "embedded_record",
    "header_only_short_file",  # Of 16 bytes, which no journal makes.
    "torn_check_size",
    "torn_commit",
    "torn_garbage",
    "torn_truncated",
    "torn_truncated_in_header",
    "torn_zeroed",
    "zero_length_file",
}
BROKERS = [s for s in READABLE if s.part]


def arguments_of(scenario):
    config = scenario.expected["config"]
    return ("--user-version", config["user_version"])


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_jsonl_is_the_load_of_artemis(scenario, tmp_path, call):
    report = scenario.expected["load"]
    folder = scenario.unpack(tmp_path)

    _, lines, _ = call("print-data", folder, "--format", "jsonl", *arguments_of(scenario))

    objects = [json.loads(line) for line in lines]
    live = [line for line in objects if line["record"] in ("add", "update")]
    assert [(line["id"], line["user_type"], line["record"] == "update") for line in live] == [
        (record["id"], unsigned(record["user_type"]), record["update"])
        for record in report["committed"]
    ]
    assert all(
        is_body(bytes.fromhex(line["body"]), record)
        for line, record in zip(live, report["committed"], strict=True)
    )
    prepared = [line for line in objects if line["record"] == "prepared"]
    assert [(line["tx_id"], len(line["adds"]), line["deletes"]) for line in prepared] == [
        (tx["tx"], len(tx["records"]), [delete["id"] for delete in tx["records_to_delete"]])
        for tx in report["prepared"]
    ]
    failed = [line for line in objects if line["record"] == "failed"]
    assert [(line["tx_id"], line["deletes"]) for line in failed] == [
        (tx["tx"], tx["deletes"]) for tx in report["failed_transactions"]
    ]


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_verify_says_which_folders_are_damaged(scenario, tmp_path, call):
    folder = scenario.unpack(tmp_path)

    status, lines, said = call("verify", folder, *arguments_of(scenario))

    assert status == (1 if scenario.name in DAMAGED else 0)
    assert bool(lines) == (scenario.name in DAMAGED)
    assert all(re.fullmatch(r"[\w.-]+:\d+: .+", line) for line in lines)
    assert re.search(r"\d+ files, \d+ records", said[-1])


@pytest.mark.parametrize("scenario", REFUSED, ids=str)
@pytest.mark.parametrize("command", ["print-data", "verify", "stat"])
def test_foreign_versions_are_refused_in_one_line(scenario, command, tmp_path, call):
    folder = scenario.unpack(tmp_path)

    status, lines, said = call(command, folder)

    assert (status, lines, len(said)) == (2, [], 1)
    assert "version" in said[0]


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_no_command_touches_anything(scenario, tmp_path, call):
    folder = scenario.unpack(tmp_path)
    folder.chmod(0o555)
    before = snapshot(tmp_path)

    for command in (
        ["print-data"],
        ["print-data", "--raw"],
        ["print-data", "--format", "ids"],
        ["verify"],
        ["stat"],
    ):
        call(command[0], folder, *command[1:], *arguments_of(scenario))

    assert snapshot(tmp_path) == before
    folder.chmod(0o755)


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_stat_counts_what_artemis_counts(scenario, tmp_path, call):
    report = scenario.expected["load"]
    folder = scenario.unpack(tmp_path)

    status, lines, _ = call("stat", folder, "--json", *arguments_of(scenario))

    figures = json.loads(lines[0])
    adds = {record["id"] for record in report["committed"] if not record["update"]}
    assert status == 0
    assert figures["live_records"] == len(adds)
    assert figures["live_updates"] == len(report["committed"]) - len(adds)
    assert figures["prepared_transactions"] == len(report["prepared"])
    assert figures["failed_transactions"] == len(report["failed_transactions"])
    assert figures["checksum_records"] == 0
    assert figures["data_files"] + figures["free_files"] == figures["files"]


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_ids_are_live_adds_ascending(scenario, tmp_path, call):
    folder = scenario.unpack(tmp_path)

    _, lines, _ = call("print-data", folder, "--format", "ids", *arguments_of(scenario))

    committed = scenario.expected["load"]["committed"]
    assert lines == [
        str(record_id)
        for record_id in sorted({record["id"] for record in committed if not record["update"]})
    ]


# Hashes of objects differ from run to run of Artemis; the decoder writes 0.
IDENTITY = re.compile(r"(?<=\]@)\d+|(?<=BridgeConfiguration@)[0-9a-f]+|(?<=XidImpl \()\d+")


@pytest.mark.parametrize("scenario", BROKERS, ids=str)
def test_decoded_text_equals_artemis_data_print(scenario, tmp_path, call, monkeypatch):
    scenario.unpack(tmp_path)
    monkeypatch.chdir(tmp_path)
    reported = (GOLDEN / scenario.name / "data_print.txt").read_text("utf-8").splitlines()
    middle = reported.index("** MESSAGES **")
    folder, reported = (
        ("bindings", reported[1:middle])
        if scenario.part == "bindings"
        else ("journal", reported[middle + 1 :])
    )

    _, raw, _ = call("print-data", folder, "--raw", "--decode")
    _, live, _ = call("print-data", folder, "--decode")

    assert raw + live == [IDENTITY.sub("0", line) for line in reported]


@pytest.mark.parametrize("scenario", BROKERS, ids=str)
def test_decoded_jsonl_says_what_the_records_are(scenario, tmp_path, call):
    folder = scenario.unpack(tmp_path)

    _, lines, _ = call("print-data", folder, "--format", "jsonl", "--decode")

    objects = [json.loads(line) for line in lines]
    assert all(
        "decoded" in line and (line["decoded"] is None or "error" not in line["decoded"])
        for line in objects
        if line["record"] in ("add", "update")
    )
    assert any(line.get("decoded") for line in objects) or not objects
