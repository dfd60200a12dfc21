"""Whatever a power cut leaves: all that was acknowledged, nothing that never was, no part of a
transaction.

A random workload is recorded call by call (disk.py). At every step the states that a power cut may
leave are built and loaded (states.py). Each must equal what a plain model holds after some number
of operations, between the last acknowledged and the last tried one. One number is enough, since
the journal promises a prefix of its log.
"""

import pytest

from journal.journal import Journal
from tests.crash.disk import Disk, Recorder
from tests.crash.model import Model, open_and_load, same
from tests.crash.states import Checker, Violation, check_log, copy_out, seeded
from tests.crash.workload import TYPES, Workload, new_workload, small_options

STEPS = 60
KINDS = pytest.mark.parametrize("kind", TYPES)


def record(folder, kind, seed, steps=STEPS, **changes):
    """A workload run to its end: (its operations, the log)."""
    copy_out({}, folder)
    recorder = Recorder(folder)
    with recorder:
        workload = new_workload(folder, kind, seed, recorder.note, **changes)
        workload.run(steps)
    return workload.operations, recorder.log


def without(log, *kinds):
    """The log of a journal that never makes such calls: the bug that is planted."""
    return [step for step in log if step[0] not in kinds]


@KINDS
def test_no_power_cut_loses_or_invents_anything(memory, kind, effort, figures):
    wanted = effort(3_000, least=100)
    states = 0
    seed = 0
    while states < wanted:
        operations, log = record(memory / "journal", kind, seed)
        checker = Checker(operations, memory / "state")

        check_log(log, checker, seeded(kind, seed), per_step=10, enough=wanted - states)

        states += len(checker.states)
        seed += 1
    figures("power cuts", distinct_states=states, workloads=seed)


@KINDS
def test_a_journal_that_never_synced_is_caught(memory, kind):
    operations, log = record(memory / "journal", kind, 1)
    checker = Checker(operations, memory / "state")

    with pytest.raises(Violation):
        check_log(without(log, "sync"), checker, seeded(kind), per_step=4)


def test_a_journal_that_never_synced_its_directory_is_caught(memory):
    operations, log = record(memory / "journal", "NIO", 1)
    checker = Checker(operations, memory / "state")

    with pytest.raises(Violation):
        check_log(without(log, "sync_names"), checker, seeded("names"), per_step=4)


@KINDS
def test_an_acknowledgement_before_the_sync_is_caught(memory, kind):
    operations, log = record(memory / "journal", kind, 1)
    eager = []
    for step in log:
        eager.append(step)
        if step[:2] == ("note", "try"):
            eager.append(("note", "ack", step[2]))
    checker = Checker(operations, memory / "state")

    with pytest.raises(Violation):
        check_log(eager, checker, seeded(kind), per_step=4)


def test_a_journal_without_checksums_is_caught(memory):
    """Artemis's format takes a record whose middle was never written for a whole one."""
    with pytest.raises(Violation):
        check_without_checksums(memory)


def check_without_checksums(memory):
    for seed in range(30):
        operations, log = record(
            memory / "journal", "ASYNCIO", seed, checksums=False, file_size=8192
        )
        check_log(log, Checker(operations, memory / "state"), seeded(seed), per_step=12)


@KINDS
def test_recovery_can_be_cut_too_and_run_again(memory, kind, effort, figures):
    """A cut, a load, and another cut anywhere in that load or in the appends behind it."""
    wanted = effort(2_000, least=40)
    states = seed = 0
    while states < wanted:
        operations, log = record(memory / "journal", kind, seed)
        rng = seeded("recovery", kind, seed)
        for _ in range(4):
            states += cut_twice(memory, kind, operations, log, rng)
        seed += 1
    figures("power cuts in a recovery", distinct_states=states, workloads=seed)


def played(log):
    """(disk, acknowledged, tried) at the end of a log."""
    disk = Disk()
    counts = {"ack": 0, "try": 0}
    for step in log:
        disk.play(step)
        if step[0] == "note":
            counts[step[1]] = max(counts[step[1]], step[2])
    return disk, counts["ack"], counts["try"]


def cut_twice(memory, kind, operations, log, rng):
    """Cut anywhere, load and append, cut again at every step; the number of distinct states."""
    disk, acked, tried = played(log[: rng.randrange(len(log))])
    writes = {
        number: tuple(s for s in range(write.sectors) if rng.random() < 0.7)
        for number, write in disk.writes.items()
        if rng.random() < 0.8
    }
    changes = {number for number in disk.name_changes if rng.random() < 0.7}
    files = disk.folder(writes, changes)
    count = Checker(operations, memory / "state").check(files, acked, tried)

    # What the cut left is on disk; everything from here on is recorded anew.
    return cut_again(memory, kind, operations[:count], on_disk(files), rng)


def on_disk(files):
    """A Disk that holds exactly these files, nothing on its way."""
    names = {(".", name): number for number, name in enumerate(sorted(files), 1)}
    contents = {number: bytearray(files[name]) for (_, name), number in names.items()}
    return Disk(contents, names)


def cut_again(memory, kind, before, disk, rng, *, acked=None, forget=False):
    """Load what `disk` holds and go on; check every state of that; how many there were.

    Args:
        before: the operations that the disk, with all that is on its way, holds.
        acked: how many of them a cut within the load must leave; None: all, as on disk already.
        forget: the load's own syncs never happened, a planted bug.
    """
    folder = memory / "again"
    copy_out(disk.folder(), folder)
    model = Model()
    for operation in before:
        model.apply(operation)
    operations = [*before]
    recorder = Recorder(folder, disk=disk)
    with recorder:
        journal = Journal(small_options(folder, kind))
        view, _ = open_and_load(journal)
        assert same(view, model.view(), compacted=("compact",) in before)
        # The load rolls back, one by one, what was left open and not prepared.
        operations += [("rollback", tx) for tx, *_ in view[2]]
        tried = len(operations)
        recorder.note("ack", len(before))
        workload = Workload(journal, rng, recorder.note, operations=operations, first_id=10_000)
        workload.run(10)
    # Before its rollbacks are on disk a load may be cut, and everything is as before it.
    acked = len(before) if acked is None else acked
    log = [("note", "ack", acked), ("note", "try", tried), *recorder.log]
    if forget:
        loaded = log.index(("note", "ack", len(before)), 1)
        log = without(log[:loaded], "sync", "sync_names") + log[loaded:]
    checker = Checker(operations, memory / "state")
    check_log(log, checker, rng, disk=disk.copy(), per_step=6)
    return len(checker.states)


@KINDS
def test_what_a_load_has_given_stays_so(memory, kind, effort, figures):
    """A killed process leaves writes that are in no disk's cache yet; a load must not rely on them.

    The process dies, its writes are still in the page cache, the journal is loaded from there, and
    then the power goes.
    """
    seeds = effort(100, least=4)
    states = sum(kill_and_cut(memory, kind, seed) for seed in range(seeds))
    figures("power cuts after a kill and a load", distinct_states=states, workloads=seeds)


def test_a_load_that_does_not_sync_is_caught(memory):
    def loads():
        for seed in range(10):
            kill_and_cut(memory, "NIO", seed, forget=True)

    with pytest.raises(Violation):
        loads()


def kill_and_cut(memory, kind, seed, *, forget=False):
    operations, log = record(memory / "journal", kind, seed, steps=40)
    rng = seeded("killed", kind, seed)
    disk, acked, tried = played(log[: rng.randrange(len(log))])
    count = Checker(operations, memory / "state").check(disk.folder(), acked, tried)

    return cut_again(memory, kind, operations[:count], disk, rng, acked=acked, forget=forget)
