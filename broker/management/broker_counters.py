"""Message counters of all queues, switched and reset by operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.broker_part import BrokerPart
from broker.management.invocation import INT, LONG, operation

if TYPE_CHECKING:
    from broker.management.invocation import Getters
    from broker.management.message_counters import MessageCounters

__all__ = ["BrokerCounters"]


class BrokerCounters(BrokerPart):
    """See the module's text."""

    getters: ClassVar[Getters] = {
        "isMessageCounterEnabled": lambda self: self._counters.is_enabled,
        "getMessageCounterSamplePeriod": lambda self: self._counters.sample_period_ms,
        "getMessageCounterMaxDayCount": lambda self: self._counters.day_count_max,
    }

    @property
    def _counters(self) -> MessageCounters:
        return self._broker.managing.message_counters

    @operation("enableMessageCounters")
    def enable_counters(self) -> None:
        """Take samples from now on, until the broker ends."""
        self._counters.enable()

    @operation("disableMessageCounters")
    def disable_counters(self) -> None:
        """Take none any more, and forget what was counted."""
        self._counters.disable()

    @operation("setMessageCounterSamplePeriod", LONG)
    def set_sample_period(self, period_ms: int) -> None:
        """Take samples every so many milliseconds."""
        self._counters.set_sample_period(period_ms)

    @operation("setMessageCounterMaxDayCount", INT)
    def set_day_count(self, count: int) -> None:
        """Keep so many days of history."""
        self._counters.set_day_count_max(count)

    @operation("resetAllMessageCounters")
    def reset_counters(self) -> None:
        """Let all counters count from 0; what queues count themselves stays."""
        self._counters.reset_all()

    @operation("resetAllMessageCounterHistories")
    def reset_histories(self) -> None:
        """Let all histories begin with this hour."""
        self._counters.reset_all_histories()
