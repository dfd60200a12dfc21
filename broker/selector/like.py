"""LIKE without a regular expression's backtracking: time is bounded by text × pattern.

A pattern is cut at its `%`. The first and the last piece stand at the ends of the text. Each one
between is looked for behind the one before, at the first place: a later one would leave less room
for the rest and could not help. A client chooses both the pattern and the text, and the broker has
one thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compile_like"]


def compile_like(pattern: str, escape: str = "") -> Callable[[str], bool]:
    """A function that says whether a text is like the pattern.

    Args:
        pattern: `%` is any run of characters, `_` one character.
        escape: one character or none; before `%`, `_` or itself it makes that one literal,
            elsewhere it is a character.

    >>> compile_like("a!_%", "!")("a_b"), compile_like("a_c%e")("abcde"), compile_like("%b")("bc")
    (True, True, False)
    """
    pieces = _pieces(pattern, escape)
    if len(pieces) == 1:
        whole = pieces[0]
        return lambda text: whole.fullmatch(text) is not None
    first, *middle, last = pieces
    # Pieces have a fixed length: `.` is one character, the rest literal.
    last_size = _size(pattern, escape)

    def is_like(text: str) -> bool:
        match = first.match(text)
        if match is None:
            return False
        at = match.end()
        end = len(text) - last_size
        for piece in middle:
            match = piece.search(text, at)
            if match is None:
                return False
            at = match.end()
        return at <= end and last.fullmatch(text, end) is not None

    return is_like


def _units(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """The characters of a pattern, and whether each is literal."""
    units = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        following = pattern[at + 1 : at + 2]
        if character == escape and following and following in ("%", "_", escape):
            units.append((following, True))
            at += 2
        else:
            units.append((character, character not in "%_"))
            at += 1
    return units


def _pieces(pattern: str, escape: str) -> list[re.Pattern[str]]:
    texts = [""]
    for character, is_literal in _units(pattern, escape):
        if is_literal:
            texts[-1] += re.escape(character)
        elif character == "_":
            texts[-1] += "."
        else:
            texts.append("")
    return [re.compile(text, re.DOTALL) for text in texts]


def _size(pattern: str, escape: str) -> int:
    """Characters behind the last `%`."""
    size = 0
    for unit in reversed(_units(pattern, escape)):
        if unit == ("%", False):
            break
        size += 1
    return size
