"""Stories by seed: nothing is wrong with the broker, and every fault that is planted is found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.__main__ import command_of, main, parser
from tests.sim.loop import free_buried
from tests.sim.planted import PLANTED
from tests.sim.run import run_story
from tests.sim.shrink import LINES, Shrinker, without
from tests.sim.story import Story, story_of
from tests.sim.workers import results
from tests.sim.workloads import clients_of

ROOT = Path(__file__).resolve().parents[2]
# `make test` runs 200 seeds; `make soak` 20,000, in full.
QUICK_SEEDS = 40
SOAK_SEEDS = 4000
QUICK_MESSAGES = 30
STORIES = ("crashes", "reconnects", "partition", "disks", "pauses")
# A planted fault is found within so many.
PLANTED_SEEDS = 2000
# One is found in some hundred seeds: `make soak` looks for it.
RARE = ("a send or an acknowledgement in part",)
HASH_SEEDS = ("0", "1")
# Seeds whose traces a soak compares, of each story.
HASHED_SEEDS = 250
# Runs behind which a process does not grow any more, and the growth that is none.
GROWN_AFTER, RUNS = 1000, 10_000
GROWTH_MAX_MIB = 16

WRITTEN_BY_HAND = """
seed 7
nodes a b               # two brokers, which know nothing of each other
messages 40
client one_at_a_time plain a
client acknowledging plain a
client in_transactions fan b
client forwarding fan.a b
at 0.4 kill a 0.3
at 0.5 partition b client-4 1.0
at 1.5 power b 0.5
"""


def stories(name, seeds, messages=QUICK_MESSAGES):
    for seed in seeds:
        yield story_of(name, seed, styles=clients_of, messages=messages)


def wrong(found):
    """What is wrong, below the story that finds it again (python -m tests.sim --file)."""
    return [f"{one.story}\n{violation}" for one in found for violation in one.violations]


@pytest.mark.parametrize("name", STORIES)
def test_seeds_of_a_story_find_nothing_wrong(name):
    found = results(stories(name, range(1, QUICK_SEEDS + 1)))

    assert wrong(found) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", STORIES)
def test_many_seeds_of_a_story_find_nothing_wrong(name, effort, figures):
    seeds = range(1, 1 + effort(SOAK_SEEDS))

    found = [one for one in results(stories(name, seeds, 200)) if one.violations]

    figures(f"simulation, {name}", seeds=len(seeds), failed=len(found))
    assert wrong(found[:3]) == []


def test_a_story_is_written_by_hand():
    story = Story.parse(WRITTEN_BY_HAND)

    result = run_story(story)

    assert wrong([result]) == []
    assert result.counts["deliveries"] > 0
    assert {fault for fault, _ in result.coverage} == {"kill", "partition", "power"}


def test_a_story_is_its_text():
    for name in STORIES:
        for story in stories(name, range(1, 10), 200):
            assert Story.parse(str(story)) == story


@pytest.mark.parametrize("line", ["at noon kill a 1", "tell me more", "client x", "seed"])
def test_a_line_that_says_nothing_is_refused(line):
    with pytest.raises(ValueError, match=line):
        Story.parse(line)


def test_a_story_without_a_client_has_its_other_clients_under_their_new_names():
    story = Story.parse(WRITTEN_BY_HAND)

    assert [str(one) for one in without(story, clients={0}).events] == [
        "at 0.4 kill a 0.3",
        "at 0.5 partition b client-3 1",
        "at 1.5 power b 0.5",
    ]
    assert [str(one) for one in without(story, node="b").events] == ["at 0.4 kill a 0.3"]


def hashes(name, seeds, python=sys.executable, hash_seed="0"):
    """Seed and trace, a line each, as another process has them."""
    words = ("--story", name, "--seeds", str(seeds), "--messages", str(QUICK_MESSAGES), "--hashes")
    return subprocess.run(
        (python, "-m", "tests.sim", *words),
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()


def test_a_seed_happens_again_whatever_python_hashes():
    """The same trace in three processes; another seed has another."""
    told = [hashes("reconnects", 3, hash_seed=one) for one in HASH_SEEDS]

    here = [f"{one.story.seed} {one.trace_hash}" for one in results(stories("reconnects", (1, 2)))]
    assert told[0] == told[1]
    assert told[0][:2] == here
    assert len({line.partition(" ")[2] for line in told[0]}) == 3


@pytest.mark.soak
@pytest.mark.parametrize("name", STORIES[:4])
def test_a_thousand_seeds_happen_again(name, effort):
    seeds = effort(HASHED_SEEDS)

    told = [hashes(name, seeds, hash_seed=one) for one in HASH_SEEDS]

    assert told[0] == told[1]


@pytest.mark.soak
def test_a_seed_happens_again_in_another_python(effort):
    """QUIVER_OTHER_PYTHON is one of another version, with the extensions built for it too."""
    python = os.environ.get("QUIVER_OTHER_PYTHON")
    if python is None:
        pytest.skip("QUIVER_OTHER_PYTHON names no interpreter")
    seeds = effort(HASHED_SEEDS)

    for name in STORIES:
        assert hashes(name, seeds, python) == hashes(name, seeds)


@pytest.mark.soak
def test_memory_does_not_grow_with_the_seeds(effort, figures):
    runs = effort(RUNS, least=200)
    grown_after = runs * GROWN_AFTER // RUNS
    sizes = []

    for number, story in enumerate(stories("crashes", range(1, runs + 1))):
        run_story(story)
        if number in (grown_after, runs - 1):
            free_buried()
            sizes.append(_resident_mib())

    figures("simulation, memory", runs=runs, first_mib=round(sizes[0]), last_mib=round(sizes[1]))
    assert sizes[1] - sizes[0] < GROWTH_MAX_MIB


def _resident_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.soak) if one in RARE else one for one in PLANTED],
)
def test_a_planted_fault_is_found_and_its_story_is_short(name):
    kind, planted = PLANTED[name]
    failed = None
    for seed in range(1, PLANTED_SEEDS + 1):
        result = run_story(story_of(kind, seed, styles=clients_of, messages=80), planted)
        if result.violations:
            failed = result
            break
    assert failed is not None

    best = Shrinker(failed, planted).shrink()

    assert best.words & failed.words
    assert len(str(best.story).splitlines()) <= LINES


def test_the_command_of_a_failing_seed_repeats_it():
    words = ["--story", "calm", "--nodes", "2", "--messages", "20", "--faults", "0", "--seed", "5"]

    options = parser().parse_args(words)

    assert command_of(options, 5) == (
        "python -m tests.sim --story calm --seed 5 --nodes 2 --messages 20 --faults 0"
    )


def test_the_command_tells_what_it_covered(capsys):
    status = main(["--story", "crashes", "--seeds", "3", "--messages", "20"])

    told = capsys.readouterr().out
    assert status == 0
    assert "3 seeds in" in told
    assert "in all" in told
    assert told.endswith("0 failed\n")
