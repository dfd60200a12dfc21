"""One owner of a folder: for ever, not at all, or for so many milliseconds."""

import contextlib
import errno
import fcntl
import os
import subprocess
import sys

import pytest

from journal import Journal, JournalOptions
from journal.errors import JournalIOError, JournalLocked
from journal.files.base import Folder
from journal.lock import acquire_folder_lock, foreign_owner, is_locked

# What Artemis does: FileChannel.tryLock, an fcntl lock of the whole file.
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, at_sleep=None):
        self.now = 100.0
        self.slept = []
        self.at_sleep = at_sleep or (lambda count: None)

    def time(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds
        self.at_sleep(len(self.slept))


@pytest.fixture
def folders(tmp_path):
    """Two descriptors of one folder, as two journals would have."""
    with Folder(tmp_path) as one, Folder(tmp_path) as other:
        yield one, other


@contextlib.contextmanager
def broker_holding(path):
    """Another process with an fcntl lock on that file; its process id."""
    path.touch()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout.readline() == b"held\n"
        yield broker.pid
        broker.stdin.close()


def acquire(folder, timeout_ms, clock):
    acquire_folder_lock(folder, timeout_ms, clock=clock.time, sleep=clock.sleep)


def test_a_free_folder_is_taken_at_once(folders):
    clock = Clock()

    acquire(folders[0], 0, clock)

    assert clock.slept == []
    assert is_locked(folders[0].path)


def test_no_file_is_left_in_the_folder(folders, tmp_path):
    acquire(folders[0], 0, Clock())

    assert os.listdir(tmp_path) == []


def test_timeout_0_does_not_wait(folders):
    clock = Clock()
    acquire(folders[0], 0, clock)

    with pytest.raises(JournalLocked, match="in use by another process"):
        acquire(folders[1], 0, clock)

    assert clock.slept == []


@pytest.mark.parametrize("timeout_ms", [1, 99, 100, 250, 1000])
def test_timeout_n_waits_so_long_and_no_longer(folders, timeout_ms):
    clock = Clock()
    acquire(folders[0], 0, clock)

    with pytest.raises(JournalLocked):
        acquire(folders[1], timeout_ms, clock)

    assert sum(clock.slept) == pytest.approx(timeout_ms / 1000)
    assert max(clock.slept) <= 0.1


def test_timeout_n_takes_what_becomes_free_meanwhile(folders):
    clock = Clock(lambda count: folders[0].close() if count == 3 else None)
    acquire(folders[0], 0, clock)

    acquire(folders[1], 1000, clock)

    assert len(clock.slept) == 3


def test_timeout_minus_1_waits_for_as_long_as_it_takes(folders):
    clock = Clock(lambda count: folders[0].close() if count == 5000 else None)
    acquire(folders[0], 0, clock)

    acquire(folders[1], -1, clock)

    assert sum(clock.slept) == pytest.approx(500)
    assert is_locked(folders[1].path)


def test_the_lock_goes_with_the_folder_s_descriptor(folders):
    acquire(folders[0], 0, Clock())
    folders[0].close()

    assert not is_locked(folders[1].path)
    acquire(folders[1], 0, Clock())


@pytest.mark.parametrize("name", ["serverlock.1", "server.lock"])
def test_a_broker_s_own_lock_is_respected(folders, tmp_path, name):
    with broker_holding(tmp_path / name) as pid:
        assert foreign_owner(folders[0]) == pid
        assert is_locked(tmp_path)
        with pytest.raises(JournalLocked, match=f"process {pid}"):
            acquire(folders[0], 200, Clock())

    assert foreign_owner(folders[0]) is None
    acquire(folders[0], 0, Clock())


def test_a_broker_s_lock_file_alone_means_nothing(folders, tmp_path):
    (tmp_path / "serverlock.1").touch()

    assert foreign_owner(folders[0]) is None
    acquire(folders[0], 0, Clock())


def test_looking_for_a_broker_does_not_take_its_lock(folders, tmp_path):
    """An fcntl lock of this process would be lost with any descriptor that it closes."""
    path = tmp_path / "serverlock.1"
    path.touch()
    assert foreign_owner(folders[0]) is None

    with broker_holding(path):
        pass


def test_looking_leaves_the_folder_free(folders):
    assert not is_locked(folders[0].path)

    acquire(folders[1], 0, Clock())


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(JournalIOError):
        is_locked(tmp_path / "nowhere")


def test_irregular_lock_file_is_an_error_and_does_not_hang(folders, tmp_path):
    os.mkfifo(tmp_path / "serverlock.1")

    with pytest.raises(JournalIOError):
        foreign_owner(folders[0])


def test_shared_lookers_do_not_see_each_other(folders):
    fcntl.flock(folders[0].fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

    assert not is_locked(folders[1].path)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_folder_on_a_file_system_without_locks_has_no_owner(number, tmp_path, monkeypatch):
    def refused(fd, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)

    if number == errno.ENOLCK:  # Of NFS whose server of locks is down: somebody may have one.
        with pytest.raises(JournalIOError, match="cannot lock"):
            is_locked(tmp_path)
    else:
        assert not is_locked(tmp_path)


def test_who_waits_longer_than_a_second_says_so_once(folders, caplog):
    clock = Clock(lambda count: folders[0].close() if count == 50 else None)
    acquire(folders[0], 0, clock)

    acquire(folders[1], -1, clock)

    (line,) = caplog.messages
    assert line == (
        f"{folders[1].path} is in use by another process: its lock is waited for, for ever "
        "(lock_acquisition_timeout_ms -1)"
    )
    assert clock.slept[9:] == [0.1] * 41


def test_a_short_wait_is_not_told_of(folders, caplog):
    acquire(folders[0], 0, Clock())

    with pytest.raises(JournalLocked):
        acquire(folders[1], 900, Clock())

    assert caplog.messages == []


def test_a_folder_that_this_process_has_open_is_not_called_another_s(tmp_path):
    options = JournalOptions(
        directory=tmp_path, journal_type="NIO", lock_acquisition_timeout_ms=0, file_size=64 * 1024
    )

    with (
        Journal(options),
        pytest.raises(JournalLocked, match=r"is in use by another journal of this process$"),
        Journal(options),
    ):
        pass

    with Journal(options):  # It was given up.
        pass


def test_who_had_the_folder_before_is_not_who_has_it_now(tmp_path):
    options = JournalOptions(directory=tmp_path, journal_type="NIO", lock_acquisition_timeout_ms=0)
    before = Journal(options)
    before.open()
    before.close()

    with Folder(tmp_path) as folder:
        acquire(folder, 0, Clock())
        with pytest.raises(JournalLocked, match="in use by another process"):
            Journal(options).open()
