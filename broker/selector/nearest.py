"""Which of several selectors comes nearest to a message, and which part of it does not match.

The parts of a selector are what AND joins. Where OR joins alternatives, the nearest of them counts.
The nearest selector is the one with the fewest parts that do not match, then the one with the most
that do.

Threads: any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.selector.evaluate import compile_condition
from broker.selector.filter import prefixes
from broker.selector.headers import fetcher
from broker.selector.node_text import names_in, node_text, value_text
from broker.selector.parser import parse_tree
from broker.selector.tree import And, Or
from broker.selector.values import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.selector.tree import Node
    from broker.selector.values import SupportsProperties

__all__ = ["Comparison", "Failure", "compare_selector", "nearest"]

# Of a value that is shown.
_VALUE_SIZE_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of a selector that is not true of a message.

    Attributes:
        text: of the part.
        values: what the message has of each name in it, as a selector writes it.
    """

    text: str
    values: dict[str, str]

    def __str__(self) -> str:
        has = ", ".join(f"{name} is {value}" for name, value in self.values.items())
        return f"{self.text} ({has})" if has else self.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """How near a selector comes to a message.

    Attributes:
        selector: its text.
        matched_count: parts that are true.
        failures: parts that are not.
    """

    selector: str
    matched_count: int
    failures: tuple[Failure, ...]

    @property
    def distance(self) -> tuple[int, int]:
        """Lower is nearer."""
        return len(self.failures), -self.matched_count


def nearest(selectors: Iterable[str], message: SupportsProperties) -> Comparison | None:
    """Give the selector that comes nearest; None for none. The first of equally near ones.

    Args:
        selectors: texts that were parsed before.
        message: to compare.

    Raises:
        SelectorError: one is not a selector.
    """
    compared = [compare_selector(one, message) for one in dict.fromkeys(selectors)]
    return min(compared, key=lambda one: one.distance, default=None)


def compare_selector(text: str, message: SupportsProperties) -> Comparison:
    """Say which parts of a selector are true of a message, and which are not.

    Raises:
        SelectorError: the text is not a selector.
    """
    text = text.strip()
    start, convert, hyphenated = prefixes(text)
    tree = parse_tree(text, start=start, hyphenated=hyphenated)
    matched_count, failures = _compare(tree, message, convert=convert)
    return Comparison(text, matched_count, failures)


def _compare(
    node: Node, message: SupportsProperties, *, convert: bool
) -> tuple[int, tuple[Failure, ...]]:
    if isinstance(node, And):
        parts = [_compare(one, message, convert=convert) for one in node.operands]
        failures = tuple(failure for _, failed in parts for failure in failed)
        return sum(count for count, _ in parts), failures
    if isinstance(node, Or):
        ways = [_compare(one, message, convert=convert) for one in node.operands]
        return min(ways, key=lambda way: (len(way[1]), -way[0]))
    try:
        if compile_condition(node, convert=convert)(message) is True:
            return 1, ()
    except EvaluationError:
        # An operation on values that it is not made for: the selector is false then.
        pass
    values = {name: _shown(name, message) for name in names_in(node)}
    return 0, (Failure(node_text(node), values),)


def _shown(name: str, message: SupportsProperties) -> str:
    value = fetcher(name)(message)
    if value is None:
        return "not set"
    text = value_text(value)
    return text if len(text) <= _VALUE_SIZE_MAX else text[:_VALUE_SIZE_MAX] + "…"
