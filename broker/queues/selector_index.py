"""Who of many consumers with selectors gets a message, without asking each of them.

    waiting ─▶ scan ─▶ look-up by value ─▶ Lane of a selector ─▶ its ready consumers, in turn
                   └─▶ selectors of another form, each once ─▶ Lane

A lane is what equal selectors share: references that the selector takes, in order, and the
consumers that have it. Each reference is looked at once, by a scan over all that wait. Selectors
`name = 'text'` and `name = 5`, alone or in a conjunction, are found by the message's value; the
others are evaluated. Consumers without a selector share a lane, too, which is the queue itself.

What leaves the queue stays in the lanes until a reader comes across it, or there is too much of it.
A lane made when messages wait already goes through them by itself, and takes part in the scan once
both are at the end.

Consumers get what they get where each looks for itself (dispatch.py): the highest priority first,
in turn, one message each. Queues with groups, exclusive consumers, last values or messages that
stay have no index: their consumers have cursors.

Threads: the event loop's alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from broker.queues.contents import LOOK_COUNT_MAX
from broker.queues.reference_lists import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.model.message import Message
    from broker.queues.consumer import Consumer
    from broker.queues.consumers import Consumers
    from broker.queues.contents import QueueContents
    from broker.queues.filter import Filter
    from broker.queues.reference import Reference

__all__ = ["Lane", "SelectorIndex", "Values"]

# A lane with fewer references is never searched for those that have left.
_SWEEP_MIN: Final = 1000


class Lane:
    """What one selector takes, and who has it.

    Attributes:
        filter: the selector; None takes all.
        ready: consumers that may take, by their priority, in the order in which they came: number,
            consumer, this lane.
        cursor: goes through what waited before the lane was made; None once it takes part in the
            scan.
    """

    __slots__ = ("_entries", "_sweep_at", "cursor", "filter", "is_exact", "member_count", "ready")

    def __init__(self, filter: Filter | None) -> None:
        self.filter = filter
        # Whether the look-up alone decides.
        self.is_exact = filter is not None and filter.is_equality
        self.member_count = 0
        self.ready: dict[int, list[tuple[int, Consumer, Lane]]] = {}
        self.cursor: Cursor | None = None
        self._entries: dict[int, deque[Reference]] = {}
        self._sweep_at = _SWEEP_MIN

    def wants(self, message: Message) -> bool:
        """Whether the selector takes a message."""
        return self.filter is None or self.filter.matches(message)

    def clear(self) -> None:
        """Know of nothing."""
        self._entries.clear()
        self._sweep_at = _SWEEP_MIN

    def add_last(self, reference: Reference) -> None:
        """Note a reference behind all others of its level."""
        entries = self._of_level(reference.level)
        entries.append(reference)
        if len(entries) >= self._sweep_at:
            self._sweep(reference.level)

    def add_back(self, references: Sequence[Reference]) -> None:
        """Note references that came back to one level, in their order, where they stood."""
        entries = self._of_level(references[0].level)
        last = references[-1].sequence
        before: list[Reference] = []
        while entries and len(before) < LOOK_COUNT_MAX and entries[0].sequence < last:
            before.append(entries.popleft())
        entries.extendleft(reversed(list(merge(before, references, key=attrgetter("sequence")))))

    def _of_level(self, level: int) -> deque[Reference]:
        entries = self._entries.get(level)
        if entries is None:
            entries = self._entries[level] = deque()
        return entries

    def _sweep(self, level: int) -> None:
        """Forget what has left the queue: else a lane with idle consumers would keep it all."""
        kept = deque(one for one in self._entries[level] if one.level == level)
        self._entries[level] = kept
        self._sweep_at = max(_SWEEP_MIN, 2 * len(kept))

    def count_max(self, queue: QueueContents) -> int:
        """Give how many it has at most."""
        if self.filter is None:
            return queue.waiting.count
        count = 0
        for entries in self._entries.values():
            count += len(entries)
        return count

    def take(self, queue: QueueContents) -> Reference | None:
        """Give the next reference, which the lane knows no more; None where it has none."""
        if self.filter is None:
            return _take_head(queue)
        for level in queue.waiting.used:
            entries = self._entries.get(level)
            while entries:
                reference = entries.popleft()
                if reference.level == level and not _has_expired(queue, reference):
                    return reference
        return None


def _take_head(queue: QueueContents) -> Reference | None:
    while (reference := queue.waiting.head()) is not None:
        if not _has_expired(queue, reference):
            return reference
    return None


def _has_expired(queue: QueueContents, reference: Reference) -> bool:
    return bool(reference.message.expiration) and queue.expire_if_due(reference)


class _Turns:
    """The consumers of one priority: whose turn it is.

    Attributes:
        priority: of the consumers.
        last: number of the consumer that was served last.
        active: lanes that may have something for a ready consumer of this priority.
    """

    __slots__ = ("active", "last", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.last = -1
        self.active: dict[Lane, None] = {}

    def candidates(self, queue: QueueContents) -> list[tuple[int, Consumer, Lane]]:
        """Give who may get a message in this round, in turn."""
        found: list[tuple[int, Consumer, Lane]] = []
        for lane in list(self.active):
            ready = lane.ready.get(self.priority)
            count = lane.count_max(queue) if ready else 0
            if not ready or not count:
                del self.active[lane]
            elif len(ready) <= count:
                found += ready
            else:
                start = self._place_in(ready)
                turn = ready[start : start + count]
                found += turn
                found += ready[: count - len(turn)]
        # By number, of which each consumer has its own.
        found.sort()
        start = self._place_in(found)
        return found[start:] + found[:start]

    def _place_in(self, consumers: list[tuple[int, Consumer, Lane]]) -> int:
        """Where those behind the last one served begin: they come first, then the others."""
        return bisect_left(consumers, (self.last + 1,))


class Values:
    """The lanes of selectors that compare one property with a constant."""

    __slots__ = ("fetch_key", "lanes")

    def __init__(self, fetch_key: Callable[[Message], str | int | None]) -> None:
        self.fetch_key = fetch_key
        self.lanes: dict[str | int, list[Lane]] = {}


class SelectorIndex:
    """See the module's text.

    Args:
        queue: whose messages it knows; nothing else delivers these meanwhile.
        consumers: of the queue.

    Attributes:
        is_closed: it is not the queue's any more.
    """

    def __init__(self, queue: QueueContents, consumers: Consumers) -> None:
        self.is_closed = False
        self._queue = queue
        self._consumers = consumers
        # Not among the list's cursors: what comes back is told to put_back().
        self._scan = Cursor(queue.waiting)
        queue.waiting.watch(self._scan, self)
        self._lanes: dict[Filter | None, Lane] = {}
        self._by_name: dict[str, Values] = {}
        self._others: list[Lane] = []
        self._behind: list[Lane] = []
        self._turns: list[_Turns] = []
        self._numbers: dict[Consumer, int] = {}
        self._next_number = 0
        for level in consumers.levels:
            for consumer in level.in_turn():
                self.add(consumer)

    def close(self) -> None:
        """Stop watching the queue."""
        self.is_closed = True
        self._queue.waiting.unwatch()
        for lane in self._behind:
            if lane.cursor is not None:
                lane.cursor.close()

    # --- consumers ----------------------------------------------------------------------------

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part, unless it does; it is the last one in turn."""
        if consumer in self._numbers:
            return
        self._numbers[consumer] = self._next_number
        self._next_number += 1
        lane = self._lanes.get(consumer.filter)
        if lane is None:
            lane = self._lanes[consumer.filter] = self._new_lane(consumer.filter)
        lane.member_count += 1
        if all(turns.priority != consumer.priority for turns in self._turns):
            self._turns.append(_Turns(consumer.priority))
            self._turns.sort(key=lambda one: -one.priority)
        if consumer.can_take:
            self.wake(consumer)

    def _new_lane(self, filter: Filter | None) -> Lane:
        lane = Lane(filter)
        if filter is None:
            return lane
        if self._queue.waiting.count:
            lane.cursor = self._queue.waiting.cursor()
            self._behind.append(lane)
        else:
            self._join(lane)
        return lane

    def _join(self, lane: Lane) -> None:
        """Let a lane take part in the scan."""
        wanted = lane.filter
        assert wanted is not None, "the lane without one is the queue"
        equality = wanted.equality
        if equality is None:
            self._others.append(lane)
            return
        values = self._by_name.get(equality.name)
        if values is None:
            values = self._by_name[equality.name] = Values(equality.fetch_key)
        values.lanes.setdefault(equality.key, []).append(lane)

    def remove(self, consumer: Consumer) -> None:
        """Let it take part no more. Idempotent."""
        if consumer not in self._numbers:
            return
        lane = self._lanes[consumer.filter]
        self._rest(consumer, lane)
        del self._numbers[consumer]
        lane.member_count -= 1
        if lane.member_count == 0:
            del self._lanes[consumer.filter]
            self._drop(lane)

    def _drop(self, lane: Lane) -> None:
        for turns in self._turns:
            turns.active.pop(lane, None)
        if lane.cursor is not None:
            lane.cursor.close()
            self._behind.remove(lane)
            return
        if lane.filter is None:
            return
        equality = lane.filter.equality
        if equality is None:
            self._others.remove(lane)
            return
        values = self._by_name[equality.name]
        lanes = values.lanes[equality.key]
        lanes.remove(lane)
        if not lanes:
            del values.lanes[equality.key]
            if not values.lanes:
                del self._by_name[equality.name]

    def wake(self, consumer: Consumer) -> None:
        """It can take (again)."""
        lane = self._lanes[consumer.filter]
        ready = lane.ready.setdefault(consumer.priority, [])
        number = self._numbers[consumer]
        at = bisect_left(ready, (number,))
        if at == len(ready) or ready[at][0] != number:
            ready.insert(at, (number, consumer, lane))
        self._activate(lane)

    def _rest(self, consumer: Consumer, lane: Lane) -> None:
        """It cannot take for now."""
        ready = lane.ready.get(consumer.priority, [])
        number = self._numbers[consumer]
        at = bisect_left(ready, (number,))
        if at < len(ready) and ready[at][0] == number:
            del ready[at]

    def _activate(self, lane: Lane) -> None:
        for turns in self._turns:
            if lane.ready.get(turns.priority):
                turns.active[lane] = None

    def lane_of(self, consumer: Consumer) -> Lane:
        """Give the lane that a consumer takes from."""
        return self._lanes[consumer.filter]

    def values_of(self, name: str) -> Values:
        """Give the lanes that are looked up by a name's value."""
        return self._by_name[name]

    # --- messages -----------------------------------------------------------------------------

    def look(self, count_max: int) -> int:
        """Find the lanes of references that were not looked at yet; how many were."""
        count = 0
        while count < count_max:
            reference = self._scan.advance()
            if reference is None:
                break
            count += 1
            if _has_expired(self._queue, reference):
                continue
            for lane in self._lanes_of(reference.message):
                lane.add_last(reference)
                self._activate(lane)
        if count:
            self._wake_all()
        if count < count_max and self._behind:
            count += self._catch_up(count_max - count)
        return count

    def _wake_all(self) -> None:
        """Something waits that those without a selector may take."""
        lane = self._lanes.get(None)
        if lane is not None:
            self._activate(lane)

    def _catch_up(self, count_max: int) -> int:
        """Let lanes that were made late see what the scan has passed; how many were looked at."""
        count = 0
        for lane in list(self._behind):
            cursor, wanted = lane.cursor, lane.filter
            assert cursor is not None, "it is behind"
            assert wanted is not None, "a lane without a selector is never behind"
            while count < count_max:
                reference = cursor.advance()
                if reference is None:
                    # So is the scan: look() came to its end before.
                    cursor.close()
                    lane.cursor = None
                    self._behind.remove(lane)
                    self._join(lane)
                    break
                count += 1
                if _has_expired(self._queue, reference):
                    continue
                if wanted.matches(reference.message):
                    lane.add_last(reference)
                    self._activate(lane)
        return count

    def _lanes_of(self, message: Message) -> list[Lane]:
        found: list[Lane] = []
        for values in self._by_name.values():
            key = values.fetch_key(message)
            if key is None:
                continue
            for lane in values.lanes.get(key, ()):
                if lane.is_exact or lane.wants(message):
                    found.append(lane)  # noqa: PERF401 - there are several properties.
        found += [lane for lane in self._others if lane.wants(message)]
        return found

    def put_back(self, references: Sequence[Reference]) -> None:
        """References have come back to a level that the scan has begun with.

        Those that it comes to as well are noted twice. Who takes them leaves nothing to the other.
        """
        by_lane: dict[Lane, list[Reference]] = {}
        for reference in references:
            for lane in self._lanes_of(reference.message):
                by_lane.setdefault(lane, []).append(reference)
        for lane, returned in by_lane.items():
            lane.add_back(returned)
            self._activate(lane)

    def came_back(self) -> None:
        """References have come back to a level: late lanes look at all of it again."""
        self._wake_all()
        for lane in self._behind:
            assert lane.cursor is not None, "it is behind"
            lane.clear()
            lane.cursor.reset()

    # --- delivery -----------------------------------------------------------------------------

    def serve(self) -> int:
        """Give each ready consumer of the highest priority that has any a message; how many."""
        for turns in self._turns:
            count = self._serve(turns)
            if count:
                return count
        return 0

    def _serve(self, turns: _Turns) -> int:
        queue = self._queue
        count = 0
        while not count:
            candidates = turns.candidates(queue)
            if not candidates:
                return 0
            for number, consumer, lane in candidates:
                if not self._consumers.may_take:
                    return count
                if consumer not in self._numbers:
                    continue
                if not consumer.can_take:
                    self._rest(consumer, lane)
                    continue
                reference = lane.take(queue)
                if reference is None:
                    turns.active.pop(lane, None)
                    continue
                count += 1
                turns.last = number
                queue.take(reference)
                if not lane.count_max(queue):
                    turns.active.pop(lane, None)
                consumer.handle(reference, reference.message)
        return count
