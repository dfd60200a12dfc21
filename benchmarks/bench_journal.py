"""The journal beside the limit of this disk, other engines and Artemis, as ratios.

    python -m benchmarks.bench_journal [--quick] [--only TITLE] [--rounds N] [--seconds S]
                                       [--folder DIR] [--json FILE]

Supports every claim of speed in README.md: synced appends from threads, tasks, a window of tickets
and batches; unsynced ones; load; compaction. Unit: records a second, MB/s for compaction; latencies
in microseconds. plan.py has the target of each ratio, measure.py defines the workloads. Each ratio
is the median over rounds of the ratio within a round, with the smallest and largest beside it.
Engines take turns within a round, so a slow minute of the machine slows all of them. Nothing here
fails because a figure is low.

Load and compaction: every run gets a fresh copy of the same files, just written and synced, so
all of them read from the page cache. Ours starts a process a run, Artemis has done one such
run before the first that counts, or its interpreter would be measured. A load counts the records
in the files, the same number for all. "load" and "load-delivered" stand on either side of a like
for like: Artemis hands out each record as it reads it, before it knows whether it is live;
ours hands out only live ones, so it reads their bodies again after the last file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import plan
from benchmarks.measure import (
    READING,
    CannotRunError,
    Case,
    Outcome,
    command_line,
    machine_line,
)
from benchmarks.peers.artemis import ArtemisEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.plan import Group, Run, Target

ROOT = Path(__file__).parents[1]
RUN_TIMEOUT_S = 180
CANNOT_RUN = 3

Results = dict["Run", list[Outcome | None]]


def module(name: str, tree: Path = ROOT) -> Callable[[Case, Path], Outcome]:
    """An engine that runs as a process of its own, from the sources of a tree."""

    def run(case: Case, folder: Path) -> Outcome:
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", name, *command_line(case, folder)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=RUN_TIMEOUT_S
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise CannotRunError(lines[-1])
        return Outcome(**json.loads(done.stdout))

    return run


ENGINES: dict[str, Callable[[Case, Path], Outcome]] = {
    "ours": module("benchmarks.ours"),
    "limit": module("benchmarks.peers.limit"),
    "sqlite": module("benchmarks.peers.sqlite_wal"),
    "lmdb": module("benchmarks.peers.lmdb_env"),
    "rocksdb": module("benchmarks.peers.rocks"),
    "artemis": ArtemisEngine(tuned=False),
    "artemis-tuned": ArtemisEngine(tuned=True),
}


class Bench:
    """Runs groups in a folder on the disk to be measured, and remembers why a run was not."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.cannot: dict[Run, str] = {}

    def run_group(self, group: Group) -> Results:
        """All rounds of one group; None stands where a run could not be done."""
        results: Results = defaultdict(list)
        template = self._template(group)
        for number in range(self.rounds):
            # Each round begins with another run, so that none always follows the same one.
            first = number % len(group.runs)
            for run in group.runs[first:] + group.runs[:first]:
                results[run].append(self._run(run, template))
            print(".", end="", flush=True, file=sys.stderr)
        print(file=sys.stderr)
        if template is not None:
            shutil.rmtree(template, ignore_errors=True)
        return results

    def _template(self, group: Group) -> Path | None:
        """The journal that load and compaction begin with, or None for other workloads."""
        case = group.runs[0].case
        if case.workload not in READING:
            return None
        folder = Path(tempfile.mkdtemp(prefix="bench-template-", dir=self.folder))
        try:
            module("benchmarks.prepare")(case, folder)
        except CannotRunError as error:
            for run in group.runs:
                self.cannot[run] = f"no journal to begin with: {error}"
        return folder

    def _run(self, run: Run, template: Path | None) -> Outcome | None:
        if run in self.cannot:
            return None
        folder = Path(tempfile.mkdtemp(prefix="bench-", dir=self.folder))
        try:
            if template is not None:
                shutil.copytree(template, folder, dirs_exist_ok=True)
                os.sync()
            return ENGINES[run.engine](run.case, folder)
        except CannotRunError as error:
            self.cannot[run] = str(error)
            return None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def figures(outcomes: Sequence[Outcome | None], name: str) -> list[float]:
    """The figure of that name from every round that has it."""
    values = [getattr(outcome, name) for outcome in outcomes if outcome is not None]
    return [value for value in values if value is not None]


def ratios(target: Target, results: Results, figure: str = "") -> list[float]:
    """Ours over the other, round by round; of the target's figure unless another is named."""
    figure = figure or target.figure
    pairs = zip(results[target.ours], results[target.against], strict=True)
    found = []
    for ours, other in pairs:
        if ours is None or other is None:
            continue
        above, below = getattr(ours, figure), getattr(other, figure)
        if above is not None and below:
            found.append(above / below)
    return found


