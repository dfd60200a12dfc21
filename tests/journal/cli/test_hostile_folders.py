"""Whatever lies in a folder: one clear line, the right exit status, and nothing touched."""

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import journal.folder
import journal.reader
import journal.window
from journal.errors import JournalIOError
from journal.files.base import Folder
from journal.files.tap import set_tap
from tests.journal.build import Built, flip_byte, poke, truncate
from tests.journal.snapshot import snapshot

COMMANDS = ["print-data", "verify", "stat"]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path):
    """A journal of ours with three records, all synced."""
    built = Built()
    for number in (1, 2, 3):
        built.add(number)
    built.end().save(tmp_path)
    return tmp_path


def refused(answer, *words):
    status, lines, said = answer
    return (
        status == 2
        and lines == []
        and len(said) == 1
        and "Traceback" not in said[0]
        and all(word in said[0] for word in words)
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_folder_is_one_line(command, tmp_path, call):
    assert refused(call(command, tmp_path / "gone"), "gone", "No such file")


@pytest.mark.parametrize("command", COMMANDS)
def test_file_in_place_of_a_folder_is_one_line(command, tmp_path, call):
    (tmp_path / "file").write_text("x")

    assert refused(call(command, tmp_path / "file"), "Not a directory")


@pytest.mark.parametrize("command", COMMANDS)
def test_folder_without_journal_is_one_line(command, tmp_path, call):
    assert refused(call(command, tmp_path), "no journal files")


@pytest.mark.parametrize("command", COMMANDS)
def test_two_journals_in_one_folder_ask_which(command, folder, call):
    (folder / "activemq-bindings-1.bindings").write_bytes(b"")

    assert refused(call(command, folder), "--prefix")


def test_prefix_and_extension_choose_between_two_journals(folder, call):
    (folder / "activemq-bindings-1.bindings").write_bytes(b"")

    status, lines, _ = call("print-data", folder, "--extension", "amq", "--format", "ids")

    assert (status, lines) == (0, ["1", "2", "3"])


def failing(method, error_number):
    """A Folder one of whose calls fails, as the system would make it."""

    def fail(self, *arguments, **how):
        raise JournalIOError(error_number, "cannot", "activemq-data-1.amq")

    return type("FailingFolder", (Folder,), {method: fail})


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "modules",
    [(journal.folder,), (journal.reader, journal.window)],
    ids=["header", "records"],
)
@pytest.mark.parametrize(
    ("method", "error_number", "words"),
    [
        ("open", errno.EACCES, "Permission denied"),
        ("open", errno.ENOENT, "No such file"),
        ("open", errno.EMFILE, "Too many open files"),
        ("size", errno.EIO, "Input/output error"),
    ],
    ids=["forbidden", "vanished", "descriptors", "device"],
)
def test_file_that_cannot_be_read_is_one_line(
    command, modules, method, error_number, words, folder, call, monkeypatch
):
    for module in modules:
        monkeypatch.setattr(module, "Folder", failing(method, error_number))

    assert refused(call(command, folder), "activemq-data-1.amq", words)


@pytest.fixture
def tap():
    """`tap(function)` puts it on all file calls until the test ends."""
    yield set_tap
    set_tap(None)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("call_name", ["open", "read"])
def test_fault_at_any_call_is_one_line(command, call_name, folder, call, tap):
    seen = 0

    def fail_at(place):
        def answer(event):
            nonlocal seen
            if event.call == call_name and not event.is_done:
                seen += 1
                return -errno.EIO if seen == place else 0
            return 0

        return answer

    tap(fail_at(0))
    call(command, folder)
    places, answers = seen, []
    for place in range(1, places + 1):
        seen = 0
        tap(fail_at(place))
        answers.append(call(command, folder))

    assert places >= 2
    assert all(refused(answer, "Input/output error") for answer in answers)


@pytest.mark.parametrize("command", [["print-data"], ["print-data", "--raw"], ["verify"], ["stat"]])
def test_commands_only_open_read_and_close(command, folder, call, tap):
    (folder / "activemq-data-7.amq.cmp").write_bytes(b"half")
    calls = set()
    tap(lambda event: calls.add(event.call))

    call(command[0], folder, *command[1:])

    assert calls == {"open", "read", "close"}


@pytest.mark.parametrize("command", COMMANDS)
def test_link_in_place_of_a_file_is_one_line(command, folder, call):
    (folder / "activemq-data-2.amq").symlink_to("/dev/zero")

    assert refused(call(command, folder), "activemq-data-2.amq")


@pytest.mark.parametrize("command", COMMANDS)
def test_pipe_in_place_of_a_file_never_hangs(command, folder, call):
    os.mkfifo(folder / "activemq-data-2.amq")

    assert refused(call(command, folder), "not a regular file")


