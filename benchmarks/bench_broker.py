"""Our broker beside the reference's, in one run: the same Core client drives both, in turn.

    python -m benchmarks.bench_broker [--only TITLE] [--rounds 3] [--warm 12] [--seconds 4]
        [--folder DIR]

Producers have a connection, a queue and a consumer each; bodies are of 1 KiB. Shown are messages a
second that were confirmed, medians of the rounds, the ratio to the reference's within each round,
and the 99th percentile of the time to a confirmation, likewise. Both brokers journal by ASYNCIO;
the reference has the buffer timer that its own calibration finds.

The client (peers/java/CoreLoad.java) is a JVM of its own for each figure and shares the processors
with the broker: it is warmed up before the clock runs, and still costs as much as a broker does.
Needs Java; Maven and Maven Central for the first time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.interop.jms.client import into, jar, tool
from tests.interop.reference_broker import ReferenceBroker, free_port

SOURCE = Path(__file__).parent / "peers" / "java" / "CoreLoad.java"
BODY_SIZE = 1024
START_TIMEOUT_S = 60
USER, PASSWORD = "admin", "secret"


class Case(NamedTuple):
    """What producers do.

    Attributes:
        title: its name.
        producers: how many.
        window: sends of each that wait for their confirmation; 1 blocks.
        durable: whether messages are.
        target: what is asked for, ours over the reference's.
    """

    title: str
    producers: int
    window: int
    durable: bool
    target: float


CASES = (
    Case("1 one at a time", 1, 1, True, 1.0),
    Case("1, 256 in flight", 1, 256, True, 2.0),
    Case("16 one at a time", 16, 1, True, 1.3),
    Case("16, 64 in flight each", 16, 64, True, 2.0),
    Case("1, 256 in flight, not durable", 1, 256, False, 1.0),
)


class Broker(Protocol):
    """One that runs."""

    port: int

    def stop(self) -> None:
        """End it in order."""


class Ours:
    """`broker create`, `broker run`, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        instance = folder / "ours"
        broker = [sys.executable, "-m", "broker.cli.main"]
        subprocess.run(
            [
                *(*broker, "create", str(instance), "--user", USER, "--password", PASSWORD),
                *("--port", str(self.port), "--no-web", "--max-disk-usage", "-1"),
            ],
            check=True,
            capture_output=True,
        )
        log = folder / "ours.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*broker, "run", str(instance)], stdout=output, stderr=output
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while "serving" not in log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"our broker did not start: {log.read_text()[-500:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it in order."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(START_TIMEOUT_S)


def reference(folder: Path) -> ReferenceBroker:
    """Start the reference's broker, with a timer calibrated for this disk."""
    broker = ReferenceBroker(folder, ("--aio",), memory_mb=2048)
    broker.start()
    return broker


def client() -> list[str]:
    """Give the command of the compiled client.

    Raises:
        ReferenceUnavailableError: no Java, or its jar cannot be fetched.
    """
    built = into(
        Path(tempfile.gettempdir()) / f"quiver-core-load-{SOURCE.stat().st_mtime_ns}",
        "compiling CoreLoad.java failed",
        [tool("javac"), "-d", "{}", "-cp", str(jar()), str(SOURCE)],
    )
    return [tool("java"), "-Xmx512m", "-cp", f"{built}:{jar()}", "CoreLoad"]


def load(
    command: list[str], port: int, case: Case, warm: float, seconds: float
) -> dict[str, float]:
    """Run the client once; what it printed."""
    done = subprocess.run(
        [
            *(*command, f"tcp://127.0.0.1:{port}", USER, PASSWORD),
            *(str(case.producers), str(case.window), str(BODY_SIZE)),
            *("durable" if case.durable else "volatile", "consumers", str(warm), str(seconds)),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{case.title}: {done.stderr[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(case: Case, arguments: argparse.Namespace, command: list[str]) -> None:
    """Print a case's line."""
    rates: dict[str, list[float]] = {"ours": [], "reference": []}
    tails: dict[str, list[float]] = {"ours": [], "reference": []}
    for _ in range(arguments.rounds):
        for name, start in (("reference", reference), ("ours", Ours)):
            # A broker of its own for each figure: nothing is left of the one before.
            folder = Path(tempfile.mkdtemp(dir=arguments.folder))
            try:
                broker: Broker = start(folder)
                try:
                    found = load(command, broker.port, case, arguments.warm, arguments.seconds)
                finally:
                    broker.stop()
            finally:
                shutil.rmtree(folder)
            rates[name].append(found["confirmed_per_s"])
            tails[name].append(found["p99_us"])
    ratios = [one / other for one, other in zip(rates["ours"], rates["reference"], strict=True)]
    tail = statistics.median(
        one / other for one, other in zip(tails["ours"], tails["reference"], strict=True)
    )
    ratio = statistics.median(ratios)
    print(
        f"{case.title:32}{statistics.median(rates['ours']):>10,.0f}"
        f"{statistics.median(rates['reference']):>12,.0f}"
        f"{ratio:>7.2f} ({min(ratios):.2f}..{max(ratios):.2f}, target {case.target})"
        f"  of p99 {tail:.2f}{'' if ratio >= case.target else '  MISSED'}",
        flush=True,
    )


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with this in their title")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=12.0, help="seconds before the clock runs")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    command = client()
    print(f"{'confirmed messages/s, 1 KiB':32}{'ours':>10}{'reference':>12}  ratio")
    for case in CASES:
        if arguments.only in case.title:
            measure(case, arguments, command)


if __name__ == "__main__":
    main()
