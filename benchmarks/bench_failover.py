"""A pair on one store whose primary is killed: how soon the backup serves, and what it costs.

    python -m benchmarks.bench_failover [--messages 1000000] [--rounds 3] [--waits 10] [--artemis]
        [--store files|postgresql|mariadb|sqlite] [--lease 3000] [--cold] [--folder DIR]

A store is filled with so many durable messages of 1 KiB in one queue. A primary serves it, a
backup waits. The primary is killed (kill -9). Shown are seconds from then until a client of the
backup is told that the queue has all messages: the median, the 99th percentile (of fewer than 100
rounds the worst) and the worst. Before that the backup waits for some seconds; shown are its share
of a processor then, and its memory (VmRSS). With `--artemis` a pair of Artemis's does the same on a
store of its own, filled likewise: in the same server, if it is a database.

Claims: p99 is at most 2 s on files, whose lock the kernel frees at once. On a database it is at
most the lease (`--lease`, milliseconds, jdbc-lock-expiration; renewed four times as often) and 2 s.
A database is on a server of its own, started for it, with its defaults of durability.

Files are in the page cache, as behind a failure of the process; with `--cold` they are not when the
backup begins to wait, as on a machine of its own. Prints a line a pair, and whether ours has kept
its claim.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from benchmarks.bench_broker_start import QUEUE, cpu_of, fill, memory_of, options_of
from broker.client.blocking import Client
from broker.client.errors import ClientError
from jdbcstore import DatabaseStoreOptions
from tests.interop.artemis import jars
from tests.interop.artemis_broker import ArtemisBroker
from tests.servers import SERVERS, free_port, new_sqlite_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import Database

USER, PASSWORD = "admin", "secret"
TIMEOUT_S = 600
LOOK_S = 0.005
# Until a backup has seen that the lock is free, and has loaded.
CLAIM_S = 2.0
# Of a JVM that loads the messages.
JVM_MB = 5000


class Member(Protocol):
    """One broker of a pair."""

    port: int

    def begin(self) -> None:
        """Start it, and wait for nothing."""

    def pids(self) -> list[int]:
        """Give its processes."""

    def kill(self) -> None:
        """End it as a crash does."""


class Store(NamedTuple):
    """What the two of a pair share.

    Attributes:
        folder: of the data; of a database, for what else there is.
        database: None keeps the data in the folder.
        lease_ms: of a broker on a database, milliseconds.
    """

    folder: Path
    database: Database | None
    lease_ms: int

    def words(self, *, is_backup: bool) -> list[str]:
        """Give what both kinds of `create` are told of the pair."""
        role = ["--backup"] if is_backup else []
        return ["--shared-store", *role, "--failover-on-shutdown"]

    @property
    def renew_ms(self) -> int:
        """Give how often the lease is renewed, milliseconds."""
        return self.lease_ms // 4

    @property
    def claim_s(self) -> float:
        """Give the seconds that a failover may take."""
        return CLAIM_S if self.database is None else self.lease_ms / 1000 + CLAIM_S

    @property
    def claim(self) -> str:
        """Give the claim in words."""
        lease = "" if self.database is None else f"the lease of {self.lease_ms / 1000:g} s and "
        return f"p99 within {lease}{CLAIM_S:g} s"

    async def fill(self, count: int) -> None:
        """Store the messages."""
        options = options_of(self.folder)
        if self.database is not None:
            tables = DatabaseStoreOptions(connection_url=self.database.url)
            options = replace(options, store=tables)
        await fill(options, count)


class Ours:
    """See Member."""

    def __init__(self, folder: Path, store: Store, *, is_backup: bool) -> None:
        self.port = free_port()
        self._instance = folder / ("ours-backup" if is_backup else "ours-primary")
        self._process: subprocess.Popen[bytes] | None = None
        create = ["create", str(self._instance), "--user", USER, "--password", PASSWORD]
        more = ["--port", str(self.port), "--no-web", "--max-disk-usage", "-1"]
        database = store.database
        place = ["--data", str(store.folder)] if database is None else ["--jdbc", database.url]
        command = [*self._command(), *create, *more, *place, *store.words(is_backup=is_backup)]
        subprocess.run(command, check=True, capture_output=True)
        xml = self._instance / "etc/broker.xml"
        lease = (
            f"<jdbc-lock-expiration>{store.lease_ms}</jdbc-lock-expiration>"
            f"<jdbc-lock-renew-period>{store.renew_ms}</jdbc-lock-renew-period>"
        )
        end = "</database-store>"
        xml.write_text(xml.read_text().replace(end, lease + end))

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "broker.cli.main"]

    def begin(self) -> None:
        """Start it, and wait for nothing."""
        with (self._instance / "log").open("ab") as log:
            command = [*self._command(), "run", str(self._instance)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def pids(self) -> list[int]:
        """Give its process."""
        return [] if self._process is None else [self._process.pid]

    def kill(self) -> None:
        """End it as a crash does. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(TIMEOUT_S)


