"""The SQL store beside bare drivers, on servers of its own, in one run: figures as ratios.

    python -m benchmarks.bench_sql [--database postgresql] [--seconds 1.5] [--repeats 3] [--json]

Records are of 1 KiB and durable: a server keeps its defaults of durability, and every rate counts
rows whose COMMIT has been answered. Both sides write to tables of Artemis's columns and
indexes, in the same database. For each workload the two sides take turns, `--repeats` times;
shown are medians.

| workload | ours | bare |
|---|---|---|
| 1,000 in flight | 1,000 tasks of one event loop await their records | see `in_flight` |
| 16 blocking | 16 threads, each waits for its record | 16 connections, one INSERT a commit |
| 1 blocking | one thread | one connection, one INSERT a commit |

Bare, 1,000 in flight: PostgreSQL takes COPY BINARY of 100 rows a commit, packed beforehand; MariaDB
PyMySQL's executemany of 100 rows a commit; SQLite sqlite3's executemany of as many rows a commit as
ours had. One connection each.

MariaDB's own ceiling stands beside it ("the server alone"): INSERT ... SELECT of as many rows a
commit as ours had, which the server makes itself: nothing is sent, escaped or parsed a row.

Claims: PostgreSQL 0.8, 2 and 0.8; MariaDB 3 with 1,000 in flight; SQLite 0.8.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jdbcstore import DatabaseStoreOptions, SqlStore
from jdbcstore.batch import Batch
from jdbcstore.record_tables.copy_binary import copy_rows
from jdbcstore.rows import ADD_RECORD
from jdbcstore.url import sqlalchemy_url
from tests.servers import SERVERS, new_sqlite_database

if TYPE_CHECKING:
    from collections.abc import Callable

BODY = bytes(range(256)) * 4
IN_FLIGHT = 1000
BARE_ROWS = 100
COLUMNS = (
    "id,recordType,compactCount,txId,userRecordType,variableSize,record,txDataSize,txData,"
    "txCheckNoRecords,seq"
)


def row(number: int) -> tuple[object, ...]:
    """A row of the journal table, in the order of its columns."""
    return (number, ADD_RECORD, 0, 0, 45, len(BODY), BODY, 0, b"", 0, number)


class Ours:
    """The store's side of every workload."""

    def __init__(self, url: str) -> None:
        self.options = DatabaseStoreOptions(connection_url=url, message_table_name="OURS")
        self.store = SqlStore(self.options)
        self.store.open()
        self.next_id = self.store.load().max_id + 1
        self.lock = threading.Lock()
        self.rows_per_commit = 1.0

    def in_flight(self, seconds: float) -> float:
        """Rows a second with IN_FLIGHT tasks."""
        store, commits = self.store, self.store.stats()["commits"]

        async def produce(end: float) -> int:
            count = 0
            while time.perf_counter() < end:
                self.next_id += 1
                await store.add_durable(self.next_id, 45, BODY)
                count += 1
            return count

        async def main() -> int:
            end = time.perf_counter() + seconds
            return sum(await asyncio.gather(*(produce(end) for _ in range(IN_FLIGHT))))

        started = time.perf_counter()
        count = asyncio.run(main())
        elapsed = time.perf_counter() - started
        self.rows_per_commit = count / (store.stats()["commits"] - commits)
        return count / elapsed

    def blocking(self, producers: int, seconds: float) -> float:
        """Rows a second from threads that wait for each record."""
        end = time.perf_counter() + seconds
        first = self.next_id + 1
        self.next_id += producers * 10_000_000

        def work(n: int) -> None:
            record_id = first + n * 10_000_000
            while time.perf_counter() < end:
                self.store.add(record_id, 45, BODY, sync=True)
                record_id += 1
            counts[n] = record_id - first - n * 10_000_000

        counts = [0] * producers
        return run_threads(work, producers, counts)

    def close(self) -> None:
        """Give it up."""
        self.store.close()


