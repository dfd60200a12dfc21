"""Locks and state of a data folder: who may serve, and how an owner notices that it may no more."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
import uuid

import pytest

from broker.storage import node_owner
from broker.storage.large_files import LargeFiles
from broker.storage.node_lock import NodeLock, NodeLockLost
from broker.storage.node_orders import fence, promote
from broker.storage.node_owner import OWNER_FILE, check_locks_work, read_owner
from broker.storage.node_state import ABANDONED_S, BackupWatch, NodeState
from broker.storage.node_view import view_of
from broker.storage.open import (
    FileStoreOptions,
    bindings_options,
    messages_options,
    open_stores,
)
from broker.storage.page_folders import FileFolders
from broker.storage.waiting import StartWait
from journal.errors import JournalIOError, JournalLocked

WAIT_S = 60
HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Other:
    """Another process that has a lock."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "held\n"

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.communicate()


def owned(folder, **options):
    lock = NodeLock(folder, **options)
    lock.await_free(0)
    lock.acquire()
    return lock


def letter(folder):
    return (folder / "server.lock").read_bytes()[:1]


def test_a_primary_of_a_pair_asks_loads_serves_and_stops(tmp_path):
    lock = owned(tmp_path, is_pair=True)
    letters = [letter(tmp_path)]
    lock.activated()
    letters.append(letter(tmp_path))
    lock.paused()
    letters.append(letter(tmp_path))
    lock.release()

    assert letters == [b"F", b"L", b"P"]
    # Nothing was waited for: a start logs that the lock was free.
    assert lock.reason == ""
    assert (tmp_path / "server.lock").stat().st_size == 19


def test_a_backup_does_not_overhear_a_primary_that_asks_while_it_loads(tmp_path):
    first = owned(tmp_path, is_pair=True)
    first.activated()
    first.release()
    backup = owned(tmp_path, is_backup=True, is_pair=True)

    NodeLock(tmp_path, is_pair=True)._ask_for_place()
    backup.activated()

    assert letter(tmp_path) == b"F"
    assert backup.is_awaiting_failback()
    assert "it has failed" in backup.reason
    backup.release()


@pytest.mark.parametrize("state", [b"P", b"N", b"0"])
def test_a_backup_waits_for_a_primary_that_is_not_active(tmp_path, state):
    first = owned(tmp_path)
    first.release()
    with (tmp_path / "server.lock").open("r+b") as file:
        file.write(state)

    with pytest.raises(JournalLocked, match=f"state {state.decode()}"):
        owned(tmp_path, is_backup=True, is_pair=True)

    promote(tmp_path)
    owned(tmp_path, is_backup=True, is_pair=True).release()


def test_a_state_that_is_not_known_is_an_error(tmp_path):
    owned(tmp_path).release()
    with (tmp_path / "server.lock").open("r+b") as file:
        file.write(b"X")

    with pytest.raises(JournalIOError, match="unknown state b'X'"):
        owned(tmp_path, is_backup=True, is_pair=True)


def test_a_primary_that_asked_and_never_took_its_place_has_failed():
    watch = BackupWatch()
    found = [
        watch.may_take_over(NodeState.FAILING_BACK, holder, now_s)
        for holder, now_s in (
            (None, 0.0),
            # It had the lock for a moment.
            ("process 1", ABANDONED_S),
            (None, ABANDONED_S + 1),
            (None, 2 * ABANDONED_S),
            (None, 2 * ABANDONED_S + 1),
        )
    ]

    assert found == [False, False, False, False, True]
    assert "it has failed" in watch.reason


def test_locks_of_other_processes_are_named(tmp_path):
    owned(tmp_path).release()
    with Other(tmp_path / "serverlock.1") as pid:
        with pytest.raises(JournalLocked, match=f"process {pid}"):
            owned(tmp_path)
        with pytest.raises(JournalLocked, match=f"process {pid}"):
            promote(tmp_path)
        assert view_of(tmp_path).primary == pid
    with (
        Other(tmp_path / "serverlock.2") as pid,
        pytest.raises(JournalLocked, match=rf"another backup that waits \(process {pid}\)"),
    ):
        owned(tmp_path, is_backup=True)


