"""Which of several brokers the next connection goes to.

A policy is anything with `select(count)`; an application may bring its own, as an object or by the
name of its class in a URI: `package.module:Class`. Artemis's class names, as they stand in
connection URIs, name the ones here.
"""

from __future__ import annotations

import importlib
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
    """Give a policy by Artemis's class name, with or without its package, or by a Python path.

    Args:
        class_name: as it stands in a URI. `package.module:Class` is imported, and made without
            arguments: who writes the URI decides what runs.
        chance: what it chooses by; None is one of its own.

    Raises:
        ValueError: none of that name.
    """
    if ":" in class_name:
        return _imported(class_name)
    found = _BY_NAME.get(class_name.rpartition(".")[2])
    if found is None:
        known = ", ".join(_BY_NAME)
        raise ValueError(
            f"no balancing policy {class_name!r}; known are {known}, and package.module:Class"
        )
    return found(chance)


def _imported(path: str) -> BalancingPolicy:
    module_name, _, name = path.partition(":")
    try:
        made: BalancingPolicy = getattr(importlib.import_module(module_name), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"balancing policy {path!r}: {error}") from error
    if not callable(getattr(made, "select", None)):
        raise ValueError(f"balancing policy {path!r} has no select(count)")
    return made
