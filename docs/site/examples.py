"""The page of the examples: the table of examples/README.md, and the source of each program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["examples"]

_FOLDER: Final = Path(__file__).resolve().parents[2] / "examples"
_ROW: Final = re.compile(r"^\| `python examples/(\w+)\.py` \| (.*) \|$", re.MULTILINE)


def examples() -> str:
    """The page; each row of the table leads to its program."""
    text = (_FOLDER / "README.md").read_text()
    parts = [_ROW.sub(r"| [`python examples/\1.py`](#\1py) | \2 |", text)]
    for name, shows in _ROW.findall(text):
        source = (_FOLDER / f"{name}.py").read_text().rstrip("\n")
        parts.append(
            f"## {name}.py\n\n{shows[:1].upper()}{shows[1:]}.\n\n```python\n{source}\n```\n"
        )
    return "\n".join(parts)
