"""When a message goes to another node of a cluster (message-load-balancing)."""

from __future__ import annotations

from enum import Enum

__all__ = ["MessageLoadBalancing"]


class MessageLoadBalancing(Enum):
    """When a message goes to another node."""

    OFF = "OFF"
    STRICT = "STRICT"
    ON_DEMAND = "ON_DEMAND"
    OFF_WITH_REDISTRIBUTION = "OFF_WITH_REDISTRIBUTION"

    @property
    def redistributes(self) -> bool:
        """Whether messages without a consumer here go to nodes with one."""
        return self in (
            MessageLoadBalancing.ON_DEMAND,
            MessageLoadBalancing.OFF_WITH_REDISTRIBUTION,
        )

    @property
    def distributes(self) -> bool:
        """Whether an anycast message may go to another node when it comes."""
        return self in (MessageLoadBalancing.ON_DEMAND, MessageLoadBalancing.STRICT)
