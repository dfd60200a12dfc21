"""Counts of each queue by sample, hour and day (MessageCounter, MessageCounterManager).

    every sample period ─▶ what each queue was added and acknowledged since the last one
                              └─▶ its counter, and the hour of the day in its history

Counters live in memory: a start begins anew, as in Artemis. Times are local, in the form of Java's
short format of the locale en_US.

Threads: the event loop's alone.
"""

from __future__ import annotations

import time
from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from broker.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from broker.ports import Timer, Timers
    from broker.queues.queue import Queue

__all__ = ["DayCounter", "MessageCounter", "MessageCounters", "java_short_time"]

HOURS: Final = 24
# Hours of a day before the first sample, or still to come.
UNKNOWN: Final = -1
# Queues that are looked at in one turn of the event loop.
_LOOK_COUNT: Final = 1000


def java_short_time(at_ms: int) -> str:
    """Give a local time as Java's short date and medium time in en_US: `11/23/26, 1:56:37 AM`."""
    found = time.localtime(at_ms / 1000)
    hour = found.tm_hour % 12 or 12
    half = "AM" if found.tm_hour < 12 else "PM"
    day = f"{found.tm_mon}/{found.tm_mday}/{found.tm_year % 100:02}"
    return f"{day}, {hour}:{found.tm_min:02}:{found.tm_sec:02} {half}"


class DayCounter:
    """The messages of one day by hour; -1 where nothing is known of an hour.

    Args:
        day: local.
        first_hour: before it nothing is known.
    """

    def __init__(self, day: date, first_hour: int) -> None:
        self.day = day
        self.counts = [UNKNOWN] * HOURS
        self.counts[first_hour] = 0

    @property
    def date_text(self) -> str:
        """The day as Java's short format of en_US has it."""
        return f"{self.day.month}/{self.day.day}/{self.day.year % 100:02}"

    def fill_to(self, hour: int) -> None:
        """Let nothing have come in hours since the first known one."""
        first = next(at for at, count in enumerate(self.counts) if count != UNKNOWN)
        for at in range(first, hour + 1):
            self.counts[at] = max(0, self.counts[at])


class MessageCounter:
    """The counter of one queue.

    Args:
        queue: whose.
        now_ms: ms since 1970.
    """

    def __init__(self, queue: Queue, now_ms: int) -> None:
        self.count = 0
        self.last_added_ms = self.last_acknowledged_ms = self.updated_ms = 0
        self._count_told = self._depth_told = 0
        self._added = queue.added_count
        self._acknowledged = queue.acknowledged_count
        self.days: deque[DayCounter] = deque()
        self._begin(now_ms)

    def _begin(self, now_ms: int) -> None:
        now = datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006 - days and hours are local
        self.days.append(DayCounter(now.date(), now.hour))

    def sample(self, queue: Queue, now_ms: int, day_count_max: int) -> None:
        """Count what came and went since the last sample."""
        # resetMessagesAdded lets a queue count from 0 again.
        added = max(0, queue.added_count - self._added)
        acknowledged = max(0, queue.acknowledged_count - self._acknowledged)
        self._added, self._acknowledged = queue.added_count, queue.acknowledged_count
        self.count += added
        if added:
            self.last_added_ms = now_ms
        if acknowledged:
            self.last_acknowledged_ms = now_ms
        self.updated_ms = now_ms
        self.bring_up_to_date(now_ms, day_count_max)
        hour = datetime.fromtimestamp(now_ms / 1000).hour  # noqa: DTZ006 - local
        self.days[-1].counts[hour] += added

    def bring_up_to_date(self, now_ms: int, day_count_max: int) -> None:
        """Let the history reach to this hour, and no further back than so many days."""
        now = datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006 - local
        while self.days[-1].day < now.date():
            self.days[-1].fill_to(HOURS - 1)
            self.days.append(DayCounter(self.days[-1].day + timedelta(days=1), 0))
            if len(self.days) > day_count_max:
                self.days.popleft()
        self.days[-1].fill_to(now.hour)

    def take_deltas(self, depth: int) -> tuple[int, int]:
        """Give by how much count and depth have changed since this was asked the last time."""
        deltas = self.count - self._count_told, depth - self._depth_told
        self._count_told, self._depth_told = self.count, depth
        return deltas

    def reset(self) -> None:
        """Count from 0; the history stays."""
        self.count = self._count_told = self._depth_told = 0
        self.last_added_ms = self.last_acknowledged_ms = self.updated_ms = 0

    def reset_history(self, now_ms: int) -> None:
        """Begin the history with this hour."""
        self.days.clear()
        self._begin(now_ms)