class Theirs:
    """See Member; of Artemis."""

    def __init__(self, folder: Path, store: Store, *, is_backup: bool) -> None:
        place = folder / ("artemis-backup" if is_backup else "artemis-primary")
        place.mkdir()
        database = store.database
        data: tuple[str, ...] = ("--nio", "--data", str(store.folder))
        if database is not None:
            driver = {"postgresql": "org.postgresql.Driver", "mariadb": "org.mariadb.jdbc.Driver"}
            data = ("--jdbc", "--jdbc-connection-url", str(database.jdbc_url))
            assert database.server is not None, "SQLite is refused before"
            data += ("--jdbc-driver-class-name", driver[database.server.kind])
        options = ("--no-autotune", *data, *store.words(is_backup=is_backup))
        # Its `create` has a shared store in a cluster alone; this one names none.
        cluster = ("--static-cluster", "tcp://127.0.0.1:1")
        login = ("--cluster-user", USER, "--cluster-password", PASSWORD)
        self._broker = ArtemisBroker(place, (*options, *cluster, *login), memory_mb=JVM_MB)
        if database is not None and database.server is not None:
            self._broker.change_configuration(
                ("<jdbc-lock-expiration>20000<", f"<jdbc-lock-expiration>{store.lease_ms}<"),
                (
                    "<jdbc-lock-renew-period>4000<",
                    f"<jdbc-lock-renew-period>{store.lease_ms // 4}<",
                ),
            )
            for found in jars().glob(f"{database.server.kind}-*.jar"):
                shutil.copy(found, place / "broker/lib")
        self.port = self._broker.port

    def begin(self) -> None:
        """Start it, and wait for nothing."""
        self._broker._begin()

    def pids(self) -> list[int]:
        """Give the script and the JVM."""
        process = self._broker._process
        group = -1 if process is None else process.pid
        return [int(one) for one in os.listdir("/proc") if one.isdigit() and _group(one) == group]

    def kill(self) -> None:
        """End it as a crash does. Idempotent."""
        self._broker.kill()


def _group(pid: str) -> int:
    try:
        return os.getpgid(int(pid))
    except ProcessLookupError:
        return -1


