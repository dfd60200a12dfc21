"""Our broker beside others, in one run: the same load drives all of them, in turn.

    python -m benchmarks.bench_broker [--only TITLE] [--brokers reference,rabbitmq,jetstream]
        [--rounds 3] [--warm 12] [--seconds 4] [--folder DIR]

Producers have a connection, a queue and a consumer each; bodies are of 1 KiB. Shown are messages a
second that were confirmed and the 99th percentile of the time to a confirmation, medians of the
rounds, and the ratios within each round. Ours and the reference journal by ASYNCIO, and are driven
by the reference's own Core client; the reference has the buffer timer that its own calibration
finds. RabbitMQ and NATS are driven by their own Java clients (peers/brokers.py).

A client (peers/java/) is a JVM of its own for each figure and shares the processors with the
broker: it is warmed up before the clock runs, and still costs as much as a broker does.
Needs Java; Maven and Maven Central for the first time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.brokers import BROKERS, Kind, Unavailable

BODY_SIZE = 1024


class Case(NamedTuple):
    """What producers do.

    Attributes:
        title: its name.
        producers: how many.
        window: sends of each that wait for their confirmation; 1 blocks.
        durable: whether messages are.
        targets: what is asked for, ours over theirs, by the name of the broker.
    """

    title: str
    producers: int
    window: int
    durable: bool
    targets: dict[str, float]


OURS = "ours"
# Nobody is to be twice as fast as JetStream, which acknowledges before anything is synced.
PIPELINED = {"reference": 2.0, "rabbitmq": 2.0, "jetstream": 1.0}
CASES = (
    Case("1 one at a time", 1, 1, True, {"reference": 1.0, "rabbitmq": 1.0}),
    Case("1, 256 in flight", 1, 256, True, PIPELINED),
    Case("16 one at a time", 16, 1, True, {"reference": 1.3}),
    Case("16, 64 in flight each", 16, 64, True, PIPELINED),
    Case("1, 256 in flight, not durable", 1, 256, False, {"reference": 1.0, "rabbitmq": 1.0}),
)


def load(command: list[str], case: Case, warm: float, seconds: float) -> dict[str, float]:
    """Run the client once; what it printed."""
    done = subprocess.run(
        [
            *command,
            *(str(case.producers), str(case.window), str(BODY_SIZE)),
            *("durable" if case.durable else "volatile", str(warm), str(seconds)),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{case.title}: {done.stderr[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(kind: Kind, case: Case, arguments: argparse.Namespace) -> dict[str, float]:
    """Give a broker's figures of a case, on a broker of its own: nothing is left of one before."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        broker = kind.start(folder)
        try:
            return load(kind.command(broker.port), case, arguments.warm, arguments.seconds)
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder)


def measure(case: Case, kinds: list[Kind], arguments: argparse.Namespace) -> None:
    """Print a case's lines: ours, and how it compares to each of the others."""
    found: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in list(kinds):
            try:
                found[kind.name].append(run(kind, case, arguments))
            except Unavailable as reason:
                print(f"  {kind.name:12}is left out: {reason}")
                kinds.remove(kind)
    print(case.title)
    for kind in kinds:
        rates = [one["confirmed_per_s"] for one in found[kind.name]]
        tails = [one["p99_us"] for one in found[kind.name]]
        line = (
            f"  {kind.name:12}{statistics.median(rates):>10,.0f}{statistics.median(tails):>12,.0f}"
        )
        if kind.name != OURS:
            line += _compared(found[OURS], found[kind.name], case.targets.get(kind.name))
        print(line, flush=True)


def _compared(
    ours: list[dict[str, float]], theirs: list[dict[str, float]], target: float | None
) -> str:
    """Give ratios of each round, ours over theirs: less is better for the tail."""
    pairs = list(zip(ours, theirs, strict=True))
    rates = [one["confirmed_per_s"] / other["confirmed_per_s"] for one, other in pairs]
    tail = statistics.median(one["p99_us"] / other["p99_us"] for one, other in pairs)
    rate = statistics.median(rates)
    text = f"{rate:>8.2f} ({min(rates):.2f}..{max(rates):.2f}"
    text += ")" if target is None else f", target {target})"
    text += f"  of p99 {tail:.2f}"
    return text if target is None or rate >= target else f"{text}  MISSED"


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with this in their title")
    parser.add_argument("--brokers", default="reference", help="of reference,rabbitmq,jetstream")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=12.0, help="seconds before the clock runs")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted = arguments.brokers.split(",")
    kinds = [kind for kind in BROKERS if kind.name == OURS or kind.name in wanted]
    print(f"{'1 KiB bodies':14}{'confirmed/s':>10}{'p99, us':>12}   ours over it")
    for case in CASES:
        if arguments.only in case.title:
            measure(case, kinds, arguments)


if __name__ == "__main__":
    main()
