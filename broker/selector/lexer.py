"""The words of a selector, each with the place where it begins."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["END", "KEYWORDS", "SelectorError", "Token", "tokens"]

KEYWORDS: Final = frozenset(
    {
        *("NOT", "AND", "OR", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "TRUE", "FALSE", "NULL"),
        *("XPATH", "XQUERY"),
    }
)
END: Final = "end"

# The longest match wins in Artemis's lexer; the order here has the same effect. A comment to
# the end of the line needs one: without it `--` are two signs.
_TOKEN: Final = re.compile(
    r"""
    (?P<skipped> [ \t\n\r\f]+ | --[^\n\r]*[\n\r] | /\*.*?\*/ )
  | (?P<float>   \d+\.\d*(?:e[+-]?\d+)? | \.\d+(?:e[+-]?\d+)? | \d+e[+-]?\d+ )
  | (?P<hex>     0x[0-9a-f]+ )
  | (?P<decimal> [1-9]\d*l? )
  | (?P<octal>   0[0-7]* )
  | (?P<string>  '(?:''|[^'])*' )
  | (?P<quoted>  "(?:""|[^"])*" )
  | (?P<word>    [a-z_$][a-z0-9_$]* )
  | (?P<sign>    <> | <= | >= | [-+*/%=<>(),] )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
_HYPHENATED_WORD: Final = re.compile(r"[a-z_$][a-z0-9_$-]*", re.IGNORECASE | re.ASCII)
_SHOWN: Final = 20


class SelectorError(ValueError):
    """A text that is not a selector; one line that says what and where.

    Attributes:
        position: index of the character where it goes wrong, from 0.
    """

    def __init__(self, what: str, position: int) -> None:
        super().__init__(f"selector, character {position + 1}: {what}")
        self.position = position


class Token(NamedTuple):
    """A word.

    Attributes:
        kind: a keyword in capitals, a sign itself, or `float`, `hex`, `decimal`, `octal`,
            `string`, `quoted`, `word`, END.
        text: as written.
        position: index of its first character.
    """

    kind: str
    text: str
    position: int


def tokens(text: str, *, start: int = 0, hyphenated: bool = False) -> list[Token]:
    """The words of a text, END last.

    Args:
        text: the whole selector.
        start: index to begin at, behind the prefixes.
        hyphenated: `-` belongs to a name that it stands in; names cannot be quoted.

    Raises:
        SelectorError: a character that begins no word.

    >>> [token.kind for token in tokens("a <> 5L and b")]
    ['word', '<>', 'decimal', 'AND', 'word', 'end']
    """
    found = []
    at = start
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or (hyphenated and match.lastgroup == "quoted"):
            raise SelectorError(_what_is_wrong(text, at), at)
        kind = str(match.lastgroup)
        if kind == "word" and hyphenated:
            match = _HYPHENATED_WORD.match(text, at) or match
        if kind != "skipped":
            found.append(_token(kind, match[0], at))
        at = match.end()
    found.append(Token(END, "", len(text)))
    return found


def _token(kind: str, text: str, at: int) -> Token:
    if kind == "sign":
        return Token(text, text, at)
    if kind == "word" and text.upper() in KEYWORDS:
        return Token(text.upper(), text, at)
    return Token(kind, text, at)


def _what_is_wrong(text: str, at: int) -> str:
    if text[at] in "'\"":
        return f"a quote without its end: {text[at : at + _SHOWN]}"
    return f"{text[at]!r} begins no word"