def delete(folder):
    (folder / "serverlock.1").unlink()


def replace(folder):
    delete(folder)
    (folder / "serverlock.1").touch()


def move(folder):
    (folder / "serverlock.1").rename(folder / "elsewhere")


def be_fenced(folder):
    assert fence(folder) is None  # Within one process the system sees no conflict.


def be_taken(folder):
    NodeLock(folder).acquire()


@pytest.mark.parametrize("how", [delete, replace, move, be_fenced, be_taken])
def test_an_owner_that_lost_its_folder_notices(tmp_path, how):
    told, heard = [], threading.Event()

    def lost(error):
        told.append(error)
        heard.set()

    lock = owned(tmp_path, on_lost=lost)
    lock.check()

    how(tmp_path)

    assert heard.wait(WAIT_S)
    heard.clear()
    # The last answer counts for a millisecond.
    heard.wait(0.01)
    with pytest.raises(NodeLockLost):
        lock.check()
    assert len(told) == 1
    lock.release()


@pytest.mark.parametrize("how", [delete, replace, be_fenced, be_taken])
def test_it_notices_before_it_answers_also_without_its_thread(tmp_path, how):
    lock = owned(tmp_path)
    how(tmp_path)

    with pytest.raises(NodeLockLost):
        lock.check()

    lock.release()


def test_an_owner_whose_lock_another_process_got_notices(tmp_path):
    """As after a shared file system took it away; here the system does, as the file is closed."""
    lock = owned(tmp_path)
    (tmp_path / "serverlock.1").open().close()

    with Other(tmp_path / "serverlock.1") as pid, pytest.raises(NodeLockLost) as caught:
        lock.look_after()

    assert caught.value.errno == errno.ENOLCK
    assert str(pid) in str(caught.value)
    lock.release()


def test_a_deleted_state_is_written_again_with_the_same_id(tmp_path):
    lock = owned(tmp_path)
    lock.activated()
    content = (tmp_path / "server.lock").read_bytes()
    (tmp_path / "server.lock").unlink()

    lock._look_once()

    assert (tmp_path / "server.lock").read_bytes() == content
    lock.paused()
    assert letter(tmp_path) == b"P"
    lock.release()


def test_the_id_is_made_while_the_state_is_locked_as_artemis_does(tmp_path):
    """A backup of Artemis that starts at the same moment makes one under this lock, too."""
    made = uuid.uuid1()
    other = Other(tmp_path / "server.lock")

    def other_is_done(seconds):
        (tmp_path / "server.lock").write_bytes(b"000" + made.bytes)
        other.process.communicate()

    lock = NodeLock(tmp_path)
    lock.acquire(sleep=other_is_done)

    assert lock.node_id == str(made)
    with Other(tmp_path / "server.lock"):
        lock.activated()  # The lock was for a moment.
    lock.release()


def test_a_state_that_stays_locked_is_another_ones(tmp_path):
    with Other(tmp_path / "server.lock") as pid, pytest.raises(JournalLocked, match=str(pid)):
        NodeLock(tmp_path).acquire(sleep=lambda seconds: None)


def test_the_epoch_rises_with_each_owner(tmp_path):
    epochs = []
    for _ in range(3):
        lock = owned(tmp_path)
        epochs.append(lock.epoch)
        lock.release()

    assert epochs == [1, 2, 3]
    assert read_owner(tmp_path).pid == os.getpid()
    (tmp_path / OWNER_FILE).write_bytes(b"{")
    assert read_owner(tmp_path) is None


