"""Tells of messages that wait for a node that is gone: once, after a time.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.notifications import Notifications
    from broker.ports import Timer, Timers

__all__ = ["STRANDED_S", "LostNodes"]

log = logging.getLogger("broker.cluster")

STRANDED_S: Final = 60.0
"""A node that is restarted is back within this time, as a rule."""
LOOK_S: Final = 5.0


class LostNodes:
    """See the module's text.

    Args:
        name: of the cluster connection.
        waiting: gives of each node that is not reached its id, messages that wait for it, and for
            how many seconds it was not reached.
        timers: of the event loop.
        notifications: who tells of it.
        after_s: see `STRANDED_S`.
        look_s: seconds between two looks.
    """

    def __init__(
        self,
        name: str,
        waiting: Callable[[], Iterable[tuple[str, int, float]]],
        *,
        timers: Timers,
        notifications: Notifications,
        after_s: float = STRANDED_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._name = name
        self._waiting = waiting
        self._timers = timers
        self._notifications = notifications
        self._after_s = after_s
        self._look_s = look_s
        self._told: set[str] = set()
        self._timer: Timer | None = None

    def start(self) -> None:
        """Look from now on."""
        self._timer = self._timers.call_later(self._look_s, self._look)

    def stop(self) -> None:
        """Look no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def is_told(self, node_id: str) -> bool:
        """Whether messages are stranded for a node."""
        return node_id in self._told

    def _look(self) -> None:
        self.start()
        found = {
            node_id: (count, lost_s)
            for node_id, count, lost_s in self._waiting()
            if count and lost_s >= self._after_s
        }
        for node_id, (count, lost_s) in found.items():
            if node_id in self._told:
                continue
            log.warning(
                "cluster-connection %s: %d messages wait for node %s, which was not reached for "
                "%.0f s: `broker cluster sf return|move|drop` sends them back, to another node, or "
                "deletes them",
                *(self._name, count, node_id, lost_s),
            )
            self._notifications.stranded(self._name, node_id, count, int(lost_s * 1000))
        self._told = set(found)
