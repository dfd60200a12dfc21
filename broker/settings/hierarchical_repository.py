"""Values by match: exact names, literal matches, then wildcards, the closest first.

Address settings, permissions and limits are all kept so (HierarchicalObjectRepository). Which of
the candidates counts, the first or all merged, is for their owner to say.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from broker.model.address import DEFAULT_WILDCARDS, Matcher, WildcardConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["HierarchicalRepository"]

T = TypeVar("T")

# Names come from clients: a cache of them has an end. When it is full it starts anew.
CACHE_SIZE_MAX: Final = 10_000
# Names that clients make up: of Core and AMQP, and of OpenWire (ID:host-port-time-n:n:n).
_UUID: Final = re.compile(
    r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|.*-\d+-\d+-\d+:\d+:\d+", re.DOTALL
)


class _Wildcard(NamedTuple, Generic[T]):
    match: str
    pattern: re.Pattern[str]
    value: T


class HierarchicalRepository(Generic[T]):
    """Values by match; `candidates` gives those of a name, the closest first.

    Args:
        wildcards: the characters that are not literal.
        uuid_namespace: an address whose name is a UUID, as clients give to temporary queues, is
            looked up below this name (uuid-namespace); empty looks for it as it is.
        literal_markers: two characters; a match between them is the name inside, taken literally
            (literal-match-markers).

    Not safe for threads: the event loop's.
    """

    def __init__(
        self,
        wildcards: WildcardConfiguration = DEFAULT_WILDCARDS,
        literal_markers: str | None = None,
        uuid_namespace: str = "",
    ) -> None:
        if literal_markers is not None and len(literal_markers) != 2:
            raise ValueError(f"literal-match-markers are two characters, not {literal_markers!r}")
        self.wildcards = wildcards
        self.literal_markers = literal_markers
        self.uuid_namespace = uuid_namespace
        self._exact: dict[str, T] = {}
        self._literal: dict[str, T] = {}
        self._wild: dict[str, _Wildcard[T]] = {}
        self._cache: dict[str, tuple[T, ...]] = {}
        self._listeners: list[Callable[[], object]] = []

    def add(self, match: str, value: T) -> None:
        """Set the value of a match, replacing an earlier one; listeners are notified.

        Raises:
            ValueError: any-words stands elsewhere than at the end of the match.
        """
        self._put(match, value)
        self._changed()

    def remove(self, match: str) -> bool:
        """Take a match away; whether it was there. Listeners are told."""
        name, is_literal = self._plain(match)
        rooms = (self._literal,) if is_literal else (self._exact, self._wild)
        found = [room.pop(name, None) for room in rooms]
        is_found = any(value is not None for value in found)
        if is_found:
            self._changed()
        return is_found

    def replace_all(self, entries: Iterable[tuple[str, T]]) -> None:
        """Exchange everything at once, for a configuration that was read again.

        Raises:
            ValueError: as `add`; then nothing has changed.
        """
        other: HierarchicalRepository[T] = HierarchicalRepository(
            self.wildcards, self.literal_markers, self.uuid_namespace
        )
        for match, value in entries:
            other._put(match, value)
        self._exact, self._literal, self._wild = other._exact, other._literal, other._wild
        self._changed()

    def on_change(self, listener: Callable[[], object]) -> None:
        """Call `listener` after every change from now on."""
        self._listeners.append(listener)

    def off_change(self, listener: Callable[[], object]) -> None:
        """Call it no more. Idempotent."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def candidates(self, name: str) -> tuple[T, ...]:
        """The values whose match fits the name, the closest first."""
        found = self._cache.get(name)
        if found is None:
            found = tuple(self._search(self._scoped(name)))
            if len(self._cache) >= CACHE_SIZE_MAX:
                self._cache.clear()
            self._cache[name] = found
        return found

    def exact(self, name: str) -> T | None:
        """What is set for exactly this name, wildcards and literals left aside."""
        return self._exact.get(name)

    def items(self) -> Iterator[tuple[str, T]]:
        """Every match as it was added, and its value."""
        yield from self._exact.items()
        markers = self.literal_markers or ""
        for name, value in self._literal.items():
            yield f"{markers[:1]}{name}{markers[1:]}", value
        for wildcard in self._wild.values():
            yield wildcard.match, wildcard.value

    def _plain(self, match: str) -> tuple[str, bool]:
        """A match without its markers, and whether it had some."""
        markers = self.literal_markers
        if markers and len(match) > 1 and match[0] == markers[0] and match[-1] == markers[1]:
            return match[1:-1], True
        return self._scoped(match), False

    def _scoped(self, name: str) -> str:
        """A name below the namespace of UUIDs, if it is one."""
        if self.uuid_namespace and _UUID.fullmatch(name):
            return f"{self.uuid_namespace}{self.wildcards.delimiter}{name}"
        return name

    def _put(self, match: str, value: T) -> None:
        name, is_literal = self._plain(match)
        if is_literal:
            self._literal[name] = value
        elif self.wildcards.is_wild(name):
            pattern = Matcher(self.wildcards).compile_match(name)
            self._wild[name] = _Wildcard(name, pattern, value)
        else:
            self._exact[name] = value

    def _changed(self) -> None:
        self._cache.clear()
        for listener in self._listeners:
            listener()

    def _search(self, name: str) -> Iterator[T]:
        for room in (self._exact, self._literal):
            if name in room:
                yield room[name]
        wild = [entry for entry in self._wild.values() if entry.pattern.fullmatch(name)]
        for entry in sorted(wild, key=functools.cmp_to_key(self._closer)):
            yield entry.value

    def _closer(self, left: _Wildcard[T], right: _Wildcard[T]) -> int:
        """Negative where `left` is the closer one.

        Without any-words before with; of two with it the longer text; of two with single words
        the one with a literal word at the first difference, else the shorter text.
        """
        any_words, single_word = self.wildcards.any_words, self.wildcards.single_word
        left_any, right_any = any_words in left.match, any_words in right.match
        if left_any != right_any:
            return 1 if left_any else -1
        if left_any:
            return len(right.match) - len(left.match)
        pairs = zip(
            self.wildcards.words(left.match), self.wildcards.words(right.match), strict=False
        )
        for left_word, right_word in pairs:
            if (left_word == single_word) != (right_word == single_word):
                return 1 if left_word == single_word else -1
        return len(left.match) - len(right.match)
