"""The last message of each key: a newer one takes the place of the one that waits.

What is being delivered keeps its place, and is dropped should it come back (LastValueQueue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.properties import PropertyValue
    from broker.queues.reference import Reference
    from broker.queues.reference_lists import PriorityList
    from broker.records.binding_records import QueueBinding

__all__ = ["LAST_VALUE", "LastValues"]

LAST_VALUE: Final = "_AMQ_LVQ_NAME"


class LastValues:
    """The newest reference of each key in one queue.

    Args:
        binding: says by which property; None is `_AMQ_LVQ_NAME`.
    """

    __slots__ = ("_key_property", "_last")

    def __init__(self, binding: QueueBinding) -> None:
        self._key_property = binding.last_value_key or LAST_VALUE
        self._last: dict[PropertyValue, Reference] = {}

    def _key_of(self, message: Message) -> PropertyValue:
        return message.get(self._key_property)

    def put(self, reference: Reference, waiting: PriorityList) -> Reference | None:
        """List a new reference; the one that it replaces, which is listed no more.

        One that is not due yet was taken out of the way by its own time, and counts as older.
        """
        key = self._key_of(reference.message)
        if key is None:
            waiting.add_tail(reference)
            return None
        old = self._last.get(key)
        self._last[key] = reference
        if old is None or old is reference or old.level < 0:
            waiting.add_tail(reference)
            return None
        waiting.replace(old, reference)
        return old

    def last(self, key: PropertyValue) -> Reference | None:
        """Give the newest of a key; None where there is none."""
        return self._last.get(key)

    def is_last(self, reference: Reference) -> bool:
        """Whether no newer one has come meanwhile."""
        key = self._key_of(reference.message)
        return key is None or self._last.get(key, reference) is reference

    def gone(self, reference: Reference) -> None:
        """It left the queue."""
        key = self._key_of(reference.message)
        if key is not None and self._last.get(key) is reference:
            del self._last[key]
