"""The lists that hold a queue's references: by priority, first in first out.

    PriorityList       levels 9 … 0, the highest first
      ReferenceList    one level: a doubly linked list through the references themselves
        Reference      one message in one queue (reference.py)
        StoredRun      many that are made when a reader comes to them (stored_references.py)
    Cursor             a place in all levels, for readers that take nothing

Linked, since messages leave from the middle: by a selector, a group, expiry, an operator. Such a
removal is found by its reference alone and costs the same wherever it stands; the two links are
all that it costs to be in a list.

A list is in the order of its references' sequences, which they get when they come first: the ids of
their messages, unless one with a higher id came before. So what comes back stands where it stood.
Its place is looked for from the head, or from where something came back last.

A cursor stands on the last reference it gave. When that one is removed the cursor steps back, so
what follows is still to come. When references come back, all cursors of the level begin anew, since
what they passed may fit now.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from broker.queues.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.model.message import Message

__all__ = ["LEVELS", "Cursor", "PriorityList", "ReferenceList", "StoredRun"]

LEVELS: Final = 10  # Priorities 0 … 9 (JMS 2.0, 3.4.10); QueueImpl.NUM_PRIORITIES.
# References passed while a place is looked for: some ms. Farther from their place than that are
# those that selectors took from the depth of a queue; they stand nearer to the head then.
_PASSED_MAX: Final = 20_000


class StoredPart(Protocol):
    """References that are not made yet; `stored_references` has them."""

    def __len__(self) -> int:
        """How many."""

    def make(self) -> list[Reference]:
        """Give all of them, in order."""


class Watcher(Protocol):
    """Who goes through a list by a scan of its own."""

    def put_back(self, references: Sequence[Reference]) -> None:
        """These came back, in their order, to a level that the scan has begun with."""

    def came_back(self) -> None:
        """Something came back."""


class StoredRun(Reference):
    """Stands in a list for references that are not made yet; never delivered itself.

    Attributes:
        parts: in order; each is made at once.
        sequence: the first one that is not made has this or a higher one.
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: deque[StoredPart] = deque()


