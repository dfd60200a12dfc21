"""Writes a selector's tree as text again, for people: the parts of a selector that do not match."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    Not,
    Or,
    XPath,
    XQuery,
)

if TYPE_CHECKING:
    from broker.selector.tree import Node
    from broker.selector.values import Value

__all__ = ["names_in", "node_text", "value_text"]


def value_text(value: Value) -> str:
    """Give a value as a selector writes it.

    >>> value_text(None), value_text((10, "it's")), value_text((0, True)), value_text((5, 7))
    ('NULL', "'it''s'", 'TRUE', '7')
    """
    if value is None:
        return "NULL"
    content = value[1]
    if isinstance(content, bool):
        return "TRUE" if content else "FALSE"
    if isinstance(content, str):
        return _quoted(content)
    return str(content)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def node_text(node: Node) -> str:
    """Give the text of a part of a selector; parentheses stand where they are needed."""
    match node:
        case And(operands):
            return " AND ".join(_inner(one, Or) for one in operands)
        case Or(operands):
            return " OR ".join(node_text(one) for one in operands)
        case Not(Compare("=", left, right)):
            return f"{_inner(left, And, Or)} <> {_inner(right, And, Or)}"
        case Not(IsNull(operand)):
            return f"{_inner(operand, And, Or)} IS NOT NULL"
        case Not(Like(operand, pattern, escape)):
            return _like(operand, pattern, escape, "NOT LIKE")
        case Not(operand):
            return f"NOT ({node_text(operand)})"
        case Compare(sign, left, right) | Arithmetic(sign, left, right):
            # Arithmetic within arithmetic keeps its order by parentheses.
            return (
                f"{_inner(left, And, Or, Arithmetic)} {sign} {_inner(right, And, Or, Arithmetic)}"
            )
        case IsNull(operand):
            return f"{_inner(operand, And, Or)} IS NULL"
        case Like(operand, pattern, escape):
            return _like(operand, pattern, escape, "LIKE")
        case In(operand, texts, negated):
            listed = ", ".join(map(_quoted, sorted(texts)))
            return f"{operand.name} {'NOT IN' if negated else 'IN'} ({listed})"
        case XPath(text):
            return f"XPATH {_quoted(text)}"
        case XQuery(text):
            return f"XQUERY {_quoted(text)}"
        case BooleanCast(operand):
            return operand.name
        case Negate(operand):
            return f"-{_inner(operand, And, Or, Arithmetic)}"
        case Identifier(name):
            return name
        case Literal(value):
            return value_text(value)


def _inner(node: Node, *kinds: type) -> str:
    text = node_text(node)
    return f"({text})" if isinstance(node, kinds) else text


def _like(operand: Node, pattern: str, escape: str, verb: str) -> str:
    text = f"{_inner(operand, And, Or)} {verb} {_quoted(pattern)}"
    return f"{text} ESCAPE {_quoted(escape)}" if escape else text


def names_in(node: Node) -> list[str]:
    """Give the headers and properties that a part of a selector reads, each once, in order."""
    found: dict[str, None] = {}
    _collect(node, found)
    return list(found)


def _collect(node: Node, found: dict[str, None]) -> None:
    match node:
        case Identifier(name):
            found[name] = None
        case And(operands) | Or(operands):
            for one in operands:
                _collect(one, found)
        case Compare(_, left, right) | Arithmetic(_, left, right):
            _collect(left, found)
            _collect(right, found)
        case (
            Not(operand)
            | IsNull(operand)
            | Negate(operand)
            | Like(operand)
            | In(operand)
            | BooleanCast(operand)
        ):
            _collect(operand, found)
