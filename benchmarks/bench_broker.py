"""Our broker beside others, in one run: the same load drives all of them, in turn.

    python -m benchmarks.bench_broker [--only TITLE]
        [--brokers artemis,artemis-2.56,rabbitmq,jetstream,kafka,kafka-flushed]
        [--tree TREE] [--store file|postgresql]
        [--rounds 3] [--warm 12] [--seconds 4] [--folder DIR]

Producers have a connection, a queue and a consumer each; bodies are of 1 KiB. Shown are messages a
second that were confirmed and the 99th percentile of the time to a confirmation, medians of the
rounds, and the ratios within each round. Ours and Artemis journal by ASYNCIO, and are driven by
Artemis's own Core client; Artemis has the buffer timer that its own calibration finds. RabbitMQ,
NATS and Kafka are driven by their own Java clients (peers/brokers.py); NATS, and Kafka but for
`kafka-flushed`, acknowledge before anything is synced. "One at a time" has two more lines. One is
our journal alone: one thread that waits for each record of 1 KiB, on the same disk, also by
ASYNCIO. The other is our broker driven by a client in C (peers/core_ping.c), so that ratio excludes
the cost of a JVM. At a given rate all brokers have the same load, and what counts is the tail, from
the moment at which a message was to be sent.

With `--tree` our broker of another checkout, built in place, is one of the others.

With `--store postgresql` ours and Artemis keep everything in PostgreSQL, each run in a new
database of one server, which is started for it and keeps its defaults of durability; the targets
are other ones.

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
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.peers.brokers import BROKERS, Kind, Unavailable, ours
from benchmarks.peers.core_ping import ping
from tests.servers import SERVERS

if TYPE_CHECKING:
    from tests.servers import Server

BODY_SIZE = 1024


class Case(NamedTuple):
    """What producers do.

    Attributes:
        title: its name.
        producers: how many.
        window: sends of each that wait for their confirmation; 1 blocks.
        durable: whether messages are.
        targets: what is asked for, ours over theirs, by the name of the broker.
        rate: messages a second of all producers together, each at its moment; 0 as many as it goes.
            Then what is asked for is a tail below everybody else's.
    """

    title: str
    producers: int
    window: int
    durable: bool
    targets: dict[str, float]
    rate: int = 0


OURS = "ours"
BARE = "our journal"
BY_C = "ours, by C"
# JetStream has no target of 2: it acknowledges before anything is synced.
PIPELINED = {"artemis": 2.0, "rabbitmq": 2.0, "jetstream": 1.0}
CASES = (
    Case("1 one at a time", 1, 1, True, {"artemis": 1.0, "rabbitmq": 1.0, BARE: 0.5}),
    Case("1, 256 in flight", 1, 256, True, PIPELINED),
    Case("16 one at a time", 16, 1, True, {"artemis": 1.3}),
    Case("16, 64 in flight each", 16, 64, True, PIPELINED),
    Case("1, 256 in flight, not durable", 1, 256, False, {"artemis": 1.0, "rabbitmq": 1.0}),
    Case("1, 5,000 a second", 1, 256, True, {}, 5000),
    Case("16, 5,000 a second together", 16, 64, True, {}, 5000),
)
ON_A_DATABASE = (
    Case("1 one at a time", 1, 1, True, {"artemis": 5.0}),
    Case("1, 256 in flight", 1, 256, True, {"artemis": 2.0}),
    Case("16 one at a time", 16, 1, True, {}),
    Case("16, 64 in flight each", 16, 64, True, {"artemis": 2.0}),
)


def load(command: list[str], case: Case, warm: float, seconds: float) -> dict[str, float]:
    """Run the client once; what it printed."""
    done = subprocess.run(
        [
            *command,
            *(str(case.producers), str(case.window), str(BODY_SIZE)),
            *("durable" if case.durable else "volatile", str(case.rate), str(warm), str(seconds)),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{case.title}: {done.stderr[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(
    kind: Kind, case: Case, server: Server | None, arguments: argparse.Namespace
) -> dict[str, float]:
    """Give a broker's figures of a case, on a broker of its own: nothing is left of one before."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    database = None if server is None else server.new_database()
    try:
        broker = kind.start(folder, database)
        try:
            return load(kind.command(broker.port), case, arguments.warm, arguments.seconds)
        finally:
            broker.stop()
    finally:
        if server is not None and database is not None:
            server.drop_database(database)
        shutil.rmtree(folder)


