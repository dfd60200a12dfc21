"""Suggests the known name closest to a misspelled one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]

LIKENESS_MIN: Final = 0.6


def nearest(name: str, names: Iterable[str]) -> str:
    """Text that asks for the name most like this one; empty where none is near.

    >>> nearest("maxtotl", ["maxTotal", "lifo"]), nearest("colour", ["maxTotal", "lifo"])
    ("; did you mean 'maxTotal'?", '')
    """
    by_lower = {one.lower(): one for one in sorted(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, LIKENESS_MIN)
    return f"; did you mean {by_lower[found[0]]!r}?" if found else ""
