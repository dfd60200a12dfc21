"""Bridges in the simulation: a chain of three brokers, and a fault at a place or at random.

    client ─▶ a: start ═bridge═▶ b: middle ═bridge═▶ c: end ─▶ drained, and looked at

    python -m tests.sim.bridges --seeds 200          faults by seed
    python -m tests.sim.bridges --seeds 200 --by two-phase core
    python -m tests.sim.bridges --case "seed 7 cut a-b 31"

A case is its text: `bridge_cases.py`. Core bridges run in their sources, JMS bridges on hosts of
their own (`jms_bridge.py`).

Each message is sent once. What was confirmed at `a` has to be at `c` once; what got no answer, at
most once; and nothing anywhere else: no message waits, and no transaction is open. A JMS bridge of
AT_MOST_ONCE may lose, one of DUPLICATES_OK may double, if there was a fault. What was confirmed has
to come in the order in which it was sent (`Case.keeps_order`), unless a disk was full or failed:
what a target refuses may be overtaken by what follows it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from broker.bridges.jms import coordinator
from broker.server import protocols
from tests.sim.bridge_cases import CACHE, CORE, ENDS, JMS, MESSAGES, Case, Result
from tests.sim.bridge_run import Run
from tests.sim.jms_bridge import SETTLED_S
from tests.sim.loop import free_buried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Seconds by which a frame is late: nothing is given up; a bridge gives its connection up, and the
# other side does not know yet.
LATE_S = (1.0, 9.0)
# Cases of a planted fault.
NEAR = 400
# A start looks at every distribution that is installed: a quarter of a short simulation.
_protocols = functools.cache(protocols.installed_protocols)


def run_case(case: Case, patches: Iterable[Callable[[], Any]] = ()) -> Result:
    """Run a case; the log is silent meanwhile.

    Args:
        case: as written.
        patches: of faults that are planted.
    """
    log = logging.getLogger("broker")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(protocols, "installed_protocols", _protocols))
            stack.enter_context(mock.patch.object(coordinator, "SETTLED_S", SETTLED_S))
            for patch in patches:
                stack.enter_context(patch())
            return Run(case).run()
    finally:
        log.setLevel(level)


def command(case: Case) -> str:
    """What runs it again."""
    return f'python -m tests.sim.bridges --case "{case}"'


def wrong(results: Iterable[Result]) -> list[str]:
    """What is wrong, with the command that finds it again."""
    return [f"{command(one.case)}: {problem}" for one in results for problem in one.problems]


def look_for(patch: Callable[[], Any], word: str, case: Case) -> None:
    """See that a planted fault is found near a case, and happens again by the text of what did.

    Args:
        patch: plants it.
        word: with which a problem has to begin.
        case: some cases near it find nothing.
    """
    found = next(one for one in (run_case(one, [patch]) for one in case.near(NEAR)) if one.problems)
    assert any(problem.startswith(word) for problem in found.problems), found.problems
    again = run_case(Case.parse(str(found.case)), [patch])
    assert again.problems == found.problems


def places(case: Case, lateness: Iterable[float] = LATE_S) -> list[Case]:
    """Every place of a calm run that a fault may come at: frames and syncs.

    Args:
        case: seed, bridges and messages.
        lateness: seconds by which frames are late.
    """
    calm = run_case(replace(case, fault="calm"))
    assert not calm.problems, calm.problems
    found = []
    for pair, count in sorted(calm.frames.items()):
        at = partial(replace, case, where=pair)
        found += [at(fault="cut", number=number) for number in range(count + 1)]
        found += [
            at(fault="late", number=number, seconds=seconds)
            for seconds in lateness
            for number in range(1, count + 1)
        ]
        found += [at(fault="repeat", number=number) for number in calm.answers[pair]]
    return found + [
        replace(case, fault=fault, where=who, number=number, is_early=is_early, of=of)
        for name, count in sorted(calm.syncs.items())
        for who, of in ends_at(case, name)
        for fault in ENDS
        for number in range(1, count + 1)
        for is_early in (True, False)
    ]


def ends_at(case: Case, name: str) -> list[tuple[str, str]]:
    """Who ends at a synced point of a host, and the word for whose: of its bridges, all."""
    parties = dict.fromkeys(
        who for link in case.links if name in link.hosts for who in (name, *link.hosts)
    )
    return [(who, "" if who == name else name) for who in parties]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases from the command line; 1 where anything is wrong."""
    made = argparse.ArgumentParser(prog="python -m tests.sim.bridges")
    made.add_argument("--seeds", type=int, default=100)
    made.add_argument("--first", type=int, default=1)
    made.add_argument("--by", nargs=2, default=(CORE, CORE), choices=(CORE, *JMS), help="bridges")
    made.add_argument("--messages", type=int, default=MESSAGES)
    made.add_argument("--cache", type=int, default=CACHE)
    made.add_argument("--places", action="store_true", help="every frame and sync of each seed")
    made.add_argument("--step", type=int, default=1, help="every so many of these")
    made.add_argument("--case", help="one, by its text")
    options = made.parse_args(arguments)
    if options.case:
        cases = [Case.parse(options.case)]
    else:
        kinds = tuple(options.by)
        seeds = range(options.first, options.first + options.seeds)
        cases = [
            Case(seed, kinds, messages=options.messages, cache=options.cache) for seed in seeds
        ]
        if options.places:
            cases = [place for one in cases for place in places(one)][:: options.step]
    failed = 0
    counts: Counter[str] = Counter()
    began = time.process_time()
    for case in cases:
        result = run_case(case)
        counts.update(result.counts)
        if result.problems:
            failed += 1
            print(command(case), *result.problems, sep="\n    ")
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    rate = len(cases) / (time.process_time() - began)
    free_buried()
    print(f"{len(cases)} cases, {rate:.1f} a second of processor: {told}; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
