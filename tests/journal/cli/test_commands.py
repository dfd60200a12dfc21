"""What all commands have in common: examples that run, journals in use, disks that refuse."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from journal.cli.main import journal
from journal.commands.bench import journal_bench

ROOT = Path(__file__).parents[3]
SMALL = ("--file-size", "64K", "--buffer-size", "16K")
READERS = ["print-data", "stat", "verify", "export", "recover"]
WRITERS = ["exec", "append", "import", "compact"]


@pytest.fixture
def owner(tmp_path):
    """A writer that has the journal open, with one record in it."""
    command = [sys.executable, "-m", "journal.cli.main", "exec", str(tmp_path / "journal"), *SMALL]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as process:
        process.stdin.write("add 1 cafe\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ACK add 1\n"
        yield tmp_path / "journal"
        process.kill()


def more(command, tmp_path):
    if command == "recover":
        return ["--target", tmp_path / "new", *SMALL]
    return ["--count", 1] if command == "append" else []


def example_of(command):
    with command.make_context(command.name, [], resilient_parsing=True) as context:
        lines = command.get_help(context).splitlines()
    assert lines[-2].strip() == "Example:"
    return lines[-1].strip()


COMMON = [
    *("--prefix", "activemq-data", "--extension", "amq", "--type", "NIO", "--file-size", "64KiB"),
    *("--min-files", 2, "--pool-files", 3, "--buffer-timeout", "0.5ms", "--buffer-size", "16K"),
    *("--max-io", 1, "--no-datasync", "--datasync", "--no-checksums", "--checksums"),
]


@pytest.mark.parametrize("command", [*READERS, *WRITERS])
def test_common_options_are_taken_by_every_command(command, tmp_path, shell):
    folder = tmp_path / "journal"
    assert shell("append", folder, *COMMON, "--count", 2, "--size", 10).stdout == "ACK 1\nACK 2\n"

    done = shell(command, folder, *more(command, tmp_path)[:2], *COMMON)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", READERS)
def test_wrong_value_of_a_common_option_is_one_line(command, tmp_path, call):
    status, out, err = call(
        command, tmp_path, *more(command, tmp_path)[:2], "--buffer-timeout", "5 parsec"
    )

    assert (status, out, len(err)) == (2, [], 1)
    assert "--buffer-timeout" in err[0]


def test_no_command_is_one_line(call):
    assert call() == (2, [], ["journal: Missing command."])


def test_every_command_of_the_contract_is_there():
    assert set(journal.commands) >= {*READERS, *WRITERS}


@pytest.mark.parametrize("name", [None, *sorted(journal.commands)])
def test_example_of_the_help_runs(name, tmp_path):
    """As it stands: through a shell, on a journal where the example says."""
    example = example_of(journal.commands[name] if name else journal)
    script = f'journal() {{ {shlex.quote(sys.executable)} -m journal.cli.main "$@"; }}\n'
    script += f"journal append data/journal --count 3 {' '.join(SMALL)} >/dev/null\n{example}\n"

    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_example_of_the_bench_runs_with_fewer_records(tmp_path):
    words = shlex.split(example_of(journal_bench))
    words[words.index("--count") + 1] = "500"

    done = subprocess.run(
        [sys.executable, "-m", "journal.cli.bench", *words[1:], "--no-suggest"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READERS + WRITERS)
def test_journal_in_use_is_refused_with_one_line(command, owner, tmp_path, call):
    status, out, err = call(command, owner, *more(command, tmp_path))

    assert (status, out, len(err)) == (2, [], 1)
    assert "in use" in err[0]


@pytest.mark.parametrize("command", READERS)
def test_journal_in_use_is_read_with_live(command, owner, tmp_path, call):
    status, out, _ = call(command, owner, *more(command, tmp_path), "--live")

    assert status == 0
    assert out or command == "verify"


@pytest.mark.parametrize("command", READERS)
def test_reading_leaves_the_lock_alone(command, tmp_path, call, shell):
    shell("append", tmp_path / "journal", "--count", 1, *SMALL)
    call(command, tmp_path / "journal", *more(command, tmp_path))

    assert shell("append", tmp_path / "journal", "--count", 1).stdout == "ACK 2\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open anything; seen by other users only")
@pytest.mark.parametrize("command", READERS + WRITERS)
def test_folder_without_permission_is_one_line(command, tmp_path, call, shell):
    shell("append", tmp_path / "journal", "--count", 1, *SMALL)
    (tmp_path / "journal").chmod(0)

    status, out, err = call(command, tmp_path / "journal", *more(command, tmp_path))

    (tmp_path / "journal").chmod(0o700)
    assert (status, out, len(err)) == (2, [], 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("command", READERS + WRITERS)
def test_folder_of_somebody_else_is_one_line(command, tmp_path, shell):
    shell("append", tmp_path / "journal", "--count", 1, *SMALL)
    (tmp_path / "journal").chmod(0o700)
    arguments = [str(argument) for argument in more(command, tmp_path)]
    code = (
        "import os, sys; from journal.cli.main import main; os.setgid(65534); os.setuid(65534);"
        " main()"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, command, str(tmp_path / "journal"), *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "Permission denied" in done.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("no mount here: install Debian's `mount`")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system to fill")
    yield place
    subprocess.run(["umount", place], check=True)


def test_full_disk_is_one_line_and_keeps_what_was_acknowledged(small_disk, call, shell):
    folder = small_disk / "journal"

    done = shell("append", folder, "--count", 5000, "--type", "NIO", *SMALL)

    acknowledged = {int(line.split()[1]) for line in done.stdout.splitlines()}
    survived = {int(line) for line in call("print-data", folder, "--format", "ids")[1]}
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("journal: ")
    assert "Traceback" not in done.stderr
    assert len(acknowledged) > 100
    assert acknowledged <= survived


def test_full_disk_answers_err_and_the_script_goes_on(small_disk, shell):
    lines = [f"add 1 {'ab' * 1000}" for _ in range(2000)]

    done = shell("exec", small_disk / "j", "--type", "NIO", *SMALL, input="\n".join(lines))

    answers = done.stdout.splitlines()
    assert len(answers) == 2000
    assert {line.split()[0] for line in answers} == {"ACK", "ERR"}
    assert "Traceback" not in done.stderr


def test_folder_that_vanishes_while_it_is_written_loses_no_answer(tmp_path, shell):
    folder = tmp_path / "journal"
    lines = [f"add 1 {'ab' * 1000}" for _ in range(500)]
    command = [sys.executable, "-m", "journal.cli.main", "exec", str(folder), *SMALL]

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("add 1 00\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ACK add 1\n"
        folder.rename(tmp_path / "gone")
        for path in (tmp_path / "gone").iterdir():
            path.unlink()
        (tmp_path / "gone").rmdir()
        out, err = process.communicate("\n".join(lines), timeout=60)

    assert len(out.splitlines()) == 500
    assert "ERR" in out
    assert process.returncode == 2
    assert "Traceback" not in err
