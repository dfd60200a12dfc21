"""An owner of a folder that lost it changes nothing there any more, whatever it has accepted."""

import collections
import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest

from journal import Journal
from journal.errors import JournalClosed, JournalError, JournalIOError
from journal.files.guard import WriteGuard
from journal.files.tap import set_tap
from journal.options import JournalOptions, JournalType

WAIT_S = 60
BODY = bytes(500)
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Lost(JournalIOError):
    pass


class Owner:
    """Has a lock file, and the guard that goes with it."""

    def __init__(self, folder):
        folder.mkdir()
        self.path = folder / "lock"
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        fcntl.lockf(self.fd, fcntl.LOCK_EX)
        self.told = 0
        self.guard = WriteGuard(self.fd, -1, self.explain)

    def explain(self):
        self.told += 1
        return Lost(errno.ENOLCK, "the lock is lost", str(self.path))

    def lose(self):
        self.path.unlink()
        self.path.touch()


@pytest.fixture
def owner(tmp_path):
    made = Owner(tmp_path / "locks")
    yield made
    os.close(made.fd)


def content(folder):
    """What is in a folder, every byte, and when it was changed."""
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def journal_of(folder, owner, kind=JournalType.NIO, **options):
    made = Journal(
        JournalOptions(
            directory=folder,
            journal_type=kind,
            file_size=100 * 1024,
            compact_min_files=0,
            **options,
        )
    )
    made.open()
    made.guard_writes(owner.guard)
    made.load()
    return made


@pytest.mark.parametrize("kind", [JournalType.NIO, JournalType.ASYNCIO, JournalType.MAPPED])
def test_nothing_is_written_from_the_loss_on(tmp_path, owner, kind):
    folder = tmp_path / "journal"
    journal = journal_of(folder, owner, kind)
    errors = []
    for number in range(1, 400):
        journal.add(number, 1, BODY, sync=True)
    journal.sync()
    before = content(folder)

    owner.lose()
    # Accepted: what writes finds out.
    for number in range(400, 600):
        with contextlib.suppress(JournalClosed):
            journal.add(number, 1, BODY, sync=True, done=errors.append)
    with pytest.raises(JournalError):
        journal.sync()
    journal.reap()
    with pytest.raises(JournalClosed):
        journal.add(600, 1, BODY)
    with pytest.raises(JournalClosed):
        journal.compact()
    with pytest.raises(Lost):
        journal.close()

    assert {type(error) for error in errors} == {Lost}
    assert content(folder) == before


def test_an_idle_journal_writes_nothing_as_it_closes(tmp_path, owner):
    folder = tmp_path / "journal"
    journal = journal_of(folder, owner)
    journal.add(1, 1, BODY, sync=True)
    journal.sync()
    before = content(folder)

    owner.lose()
    # Accepted, and not waited for.
    journal.add(2, 1, BODY, sync=False)
    with pytest.raises(Lost):
        journal.close()

    assert content(folder) == before


CHANGES = ("create", "write", "submit", "rename", "unlink", "truncate", "mkdir")


class LosesItAt:
    """A tap: the lock is lost behind the n-th change.

    Attributes:
        late: changes later, by thread. One of each had perhaps been asked for.
    """

    def __init__(self, owner, number):
        self.owner = owner
        self.number = number
        self.count = 0
        self.late = collections.Counter()
        self.fd = -1

    def __call__(self, event):
        if event.call not in CHANGES:
            return 0
        if event.is_done:
            self.count += 1
            if self.count == self.number:
                self.owner.lose()
                self.fd = event.fd
        elif self.count >= self.number and event.fd != self.fd:
            # What fills a file goes on, in pieces.
            self.late[threading.get_ident()] += 1
        return 0


def work(folder, owner):
    """Fill files, reclaim some, compact the others, close."""
    journal = journal_of(folder, owner, min_files=2)
    with contextlib.suppress(JournalError):
        for number in range(1, 1000):
            journal.add(number, 1, BODY)
            if number % 10 and number > 200:
                journal.delete(number)
        journal.sync()
        journal.compact()
    with contextlib.suppress(JournalError):
        journal.close()


@pytest.mark.parametrize("number", range(1, 120, 7))
def test_no_step_of_files_comes_behind_the_loss(tmp_path, owner, number):
    """The flusher, the files thread, compaction, a file being used again, the close."""
    tap = LosesItAt(owner, number)
    set_tap(tap)
    try:
        with contextlib.suppress(JournalError):
            work(tmp_path / "journal", owner)
    finally:
        set_tap(None)

    assert tap.count >= number, "there are fewer changes"
    assert max(tap.late.values(), default=0) <= 1


def test_what_closes_a_folder_in_use_is_seen_a_second_later(owner):
    """The system drops the lock as any descriptor of the file is closed, and another one has it."""
    owner.guard.check()
    owner.path.open().close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(owner.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "held\n"
        time.sleep(1.1)  # The lock is looked at once a second.

        with pytest.raises(Lost):
            owner.guard.check()

        other.communicate()
    assert owner.guard.is_lost


def test_who_says_that_it_is_lost_is_believed(owner):
    owner.guard.check()

    owner.guard.refuse()

    assert owner.guard.is_lost
    with pytest.raises(Lost):
        owner.guard.check()


def test_what_looks_at_a_closed_file_has_lost_it(tmp_path):
    owner = Owner(tmp_path / "locks")
    os.close(owner.fd)

    with pytest.raises(Lost):
        owner.guard.check()
