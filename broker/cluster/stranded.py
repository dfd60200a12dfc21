"""Messages that wait although a consumer takes them, on this node or on another.

    each queue with waiting messages ─▶ LOOK_MAX of them ─▶ is a consumer there, here or elsewhere?
        ─▶ since when? ─▶ longer than stranded-message-period: counted, and told of once a queue

A queue whose consumers work is not stranded, however long it is: a message counts only while no
consumer here that takes it is given anything. Demand is what consumers' selectors say, for each
message. Neither the mode of a cluster connection nor redistribution-delay matters: where they keep
a message from its consumer, it is stranded.

Nothing is read into the queue for it, so counts are of what is in memory, and at most LOOK_MAX.

Threads: the event loop's alone; some messages in each turn.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from broker.model.message import Message
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.routing.remote_bindings import RemoteBindings, RemoteQueueBinding

__all__ = ["Stranded", "StrandedMessages", "is_stranded"]

log = logging.getLogger("broker.cluster")

# Messages of one queue that are looked at.
LOOK_MAX: Final = 500
# Messages that are looked at before other work has its turn.
_TURN_MAX: Final = 50
# Looks in one period; seconds between two of them at least.
_LOOKS: Final = 4
_LOOK_S_MIN: Final = 0.05


class Timer(Protocol):
    """A call to come."""

    def cancel(self) -> object:
        """Let it not come."""


class Timers(Protocol):
    """Turns of the event loop, and its clock."""

    def time(self) -> float:
        """Give the loop's clock, s."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Call it then."""

    def call_soon(self, callback: Callable[[], object]) -> Timer:
        """Call it in the next turn."""


@dataclass(frozen=True, slots=True)
class StrandedMessages:
    """What is stranded in one queue.

    Attributes:
        count: messages, of those that were looked at.
        message_id: of the first one.
        since_s: when it was seen first, by the loop's clock.
        where: who would take it: `here`, or the store-and-forward queue of a node.
    """

    count: int
    message_id: int
    since_s: float
    where: str


def is_stranded(
    message: Message,
    consumers: Sequence[Consumer],
    working: set[Consumer],
    bindings: Sequence[RemoteQueueBinding],
) -> str | None:
    """Say where a consumer takes a message that waits; None: nowhere, or its consumers work.

    Args:
        message: that waits.
        consumers: of its queue.
        working: those of them that were given something since the last look.
        bindings: queues of other nodes with its queue's routing name.
    """
    wanting = [one for one in consumers if one.filter is None or one.filter.matches(message)]
    if wanting:
        return None if any(one in working for one in wanting) else "here"
    for one in bindings:
        if one.is_connected and one.takes(message) and one.wants(message):
            return one.forwarding.name
    return None


class Stranded:
    """See the module's text. Looks from its making until stop().

    Args:
        queues: all there are, by name.
        remote: queues of other nodes.
        timers: of the event loop.
        period_ms: how long a message may wait so; below 0 nothing is looked at.
        own_addresses: of management and notifications, which are left out.

    Attributes:
        by_queue: what is stranded, as of the last look.
    """

    def __init__(
        self,
        queues: Mapping[str, Queue],
        remote: RemoteBindings,
        timers: Timers,
        period_ms: int,
        own_addresses: tuple[str, ...],
    ) -> None:
        self._queues = queues
        self._remote = remote
        self._timers = timers
        self._period_s = period_ms / 1000
        self._own_addresses = own_addresses
        self.by_queue: dict[str, StrandedMessages] = {}
        # Of each queue, since when which message waits so; gone with it.
        self._since_s: dict[str, dict[int, float]] = {}
        self._delivered: dict[Consumer, int] = {}
        self._work: Iterator[None] | None = None
        self._timer: Timer | None = None
        self._is_stopped = period_ms < 0
        self._plan()

    @property
    def count(self) -> int:
        """How many messages are stranded, as of the last look."""
        return sum(one.count for one in self.by_queue.values())

    def stop(self) -> None:
        """Look no more. Idempotent."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._work = None

    def _plan(self) -> None:
        if not self._is_stopped:
            delay_s = max(_LOOK_S_MIN, self._period_s / _LOOKS)
            self._timer = self._timers.call_later(delay_s, self._begin)

    def _begin(self) -> None:
        self._work = self._steps()
        self._go_on()

    def _go_on(self) -> None:
        if self._work is None:
            return
        for _ in self._work:
            self._timer = self._timers.call_soon(self._go_on)
            return
        self._work = None
        self._plan()

    def _steps(self) -> Iterator[None]:
        delivered: dict[Consumer, int] = {}
        for name, queue in list(self._queues.items()):
            if queue.is_deleted or not self._is_looked_at(queue):
                self._forget(name)
                continue
            yield from self._look(queue, delivered)
        for name in [one for one in self._since_s if one not in self._queues]:
            self._forget(name)
        self._delivered = delivered

    def _is_looked_at(self, queue: Queue) -> bool:
        if not queue.waiting.count or queue.is_paused or queue.binding.internal:
            return False
        address = queue.binding.address
        if address.startswith(self._own_addresses):
            return False
        return queue.consumers.count > 0 or any(one.consumer_count for one in self._bindings(queue))

    def _bindings(self, queue: Queue) -> list[RemoteQueueBinding]:
        name = queue.binding.routing_name
        return [one for one in self._remote.at(queue.binding.address) if one.routing_name == name]

    def _forget(self, name: str) -> None:
        self._since_s.pop(name, None)
        self.by_queue.pop(name, None)

    def _look(self, queue: Queue, delivered: dict[Consumer, int]) -> Iterator[None]:
        before, since_s = self._since_s.get(queue.name, {}), {}
        working = set()
        for consumer in queue.consumers.all():
            delivered[consumer] = consumer.delivered_count
            if self._delivered.get(consumer) != consumer.delivered_count:
                # One that has just come is given its time, too.
                working.add(consumer)
        now_s = self._timers.time()
        first: tuple[int, str] | None = None
        count = 0
        cursor = queue.waiting.cursor()
        try:
            for number in range(LOOK_MAX):
                reference = cursor.advance_made()
                if reference is None or queue.is_deleted:
                    break
                message = reference.message
                where = is_stranded(message, queue.consumers.all(), working, self._bindings(queue))
                if where is not None:
                    began_s = before.get(message.message_id, now_s)
                    since_s[message.message_id] = began_s
                    if now_s - began_s >= self._period_s:
                        count += 1
                        first = first or (message.message_id, where)
                if number % _TURN_MAX == _TURN_MAX - 1:
                    yield
        finally:
            cursor.close()
        if queue.is_deleted:
            self._forget(queue.name)
            return
        self._since_s[queue.name] = since_s
        if first is None:
            self.by_queue.pop(queue.name, None)
            return
        message_id, where = first
        found = StrandedMessages(count, message_id, since_s[message_id], where)
        if queue.name not in self.by_queue:
            self._warn(queue, found)
        self.by_queue[queue.name] = found

    def _warn(self, queue: Queue, found: StrandedMessages) -> None:
        log.warning(
            "queue %s: message %d has waited for more than %d ms although a consumer takes it "
            "(%s); so have %d messages in all. See broker queue why %s %d",
            *(queue.name, found.message_id, round(self._period_s * 1000)),
            "on this node" if found.where == "here" else f"behind {found.where}",
            *(found.count, queue.name, found.message_id),
        )
