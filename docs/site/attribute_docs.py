"""Reads what classes say of their attributes.

A text behind an attribute counts, else its line in the section `Attributes:` of the class.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["attribute_docs", "source_file"]


def attribute_docs(cls: type[Any]) -> dict[str, str]:
    """Give the texts of a class's attributes, one line each, by name."""
    tree = ast.parse(source_file(cls).read_text())
    body = next(
        node.body
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    return {**_sections(cls.__doc__ or ""), **dict(_behind(body))}


def source_file(cls: type[Any]) -> Path:
    """Give the Python file that a class stands in, also if it was compiled."""
    file = sys.modules[cls.__module__].__file__
    assert file is not None
    path = Path(file)
    return path if path.suffix == ".py" else path.with_name(path.name.partition(".")[0] + ".py")


def _behind(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, " ".join(text.value.value.split())


def _sections(doc: str) -> dict[str, str]:
    r"""The lines of `Attributes:`.

    >>> _sections("A.\n\nAttributes:\n    x: of it,\n        in bytes.\n    y: the other.\n")
    {'x': 'of it, in bytes.', 'y': 'the other.'}
    """
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)+)", inspect.cleandoc(doc), re.MULTILINE)
    found: dict[str, str] = {}
    name = ""
    for line in section[1].splitlines() if section else ():
        first = re.match(r"    (\w+): (.*)", line)
        if first:
            name = first[1]
            found[name] = first[2].strip()
        elif name and line.strip():
            found[name] += " " + line.strip()
    return found
