"""Filters of a query that a source takes over from Spark: exactly, or not at all.

Spark drops a filter from its own plan once a source has taken it, so a test here gives what the
comparison gives in SQL: a null fits no test. What is not taken is left to Spark, whole.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql.datasource import Filter

__all__ = ["LONG_MAX", "LONG_MIN", "Conditions", "Wanted"]

LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1

_COMPARISONS: Final[dict[str, tuple[str, Callable[[Any, Any], bool]]]] = {
    # By the name of Spark's class.
    "EqualTo": ("=", operator.eq),
    "EqualNullSafe": ("=", operator.eq),
    "GreaterThan": (">", operator.gt),
    "GreaterThanOrEqual": (">=", operator.ge),
    "LessThan": ("<", operator.lt),
    "LessThanOrEqual": ("<=", operator.le),
    "In": ("in", lambda value, values: value in values),
}
_BY_SIGN: Final = dict(_COMPARISONS.values())


@dataclass(slots=True)
class Conditions:
    """What the values of one column must pass.

    Attributes:
        tests: pairs of a sign and a value; none at all asks only that there is a value.
    """

    tests: list[tuple[str, Any]] = field(default_factory=list)

    def fits(self, value: Any) -> bool:  # noqa: ANN401 - of any column.
        """Whether a row with this value is wanted; never if it is None.

        >>> Conditions([(">", 3), ("in", (4, 5))]).fits(5), Conditions().fits(None)
        (True, False)
        """
        return value is not None and all(_BY_SIGN[sign](value, other) for sign, other in self.tests)

    def integers(self) -> tuple[int, int]:
        """The least and the greatest 64-bit integer that can fit; where none does, any two.

        >>> Conditions([(">", 3), ("<=", 9)]).integers()
        (4, 9)
        """
        least, greatest = LONG_MIN, LONG_MAX
        for sign, value in self.tests:
            lowest, highest = (min(value), max(value)) if sign == "in" else (value, value)
            if sign in ("=", "in", ">="):
                least = max(least, lowest)
            if sign in ("=", "in", "<="):
                greatest = min(greatest, highest)
            if sign == ">":
                least = max(least, value + 1)
            if sign == "<":
                greatest = min(greatest, value - 1)
        return min(least, LONG_MAX), max(greatest, LONG_MIN)


class Wanted:
    """Conditions by column, filled from a query's filters. Pickled with the reader that has it.

    Args:
        types: of the columns that can be tested, and the type that their values must be compared
            with.
    """

    def __init__(self, types: Mapping[str, type]) -> None:
        self._types = dict(types)
        self._tests: dict[str, Conditions] = {}

    def take(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Take what can be taken; give the others."""
        for one in filters:
            if not self._take(one):
                yield one

    def _take(self, one: Filter) -> bool:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        name = attribute[0] if len(attribute) == 1 else ""
        wanted = self._types.get(name)
        kind = type(one).__name__
        if wanted is None:
            return False
        if kind == "IsNotNull":
            self._tests.setdefault(name, Conditions())
            return True
        if kind not in _COMPARISONS:
            return False
        value: Any = getattr(one, "value", None)
        if kind == "In":
            # A null among them never fits, and makes nothing else fit.
            value = tuple(item for item in value if item is not None)
            if not value or not all(type(item) is wanted for item in value):
                return False
        elif type(value) is not wanted:
            return False
        self._tests.setdefault(name, Conditions()).tests.append((_COMPARISONS[kind][0], value))
        return True

    def get(self, name: str) -> Conditions | None:
        """The tests of a column; None where any value, and none, is wanted."""
        return self._tests.get(name)

    def fits(self, **values: Any) -> bool:  # noqa: ANN401 - of any column.
        """Whether a row with these values, as far as they are tested, is wanted."""
        return all(
            name not in self._tests or self._tests[name].fits(value)
            for name, value in values.items()
        )
