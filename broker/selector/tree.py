"""A selector as the parser understood it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from broker.selector.values import Value

__all__ = [
    "And",
    "Arithmetic",
    "BooleanCast",
    "Compare",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Negate",
    "Node",
    "Not",
    "Or",
    "XPath",
    "XQuery",
    "is_boolean",
]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` is None for NULL."""

    value: Value


@dataclass(frozen=True, slots=True)
class Identifier:
    """A header or a property by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`sign` is one of + - * / %."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negate:
    """A minus before an expression."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """`sign` is one of = > >= < <=; what is not equal is a Not of it."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the value is NULL."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Like:
    """`escape` is one character or empty."""

    operand: Node
    pattern: str
    escape: str


@dataclass(frozen=True, slots=True)
class In:
    """Whether a text is one of the list, or `negated` none of it."""

    operand: Identifier
    texts: frozenset[str]
    negated: bool


@dataclass(frozen=True, slots=True)
class BooleanCast:
    """A name where a condition is wanted: its value if that is a boolean."""

    operand: Identifier


@dataclass(frozen=True, slots=True)
class Not:
    """The other one; unknown stays unknown."""

    operand: Node


@dataclass(frozen=True, slots=True)
class And:
    """Two conditions or more."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two conditions or more."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class XPath:
    """A condition over a text body that is XML."""

    text: str


@dataclass(frozen=True, slots=True)
class XQuery:
    """Accepted and never true, as in Artemis."""

    text: str


Node: TypeAlias = (
    "Literal | Identifier | Arithmetic | Negate | Compare | IsNull | Like | In | BooleanCast"
    " | Not | And | Or | XPath | XQuery"
)


def is_boolean(node: Node) -> bool:
    """Whether it is a condition; NULL is one too."""
    if isinstance(node, Literal):
        return node.value is None or isinstance(node.value[1], bool)
    return not isinstance(node, Identifier | Arithmetic | Negate)
