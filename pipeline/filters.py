"""Filters of a query that a source takes over from Spark: exactly, or not at all.

Spark drops a filter from its own plan once a source has taken it, so a test here gives what the
comparison gives in SQL: a null fits no test. What is not taken is left to Spark, whole.
"""

from __future__ import annotations

import contextlib
import operator
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

from journal.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql.datasource import Filter

    from pipeline.columns import Column

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

    def take_text(self, text: str) -> None:
        """Take conditions as SQL writes them: `kind = 'add' AND record_id IN (3, 4)`.

        Raises:
            OptionError: it is more than comparisons of a column with a constant, joined by AND; or
                of a column whose rows would have to be read for that.
        """
        for name, sign, value in _Text(text, self._types).conditions():
            tests = self._tests.setdefault(name, Conditions()).tests
            if sign:
                tests.append((sign, value))

    def get(self, name: str) -> Conditions | None:
        """The tests of a column; None where any value, and none, is wanted."""
        return self._tests.get(name)

    def tested(self, columns: Iterable[Column], names: Iterable[str]) -> list[Column]:
        """Those of the columns that have such a name and are tested."""
        return [one for one in columns if one.name in names and one.name in self._tests]

    def fits(self, **values: Any) -> bool:  # noqa: ANN401 - of any column.
        """Whether a row with these values, as far as they are tested, is wanted."""
        return all(
            name not in self._tests or self._tests[name].fits(value)
            for name, value in values.items()
        )


class _Text:
    """Reads the text of conditions.

    Args:
        text: see Wanted.take_text().
        types: of the columns that can be tested.
    """

    def __init__(self, text: str, types: Mapping[str, type]) -> None:
        self._text = text
        self._types = types
        self._tokens: list[str] = _TOKENS.findall(text)
        self._at = 0

    def conditions(self) -> Iterator[tuple[str, str, Any]]:
        """Give name, sign and value of each; of IS NOT NULL the sign is empty."""
        while True:
            yield from self._condition()
            if self._at == len(self._tokens):
                return
            self._expect("AND")

    def _condition(self) -> Iterator[tuple[str, str, Any]]:
        name = self._next().strip("`")
        if name not in self._types:
            self._refuse(f"no condition on {name!r}; there are those on: {', '.join(self._types)}")
        sign = self._next().upper()
        if sign == "IS":
            self._expect("NOT")
            self._expect("NULL")
            yield name, "", None
        elif sign == "IN":
            self._expect("(")
            values = [self._value(name)]
            while (word := self._next()) == ",":
                values.append(self._value(name))
            if word != ")":
                self._refuse(f"{word!r} where , or ) is expected")
            yield name, "in", tuple(values)
        elif sign == "BETWEEN":
            yield name, ">=", self._value(name)
            self._expect("AND")
            yield name, "<=", self._value(name)
        elif sign in _BY_SIGN:
            yield name, sign, self._value(name)
        else:
            self._refuse(f"{sign!r} behind {name}: it must be {_SIGNS}")

    def _value(self, name: str) -> Any:  # noqa: ANN401 - of any column.
        word, wanted = self._next(), self._types[name]
        is_text = word.startswith("'") and word.endswith("'") and len(word) > 1
        text = word[1:-1].replace("''", "'")
        if wanted is int and _INTEGER.fullmatch(word) and LONG_MIN <= int(word) <= LONG_MAX:
            return int(word)
        if wanted is str and is_text:
            return text
        if wanted is datetime and is_text:
            with contextlib.suppress(ValueError):
                time = datetime.fromisoformat(text)
                if time.tzinfo is None:
                    return time
        return self._refuse(f"{word}: {name} is compared with {_KINDS[wanted]}")

    def _next(self) -> str:
        if self._at == len(self._tokens):
            self._refuse("something is missing at its end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, wanted: str) -> None:
        word = self._next()
        if word.upper() != wanted:
            self._refuse(f"{word!r} where {wanted} is expected")

    def _refuse(self, reason: str) -> NoReturn:
        raise OptionError(f"where={self._text!r}: {reason}")


# Texts, names and numbers, signs; whatever else there is, character by character.
_TOKENS: Final = re.compile(r"'(?:[^']|'')*'|`\w+`|-?\w+|<=|>=|[^\s\w]")
_INTEGER: Final = re.compile(r"-?\d{1,19}")
_SIGNS: Final = "one of =, <, <=, >, >=, IN, BETWEEN, IS NOT NULL"
_KINDS: Final = {
    int: "a whole number of 64 bits",
    str: "a text, as 'add'",
    datetime: "a local time, as '2026-11-21T18:00:00'",
}
