"""The lock on a broker's folder: held, looked at, and lost."""

import contextlib
import errno
import subprocess
import sys

import pytest

from broker.storage.node_lock import NodeLock
from journal.errors import JournalIOError

# Locks a file as a broker does, says so, and waits to be ended.
ANOTHER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_holder(folder):
    with subprocess.Popen(
        (sys.executable, "-c", ANOTHER, folder / "serverlock.1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.stdin.close()


@pytest.fixture
def lock(tmp_path):
    made = NodeLock(tmp_path)
    made.acquire()
    yield made
    made.release()


def test_a_lock_that_is_held_is_found_held(lock):
    lock.activated()

    lock.check()

    assert lock.is_active()


def test_a_lock_that_another_process_has_now_is_lost(lock):
    """As after a shared file system took it away; here the system does, as the file is closed."""
    (lock.folder / "serverlock.1").open().close()

    with another_holder(lock.folder) as other, pytest.raises(JournalIOError) as caught:
        lock.check()

    assert caught.value.errno == errno.ENOLCK
    assert str(other.pid) in str(caught.value)
