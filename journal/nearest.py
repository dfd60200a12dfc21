"""Suggests the known name closest to a misspelled one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]

# Of difflib's ratio: a name less alike is not a misspelling of the other.
LIKENESS_MIN: Final = 0.7


def nearest(name: str, names: Iterable[str], shown: str = "{!r}") -> str:
    """Text that asks for the name most like this one; empty where none is near.

    Args:
        name: that is not known.
        names: those that are.
        shown: how the name stands in the text.

    >>> nearest("maxtotl", ["maxTotal", "lifo"]), nearest("colour", ["maxTotal", "lifo"])
    ("; did you mean 'maxTotal'?", '')
    """
    by_lower = {one.lower(): one for one in sorted(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, LIKENESS_MIN)
    return f"; did you mean {shown.format(by_lower[found[0]])}?" if found else ""
