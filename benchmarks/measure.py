"""Shared by all benchmarks: cases, outcomes, threads that start together, the machine.

A case is one point of a workload. Every engine takes a case and a folder on the disk to be measured
and gives an `Outcome`. Each run has a process of its own (`main_for`), so that no engine warms
another's memory or holds its interpreter's lock.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import threading
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WORKLOADS = {
    "blocking": "each of `producers` threads appends a record and waits for the disk",
    "asyncio": "one event loop, `producers` tasks, each awaiting its record",
    "window": "one thread; it waits for the record `producers` before the one it just appended",
    "paced": "one thread appends `producers` records a second, each at its moment, and never waits",
    "batch": "one thread appends `producers` records in one call and waits once",
    "unsynced": "`producers` threads, one call a record, `Case.records` in all, and the last flush",
    "unsynced-batch": "the same with 64 records a call",
    "load": "read back `RECORDS` adds, a tenth updated, a tenth deleted, from the page cache, "
    "checksums verified, until appends are welcome; all records read count. Ours leaves bodies on "
    "disk, Artemis hands each record with its body to a callback as it reads it",
    "load-delivered": "the same, and ours hands every live record and body to a callback too",
    "compaction": "compact a journal of `RECORDS` records, every second one gone",
}
READING = ("load", "load-delivered", "compaction")
RECORDS = 200_000
UNSYNCED_RECORDS_MAX = 1_000_000
UNSYNCED_BYTES_MAX = 1 << 30
BATCH_SIZE = 64
FILE_SIZE = 10 << 20
FILES_AHEAD_MAX = 200


@dataclass(frozen=True)
class Case:
    """One point to measure.

    Attributes:
        workload: a key of WORKLOADS.
        io: journal type; engines that know none ignore it.
        producers: threads, tasks, window, batch or records a second; see WORKLOADS.
        record_size: bytes a body.
        seconds: how long to run, for the workloads that have no end of their own.
    """

    workload: str
    io: str = "ASYNCIO"
    producers: int = 1
    record_size: int = 1024
    seconds: float = 1.0

    @property
    def is_synced(self) -> bool:
        """Whether every record is on the disk before its producer goes on."""
        return self.workload in ("blocking", "asyncio", "window", "paced", "batch")

    @property
    def records(self) -> int:
        """How many records a workload has that ends by itself: enough for half a second or so."""
        if self.workload in READING:
            return RECORDS
        return min(UNSYNCED_RECORDS_MAX, UNSYNCED_BYTES_MAX // (self.record_size + 64))

    @property
    def files_ahead(self) -> int:
        """Journal files to make before the clock starts, so that none is filled while it runs.

        A broker in its stride uses its files again, and the limit program does; a journal that
        only grows would pay for every byte twice. At most FILES_AHEAD_MAX: then filling shows.
        """
        if self.workload in READING:
            return 2
        if self.is_synced:
            rate = 2_500_000 if self.workload == "window" else 30_000 * self.producers
            if self.workload == "paced":
                rate = self.producers
            records = min(rate, 2_500_000) * self.seconds
        else:
            records = self.records
        return min(FILES_AHEAD_MAX, 4 + int(records * (self.record_size + 64) / FILE_SIZE))


@dataclass
class Outcome:
    """What one run measured.

    Attributes:
        rate: records a second; MB a second for compaction.
        p50_us: median latency of a record, in microseconds; None where none is taken.
        p99_us: likewise, 99 of 100.
        p999_us: likewise, 999 of 1,000.
        note: what the reader of the figure must know.
    """

    rate: float
    p50_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None
    note: str = ""


class CannotRunError(Exception):
    """The engine is not installed, or has no such workload; the message says which."""


class Latencies:
    """Latencies of one thread, in nanoseconds; kept, not bucketed."""

    def __init__(self) -> None:
        self.values = array("q")

    def add(self, begun_ns: int) -> int:
        """Note the time since `begun_ns` and return the time of now."""
        now = time.perf_counter_ns()
        self.values.append(now - begun_ns)
        return now


def outcome(records: int, seconds: float, latencies: Iterable[Latencies] = ()) -> Outcome:
    """Figures of one run from its count, its time and its threads' latencies."""
    merged = sorted(value for one in latencies for value in one.values)
    result = Outcome(records / seconds)
    if merged:
        result.p50_us = merged[len(merged) // 2] / 1e3
        result.p99_us = merged[len(merged) * 99 // 100] / 1e3
        result.p999_us = merged[len(merged) * 999 // 1000] / 1e3
    return result


def run_threads(
    count: int, seconds: float, work: Callable[[int, Callable[[], bool], Latencies], int]
) -> Outcome:
    """Run `work` in `count` threads that begin together, and sum up.

    Args:
        count: threads.
        seconds: how long `is_time` stays true.
        work: `work(index, is_time, latencies)` appends while `is_time()`; the records it did.

    Raises:
        Exception: what a thread raised.
    """
    barrier = threading.Barrier(count + 1)
    latencies = [Latencies() for _ in range(count)]
    records = [0] * count
    errors: list[BaseException] = []
    end = 0.0

    def is_time() -> bool:
        return time.perf_counter() < end

    def thread(index: int) -> None:
        barrier.wait()
        try:
            records[index] = work(index, is_time, latencies[index])
        except Exception as error:  # noqa: BLE001 - reported by the main thread, below.
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(index,)) for index in range(count)]
    for one in threads:
        one.start()
    begun = time.perf_counter()
    end = begun + seconds
    barrier.wait()
    for one in threads:
        one.join()
    elapsed = time.perf_counter() - begun
    if errors:
        raise errors[0]
    return outcome(sum(records), elapsed, latencies)


@dataclass
class Clock:
    """The times of one thread of `run_clocked`, in nanoseconds, in order; and when to stop."""

    times: list[int] = dataclasses.field(default_factory=list)
    is_over: bool = False


def run_clocked(count: int, seconds: float, work: Callable[[int, Clock], None]) -> Outcome:
    """Run `work` in `count` threads that begin together, and sum up what their clocks kept.

    For loops so short that a call to say whether it is time would be a tenth of them.

    Args:
        count: threads.
        seconds: after this `is_over` becomes true.
        work: `work(index, clock)` keeps the time before its first record and after each one.

    Raises:
        Exception: what a thread raised.
    """
    barrier = threading.Barrier(count + 1)
    clocks = [Clock() for _ in range(count)]
    errors: list[BaseException] = []

    def thread(index: int) -> None:
        barrier.wait()
        try:
            work(index, clocks[index])
        except Exception as error:  # noqa: BLE001 - reported by the main thread, below.
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(index,)) for index in range(count)]
    for one in threads:
        one.start()
    barrier.wait()
    begun = time.perf_counter()
    time.sleep(seconds)
    for clock in clocks:
        clock.is_over = True
    for one in threads:
        one.join()
    elapsed = time.perf_counter() - begun
    if errors:
        raise errors[0]
    latencies = [Latencies() for _ in range(count)]
    for clock, kept in zip(clocks, latencies, strict=True):
        pairs = zip(clock.times, clock.times[1:], strict=False)
        kept.values.extend(after - before for before, after in pairs)
    return outcome(sum(len(kept.values) for kept in latencies), elapsed, latencies)


