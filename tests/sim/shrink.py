"""Makes a failing story smaller: fewer faults, clients, nodes and messages, as long as it fails.

Each smaller story is tried with a few seeds, for what is left out changes the order of all else;
with more of them as long as it is not short. It fails as long as it is wrong with one of the words
that the first one was wrong with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.sim.run import Planted, Result, run_story
from tests.sim.story import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from tests.sim.story import Story

SEEDS = 6
SEEDS_OF_LONG = 30
TRIES_MAX = 800
LINES = 15
MESSAGES_MIN = 5


class Shrinker:
    """See the module's text.

    Args:
        result: of the story that failed.
        planted: as it ran.
        tries_max: runs at most.

    Attributes:
        best: the smallest that failed so far.
        tries: runs so far.
    """

    def __init__(
        self, result: Result, planted: Planted | None = None, tries_max: int = TRIES_MAX
    ) -> None:
        self.best = result
        self.tries = 0
        self._words = result.words
        self._planted = planted or Planted()
        self._tries_max = tries_max

    def shrink(self) -> Result:
        """Give the smallest that was found."""
        for seed_count in (SEEDS, SEEDS_OF_LONG):
            is_smaller = True
            while is_smaller and self.tries < self._tries_max:
                stories = smaller(self.best.story)
                is_smaller = any(self._fails(story, seed_count) for story in stories)
            if len(str(self.best.story).splitlines()) <= LINES:
                break
        return self.best

    def _fails(self, story: Story, seed_count: int) -> bool:
        for seed in dict.fromkeys((self.best.story.seed, *range(1, seed_count))):
            if self.tries >= self._tries_max:
                return False
            self.tries += 1
            result = run_story(replace(story, seed=seed), self._planted)
            if result.words & self._words:
                self.best = result
                return True
        return False


def smaller(story: Story) -> Iterator[Story]:
    """Stories that are a step smaller, the largest steps first."""
    numbers = range(len(story.clients))
    if story.messages // 2 >= MESSAGES_MIN:
        yield replace(story, messages=story.messages // 2)
    for count in (len(numbers) // 2, len(numbers) // 4):
        if count > 1:
            for start in range(0, len(numbers), count):
                yield without(story, clients=set(range(start, start + count)))
    if len(story.nodes) > 1:
        for node in story.nodes:
            yield without(story, node=node)
    for index in range(len(story.events)):
        events = story.events[:index] + story.events[index + 1 :]
        yield replace(story, events=events)
    for number in numbers:
        yield without(story, clients={number})


def without(story: Story, *, clients: AbstractSet[int] = frozenset(), node: str = "") -> Story:
    """Leave clients out, by their index, and a node with its own; and what was done to them."""
    gone = set(clients)
    gone |= {index for index, one in enumerate(story.clients) if one.node == node}
    kept = [index for index in range(len(story.clients)) if index not in gone]
    names = {f"client-{index + 1}": f"client-{number}" for number, index in enumerate(kept, 1)}
    names |= {one: one for one in story.nodes if one != node}
    # A second backup may be left out; without primary, or only backup, the pair goes with it.
    left = (tuple(one for one in pair if one != node) for pair in story.pairs)
    firsts = {one[0] for one in story.pairs}
    pairs = tuple(one for one in left if one[0] in firsts and len(one) > 2)
    names |= {store_of(one[0]): store_of(one[0]) for one in pairs}
    events = tuple(
        replace(one, targets=tuple(names[target] for target in one.targets))
        for one in story.events
        if all(target in names for target in one.targets)
    )
    return replace(
        story,
        nodes=tuple(one for one in story.nodes if one != node),
        pairs=pairs,
        later=tuple(one for one in story.later if one != node),
        clients=tuple(story.clients[index] for index in kept),
        events=events,
    )
