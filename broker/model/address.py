"""Names of addresses: FQQN, words, wildcards, and a tree that finds the patterns of an address.

    a.b.c              three words; the delimiter is configurable
    a.*                one word in place of `*`
    a.#.c              any words in place of `#`, also none: a.c, a.b.c, a.b.b.c
    address::queue     fully qualified: this queue of this address and no other

Two kinds of matching, as in Artemis. A *binding* to a pattern takes `#` anywhere, and a
wildcard counts only as a whole word (AddressImpl): that is `matches` and `AddressTree`. A *match*
of the configuration is a text with `#` at its end and `*` even inside of a word (Match): that is
`compile_match`, for broker.settings and broker.security.

Where Artemis gives up after the first place that fits behind a `#` (`a.#.b.c` and
`a.b.x.b.c`), here every place is tried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DEFAULT_WILDCARDS",
    "SEPARATOR",
    "AddressTree",
    "Matcher",
    "WildcardConfiguration",
    "join_fqqn",
    "split_fqqn",
]

SEPARATOR: Final = "::"  # CompositeAddress
ESCAPE: Final = "\\"  # Before a wildcard that is meant as the character it is.

T = TypeVar("T")


@lru_cache(maxsize=4096)  # Asked several times for each message, of few names.
def split_fqqn(name: str) -> tuple[str, str | None]:
    """Address and queue of a fully qualified name; the queue is None for a plain one.

    >>> split_fqqn("orders::eu"), split_fqqn("orders"), split_fqqn("a::b::c")
    (('orders', 'eu'), ('orders', None), ('a', 'b::c'))
    """
    address, separator, queue = name.partition(SEPARATOR)
    return address, queue if separator else None


def join_fqqn(address: str, queue: str | None) -> str:
    """The fully qualified name of a queue; the address alone without one.

    >>> join_fqqn("orders", "eu")
    'orders::eu'
    """
    return address if queue is None else f"{address}{SEPARATOR}{queue}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WildcardConfiguration:
    """The characters that mean something in an address (wildcard-addresses).

    Attributes:
        delimiter: between words.
        single_word: stands for one word.
        any_words: stands for any number of words, also none.
        routing_enabled: queues bound to a pattern receive what is sent to matching addresses.
    """

    delimiter: str = "."
    single_word: str = "*"
    any_words: str = "#"
    routing_enabled: bool = True

    def __post_init__(self) -> None:
        """Three different characters.

        Raises:
            ValueError: more than one character, or two that are equal.
        """
        characters = (self.delimiter, self.single_word, self.any_words)
        if any(len(character) != 1 for character in characters) or len(set(characters)) < 3:
            raise ValueError(
                "delimiter, single-word and any-words are three different characters, not "
                f"{self.delimiter!r}, {self.single_word!r}, {self.any_words!r}"
            )

    def words(self, name: str) -> list[str]:
        r"""The words of an address or pattern; a delimiter behind a backslash is part of one.

        >>> DEFAULT_WILDCARDS.words("a.*.c"), DEFAULT_WILDCARDS.words("a\\.b.c")
        (['a', '*', 'c'], ['a\\.b', 'c'])
        """
        if ESCAPE not in name:
            return name.split(self.delimiter)
        words = [""]
        is_escaped = False
        for character in name:
            if character == self.delimiter and not is_escaped:
                words.append("")
            else:
                words[-1] += character
            is_escaped = character == ESCAPE and not is_escaped
        return words

    def is_wild(self, name: str) -> bool:
        r"""Whether a wildcard stands anywhere in it, not escaped by a backslash.

        >>> DEFAULT_WILDCARDS.is_wild("a.#"), DEFAULT_WILDCARDS.is_wild("a.\\#")
        (True, False)
        """
        previous = ""
        for character in name:
            if character in (self.single_word, self.any_words) and previous != ESCAPE:
                return True
            previous = character
        return False


DEFAULT_WILDCARDS: Final = WildcardConfiguration()


class Matcher:
    """Compares addresses with patterns of one wildcard configuration."""

    __slots__ = ("wildcards",)

    def __init__(self, wildcards: WildcardConfiguration = DEFAULT_WILDCARDS) -> None:
        self.wildcards = wildcards

    def matches(self, pattern: str, address: str) -> bool:
        """Whether a queue bound to `pattern` receives what is sent to `address`.

        >>> matches = Matcher().matches
        >>> matches("a.#", "a"), matches("a.#.d", "a.b.c.d"), matches("a.*", "a.b.c")
        (True, True, False)
        """
        if pattern == address:
            return True
        split = self.wildcards.words
        return self._words_match(split(pattern), split(address))

    def _words_match(self, pattern: list[str], words: list[str]) -> bool:
        """Greedy matching with one point to go back to: the last `#` takes one word more."""
        any_words, single_word = self.wildcards.any_words, self.wildcards.single_word
        at = word = 0
        retry: tuple[int, int] | None = None
        while word < len(words):
            if at < len(pattern) and pattern[at] == any_words:
                retry = (at, word)
                at += 1
            elif at < len(pattern) and pattern[at] in (single_word, words[word]):
                at += 1
                word += 1
            elif retry is not None:
                retry = (retry[0], retry[1] + 1)
                at, word = retry[0] + 1, retry[1]
            else:
                return False
        return all(rest == any_words for rest in pattern[at:])

    def compile_match(self, match: str) -> re.Pattern[str]:
        """A match of the configuration as a regular expression for `fullmatch`.

        `x.#` is x, or x with more words behind it; `*` is one character or more, none of them the
        delimiter, also inside of a word. Other characters stand for themselves.

        Raises:
            ValueError: any-words is not the last character.

        >>> bool(Matcher().compile_match("a.#").fullmatch("ab"))
        False
        """
        any_words, delimiter = self.wildcards.any_words, self.wildcards.delimiter
        if any_words in match[:-1]:
            raise ValueError(f"{any_words!r} is the last character of a match, not in {match!r}")
        if match == any_words:
            return re.compile(".*", re.DOTALL)
        stem = match
        if match.endswith(any_words):
            # The delimiter before it belongs to what may be missing.
            stem = match[: -len(any_words)].removesuffix(delimiter)
        word = f"[^{re.escape(delimiter)}]+"
        text = "".join(
            word if character == self.wildcards.single_word else re.escape(character)
            for character in stem
        )
        if match.endswith(any_words):
            text += f"(?:{re.escape(delimiter)}.+)?"
        return re.compile(text, re.DOTALL)


class _Node(Generic[T]):
    """A word of the tree: what follows it, and what is bound where it is the last one."""

    __slots__ = ("children", "takes_any_words", "values")

    def __init__(self, *, takes_any_words: bool = False) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.values: list[T] = []
        self.takes_any_words = takes_any_words


class AddressTree(Generic[T]):
    """Values bound to addresses and patterns, found from either side.

    For routing: the cost of a look-up depends on the words of the address and the wildcards on its
    way, not on how many patterns there are. No recursion: the number of words is the client's
    choice. Not safe for threads.
    """

    __slots__ = ("_by_name", "_root", "wildcards")

    def __init__(self, wildcards: WildcardConfiguration = DEFAULT_WILDCARDS) -> None:
        self.wildcards = wildcards
        self._root: _Node[T] = _Node()
        # The lists are those of the nodes.
        self._by_name: dict[str, list[T]] = {}

    def add(self, name: str, value: T) -> None:
        """Bind a value to an address or pattern; the same one again is bound twice."""
        node = self._root
        for word in self.wildcards.words(name):
            if word not in node.children:
                takes_any_words = word == self.wildcards.any_words
                node.children[word] = _Node(takes_any_words=takes_any_words)
            node = node.children[word]
        node.values.append(value)
        self._by_name[name] = node.values

    def remove(self, name: str, value: T) -> None:
        """Undo one `add`.

        Raises:
            KeyError: nothing is bound to that name.
            ValueError: not this value.
        """
        values = self._by_name[name]
        values.remove(value)
        if not values:
            del self._by_name[name]
            self._prune(name)

    def _prune(self, name: str) -> None:
        """Drop nodes without use: a broker sees names of temporary queues for years."""
        path = [("", self._root)]
        for word in self.wildcards.words(name):
            path.append((word, path[-1][1].children[word]))
        for index in range(len(path) - 1, 0, -1):
            word, node = path[index]
            if node.values or node.children:
                break
            del path[index - 1][1].children[word]

    def matching(self, address: str) -> list[T]:
        """What is bound to this address, or to a pattern that matches it; a binding counts once.

        Args:
            address: taken literally; its wildcards, should it have some, are plain words.
        """
        words = self.wildcards.words(address)
        any_words, single_word = self.wildcards.any_words, self.wildcards.single_word
        found: list[T] = []
        # Several `#` in a pattern are several ways to the same place.
        seen: set[tuple[_Node[T], int]] = set()
        open_ends = [(self._root, 0)]
        while open_ends:
            end = open_ends.pop()
            if end in seen:
                continue
            seen.add(end)
            node, at = end
            if (child := node.children.get(any_words)) is not None:
                open_ends.append((child, at))
            if at == len(words):
                found += node.values
                continue
            if node.takes_any_words:
                open_ends.append((node, at + 1))
            word = words[at]
            if (child := node.children.get(single_word)) is not None:
                open_ends.append((child, at + 1))
            if word not in (single_word, any_words) and (child := node.children.get(word)):
                open_ends.append((child, at + 1))
        return found

    def matched_by(self, pattern: str) -> list[T]:
        """What is bound to addresses, no patterns, that this pattern matches."""
        matcher = Matcher(self.wildcards)
        wild = {self.wildcards.single_word, self.wildcards.any_words}
        return [
            value
            for name, values in self._by_name.items()
            if matcher.matches(pattern, name) and wild.isdisjoint(self.wildcards.words(name))
            for value in values
        ]

    def __iter__(self) -> Iterator[T]:
        """Every value that is bound."""
        for values in self._by_name.values():
            yield from values

    def __bool__(self) -> bool:
        """Whether anything is bound."""
        return bool(self._by_name)
