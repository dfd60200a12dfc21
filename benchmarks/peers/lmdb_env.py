"""LMDB with its default, durable settings: a transaction is on the disk when it is committed."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from benchmarks.measure import CannotRunError, Case, Latencies, Outcome, main_for, run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAP_SIZE = 8 << 30


def run(case: Case, folder: Path) -> Outcome:
    """Put records under growing keys: a transaction a record, or a batch of them."""
    try:
        import lmdb
    except ImportError as error:
        raise CannotRunError(f"{error}: pip install lmdb") from error
    if case.workload not in ("blocking", "batch"):
        raise CannotRunError(f"no {case.workload} here")
    batch = case.producers if case.workload == "batch" else 1
    threads = 1 if case.workload == "batch" else case.producers
    body = b"x" * case.record_size
    environment = lmdb.open(str(folder), map_size=MAP_SIZE, max_spare_txns=threads)
    ids = itertools.count(1)

    def work(_: int, is_time: Callable[[], bool], latencies: Latencies) -> int:
        records = 0
        begun = time.perf_counter_ns()
        while is_time():
            with environment.begin(write=True) as transaction:
                for _ in range(batch):
                    transaction.put(next(ids).to_bytes(8, "big"), body, append=False)
            begun = latencies.add(begun)
            records += batch
        return records

    result = run_threads(threads, case.seconds, work)
    environment.close()
    return result


if __name__ == "__main__":
    main_for(run)
