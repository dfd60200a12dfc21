"""A selector ready for use."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.selector.equality import equality_of, is_equality
from broker.selector.evaluate import compile_condition
from broker.selector.lexer import SelectorError
from broker.selector.parser import parse_tree
from broker.selector.values import EvaluationError

if TYPE_CHECKING:
    from broker.selector.equality import Equality
    from broker.selector.evaluate import Condition
    from broker.selector.values import SupportsProperties

__all__ = ["Filter", "parse", "prefixes"]

log = logging.getLogger("broker.selector")

# SelectorParser of Artemis; they may be repeated, the last of a pair counts.
CONVERT: Final = "convert_string_expressions:"
NO_CONVERT: Final = "no_convert_string_expressions:"
HYPHENATED: Final = "hyphenated_props:"
NO_HYPHENATED: Final = "no_hyphenated_props:"

# What a client may send as a selector: longer ones cost time with every message.
TEXT_SIZE_MAX: Final = 64 * 1024


class Filter:
    """Which messages somebody wants. Immutable; equal to another of the same text.

    Attributes:
        text: the selector as it was given, without space around it.
        equality: a condition without which it does not match, for look-ups.
        is_equality: it is that condition and nothing more.
    """

    __slots__ = ("__weakref__", "_condition", "_is_warned", "equality", "is_equality", "text")

    def __init__(
        self,
        text: str,
        condition: Condition,
        equality: Equality | None = None,
        *,
        is_equality: bool = False,
    ) -> None:
        self.text = text
        self.equality = equality
        self.is_equality = is_equality
        self._condition = condition
        self._is_warned = False

    def matches(self, message: SupportsProperties) -> bool:
        """Whether the selector is true of a message: neither false nor unknown.

        An operation on values that it is not made for (`name * 2` of a text) makes it false; the
        first time it is logged.
        """
        try:
            return self._condition(message) is True
        except EvaluationError as error:
            if not self._is_warned:
                self._is_warned = True
                log.warning("the selector %s cannot be evaluated: %s", self.text, error)
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Filter({self.text!r})"


def parse(text: str | None) -> Filter | None:
    """The filter of a selector; None for none, or an empty one.

    Raises:
        SelectorError: no selector; one line with the place.

    >>> parse("colour = 'red")
    Traceback (most recent call last):
    broker.selector.lexer.SelectorError: selector, character 10: a quote without its end: 'red
    """
    text = (text or "").strip()
    if not text:
        return None
    if len(text) > TEXT_SIZE_MAX:
        raise SelectorError(f"it has more than {TEXT_SIZE_MAX} characters", TEXT_SIZE_MAX)
    start, convert, hyphenated = prefixes(text)
    tree = parse_tree(text, start=start, hyphenated=hyphenated)
    try:
        condition = compile_condition(tree, convert=convert)
    except SelectorError:
        raise
    except ValueError as error:
        raise SelectorError(str(error), start) from None
    # Where texts are read as numbers, more than one value of a message is equal to a constant.
    equality = None if convert else equality_of(tree)
    return Filter(text, condition, equality, is_equality=equality is not None and is_equality(tree))


def prefixes(text: str) -> tuple[int, bool, bool]:
    """Where the selector begins, whether texts become numbers, whether names have hyphens."""
    at = 0
    convert = hyphenated = False
    while True:
        if text.startswith(CONVERT, at):
            convert, at = True, at + len(CONVERT)
        elif text.startswith(NO_CONVERT, at):
            convert, at = False, at + len(NO_CONVERT)
        elif text.startswith(HYPHENATED, at):
            hyphenated, at = True, at + len(HYPHENATED)
        elif text.startswith(NO_HYPHENATED, at):
            hyphenated, at = False, at + len(NO_HYPHENATED)
        else:
            return at, convert, hyphenated
