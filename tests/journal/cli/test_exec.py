"""`journal exec` and `journal append` as processes: what they answer is what survives."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from journal.cli.append import append

SCRIPTS = sorted(Path(__file__).parents[2].joinpath("scripts").glob("*.txt"))
TYPES = ["NIO", "ASYNCIO", "MAPPED", "IO_URING"]
SMALL = ("--file-size", "64K", "--buffer-size", "16K")


def read_script(path):
    """The operations, the answers, and the dump afterwards."""
    text, _, dump = path.read_text().partition("---\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    operations = [line[2:] for line in lines if line.startswith("> ")]
    return operations, [line for line in lines if not line.startswith("> ")], dump.splitlines()


@contextmanager
def start(*arguments):
    """A command with its streams at hand; killed at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "journal.cli.main", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def live_ids(call, folder):
    return {int(line) for line in call("print-data", folder, "--format", "ids")[1]}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_gives_its_answers_and_its_dump(script, tmp_path, call, shell):
    operations, answers, dump = read_script(script)
    folder = tmp_path / "journal"

    done = shell("exec", folder, *SMALL, input="\n".join(operations) + "\n")

    assert done.stdout.splitlines() == answers
    assert (done.returncode, done.stderr) == (0, "")
    assert call("export", folder)[1] == dump


@pytest.mark.parametrize("journal_type", TYPES)
def test_script_from_a_file_on_every_type(journal_type, tmp_path, call, shell):
    operations, answers, dump = read_script(SCRIPTS[-1])
    script = tmp_path / "script"
    script.write_text("\n".join(operations))  # No newline at the end.

    done = shell("exec", tmp_path / "journal", script, "--type", journal_type, *SMALL)

    assert done.stdout.splitlines() == answers
    assert call("export", tmp_path / "journal")[1] == dump


def test_unsynced_script_gives_the_same(tmp_path, call, shell):
    operations, answers, dump = read_script(SCRIPTS[-1])

    done = shell("exec", tmp_path / "journal", "--no-sync", *SMALL, input="\n".join(operations))

    assert done.stdout.splitlines() == answers
    assert call("export", tmp_path / "journal")[1] == dump


