"""Measures a journal on a disk: append, load, compact; and suggests settings.

One run makes a fresh journal and all its files ahead. A journal in use reuses its files; without
this the run would measure how new files are filled. Then threads that start together append. Then
the run closes the journal, loads it, deletes a share of the records and compacts. Appends end with
a sync, which counts.

The suggestions (`suggest`):
    journal-buffer-timeout   median time of one 4 KiB write and its sync, of 200 into a file that is
                             written already: a record that waits longer than one write takes could
                             have been on the disk.
    journal-max-io           of 1, 2, 4, 8 and 16 writes in flight the fewest that come within ten
                             percent of the most records a second of one pipelining producer,
                             medians of three rounds that take turns; always 1 without direct I/O,
                             as Artemis demands.
"""

from __future__ import annotations

import os
import shutil
import statistics
import threading
import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from journal.journal import Journal
from journal.options import JournalType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from journal.options import JournalOptions

__all__ = [
    "Append",
    "Compaction",
    "Latency",
    "Load",
    "Run",
    "Suggestion",
    "Workload",
    "measure",
    "measure_append",
    "suggest",
]

USER_TYPE: Final = 1
FILES_AHEAD_MAX: Final = 200
BLOCK_SIZE: Final = 4096
RECORD_OVERHEAD: Final = 64  # bytes a record takes beside its body, at most
BATCH_OF_DELETES: Final = 1000
PROBE_WRITES: Final = 200
PROBE_SIZE: Final = 4096
PIPELINE_RECORDS: Final = 30_000
DEPTHS: Final = (1, 2, 4, 8, 16)
GOOD_ENOUGH: Final = 0.9
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Workload:
    """What to append, and how.

    Attributes:
        count: records in all.
        size: bytes of each.
        producers: threads that append.
        is_synced: every record (batch, transaction) is waited for.
        batch: records of one append call.
        tx: records of one transaction; 0 is none.
        delete_share: of the records, deleted before the compaction; 0 to 1.
    """

    count: int = 200_000
    size: int = 1024
    producers: int = 1
    is_synced: bool = True
    batch: int = 1
    tx: int = 0
    delete_share: float = 0.7


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds of one call: a record, a batch, or a transaction with its commit."""

    p50: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True)
class Append:
    """The append leg; a flush is one write of the buffer, a megabyte 1,000,000 bytes of bodies."""

    seconds: float
    records_per_s: float
    mb_per_s: float
    latency_us: Latency
    flushes: int
    syncs: int


@dataclass(frozen=True, slots=True)
class Load:
    """The load leg."""

    seconds: float
    records_per_s: float
    mb_per_s: float


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compaction leg; megabytes of the data files before it."""

    seconds: float
    mb_per_s: float
    files_before: int
    files_after: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of all legs."""

    type_used: str
    append: Append
    load: Load
    compact: Compaction


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What this disk suggests for two parameters, and the figures behind it.

    Attributes:
        buffer_timeout_ns: journal-buffer-timeout.
        max_io: journal-max-io.
        write_us: microseconds of one synced 4 KiB write: least, median, 99 of 100.
        records_per_s: by writes in flight; empty without direct I/O.
    """

    buffer_timeout_ns: int
    max_io: int
    write_us: tuple[float, float, float]
    records_per_s: dict[int, int]


def measure(
    options: JournalOptions, work: Workload, tell: Callable[[str], object] = lambda _: None
) -> Run:
    """Append, load and compact once, in a folder that must be empty; it is left filled.

    Args:
        options: of the journal; compaction by itself is turned off.
        work: what to append.
        tell: called with the name of each leg as it begins.

    Raises:
        JournalError: an option is wrong, a record too large, or the disk fails.
        KeyboardInterrupt: the producers are stopped and the journal is closed.
    """
    options = _ready(options, work)
    tell("append")
    type_used, appended = measure_append(options, work)
    tell("load")
    with Journal(options) as journal:
        begun = time.perf_counter()
        loaded = journal.load()
        seconds = time.perf_counter() - begun
        load = Load(
            seconds,
            loaded.delivered_count / seconds,
            loaded.delivered_count * work.size / 1e6 / seconds,
        )
        tell("compact")
        compaction = _compact(journal, work)
    return Run(type_used, appended, load, compaction)


