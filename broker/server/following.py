"""What waits for a node that scales down follows its messages: to the node that gets them.

    disconnected, with a target ─▶ never sent: goes at once
                                ─▶ sent, no answer: goes when the target has all of the node

The node tells the target the duplicate ids that it has seen. So what it may have is sent to the
target by the id that the node knows it by, once the target says that all is there. A message that
the node had, and gave to the target, is refused there as a duplicate.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from broker.client.errors import BrokerRefused, ClientError
from broker.management.forwarded_messages import move_all, return_all
from broker.routing.remote_bindings import SENT_TO

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.cluster.peer_bridge import PeerBridge
    from broker.management.forwarded_messages import Moved
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCaches
    from broker.routing.message_mover import MessageMover

__all__ = ["Following"]

log = logging.getLogger("broker.cluster")

_LOOK_S: Final = 0.2


class Following:
    """See the module's text.

    Args:
        connection: cluster connection.
        left: the bridge to the node that scales down.
        queue: store-and-forward queue of the node.
        target: node id of the one that gets its messages; may be this broker.
        mover: of this broker.
        duplicates: likewise.
        is_here: whether all messages of a node are in this broker.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        left: PeerBridge,
        queue: Queue,
        target: str,
        *,
        mover: MessageMover,
        duplicates: DuplicateCaches,
        is_here: Callable[[str], bool],
    ) -> None:
        self._connection = connection
        self._left = left
        self._queue = queue
        self._target = target
        self._mover = mover
        self._duplicates = duplicates
        self._is_here = is_here
        self._moved = 0

    async def run(self) -> None:
        """Move all there is.

        Raises:
            JournalError: the storage has failed.
        """
        left, queue = self._left, self._queue
        # Nothing more is sent there, and what was not answered comes back.
        await left.stop(within_s=0)
        await self._move(uncertain=False)
        while queue.message_count and not left.is_started:
            if await self._has_all():
                await self._move(uncertain=True)
                break
            await asyncio.sleep(_LOOK_S)
        if self._moved:
            log.info(
                "cluster-connection %s: %d messages for node %s, which has scaled down to node %s, "
                "went on; %d stay",
                self._connection.config.name,
                self._moved,
                left.node_id,
                self._target,
                queue.message_count,
            )

    @property
    def _is_own(self) -> bool:
        return self._target == self._connection.topology.node_id

    async def _has_all(self) -> bool:
        """Whether the target has all that the node had."""
        if self._is_own:
            return self._is_here(self._left.node_id)
        peer = self._connection.peers.get(self._target)
        if peer is None or not peer.is_connected:
            return False
        try:
            return await peer.ask("isScaledDown", self._left.node_id) is True
        except BrokerRefused:
            # Artemis does not tell.
            return True
        except ClientError:
            return False

    async def _move(self, *, uncertain: bool) -> None:
        queue, mover = self._queue, self._mover
        unanswered = self._connection.unanswered(self._left.node_id, queue)
        mark = SENT_TO + self._target
        there = self._connection.peers.get(self._target)
        if there is not None and there.bindings.is_told:
            work = move_all(
                queue,
                unanswered,
                mover,
                known=self._left.bindings,
                target=there.bindings,
                uncertain=uncertain,
                mark=mark,
            )
            self._moved += await _run(work)
        work = return_all(
            queue,
            unanswered,
            mover,
            known=self._left.bindings,
            uncertain=uncertain,
            mark=mark,
            was_there=self._was_there if self._is_own else None,
        )
        self._moved += await _run(work)

    def _was_there(self, address: str, duplicate_id: bytes) -> bool:
        return duplicate_id in self._duplicates.of_bridges(address)


async def _run(work: Generator[float | None, None, Moved]) -> int:
    while True:
        try:
            wait_s = next(work)
        except StopIteration as end:
            found: Moved = end.value
            return found.moved
        await asyncio.sleep(wait_s or 0)
