"""A compaction cut off or failing at any step leaves the same live records.

And a copy to the history that fails costs nothing that was acknowledged.
"""

import contextlib
import errno
import threading

import pytest

from journal.errors import JournalError
from journal.files.base import Folder
from journal.files.tap import set_tap
from journal.folder import JournalName, list_files
from journal.journal import Journal
from journal.reader import read_file, read_folder
from journal.retention import list_history
from tests.crash.disk import Disk, Recorder, power_cuts
from tests.crash.model import open_and_load, read_folder_view
from tests.crash.states import copy_out, seeded
from tests.crash.workload import TYPES, small_options

KINDS = pytest.mark.parametrize("kind", TYPES)


def live(view):
    """What a view holds, without the order between records."""
    return sorted(view[0]), sorted(view[2])


def prepare(journal):
    """Records, dead and live, in some files; one transaction prepared, one committed later."""
    for record_id in range(1, 60):
        journal.add(record_id, 1, bytes([record_id]) * 90, sync=False)
        if record_id % 3 == 0:
            journal.update(record_id, 2, b"update of %d" % record_id, sync=False)
    journal.add(100, 1, b"committed", tx=7)
    journal.delete(3, tx=7)
    journal.add(101, 1, b"prepared", tx=8)
    journal.delete(6, tx=8)
    journal.prepare(8, b"branch", sync=False)
    for record_id in range(1, 60):
        if record_id % 4 and record_id not in (3, 6):
            journal.delete(record_id, sync=False)
    journal.sync()


LARGE = 1 << 20  # bytes of a file that is written past the page cache


def run(folder, kind, faults=None, **options):
    """(log, the error of the compaction or None) of two compactions in one journal."""
    copy_out({}, folder)
    failed = None
    recorder = Recorder(folder, faults=faults)
    with recorder:
        journal = Journal(small_options(folder, kind, **options))
        open_and_load(journal)
        prepare(journal)
        recorder.note("compact")
        if faults is not None:
            faults.is_armed = True
        try:
            journal.compact()
            recorder.note("compacted")
            journal.commit(7, sync=True)
            recorder.note("committed")
            journal.compact()
        except JournalError as error:
            failed = error
        try:
            journal.close()
        except JournalError as error:
            failed = failed or error
    return recorder.log, failed


def judge_states(log, folder, rng, per_step):
    """Every state from the first compaction on; how many."""
    disk = Disk()
    before = after = None
    allowed = []
    count = 0
    for step in log:
        disk.play(step)
        if step == ("note", "compact"):
            copy_out(disk.folder(), folder)
            before = live(read_folder_view(folder)[0])
            allowed = [before]
        elif step == ("note", "compacted"):
            allowed = [before, None]
        elif step == ("note", "committed"):
            copy_out(disk.folder(), folder)
            after = live(read_folder_view(folder)[0])
            assert after != before
            allowed = [after]
        if before is None:
            continue
        for writes, names, junk in power_cuts(disk, rng, per_step):
            copy_out(disk.folder(writes, names, junk), folder)
            view, damages = read_folder_view(folder)
            assert [str(damage) for damage in damages if not damage.torn] == []
            assert None in allowed or live(view) in allowed
            count += 1
    assert after is not None
    return count


@KINDS
def test_no_power_cut_in_a_compaction_changes_the_records(memory, kind, effort, figures):
    log, failed = run(memory / "journal", kind)

    states = judge_states(log, memory / "state", seeded("compact", kind), effort(100, least=4))

    figures("power cuts in a compaction", states=states)
    assert failed is None
    assert states > 100


class Fault:
    """Fails one call: with an errno, by half a write, or for good from there on.

    Counts from where it is armed: how many calls come before differs from run to run. So does what
    a thread opens ahead of need between the others: `only` counts some calls alone.
    """

    def __init__(self, fault, due=0, *, is_armed=False, only=None):
        self.fault = fault
        self.due = due
        self.seen = []
        self.is_armed = is_armed
        self.only = only
        self.lock = threading.Lock()

    def __call__(self, event):
        with self.lock:
            if not self.is_armed:
                return 0
            is_counted = self.only is None or event.call in self.only
            if is_counted:
                self.seen.append(event.call)
            count = len(self.seen)
        is_due = is_counted and count == self.due
        if not is_due and not (self.fault == "broken" and 0 < self.due <= count):
            return 0
        if self.fault == "short" and event.call in ("write", "submit", "complete"):
            return max(512, event.size // 2 // 512 * 512) if event.size > 512 else -errno.EIO
        return -errno.ENOSPC if self.fault == "ENOSPC" else -errno.EIO

    @property
    def hit(self):
        """The call that failed, or None."""
        return self.seen[self.due - 1] if 0 < self.due <= len(self.seen) else None


def views_between(log, folder):
    """What is live before the first compaction and before the second."""
    views = []
    disk = Disk()
    for step in log:
        disk.play(step)
        if step in (("note", "compact"), ("note", "committed")):
            copy_out(disk.folder(), folder)
            views.append(live(read_folder_view(folder)[0]))
    return views


FAULTS = pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "short", "broken"])


