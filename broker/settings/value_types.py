"""Types of configured values: how they are written, their units and ranges.

A kind turns the text of an element into a value and checks it; the same check holds for values that
come otherwise, from a client's JSON say. The caller says where the text stood: an error here is a
ValueError that tells only what is wrong with it.

Sizes are in bytes and take K, M, G (powers of 1024, Artemis's ByteUtil.convertTextBytes).
Durations have no suffix in this file: Artemis takes plain numbers, of the unit the element's
name is defined in.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BOOLEAN",
    "DOUBLE",
    "INT",
    "LONG",
    "SIZE",
    "SIZE_INT",
    "TEXT",
    "TEXTS",
    "ValueType",
    "at_least",
    "between",
    "choice",
    "minus_one_or_more_than",
    "power_of_two",
]

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
SIZE_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SIZE_TEXT: Final = re.compile(r"\s*(-?\d+)\s*([kmg]?)i?b?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ValueType(Generic[T]):
    """How a value is read and what it may be.

    Attributes:
        name: for error messages, behind "is not".
        read: the value of a stripped text; raises ValueError.
        is_valid: whether the value, of the right type, is in range.
        range: what the range is, for error messages.
    """

    name: str
    read: Callable[[str], T]
    is_valid: Callable[[T], bool] | None = None
    range: str = ""

    def parse(self, text: str) -> T:
        """The value of a text.

        Raises:
            ValueError: it is none of this kind, or out of range; the text says which.

        >>> SIZE.parse("10M"), INT.parse(" 7 ")
        (10485760, 7)
        """
        text = text.strip()
        try:
            value = self.read(text)
        except ValueError:
            raise ValueError(f"{text!r} is not {self.name}") from None
        return self.check(value)

    def check(self, value: T) -> T:
        """The same value, if it is in range.

        Raises:
            ValueError: it is not.
        """
        if self.is_valid is not None and not self.is_valid(value):
            shown = value.name if isinstance(value, Enum) else value
            raise ValueError(f"{shown} is out of range: {self.range}")
        return value

    def within(self, is_valid: Callable[[T], bool], range_text: str) -> ValueType[T]:
        """The same kind with a range."""
        return ValueType(self.name, self.read, is_valid, range_text)


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _whole(text: str, largest: int) -> int:
    if not re.fullmatch(r"[+-]?\d{1,19}", text, re.ASCII):
        raise ValueError
    value = int(text)
    if not -largest - 1 <= value <= largest:
        raise ValueError
    return value


def _size(text: str) -> int:
    match = SIZE_TEXT.fullmatch(text)
    if match is None:
        raise ValueError
    value = int(match[1]) * SIZE_UNITS[match[2].lower()]
    if abs(value) > LONG_MAX:
        raise ValueError
    return value


def _texts(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


BOOLEAN: Final = ValueType("true or false", _boolean)
INT: Final = ValueType("a whole number of 32 bits", lambda text: _whole(text, INT_MAX))
LONG: Final = ValueType("a whole number of 64 bits", lambda text: _whole(text, LONG_MAX))
SIZE: Final = ValueType("a number of bytes; write 10485760, 10M or 10MiB", _size)
# Artemis narrows these to 32 bits without a word; here more is an error.
SIZE_INT: Final = SIZE.within(lambda value: abs(value) <= INT_MAX, f"at most {INT_MAX} bytes")
DOUBLE: Final = ValueType("a number", float).within(math.isfinite, "a finite number")
TEXT: Final = ValueType("a text", str)
TEXTS: Final = ValueType("a list of texts", _texts)


def choice(values: type[E], *only: E) -> ValueType[E]:
    """A kind whose texts are the names of an enumeration, or of some of its members.

    >>> class Colour(Enum):
    ...     RED = 1
    >>> choice(Colour).parse("RED")
    <Colour.RED: 1>
    """
    members = {member.name: member for member in only or values}

    def read(text: str) -> E:
        try:
            return members[text]
        except KeyError:
            raise ValueError from None

    return ValueType(f"one of {', '.join(members)}", read)


# Artemis's Validators: the same ranges under names that say them.


def at_least(kind: ValueType[T], least: float) -> ValueType[T]:
    """GE_ZERO and its like; `more than 0` of a whole number is `at least 1`."""
    return kind.within(lambda value: value >= least, f"at least {least}")  # type: ignore[operator]


def between(kind: ValueType[T], least: float, most: float) -> ValueType[T]:
    """PERCENTAGE and its like; both ends belong to it."""
    return kind.within(
        lambda value: least <= value <= most,  # type: ignore[operator]
        f"from {least} to {most}",
    )


def minus_one_or_more_than(
    kind: ValueType[int], least: int, *, most: int = LONG_MAX
) -> ValueType[int]:
    """MINUS_ONE_OR_GT_ZERO for 0; MINUS_ONE_OR_GE_ZERO for -1."""
    return kind.within(
        lambda value: value == -1 or least < value <= most,
        f"-1, or more than {least}" + ("" if most == LONG_MAX else f" and at most {most}"),
    )


def power_of_two(kind: ValueType[int]) -> ValueType[int]:
    """POSITIVE_POWER_OF_TWO."""
    return kind.within(lambda value: value > 0 and not value & (value - 1), "a power of two")