def short(value: float | None) -> str:
    """Four characters or so: 950, 9.7k, 1.26M."""
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    if value >= 1e4:
        return f"{value / 1e3:.1f}k"
    return f"{value:.0f}"


def print_group(group: Group, results: Results, cannot: dict[Run, str]) -> None:
    """The medians of every run of a group, then its ratios with their targets."""
    print(f"\n{group.title}")
    print(f"  {'':44} {'a second':>9} {'p50 us':>8} {'p99 us':>8} {'p99.9':>8}")
    for run in group.runs:
        if run in cannot:
            print(f"  {run!s:44} {'-':>9}  {cannot[run][:60]}")
            continue
        row = [
            statistics.median(values) if (values := figures(results[run], name)) else None
            for name in ("rate", "p50_us", "p99_us", "p999_us")
        ]
        rates = figures(results[run], "rate")
        note = next(outcome.note for outcome in results[run] if outcome is not None)
        print(
            f"  {run!s:44} {short(row[0]):>9} {short(row[1]):>8} {short(row[2]):>8} "
            f"{short(row[3]):>8}  {short(min(rates))}..{short(max(rates))}  {note}"
        )
    if group.targets:
        print(f"  {'ratio':62} {'median':>7} {'spread':>13} {'of p50':>7}  target")
    for target in group.targets:
        found = ratios(target, results)
        name = f"{target.ours} / {target.against.engine}"
        name += " p99" if target.figure != "rate" else ""
        bound = f"{'>=' if target.figure == 'rate' else '<='} {target.bound:g}"
        if not found:
            print(f"  {name:62} {'-':>7} {'':>13} {'-':>7}  {bound}")
            continue
        median = statistics.median(found)
        verdict = "" if target.is_met(median) else "  MISSED"
        spread = f"{min(found):.2f}..{max(found):.2f}"
        of_p50 = ratios(target, results, "p50_us")
        p50 = f"{statistics.median(of_p50):.2f}" if of_p50 else "-"
        print(f"  {name:62} {median:7.2f} {spread:>13} {p50:>7}  {bound}{verdict}")


def as_json(group: Group, results: Results) -> dict[str, object]:
    """One group for the JSON file: every outcome of every round, every ratio."""
    return {
        "title": group.title,
        "runs": [
            {
                "engine": run.engine,
                "case": dataclasses.asdict(run.case),
                "rounds": [o and dataclasses.asdict(o) for o in results[run]],
            }
            for run in group.runs
        ],
        "targets": [
            {
                "ours": str(target.ours),
                "against": str(target.against),
                "figure": target.figure,
                "bound": target.bound,
                "ratios": ratios(target, results),
            }
            for target in group.targets
        ],
    }


def parser() -> argparse.ArgumentParser:
    """The command line that compare.py shares."""
    result = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--quick", action="store_true", help="targets only, short and few rounds")
    result.add_argument("--only", default="", help="only groups with this in their title")
    result.add_argument("--rounds", type=int, help="of each group; 5, or 3 with --quick")
    result.add_argument("--seconds", type=float, help="of each run; 1, or 0.4 with --quick")
    result.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "bench", help="on the disk to measure"
    )
    result.add_argument("--json", type=Path, help="file for all figures of all rounds")
    return result


def run_groups(groups: Sequence[Group], arguments: argparse.Namespace) -> None:
    """Run, print and write down groups as the command line says."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    machine = machine_line(arguments.folder)
    print(machine)
    written = []
    bench = Bench(arguments.folder, arguments.rounds or (3 if arguments.quick else 5))
    try:
        for group in groups:
            if arguments.only in group.title:
                results = bench.run_group(group)
                print_group(group, results, bench.cannot)
                written.append(as_json(group, results))
    finally:
        ArtemisEngine.close()
    path = arguments.json or arguments.folder / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps({"machine": machine, "groups": written}, indent=1))
    print(f"\nall rounds: {path}")


def groups_for(arguments: argparse.Namespace) -> list[Group]:
    """The groups that the command line asks for."""
    seconds = arguments.seconds or (0.4 if arguments.quick else 1.0)
    groups = plan.target_groups(seconds)
    if not arguments.quick:
        groups += plan.matrix_groups(seconds / 2)
    return groups


def main() -> None:
    """Run what the command line asks for."""
    arguments = parser().parse_args()
    run_groups(groups_for(arguments), arguments)


if __name__ == "__main__":
    main()
