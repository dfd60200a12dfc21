"""With zero bytes free a journal opens, and all it holds can be acknowledged; then it goes on.

Real file systems of 64 MB, filled by a ballast. The process that has the journal is killed while
the disk is full, again and again: what was told to be durable is, and nothing comes back.
"""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from journal.options import JournalType
from tests.crash.full_disk_run import FILE_SIZE
from tests.crash.small_disk import FILE_SYSTEMS, SYSTEMS_AND_KINDS, fill, small_disk

ROOT = Path(__file__).resolve().parents[2]
# Bytes that the ballast leaves before the journal has anything to do, so that it ends up with a
# handful of files, and later.
ROOM = 5 << 20
LEVELS = (0, 1, 4096, 64 << 10, FILE_SIZE - 4096, FILE_SIZE + 4096, 3 * FILE_SIZE)
KILL_AFTER = 25
MANY = 1000
# A number that no message had before.
NEW = 1_000_000


RUNNING = []


@pytest.fixture(autouse=True)
def no_process_is_left():
    """Kill what a failed test has left."""
    yield
    while RUNNING:
        RUNNING[-1].kill()


class Process:
    """A journal in a process of its own."""

    def __init__(self, folder, kind):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.full_disk_run", str(folder), kind],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        RUNNING.append(self)
        self.type_used = self.read()[1]

    def ask(self, *words):
        """Have it do something."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def read(self):
        """The next line, in words."""
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"it ended: {self._process.stderr.read()}")
        return line.split()

    def numbers(self, word, end):
        """Numbers of the lines that begin with `word`, up to one that begins with `end`."""
        for line in iter(self.read, None):
            if line[0] == end:
                return
            assert line[0] == word, line
            yield int(line[1])

    def live(self):
        """Numbers of the messages that are there."""
        self.ask("live")
        return [int(word) for word in self.read()[1:]]

    def kill(self):
        """-9, and all that it said until then."""
        self._process.kill()
        said = self._process.stdout.read().split("\n")
        self._end()
        return [line.split() for line in said if line]

    def close(self):
        """In order."""
        self.ask("close")
        assert self.read() == ["closed"]
        self._end()

    def _end(self):
        RUNNING.remove(self)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            stream.close()


def filled(mount, kind, leave):
    """A journal that has refused a message, on a disk with `leave` bytes free; its messages."""
    fill(mount, ROOM)
    process = Process(mount / "journal", kind)
    process.ask("fill")
    added = list(process.numbers("added", "refused"))
    assert len(added) > FILE_SIZE // 4000, "it was refused with the first file"
    fill(mount, leave)
    process.ask("fill")
    added += process.numbers("added", "refused")
    return process, added


def drained_under_kills(mount, kind, expected, kill_after):
    """Acknowledge everything, killed after each so many."""
    rest = list(expected)
    while rest:
        process = Process(mount / "journal", kind)
        assert process.live() == rest
        process.ask("drain", 1)
        told = list(itertools.islice(process.numbers("gone", "drained"), kill_after))
        said = process.kill()
        told += [int(words[1]) for words in said if words[0] == "gone"]
        # What was being written when it was killed may be there and untold.
        survivor = Process(mount / "journal", kind)
        left = survivor.live()
        survivor.kill()
        assert left in (rest[len(told) :], rest[len(told) + 1 :])
        rest = left


def check(mount, kind, leave, kill_after):
    process, added = filled(mount, kind, leave)
    process.kill()
    drained_under_kills(mount, kind, added, kill_after)
    process = Process(mount / "journal", kind)
    assert process.live() == []
    process.ask("add", NEW)
    number = int(process.read()[1])
    process.close()
    process = Process(mount / "journal", kind)
    assert process.live() == [number]
    process.close()


@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_a_journal_opens_and_is_drained_with_zero_bytes_free(tmp_path, system):
    with small_disk(system, tmp_path) as mount:
        check(mount, JournalType.ASYNCIO, 0, kill_after=MANY)


@pytest.mark.slow
@pytest.mark.parametrize(("system", "kind"), SYSTEMS_AND_KINDS)
def test_kills_on_a_full_disk_lose_and_bring_back_nothing(tmp_path, system, kind, effort, figures):
    levels = LEVELS[: effort(len(LEVELS))]
    figures("ballast levels on full disks", levels=len(levels))
    for number, leave in enumerate(levels):
        folder = tmp_path / str(number)
        folder.mkdir()
        with small_disk(system, folder) as mount:
            check(mount, kind, leave, KILL_AFTER * (1 + 3 * (number % 2)))


@pytest.mark.parametrize("system", FILE_SYSTEMS)
def test_a_full_disk_is_compacted_where_a_little_of_every_file_is_live(tmp_path, system):
    with small_disk(system, tmp_path) as mount:
        process, added = filled(mount, JournalType.ASYNCIO, 0)
        for _ in range(3):
            # Two thirds of what is left: at last one in 27, spread over all files.
            process.ask("drain", 3)
            list(process.numbers("gone", "drained"))
            process.ask("drain", 2)
            list(process.numbers("gone", "drained"))
        live = process.live()
        assert 0 < len(live) < len(added) // 10
        process.ask("add", NEW)
        number = int(process.read()[1])
        process.kill()

        process = Process(mount / "journal", JournalType.ASYNCIO)
        assert process.live() == [*live, number]
        process.close()
