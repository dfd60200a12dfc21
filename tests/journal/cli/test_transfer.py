"""`journal export` and `journal import`: lossless, and whole or not at all."""

import json
import subprocess
import sys
import time

import pytest

from tests.journal.golden import scenarios

SMALL = ("--file-size", "64K", "--buffer-size", "16K")
READABLE = [s for s in scenarios() if "load_error" not in s.expected["load"]]
ADD = '{"record":"add","id":7,"user_type":1,"body":"cafe"}'
PREPARED = (
    '{"record":"prepared","tx_id":3,"extra":"e1","adds":[{"id":8,"user_type":2,"update":false,'
    '"body":"01"}],"deletes":[7],"delete_bodies":["0badcafe"]}'
)


def lines_of(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("scenario", READABLE, ids=str)
def test_export_and_import_lose_nothing_of_artemis_journals(scenario, tmp_path, call):
    version = ("--user-version", scenario.expected["config"]["user_version"])
    source = scenario.unpack(tmp_path)
    exported = call("export", source, *version)[1]
    lines = lines_of(tmp_path / "lines", *exported)

    status, _, _ = call("import", tmp_path / "copy", lines, "--buffer-size", "2M")

    assert status == 0
    assert call("export", tmp_path / "copy")[1] == exported
    assert call("verify", tmp_path / "copy")[0] == 0


def test_prepared_transaction_keeps_extra_deletes_and_their_bodies(tmp_path, call):
    status, out, _ = call("import", tmp_path / "j", lines_of(tmp_path / "l", ADD, PREPARED), *SMALL)

    assert (status, out) == (0, ["1 adds, 0 updates and 1 prepared transactions imported"])
    assert [json.loads(line) for line in call("export", tmp_path / "j")[1]] == [
        json.loads(ADD),
        json.loads(PREPARED),
    ]


def test_import_adds_to_what_is_there(tmp_path, call, shell):
    shell("exec", tmp_path / "j", *SMALL, input="add 1 00\n")

    status, _, _ = call("import", tmp_path / "j", lines_of(tmp_path / "l", ADD))

    assert status == 0
    assert call("print-data", tmp_path / "j", "--format", "ids")[1] == ["1", "7"]


def test_import_reads_standard_input_and_print_data_lines(tmp_path, call, shell):
    shell("exec", tmp_path / "j", *SMALL, input="add 1 00\nupdate 1 2 01\n")
    printed = "\n".join(call("print-data", tmp_path / "j", "--format", "jsonl")[1])

    done = shell("import", tmp_path / "copy", "--json", *SMALL, input=printed)

    assert json.loads(done.stdout) == {
        "adds": 1,
        "updates": 1,
        "lone_updates": 0,
        "doubled_adds": 0,
        "prepared": 0,
        "failed": 0,
    }
    assert call("export", tmp_path / "copy")[1] == call("export", tmp_path / "j")[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "not JSON"),
        ('{"record":"add","id":9', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"id":9}', "record is None"),
        ('{"record":"remove","id":9}', "record is 'remove'"),
        ('{"record":"add","user_type":1,"body":""}', "id is None"),
        ('{"record":"add","id":9.5,"user_type":1,"body":""}', "id is 9.5"),
        ('{"record":"add","id":true,"user_type":1,"body":""}', "id is True"),
        ('{"record":"add","id":9223372036854775808,"user_type":1,"body":""}', "whole number of 64"),
        ('{"record":"add","id":9,"user_type":256,"body":""}', "user_type is 256"),
        ('{"record":"add","id":9,"user_type":1,"body":"abc"}', "not a string of hexadecimal"),
        ('{"record":"add","id":9,"user_type":1,"body":"\u0661\u0662"}', "not a string of hex"),
        ('{"record":"add","id":9,"user_type":1}', "body is not a string"),
        ('{"record":"prepared","tx_id":1,"extra":"","adds":7}', "adds is not a list"),
        ('{"record":"prepared","tx_id":1,"extra":"","adds":[7]}', "not an add or update"),
        ('{"record":"prepared","tx_id":1,"extra":"","deletes":["x"]}', "a delete is 'x'"),
        (
            '{"record":"prepared","tx_id":1,"extra":"","deletes":[1],"delete_bodies":["",""]}',
            "1 deletes and 2 delete_bodies",
        ),
        (PREPARED, "transaction 3 is there already"),
        (
            '{"record":"add","id":9,"user_type":1,"body":"' + "00" * 20_000 + '"}',
            "a body of 20000 bytes",
        ),
    ],
)
def test_bad_line_is_named_and_nothing_is_imported(line, reason, tmp_path, call):
    source = lines_of(tmp_path / "l", ADD, PREPARED, "", line, ADD.replace("7", "10"))

    status, out, err = call("import", tmp_path / "j", source, *SMALL)

    assert (status, out, len(err)) == (2, [], 1)
    assert err[0].startswith("journal: line 4: ")
    assert reason in err[0]
    assert err[0].endswith("; nothing is imported")
    assert call("export", tmp_path / "j")[1] == []


