"""Why a message without a consumer here does not go to another node; and what holds a bridge.

Functions without I/O.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from broker.management.reasons.state import Reason, time_text
from broker.model.counted_text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.management.reasons.state import Forwarding, MessageState, QueueState

__all__ = ["elsewhere", "forwarding_reason"]


def elsewhere(queue: QueueState, message: MessageState) -> Iterator[Reason]:
    """Say what of other nodes there is to say; nothing where none has such a queue.

    Args:
        queue: whose consumers here do not take the message.
        message: that waits.
    """
    if not queue.remotes or queue.is_internal:
        return
    wanting = [one for one in queue.remotes if one.takes and one.is_connected]
    if not wanting:
        yield _none_there(queue, message)
        return
    there = wanting[0]
    match = shlex.quote(queue.address)
    if not any(one.redistributes for one in wanting):
        yield Reason(
            "mode-without-redistribution",
            f"a consumer on node {there.node_id} takes it, but message-load-balancing {there.mode}"
            " moves nothing that waits",
            "Consume here, or set message-load-balancing to ON_DEMAND or OFF_WITH_REDISTRIBUTION.",
        )
    elif message.group is not None:
        yield Reason(
            "group-stays",
            f"a consumer on node {there.node_id} takes it, but messages of a group are not"
            " redistributed",
            "Consume here.",
        )
    elif queue.redistribution_delay_ms < 0:
        yield Reason(
            "redistribution-off",
            f"a consumer on node {there.node_id} takes it, but redistribution-delay of"
            f" {queue.address} is {queue.redistribution_delay_ms}: what waits stays",
            f"Set redistribution-delay of {match} to 0 or more in broker.xml, or by operation "
            "addAddressSettings of broker.",
        )
    elif queue.redistribution_in_ms:
        yield Reason(
            "redistribution-delay",
            f"it goes to node {there.node_id} in {queue.redistribution_in_ms / 1000:.1f} s:"
            f" redistribution-delay of {queue.address} is {queue.redistribution_delay_ms} ms",
            "Wait, or lower redistribution-delay.",
        )
    else:
        yield Reason(
            "redistributing",
            f"it is on its way to node {there.node_id}: the messages of the queue are looked at"
            " in order",
            "Ask again in a few seconds; if nothing moves, see broker cluster status.",
        )


def _none_there(queue: QueueState, message: MessageState) -> Reason:
    lost = [one.node_id for one in queue.remotes if not one.is_connected]
    if lost:
        return Reason(
            "node-not-reached",
            f"no connected node has a consumer for it; node {lost[0]} has the queue and is not"
            " reached, so its consumers are not known",
            "See the link: broker cluster status.",
        )
    count = sum(one.consumer_count for one in queue.remotes)
    nodes = len({one.node_id for one in queue.remotes})
    return Reason(
        "no-consumer-elsewhere" if not count else "no-match-elsewhere",
        f"{counted(nodes, 'other node')} {'has' if nodes == 1 else 'have'} the queue,"
        f" with {counted(count, 'consumer')}"
        + (f", none of which takes message {message.message_id}" if count else ""),
        "Start a consumer that takes it, on any node: it is redistributed."
        if queue.redistribution_delay_ms >= 0
        else "Start a consumer that takes it on this node.",
    )


def forwarding_reason(forwarding: Forwarding, now_ms: int) -> Reason:
    """Say why the queue of a bridge does not move, or what the bridge does."""
    node_id = forwarding.node_id
    if node_id is None:
        return Reason(
            "bridge",
            f"bridge {forwarding.bridge} takes from this queue: {forwarding.reason}",
            f"See broker bridge why {shlex.quote(forwarding.bridge)}.",
        )
    if not forwarding.is_known:
        return Reason(
            "node-gone",
            f"it is in the store-and-forward queue of node {node_id}, which was not seen since"
            " this broker started",
            f"Start that node, or send its messages back: broker cluster sf return {node_id}.",
        )
    if not forwarding.is_connected:
        since_ms = forwarding.lost_since_ms
        since = "" if since_ms is None else f" since {time_text(since_ms)}"
        return Reason(
            "node-not-reached",
            f"it is in the store-and-forward queue of node {node_id}, which is not reached"
            f"{since}: {forwarding.reason}",
            f"Mend the link, or send the node's messages back: broker cluster sf return {node_id}.",
        )
    return Reason(
        "forwarding",
        f"it is in the store-and-forward queue of node {node_id}: {forwarding.reason}",
        "If the target is full or blocked, consume there; see broker cluster status.",
    )
