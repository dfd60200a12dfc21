"""Killed right after it decided a compaction, loaded again, and then the power goes.

What decides is the list in the control file. A process that is killed behind its rename leaves the
list's name in the page cache alone; one that renames before it syncs leaves its bytes and those of
the new files there, too. The load sees all of it and finishes the compaction. It must not delete an
old file before list and new files are on disk, or a power cut takes both sides.
"""

import pytest

from journal.folder import CONTROL_FILE
from journal.journal import Journal
from tests.crash.disk import Disk, Recorder, power_cuts
from tests.crash.model import open_and_load, read_folder_view, same
from tests.crash.states import copy_out, seeded
from tests.crash.test_compact_cut import run
from tests.crash.workload import TYPES, small_options

KINDS = pytest.mark.parametrize("kind", TYPES)
PER_STEP = 12


def lasting(view):
    """What no load changes: one rolls back what was left open and not prepared."""
    return view[0], view[1], ()


def killed_at_the_list(folder, kind, *, is_synced):
    """The disk when the list has its name, and nothing was synced since.

    Args:
        folder: to run in.
        kind: the I/O type.
        is_synced: whether the list's bytes and the new files are on disk, as we leave them.
    """
    log, failed = run(folder, kind)
    assert failed is None
    begin = log.index(("note", "compact"))
    renames = [(at, step[2]) for at, step in enumerate(log) if is_rename(step) and at > begin]
    end = next(at for at, rename in renames if rename[4] == CONTROL_FILE)
    unsynced = set()
    if not is_synced:
        unsynced = {
            rename[5]
            for at, rename in renames
            if at <= end and rename[4].endswith((CONTROL_FILE, ".cmp"))
        }
    disk = Disk()
    for at, step in enumerate(log[: end + 1]):
        if at < begin or step[0] != "sync" or step[1] not in unsynced:
            disk.play(step)
    assert bool(unsynced) == any(write.file in unsynced for write in disk.writes.values())
    return disk


def is_rename(step):
    return step[0] == "names" and step[2][0] == "rename"


def load_and_cut(disk, memory, kind, *, forget=False):
    """Load what the page cache holds, cut the power at every step of that; how many states.

    Args:
        disk: what was there.
        memory: for folders.
        kind: the I/O type.
        forget: the load's own syncs never happened, a planted bug.
    """
    folder = memory / "again"
    copy_out(disk.folder(), folder)
    wanted = lasting(read_folder_view(folder)[0])
    recorder = Recorder(folder, disk=disk)
    with recorder:
        journal = Journal(small_options(folder, kind))
        view, _ = open_and_load(journal)
        recorder.note("loaded")
        journal.close()
    assert same(lasting(view), wanted, compacted=True)
    end = recorder.log.index(("note", "loaded"))
    loading = recorder.log[:end]
    if forget:
        loading = [step for step in loading if step[0] not in ("sync", "sync_names")]
    rng = seeded("control", kind)
    states = 0
    for step in loading + recorder.log[end:]:
        if not disk.play(step):
            continue
        for writes, names, junk in power_cuts(disk, rng, PER_STEP):
            copy_out(disk.folder(writes, names, junk), memory / "state")
            view, damages = read_folder_view(memory / "state")
            assert same(lasting(view), wanted, compacted=True), step[:2]
            assert [str(damage) for damage in damages if not damage.torn] == []
            states += 1
    return states


@KINDS
@pytest.mark.parametrize("is_synced", [True, False])
def test_a_power_cut_in_the_load_after_a_kill_at_the_list_loses_nothing(
    memory, kind, is_synced, figures
):
    disk = killed_at_the_list(memory / "journal", kind, is_synced=is_synced)

    states = load_and_cut(disk, memory, kind)

    assert states > 100
    figures("power cuts after a kill at a compaction's list", states=states)


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_load_that_does_not_sync_the_list_is_caught(memory, is_synced):
    disk = killed_at_the_list(memory / "journal", "NIO", is_synced=is_synced)

    with pytest.raises(AssertionError):
        load_and_cut(disk, memory, "NIO", forget=True)
