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
    """

    duplicates: int = 0
    unrouted: int = 0
    expired: int = 0
    killed: int = 0
    dropped: int = 0
