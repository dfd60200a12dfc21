"""A power cut, or a failing call, at any step of a compaction leaves the same live records."""

import errno

import pytest

from journal.errors import JournalError
from journal.journal import Journal
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


def run(folder, kind, faults=None):
    """(log, the error of the compaction or None) of two compactions in one journal."""
    copy_out({}, folder)
    failed = None
    recorder = Recorder(folder, faults=faults)
    with recorder:
        journal = Journal(small_options(folder, kind))
        open_and_load(journal)
        prepare(journal)
        recorder.note("compact")
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
def test_no_power_cut_in_a_compaction_changes_the_records(memory, kind, effort):
    log, failed = run(memory / "journal", kind)

    states = judge_states(log, memory / "state", seeded("compact", kind), effort(100, least=4))

    assert failed is None
    assert states > 100


@KINDS
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_any_call_of_a_compaction_may_fail(memory, kind, error, effort):
    folder = memory / "journal"
    log, _ = run(folder, kind)
    expected = []
    disk = Disk()
    for step in log:
        disk.play(step)
        if step in (("note", "compact"), ("note", "committed")):
            copy_out(disk.folder(), memory / "state")
            expected.append(live(read_folder_view(memory / "state")[0]))
    total = []

    def count(event):
        total.append(event.call)
        return 0

    run(folder, kind, count)
    step = max(1, len(total) // effort(4000, least=40))
    for due in range(len(total) // 2, len(total), step):
        seen = []

        def fail(event, due=due, seen=seen):
            seen.append(event.call)
            return -error if len(seen) == due else 0

        run(folder, kind, fail)
        view, damages = read_folder_view(folder)
        assert [str(damage) for damage in damages if not damage.torn] == []
        if len(seen) >= due:
            assert live(view) in expected, (due, seen[due - 1])
