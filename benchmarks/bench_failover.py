"""A pair on one folder whose primary is killed: how soon the backup serves, and what it costs.

    python -m benchmarks.bench_failover [--messages 1000000] [--rounds 3] [--waits 10] [--artemis]
        [--cold] [--folder DIR]

A folder is filled with so many durable messages of 1 KiB in one queue. A primary serves it, a
backup waits. The primary is killed (kill -9). Shown are seconds from then until a client of the
backup is told that the queue has all messages: the median and the worst of the rounds. Before that
the backup waits for some seconds; shown are its share of a processor then, and its memory (VmRSS).
With `--artemis` a pair of Artemis's does the same on a copy of the folder.

Files are in the page cache, as behind a failure of the process; with `--cold` they are not when the
backup begins to wait, as on a machine of its own. Prints a line a pair.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from benchmarks.bench_broker_start import QUEUE, cpu_of, fill, memory_of
from broker.client.blocking import Client
from broker.client.errors import ClientError
from tests.interop.artemis_broker import ArtemisBroker
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

USER, PASSWORD = "admin", "secret"
TIMEOUT_S = 600
LOOK_S = 0.005
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


def options_of(data: Path, *, is_backup: bool) -> list[str]:
    """Give what both kinds of `create` are told."""
    role = ["--backup"] if is_backup else []
    return ["--shared-store", *role, "--failover-on-shutdown", "--data", str(data)]


class Ours:
    """See Member."""

    def __init__(self, folder: Path, data: Path, *, is_backup: bool) -> None:
        self.port = free_port()
        self._instance = folder / ("ours-backup" if is_backup else "ours-primary")
        self._process: subprocess.Popen[bytes] | None = None
        create = ["create", str(self._instance), "--user", USER, "--password", PASSWORD]
        more = ["--port", str(self.port), "--no-web", "--max-disk-usage", "-1"]
        command = [*self._command(), *create, *more, *options_of(data, is_backup=is_backup)]
        subprocess.run(command, check=True, capture_output=True)

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

    def __init__(self, folder: Path, data: Path, *, is_backup: bool) -> None:
        place = folder / ("artemis-backup" if is_backup else "artemis-primary")
        place.mkdir()
        options = ("--nio", "--no-autotune", *options_of(data, is_backup=is_backup))
        # Its `create` has a shared store in a cluster alone; this one names none.
        cluster = ("--static-cluster", "tcp://127.0.0.1:1")
        login = ("--cluster-user", USER, "--cluster-password", PASSWORD)
        self._broker = ArtemisBroker(place, (*options, *cluster, *login), memory_mb=JVM_MB)
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
    """Print medians and the worst; the median of the outages."""
    outage_s = statistics.median(one.outage_s for one in found)
    worst_s = max(one.outage_s for one in found)
    cpu = statistics.median(one.cpu for one in found)
    memory = statistics.median(one.memory for one in found)
    waiting = f"a backup that waits: {cpu:6.2%} of a processor,{memory / 1e6:5.0f} MB"
    print(f"{name:8} outage {outage_s:6.2f} s, worst {worst_s:6.2f} s; {waiting}", flush=True)
    return outage_s


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waits", type=float, default=10, help="seconds that a backup waits")
    parser.add_argument("--artemis", action="store_true", help="beside a pair of Artemis's")
    parser.add_argument("--cold", action="store_true", help="files are not in the page cache")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=arguments.folder)).resolve()
    kinds: dict[str, Callable[..., Member]] = {"ours": Ours}
    if arguments.artemis:
        kinds["Artemis"] = Theirs
    medians = []
    try:
        asyncio.run(fill(folder / "filled", arguments.messages))
        for name, kind in kinds.items():
            data = folder / name
            shutil.copytree(folder / "filled", data)
            primary = kind(folder, data, is_backup=False)
            backup = kind(folder, data, is_backup=True)
            cold = data if arguments.cold else None
            found = [
                fail_over(primary, backup, arguments.messages, arguments.waits, cold)
                for _ in range(arguments.rounds)
            ]
            medians.append(show(name, found))
        if len(medians) > 1:
            print(f"ours over it {medians[1] / medians[0]:.2f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
