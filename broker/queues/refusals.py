"""What a consumer does not want to be given again (AMQP: undeliverable-here).

It stands where the consumer's selector does: whatever chooses a consumer for a message asks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.queues.filter import Equality, Filter

__all__ = ["Refusals"]

# The oldest is forgotten then, and may be given to the consumer once more.
REFUSED_MAX: Final = 10_000


class Refusals:
    """A `Filter`: the consumer's own, without some messages.

    Args:
        filter: the consumer's selector; None takes all.
    """

    is_equality = False

    def __init__(self, filter: Filter | None) -> None:
        self._filter = filter
        self._ids: dict[int, None] = {}
        self.text = "" if filter is None else filter.text

    @property
    def equality(self) -> Equality | None:
        """As the consumer's selector has it."""
        return None if self._filter is None else self._filter.equality

    def add(self, message: Message) -> None:
        """Take a message no more."""
        if len(self._ids) >= REFUSED_MAX:
            del self._ids[next(iter(self._ids))]
        self._ids[message.message_id] = None

    def has_refused(self, message: Message) -> bool:
        """Whether the message is one of those."""
        return message.message_id in self._ids

    def matches(self, message: Message) -> bool:
        """Whether the message is wanted."""
        if message.message_id in self._ids:
            return False
        return self._filter is None or self._filter.matches(message)