@KINDS
@FAULTS
def test_any_call_of_a_compaction_may_fail(memory, kind, fault, effort, figures):
    folder = memory / "journal"
    counter = Fault(fault)
    log, failed = run(folder, kind, counter)
    assert failed is None
    expected = views_between(log, memory / "state")
    calls = range(1, len(counter.seen) + 1)
    step = max(1, round(len(calls) / effort(len(calls), least=10)))
    figures("faults in a compaction", calls_failed=len(calls[::step]))
    for due in calls[::step]:
        failing = Fault(fault, due)

        run(folder, kind, failing)

        view, damages = read_folder_view(folder)
        assert [str(damage) for damage in damages if not damage.torn] == []
        assert live(view) in expected, (due, failing.hit)


def run_with_large_files(folder, faults):
    """run() on files large enough to be written past the page cache, where that works."""
    log, failed = run(folder, "NIO", faults, file_size=LARGE, pool_files=2)
    with Folder(folder) as opened:
        # Nothing else of such a journal goes through a queue.
        assert ("submit" in faults.seen) == opened.supports_direct()
    return log, failed


def test_no_power_cut_in_a_compaction_of_large_files_changes_the_records(memory, effort, figures):
    log, failed = run_with_large_files(memory / "journal", Fault("EIO"))

    states = judge_states(log, memory / "state", seeded("compact large"), effort(4, least=1))

    figures("power cuts in a compaction of large files", states=states)
    assert failed is None


@FAULTS
def test_a_chunk_of_a_new_file_may_fail(memory, fault):
    """The compaction is given up, and the journal goes on."""
    folder = memory / "journal"
    counter = Fault(fault, only=("submit", "complete"))
    log, _ = run_with_large_files(folder, counter)
    expected = views_between(log, memory / "state")
    for due in range(1, len(counter.seen) + 1):
        failing = Fault(fault, due, only=counter.only)

        _, failed = run(folder, "NIO", failing, file_size=LARGE, pool_files=2)

        view, damages = read_folder_view(folder)
        assert isinstance(failed, JournalError), (due, failing.hit)
        assert [str(damage) for damage in damages if not damage.torn] == []
        assert live(view) in expected, (due, failing.hit)


RETAINED = 30


def run_with_history(folder, kind, fault):
    """Fill some files, each copied to the history, under a fault: what is surely there."""
    copy_out({}, folder)
    (folder / "history").mkdir()
    acknowledged = []
    journal = Journal(
        small_options(
            folder, kind, retention_directory=folder / "history", retention_max_bytes=1 << 20
        )
    )
    set_tap(lambda event: 0 if event.is_done else fault(event))
    try:
        try:
            open_and_load(journal)
            for record in range(1, RETAINED + 1):
                journal.add(record, 1, bytes([record]) * 600, sync=True)
                acknowledged.append(record)
        except JournalError:
            pass
        with contextlib.suppress(JournalError):
            journal.close()
    finally:
        set_tap(None)
    return acknowledged


@KINDS
@FAULTS
def test_any_call_of_a_copy_to_the_history_may_fail(memory, kind, fault, effort, figures):
    """What was acknowledged stays, a name in the history is a whole file, and the copies follow."""
    folder = memory / "journal"
    counter = Fault(fault, is_armed=True)
    assert len(run_with_history(folder, kind, counter)) == RETAINED
    total = len(counter.seen)
    rng = seeded("history", kind, fault)
    calls = sorted(rng.sample(range(1, total + 1), min(total, effort(total, least=6))))
    figures("faults in copies to the history", calls_failed=len(calls))
    for due in calls:
        failing = Fault(fault, due, is_armed=True)

        acknowledged = run_with_history(folder, kind, failing)

        whole = list(list_history(folder / "history", JournalName()))
        for copy in whole:
            assert read_file(copy.path, is_newest=False).damages == [], (due, failing.hit)
        view, damages = read_folder_view(folder)
        assert {record for record, *_ in view[0]} >= set(acknowledged), (due, failing.hit)
        assert [str(damage) for damage in damages if not damage.torn] == []
        journal = Journal(
            small_options(
                folder, kind, retention_directory=folder / "history", retention_max_bytes=1 << 20
            )
        )
        open_and_load(journal)
        journal.close()
        copied = {
            record.record_id
            for copy in list_history(folder / "history", JournalName())
            for record in read_file(copy.path)
        }
        newest = [
            record.record_id
            for file in read_folder(list_files(folder, JournalName()))
            if not file.is_ended
            for record in file
        ]
        assert copied | set(newest) >= set(acknowledged), (due, failing.hit)
