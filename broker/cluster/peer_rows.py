"""What is known of each other node of a cluster connection, as values for JSON.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.routing.remote_bindings import sf_owner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker.cluster.peer_bridge import PeerBridge
    from broker.queues.queue import Queue

__all__ = ["left_names", "nodes_with_queues", "row_of_peer", "row_of_queue"]


def nodes_with_queues(queues: Mapping[str, Queue], connection: str) -> dict[str, Queue]:
    """Give the store-and-forward queues of a cluster connection, by the ids of their nodes.

    Args:
        queues: all there are, by name.
        connection: its name.
    """
    found = {}
    for name, queue in queues.items():
        owner = sf_owner(name)
        if owner is not None and owner[0] == connection:
            found[owner[1]] = queue
    return found


def left_names(queues: Mapping[str, Queue], in_use: Collection[str]) -> list[str]:
    """Give the names of connections that have store-and-forward queues, and are not in use.

    Args:
        queues: all there are, by name.
        in_use: names of cluster connections.
    """
    owners = filter(None, map(sf_owner, queues))
    return sorted({connection for connection, _ in owners if connection not in in_use})


def row_of_peer(peer: PeerBridge, now_s: float, *, is_stranded: bool) -> dict[str, object]:
    """Say how the bridge to a node stands.

    Args:
        peer: the bridge.
        now_s: by the loop's clock.
        is_stranded: it was told that messages wait for it.
    """
    status, lost_s = peer.status, peer.lost_at_s
    bindings = peer.bindings.by_name.values()
    return {
        "nodeID": peer.node_id,
        "connected": peer.is_connected,
        "target": ", ".join(f"{one.host}:{one.port}" for one in peer.peer_target.connectors),
        "lostForMs": -1 if lost_s is None else int((now_s - lost_s) * 1000),
        "queues": len(bindings),
        "consumers": sum(one.consumer_count for one in bindings),
        "waiting": status.message_count,
        "pending": status.pending_count,
        "acknowledged": status.acknowledged_count,
        "sentBack": peer.sent_back_count,
        "stranded": status.message_count if is_stranded else 0,
        "reason": status.reason,
    }


def row_of_queue(
    node_id: str, queue: Queue, lost_for_ms: int, reason: str, *, is_stranded: bool
) -> dict[str, object]:
    """Say what waits for a node that has no bridge.

    Args:
        node_id: of the node.
        queue: its store-and-forward queue.
        lost_for_ms: since when it is known that it is not reached; -1 if that is not known.
        reason: why nothing moves.
        is_stranded: it was told that messages wait for it.
    """
    count = queue.message_count
    return {
        "nodeID": node_id,
        "connected": False,
        "target": "",
        "lostForMs": lost_for_ms,
        "queues": 0,
        "consumers": 0,
        "waiting": count,
        "pending": 0,
        "acknowledged": 0,
        "sentBack": 0,
        "stranded": count if is_stranded else 0,
        "reason": reason,
    }