class MessageCounters:
    """The counters of all queues, and the timer that samples them.

    Args:
        queues: all there are, by name.
        timers: of the event loop.
        clock_ms: wall clock, ms since 1970.
        is_enabled: samples are taken (message-counter-enabled).
        sample_period_ms: between two of them (message-counter-sample-period).
        day_count_max: of the history (message-counter-max-day-history).
    """

    def __init__(
        self,
        *,
        queues: Mapping[str, Queue],
        timers: Timers,
        clock_ms: Callable[[], int],
        is_enabled: bool,
        sample_period_ms: int,
        day_count_max: int,
    ) -> None:
        self._all_queues = queues
        self._timers = timers
        self._clock_ms = clock_ms
        self._counters: WeakKeyDictionary[Queue, MessageCounter] = WeakKeyDictionary()
        self._timer: Timer | None = None
        self.is_enabled = False
        self.sample_period_ms = sample_period_ms
        self.day_count_max = day_count_max
        if is_enabled:
            self.enable()

    def of(self, queue: Queue) -> MessageCounter:
        """Give the counter of a queue, its history up to date."""
        found = self._counters.get(queue)
        if found is None:
            found = self._counters[queue] = MessageCounter(queue, self._clock_ms())
        found.bring_up_to_date(self._clock_ms(), self.day_count_max)
        return found

    # --- samples ------------------------------------------------------------------------------

    def enable(self) -> None:
        """Take samples from now on."""
        if not self.is_enabled:
            self.is_enabled = True
            for queue in self._queues():
                self.of(queue)
            self._schedule()

    def disable(self) -> None:
        """Take none any more, and forget what was counted."""
        if self.is_enabled:
            self.stop()
            self._counters.clear()

    def stop(self) -> None:
        """Take no samples any more. Idempotent."""
        self.is_enabled = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_sample_period(self, period_ms: int) -> None:
        """Take samples every so many milliseconds.

        Raises:
            ManagementError: it is not more than 0.
        """
        if period_ms <= 0:
            raise ManagementError(
                f"AMQ229047: invalid value: {period_ms} sample period must be greater than 0"
            )
        self.sample_period_ms = period_ms
        if self._timer is not None:
            self._timer.cancel()
            self._schedule()

    def set_day_count_max(self, count: int) -> None:
        """Keep so many days of the history.

        Raises:
            ManagementError: it is not more than 0.
        """
        if count <= 0:
            raise ManagementError(f"AMQ229046: invalid value: {count} count must be greater than 0")
        self.day_count_max = count

    def _queues(self) -> list[Queue]:
        return list(self._all_queues.values())

    def _schedule(self) -> None:
        self._timer = self._timers.call_later(self.sample_period_ms / 1000, self._sample)

    def _sample(self) -> None:
        self._go_on(iter(self._queues()))

    def _go_on(self, queues: Iterator[Queue]) -> None:
        """Sample some queues in each turn, then wait."""
        if not self.is_enabled:
            return
        now_ms = self._clock_ms()
        for count, queue in enumerate(queues, 1):
            if not queue.is_deleted:
                self.of(queue).sample(queue, now_ms, self.day_count_max)
            if count == _LOOK_COUNT:
                self._timer = self._timers.call_soon(self._go_on, queues)
                return
        self._schedule()

    # --- resets -------------------------------------------------------------------------------

    def reset_all(self) -> None:
        """Let every counter count from 0."""
        for counter in self._counters.values():
            counter.reset()

    def reset_all_histories(self) -> None:
        """Let every history begin with this hour."""
        now_ms = self._clock_ms()
        for counter in self._counters.values():
            counter.reset_history(now_ms)
