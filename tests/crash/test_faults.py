"""Any file call may fail: every waiter is told, nothing acknowledged is lost, reopening works.

The calls of a fixed script are counted once; then the script runs with the first, the second, ...
call failing. Afterwards the folder is loaded as it is, and as a power cut right then may leave it.
"""

import contextlib
import errno
import os
import threading
import time

import pytest

from journal.errors import JournalClosed, JournalError, JournalIOError
from journal.files.tap import set_tap
from journal.journal import Journal
from tests.crash.disk import Disk, Recorder, power_cuts
from tests.crash.history import History
from tests.crash.model import open_and_load, read_folder_view
from tests.crash.script import WAIT_S, run_script
from tests.crash.states import copy_out, seeded
from tests.crash.workload import TYPES, small_options

KINDS = pytest.mark.parametrize("kind", TYPES)
FAULTS = ("EIO", "ENOSPC", "short", "broken")
SHORT_CALLS = ("write", "submit", "complete")


class Fault:
    """Counts calls, and fails the one that is due.

    "short" writes half, in whole sectors; "broken" fails that call and every one behind it.
    """

    def __init__(self, fault="", due=0):
        self.fault = fault
        self.due = due
        self.count = 0
        self.hit = None
        self.lock = threading.Lock()

    def __call__(self, event):
        with self.lock:
            if self.fault == "short" and event.call not in SHORT_CALLS:
                return 0
            self.count += 1
            if self.count != self.due and not (self.fault == "broken" and self.hit):
                return 0
            self.hit = self.hit or event.call
        if self.fault == "short":
            return max(512, event.size // 2 // 512 * 512) if event.size > 512 else -errno.EIO
        return -errno.ENOSPC if self.fault == "ENOSPC" else -errno.EIO


def options(folder, kind):
    return small_options(folder, kind, file_size=2048, buffer_size=2048, pool_files=2)


def run_with(folder, kind, fault):
    """The script under a fault: (history, disk)."""
    copy_out({}, folder)
    recorder = Recorder(folder, faults=fault)
    history = History()
    failures = []

    def guarded():
        try:
            run_script(Journal(options(folder, kind)), history)
        except BaseException as error:  # noqa: BLE001 - raised again below, on the test's thread.
            failures.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    with recorder:
        thread.start()
        thread.join(3 * WAIT_S)
        assert not thread.is_alive(), f"hangs after a failed {fault.hit}"
    if failures:
        raise failures[0]
    disk = Disk()
    for step in recorder.log:
        disk.play(step)
    return history, disk


def live(view):
    return {record: body for record, is_update, _, body in view[0] if not is_update}


def check_reopened(folder, kind, history, disk, rng):
    journal = Journal(options(folder, kind))
    view, result = open_and_load(journal)
    history.check(live(view))
    journal.add(9999, 1, b"goes on", sync=True)
    journal.close()
    assert [str(damage) for damage in result.damages if not damage.torn] == []
    # Failed syncs have synced nothing: the writes before them may be lost.
    for writes, names, junk in power_cuts(disk, rng, 6):
        copy_out(disk.folder(writes, names, junk), folder)
        view, damages = read_folder_view(folder)
        history.check(live(view))
        assert [str(damage) for damage in damages if not damage.torn] == []


@KINDS
@pytest.mark.parametrize("fault", FAULTS)
def test_any_call_of_a_running_journal_may_fail(memory, kind, fault, effort, figures):
    counter = Fault(fault)
    run_with(memory / "journal", kind, counter)
    rng = seeded(kind, fault)
    calls = range(1, counter.count + 1)
    calls = sorted(rng.sample(calls, min(len(calls), effort(len(calls), least=8))))
    figures("faults in a running journal", calls_failed=len(calls))
    for due in calls:
        failing = Fault(fault, due)

        history, disk = run_with(memory / "journal", kind, failing)

        note = f"{fault} at call {due}, a {failing.hit}"
        try:
            check_reopened(memory / "journal", kind, history, disk, rng)
        except (AssertionError, JournalError) as error:
            raise AssertionError(f"{note}: {error}") from error


@KINDS
def test_after_a_failed_sync_every_call_says_so(memory, kind):
    """The waiter gets the device's error; later callers, that the journal is closed by it."""
    copy_out({}, memory / "journal")
    journal = Journal(options(memory / "journal", kind))
    journal.open()
    journal.load()
    outcomes = []

    set_tap(lambda event: -errno.EIO if event.call.startswith("sync") else 0)
    try:
        with pytest.raises(JournalIOError) as failed:
            journal.add(1, 1, b"x", sync=True)
        with pytest.raises(JournalClosed) as closed:
            journal.add(2, 1, b"x", done=outcomes.append)
        with pytest.raises(JournalClosed):
            journal.sync()
    finally:
        set_tap(None)
    with pytest.raises(JournalIOError):
        journal.close()

    assert failed.value.errno == errno.EIO
    assert isinstance(closed.value.__cause__, JournalIOError)
    assert outcomes == []


def torn_folder(folder, kind):
    """A folder that gives recovery all it can have to do: (its view, its files)."""
    recorder = Recorder(folder)
    copy_out({}, folder)
    with recorder:
        journal = Journal(options(folder, kind))
        journal.open()
        journal.load()
        for i in range(1, 9):
            journal.add(i, 1, bytes([i]) * 300, sync=True)
        journal.add(20, 1, b"left open", tx=30)
        journal.add(21, 1, b"prepared", tx=31)
        journal.prepare(31, b"extra", sync=True)
        for i in range(1, 6):
            journal.delete(i, sync=True)
        journal.add(40, 1, b"torn" * 100, sync=True)
    disk = Disk()
    for step in recorder.log:
        disk.play(step)
    files = disk.folder()
    journal.close()
    newest = max(files, key=lambda name: (b"torn" * 100 in files[name], name))
    files[newest] = files[newest].replace(b"torn" * 100, b"torn" * 50 + bytes(200))
    files["activemq-data-90.amq.tmp"] = b"half made"
    files["activemq-data-91.amq.cmp"] = b"half made"
    files["activemq-data-92.amq"] = b"short"
    copy_out(files, folder)
    return read_folder_view(folder)[0], files


@KINDS
@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "broken"])
def test_any_call_of_a_load_may_fail(memory, kind, fault, effort, figures):
    """It says so, gives everything up, and the next load finds what the first would have."""
    folder = memory / "journal"
    view, files = torn_folder(folder, kind)
    counter = Fault()
    load_with(folder, kind, counter)
    rng = seeded("load", kind, fault)
    calls = range(1, counter.count + 1)
    calls = sorted(rng.sample(calls, min(len(calls), effort(len(calls), least=8))))
    figures("faults in a load", calls_failed=len(calls))
    for due in calls:
        copy_out(files, folder)
        failing = Fault(fault, due)

        load_with(folder, kind, failing)
        after, _ = open_and_load(reopened := Journal(options(folder, kind)))
        reopened.close()

        assert after[:2] == view[:2], f"{fault} at call {due}, a {failing.hit}"


def load_with(folder, kind, fault):
    """Open, load and close under a fault; threads and lock are given up whatever happens."""
    threads = len(os.listdir("/proc/self/task"))
    journal = Journal(options(folder, kind))
    set_tap(lambda event: 0 if event.is_done else fault(event))
    try:
        with contextlib.suppress(JournalError):
            journal.open()
            journal.load()
        with contextlib.suppress(JournalError):
            journal.close()
        end = time.monotonic() + 2
        while len(os.listdir("/proc/self/task")) > threads and time.monotonic() < end:
            time.sleep(0.001)
        assert len(os.listdir("/proc/self/task")) <= threads, f"a thread lives on: {fault.hit}"
    finally:
        set_tap(None)
