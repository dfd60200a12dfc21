"""The runs of `make bench`, and the target of each figure.

A group is a list of runs that take turns, round by round, so that what else the machine does meets
all of them alike. A target compares two runs of one group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.measure import BATCH_SIZE, Case

JOURNAL_TYPES = ("NIO", "ASYNCIO", "MAPPED", "IO_URING")
ARTEMIS_TYPES = ("NIO", "ASYNCIO", "MAPPED")
PRODUCERS = (1, 16, 64)
RECORD_SIZES = (100, 1024, 10 * 1024)
# Peers without journal types: they run once a group and every type is held against them.
STORES = ("sqlite", "lmdb", "rocksdb")
OWN_TYPE = "ASYNCIO"  # the default, where a target names no type


@dataclass(frozen=True)
class Run:
    """An engine and its case."""

    engine: str
    case: Case

    def __str__(self) -> str:
        case = self.case
        io = "" if self.engine in STORES else f" {case.io}"
        return f"{self.engine}{io} {case.workload} x{case.producers} {case.record_size} B"


@dataclass(frozen=True)
class Target:
    """What the ratio of two runs should be.

    Attributes:
        ours: the run to be evaluated.
        against: the run that it is compared with.
        bound: at least this for the rate, at most this for a latency.
        figure: "rate" or "p99_us".
    """

    ours: Run
    against: Run
    bound: float
    figure: str = "rate"

    def is_met(self, ratio: float) -> bool:
        """Whether a ratio of ours to the other is good enough."""
        return ratio >= self.bound if self.figure == "rate" else ratio <= self.bound


@dataclass(frozen=True)
class Group:
    """Runs that take turns, and the targets that they are evaluated by."""

    title: str
    runs: tuple[Run, ...]
    targets: tuple[Target, ...] = ()


def group(title: str, targets: list[Target], extra: tuple[Run, ...] = ()) -> Group:
    """A group of just the runs that the targets name, and some more to look at."""
    runs: dict[Run, None] = {}
    for target in targets:
        runs[target.ours] = None
        runs[target.against] = None
    return Group(title, (*runs, *(run for run in extra if run not in runs)), tuple(targets))


def blocking_group(producers: int, seconds: float) -> Group:
    """Threads that wait for each record: against the limit, Artemis and the stores."""
    least = {1: 0.9, 16: 0.85, 64: 0.75}[producers]
    targets = []
    for io in JOURNAL_TYPES:
        case = Case("blocking", io, producers, seconds=seconds)
        ours, limit = Run("ours", case), Run("limit", case)
        targets.append(Target(ours, limit, least))
        targets.append(Target(ours, limit, 1.5, "p99_us"))
        if io in ARTEMIS_TYPES:
            targets.append(Target(ours, Run("artemis-tuned", case), 1.3))
            if producers == 1:
                targets.append(Target(ours, Run("artemis", case), 8.0))
        stored = replace(case, io=OWN_TYPE)
        targets += [Target(ours, Run(store, stored), 1.0) for store in STORES]
    best = Run("ours", Case("blocking", OWN_TYPE, producers, seconds=seconds))
    return group(f"blocking, {producers} threads, synced", targets, (best,))


def in_flight_groups(seconds: float) -> list[Group]:
    """Many records in flight from one thread or event loop: against the limit's best mode."""
    groups = []
    for workload, in_flight, least in (
        ("asyncio", 64, 1.2),
        ("asyncio", 1024, 0.3),
        ("window", 1024, 0.7),
        ("batch", BATCH_SIZE, 1.0),
    ):
        case = Case(workload, OWN_TYPE, in_flight, seconds=seconds)
        ours = Run("ours", case)
        targets = [Target(ours, Run("limit", case), least)]
        if workload == "batch":
            targets += [Target(ours, Run(store, case), 1.0) for store in STORES]
        groups.append(group(f"{workload}, {in_flight} in flight, synced", targets))
    return groups


def unsynced_group(seconds: float) -> Group:
    """No waiting: against Artemis's one call a record, which has no batch."""
    targets = []
    for io in ARTEMIS_TYPES:
        one = Case("unsynced", io, seconds=seconds)
        theirs = Run("artemis-tuned", one)
        targets.append(Target(Run("ours", one), theirs, 1.0))
        targets.append(Target(Run("ours", replace(one, workload="unsynced-batch")), theirs, 3.0))
    return group("unsynced, one thread", targets)


def reading_groups() -> list[Group]:
    """Load and compaction of a journal that we wrote, with checksums: against Artemis."""
    groups = []
    for workload, least in (("load", 3.0), ("compaction", 2.0)):
        case = Case(workload, "NIO")
        target = Target(Run("ours", case), Run("artemis", case), least)
        targets = [target]
        if workload == "load":
            delivered = Run("ours", replace(case, workload="load-delivered"))
            targets.append(Target(delivered, Run("artemis", case), 1.0))
        groups.append(group(workload, targets))
    return groups


def target_groups(seconds: float) -> list[Group]:
    """Every run that a target names, 1 KiB records."""
    return [
        *(blocking_group(producers, seconds) for producers in PRODUCERS),
        *in_flight_groups(seconds),
        unsynced_group(seconds),
        *reading_groups(),
    ]


def matrix_groups(seconds: float) -> list[Group]:
    """Types, producers and record sizes, synced and not, beside the limit program."""
    groups = []
    for workload in ("blocking", "unsynced"):
        for record_size in RECORD_SIZES:
            for producers in PRODUCERS:
                runs = [
                    Run(engine, Case(workload, io, producers, record_size, seconds))
                    for io in JOURNAL_TYPES
                    for engine in ("ours", "limit")
                ]
                title = f"{workload}, {producers} threads, {record_size} B"
                groups.append(Group(title, tuple(runs)))
    return groups
