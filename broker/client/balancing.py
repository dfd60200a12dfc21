"""Which of several brokers the next connection goes to.

A policy is anything with `select(count)`; an application may bring its own. Artemis's class
names, as they stand in connection URIs, name the ones here.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class BalancingPolicy(Protocol):
    """Chooses one of several brokers."""

    def select(self, count: int) -> int:
        """Give an index, 0 … count - 1; `count` is at least 1 and may differ each time."""


class RoundRobin:
    """One after the other, from one chosen at random."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._next: int | None = None

    def select(self, count: int) -> int:
        """Give the one behind that of the last time."""
        chosen = self._chance.randrange(count) if self._next is None else self._next % count
        self._next = chosen + 1
        return chosen


class Random:
    """Any, each time anew."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()

    def select(self, count: int) -> int:
        """Give any."""
        return self._chance.randrange(count)


class RandomSticky:
    """Any, and then the same again."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._chosen: int | None = None

    def select(self, count: int) -> int:
        """Give the one of the first time, or another when there are not so many any more."""
        if self._chosen is None or self._chosen >= count:
            self._chosen = self._chance.randrange(count)
        return self._chosen


class FirstElement:
    """Always the first."""

    def select(self, count: int) -> int:
        """Give 0."""
        return 0


_BY_NAME: Final[dict[str, Callable[[random.Random | None], BalancingPolicy]]] = {
    "RoundRobinConnectionLoadBalancingPolicy": RoundRobin,
    "RandomConnectionLoadBalancingPolicy": Random,
    "RandomStickyConnectionLoadBalancingPolicy": RandomSticky,
    "FirstElementConnectionLoadBalancingPolicy": lambda chance: FirstElement(),
}


def policy_named(class_name: str, chance: random.Random | None = None) -> BalancingPolicy:
    """Give a policy by Artemis's class name, with or without its package.

    Args:
        class_name: as it stands in a URI.
        chance: what it chooses by; None is one of its own.

    Raises:
        ValueError: none of that name; one of your own is given as an object.
    """
    found = _BY_NAME.get(class_name.rpartition(".")[2])
    if found is None:
        known = ", ".join(_BY_NAME)
        raise ValueError(f"no balancing policy {class_name!r}; known are {known}")
    return found(chance)