class ReferenceList:
    """References of one priority, linked.

    Those of a StoredRun are made when a reader comes to it: see `first` and `after`.
    """

    __slots__ = ("_last_back", "_last_sequence", "head", "level", "tail")

    def __init__(self, level: int) -> None:
        self.level = level
        self.head: Reference | None = None
        self.tail: Reference | None = None
        # Of what came to the tail last.
        self._last_sequence = 0
        # What came back last, or what stands before its place; None: that is the head.
        self._last_back: Reference | None = None

    def first(self) -> Reference | None:
        """Give the first one; None where there is none."""
        found = self.head
        while isinstance(found, StoredRun):
            self._make(found)
            found = self.head
        return found

    def after(self, reference: Reference) -> Reference | None:
        """Give the one behind another; None where that is the last."""
        found = reference.following
        while isinstance(found, StoredRun):
            self._make(found)
            found = reference.following
        return found

    def made_after(self, reference: Reference | None) -> Reference | None:
        """Give the one behind another, or the first, of those that are made already."""
        found = self.head if reference is None else reference.following
        while isinstance(found, StoredRun):
            found = found.following
        return found

    def _make(self, run: StoredRun) -> None:
        """Put references before the run that they come from, which goes with its last one."""
        for reference in run.parts[0].make():
            reference.level = self.level
            reference.sequence = max(run.sequence, reference.message.message_id)
            run.sequence = reference.sequence + 1
            reference.previous, reference.following = run.previous, run
            if reference.previous is None:
                self.head = reference
            else:
                reference.previous.following = reference
            run.previous = reference
        run.parts.popleft()
        if not run.parts:
            self.remove(run)

    def add_stored(self, references: StoredPart) -> None:
        """Append references that are not made yet."""
        run = self.tail
        if not isinstance(run, StoredRun):
            run = StoredRun()
            self._append(run, self._last_sequence + 1)
        run.parts.append(references)

    def add_tail(self, reference: Reference) -> None:
        """Append."""
        self._append(reference, max(self._last_sequence + 1, reference.message.message_id))

    def _append(self, reference: Reference, sequence: int) -> None:
        last = self.tail
        reference.level = self.level
        reference.sequence = self._last_sequence = sequence
        reference.previous = last
        if last is None:
            self.head = reference
        else:
            last.following = reference
        self.tail = reference

    def add_head(self, reference: Reference) -> None:
        """Put before all others."""
        first = self.head
        if first is None:
            self.add_tail(reference)
            return
        reference.level = self.level
        reference.sequence = max(first.sequence - 1, 0)
        reference.following = first
        first.previous = reference
        self.head = reference

    def add_back(self, references: Sequence[Reference]) -> None:
        """Put references, in the order of their sequences, where they stood."""
        place = self._last_back
        if place is not None and place.sequence > references[0].sequence:
            place = None
        passed = 0
        for reference in references:
            following = self.head if place is None else place.following
            while (
                following is not None
                and following.sequence < reference.sequence
                and passed < _PASSED_MAX
            ):
                if isinstance(following, StoredRun):
                    self._make(following)
                    following = self.head if place is None else place.following
                    continue
                place = following
                following = following.following
                passed += 1
            self._link(reference, place, following)
            place = reference
        self._last_back = place

    def _link(
        self, reference: Reference, previous: Reference | None, following: Reference | None
    ) -> None:
        """List it between two others; None is an end of the list."""
        reference.level = self.level
        reference.previous, reference.following = previous, following
        if previous is None:
            self.head = reference
        else:
            previous.following = reference
        if following is None:
            self.tail = reference
        else:
            following.previous = reference

    def remove(self, reference: Reference) -> None:
        """Take out, wherever it stands."""
        assert reference.level == self.level, "listed here"
        previous, following = reference.previous, reference.following
        if reference is self._last_back:
            self._last_back = previous
        if previous is None:
            self.head = following
        else:
            previous.following = following
        if following is None:
            self.tail = previous
        else:
            following.previous = previous
        reference.previous = reference.following = None
        reference.level = -1

    def replace(self, old: Reference, new: Reference) -> None:
        """Put `new` where `old` stands."""
        assert old.level == self.level, "listed here"
        new.sequence = old.sequence
        self._link(new, old.previous, old.following)
        old.previous = old.following = None
        old.level = -1
        if old is self._last_back:
            self._last_back = new


def _made_before(reference: Reference) -> Reference | None:
    """Give the one before another, None where that is the first of those that are made."""
    found = reference.previous
    while isinstance(found, StoredRun):
        found = found.previous
    return found


class Cursor:
    """Goes through a PriorityList without taking anything; made by `PriorityList.cursor()`."""

    __slots__ = ("_owner", "places")

    def __init__(self, owner: PriorityList) -> None:
        self._owner = owner
        # The reference given last on each level; None: the level's head comes next.
        self.places: list[Reference | None] = [None] * LEVELS

    def advance(self) -> Reference | None:
        """Give the next reference of the highest level that has one; None at the end.

        What is appended later comes later: the end is not final.
        """
        levels = self._owner.levels
        for level in self._owner.used:
            references, place = levels[level], self.places[level]
            found = references.first() if place is None else references.after(place)
            if found is not None:
                self.places[level] = found
                return found
        return None

    def advance_made(self) -> Reference | None:
        """As advance(), without those that are not made yet: none of them expires."""
        levels = self._owner.levels
        for level in self._owner.used:
            found = levels[level].made_after(self.places[level])
            if found is not None:
                self.places[level] = found
                return found
        return None

    def reset(self) -> None:
        """Begin anew."""
        self.places = [None] * LEVELS

    def close(self) -> None:
        """Stand nowhere any more. Idempotent."""
        if self in self._owner.cursors:
            self._owner.cursors.remove(self)


_UNUSED: Final = ReferenceList(-1)
"""Stands for each level that was never used: empty, and one for all queues."""


