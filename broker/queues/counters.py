"""What happened to messages since the start, for metrics."""

from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """See the module's text.

    Attributes:
        duplicates: refused for their duplicate ids.
        unrouted: that no queue took.
        expired: past their expiration.
        killed: delivered too often.
        dropped: of full addresses (DROP).
        stale_routes: that another broker sent to a queue which is not there any more.
        redistributed: that went to another broker because no consumer here takes them.
    """

    duplicates: int = 0
    unrouted: int = 0
    expired: int = 0
    killed: int = 0
    dropped: int = 0
    stale_routes: int = 0
    redistributed: int = 0
