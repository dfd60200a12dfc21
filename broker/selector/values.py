"""Values as Java has them: with a type each, compared and calculated by its rules.

A value is a pair of type and content, NULL is None. Types are those of properties; BIG is a whole
number of a selector's text that no type of a property can hold.

    left, right          byte short int long float double
    byte                 =    ↑     ↑   ↑    ↑     ↑         ↑ compared as the wider type
    short                ✗    =     ↑   ↑    ↑     ↑         ✗ not comparable: FALSE
    int                  ✗    ✗     =   ↑    ↑     ↑
    long                 ✗    ✗     ↑   =    ↑     ↑
    float                ✗    ✗     ↑   ↑    =     ↑
    double               ✗    ✗     ↑   ↑    ↑     =

That `5 = shortProperty` is FALSE where `shortProperty = 5` is TRUE is Artemis's rule
(ComparisonExpression.compare), and messages must go to the same queues here as there.
"""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from broker.model.java_text import double_text, float_text
from broker.model.properties import Property, PropertyType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "BIG",
    "EvaluationError",
    "SupportsProperties",
    "Value",
    "calculate",
    "compare",
    "negate",
]

Value: TypeAlias = "tuple[int, Any] | None"

BIG: Final = 12
INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

_BOOLEAN, _BYTE, _BYTES, _SHORT = (
    PropertyType.BOOLEAN,
    PropertyType.BYTE,
    PropertyType.BYTES,
    PropertyType.SHORT,
)
_INT, _LONG, _FLOAT, _DOUBLE = (
    PropertyType.INT,
    PropertyType.LONG,
    PropertyType.FLOAT,
    PropertyType.DOUBLE,
)
_STRING: Final = PropertyType.STRING

# In the order of their width.
_NUMBERS: Final = (_BYTE, _SHORT, _INT, _LONG, _FLOAT, _DOUBLE)
_WHOLE_RANGES: Final = {
    _BYTE: (-128, 127),
    _SHORT: (-32768, 32767),
    _INT: (INT_MIN, INT_MAX),
    _LONG: (LONG_MIN, LONG_MAX),
}
# What two unlike numbers are compared as; a pair that is not here is not comparable.
_PROMOTED: Final[Mapping[tuple[int, int], int]] = {
    **{
        (left, right): right
        for index, left in enumerate(_NUMBERS)
        for right in _NUMBERS[index + 1 :]
    },
    (_LONG, _INT): _LONG,
    (_FLOAT, _INT): _FLOAT,
    (_FLOAT, _LONG): _FLOAT,
    (_DOUBLE, _INT): _DOUBLE,
    (_DOUBLE, _LONG): _DOUBLE,
    (_DOUBLE, _FLOAT): _DOUBLE,
}
# Double.valueOf without the hexadecimal form.
_FLOAT_TEXT: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[fd]?)", re.IGNORECASE | re.ASCII
)
_WHOLE_TEXT: Final = re.compile(r"[+-]?\d+", re.ASCII)


class EvaluationError(Exception):
    """An operation on values that it is not made for: the message does not match."""


class SupportsProperties(Protocol):
    """What a selector asks of a message; `broker.model.message.Message` has it."""

    @property
    def address(self) -> str | None:
        """Where it was sent."""

    @property
    def type(self) -> int:
        """A MessageType."""

    @property
    def durable(self) -> bool:
        """Whether it survives a restart."""

    @property
    def priority(self) -> int:
        """0 … 9."""

    @property
    def expiration(self) -> int:
        """Milliseconds since 1970, 0 is never."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""

    @property
    def user_id(self) -> bytes | None:
        """16 bytes."""

    @property
    def encoded_size(self) -> int:
        """Bytes."""

    @property
    def body(self) -> memoryview:
        """The body's bytes."""

    @property
    def properties(self) -> Mapping[str, Property]:
        """By name."""

    def get(self, name: str) -> object:
        """The value of a property, None where there is none; cheap where there is none."""

    def typed(self, name: str) -> Value:
        """The same with its type; None where it is null or missing."""


def compare(left: tuple[int, Any], right: tuple[int, Any], *, convert: bool) -> int | None:
    """-1, 0 or 1; None where the two are not comparable.

    Args:
        left: not NULL.
        right: not NULL.
        convert: a text is read as the other side's type, and not comparable if it is none.

    Raises:
        EvaluationError: bytes have no order.
    """
    left_type, left_value = left
    right_type, right_value = right
    if _BYTES in (left_type, right_type):
        raise EvaluationError("bytes have no order")
    if left_type != right_type:
        target = _PROMOTED.get((left_type, right_type))
        if target is None:
            if not convert or (left_type != _STRING and right_type != _STRING):
                return None
            target = right_type if left_type == _STRING else left_type
            left_value = _converted(left, target)
            right_value = _converted(right, target)
            if left_value is None or right_value is None:
                return None
        elif target >= _FLOAT:
            left_value = _as_floating(left_value, target)
            right_value = _as_floating(right_value, target)
        left_type = target
    if left_type in (_FLOAT, _DOUBLE):
        return _compare_floating(left_value, right_value)
    return int(left_value > right_value) - int(left_value < right_value)


