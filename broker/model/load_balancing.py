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

    def __init__(self, name: str) -> None:
        # Fields: each message that comes asks for one of them.
        self.redistributes = name in ("ON_DEMAND", "OFF_WITH_REDISTRIBUTION")
        """Whether messages without a consumer here go to nodes with one."""
        self.distributes = name in ("ON_DEMAND", "STRICT")
        """Whether an anycast message may go to another node when it comes."""
