"""The steps of one of a pair as notifications: at once while it serves, the others once it does.

    Lifecycle ─▶ add() ─▶ kept ─▶ tell(): NODE_WAITING, NODE_ACTIVATING, NODE_ACTIVE, …

A broker that waits for its place, or loads, has no addresses to send to. One that has failed may
write and answer nothing more: the other one of the pair says why it took over, and a start after
the failure tells of that, too.

Threads: add() any; tell() the event loop's.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from broker.notifications import NotificationType

if TYPE_CHECKING:
    from broker.management.notifications import NotificationMessages
    from broker.server.lifecycle import Step

__all__ = ["Steps"]

# Those of a few starts that failed; older ones are in the log.
_KEPT_MAX: Final = 32


class Steps:
    """See the module's text.

    Args:
        role: `primary` or `backup`, as configured.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self._kept: deque[Step] = deque(maxlen=_KEPT_MAX)

    def add(self, step: Step) -> None:
        """Keep one until it can be told."""
        self._kept.append(step)

    def tell(self, notifications: NotificationMessages) -> None:
        """Tell all that were not told, in their order.

        Args:
            notifications: of the broker, which serves.

        Raises:
            JournalError: the storage has failed.
        """
        while self._kept:
            step = self._kept.popleft()
            kind = NotificationType[f"NODE_{step.state.name}"]
            notifications.node(kind, self._role, step.reason, step.since_ms)
