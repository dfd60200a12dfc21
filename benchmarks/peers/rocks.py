"""RocksDB (rocksdict) with sync=True: a write is in the synced log when `put` returns.

RocksDB groups the writes of threads that wait at the same time into one sync, as a journal does.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from benchmarks.measure import CannotRunError, Case, Latencies, Outcome, main_for, run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def run(case: Case, folder: Path) -> Outcome:
    """Put records under growing keys: a write a record, or a batch of them."""
    try:
        import rocksdict
    except ImportError as error:
        raise CannotRunError(f"{error}: pip install rocksdict") from error
    if case.workload not in ("blocking", "batch"):
        raise CannotRunError(f"no {case.workload} here")
    batch = case.producers if case.workload == "batch" else 1
    threads = 1 if case.workload == "batch" else case.producers
    body = b"x" * case.record_size
    database = rocksdict.Rdict(str(folder), rocksdict.Options(raw_mode=True))
    synced = rocksdict.WriteOptions()
    synced.sync = True
    ids = itertools.count(1)

    def write_batch() -> None:
        together = rocksdict.WriteBatch(raw_mode=True)
        for _ in range(batch):
            together.put(next(ids).to_bytes(8, "big"), body)
        database.write(together, synced)

    def write_one() -> None:
        database.put(next(ids).to_bytes(8, "big"), body, synced)

    write = write_batch if case.workload == "batch" else write_one

    def work(_: int, is_time: Callable[[], bool], latencies: Latencies) -> int:
        records = 0
        begun = time.perf_counter_ns()
        while is_time():
            write()
            begun = latencies.add(begun)
            records += batch
        return records

    result = run_threads(threads, case.seconds, work)
    database.close()
    return result


if __name__ == "__main__":
    main_for(run)
