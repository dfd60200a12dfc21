"""The consumers of a queue, by priority: the highest first, and within one in turn.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.queues.consumer import Consumer

__all__ = ["ConsumerLevel", "Consumers"]


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
    """All consumers of a queue but its browsers, the highest priority first.

    Attributes:
        count: how many.
        filtered_count: of these, those with a selector.
        is_plain: none wants anything special, see dispatch.py.
        may_take: whether anything may be delivered to them now.
    """

    __slots__ = ("count", "filtered_count", "is_plain", "levels", "may_take")

    def __init__(self) -> None:
        self.count = 0
        self.filtered_count = 0
        self.is_plain = True
        self.may_take = False
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
