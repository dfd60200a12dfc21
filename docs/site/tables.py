"""Tables of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["anchor", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Give a table; a `|` in a cell is escaped.

    >>> print(table(["a", "b"], [["1", "x | y"]]), end="")
    | a | b |
    |---|---|
    | 1 | x \| y |
    """
    lines = [_line(head), "|" + "---|" * len(head), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    texts = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(texts)} |"


def anchor(text: str) -> str:
    """Give the anchor of a heading.

    >>> anchor("broker queue stat")
    'broker-queue-stat'
    """
    return "-".join("".join(c if c.isalnum() or c in "-_" else " " for c in text.lower()).split())
