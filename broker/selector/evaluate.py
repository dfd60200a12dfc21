"""From the tree of a selector to one function of a message.

Conditions give True, False or None (unknown), values a pair of type and content or None (NULL).
Everything that the text alone decides is decided here, once; most selectors compare a name with a
constant, which has functions of its own.

    AND   False if any is False, else None if any is None        NOT None = None
    OR    True if any is True, else None if any is None
    =     None on the left: None, but True if both are; None on the right alone: False
    < >   None if any side is None
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from broker.model.properties import PropertyType
from broker.selector.headers import fetcher
from broker.selector.like import compile_like
from broker.selector.tree import (
    And,
    Arithmetic,
    BooleanCast,
    Compare,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Node,
    Not,
    Or,
    XPath,
    XQuery,
)
from broker.selector.values import (
    EvaluationError,
    SupportsProperties,
    Value,
    calculate,
    compare,
    negate,
)
from broker.selector.xpath import compile_xpath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Condition", "compile_condition"]

Condition: TypeAlias = "Callable[[SupportsProperties], bool | None]"
Fetch: TypeAlias = "Callable[[SupportsProperties], Value]"

_BOOLEAN: Final = PropertyType.BOOLEAN
_STRING: Final = PropertyType.STRING
_ORDERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def compile_condition(node: Node, *, convert: bool = False) -> Condition:
    """The function of a condition; raises EvaluationError where the values make no sense.

    Args:
        node: a condition, see `tree.is_boolean`.
        convert: texts are read as numbers where they meet numbers.

    Raises:
        ValueError: an XPATH in it is none.
    """
    return _Compiler(convert=convert).condition(node)


class _Compiler:
    def __init__(self, *, convert: bool) -> None:
        self.convert = convert

    def condition(self, node: Node) -> Condition:
        match node:
            case And(operands):
                return _all(tuple(map(self.condition, operands)))
            case Or(operands):
                return _any(tuple(map(self.condition, operands)))
            case Not(operand):
                return _not(self.condition(operand))
            case Compare(sign, Identifier(name), Literal((kind, text))) if (
                sign == "=" and kind == _STRING and not self.convert
            ):
                return _equals_text(fetcher(name), text)
            case Compare("=", left, right):
                return self.equal(self.value(left), self.value(right))
            case Compare(sign, left, right):
                return self.order(sign, self.value(left), self.value(right))
            case IsNull(operand):
                fetch = self.value(operand)
                return lambda message: fetch(message) is None
            case Like(operand, pattern, escape):
                return _like(self.value(operand), compile_like(pattern, escape))
            case In(operand, texts, negated):
                return _in(fetcher(operand.name), texts, negated)
            case BooleanCast(operand):
                return _cast(fetcher(operand.name))
            case XPath(text):
                return compile_xpath(text)
            case XQuery():
                return lambda message: False
            case Literal(value):
                constant = None if value is None else bool(value[1])
                return lambda message: constant
        raise AssertionError(f"{node} is not a condition")

    def value(self, node: Node) -> Fetch:
        match node:
            case Literal(value):
                return lambda message: value
            case Identifier(name):
                return fetcher(name)
            case Negate(Literal(value)) if value is not None:
                # `-5` once, not with every message.
                try:
                    constant = negate(value)
                except EvaluationError:
                    raise AssertionError("no text makes a byte or short") from None
                return lambda message: constant
            case Negate(operand):
                fetch = self.value(operand)
                return lambda message: None if (found := fetch(message)) is None else negate(found)
            case Arithmetic(sign, left, right):
                return self.arithmetic(sign, self.value(left), self.value(right))
        condition = self.condition(node)
        return lambda message: None if (found := condition(message)) is None else (_BOOLEAN, found)

    def arithmetic(self, sign: str, left: Fetch, right: Fetch) -> Fetch:
        convert = self.convert

        def result(message: SupportsProperties) -> Value:
            left_value = left(message)
            if left_value is None:
                return None
            right_value = right(message)
            if right_value is None:
                return None
            return calculate(sign, left_value, right_value, convert=convert)

        return result

    def equal(self, left: Fetch, right: Fetch) -> Condition:
        convert = self.convert

        def is_equal(message: SupportsProperties) -> bool | None:
            left_value = left(message)
            right_value = right(message)
            if left_value is None:
                return True if right_value is None else None
            if right_value is None or PropertyType.BYTES in (left_value[0], right_value[0]):
                return False
            return compare(left_value, right_value, convert=convert) == 0

        return is_equal

    def order(self, sign: str, left: Fetch, right: Fetch) -> Condition:
        convert = self.convert
        holds = _ORDERS[sign]

        def is_in_order(message: SupportsProperties) -> bool | None:
            left_value = left(message)
            if left_value is None:
                return None
            right_value = right(message)
            if right_value is None:
                return None
            result = compare(left_value, right_value, convert=convert)
            return result is not None and holds(result, 0)

        return is_in_order


def _all(conditions: tuple[Condition, ...]) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        outcome: bool | None = True
        for condition in conditions:
            found = condition(message)
            if found is None:
                outcome = None
            elif not found:
                return False
        return outcome

    return holds


def _any(conditions: tuple[Condition, ...]) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        outcome: bool | None = False
        for condition in conditions:
            found = condition(message)
            if found:
                return True
            if found is None:
                outcome = None
        return outcome

    return holds


def _not(condition: Condition) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        found = condition(message)
        return None if found is None else not found

    return holds


def _equals_text(fetch: Fetch, text: Any) -> Condition:  # noqa: ANN401 - a value's content.
    wanted = (_STRING, text)

    def is_equal(message: SupportsProperties) -> bool | None:
        found = fetch(message)
        return None if found is None else found == wanted

    return is_equal


def _like(fetch: Fetch, is_like: Callable[[str], bool]) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        found = fetch(message)
        if found is None:
            return None
        return found[0] == _STRING and is_like(found[1])

    return holds


def _in(fetch: Fetch, texts: frozenset[str], negated: bool) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        found = fetch(message)
        if found is None or found[0] != _STRING:
            return None
        return (found[1] in texts) != negated

    return holds


def _cast(fetch: Fetch) -> Condition:
    def holds(message: SupportsProperties) -> bool | None:
        found = fetch(message)
        if found is None:
            return None
        return found[0] == _BOOLEAN and bool(found[1])

    return holds
