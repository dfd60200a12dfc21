"""Which name was meant by one that there is not."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]

NEAR: Final = 0.7  # of difflib's ratio: a name less alike is not a misspelling of the other


def nearest(name: str, names: Iterable[str], shown: str) -> str:
    """Text that asks for the name that is most like this one; empty where none is."""
    by_lower = {one.lower(): one for one in sorted(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=NEAR)
    return f"; did you mean {shown.format(by_lower[found[0]])}?" if found else ""
