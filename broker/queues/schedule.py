"""Messages that are not due yet: kept by time, then order of arrival; one timer a queue.

Due ones go to the head of the queue, in order of their times, before those that wait already
(ScheduledDeliveryHandlerImpl). Times are of the wall clock, which may jump: the timer never sleeps
longer than a minute before it looks again.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.ports import Timer, Timers
    from broker.queues.reference import Reference

__all__ = ["Schedule"]

_SLEEP_S_MAX: Final = 60.0


class Schedule:
    """The scheduled references of one queue.

    Args:
        timers: of the event loop.
        clock_ms: wall clock, ms since 1970.
        on_due: called with those that have become due, in order.
    """

    __slots__ = (
        "_clock_ms",
        "_heap",
        "_live",
        "_on_due",
        "_sequence",
        "_timer",
        "_timer_ms",
        "_timers",
    )

    def __init__(
        self,
        timers: Timers,
        clock_ms: Callable[[], int],
        on_due: Callable[[list[Reference]], object],
    ) -> None:
        self._timers = timers
        self._clock_ms = clock_ms
        self._on_due = on_due
        self._heap: list[tuple[int, int, Reference]] = []
        # Which entry of the heap is a reference's: one that was taken out may be in the heap still,
        # and may have come back with another time.
        self._live: dict[Reference, int] = {}
        self._sequence = 0
        self._timer: Timer | None = None
        self._timer_ms = 0

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Reference]:
        """In order of their times."""
        live = self._live
        return (item for _, number, item in sorted(self._heap) if live.get(item) == number)

    def unordered(self) -> list[Reference]:
        """Give all, in no order."""
        return list(self._live)

    def first(self) -> Reference | None:
        """Give the one with the lowest time."""
        # What was taken out never stays at the top of the heap: see remove() and _look().
        return self._heap[0][2] if self._heap else None

    def add(self, reference: Reference) -> None:
        """Keep a reference until its `scheduled_ms`."""
        self._sequence += 1
        self._live[reference] = self._sequence
        heapq.heappush(self._heap, (reference.scheduled_ms, self._sequence, reference))
        self._arm()

    def remove(self, reference: Reference) -> None:
        """Take one out that is in here."""
        del self._live[reference]
        self._drop_removed()

    def _drop_removed(self) -> None:
        while self._heap and self._live.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)

    def _arm(self) -> None:
        first_ms = self._heap[0][0]
        if self._timer is not None:
            if self._timer_ms <= first_ms:
                return
            self._timer.cancel()
        delay_s = max(0, first_ms - self._clock_ms()) / 1000
        self._timer_ms = first_ms
        self._timer = self._timers.call_later(min(delay_s, _SLEEP_S_MAX), self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock_ms()
        due = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, number, reference = heapq.heappop(self._heap)
            if self._live.get(reference) == number:
                del self._live[reference]
                due.append(reference)
        self._drop_removed()
        if self._heap:
            self._arm()
        if due:
            self._on_due(due)

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
        self._live.clear()
