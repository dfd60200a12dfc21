r"""Files of `name = value` lines as Java reads them, changed without touching the other lines.

# comment              ! comment
name = value           `=`, `:` or space between them, space around is left out
name = one \          a backslash at the end goes on in the next line, its leading space left out
       two             \t \n \r \f \\ \= \: \# and \uXXXX stand for a character
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parse_properties", "with_property", "without_property"]

# Not str.splitlines(): Java knows no other ends of a line.
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAME: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def parse_properties(text: str) -> dict[str, str]:
    r"""The pairs of a file; of two of one name the later counts.

    >>> parse_properties("# users\nadmin = a\\:b\nguest:c")
    {'admin': 'a:b', 'guest': 'c'}
    """
    return {name: value for _, name, value in _entries(text) if name is not None}


def with_property(text: str, name: str, value: str) -> str:
    """The file's text with this pair in it: in the place of an older one, else at the end."""
    entry = f"{_escaped(name, is_name=True)} = {_escaped(value, is_name=False)}\n"
    lines: list[str] = []
    is_written = False
    for raw, found, _ in _entries(text):
        if found == name:
            lines += [] if is_written else [entry]
            is_written = True
        else:
            lines.append(raw)
    if not is_written:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines.append(entry)
    return "".join(lines)


def without_property(text: str, name: str) -> str:
    """The file's text without that pair."""
    return "".join(raw for raw, found, _ in _entries(text) if found != name)


def _entries(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Each logical line: as it stands, its name or None for a comment or blank, its value."""
    lines = iter(_LINE.findall(text))
    for first in lines:
        raw = first
        logical = first.rstrip("\r\n").lstrip(" \t\f")
        if not logical or logical[0] in "#!":
            yield raw, None, ""
            continue
        while _goes_on(logical):
            following = next(lines, None)
            logical = logical[:-1]
            if following is None:
                break
            raw += following
            logical += following.rstrip("\r\n").lstrip(" \t\f")
        match = _NAME.match(logical)
        name = match[0] if match else ""
        separator = _SEPARATOR.match(logical, len(name))
        value = logical[separator.end() if separator else len(name) :]
        yield raw, _plain(name), _plain(value)


def _goes_on(line: str) -> bool:
    """Whether an odd number of backslashes ends it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _plain(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _CONTROL.get(code, code)

    return _ESCAPE.sub(character, text)


def _escaped(text: str, *, is_name: bool) -> str:
    shown = []
    for index, character in enumerate(text):
        control = next((key for key, value in _CONTROL.items() if value == character), None)
        if control is not None:
            shown.append(f"\\{control}")
        elif character in "\\#!=:" and (is_name or character == "\\" or not index):
            shown.append(f"\\{character}")
        elif character == " " and (is_name or not index):
            shown.append("\\ ")
        else:
            shown.append(character)
    return "".join(shown)
