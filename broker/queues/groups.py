"""Message groups: all messages of a group go to one consumer, in order.

    property _AMQ_GROUP_ID         the group, text
    property _AMQ_GROUP_SEQUENCE   -1 ends the group behind this message

The first message of a group pins it to the consumer that takes it, until that consumer leaves, the
group is ended, or a rebalance. With buckets the key is the group's hash modulo their number, so
that the memory for groups is bounded (MessageGroups, BucketMessageGroups).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.java_text import simple_string_hash
from broker.model.message import GROUP_ID

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.queues.consumer import Consumer

__all__ = ["GROUP_ID", "GROUP_SEQUENCE", "UNLIMITED_BUCKETS", "Groups"]

GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
_DISABLED: Final = 0
UNLIMITED_BUCKETS: Final = -1


class Groups:
    """Which consumer has which group of one queue.

    Args:
        bucket_count: -1 a key for each group, 0 no grouping at all, else so many buckets.
    """

    __slots__ = ("_bucket_count", "_owners")

    def __init__(self, bucket_count: int) -> None:
        self._bucket_count = bucket_count
        self._owners: dict[str | int, Consumer] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def key_of(self, message: Message) -> str | int | None:
        """Give the group, or its bucket; None where the message is in none."""
        if self._bucket_count == _DISABLED:
            return None
        group = message.get(GROUP_ID)
        if group is None:
            return None
        text = str(group)
        if self._bucket_count == UNLIMITED_BUCKETS:
            return text
        return (simple_string_hash(text) & 0x7FFFFFFF) % self._bucket_count

    def owner(self, key: str | int) -> Consumer | None:
        """Give the consumer that has the group."""
        return self._owners.get(key)

    def took(self, key: str | int, consumer: Consumer, message: Message) -> bool:
        """The consumer takes a message of the group; whether it is the first of a pinned one."""
        is_first = self._owners.get(key) is not consumer
        sequence = message.get(GROUP_SEQUENCE)
        if isinstance(sequence, int) and sequence < 0:
            self._owners.pop(key, None)
        else:
            self._owners[key] = consumer
        return is_first

    def forget(self, consumer: Consumer) -> bool:
        """Its groups have no consumer now; whether there were any."""
        mine = [key for key, owner in self._owners.items() if owner is consumer]
        for key in mine:
            del self._owners[key]
        return bool(mine)

    def reset(self) -> None:
        """No group has a consumer now."""
        self._owners.clear()

    def owners(self) -> dict[str | int, Consumer]:
        """Give a copy of who has what, for management."""
        return dict(self._owners)

    def reset_group(self, group: str) -> None:
        """This group has no consumer now."""
        self._owners.pop(
            group
            if self._bucket_count == UNLIMITED_BUCKETS
            else (simple_string_hash(group) & 0x7FFFFFFF) % max(1, self._bucket_count),
            None,
        )
