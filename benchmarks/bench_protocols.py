"""Our broker beside others by STOMP, in one run: the same client drives all of them, in turn.

    python -m benchmarks.bench_stomp [--only TITLE] [--brokers artemis,rabbitmq] [--rounds 3]
        [--warm 5] [--seconds 4] [--folder DIR]

Pairs of a producer and a consumer have a queue each; bodies are of 1 KiB; each SEND asks for a
receipt and consumers acknowledge by themselves (peers/stomp_load.py, one process for all pairs).
Shown are messages a second that were confirmed, and received, and the 99th percentile of the time
to a receipt, medians of the rounds; then the ratios within each round, ours over theirs. Artemis
journals by ASYNCIO with the timer that its own calibration finds; RabbitMQ is the system's, with
its plugin. At a given rate all have the same load, and what counts is the tail.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers.brokers import PASSWORD, USER, Unavailable, artemis, ours, rabbitmq
from tests.servers import free_port

if TYPE_CHECKING:
    from benchmarks.peers.process import Broker

BODY_SIZE = 1024
OURS = "ours"


class Case(NamedTuple):
    """What producers do: how many, sends of each that wait for a receipt, and what is sent."""

    title: str
    pairs: int
    window: int
    durable: bool
    # What is asked for, ours over theirs, by the name of the broker.
    targets: dict[str, float]
    rate: int = 0


TARGETS = {"artemis": 1.5, "rabbitmq": 1.0}
CASES = (
    Case("1 one at a time", 1, 1, True, TARGETS),
    Case("1, 256 in flight", 1, 256, True, TARGETS),
    Case("16 one at a time", 16, 1, True, TARGETS),
    Case("16, 64 in flight each", 16, 64, True, TARGETS),
    Case("1, 256 in flight, not durable", 1, 256, False, {}),
    Case("16, 64 in flight each, not durable", 16, 64, False, {}),
    Case("1, 2,000 a second", 1, 256, True, {}, 2000),
)


class Started(NamedTuple):
    """A broker that runs, and how a client gets in."""

    broker: Broker
    port: int
    user: str
    password: str


def started(name: str, folder: Path) -> Started:
    """Start a broker in a folder."""
    if name == "rabbitmq":
        port = free_port()
        return Started(rabbitmq(folder, None, port), port, "guest", "guest")
    broker = ours(folder, None) if name == OURS else artemis(folder, None)
    return Started(broker, broker.port, USER, PASSWORD)


def run(name: str, case: Case, arguments: argparse.Namespace) -> dict[str, float]:
    """Give a broker's figures of a case, on a broker of its own: nothing is left of one before."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        peer = started(name, folder)
        try:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "benchmarks.peers.stomp_load", str(peer.port)),
                    *(peer.user, peer.password, str(case.pairs), str(case.window)),
                    *(str(BODY_SIZE), "durable" if case.durable else "volatile", str(case.rate)),
                    *(str(arguments.warm), str(arguments.seconds)),
                ],
                capture_output=True,
                text=True,
            )
        finally:
            peer.broker.stop()
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise SystemExit(f"{name}: {case.title}: {done.stderr[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(case: Case, names: list[str], arguments: argparse.Namespace) -> None:
    """Print a case's lines: ours, and how it compares to each of the others."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in list(names):
            try:
                found[name].append(run(name, case, arguments))
            except Unavailable as reason:
                print(f"  {name:10}is left out: {reason}")
                names.remove(name)
                del found[name]
    print(case.title)
    for name, figures in found.items():
        middle = {key: statistics.median(one[key] for one in figures) for key in figures[0]}
        line = (
            f"  {name:10}{middle['confirmed_per_s']:>10,.0f}{middle['received_per_s']:>10,.0f}"
            f"{middle['p99_us']:>12,.0f}"
        )
        if name != OURS:
            line += compared(found[OURS], figures, case, case.targets.get(name))
        print(line, flush=True)


def compared(
    mine: list[dict[str, float]], theirs: list[dict[str, float]], case: Case, target: float | None
) -> str:
    """Give ratios of each round, ours over theirs: less is better for the tail."""
    pairs = list(zip(mine, theirs, strict=True))
    rates = [one["confirmed_per_s"] / other["confirmed_per_s"] for one, other in pairs]
    tail = statistics.median(one["p99_us"] / other["p99_us"] for one, other in pairs)
    rate = statistics.median(rates)
    text = f"{rate:>8.2f} ({min(rates):.2f}..{max(rates):.2f}"
    text += ")" if target is None else f", target {target})"
    text += f"  of p99 {tail:.2f}"
    is_missed = tail >= 1 if case.rate else target is not None and rate < target
    return f"{text}  MISSED" if is_missed else text


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="cases with this in their title")
    parser.add_argument("--brokers", default="artemis,rabbitmq", help="their names, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=5.0, help="seconds before the clock runs")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = [OURS, *(one for one in arguments.brokers.split(",") if one)]
    print(f"{'1 KiB bodies':12}{'confirmed/s':>10}{'received/s':>10}{'p99, us':>12}   ours over it")
    for case in CASES:
        if arguments.only in case.title:
            measure(case, names, arguments)


if __name__ == "__main__":
    main()
