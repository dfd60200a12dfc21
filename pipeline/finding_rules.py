"""Words and rules for what is wrong with messages, of audits and of tests that read histories.

An audit reads what brokers have stored, a test what clients were told. Where both can see a fault,
both call it by the same word, by the same rule:

    lost           it counts for a queue, and the queue has no acknowledgement and no message
    duplicated     a queue got more messages with one id than sends that count explain
    out of order   of one lane, it came behind what was sent later

A lane is what has to keep its order: a group, or a queue with one consumer at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DUPLICATED", "IDS", "LOST", "OUT_OF_ORDER", "copies_max", "late_in_lane"]

LOST: Final = "lost"
DUPLICATED: Final = "duplicated"
OUT_OF_ORDER: Final = "out of order"
# By which an audit knows a message again: the column, and the reason of a finding. The last is the
# JMSMessageID of the message that a JMS bridge made it of.
IDS: Final = {"duplicate_id": "duplicate id", "user_id": "user id", "bridged_id": "bridged id"}


def copies_max(sends: int, *, has_duplicate_id: bool) -> int:
    """Give how many messages so many sends may leave in a queue.

    >>> copies_max(3, has_duplicate_id=True)
    1

    Args:
        sends: that count.
        has_duplicate_id: the broker takes one of them.
    """
    return min(sends, 1) if has_duplicate_id else sends


def late_in_lane(went: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Give what came behind something that was sent later, each with the place of that.

    Of two that changed places this is one: the one sent first.

    >>> list(late_in_lane([1, 3, 2, 4]))
    [(2, 1)]

    Args:
        went: when each was sent, in the order in which they came.

    Yields:
        Two indexes of `went`: of one that came late, and of the latest sent before it.
    """
    latest = None
    values: list[int] = []
    for index, value in enumerate(went):
        values.append(value)
        if latest is None or value > values[latest]:
            latest = index
        elif value < values[latest]:
            yield index, latest
