"""`journal recover` and `journal compact` on journals that are damaged, used again, or whole."""

import json

import pytest

from tests.journal.golden import scenarios
from tests.journal.snapshot import snapshot

SMALL = ("--file-size", "64K", "--buffer-size", "16K")
READABLE = [s for s in scenarios() if "load_error" not in s.expected["load"]]
DAMAGED = ("corrupt_plain_middle", "corrupt_tx_middle", "torn_truncated", "bad_header_version")


def ids_of(call, folder):
    return [int(line) for line in call("print-data", folder, "--format", "ids")[1]]


def flip_byte(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


@pytest.fixture
def journal(tmp_path, shell):
    """A journal of 100 records of which every second was deleted."""
    lines = [f"add 1 {number:04x}{'ab' * 500}" for number in range(1, 101)]
    lines += [f"delete {number}" for number in range(2, 101, 2)]
    done = shell("exec", tmp_path / "journal", *SMALL, input="\n".join(lines))
    assert done.returncode == 0
    assert "ERR" not in done.stdout
    return tmp_path / "journal"


@pytest.mark.parametrize(
    "scenario", [s for s in READABLE if s.name.startswith(("tx_", "corrupt"))], ids=str
)
def test_only_live_is_what_a_load_gives(scenario, tmp_path, call):
    version = ("--user-version", scenario.expected["config"]["user_version"])
    source = scenario.unpack(tmp_path)
    before = snapshot(source)

    status, _, _ = call(
        "recover",
        source,
        "--target",
        tmp_path / "new",
        "--only-live",
        "--buffer-size",
        "2M",
        *version,
    )

    assert status == 0
    assert snapshot(source) == before
    exported = call("export", source, *version)[1]
    assert call("export", tmp_path / "new", *version)[1] == exported


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_journal_of_artemis_is_salvaged(name, tmp_path, call):
    (scenario,) = [s for s in scenarios() if s.name == name]
    source = scenario.unpack(tmp_path)
    before = snapshot(source)

    status, out, err = call(
        "recover", source, "--target", tmp_path / "new", "--json", "--buffer-size", "2M"
    )

    report = json.loads("\n".join(out))
    assert status == 0
    assert report["unwritten"] == []
    assert len(err) == len(report["damages"]) >= 1
    assert snapshot(source) == before
    assert ids_of(call, tmp_path / "new")


def test_deleted_records_come_back_unless_only_live(journal, tmp_path, call):
    call("recover", journal, "--target", tmp_path / "all", *SMALL)
    call("recover", journal, "--target", tmp_path / "live", "--only-live", *SMALL)

    assert ids_of(call, tmp_path / "all") == list(range(1, 101))
    assert ids_of(call, tmp_path / "live") == list(range(1, 101, 2))
    assert call("verify", tmp_path / "all")[0] == 0


def test_damaged_record_is_lost_and_named_and_the_rest_is_salvaged(journal, tmp_path, call):
    first = json.loads(call("print-data", journal, "--format", "jsonl")[1][0])
    flip_byte(journal / first["file"], first["offset"] + 100)

    status, _, err = call("recover", journal, "--target", tmp_path / "new", *SMALL)

    assert status == 0
    assert any("does not match its checksum" in line for line in err)
    assert ids_of(call, tmp_path / "new") == [i for i in range(1, 101) if i != first["id"]]


@pytest.mark.parametrize("offset", [3, 7, 15], ids=["version", "user version", "file id"])
def test_file_with_a_damaged_header_is_salvaged(offset, journal, tmp_path, call):
    victim = json.loads(call("print-data", journal, "--format", "jsonl")[1][0])["file"]
    flip_byte(journal / victim, offset)

    status, _, _ = call("recover", journal, "--target", tmp_path / "new", *SMALL)

    assert status == 0
    assert ids_of(call, tmp_path / "new") == list(range(1, 101))


def test_records_in_a_file_marked_for_use_are_salvaged(journal, tmp_path, call, shell):
    deletes = "".join(f"delete {number}\n" for number in range(1, 101, 2))
    assert "ERR" not in shell("exec", journal, *SMALL, input=deletes + "reclaim\n").stdout
    shell("exec", journal, *SMALL, input="reclaim\n")
    assert ids_of(call, journal) == []

    status, _, _ = call("recover", journal, "--target", tmp_path / "new", *SMALL)

    assert status == 0
    assert ids_of(call, tmp_path / "new") == list(range(1, 101))


def test_prepared_transaction_and_updates_are_kept(tmp_path, call, shell):
    script = "add 1 01\nupdate 1 2 02\nadd 1 03 tx=9\ndelete 1 tx=9\nprepare 9 ee\n"
    shell("exec", tmp_path / "journal", *SMALL, input=script)

    call("recover", tmp_path / "journal", "--target", tmp_path / "new", *SMALL)

    assert call("export", tmp_path / "new")[1] == call("export", tmp_path / "journal")[1]


def test_deleted_records_that_live_again_are_counted(journal, tmp_path, call):
    _, told, _ = call("recover", journal, "--target", tmp_path / "new", *SMALL)
    _, counts, _ = call("recover", journal, "--target", tmp_path / "json", "--json", *SMALL)
    _, trusted, _ = call("recover", journal, "--target", tmp_path / "safe", "--only-live", *SMALL)

    assert told[1] == (
        "50 of the others had been deleted, and are live records again; --only-live leaves them out"
    )
    assert json.loads(counts[0])["revived"] == 50
    assert len(trusted) == 1


def test_compact_says_what_it_counts(journal, call):
    _, told, _ = call("compact", journal, *SMALL)

    assert told[0].endswith(" after, with the one that is appended to next; no free ones")


def test_compacted_copies_are_salvaged_once(journal, tmp_path, call, shell):
    shell("exec", journal, input="update 1 5 77\ncompact\n")

    call("recover", journal, "--target", tmp_path / "new", *SMALL)

    exported = [json.loads(line) for line in call("export", tmp_path / "new")[1]]
    assert sorted(one["id"] for one in exported if one["record"] == "add") == list(range(1, 101))
    assert [one["id"] for one in exported if one["record"] == "update"] == [1]


def test_record_too_large_for_the_target_is_named_and_makes_the_status_1(tmp_path, call, shell):
    shell("exec", tmp_path / "journal", *SMALL, input=f"add 1 {'ab' * 12000}\nadd 1 01\n")
    small = ("--file-size", "8K", "--buffer-size", "1K", "--type", "NIO")

    status, _, err = call("recover", tmp_path / "journal", "--target", tmp_path / "new", *small)

    assert (status, len(err)) == (1, 1)
    assert err[0].startswith("not written: activemq-data-1.amq: record 1: a body of 12000 bytes")
    assert ids_of(call, tmp_path / "new") == [2]


@pytest.mark.parametrize("inside", [".", "below"])
def test_target_inside_the_source_is_refused(inside, journal, call):
    before = snapshot(journal)

    status, _, err = call("recover", journal, "--target", journal / inside)

    assert (status, len(err)) == (2, 1)
    assert snapshot(journal) == before


def test_target_that_is_not_empty_is_refused(journal, tmp_path, call):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_text("mine")

    status, _, err = call("recover", journal, "--target", tmp_path / "new")

    assert (status, err) == (2, [f"journal: --target {tmp_path / 'new'} is not empty"])


def test_compact_keeps_what_lives_and_frees_files(tmp_path, call, shell):
    lines = [f"add 1 {'ab' * 2000}" for number in range(300)]
    lines += [f"delete {number}" for number in range(1, 301) if number % 10]
    manual = ("--compact-min-files", 0)
    shell("exec", tmp_path / "journal", *SMALL, *manual, input="\n".join(lines))
    before = sorted(call("export", tmp_path / "journal")[1])

    status, out, _ = call("compact", tmp_path / "journal", "--json", *manual)

    counts = json.loads(out[0])
    assert status == 0
    assert counts["files_after"] < counts["files_before"]
    assert sorted(call("export", tmp_path / "journal")[1]) == before
    assert call("verify", tmp_path / "journal")[0] == 0


@pytest.mark.parametrize("command", ["compact", "recover"])
def test_folder_without_a_journal_is_one_line(command, tmp_path, call):
    (tmp_path / "empty").mkdir()
    more = ["--target", tmp_path / "new"] if command == "recover" else []

    for folder in ("empty", "missing"):
        status, out, err = call(command, tmp_path / folder, *more)

        assert (status, out, len(err)) == (2, [], 1)
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "new").exists()