def test_a_file_system_that_does_not_lock_is_refused(tmp_path, monkeypatch):
    def sees_nothing(fd, command, argument):
        return argument[:0] + node_owner.struct.pack(node_owner.FLOCK, fcntl.F_UNLCK, 0, 0, 0, 0)

    monkeypatch.setattr(fcntl, "fcntl", sees_nothing)

    with pytest.raises(JournalIOError, match="does not lock") as caught:
        check_locks_work(tmp_path, lambda seconds: None)

    assert caught.value.errno == errno.ENOLCK
    assert list(tmp_path.iterdir()) == []


def test_an_owner_of_another_host_that_lives_is_seen_though_its_lock_is_free(tmp_path):
    owner = {"epoch": 4, "node": "n", "host": "far", "boot": "of far", "pid": 7, "since_ms": 0}
    path = tmp_path / OWNER_FILE
    path.write_text(json.dumps(owner))

    def touched(seconds):
        os.utime(path, ns=(1, 1))

    with pytest.raises(JournalIOError, match="process 7 of host far") as caught:
        check_locks_work(tmp_path, touched)
    assert caught.value.errno == errno.ENOLCK
    check_locks_work(tmp_path, lambda seconds: None)


def test_a_pair_on_two_hosts_without_locks_between_them_is_refused_at_its_start(tmp_path):
    """It waits for ever for another broker, and not for locks that work."""
    owner = {"epoch": 4, "node": "n", "host": "far", "boot": "of far", "pid": 7, "since_ms": 0}
    path = tmp_path / "journal" / OWNER_FILE
    path.parent.mkdir()
    path.write_text(json.dumps(owner))
    waited = []

    class FarOwnerLives(StartWait):
        def sleep(self, seconds):
            waited.append(seconds)
            os.utime(path, ns=(len(waited), len(waited)))

    options = FileStoreOptions(
        bindings=bindings_options(tmp_path / "bindings"),
        messages=messages_options(tmp_path / "journal", journal_type="NIO"),
        lock_timeout_ms=-1,
    )

    with pytest.raises(JournalIOError, match="do not reach from host to host") as caught:
        open_stores(options, on_lost=waited.append, is_pair=True, wait=FarOwnerLives())

    assert caught.value.errno == errno.ENOLCK
    assert waited == [1.5]
    # The other one serves on.
    assert json.loads(path.read_bytes()) == owner


def test_a_lock_that_another_process_got_is_seen_before_an_answer_after_a_pause(tmp_path):
    lock = owned(tmp_path)
    (tmp_path / "serverlock.1").open().close()

    with Other(tmp_path / "serverlock.1") as pid:
        time.sleep(1.1)  # The lock itself is looked at once a second.
        with pytest.raises(NodeLockLost, match=str(pid)):
            lock.check()

    lock.release()


def test_pages_and_large_bodies_stay_as_they_are_once_the_folder_is_lost(tmp_path):
    lock = owned(tmp_path)
    bodies, folders = tmp_path / "large", tmp_path / "paging"
    large, pages = LargeFiles(bodies, lock.check), FileFolders(folders, lock.check)
    body, page = large.create(1, is_durable=True), pages.create("q", 1)
    body.append(b"one")
    page.append(1, [b"one"])
    page.sync(1)
    replace(tmp_path)

    for change in (
        lambda: body.append(b"two"),
        lambda: body.copy(2),
        body.delete,
        lambda: large.create(3, is_durable=False),
        lambda: large.sweep(set()),
        lambda: page.append(1, [b"two"]),
        lambda: page.keep_room(2, 100, 100),
        lambda: page.delete(1, is_invalid=False),
        page.destroy,
        lambda: pages.create("r", 2).append(1, [b"two"]),
    ):
        with pytest.raises(NodeLockLost):
            change()
    page.close()

    assert [file.read_bytes() for file in bodies.iterdir()] == [b"one"]
    assert [file.read_bytes() for file in folders.rglob("*.page")] == [b"one"]
    body.close()
    lock.release()
