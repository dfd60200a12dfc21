"""Stories in children: all results, in order, whatever becomes of a child."""

import itertools
import os

import pytest

from tests.sim import workers
from tests.sim.run import Result
from tests.sim.story import Story
from tests.sim.workers import STORIES_MAX, results


@pytest.fixture
def run(monkeypatch):
    """`run(function)`: what a child does with a story."""

    def replace(function):
        monkeypatch.setattr(workers, "run_story", function)

    replace(lambda story: Result(story, trace_hash=str(os.getpid())))
    return replace


def stories(count):
    return (Story(seed) for seed in range(count))


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_stories(run, jobs):
    count = 2 * STORIES_MAX + 5

    found = list(results(stories(count), jobs))

    assert [one.story.seed for one in found] == list(range(count))


def test_a_child_runs_some_stories_and_ends(run):
    found = list(results(stories(STORIES_MAX + 1)))

    children = [one.trace_hash for one in found]
    assert len(set(children[:STORIES_MAX])) == 1
    assert children[0] != children[-1]
    assert str(os.getpid()) not in children


def test_a_story_that_raises_is_told_with_its_traceback(run):
    run(lambda story: [][story.seed])

    with pytest.raises(RuntimeError, match="IndexError"):
        list(results(stories(3)))


def test_children_end_with_a_caller_that_wants_no_more(run, monkeypatch):
    fork, children = os.fork, []

    def noted():
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)

    found = list(itertools.islice(results(stories(1000), jobs=2), 3))

    assert len(found) == 3
    assert len(children) == 2
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