def test_prepared_record_that_does_not_fit_leaves_nothing(tmp_path, call):
    large = PREPARED.replace('"01"', '"' + "00" * 20_000 + '"')

    status, _, err = call("import", tmp_path / "j", lines_of(tmp_path / "l", ADD, large), *SMALL)

    assert (status, len(err)) == (2, 1)
    assert "a body of 20000 bytes" in err[0]
    assert call("export", tmp_path / "j")[1] == []


def test_batches_before_a_bad_line_stay_and_are_named(tmp_path, call):
    lines = [ADD.replace("7", str(number)) for number in range(1, 8)]
    source = lines_of(tmp_path / "l", *lines, "nonsense")

    status, _, err = call("import", tmp_path / "j", source, "--batch", 3, *SMALL)

    assert status == 2
    assert err[0].endswith("; lines 1 to 6 are imported")
    assert len(call("export", tmp_path / "j")[1]) == 6


def test_record_that_is_live_already_is_a_bad_line(tmp_path, call):
    call("import", tmp_path / "j", lines_of(tmp_path / "l", ADD), *SMALL)

    status, _, err = call("import", tmp_path / "j", tmp_path / "l")

    assert (status, err) == (
        2,
        ["journal: line 1: record 7 is there already; nothing is imported"],
    )


def test_failed_transactions_in_the_input_are_passed_over(tmp_path, call):
    failed = '{"record":"failed","tx_id":9,"adds":[],"deletes":[]}'

    status, _, err = call("import", tmp_path / "j", lines_of(tmp_path / "l", ADD, failed), *SMALL)

    assert (status, err) == (0, ["1 failed transactions in the input passed over"])


def test_transaction_that_is_prepared_in_the_target_is_not_joined(tmp_path, call):
    call("import", tmp_path / "j", lines_of(tmp_path / "l", PREPARED), *SMALL)

    status, _, err = call("import", tmp_path / "j", tmp_path / "l")

    assert status == 2
    assert "transaction 3 is there already; nothing is imported" in err[0]


def test_import_after_one_that_was_killed_starts_afresh(tmp_path, call, shell):
    folder = tmp_path / "j"
    command = [sys.executable, "-m", "journal.cli.main", "import", str(folder), *SMALL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as first:
        for number in range(2_000):
            add = {"record": "add", "id": number, "user_type": 1, "body": "ab" * 100}
            first.stdin.write(json.dumps(add) + "\n")
        first.stdin.flush()
        # Its records are in several files by then, in a transaction without an end.
        deadline = time.monotonic() + 120
        while len(list(folder.glob("*.amq"))) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        first.kill()
    assert call("print-data", folder, "--format", "ids")[1] == []

    status, _, _ = call("import", folder, lines_of(tmp_path / "l", ADD), *SMALL)

    assert status == 0
    assert call("print-data", folder, "--format", "ids")[1] == ["7"]
    assert call("verify", folder)[0] == 0


def test_a_copy_says_what_of_a_broker_it_leaves(tmp_path, call, shell):
    names = ("--prefix", "activemq-data", "--extension", "amq")
    source = tmp_path / "data" / "journal"
    shell("exec", source, *SMALL, *names, input="add 1 00\n")
    for name in ("paging", "large-messages", "bindings"):
        (tmp_path / "data" / name).mkdir()
    assert call("copy", source, tmp_path / "one")[2] == []

    (tmp_path / "data" / "paging" / "1").mkdir()
    (tmp_path / "data" / "large-messages" / "7.msg").touch()
    status, _, (line,) = call("copy", source, tmp_path / "two")

    data = (tmp_path / "data").resolve()
    assert status == 0
    assert line.startswith(f"not copied: {data / 'paging'} and {data / 'large-messages'}: ")
