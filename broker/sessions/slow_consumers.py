"""Consumers that take less than they should: told of, or killed (slow-consumer-…).

Every slow-consumer-check-period a queue is looked at where its settings have a threshold, which is
more than 0. A queue is skipped while so few messages come and wait that no consumer could reach the
threshold. A consumer is slow if it acknowledged fewer messages a second, since the last look, than
the threshold. A consumer that came since then is checked at the next look.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from broker.notifications import NotificationType
from broker.settings.policies import SlowConsumerPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.notifications import Notifications, Subject
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.settings.settings import AddressSettings

__all__ = ["SlowConsumers"]

log = logging.getLogger("broker")


class _Seen(NamedTuple):
    """What the last look found."""

    at_ms: int
    added_count: int
    acknowledged: dict[Consumer, int]


class SlowConsumers:
    """See the module's text.

    Args:
        clock_ms: wall clock, ms since 1970.
        queues: all there are, by name.
        notifications: who tells of slow ones.
        owners: gives whose each consumer is.
        kill: ends the connection of a client, and tells it why.
        tell: has protocols tell of one that is not killed.
    """

    def __init__(
        self,
        clock_ms: Callable[[], int],
        queues: Mapping[str, Queue],
        notifications: Notifications,
        owners: Callable[[], Mapping[Consumer, Subject]],
        kill: Callable[[Subject], object],
        tell: Callable[[Consumer], object],
    ) -> None:
        self._clock_ms = clock_ms
        self._queues = queues
        self._notifications = notifications
        self._owners = owners
        self._kill = kill
        self._tell = tell
        self._seen: dict[Queue, _Seen] = {}

    def look(self) -> None:
        """Look at the queues whose period is over."""
        now_ms = self._clock_ms()
        watched = {
            queue: settings
            for queue in self._queues.values()
            if (settings := queue.settings).slow_consumer_threshold >= 0
        }
        self._seen = {queue: seen for queue, seen in self._seen.items() if queue in watched}
        for queue, settings in watched.items():
            seen = self._seen.get(queue)
            if seen is not None:
                if now_ms - seen.at_ms < settings.slow_consumer_check_period_s * 1000:
                    continue
                self._check(queue, settings, seen, (now_ms - seen.at_ms) / 1000)
            consumers = {one: one.acknowledged_count for one in queue.consumers.all()}
            self._seen[queue] = _Seen(now_ms, queue.added_count, consumers)

    def _check(self, queue: Queue, settings: AddressSettings, seen: _Seen, period_s: float) -> None:
        unit = settings.slow_consumer_threshold_measurement_unit
        threshold = settings.slow_consumer_threshold / unit.value
        consumers = queue.consumers.all()
        needed = threshold * len(consumers)
        added_rate = (queue.added_count - seen.added_count) / period_s
        if not consumers or (added_rate < needed and queue.message_count < needed):
            return
        for consumer in consumers:
            before = seen.acknowledged.get(consumer)
            if before is None:
                continue
            rate = (consumer.acknowledged_count - before) / period_s
            if rate < threshold:
                self._found(consumer, settings.slow_consumer_policy, threshold, rate)

    def _found(
        self, consumer: Consumer, policy: SlowConsumerPolicy, threshold: float, rate: float
    ) -> None:
        owner = self._owners().get(consumer)
        if owner is None:
            return
        log.info(
            "AMQ221048: Consumer %s:%d attached to queue '%s' from %s identified as 'slow.' "
            "Expected consumption rate: %.2f msgs/second; actual consumption rate: %.2f "
            "msgs/second.",
            owner.name,
            consumer.consumer_id,
            consumer.queue.name,
            owner.origin.remote,
            threshold,
            rate,
        )
        if policy is SlowConsumerPolicy.KILL:
            self._kill(owner)
        else:
            self._notifications.consumer(NotificationType.CONSUMER_SLOW, consumer, owner)
            self._tell(consumer)
