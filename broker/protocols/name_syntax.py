"""Names in another syntax: delimiter, single word and any words (WildcardConfiguration.convert).

MQTT    / + #        OpenWire    . * >        an address    as wildcard-addresses says
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.address import ESCAPE

if TYPE_CHECKING:
    from broker.model.address import WildcardConfiguration

__all__ = ["converted", "syntax_of"]


def syntax_of(wildcards: WildcardConfiguration) -> str:
    """Give the three characters of addresses."""
    return wildcards.delimiter + wildcards.single_word + wildcards.any_words


def converted(text: str, source: str, target: str, escaped: str) -> str:
    """Give a name in another syntax; both are delimiter, single word, any words.

    One that has any of `escaped` behind a backslash was converted before, from the other one.
    """
    if source == target:
        return text
    is_escaped = any(ESCAPE + one in text for one in escaped)
    if not is_escaped:
        text = text.replace(ESCAPE, ESCAPE * 2)
        for old, new in zip(source, target, strict=True):
            if old != new:
                text = text.replace(new, ESCAPE + new)
    other = dict(zip(source, target, strict=True))
    made = []
    previous = ""
    for character in text:
        made.append(character if previous == ESCAPE else other.get(character, character))
        previous = character
    return _unescaped("".join(made), source) if is_escaped else "".join(made)


def _unescaped(text: str, own: str) -> str:
    made = []
    characters = iter(text)
    for character in characters:
        if character == ESCAPE:
            following = next(characters, "")
            if following != ESCAPE and following not in own:
                made.append(ESCAPE)
            made.append(following)
        else:
            made.append(character)
    return "".join(made)
