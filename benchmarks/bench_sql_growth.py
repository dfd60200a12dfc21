"""The SQL store as its table grows, and as its records go: figures for a plot.

    python -m benchmarks.bench_sql_growth cost [--rows 4 5 6] [--database postgresql]
    python -m benchmarks.bench_sql_growth size [--rounds 12] [--database postgresql]

`cost`: a table is filled to 10^4, 10^5, 10^6 rows by appends without a wait, except for the last
one. `--rows 4 5 6 7` adds 10^7: about 12 GB of disk and several minutes. At each size, in
microseconds: an append while filling, a blocking append (median of 300), a delete (500 of the
oldest records together, median of 10), and a record of a load. A fresh process loads the table: its
peak resident memory in MiB, and what that was before the load. PostgreSQL makes a checkpoint before
the deletes: the first change of a page after a checkpoint writes the whole page to the WAL. Old
records are on such pages unless the table is small.

`size`: rounds of 20,000 adds and as many deletes, as a broker's queue has them: 1,000 stay. After
each round the bytes of the table with its indexes, in all and by live row. The database cleans up
by its own defaults, and each round takes `--round-seconds` at least, for it does so once a minute.

Claim: both are flat.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, text

from benchmarks.bench_sql import BODY
from jdbcstore import DatabaseStoreOptions, SqlStore
from jdbcstore.url import sqlalchemy_url
from tests.servers import SERVERS, Server, new_sqlite_database

if TYPE_CHECKING:
    from collections.abc import Sequence

LIVE_RECORDS = 1000
ROUND_RECORDS = 20_000
SIZES = {
    "postgresql": "SELECT pg_total_relation_size('messages')",
    "mariadb": (
        "SELECT FILE_SIZE FROM information_schema.INNODB_SYS_TABLESPACES"
        " WHERE NAME LIKE CONCAT(DATABASE(), '/%') AND UPPER(NAME) LIKE '%/MESSAGES'"
    ),
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}


def opened(url: str) -> SqlStore:
    """A store that is loaded."""
    store = SqlStore(DatabaseStoreOptions(connection_url=url, lock_acquisition_timeout_ms=0))
    store.open()
    store.load()
    return store


def highest_kib() -> int:
    """The highest mark of this process's resident memory, in KiB.

    Not getrusage's: that begins with what the parent had when it forked.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def load_alone(url: str) -> None:
    """Load, and print seconds and the highest mark of the resident memory in KiB."""
    store = SqlStore(DatabaseStoreOptions(connection_url=url, lock_acquisition_timeout_ms=0))
    store.open()
    before = highest_kib()
    started = time.perf_counter()
    store.load(len)
    print(time.perf_counter() - started, highest_kib(), before)
    store.close()


def fresh_load(url: str) -> tuple[float, float, float]:
    """(seconds, MiB at the highest mark, MiB before the load), in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_sql_growth", "load", "--url", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, high, before = map(float, done.stdout.split())
    return seconds, high / 1024, before / 1024


def fill(store: SqlStore, first: int, final: int) -> float:
    """Add records `first` up to `final` without waiting for each; seconds until all are durable."""
    started = time.perf_counter()
    for record_id in range(first, final):
        store.add(record_id, 45, BODY, sync=False)
    store.sync()
    return time.perf_counter() - started


def make_checkpoint(url: str) -> None:
    """Have PostgreSQL forget which pages its log holds; the others have nothing like it."""
    engine = create_engine(sqlalchemy_url(url), isolation_level="AUTOCOMMIT")
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.execute(text("CHECKPOINT"))
    engine.dispose()


def cost(url: str, powers: Sequence[int]) -> None:
    """Print a line a size."""
    print(
        f"{'rows':>10} {'append us':>10} {'blocking us':>12} {'delete us':>10} {'load us':>8}"
        f" {'load rows/s':>12} {'load MiB':>9} {'before':>7}"
    )
    rows = oldest = 0
    for power in powers:
        store = opened(url)
        append_us = fill(store, rows, 10**power) / (10**power - rows) * 1e6
        rows = 10**power
        alone = []
        for record_id in range(rows, rows + 300):
            started = time.perf_counter()
            store.add(record_id, 45, BODY)
            alone.append(time.perf_counter() - started)
        for record_id in range(rows, rows + 300):
            store.delete(record_id, sync=False)
        store.sync()
        make_checkpoint(url)
        deletes = []
        for first in range(oldest, oldest + 5000, 500):
            started = time.perf_counter()
            for record_id in range(first, first + 500):
                store.delete(record_id, sync=record_id == first + 499)
            deletes.append((time.perf_counter() - started) / 500 * 1e6)
        oldest += 5000
        store.close()
        count = rows - oldest
        seconds, high, before = fresh_load(url)
        print(
            f"{rows:10} {append_us:10.1f} {statistics.median(alone) * 1e6:12.0f}"
            f" {statistics.median(deletes):10.1f}"
            f" {seconds / count * 1e6:8.2f} {count / seconds:12,.0f} {high:9.0f} {before:7.0f}",
            flush=True,
        )


def size(url: str, kind: str, rounds: int, round_seconds: float) -> None:
    """Print a line a round."""
    engine = create_engine(sqlalchemy_url(url))
    store = opened(url)
    ids = itertools.count()
    live = [next(ids) for _ in range(LIVE_RECORDS)]
    for record_id in live:
        store.add(record_id, 45, BODY, sync=False)
    print(f"{'round':>5} {'seconds':>8} {'table MiB':>10} {'bytes/live row':>15}")
    started = time.perf_counter()
    for number in range(1, rounds + 1):
        for done in range(ROUND_RECORDS):
            live.append(next(ids))
            store.add(live[-1], 45, BODY, sync=False)
            store.delete(live.pop(0), sync=done % 500 == 499)
        store.sync()
        time.sleep(max(0.0, started + number * round_seconds - time.perf_counter()))
        with engine.connect() as connection:
            taken = int(connection.execute(text(SIZES[kind])).scalar_one())
        print(
            f"{number:5} {time.perf_counter() - started:8.0f} {taken / 2**20:10.1f}"
            f" {taken / LIVE_RECORDS:15.0f}",
            flush=True,
        )
    store.close()
    engine.dispose()


def main() -> None:
    """Start a server, and measure."""
    parser = argparse.ArgumentParser(description="the SQL store as its table grows")
    parser.add_argument("what", choices=["cost", "size", "load"])
    parser.add_argument("--database", choices=sorted(SIZES), default="postgresql")
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 5, 6], help="powers of ten")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--round-seconds", type=float, default=15.0)
    parser.add_argument("--url", help="of `load`: what a fresh process is given")
    arguments = parser.parse_args()
    if arguments.what == "load":
        load_alone(arguments.url)
        return
    kind = arguments.database
    with tempfile.TemporaryDirectory() as folder:
        server: Server | None = None if kind == "sqlite" else SERVERS[kind]()
        try:
            if server is None:
                database = new_sqlite_database(Path(folder))
            else:
                server.start()
                database = server.new_database()
            if arguments.what == "cost":
                cost(database.url, arguments.rows)
            else:
                size(database.url, kind, arguments.rounds, arguments.round_seconds)
        finally:
            if server is not None:
                server.remove()


if __name__ == "__main__":
    main()
