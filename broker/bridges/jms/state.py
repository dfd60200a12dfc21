"""What a bridge does with itself, as a state machine without I/O.

                      pause()                       connection lost
            ┌────────▶ PAUSED ──┐           ┌──────────────────────────┐
            │                   ▼           │                          ▼
    STOPPED ─▶ CONNECTING ─▶ STARTED ───────┘                       RETRYING
       ▲            │ ▲         ▲                                    │    │ no attempt is left
       │ stop()     │ └─────────┴────────── connected ───────────────┘    ▼
       └──── from every state           refused for good ─────────────▶ FAILED

Pausing is a wish beside the state: it holds as soon as the bridge is connected, and through
reconnects. FAILED is Artemis's "failed": only start() begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

from broker.bridges.jms.options import FOREVER

__all__ = ["BridgeState", "Counters", "Progress"]


class BridgeState(Enum):
    """What a bridge does."""

    STOPPED = "stopped"
    CONNECTING = "connecting"
    STARTED = "started"
    PAUSED = "paused"
    RETRYING = "retrying"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(slots=True)
class Counters:
    """What a bridge has done since it was made. Counts of messages.

    Attributes:
        moved: confirmed by the target and acknowledged at the source (Artemis: messageCount).
        moved_non_durable: of these, non-durable ones under ONCE_AND_ONLY_ONCE.
        retried: of aborted batches; they come again and are received anew.
        aborted: of batches whose outcome was a failure (Artemis: abortedMessageCount).
        in_doubt: transactions that are decided and have not ended on both sides.
        connected: how often both sides were connected.
        failures: how often a connection or an attempt failed.
    """

    moved: int = 0
    moved_non_durable: int = 0
    retried: int = 0
    aborted: int = 0
    in_doubt: int = 0
    connected: int = 0
    failures: int = 0

    def as_dict(self) -> dict[str, int]:
        """Give them by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


class Progress:
    """See the module's text.

    Args:
        max_retries: attempts after a failed one; -1 for ever.
        retry_interval_ms: wait before each; -1 makes none.

    Attributes:
        reason: why it does not move, in words; None while it does.
    """

    def __init__(self, max_retries: int, retry_interval_ms: int) -> None:
        self._max_retries = 0 if retry_interval_ms == FOREVER else max_retries
        self._retry_interval_ms = retry_interval_ms
        self._state = BridgeState.STOPPED
        self._is_paused = False
        self._attempts = 0
        self._failure = ""
        self.reason: str | None = "not started"

    @property
    def state(self) -> BridgeState:
        """What it does, as operators see it."""
        if self._state is BridgeState.STARTED and self._is_paused:
            return BridgeState.PAUSED
        return self._state

    @property
    def is_paused(self) -> bool:
        """Whether it is to move nothing."""
        return self._is_paused

    @property
    def is_running(self) -> bool:
        """Whether start() holds: it moves messages, or tries to."""
        return self._state not in (
            *(BridgeState.STOPPED, BridgeState.STOPPING, BridgeState.FAILED),
        )

    # --- what operators say -------------------------------------------------------------------

    def start(self) -> bool:
        """Begin; False if it runs already."""
        if self.is_running:
            return False
        self._state = BridgeState.CONNECTING
        self._attempts = 0
        self.reason = "connecting"
        return True

    def pause(self) -> None:
        """Move nothing until `resume()`; also before it is connected."""
        self._is_paused = True
        if self._state is BridgeState.STARTED:
            self.reason = "paused"

    def resume(self) -> None:
        """Move messages again."""
        self._is_paused = False
        if self._state is BridgeState.STARTED:
            self.reason = None

    def stop(self) -> None:
        """Begin to stop."""
        if self._state is not BridgeState.STOPPED:
            self._state = BridgeState.STOPPING
            self.reason = "stopping"

    def stopped(self) -> None:
        """Everything has ended."""
        if self._state is not BridgeState.FAILED:
            self._state = BridgeState.STOPPED
            self.reason = "not started"

    # --- what happens -------------------------------------------------------------------------

    def connected(self) -> None:
        """Both sides are there: attempts are counted anew."""
        if self._state is BridgeState.STOPPING:
            return
        self._state = BridgeState.STARTED
        self._attempts = 0
        self.reason = "paused" if self._is_paused else None

    def failed(self, error: Exception) -> int | None:
        """An attempt or the connection failed.

        Args:
            error: why.

        Returns:
            Milliseconds to wait before the next attempt; None if there is none.
        """
        if self._state is BridgeState.STOPPING:
            return None
        if self._max_retries != FOREVER and self._attempts >= self._max_retries:
            self.gave_up(error)
            return None
        self._attempts += 1
        self._state = BridgeState.RETRYING
        self._failure = _words(error)
        self.reason = self.retrying_in(self._retry_interval_ms)
        return self._retry_interval_ms

    def retrying_in(self, wait_ms: int) -> str:
        """Give why it does not move between two attempts, in words.

        Args:
            wait_ms: that are left until the next one.
        """
        limit = "" if self._max_retries == FOREVER else f" of {self._max_retries}"
        return f"waiting {wait_ms} ms to retry (attempt {self._attempts}{limit}): {self._failure}"

    def gave_up(self, error: Exception) -> None:
        """No further attempt is made.

        Args:
            error: why.
        """
        self._state = BridgeState.FAILED
        self.reason = f"failed: {_words(error)}"


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