def _compare_floating(left: float, right: float) -> int:
    """Double.compareTo: NaN equals itself and is above all, -0.0 is below 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    left_key = (math.isnan(left), math.copysign(1, left) if left == 0 else 0)
    right_key = (math.isnan(right), math.copysign(1, right) if right == 0 else 0)
    return int(left_key > right_key) - int(left_key < right_key)


def _as_floating(value: float, target: int) -> float:
    if target == _DOUBLE:
        return float(value)
    return float(struct.unpack(">f", struct.pack(">f", value))[0])


def _converted(value: tuple[int, Any], target: int) -> object | None:
    """A text as the target's type, None if it is none; anything else as it is."""
    if value[0] != _STRING:
        return value[1] if value[0] == target else None
    text = str(value[1])
    if target == _BOOLEAN:
        return text.lower() == "true"
    if target in (_FLOAT, _DOUBLE):
        text = text.strip()
        if not _FLOAT_TEXT.fullmatch(text):
            return None
        try:
            return _as_floating(float(text.rstrip("fFdD")), target)
        except OverflowError:
            return math.copysign(math.inf, float(text.rstrip("fFdD")))
    if target not in _WHOLE_RANGES or not _WHOLE_TEXT.fullmatch(text) or len(text) > 20:
        return None
    low, high = _WHOLE_RANGES[PropertyType(target)]
    number = int(text)
    return number if low <= number <= high else None


def calculate(
    sign: str, left: tuple[int, Any], right: tuple[int, Any], *, convert: bool
) -> tuple[int, Any]:
    """The result of + - * / % on two values that are not NULL.

    Whole numbers wrap around at 32 bits, or at 64 where one is a long; `/` and `%` give doubles;
    `+` behind a text joins.

    Raises:
        EvaluationError: one of them is not a number.

    >>> calculate("/", (PropertyType.INT, 5), (PropertyType.INT, 2), convert=False)[1]
    2.5
    """
    if sign == "+" and left[0] == _STRING:
        return _STRING, left[1] + _text(right)
    left = _number(left, convert=convert)
    right = _number(right, convert=convert)
    if sign == "/":
        return _DOUBLE, _divide(float(left[1]), float(right[1]))
    if sign == "%":
        return _DOUBLE, _remainder(float(left[1]), float(right[1]))
    if left[0] in (_FLOAT, _DOUBLE) or right[0] in (_FLOAT, _DOUBLE):
        # Python's own + - * of floats are IEEE's, without an exception.
        return _DOUBLE, _OPERATIONS[sign](float(left[1]), float(right[1]))
    bits = 64 if _LONG in (left[0], right[0]) else 32
    result = _OPERATIONS[sign](_wrapped(left[1], bits), _wrapped(right[1], bits))
    return (_LONG if bits == 64 else _INT), _wrapped(int(result), bits)


_OPERATIONS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}


def negate(value: tuple[int, Any]) -> Value:
    """A number with the other sign; NULL for what is not a number.

    Raises:
        EvaluationError: a byte or short, which Artemis cannot negate.
    """
    kind, number = value
    if kind == _INT:
        return _INT, _wrapped(-number, 32)
    if kind == _LONG:
        return _LONG, _wrapped(-number, 64)
    if kind in (_FLOAT, _DOUBLE):
        return kind, -number
    if kind == BIG:
        # The one number whose positive form is not a long.
        return (_LONG, LONG_MIN) if number == -LONG_MIN else (BIG, -number)
    if kind in (_BYTE, _SHORT):
        raise EvaluationError("a byte or short has no negation")
    return None


def _number(value: tuple[int, Any], *, convert: bool) -> tuple[int, Any]:
    if value[0] in _NUMBERS or value[0] == BIG:
        return value
    if convert and value[0] == _STRING:
        target = _DOUBLE if "." in value[1] else _LONG
        number = _converted(value, target)
        if number is not None:
            return target, number
    raise EvaluationError("a value that is not a number")


def _wrapped(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _remainder(left: float, right: float) -> float:
    if not right or math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _text(value: tuple[int, Any]) -> str:
    """As Java's + writes it behind a text."""
    kind, content = value
    if kind == _BOOLEAN:
        return "true" if content else "false"
    if kind == _DOUBLE:
        return double_text(content)
    if kind == _FLOAT:
        return float_text(content)
    if kind == _BYTES:
        raise EvaluationError("bytes are not text")
    return str(content)
