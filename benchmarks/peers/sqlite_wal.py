"""SQLite in WAL mode with synchronous=FULL: a transaction is on the disk when COMMIT returns.

SQLite lets one transaction write at a time. Its threads queue at a lock of ours instead of its
busy handler, which sleeps: that is the faster way to use it.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.measure import CannotRunError, Case, Latencies, Outcome, main_for, run_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that commits by hand, durable as stated above."""
    connection = sqlite3.connect(folder / "journal.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def run(case: Case, folder: Path) -> Outcome:
    """Insert rows of one blob each: a transaction a record, or a batch of them."""
    if case.workload not in ("blocking", "batch"):
        raise CannotRunError(f"no {case.workload} here")
    batch = case.producers if case.workload == "batch" else 1
    threads = 1 if case.workload == "batch" else case.producers
    body = b"x" * case.record_size
    with connect(folder) as first:
        first.execute("CREATE TABLE record (id INTEGER PRIMARY KEY, body BLOB)")
    first.close()
    lock = threading.Lock()

    def work(_: int, is_time: Callable[[], bool], latencies: Latencies) -> int:
        connection = connect(folder)
        rows = [(body,)] * batch
        records = 0
        begun = time.perf_counter_ns()
        while is_time():
            with lock:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO record (body) VALUES (?)", rows)
                connection.execute("COMMIT")
            begun = latencies.add(begun)
            records += batch
        connection.close()
        return records

    return run_threads(threads, case.seconds, work)


if __name__ == "__main__":
    main_for(run)