class PriorityList:
    """The references that wait, by priority.

    Attributes:
        count: of all levels.
        levels: by priority; one is made when it is used first.
        used: priorities that were ever used, the highest first: most queues use one.
        cursors: that have to be told of removals.
        scan: a cursor that is told what comes back instead of beginning anew.
        watcher: who goes by it.
    """

    __slots__ = ("count", "cursors", "levels", "scan", "used", "watcher")

    def __init__(self) -> None:
        self.count = 0
        self.levels = [_UNUSED] * LEVELS
        self.used: tuple[int, ...] = ()
        self.cursors: list[Cursor] = []
        self.scan: Cursor | None = None
        self.watcher: Watcher | None = None

    def watch(self, scan: Cursor, watcher: Watcher) -> None:
        """Keep a cursor right for a watcher, which is told what comes back."""
        self.scan, self.watcher = scan, watcher

    def unwatch(self) -> None:
        """Call no watcher any more."""
        self.scan = self.watcher = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Reference]:
        """In order of delivery; nothing may be added or removed but the one given last."""
        for level in self.used:
            references = self.levels[level]
            reference = references.first()
            while reference is not None:
                following = references.after(reference)
                yield reference
                reference = following

    def level_of(self, message: Message) -> ReferenceList:
        """Give the list of the message's priority."""
        return self._level(message.priority)

    def _level(self, priority: int) -> ReferenceList:
        level = priority if 0 <= priority < LEVELS else (0 if priority < 0 else LEVELS - 1)
        if level not in self.used:
            self.levels[level] = ReferenceList(level)
            self.used = tuple(sorted((*self.used, level), reverse=True))
        return self.levels[level]

    def add_tail(self, reference: Reference) -> None:
        """Append behind those of the same priority."""
        self.level_of(reference.message).add_tail(reference)
        self.count += 1

    def add_stored(self, priority: int, references: StoredPart) -> None:
        """Append references that are not made yet, behind those of a priority."""
        self._level(priority).add_stored(references)
        self.count += len(references)

    def add_head(self, reference: Reference) -> None:
        """Put before those of the same priority; cursors of that priority begin anew."""
        level = self.level_of(reference.message)
        level.add_head(reference)
        self._came_back(level, [reference])

    def add_back(self, references: Iterable[Reference]) -> None:
        """Put what was delivered where it stood; cursors of its priorities begin anew.

        Args:
            references: in any order.
        """
        by_level: dict[int, list[Reference]] = {}
        for reference in references:
            level = self.level_of(reference.message)
            if not reference.sequence:
                # It was in no list: a start found it in a prepared transaction.
                reference.sequence = reference.message.message_id
            by_level.setdefault(level.level, []).append(reference)
        for number, returned in by_level.items():
            returned.sort(key=attrgetter("sequence"))
            level = self.levels[number]
            level.add_back(returned)
            self._came_back(level, returned)

    def _came_back(self, level: ReferenceList, references: Sequence[Reference]) -> None:
        self.count += len(references)
        for cursor in self.cursors:
            cursor.places[level.level] = None
        if self.watcher is not None:
            assert self.scan is not None, "both, or none"
            if self.scan.places[level.level] is not None:
                self.watcher.put_back(references)
            self.watcher.came_back()

    def head(self) -> Reference | None:
        """Give the one to be delivered next, None when there is none."""
        for level in self.used:
            found = self.levels[level].first()
            if found is not None:
                return found
        return None

    def remove(self, reference: Reference) -> None:
        """Take out, wherever it stands."""
        level = reference.level
        if self.cursors:
            for cursor in self.cursors:
                if cursor.places[level] is reference:
                    cursor.places[level] = _made_before(reference)
        scan = self.scan
        if scan is not None and scan.places[level] is reference:
            scan.places[level] = _made_before(reference)
        self.levels[level].remove(reference)
        self.count -= 1

    def replace(self, old: Reference, new: Reference) -> None:
        """Put `new` where `old` stands, if it has the same priority; else at the end of its own."""
        level = self.level_of(new.message)
        if level.level != old.level:
            self.remove(old)
            self.add_tail(new)
            return
        level.replace(old, new)
        for cursor in self.cursors:
            if cursor.places[level.level] is old:
                # It has not given the new one yet.
                cursor.places[level.level] = _made_before(new)

    def cursor(self) -> Cursor:
        """Give a cursor before the first; close() it."""
        made = Cursor(self)
        self.cursors.append(made)
        return made