def test_each_line_is_answered_before_the_next_is_written(tmp_path):
    with start("exec", tmp_path / "journal", *SMALL) as process:
        for number in range(1, 20):
            process.stdin.write("add 1 00\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"ACK add {number}\n"
        process.stdin.close()

        assert process.wait() == 0


def test_a_long_script_is_answered_in_order_and_shares_syncs(tmp_path, call, shell):
    count = 30_000
    lines = [f"add 1 {number:08x}" for number in range(1, count + 1)]

    done = shell("exec", tmp_path / "journal", input="\n".join(lines))

    assert done.stdout.splitlines() == [f"ACK add {number}" for number in range(1, count + 1)]
    assert len(live_ids(call, tmp_path / "journal")) == count


def test_line_longer_than_any_record_is_refused_and_skipped(tmp_path, shell):
    lines = ["add 1 00", "add 1 " + "ab" * 200_000, "add 1 01"]

    done = shell("exec", tmp_path / "journal", *SMALL, input="\n".join(lines) + "\n")

    first, second, third = done.stdout.splitlines()
    assert (first, third) == ("ACK add 1", "ACK add 2")
    assert second.startswith("ERR a line of 400006 bytes")


def test_body_too_large_for_the_journal_is_an_error_of_its_line(tmp_path, shell):
    done = shell("exec", tmp_path / "journal", *SMALL, input=f"add 1 {'ab' * 20_000}\nadd 1 00\n")

    first, second = done.stdout.splitlines()
    assert first.startswith("ERR add: a body of 20000 bytes")
    assert second == "ACK add 1"


def test_ids_go_on_after_a_restart(tmp_path, shell):
    shell("exec", tmp_path / "journal", *SMALL, input="add 1 00\nbegin\nadd 1 00 id=50\n")

    done = shell("exec", tmp_path / "journal", *SMALL, input="add 1 00\nbegin\n")

    assert done.stdout.splitlines() == ["ACK add 51", "TX 52"]


def test_append_counts_and_sizes(tmp_path, call, shell):
    done = shell("append", tmp_path / "journal", "--count", 500, "--size", 100, *SMALL)

    assert done.stdout.splitlines() == [f"ACK {number}" for number in range(1, 501)]
    records = [json.loads(line) for line in call("export", tmp_path / "journal")[1]]
    assert [record["id"] for record in records] == list(range(1, 501))
    assert {len(record["body"]) for record in records} == {200}


def test_append_takes_a_record_for_every_line(tmp_path, call, shell):
    done = shell("append", tmp_path / "journal", "--user-type", 7, *SMALL, input="one\n\nthree")

    assert done.stdout.splitlines() == ["ACK 1", "ACK 2", "ACK 3"]
    records = [json.loads(line) for line in call("export", tmp_path / "journal")[1]]
    assert [bytes.fromhex(record["body"]) for record in records] == [b"one", b"", b"three"]
    assert {record["user_type"] for record in records} == {7}


@pytest.mark.parametrize("journal_type", TYPES)
@pytest.mark.parametrize("command", ["append", "exec"])
def test_what_a_killed_writer_acknowledged_survives(command, journal_type, tmp_path, call):
    folder = tmp_path / "journal"
    arguments = [folder, "--count", 10_000_000, "--size", 200]
    if command == "exec":
        script = tmp_path / "script"
        script.write_text("add 1 abcdef\n" * 1_000_000)
        arguments = [folder, script]

    with start(command, *arguments, "--type", journal_type, *SMALL) as process:
        said = [process.stdout.readline() for _ in range(3000)]
        process.kill()
        said += process.stdout.readlines()

    acknowledged = {int(line.split()[-1]) for line in said if line.endswith("\n")}
    assert len(acknowledged) >= 3000
    assert acknowledged <= live_ids(call, folder)


def test_reader_that_goes_away_ends_the_writer_quietly(tmp_path):
    with start("append", tmp_path / "journal", "--count", 10_000_000, *SMALL) as process:
        process.stdout.readline()
        process.stdout.close()

        assert (process.wait(60), process.stderr.read()) == (0, "")


@pytest.mark.parametrize("command", ["append", "exec"])
def test_interrupt_ends_with_130(command, tmp_path):
    with start(command, tmp_path / "journal", *SMALL) as process:
        process.stdin.write("add 1 00\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("ACK")

        process.send_signal(signal.SIGINT)

        assert (process.wait(60), process.stderr.read().strip()) == (130, "")


def test_folder_in_use_is_refused_at_once_with_one_line(tmp_path, shell):
    with start("exec", tmp_path / "journal", *SMALL) as owner:
        owner.stdin.write("add 1 00\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == "ACK add 1\n"

        done = shell("exec", tmp_path / "journal", *SMALL, input="add 1 00\n")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "in use" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--file-size", "1000"], "journal-file-size is 1000; at least 1024"),
        (["--file-size", "3G"], "journal-file-size is 3221225472; at most 2147483647 bytes"),
        (["--file-size", "big"], "'big' is not a size"),
        (["--min-files", "1"], "--min-files"),
        (["--pool-files", "-2"], "--pool-files"),
        (["--max-io", "0"], "--max-io"),
        (["--buffer-timeout", "soon"], "'soon' is not a time"),
        (["--buffer-timeout", "-1"], "journal-buffer-timeout is -1; at least 0"),
        (["--buffer-size", "12"], "journal-buffer-size is 12; at least 1024"),
        (["--type", "FAST"], "'FAST' is not one of"),
        (["--compact-min-files", "-1"], "--compact-min-files"),
        (["--compact-percentage", "101"], "--compact-percentage"),
        (["--lock-timeout", "-2"], "journal-lock-acquisition-timeout is -2; at least -1"),
        (["--device-block-size", "1000"], "a power of two from 512 to 65536"),
        (["--file-open-timeout", "0"], "more than 0 seconds"),
        (["--max-attic-files", "-1"], "--max-attic-files"),
        (["--retention-period", "-2"], "journal-retention-period is -2; at least -1"),
        (["--retention-max-bytes", "-2"], "journal-retention-max-bytes is -2; at least -1"),
        (["--retention-directory", "x"], "needs a period or a storage-limit"),
        (["--prefix", "../x"], "it is part of a file name"),
        (["--replaceable", "256"], "--replaceable"),
        (["--damage", "ignore"], "--damage"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_wrong_option_is_one_clear_line(arguments, what, tmp_path, call):
    status, out, err = call("append", tmp_path / "journal", "--count", 1, *arguments)

    assert (status, out, len(err)) == (2, [], 1)
    assert what in err[0]
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--size", "10"], "--size is the size of --count records"),
        (["--count", "-1"], "--count"),
        (["--count", "1", "--size", "-1"], "--size is -1; at least 0"),
        (["--count", "1", "--user-type", "256"], "--user-type"),
    ],
)
def test_wrong_use_of_append_is_one_clear_line(arguments, what, tmp_path, call):
    status, out, err = call("append", tmp_path / "journal", *arguments)

    assert (status, out, len(err)) == (2, [], 1)
    assert what in err[0]


def test_record_that_does_not_fit_ends_append_with_one_line(tmp_path, shell):
    done = shell("append", tmp_path / "journal", "--count", 1, "--size", "60K", *SMALL)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "a body of 61440 bytes" in done.stderr


def test_missing_script_and_missing_folder_are_one_line(tmp_path, call):
    status, _, err = call("exec", tmp_path / "journal", tmp_path / "script")
    assert (status, len(err)) == (2, 1)
    assert "No such file" in err[0]

    status, _, err = call("append", tmp_path / "a" / "b", "--count", 1, "--no-create-dir")
    assert (status, len(err)) == (2, 1)
    assert "No such file" in err[0]


def test_file_in_place_of_the_folder_is_one_line(tmp_path, call):
    (tmp_path / "journal").write_text("not a folder")

    status, _, err = call("append", tmp_path / "journal", "--count", 1)

    assert (status, len(err)) == (2, 1)


def test_name_and_file_size_are_taken_from_the_folder(tmp_path, call, shell):
    folder = tmp_path / "journal"
    names = ("--prefix", "mine", "--extension", "log")
    shell("append", folder, "--count", 3, *names, *SMALL)
    (folder / "python-3.11").write_text("not a journal")

    done = shell("append", folder, "--count", 3)

    assert done.stdout.splitlines() == ["ACK 4", "ACK 5", "ACK 6"]
    assert {path.stat().st_size for path in folder.glob("mine-*.log")} == {65536}
    assert not list(folder.glob("activemq*"))


def test_two_journals_in_one_folder_ask_for_a_name(tmp_path, call, shell):
    shell("append", tmp_path, "--count", 1, "--prefix", "one", *SMALL)
    shell("append", tmp_path, "--count", 1, "--prefix", "two", *SMALL)

    status, _, err = call("append", tmp_path, "--count", 1)

    assert (status, len(err)) == (2, 1)
    assert "give --prefix and --extension" in err[0]


@pytest.mark.parametrize(
    ("text", "period_ms"),
    [("7d", 604_800_000), ("12h", 43_200_000), ("30m", 1_800_000), ("45s", 45_000), ("9", 9)],
)
def test_a_retention_period_has_a_unit(text, period_ms):
    (option,) = [one for one in append.params if one.name == "retention_period_ms"]

    assert option.type.convert(text, option, None) == period_ms
