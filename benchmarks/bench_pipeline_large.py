"""A large journal read by Spark: memory of the workers, and time by cores.

    python -m benchmarks.bench_pipeline_large [--gigabytes 10] [--body 1024] [--journals 4]
        [--source journal] [--folder DIR]

Journals of so many gigabytes in all, as bench_pipeline writes them, are read by each of local[1]
and local[2], and what Spark gets is dropped. Seconds; MB/s of the journals' files; rows/s, counted
by a query of its own; and the most memory (VmHWM, MiB) that one Python worker has had, from /proc,
and the JVM beside it. Then the time of one core over that of two, and whether the files fit the
page cache, so that what was measured is known: memory that is free, or the disk. Claim: a worker's
memory does not follow the size of what is read, and time falls with cores.

Nothing is written where the folder has no room for it and a tenth more.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

from benchmarks.bench_pipeline import drop, fill
from benchmarks.measure import machine_line
from pipeline.registration import register
from pipeline.session import open_session

MASTERS = ("local[1]", "local[2]")
# What fill() writes beside a body, by its files' size: headers, properties, references, padding.
OVERHEAD = 340
LOOK_EACH_S = 0.2


class Peaks:
    """The most memory that each process below this one has had; use it in a `with` block."""

    def __init__(self) -> None:
        self.workers_kib = self.jvm_kib = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="peaks", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """End."""
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(LOOK_EACH_S):
            for name, peak_kib in descendants():
                if name == "java":
                    self.jvm_kib = max(self.jvm_kib, peak_kib)
                else:
                    self.workers_kib = max(self.workers_kib, peak_kib)


def descendants() -> list[tuple[str, int]]:
    """Name and VmHWM, in KiB, of each process below this one that is there now."""
    fields = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            lines = (folder / "status").read_text().splitlines()
        except OSError:
            continue  # It has ended.
        fields[int(folder.name)] = dict(line.split(":", 1) for line in lines)
    below = {os.getpid()}
    found = []
    waiting = list(below)
    while waiting:
        parent = waiting.pop()
        for pid, of in fields.items():
            if int(of["PPid"]) == parent and pid not in below:
                below.add(pid)
                waiting.append(pid)
                if "VmHWM" in of:
                    found.append((of["Name"].strip(), int(of["VmHWM"].split()[0])))
    return found


def check_room(folder: Path, size: int) -> None:
    """End with one line where the folder has no room for so many bytes, and a tenth more."""
    free = shutil.disk_usage(folder).free
    if free < 1.1 * size:
        sys.exit(
            f"{folder}: {free / 1e9:.1f} GB free, {1.1 * size / 1e9:.1f} GB needed;"
            " give another --folder or fewer --gigabytes"
        )


def available_bytes() -> int:
    """Memory that the page cache may take, of /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise AssertionError("every Linux since 3.14 has MemAvailable")


def main() -> None:
    """Write the journals, and read them by each master."""
    parser = argparse.ArgumentParser(description="a large journal read by Spark")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="of all journals")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a message's body")
    parser.add_argument("--journals", type=int, default=4)
    parser.add_argument("--source", choices=("journal", "messages"), default="journal")
    parser.add_argument("--folder", type=Path, help="where the journals are written")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        place = Path(name)
        check_room(place, int(arguments.gigabytes * 1e9))
        print(machine_line(place))
        journals = [place / f"node-{number}" / "journal" for number in range(arguments.journals)]
        count = int(arguments.gigabytes * 1e9 / (arguments.body + OVERHEAD) / len(journals))
        started = time.perf_counter()
        for journal in journals:
            fill(journal, count, arguments.body)
        seconds = time.perf_counter() - started
        size = sum(file.stat().st_size for one in journals for file in one.iterdir())
        fit = "fit" if size < available_bytes() else "do not fit"
        print(
            f"{size / 1e9:.1f} GB in {len(journals)} journals, written in {seconds:.0f} s;"
            f" they {fit} the page cache; {arguments.source}",
            flush=True,
        )
        print(
            f"{'master':10} {'seconds':>8} {'MB/s':>8} {'rows/s':>10}"
            f" {'worker MiB':>11} {'JVM MiB':>8}"
        )
        taken = []
        rows = 0
        for master in MASTERS:
            spark = open_session(master)
            try:
                register(spark, [arguments.source])
                frame = spark.read.format(arguments.source).load(list(map(str, journals)))
                # Also a first reading, after which each master finds all as warm as the other.
                rows = frame.count()
                with Peaks() as peaks:
                    started = time.perf_counter()
                    drop(frame)
                    seconds = time.perf_counter() - started
            finally:
                spark.stop()
            taken.append(seconds)
            print(
                f"{master:10} {seconds:8.1f} {size / seconds / 1e6:8.1f} {rows / seconds:10,.0f}"
                f" {peaks.workers_kib / 1024:11.0f} {peaks.jvm_kib / 1024:8.0f}",
                flush=True,
            )
        print(f"{rows:,} rows; {MASTERS[0]} took {taken[0] / taken[1]:.2f} times as long")


if __name__ == "__main__":
    main()
