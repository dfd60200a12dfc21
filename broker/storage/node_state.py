"""The state of a pair on one store, and what a backup does about it: decisions alone, no files.

    primary   F ─▶ primary's lock ─▶ (loads) ─▶ L ─▶ stop ─▶ P, or L with failover-on-shutdown
    backup    backup's lock ─▶ waits ─▶ L, and the primary's lock is free ─▶ (loads) ─▶ L
              L of its own ─▶ F: the primary asks for its place ─▶ stops, F stays ─▶ waits

    0  first start: no broker has served yet     F  a primary waits for its place, or loads
    N  not started                               P  stopped in good order: no backup takes over
    L  active

The letters are byte 0 of `server.lock`, as Artemis's (FileLockNodeManager). Unlike there, a backup
takes over from a primary that asked for its place and died before it served: see `ABANDONED_S`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["ABANDONED_S", "BackupWatch", "NodeState"]

# Artemis looks for a free lock each 2 s at most: a primary that lives has taken it by then.
ABANDONED_S: Final = 10.0


class NodeState(Enum):
    """The state; the values are those of the file."""

    FIRST_TIME_START = b"0"
    NOT_STARTED = b"N"
    ACTIVE = b"L"
    FAILING_BACK = b"F"
    PAUSED = b"P"

    @classmethod
    def of(cls, letter: bytes) -> NodeState:
        """Give the state that a letter stands for; NOT_STARTED for none, as Artemis reads it.

        Raises:
            ValueError: no state has such a letter.

        >>> NodeState.of(b"L"), NodeState.of(b"")
        (<NodeState.ACTIVE: b'L'>, <NodeState.NOT_STARTED: b'N'>)
        """
        return cls(letter) if letter else cls.NOT_STARTED


class BackupWatch:
    """What a backup that waits makes of the state, and of who has the primary's lock.

    Attributes:
        reason: why it waits, or takes over; changes only when there is something new to tell.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._abandoned_since_s: float | None = None

    def may_take_over(self, state: NodeState, holder: str | None, now_s: float) -> bool:
        """Whether the backup is to take the primary's lock, and serve.

        Args:
            state: as it is now.
            holder: who has the primary's lock; None if it is free.
            now_s: monotonic seconds.

        >>> watch = BackupWatch()
        >>> watch.may_take_over(NodeState.ACTIVE, "process 7", 0.0), watch.reason
        (False, 'in use by another broker (process 7)')
        >>> watch.may_take_over(NodeState.PAUSED, None, 0.0), watch.reason
        (False, 'the primary is not active, or was stopped in good order (state P)')
        >>> watch.may_take_over(NodeState.ACTIVE, None, 0.0), watch.reason
        (True, 'the primary has the state L, and its lock is free: it has failed')
        """
        if state is not NodeState.FAILING_BACK or holder is not None:
            self._abandoned_since_s = None
        if holder is not None:
            self.reason = f"in use by another broker ({holder})"
            return False
        if state is NodeState.ACTIVE:
            self.reason = "the primary has the state L, and its lock is free: it has failed"
            return True
        if state is NodeState.FAILING_BACK:
            if self._abandoned_since_s is None:
                self._abandoned_since_s = now_s
            if now_s - self._abandoned_since_s >= ABANDONED_S:
                self.reason = (
                    f"the primary asked for its place (state F) and did not take it for "
                    f"{ABANDONED_S:.0f} s: it has failed"
                )
                return True
            self.reason = "the primary asks for its place (state F)"
            return False
        self.reason = (
            "the primary is not active, or was stopped in good order "
            f"(state {state.value.decode()})"
        )
        return False
