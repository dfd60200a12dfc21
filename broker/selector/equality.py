"""The `name = value` that a selector requires, so that consumers can be indexed by it.

    name = 'text'            the text
    name = 5                 the number
    … AND name = 'text'      the text; the rest has to be evaluated

A value of a message and a constant that are equal have the same key. The other way round that holds
for texts alone: 5, 5.0 and -0.0 as 0 are equal here and may not be in a selector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.properties import PropertyType
from broker.selector.headers import fetcher
from broker.selector.tree import And, Compare, Identifier, Literal, Node

if TYPE_CHECKING:
    from broker.selector.values import SupportsProperties

__all__ = ["Equality", "equality_of", "is_equality"]

_STRING: Final = PropertyType.STRING
_WHOLE: Final = (PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG)
_FLOATING: Final = (PropertyType.FLOAT, PropertyType.DOUBLE)
# Up to here a float, which it may be compared as, has every whole number.
_NUMBER_MAX: Final = 2**24


class Equality:
    """A name that has to have a value.

    Attributes:
        name: of a property or header.
        key: of the constant.
    """

    __slots__ = ("_fetch", "key", "name")

    def __init__(self, name: str, key: str | int) -> None:
        self.name = name
        self.key = key
        self._fetch = fetcher(name)

    def fetch_key(self, message: SupportsProperties) -> str | int | None:
        """Give the key of a message's value; None where it equals no constant that has one."""
        found = self._fetch(message)
        if found is None:
            return None
        kind, value = found
        if kind == _STRING:
            return str(value)
        if kind in _WHOLE:
            return int(value)
        if kind in _FLOATING and value.is_integer():
            return int(value)
        return None


def equality_of(node: Node) -> Equality | None:
    """Give a condition without which a selector is not true; None where none can be looked up."""
    match node:
        case And(operands):
            found = (equality_of(operand) for operand in operands)
            return next((one for one in found if one is not None), None)
        case Compare("=", Identifier(name), Literal((PropertyType.STRING, text))):
            return Equality(name, text)
        case Compare("=", Identifier(name), Literal((PropertyType.INT, number))) if (
            number <= _NUMBER_MAX
        ):
            return Equality(name, number)
    return None


def is_equality(node: Node) -> bool:
    """Whether a selector is an equality with a text, and nothing more."""
    match node:
        case Compare("=", Identifier(), Literal((PropertyType.STRING, _))):
            return True
    return False
