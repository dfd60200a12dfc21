"""Who gets the next message of a queue.

    no consumer wants anything special      the head goes to the next consumer that can take
    selectors                               an index finds who wants a message: selector_index.py
    groups, exclusive, messages that stay   each consumer looks for itself, by a cursor

Consumers of a higher priority come first; those of one priority take turns, and one that cannot
take is passed over. A turn of the event loop delivers a bounded number and then lets others run.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.properties import PropertyType
from broker.queues.contents import LOOK_COUNT_MAX

if TYPE_CHECKING:
    from broker.queues.consumer import Consumer
    from broker.queues.consumers import ConsumerLevel, Consumers
    from broker.queues.contents import QueueContents
    from broker.queues.groups import Groups
    from broker.queues.reference import Reference
    from broker.queues.selector_index import SelectorIndex

__all__ = ["browse", "dispatch"]


def dispatch(
    queue: QueueContents, consumers: Consumers, groups: Groups, index: SelectorIndex | None
) -> bool:
    """Deliver what can be delivered; whether the turn ended with more to do."""
    if consumers.is_plain:
        return _dispatch_heads(queue, consumers)
    if index is not None:
        return _dispatch_by_index(consumers, index)
    return _dispatch_by_cursors(queue, consumers, groups)


def _dispatch_heads(queue: QueueContents, consumers: Consumers) -> bool:
    waiting = queue.waiting
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
        if not consumers.is_plain or not consumers.may_take:
            return True
    return True


def _dispatch_by_index(consumers: Consumers, index: SelectorIndex) -> bool:
    has_more = index.look(LOOK_COUNT_MAX) == LOOK_COUNT_MAX
    count = 0
    while consumers.may_take and not index.is_closed:
        served = index.serve()
        if not served:
            return has_more
        count += served
        if count >= LOOK_COUNT_MAX:
            return True
    return consumers.may_take


def _dispatch_by_cursors(queue: QueueContents, consumers: Consumers, groups: Groups) -> bool:
    turn = _CursorTurn(queue, consumers, groups)
    while turn.count < LOOK_COUNT_MAX:
        if not consumers.may_take:
            return False
        if not any(turn.serve(level) for level in list(consumers.levels)):
            return turn.count >= LOOK_COUNT_MAX
    return True


class _CursorTurn:
    """A turn in which each consumer looks for itself.

    Attributes:
        count: references scanned so far.
    """

    __slots__ = ("_consumers", "_groups", "_queue", "count")

    def __init__(self, queue: QueueContents, consumers: Consumers, groups: Groups) -> None:
        self._queue = queue
        self._consumers = consumers
        self._groups = groups
        self.count = 0

    def serve(self, level: ConsumerLevel) -> bool:
        """Give each consumer of a priority one message at most; whether anybody got one."""
        served = False
        if self._queue.binding.exclusive:
            # All for one: the first of the highest priority, until it leaves.
            if level is not self._consumers.levels[0]:
                return False
            candidates = level.members[:1]
        else:
            candidates = level.in_turn()
        for consumer in candidates:
            if not consumer.can_take:
                continue
            reference = self._next_for(consumer)
            if reference is None:
                continue
            served = True
            level.served(consumer)
            self._hand_over(consumer, reference)
        return served

    def _next_for(self, consumer: Consumer) -> Reference | None:
        """Give the next reference that this consumer may have; its cursor stands there then."""
        cursor = consumer.cursor
        assert cursor is not None, "every consumer of such a queue has one"
        wanted, groups = consumer.filter, self._groups
        admission = self._queue.admission
        while self.count < LOOK_COUNT_MAX:
            reference = cursor.advance()
            if reference is None:
                return None
            self.count += 1
            message = reference.message
            if message.expiration and self._queue.expire_if_due(reference):
                continue
            if wanted is not None and not wanted.matches(message):
                continue
            key = groups.key_of(message)
            if key is not None:
                owner = groups.owner(key)
                if owner is not None and owner is not consumer:
                    continue
            if admission is not None and not admission.may_deliver(self._queue, message):
                continue
            return reference
        return None

    def _hand_over(self, consumer: Consumer, reference: Reference) -> None:
        queue, groups, message = self._queue, self._groups, reference.message
        key = groups.key_of(message)
        if key is not None and groups.took(key, consumer, message):
            first_key = queue.binding.group_first_key
            if first_key is not None:
                # In the copy that is written alone: other queues may have the message too.
                message = message.copy()
                message.set(first_key, PropertyType.BOOLEAN, True)
        if not queue.binding.non_destructive:
            queue.take(reference)
            if key is not None and groups.owner(key) is None:
                self._consumers.look_again()
        consumer.handle(reference, message)


def browse(consumer: Consumer) -> bool:
    """Show a browser what it has not seen; whether the turn ended with more to do."""
    cursor = consumer.cursor
    if cursor is None:
        # It was closed while a page was read for it.
        return False
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