def run_threads(work: Callable[[int], None], count: int, counts: list[int]) -> float:
    """Rows a second of `count` threads that fill `counts`."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


class Bare(ABC):
    """A driver alone, on a table made as the store makes it."""

    def __init__(self, url: str) -> None:
        self.url = sqlalchemy_url(url)
        self.numbers = itertools.count(1)
        made = SqlStore(DatabaseStoreOptions(connection_url=url, message_table_name="BARE"))
        made.open()
        made.close()

    @abstractmethod
    def connect(self) -> Any:  # noqa: ANN401 - Every driver has its own.
        """A connection."""

    @abstractmethod
    def single(self, connection: Any) -> Callable[[int], object]:  # noqa: ANN401 - As above.
        """What inserts and commits one row."""

    def singles(self, clients: int, seconds: float) -> float:
        """Rows a second of clients that commit each INSERT."""
        connections = [self.connect() for _ in range(clients)]
        end = time.perf_counter() + seconds

        def work(n: int) -> None:
            insert = self.single(connections[n])
            while time.perf_counter() < end:
                insert(next(self.numbers))
                counts[n] += 1

        counts = [0] * clients
        rate = run_threads(work, clients, counts)
        for connection in connections:
            connection.close()
        return rate

    def loop(self, commit_rows: Callable[[], int], seconds: float) -> float:
        """Rows a second of `commit_rows()`, which commits and returns how many."""
        count, started = 0, time.perf_counter()
        while time.perf_counter() < started + seconds:
            count += commit_rows()
        return count / (time.perf_counter() - started)


class BarePostgres(Bare):
    """By psycopg."""

    def connect(self) -> Any:  # noqa: ANN401 - The driver's own.
        """A connection that commits each statement."""
        import psycopg

        url = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(url, autocommit=True)

    def single(self, connection: Any) -> Callable[[int], object]:  # noqa: ANN401 - As above.
        """What inserts and commits one row."""
        marks = ",".join(["%s"] * 11)
        cursor = connection.cursor(binary=True)
        statement = f"INSERT INTO bare ({COLUMNS}) VALUES ({marks})"
        return lambda number: cursor.execute(statement, row(number), prepare=True)

    def in_flight(self, seconds: float, rows_per_commit: float) -> float:
        """COPY of BARE_ROWS rows a commit."""
        del rows_per_commit
        batch = Batch()
        for number in range(BARE_ROWS):
            batch.insert((number, ADD_RECORD, 45, BODY, 0, b"", number))
        data = copy_rows(batch)
        with self.connect() as connection:
            cursor = connection.cursor()

            def commit_rows() -> int:
                with cursor.copy(f"COPY bare ({COLUMNS}) FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(data)
                return BARE_ROWS

            return self.loop(commit_rows, seconds)


class BareMariaDb(Bare):
    """By PyMySQL."""

    def connect(self) -> Any:  # noqa: ANN401 - The driver's own.
        """A connection."""
        import pymysql

        url = self.url
        return pymysql.connect(
            host=url.host,
            port=url.port,
            user=url.username,
            password=url.password or "",
            database=url.database,
        )

    def single(self, connection: Any) -> Callable[[int], object]:  # noqa: ANN401 - As above.
        """What inserts and commits one row."""
        cursor = connection.cursor()
        statement = f"INSERT INTO bare ({COLUMNS}) VALUES ({','.join(['%s'] * 11)})"

        def insert(number: int) -> None:
            cursor.execute(statement, row(number))
            connection.commit()

        return insert

    def in_flight(self, seconds: float, rows_per_commit: float) -> float:
        """BARE_ROWS rows a commit by executemany."""
        del rows_per_commit
        connection = self.connect()
        cursor = connection.cursor()
        statement = f"INSERT INTO bare ({COLUMNS}) VALUES ({','.join(['%s'] * 11)})"

        def commit_rows() -> int:
            rows = [row(number) for number in itertools.islice(self.numbers, BARE_ROWS)]
            cursor.executemany(statement, rows)
            connection.commit()
            return BARE_ROWS

        rate = self.loop(commit_rows, seconds)
        connection.close()
        return rate

    def server_alone(self, seconds: float, rows_per_commit: float) -> float:
        """Rows that the server makes itself; needs its SEQUENCE engine."""
        connection = self.connect()
        cursor = connection.cursor()
        count = max(2, round(rows_per_commit))

        def commit_rows() -> int:
            first, *_, last = itertools.islice(self.numbers, count)
            cursor.execute(
                f"INSERT INTO bare ({COLUMNS}) SELECT seq, {ADD_RECORD}, 0, 0, 45, "
                f"{len(BODY)}, %s, 0, '', 0, seq FROM seq_{first}_to_{last}",
                (BODY,),
            )
            connection.commit()
            return count

        rate = self.loop(commit_rows, seconds)
        connection.close()
        return rate


class BareSqlite(Bare):
    """By sqlite3."""

    def connect(self) -> Any:  # noqa: ANN401 - The driver's own.
        """A connection with the store's pragmas."""
        connection = sqlite3.connect(self.url.database, timeout=60, check_same_thread=False)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def single(self, connection: Any) -> Callable[[int], object]:  # noqa: ANN401 - As above.
        """What inserts and commits one row."""
        statement = f"INSERT INTO BARE ({COLUMNS}) VALUES ({','.join('?' * 11)})"

        def insert(number: int) -> None:
            connection.execute(statement, row(number))
            connection.commit()

        return insert

    def in_flight(self, seconds: float, rows_per_commit: float) -> float:
        """As many rows a commit as the store had, by executemany."""
        connection = self.connect()
        statement = f"INSERT INTO BARE ({COLUMNS}) VALUES ({','.join('?' * 11)})"
        count = max(1, round(rows_per_commit))

        def commit_rows() -> int:
            rows = [row(number) for number in itertools.islice(self.numbers, count)]
            connection.executemany(statement, rows)
            connection.commit()
            return count

        rate = self.loop(commit_rows, seconds)
        connection.close()
        return rate