def measure_append(options: JournalOptions, work: Workload) -> tuple[str, Append]:
    """The append leg alone: the type that was used, and the figures."""
    options = _ready(options, work)
    with Journal(options) as journal:
        journal.load()
        producers = _Producers(journal, work)
        before = journal.stats()
        seconds = producers.run()
        after = journal.stats()
        return journal.type_used, Append(
            seconds,
            work.count / seconds,
            work.count * work.size / 1e6 / seconds,
            producers.latency(),
            after["flushes"] - before["flushes"],
            after["syncs"] - before["syncs"],
        )


def _ready(options: JournalOptions, work: Workload) -> JournalOptions:
    # A synced write is filled up to whole blocks, however few records share it.
    shared = max(1, (work.tx or work.batch) * work.producers // 2)
    padding = BLOCK_SIZE // shared if work.is_synced else 0
    size = work.count * (work.size + RECORD_OVERHEAD + padding)
    needed = min(size // options.file_size + 3, FILES_AHEAD_MAX)
    return options.replace(min_files=max(options.min_files, needed), compact_min_files=0)


@dataclass
class _Producers:
    """Threads that append, and how long each call took."""

    journal: Journal
    work: Workload
    latencies: list[array[int]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    is_stopped: bool = False

    def run(self) -> float:
        """Append everything; seconds from the common start to the last sync."""
        count = self.work.producers
        self.latencies = [array("q") for _ in range(count)]
        start = threading.Barrier(count + 1)
        threads = [
            threading.Thread(target=self._produce, args=(number, start), daemon=True)
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            start.wait()
            begun = time.perf_counter()
            for thread in threads:
                thread.join()
            if not self.errors:
                self.journal.sync()
            seconds = time.perf_counter() - begun
        except BaseException:
            self.is_stopped = True
            start.abort()
            for thread in threads:
                thread.join()
            raise
        if self.errors:
            raise self.errors[0]
        return seconds

    def latency(self) -> Latency:
        """Of all calls of all producers."""
        times = sorted(value for one in self.latencies for value in one) or [0]

        def at(share: float) -> float:
            return round(times[min(int(len(times) * share), len(times) - 1)] / 1e3, 1)

        return Latency(at(0.5), at(0.99), at(0.999), round(times[-1] / 1e3, 1))

    def _produce(self, number: int, start: threading.Barrier) -> None:
        count, producers = self.work.count, self.work.producers
        first, end = count * number // producers + 1, count * (number + 1) // producers + 1
        if self.work.tx:
            append = self._transactions
        elif self.work.batch > 1:
            append = self._batches
        else:
            append = self._records
        try:
            start.wait()
            append(range(first, end), self.latencies[number])
        except threading.BrokenBarrierError:
            return  # Stopped before the start.
        except Exception as error:  # noqa: BLE001 - raised again by run(), in the thread that asked.
            self.errors.append(error)
            self.is_stopped = True

    def _records(self, ids: range, latencies: array[int]) -> None:
        add, clock, note = self.journal.add, time.perf_counter_ns, latencies.append
        body, is_synced = b"x" * self.work.size, self.work.is_synced
        begun = clock()
        for record_id in ids:
            add(record_id, USER_TYPE, body, sync=is_synced)
            now = clock()
            note(now - begun)
            begun = now
            if self.is_stopped:
                return

    def _batches(self, ids: range, latencies: array[int]) -> None:
        batch, clock = self.work.batch, time.perf_counter_ns
        bodies = [b"x" * self.work.size] * batch
        for first in range(0, len(ids), batch):
            part = ids[first : first + batch]
            begun = clock()
            self.journal.add_many(part, USER_TYPE, bodies[: len(part)], sync=self.work.is_synced)
            latencies.append(clock() - begun)
            if self.is_stopped:
                return

    def _transactions(self, ids: range, latencies: array[int]) -> None:
        journal, clock = self.journal, time.perf_counter_ns
        batch, body = self.work.batch, b"x" * self.work.size
        for first in range(0, len(ids), self.work.tx):
            part = ids[first : first + self.work.tx]
            begun = clock()
            tx = -part[0]  # Of this producer alone, whatever the others take.
            if batch > 1:
                for start in range(0, len(part), batch):
                    some = part[start : start + batch]
                    journal.add_many(some, USER_TYPE, [body] * len(some), tx=tx)
            else:
                for record_id in part:
                    journal.add(record_id, USER_TYPE, body, tx=tx)
            journal.commit(tx, sync=self.work.is_synced)
            latencies.append(clock() - begun)
            if self.is_stopped:
                return


def _compact(journal: Journal, work: Workload) -> Compaction:
    for record_id in range(1, work.count + 1):
        # Spread evenly: whenever the share, added up, passes a whole number.
        if int(record_id * work.delete_share) > int((record_id - 1) * work.delete_share):
            journal.delete(record_id, sync=False)
    journal.sync()
    before = journal.stats()["data_files"]
    size = before * journal.pool.file_size
    begun = time.perf_counter()
    journal.compact()
    seconds = time.perf_counter() - begun
    return Compaction(seconds, size / 1e6 / seconds, before, journal.stats()["data_files"])


# --- suggestions ----------------------------------------------------------------------------------


def suggest(options: JournalOptions, folder: Path) -> Suggestion:
    """What the disk under `folder`, which must be empty, suggests; it is left filled.

    Raises:
        JournalError, OSError: the disk fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    times = _write_times(folder / "probe")
    depths = _pipelined_rates(options, folder) if options.journal_type.is_direct else {}
    best = max(depths.values(), default=0)
    return Suggestion(
        buffer_timeout_ns=round(statistics.median(times) / 1000) * 1000,
        max_io=min(
            (depth for depth, rate in depths.items() if rate >= GOOD_ENOUGH * best), default=1
        ),
        write_us=(
            round(min(times) / 1e3, 1),
            round(statistics.median(times) / 1e3, 1),
            round(sorted(times)[len(times) * 99 // 100] / 1e3, 1),
        ),
        records_per_s=depths,
    )


def _write_times(path: Path) -> list[int]:
    """Nanoseconds of single synced writes into a file that is written already."""
    block = b"x" * PROBE_SIZE
    times = []
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, block * PROBE_WRITES)
        os.fsync(fd)
        for number in range(PROBE_WRITES):
            begun = time.perf_counter_ns()
            os.pwrite(fd, block, number * PROBE_SIZE)
            os.fdatasync(fd)
            times.append(time.perf_counter_ns() - begun)
    finally:
        os.close(fd)
    path.unlink()
    return times


def _pipelined_rates(options: JournalOptions, folder: Path) -> dict[int, int]:
    """Durable records a second by writes in flight; empty after a fall back from direct I/O."""
    rates: dict[int, list[int]] = {depth: [] for depth in DEPTHS}
    for _ in range(ROUNDS):
        for depth in DEPTHS:
            place = folder / f"depth-{depth}"
            rate = _pipelined_rate(options.replace(directory=place, max_io=depth))
            shutil.rmtree(place)
            if rate is None:
                return {}
            rates[depth].append(rate)
    return {depth: round(statistics.median(found)) for depth, found in rates.items()}


def _pipelined_rate(options: JournalOptions) -> int | None:
    """Durable records a second of one producer that never waits; None after a fall back."""
    work = Workload(count=PIPELINE_RECORDS)
    body = b"x" * work.size
    with Journal(_ready(options, work)) as journal:
        journal.load()
        if not JournalType(journal.type_used).is_direct:
            return None
        begun = time.perf_counter()
        for record_id in range(1, work.count + 1):
            journal.add(record_id, USER_TYPE, body, sync=True, wait=False)
        journal.sync()
        return round(work.count / (time.perf_counter() - begun))
