"""When a message is to be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.model.properties import PropertyValue

__all__ = ["SCHEDULED", "time_ms"]

# The property that says when a message is to be delivered (Message.HDR_SCHEDULED_DELIVERY_TIME).
SCHEDULED: Final = "_AMQ_SCHED_DELIVERY"
_LONG_MAX: Final = 2**63 - 1


def time_ms(value: PropertyValue) -> int:
    """Give a time of delivery: Artemis takes any number; 0: no time, or one before 1970.

    >>> time_ms(1700000000000), time_ms(1.7e12), time_ms(float("nan")), time_ms("17")
    (1700000000000, 1700000000000, 0, 0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return 0
    return int(min(value, _LONG_MAX))
