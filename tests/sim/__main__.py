"""Runs many seeds of a story: progress, what is wrong, what was covered.

python -m tests.sim --nodes 5 --seeds 1000 --story partition --jobs 2
python -m tests.sim --story crashes --seed 17          one seed, and its story made smaller
python -m tests.sim --file story.txt                   a story written by hand, see story.py
python -m tests.sim --story crashes --seeds 1000 --hashes   a line each: seed, hash of its trace
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sim.shrink import Shrinker
from tests.sim.story import MESSAGES, RATES, Story, story_of
from tests.sim.workers import results
from tests.sim.workloads import clients_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.sim.run import Result

TOLD_S = 5.0
SHOWN = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Give the exit status: 1 where anything is wrong."""
    options = parser().parse_args(arguments)
    stories, count = _stories(options)
    if options.hashes:
        for result in results(stories, options.jobs):
            print(result.story.seed, result.trace_hash)
        return 0
    failed = _run_all(stories, count, options.jobs)
    for result in failed[:SHOWN]:
        _show(result, command_of(options, result.story.seed), shrinks=not options.no_shrink)
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    """Give what reads the command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.sim", description="Run simulations of brokers and clients by seed."
    )
    made.add_argument("--story", default="everything", choices=sorted(RATES))
    made.add_argument("--nodes", type=int, default=1, help="brokers (1)")
    made.add_argument("--messages", type=int, default=MESSAGES, help=f"sends ({MESSAGES})")
    made.add_argument("--faults", type=int, help="faults of a seed (by the seed)")
    made.add_argument("--seeds", type=int, default=100, help="how many (100)")
    made.add_argument("--first", type=int, default=1, help="the first seed (1)")
    made.add_argument("--seed", type=int, help="this one alone")
    made.add_argument("--jobs", type=int, default=1, help="processes (1)")
    made.add_argument("--file", type=Path, help="run the story in a file")
    made.add_argument("--no-shrink", action="store_true", help="leave a failing story as it is")
    made.add_argument("--hashes", action="store_true", help="print the hash of each trace")
    return made


def _stories(options: argparse.Namespace) -> tuple[Iterable[Story], int]:
    """Each is made when its turn comes: there may be many."""
    if options.file is not None:
        return [Story.parse(options.file.read_text("utf-8"))], 1
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    made = (
        story_of(
            options.story,
            seed,
            styles=partial(clients_of, node_count=options.nodes),
            node_count=options.nodes,
            messages=options.messages,
            fault_count=options.faults,
        )
        for seed in seeds
    )
    return made, len(seeds)


def command_of(options: argparse.Namespace, seed: int) -> str:
    """Give the command that runs one seed again."""
    if options.file is not None:
        return f"python -m tests.sim --file {options.file}"
    words = [f"python -m tests.sim --story {options.story} --seed {seed}"]
    if options.nodes != 1:
        words.append(f"--nodes {options.nodes}")
    if options.messages != MESSAGES:
        words.append(f"--messages {options.messages}")
    if options.faults is not None:
        words.append(f"--faults {options.faults}")
    return " ".join(words)


def _run_all(stories: Iterable[Story], total: int, jobs: int) -> list[Result]:
    began = told = time.monotonic()
    coverage: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    failed = []
    outage_s = 0.0
    for number, result in enumerate(results(stories, jobs), 1):
        coverage.update(result.coverage)
        counts.update(result.counts)
        outage_s = max(outage_s, result.outage_s)
        if result.violations:
            failed.append(result)
        now = time.monotonic()
        if now - told >= TOLD_S:
            told = now
            rate = number / (now - began)
            print(f"{number} of {total} seeds, {rate:.1f} a second, {len(failed)} failed")
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(f"{total} seeds in {seconds:.1f} s, {total / seconds:.1f} a second")
    print(", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
    if outage_s:
        print(f"a pair was without service for {outage_s:.1f} s at most")
    print(table(coverage))
    print(f"{len(failed)} failed" + "".join(f" {one.story.seed}" for one in failed[:20]))
    return failed


def table(coverage: Counter[tuple[str, str]]) -> str:
    """Fault by operation: how often one was under way when the other came."""
    faults = sorted({fault for fault, _ in coverage})
    styles = sorted({style for _, style in coverage if style})
    if not faults:
        return "no faults"
    width = max(map(len, ("operation", *styles)))
    lines = [f"{'operation':{width}} " + " ".join(f"{one:>15}" for one in faults)]
    lines += [
        f"{style:{width}} " + " ".join(f"{coverage[fault, style]:>15,}" for fault in faults)
        for style in styles
    ]
    lines.append(f"{'in all':{width}} " + " ".join(f"{coverage[one, '']:>15,}" for one in faults))
    return "\n".join(lines)


def _show(result: Result, command: str, *, shrinks: bool) -> None:
    print(f"\nseed {result.story.seed}: {command}")
    for violation in result.violations[:SHOWN]:
        print(f"  {violation}")
    if shrinks:
        shrinker = Shrinker(result)
        result = shrinker.shrink()
        print(f"\nthe smallest story that fails so, after {shrinker.tries} runs (--file):\n")
        print(result.story)
        print()
        for violation in result.violations[:SHOWN]:
            print(f"  {violation}")


if __name__ == "__main__":
    sys.exit(main())
