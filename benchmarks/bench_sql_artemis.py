"""The SQL store beside Artemis's own journal in a table, on one server, in one run.

    python -m benchmarks.bench_sql_artemis [--database postgresql] [--seconds 1.5] [--repeats 3]
        [--workload blocking] [--load-rows 200000]

Records are of 1 KiB and durable; Artemis has its defaults. The two take turns, `--repeats`
times; shown are medians.

| workload | ours | artemis |
|---|---|---|
| n blocking | n threads, each waits for its record | the same |
| 1,000 in flight | 1,000 tasks of one event loop | one thread, a window of 1,000 callbacks |
| transactions | one thread: two adds and a commit that it waits for | the same |
| load | `load()`, records passed on in batches | records into a list in memory, its only way |

Claims, PostgreSQL: 10 at 1 producer, 5 at 16, 2 at 64, 1.5 with 1,000 in flight, 10 in
transactions, 2 at loading. Needs Java, and Maven for the first time (tests/interop/artemis.py).
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.bench_sql import BODY, Ours
from benchmarks.sql_peers import DRIVERS, ArtemisTable
from jdbcstore import DatabaseStoreOptions, SqlStore
from tests.servers import SERVERS, Database

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS = {
    "1 blocking": 10.0,
    "16 blocking": 5.0,
    "64 blocking": 2.0,
    "1,000 in flight": 1.5,
    "transactions": 10.0,
    "load": 2.0,
}


def transactions(ours: Ours, seconds: float) -> float:
    """Transactions a second from one thread, two adds each."""
    store, count, started = ours.store, 0, time.perf_counter()
    while time.perf_counter() < started + seconds:
        tx = store.begin()
        store.add(ours.next_id + 1, 45, BODY, tx=tx)
        store.add(ours.next_id + 2, 45, BODY, tx=tx)
        store.commit(tx)
        ours.next_id += 2
        count += 1
    return count / (time.perf_counter() - started)


class Loads:
    """A table that both sides load."""

    table = "LOADED"

    def __init__(self, database: Database, ours: Ours, rows: int) -> None:
        self.options = DatabaseStoreOptions(
            connection_url=database.url, message_table_name=self.table
        )
        self.lease = ours.store.leased.lease
        with SqlStore(self.options, lease=self.lease) as store:
            store.load()
            for record_id in range(1, rows + 1):
                store.add(record_id, 45, BODY, sync=False)
        self.rows = rows

    def ours(self) -> float:
        """Records a second."""
        with SqlStore(self.options, lease=self.lease) as store:
            started = time.perf_counter()
            store.load(len)
            return self.rows / (time.perf_counter() - started)


def measure(
    database: Database, arguments: argparse.Namespace
) -> dict[str, tuple[float, float, float]]:
    """{workload: (ours, artemis, ratio)}, medians of the repeats."""
    seconds, wanted = arguments.seconds, arguments.workload
    ours, artemis = Ours(database.url), ArtemisTable(database)
    sides: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        f"{count} blocking": (
            lambda count=count: ours.blocking(count, seconds),  # type: ignore[misc]
            lambda count=count: artemis.append("blocking", count, seconds),  # type: ignore[misc]
        )
        for count in (1, 16, 64)
    }
    sides["1,000 in flight"] = (
        lambda: ours.in_flight(seconds),
        lambda: artemis.append("in-flight", 1000, seconds),
    )
    sides["transactions"] = (
        lambda: transactions(ours, seconds),
        lambda: artemis.append("transactions", 1, seconds),
    )
    if not wanted or any(word in "load" for word in wanted):
        loads = Loads(database, ours, arguments.load_rows)
        sides["load"] = (loads.ours, lambda: artemis.load(loads.table))
    figures = {}
    for name, (run_ours, run_artemis) in sides.items():
        if wanted and not any(word in name for word in wanted):
            continue
        pairs = [(run_ours(), run_artemis()) for _ in range(arguments.repeats)]
        figures[name] = (
            statistics.median(pair[0] for pair in pairs),
            statistics.median(pair[1] for pair in pairs),
            statistics.median(pair[0] / pair[1] for pair in pairs),
        )
    ours.close()
    artemis.close()
    return figures


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="the SQL store beside Artemis's")
    parser.add_argument("--database", choices=sorted(DRIVERS), default="postgresql")
    parser.add_argument("--workload", action="append", help="a part of its name")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one side of one workload")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--load-rows", type=int, default=200_000)
    arguments = parser.parse_args()
    server = SERVERS[arguments.database]()
    try:
        server.start()
        figures = measure(server.new_database(), arguments)
    finally:
        server.remove()
    print(f"{'workload':16} {'ours/s':>10} {'artemis/s':>12} {'ratio':>7} {'target':>7}")
    for name, (ours, theirs, ratio) in figures.items():
        has_target = arguments.database == "postgresql"
        target = f"{TARGETS[name]:7.1f}" if has_target else "      -"
        missed = " MISSED" if has_target and ratio < TARGETS[name] else ""
        print(f"{name:16} {ours:10,.0f} {theirs:12,.0f} {ratio:7.2f} {target}{missed}")


if __name__ == "__main__":
    main()