BARE = {"postgresql": BarePostgres, "mariadb": BareMariaDb, "sqlite": BareSqlite}


def measure(
    kind: str, url: str, seconds: float, repeats: int, workloads: list[str] | None
) -> dict[str, tuple[float, float, float]]:
    """{workload: (ours, bare, ratio)}, medians of the repeats."""
    bare, ours = BARE[kind](url), Ours(url)
    sides = {
        "1,000 in flight": (
            lambda: ours.in_flight(seconds),
            lambda: bare.in_flight(seconds, ours.rows_per_commit),
        ),
        "16 blocking": (lambda: ours.blocking(16, seconds), lambda: bare.singles(16, seconds)),
        "1 blocking": (lambda: ours.blocking(1, seconds), lambda: bare.singles(1, seconds)),
    }
    if kind == "sqlite":
        del sides["16 blocking"]  # Sixteen writers of one file only wait for each other.
    if isinstance(bare, BareMariaDb):
        sides["1,000 in flight, the server alone"] = (
            lambda: ours.in_flight(seconds),
            lambda: bare.server_alone(seconds, ours.rows_per_commit),
        )
    figures = {}
    for name, (run_ours, run_bare) in sides.items():
        if workloads and not any(word in name for word in workloads):
            continue
        pairs = [(run_ours(), run_bare()) for _ in range(repeats)]
        figures[name] = (
            statistics.median(pair[0] for pair in pairs),
            statistics.median(pair[1] for pair in pairs),
            statistics.median(pair[0] / pair[1] for pair in pairs),
        )
        if name == "1,000 in flight":
            print(f"# {kind}: {ours.rows_per_commit:.0f} rows a commit", file=sys.stderr)
    ours.close()
    return figures


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="the SQL store beside bare drivers")
    parser.add_argument("--database", choices=sorted(BARE), action="append")
    parser.add_argument("--workload", action="append", help="a part of its name")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one side of one workload")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = {}
    for kind in arguments.database or list(BARE):
        with tempfile.TemporaryDirectory() as folder:
            server = None if kind == "sqlite" else SERVERS[kind]()
            try:
                if server is None:
                    database = new_sqlite_database(Path(folder))
                else:
                    server.start()
                    database = server.new_database()
                figures[kind] = measure(
                    kind, database.url, arguments.seconds, arguments.repeats, arguments.workload
                )
            finally:
                if server is not None:
                    server.remove()
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"{'database':12} {'workload':34} {'ours rows/s':>12} {'bare rows/s':>12} {'ratio':>7}")
    for kind, workloads in figures.items():
        for name, (ours, bare, ratio) in workloads.items():
            print(f"{kind:12} {name:34} {ours:12,.0f} {bare:12,.0f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
