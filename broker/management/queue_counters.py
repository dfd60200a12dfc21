"""The message counter of a queue, as JSON and as HTML (MessageCounter, MessageCounterHelper)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from broker.management.invocation import Control, operation
from broker.management.json_texts import json_text
from broker.management.message_counters import HOURS, UNKNOWN, java_short_time

if TYPE_CHECKING:
    from broker.management.access import ManagedBroker
    from broker.management.message_counters import DayCounter, MessageCounter
    from broker.queues.queue import Queue

__all__ = ["QueueCounters"]


class QueueCounters(Control):
    """See the module's text; who inherits gives both attributes."""

    queue: Queue
    _broker: ManagedBroker

    @property
    def _counter(self) -> MessageCounter:
        return self._broker.managing.message_counters.of(self.queue)

    @operation("listMessageCounter")
    def counter_as_json(self) -> str:
        """Give what was counted; each asking begins new deltas."""
        counter, depth = self._counter, self.queue.message_count
        count_delta, depth_delta = counter.take_deltas(depth)
        return json_text(
            {
                "destinationName": self.queue.name,
                "destinationSubscription": None,
                "destinationDurable": self.queue.is_durable,
                "count": counter.count,
                "countDelta": count_delta,
                "messageCount": depth,
                "messageCountDelta": depth_delta,
                "lastAddTimestamp": java_short_time(counter.last_added_ms),
                "lastAckTimestamp": java_short_time(counter.last_acknowledged_ms),
                "updateTimestamp": java_short_time(counter.updated_ms),
            }
        )

    @operation("resetMessageCounter")
    def reset_counter(self) -> None:
        """Count from 0; what the queue counts itself, and the history, stay."""
        self._counter.reset()

    @operation("listMessageCounterAsHTML")
    def counter_as_html(self) -> str:
        """Give the same as a table."""
        counter, depth = self._counter, self.queue.message_count
        count_delta, depth_delta = counter.take_deltas(depth)
        heads = (
            *("Type", "Name", "Subscription", "Durable", "Count", "CountDelta", "Depth"),
            *("DepthDelta", "Last Add", "Last Ack", "Last Update"),
        )
        cells = (
            *("Queue", escape(self.queue.name), "-", "-", counter.count),
            *(_number(count_delta), _number(depth), _number(depth_delta)),
            *map(_time, (counter.last_added_ms, counter.last_acknowledged_ms, counter.updated_ms)),
        )
        return (
            f'<table class="activemq-message-counter">\n<tr>{_cells("th", heads)}</tr>\n'
            f'<tr bgcolor="#FFFFFF">{_cells("td", cells)}</tr>\n</table>\n'
        )

    @operation("listMessageCounterHistory")
    def history_as_json(self) -> str:
        """Give the messages of each day by hour; -1 where nothing is known."""
        days = [{"date": one.date_text, "counters": one.counts} for one in self._counter.days]
        return json_text({"dayCounters": days})

    @operation("listMessageCounterHistoryAsHTML")
    def history_as_html(self) -> str:
        """Give the same as a table."""
        heads = ("Date", *range(HOURS), "Total")
        rows = "".join(_day_row(at, day) for at, day in enumerate(self._counter.days))
        return (
            "<ul>\n<li>\n  <ul>\n"
            f"    <li>Queue '{escape(self.queue.name)}'</li>\n"
            f'    <li><table class="activemq-message-counter-history">\n'
            f"<tr>{_cells('th', heads)}</tr>\n{rows}</table></li>\n"
            "  </ul>\n</li>\n</ul>\n"
        )


def _day_row(number: int, day: DayCounter) -> str:
    color = "F0F0F0" if number % 2 else "FFFFFF"
    counts = ["" if count == UNKNOWN else count for count in day.counts]
    total = sum(count for count in day.counts if count != UNKNOWN)
    return f'<tr bgcolor="#{color}">{_cells("td", (day.date_text, *counts, total))}</tr>\n'


def _cells(kind: str, values: tuple[object, ...]) -> str:
    return "".join(f"<{kind}>{value}</{kind}>" for value in values)


def _number(value: int) -> str:
    return str(value) if value else "-"


def _time(at_ms: int) -> str:
    return java_short_time(at_ms) if at_ms else "-"