def await_messages(port: int, count: int) -> None:
    """Return once a client is told that the queue has all messages."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        _await_listener(port, deadline_s)
        try:
            with Client(f"tcp://127.0.0.1:{port}", user=USER, password=PASSWORD) as client:
                found = client.session().query_queue(QUEUE).message_count
        except ClientError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(LOOK_S)
            continue
        if found != count:
            raise SystemExit(f"{found} messages of {count}")
        return


def _await_listener(port: int, deadline_s: float) -> None:
    """Return once a broker listens: to ask so costs less than a client that is refused."""
    while time.monotonic() < deadline_s:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(LOOK_S)
    raise SystemExit(f"no broker listens at {port}")


class Figures(NamedTuple):
    """Of one round: seconds, and what the backup cost that waited: share of a processor, bytes."""

    outage_s: float
    cpu: float
    memory: int


def forget(data: Path) -> None:
    """Have no file of a folder in the page cache."""
    for path in data.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            # What is not on the disk yet stays.
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def fail_over(
    primary: Member, backup: Member, count: int, waits_s: float, cold: Path | None
) -> Figures:
    """Let the primary serve, the backup wait, and kill the primary."""
    primary.begin()
    try:
        await_messages(primary.port, count)
        if cold is not None:
            forget(cold)
        backup.begin()
        # As long as it starts, it does not only wait.
        time.sleep(waits_s)
        before_s = sum(map(cpu_of, backup.pids()))
        time.sleep(waits_s)
        cpu = (sum(map(cpu_of, backup.pids())) - before_s) / waits_s
        memory = max(memory_of(pid, "VmRSS") for pid in backup.pids())
        began_s = time.perf_counter()
        primary.kill()
        await_messages(backup.port, count)
        return Figures(time.perf_counter() - began_s, cpu, memory)
    finally:
        primary.kill()
        backup.kill()


def show(name: str, found: list[Figures]) -> float:
    """Print medians, the 99th percentile and the worst; the median of the outages."""
    outages_s = sorted(one.outage_s for one in found)
    outage_s = statistics.median(outages_s)
    cpu = statistics.median(one.cpu for one in found)
    memory = statistics.median(one.memory for one in found)
    tail = f"p99 {p99_of(found):6.2f} s, worst {outages_s[-1]:6.2f} s"
    waiting = f"a backup that waits: {cpu:6.2%} of a processor,{memory / 1e6:5.0f} MB"
    print(f"{name:8} outage {outage_s:6.2f} s, {tail}; {waiting}", flush=True)
    return outage_s


def p99_of(found: list[Figures]) -> float:
    """Give the outage that 99 of 100 rounds do not exceed, seconds."""
    outages_s = sorted(one.outage_s for one in found)
    return outages_s[math.ceil(0.99 * len(outages_s)) - 1]


@contextlib.contextmanager
def new_databases(kind: str, folder: Path) -> Iterator[Callable[[Path], Database | None]]:
    """Give what makes a database for a pair, in one server; None for files."""
    if kind == "files":
        yield lambda place: None
    elif kind == "sqlite":
        yield new_sqlite_database
    else:
        server = SERVERS[kind]()
        try:
            server.start()
            yield lambda place: server.new_database()
        finally:
            server.remove()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waits", type=float, default=10, help="seconds that a backup waits")
    parser.add_argument("--artemis", action="store_true", help="beside a pair of Artemis's")
    parser.add_argument(
        "--store", choices=("files", "postgresql", "mariadb", "sqlite"), default="files"
    )
    parser.add_argument("--lease", type=int, default=3000, help="of a database, milliseconds")
    parser.add_argument("--cold", action="store_true", help="files are not in the page cache")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    if arguments.cold and arguments.store != "files":
        parser.error("--cold is for files")
    if arguments.artemis and arguments.store == "sqlite":
        parser.error("Artemis has no store in SQLite")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder)).resolve()
    kinds: dict[str, Callable[..., Member]] = {"ours": Ours}
    if arguments.artemis:
        kinds["Artemis"] = Theirs
    medians = []
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        new_database = stack.enter_context(new_databases(arguments.store, folder))
        for name, kind in kinds.items():
            place = folder / name
            place.mkdir()
            store = Store(place, new_database(place), arguments.lease)
            asyncio.run(store.fill(arguments.messages))
            primary = kind(folder, store, is_backup=False)
            backup = kind(folder, store, is_backup=True)
            cold = place if arguments.cold else None
            found = [
                fail_over(primary, backup, arguments.messages, arguments.waits, cold)
                for _ in range(arguments.rounds)
            ]
            medians.append(show(name, found))
            if kind is Ours:
                late_s = p99_of(found) - store.claim_s
                kept = "kept" if late_s <= 0 else f"missed by {late_s:.2f} s"
                print(f"claim: {store.claim}: {kept}", flush=True)
    if len(medians) > 1:
        print(f"ours over it {medians[1] / medians[0]:.2f}")


if __name__ == "__main__":
    main()
