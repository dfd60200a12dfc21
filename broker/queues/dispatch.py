"""Who gets the next message of a queue.

    no consumer wants anything special      the head goes to the next consumer that can take
    selectors                               an index finds who wants a message: selector_index.py
    groups, exclusive, messages that stay   each consumer looks for itself, by a cursor

Consumers of a higher priority come first; those of one priority take turns, and one that cannot
take is passed over. A turn of the event loop delivers a bounded number and then lets others run.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference

__all__ = ["LOOK_COUNT_MAX", "ConsumerLevel", "Consumers", "browse", "dispatch"]

# References scanned in one turn (QueueImpl.MAX_DELIVERIES_IN_LOOP).
LOOK_COUNT_MAX: Final = 1000


class ConsumerLevel:
    """The consumers of one priority, taking turns."""

    __slots__ = ("members", "position", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.members: list[Consumer] = []
        self.position = 0

    def next_ready(self) -> Consumer | None:
        """Give the next in turn that can take; None when no one can."""
        members = self.members
        count = len(members)
        position = self.position
        for _ in range(count):
            if position >= count:
                position = 0
            consumer = members[position]
            position += 1
            if consumer.can_take:
                self.position = position
                return consumer
        return None

    def in_turn(self) -> list[Consumer]:
        """Give all, beginning with the one whose turn it is."""
        position = self.position % len(self.members)
        return self.members[position:] + self.members[:position]

    def served(self, consumer: Consumer) -> None:
        """It is the turn of the one behind this one."""
        self.position = self.members.index(consumer) + 1


class Consumers:
    """All consumers of a queue but its browsers, the highest priority first."""

    __slots__ = ("count", "filtered_count", "levels")

    def __init__(self) -> None:
        self.count = 0
        # Those with a selector.
        self.filtered_count = 0
        self.levels: list[ConsumerLevel] = []

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take part."""
        self.count += 1
        if consumer.filter is not None:
            self.filtered_count += 1
        for level in self.levels:
            if level.priority == consumer.priority:
                level.members.append(consumer)
                return
        level = ConsumerLevel(consumer.priority)
        level.members.append(consumer)
        self.levels.append(level)
        self.levels.sort(key=lambda one: -one.priority)

    def remove(self, consumer: Consumer) -> bool:
        """Let it take part no more; whether it did."""
        for level in self.levels:
            if consumer in level.members:
                place = level.members.index(consumer)
                level.members.remove(consumer)
                if place < level.position:
                    level.position -= 1
                if not level.members:
                    self.levels.remove(level)
                self.count -= 1
                if consumer.filter is not None:
                    self.filtered_count -= 1
                return True
        return False

    def all(self) -> list[Consumer]:
        """Give them all, in order."""
        return [consumer for level in self.levels for consumer in level.members]

    def wants(self, message: Message) -> bool:
        """Whether a consumer takes a message, as far as its selector tells."""
        return any(
            consumer.filter is None or consumer.filter.matches(message)
            for level in self.levels
            for consumer in level.members
        )

    def look_again(self) -> None:
        """Let all look at what they passed over."""
        for consumer in self.all():
            if consumer.cursor is not None:
                consumer.cursor.reset()

    def next_ready(self) -> Consumer | None:
        """Give the next that can take: highest priority first, in turn."""
        for level in self.levels:
            consumer = level.next_ready()
            if consumer is not None:
                return consumer
        return None


def dispatch(queue: Queue) -> bool:
    """Deliver what can be delivered; whether the turn ended with more to do."""
    if queue.is_plain:
        return _dispatch_heads(queue)
    if queue.index is not None:
        return _dispatch_by_index(queue)
    return _dispatch_by_cursors(queue)


def _dispatch_heads(queue: Queue) -> bool:
    waiting = queue.waiting
    consumers = queue.consumers
    for _ in range(LOOK_COUNT_MAX):
        reference = waiting.head()
        if reference is None:
            return False
        message = reference.message
        if message.expiration and queue.expire_if_due(reference):
            continue
        consumer = consumers.next_ready()
        if consumer is None:
            return False
        waiting.remove(reference)
        queue.delivering_count += 1
        consumer.handle(reference, message)
        if not queue.is_plain or not queue.is_dispatching:
            return True
    return True