def main_for(engine: Callable[[Case, Path], Outcome]) -> None:
    """Run one case of an engine from the command line and print its outcome as one line of JSON.

    Exit status 3 says that the engine cannot run it; standard error says why.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--workload", choices=WORKLOADS, default="blocking")
    parser.add_argument("--io", default="ASYNCIO", help="journal type, where the engine has any")
    parser.add_argument("--producers", type=int, default=1)
    parser.add_argument("--record-size", type=int, default=1024, help="bytes")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("folder", type=Path, help="an empty folder on the disk to measure")
    arguments = vars(parser.parse_args())
    folder = arguments.pop("folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        print(json.dumps(dataclasses.asdict(engine(Case(**arguments), folder))))
    except CannotRunError as error:
        print(error, file=sys.stderr)
        sys.exit(3)


def command_line(case: Case, folder: Path) -> list[str]:
    """The arguments that make `main_for` run `case` in `folder`."""
    return [
        f"--workload={case.workload}",
        f"--io={case.io}",
        f"--producers={case.producers}",
        f"--record-size={case.record_size}",
        f"--seconds={case.seconds}",
        str(folder),
    ]


def machine_line(folder: Path) -> str:
    """One line: processor, cores, memory, kernel, file system and device of `folder`, Python."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    device = os.stat(folder).st_dev
    mount = "unknown file system"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == f"{os.major(device)}:{os.minor(device)}":
            kind, source = fields[fields.index("-") + 1 : fields.index("-") + 3]
            mount = f"{kind} on {source}"
    queue = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/write_cache")
    cache = f", {queue.read_text().strip()}" if queue.exists() else ""
    return (
        f"{model}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, Linux {platform.release()}, "
        f"{mount}{cache}, Python {platform.python_version()}"
    )
