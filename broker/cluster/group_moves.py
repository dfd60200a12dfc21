"""Messages of groups that wait here and belong to another broker's queue are moved there, in order.

    look(queue) ─▶ each waiting message ─▶ whose is it? ─▶ moved; until none is left

While that goes on, what comes for these groups waits behind them: it is not sent ahead. So it is,
too, while the owner is known and its queue is not yet. If one message of a group cannot be moved,
those behind it stay as well.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.cluster.reading_ahead import read_more
from broker.errors import BrokerError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from broker.cluster.redistribution import Mover
    from broker.model.message import Message
    from broker.queues.counters import Counters
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.queues.reference_lists import Cursor
    from broker.routing.bindings import Binding

__all__ = ["Elsewhere", "GroupMoves"]

log = logging.getLogger("broker.cluster")

# Messages looked at before other work has its turn.
_LOOK_COUNT: Final = 100
# Until those are looked at again that could not be moved, or are not durable yet.
_AGAIN_S: Final = 0.05
_FAILED_S: Final = 1.0


class Elsewhere(NamedTuple):
    """Where a waiting message belongs, if not here.

    Attributes:
        key: what stays in order: its group, or that group's bucket.
        binding: the queue there, reached or not; None: its broker has not told of it yet.
    """

    key: Hashable
    binding: Binding | None


class GroupMoves:
    """See the module's text.

    Args:
        target: gives where a waiting message belongs; None: here, or its owner is not known.
        mover: moves messages.
        counters: for metrics.
    """

    def __init__(
        self,
        target: Callable[[Queue, Message], Elsewhere | None],
        mover: Mover,
        counters: Counters,
    ) -> None:
        self._target = target
        self._mover = mover
        self._counters = counters
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Queues that are to be looked at from the beginning.
        self._again: set[str] = set()
        self._is_stopped = False

    def look(self, queue: Queue) -> None:
        """Move what belongs elsewhere. Nothing happens where that goes on."""
        if queue.name in self._tasks or self._is_stopped:
            return
        task = asyncio.get_running_loop().create_task(self._run(queue))
        self._tasks[queue.name] = task
        task.add_done_callback(partial(self._ended, queue.name))

    def look_again(self, queue: Queue) -> None:
        """Owners have changed: what was looked at may belong elsewhere since, and goes first."""
        if queue.name in self._tasks:
            self._again.add(queue.name)
        self.look(queue)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            self._forget(name)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("queue %s: moving message groups has ended", name, exc_info=error)

    def _forget(self, name: str) -> None:
        self._tasks.pop(name, None)
        self._again.discard(name)

    def is_moving(self, queue: Queue) -> bool:
        """Whether messages that belong elsewhere may wait in a queue."""
        return queue.name in self._tasks

    def stop(self) -> None:
        """Move nothing any more. Idempotent."""
        self._is_stopped = True
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _run(self, queue: Queue) -> None:
        while not queue.is_deleted:
            cursor = queue.waiting.cursor()
            try:
                is_left = await self._look(queue, cursor)
            finally:
                cursor.close()
            if not is_left and not queue.undecided_count:
                # In the turn in which nothing was left: what comes next is not sent ahead of any.
                self._forget(queue.name)
                return
            await asyncio.sleep(_AGAIN_S)

    async def _look(self, queue: Queue, cursor: Cursor) -> bool:
        """Look at each message; whether one was left that belongs elsewhere."""
        held: set[Hashable] = set()
        count = 0
        while not queue.is_deleted:
            if queue.name in self._again:
                self._again.discard(queue.name)
                cursor.reset()
                held.clear()
            reference = cursor.advance()
            if reference is None:
                if not await read_more(queue):
                    return bool(held)
                continue
            count += 1
            if count % _LOOK_COUNT == 0:
                await asyncio.sleep(0)
                if reference.level < 0 or queue.name in self._again:
                    continue
            found = self._target(queue, reference.message)
            if found is None or found.key in held:
                continue
            target = found.binding
            if target is None or not target.is_reached or not await self._move(reference, target):
                held.add(found.key)
        return False

    async def _move(self, reference: Reference, target: Binding) -> bool:
        queue = reference.queue
        try:
            moving = self._mover.redistribute(reference, target)
            while True:
                try:
                    delay_s = next(moving)
                except StopIteration as end:
                    self._counters.redistributed += bool(end.value)
                    return bool(end.value)
                await asyncio.sleep(delay_s)
        except (BrokerError, JournalError) as error:
            log.warning(
                "queue %s: a message of a group is not moved to %s, and tried again: %s",
                *(queue.name, target.unique_name, error),
            )
            await asyncio.sleep(_FAILED_S)
            return False