def _dispatch_by_index(queue: Queue) -> bool:
    index = queue.index
    assert index is not None, "asked before"
    count = index.look(LOOK_COUNT_MAX)
    has_more = count == LOOK_COUNT_MAX
    count = 0
    while queue.is_dispatching and queue.index is index:
        served = index.serve(queue)
        if not served:
            return has_more
        count += served
        if count >= LOOK_COUNT_MAX:
            return True
    return queue.is_dispatching


def _dispatch_by_cursors(queue: Queue) -> bool:
    budget = ScanBudget()
    while budget.count < LOOK_COUNT_MAX:
        if not queue.is_dispatching:
            return False
        if not any(_serve_level(queue, level, budget) for level in list(queue.consumers.levels)):
            return budget.count >= LOOK_COUNT_MAX
    return True


class ScanBudget:
    """How many references were scanned in this turn of the loop."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def _serve_level(queue: Queue, level: ConsumerLevel, budget: ScanBudget) -> bool:
    """Give each consumer of a priority one message at most; whether anybody got one."""
    served = False
    if queue.binding.exclusive:
        # All for one: the first of the highest priority, until it leaves.
        if level is not queue.consumers.levels[0]:
            return False
        candidates = level.members[:1]
    else:
        candidates = level.in_turn()
    for consumer in candidates:
        if not consumer.can_take:
            continue
        reference = _next_for(queue, consumer, budget)
        if reference is None:
            continue
        served = True
        level.served(consumer)
        _hand_over(queue, consumer, reference)
    return served


def _next_for(queue: Queue, consumer: Consumer, budget: ScanBudget) -> Reference | None:
    """Give the next reference that this consumer may have; its cursor stands there then."""
    cursor = consumer.cursor
    assert cursor is not None, "every consumer of such a queue has one"
    wanted = consumer.filter
    while budget.count < LOOK_COUNT_MAX:
        reference = cursor.advance()
        if reference is None:
            return None
        budget.count += 1
        message = reference.message
        if message.expiration and queue.expire_if_due(reference):
            continue
        if wanted is not None and not wanted.matches(message):
            continue
        key = queue.groups.key_of(message)
        if key is not None:
            owner = queue.groups.owner(key)
            if owner is not None and owner is not consumer:
                continue
        return reference
    return None


def _hand_over(queue: Queue, consumer: Consumer, reference: Reference) -> None:
    message = reference.message
    key = queue.groups.key_of(message)
    if key is not None and queue.groups.took(key, consumer, message):
        first_key = queue.binding.group_first_key
        if first_key is not None:
            # In the copy that is written alone: other queues may have the message too.
            message = message.copy()
            message.set(first_key, PropertyType.BOOLEAN, True)
    if not queue.binding.non_destructive:
        queue.waiting.remove(reference)
        queue.delivering_count += 1
        if key is not None and queue.groups.owner(key) is None:
            queue.look_again()
    consumer.handle(reference, message)


def browse(consumer: Consumer) -> bool:
    """Show a browser what it has not seen; whether the turn ended with more to do."""
    cursor = consumer.cursor
    assert cursor is not None, "a browser has one"
    wanted = consumer.filter
    for _ in range(LOOK_COUNT_MAX):
        if not consumer.can_take:
            return False
        reference = cursor.advance()
        if reference is None:
            reference = _next_in_pages(consumer)
            if reference is None:
                return False
        elif consumer.page_browser is not None and consumer.page_browser.has_seen(reference):
            continue
        if wanted is None or wanted.matches(reference.message):
            consumer.handle(reference, reference.message)
    return True


def _next_in_pages(browser: Consumer) -> Reference | None:
    """Give what comes behind all that the queue has in memory."""
    queue = browser.queue
    pages, looking = queue.pages, browser.page_browser
    if pages is None:
        browser.page_browser = None
        return None
    if looking is None or looking.subscription is not pages:
        looking = browser.page_browser = pages.browser(lambda: queue.prompt(browser))
    return looking.next()
