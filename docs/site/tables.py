"""Tables of Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["anchor", "escaped", "table"]

# Code, which Markdown shows as it is, or a `<` outside of it.
_CODE_OR_TAG: Final = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|<", re.DOTALL)


def escaped(text: str) -> str:
    """Give a text with no HTML in it: a browser shows nothing of a tag that it does not know.

    >>> escaped("the parameter in <database-store>, `<as-code>`")
    'the parameter in &lt;database-store>, `<as-code>`'
    """
    return _CODE_OR_TAG.sub(lambda found: "&lt;" if found[0] == "<" else found[0], text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Give a table; what is Markdown or HTML in a cell, `|` and `<`, is escaped.

    >>> print(table(["a", "b"], [["1", "x | y"]]), end="")
    | a | b |
    |---|---|
    | 1 | x \| y |
    """
    lines = [_line(head), "|" + "---|" * len(head), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    texts = [escaped(" ".join(cell.split())).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(texts)} |"


def anchor(text: str) -> str:
    """Give the anchor of a heading.

    >>> anchor("broker queue stat")
    'broker-queue-stat'
    """
    return "-".join("".join(c if c.isalnum() or c in "-_" else " " for c in text.lower()).split())
