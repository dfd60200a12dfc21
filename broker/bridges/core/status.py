"""What a bridge does, and why it does not move: in words, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.bridges.core.sending import Waits

if TYPE_CHECKING:
    from broker.bridges.core.forwarding import Forwarding

__all__ = ["BridgeState", "BridgeStatus", "reason_of"]


class BridgeState(Enum):
    """States of a bridge (BridgeImpl.State)."""

    STOPPED = "STOPPED"
    STARTING = "STARTING"
    STARTED = "STARTED"
    STOPPING = "STOPPING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeStatus:
    """What a bridge does at a moment.

    Attributes:
        name: of the bridge.
        queue: where it takes from.
        state: of the bridge.
        is_connected: to the target.
        target: host and port, or the names of its connectors.
        window: messages on their way at most; 0 without a connection.
        message_count: in the queue, those on their way too.
        pending_count: sent and not confirmed.
        acknowledged_count: confirmed by the target since the start.
        reason: why it does not move, or what it does.
        is_moving: nothing is wrong.
    """

    name: str
    queue: str
    state: BridgeState
    is_connected: bool
    target: str
    window: int
    message_count: int
    pending_count: int
    acknowledged_count: int
    reason: str
    is_moving: bool


_STUCK_S: Final = 1.0


def reason_of(
    forwarding: Forwarding, *, message_count: int, filter_text: str | None, now_s: float
) -> tuple[str, bool]:
    """Say why a connected bridge does not move, or what it does; and whether all is well.

    Args:
        forwarding: of the bridge.
        message_count: in its queue.
        filter_text: of the bridge.
        now_s: the loop's clock.
    """
    waits, address, since_s = forwarding.waits
    waited_s = now_s - since_s
    if waits is Waits.CREDIT and waited_s >= _STUCK_S:
        return (
            f"no credit for {waited_s:.0f} s: address {address!r} of the target is full or blocked",
            False,
        )
    if waits is Waits.SOCKET and waited_s >= _STUCK_S:
        return f"the target has read nothing for {waited_s:.0f} s", False
    if forwarding.held_count:
        addresses = forwarding.held_addresses
        others = f" and {len(addresses) - 1} others" if len(addresses) > 1 else ""
        where = f"{addresses[0]!r}{others} of the target"
        why = f"{forwarding.held_count} messages wait for address {where}, which is full or blocked"
        return f"{why}, or has no queue for them; the others go", False
    if forwarding.is_idle:
        if not message_count:
            return "the queue is empty", True
        if filter_text:
            return f"filter {filter_text!r} matches none of {message_count} messages", False
        return f"{message_count} messages are scheduled, paused or with other consumers", False
    if forwarding.is_window_full:
        return f"waits for the target: {forwarding.pending_count} messages on their way", True
    return "forwards", True