def run_bare(case: Case, arguments: argparse.Namespace) -> dict[str, float]:
    """Give our journal's figures: one thread, one record at a time or at the case's rate."""
    workload: tuple[str, ...] = ("--workload=blocking",)
    if case.rate:
        workload = ("--workload=paced", f"--producers={case.rate}")
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.ours", *workload, "--io=ASYNCIO"),
                *(f"--record-size={BODY_SIZE}", f"--seconds={arguments.seconds}", str(folder)),
            ],
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        shutil.rmtree(folder)
    found = json.loads(done.stdout)
    return {"confirmed_per_s": found["rate"], "p99_us": found["p99_us"]}


def run_by_c(arguments: argparse.Namespace) -> dict[str, float]:
    """Give our broker's figures one at a time, driven by the client in C."""
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        broker = ours(folder, None)
        try:
            return ping(broker.port, BODY_SIZE, arguments.warm, arguments.seconds)
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder)


def measure(
    case: Case, kinds: list[Kind], server: Server | None, arguments: argparse.Namespace
) -> None:
    """Print a case's lines: ours, and how it compares to each of the others."""
    found: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in list(kinds):
            try:
                found[kind.name].append(run(kind, case, server, arguments))
            except Unavailable as reason:
                print(f"  {kind.name:12}is left out: {reason}")
                kinds.remove(kind)
                del found[kind.name]
        if BARE in case.targets:
            found.setdefault(BY_C, []).append(run_by_c(arguments))
        if BARE in case.targets or case.rate:
            found.setdefault(BARE, []).append(run_bare(case, arguments))
    print(case.title)
    for name, figures in found.items():
        rate = statistics.median(one["confirmed_per_s"] for one in figures)
        tail = statistics.median(one["p99_us"] for one in figures)
        line = f"  {name:12}{rate:>10,.0f}{tail:>12,.0f}"
        if name == BARE and case.rate:
            pass  # What the disk alone makes of the tail.
        elif name == BARE:
            line += _compared(found[BY_C], figures, case, case.targets[name])
        elif name not in (OURS, BY_C):
            line += _compared(found[OURS], figures, case, case.targets.get(name))
        print(line, flush=True)


def _compared(
    mine: list[dict[str, float]],
    theirs: list[dict[str, float]],
    case: Case,
    target: float | None,
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
    parser.add_argument("--brokers", default="artemis", help="their names, by commas")
    parser.add_argument("--tree", type=Path, help="another checkout, built in place")
    parser.add_argument("--store", choices=("file", "postgresql"), default="file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=12.0, help="seconds before the clock runs")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted = arguments.brokers.split(",")
    kinds = [kind for kind in BROKERS if kind.name == OURS or kind.name in wanted]
    if arguments.tree is not None:
        kinds.append(Kind("tree", partial(ours, tree=arguments.tree.resolve())))
    print(f"{'1 KiB bodies':14}{'confirmed/s':>10}{'p99, us':>12}   ours over it")
    server = None
    if arguments.store != "file":
        server = SERVERS[arguments.store]()
    try:
        if server is not None:
            server.start()
        for case in CASES if server is None else ON_A_DATABASE:
            if arguments.only in case.title:
                measure(case, kinds, server, arguments)
    finally:
        if server is not None:
            server.remove()


if __name__ == "__main__":
    main()