def test_zero_length_file_is_damage_to_verify_and_nothing_to_a_load(folder, call):
    (folder / "activemq-data-9.amq").write_bytes(b"")

    status, lines, _ = call("verify", folder)

    assert (status, lines) == (
        1,
        ["activemq-data-9.amq:0: 0 bytes are less than a header: ignored"],
    )
    assert call("print-data", folder, "--format", "ids")[:2] == (0, ["1", "2", "3"])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("command", COMMANDS)
def test_random_bytes_behind_a_header_are_survived(command, seed, folder, call):
    poke(folder / "activemq-data-1.amq", 16, random.Random(seed).randbytes(8000))

    status, _, said = call(command, folder)

    assert status in (0, 1)
    assert not any("Traceback" in line for line in said)


@pytest.mark.parametrize("command", COMMANDS)
def test_random_file_is_refused_in_one_line(command, tmp_path, call):
    (tmp_path / "activemq-data-1.amq").write_bytes(random.Random(1).randbytes(4096))

    assert refused(call(command, tmp_path), "activemq-data-1.amq", "version")


def test_length_of_four_gibibytes_is_damage(folder, call):
    path = folder / "activemq-data-1.amq"
    offset = path.read_bytes().index(b"\x0b\0\0\0\1") + 14
    poke(path, offset, b"\xff\xff\xff\xff")

    status, lines, _ = call("verify", folder)

    assert status == 1
    assert any("size" in line for line in lines)


@pytest.mark.parametrize("size", [*range(17, 140, 3), 512, 16383])
def test_truncated_file_is_named_or_whole(size, folder, call):
    truncate(folder / "activemq-data-1.amq", size)

    status, lines, _ = call("verify", folder)
    _, found, _ = call("print-data", folder, "--format", "ids")

    assert status in (0, 1)
    assert found == ["1", "2", "3"][: len(found)]
    assert all(line.startswith("activemq-data-1.amq:") for line in lines)


def test_damage_is_named_and_the_rest_is_printed(folder, call):
    path = folder / "activemq-data-1.amq"
    data = path.read_bytes()
    second = data.index(b"\x0b\0\0\0\1", data.index(b"\x0b\0\0\0\1") + 1)
    flip_byte(path, second + 20)

    status, lines, said = call("print-data", folder, "--format", "ids")

    assert (status, lines) == (1, ["1", "3"])
    assert said[0].startswith(f"activemq-data-1.amq:{second}: ")
    assert said[-1] == "2 records, 0 prepared and 0 failed transactions, 1 damaged places"


def test_own_torn_tail_is_not_damage(tmp_path, call):
    built = Built()
    built.add(1)
    built.mark()
    offset = built.add(2)
    path = built.save(tmp_path)
    flip_byte(path, offset + 20)

    status, lines, said = call("verify", tmp_path)

    assert (status, lines) == (0, [])
    assert "torn tail" in said[0]


def test_folder_that_needs_recovery_is_shown_as_after_it(folder, call):
    (folder / "activemq-data-7.amq.tmp").write_bytes(b"half")
    before = snapshot(folder)

    status, lines, said = call("print-data", folder, "--format", "ids")

    assert (status, lines) == (0, ["1", "2", "3"])
    assert "activemq-data-7.amq.tmp" in said[0]
    assert snapshot(folder) == before


def test_control_file_that_names_foreign_files_is_damage(folder, call):
    from journal.control import ControlList, encode_control_list

    control = Built(file_id=0, has_leaders=False, size=512)
    control.add(1, encode_control_list(ControlList(("../../etc/passwd",), ())))
    control.save(folder, 99).rename(folder / "journal-rename-control.ctr")

    status, lines, said = call("verify", folder)

    assert (status, lines) == (1, [])
    assert "none of this journal's" in said[0]


# --- usage ---


@pytest.mark.parametrize(
    "arguments",
    [
        ["print-data"],
        ["print-data", "--format", "xml", "."],
        ["print-data", "--raw", "--format", "ids", "."],
        ["print-data", "--decoder", "unknown", "."],
        ["unknown"],
        ["stat", "--compact-percentage", "101", "."],
        ["verify", "--user-version", "x", "."],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line(arguments, call):
    assert refused(call(*arguments))


@pytest.mark.parametrize("command", [[], ["print-data"], ["stat"], ["verify"]], ids=str)
def test_help_ends_with_an_example(command, call):
    status, lines, _ = call(*command, "--help")

    assert status == 0
    assert lines[-2].strip() == "Example:"
    assert lines[-1].strip().startswith("journal ")


def test_reader_that_goes_away_causes_no_error(tmp_path):
    built = Built(size=1 << 20)
    for number in range(20000):
        built.add(number)
    built.end().save(tmp_path)
    command = [sys.executable, "-m", "journal.cli.main", "print-data", str(tmp_path)]

    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert process.returncode == 0
    assert "Traceback" not in said
    assert "Error" not in said


def test_interrupt_is_130(folder, call, monkeypatch):
    def interrupt(*arguments, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr("journal.tools.folder_records.verify_report", interrupt)

    assert call("verify", folder)[0] == 130
