"""Messages that no consumer here takes go to a broker that has one for them.

    the last consumer leaves, or none here wants a message; another broker has consumers
        ─▶ redistribution-delay ─▶ each waiting message ─▶ balancing.redistribution_target()
        ─▶ copies for the store-and-forward queue, the originals acknowledged: one transaction

A message stays while a consumer here wants it, whatever that one's credits are, and for the delay
after it has left. One with a selector that comes and goes keeps what it wants, and no more.
Messages are looked at in their order, and get to the back of the other queue. What was found in
one turn of the event loop goes in one transaction, but a large message in its own. Those of groups
and of exclusive queues have an owner, and are not moved here: groups.py.

Unlike Artemis, a queue whose consumers all have filters is looked at message by message. An anycast
queue takes part whatever its name is.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.cluster.reading_ahead import POLL_S, read_more
from broker.errors import BrokerError
from broker.model.message import GROUP_ID
from broker.routing.balancing import redistribution_target
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.model.message import Message
    from broker.queues.counters import Counters
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.queues.reference_lists import Cursor
    from broker.routing.addresses import Addresses
    from broker.routing.bindings import Binding
    from broker.routing.message_mover import Moving
    from broker.routing.remote_bindings import RemoteQueueBinding

__all__ = ["Redistribution", "is_due"]

log = logging.getLogger("broker.cluster")

# Messages looked at before other work has its turn, and moved in one transaction.
_LOOK_COUNT: Final = 100
# Those that came back to their places in the queue: all are looked at again, at most so often, and
# so that it takes a twentieth of the time.
_AGAIN_S: Final = 1.0
_AGAIN_SHARE: Final = 20
_FAILED_S: Final = 1.0
# Between two looks at a queue that has nothing: a broker may have ten thousand such.
_EMPTY_S: Final = 1.0


class Mover(Protocol):
    """Who moves a message; `broker.routing.message_mover` does."""

    def redistribute(self, reference: Reference, target: Binding) -> Moving:
        """Move a reference to another queue, here or of another broker; whether it was moved."""


class JointMover(Protocol):
    """Who moves many; `broker.routing.joint_moves` does."""

    def redistribute(self, moves: Sequence[tuple[Reference, Binding]]) -> None:
        """Move references to queues of other brokers: all of them, or none and it raises."""


def is_due(*, delay_ms: int, is_internal: bool, has_demand: bool, takes_all: bool) -> bool:
    """Whether messages of a queue are to be looked at, once the delay has passed.

    Args:
        delay_ms: redistribution-delay of its address; below 0 never.
        is_internal: it is a queue of the broker's own.
        has_demand: a connected broker has consumers for queues of its routing name.
        takes_all: a consumer here has no filter.
    """
    return delay_ms >= 0 and not is_internal and has_demand and not takes_all


class Redistribution:
    """See the module's text. Implements `broker.notifications.DemandListener`.

    Args:
        addresses: of the broker.
        mover: moves a message.
        joint: moves many that are not large.
        counters: for metrics.
        own_addresses: of management and notifications, whose queues stay as they are.
    """

    def __init__(
        self,
        addresses: Addresses,
        mover: Mover,
        joint: JointMover,
        counters: Counters,
        own_addresses: tuple[str, ...],
    ) -> None:
        self._addresses = addresses
        self._mover = mover
        self._joint = joint
        self._counters = counters
        self._own_addresses = own_addresses
        self._looking: dict[str, _Look] = {}
        self._is_stopped = False

    @property
    def queues(self) -> dict[str, bool]:
        """The queues that are looked at, by name; whether their delay has passed."""
        return {name: one.is_due for name, one in self._looking.items()}

    def due_in_s(self, name: str) -> float | None:
        """Give the seconds until a queue is looked at; 0: it is; None: nothing is planned."""
        looking = self._looking.get(name)
        return None if looking is None else looking.due_in_s

    # --- what happens -------------------------------------------------------------------------

    def consumers_changed(self, queue: Queue) -> None:
        """A consumer came or went: behind one that takes all the delay begins anew."""
        self._consider(queue)

    def queue_added(self, queue: Queue) -> None:
        """A queue was made, or changed."""
        self._consider(queue)

    def queue_removed(self, name: str) -> None:
        """A queue was deleted."""
        self._cancel(name)

    def consumers_there_changed(self, binding: RemoteQueueBinding) -> None:
        """Consumers of a queue of another broker came or went."""
        address = self._addresses.by_name.get(binding.address)
        if address is None:
            return
        for queue in list(address.queues.values()):
            if queue.binding.routing_name == binding.routing_name:
                self._consider(queue)

    def stop(self) -> None:
        """Move nothing any more. Idempotent."""
        self._is_stopped = True
        for name in list(self._looking):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        looking = self._looking.pop(name, None)
        if looking is not None:
            looking.task.cancel()

    def _consider(self, queue: Queue) -> None:
        delay_ms = queue.settings.redistribution_delay_ms
        address = queue.binding.address
        due = not self._is_stopped and is_due(
            delay_ms=delay_ms,
            is_internal=queue.binding.internal or address.startswith(self._own_addresses),
            has_demand=any(
                one.is_connected and one.mode.redistributes and one.consumer_count
                for one in self._bindings(queue)
            ),
            takes_all=any(one.filter is None for one in queue.consumers.all()),
        )
        if not due:
            self._cancel(queue.name)
        elif (looking := self._looking.get(queue.name)) is not None:
            looking.note_consumers()
            looking.again.set()
        else:
            made = _Look(queue, delay_ms / 1000, self._bindings, self._move, self._move_all)
            self._looking[queue.name] = made

    def _bindings(self, queue: Queue) -> list[RemoteQueueBinding]:
        name = queue.binding.routing_name
        at = self._addresses.remote.at(queue.binding.address)
        return [one for one in at if one.routing_name == name]

    def _move(self, reference: Reference, target: RemoteQueueBinding) -> Moving:
        is_moved = yield from self._mover.redistribute(reference, target)
        self._counters.redistributed += is_moved
        return is_moved

    def _move_all(self, moves: Sequence[tuple[Reference, RemoteQueueBinding]]) -> None:
        self._joint.redistribute(moves)
        self._counters.redistributed += len(moves)


class _Look:
    """The messages of one queue, looked at from when its delay has passed until it is cancelled.

    Attributes:
        is_due: the delay has passed.
        again: set where all are to be looked at again.
    """

    def __init__(
        self,
        queue: Queue,
        delay_s: float,
        bindings: Callable[[Queue], list[RemoteQueueBinding]],
        move: Callable[[Reference, RemoteQueueBinding], Moving],
        move_all: Callable[[Sequence[tuple[Reference, RemoteQueueBinding]]], None],
    ) -> None:
        self._queue = queue
        self._delay_s = delay_s
        self._bindings = bindings
        self._move = move
        self._move_all = move_all
        self._position = 0
        self._has_failed = False
        # Filters of consumers that are here, and until when those that have left count.
        self._present: set[Filter] = set()
        self._left: dict[Filter, float] = {}
        self.is_due = False
        self.again = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._due_at_s = self._loop.time() + delay_s
        self.task = self._loop.create_task(self._run())
        self.task.add_done_callback(_log_fault)
        self.note_consumers()

    def note_consumers(self) -> None:
        """A consumer came or went: what one that left wants stays for the delay."""
        now_s = self._loop.time()
        present = {one.filter for one in self._queue.consumers.all() if one.filter is not None}
        self._left = {one: until_s for one, until_s in self._left.items() if until_s > now_s}
        for one in self._present - present:
            self._left[one] = now_s + self._delay_s
        self._present = present

    def _is_kept(self, message: Message) -> bool:
        """Whether a consumer here wants it, or did a moment ago."""
        if self._queue.consumers.wants(message):
            return True
        if not self._left:
            return False
        now_s = self._loop.time()
        return any(until_s > now_s and one.matches(message) for one, until_s in self._left.items())

    @property
    def due_in_s(self) -> float:
        """Seconds until the delay has passed; 0: it has."""
        return 0.0 if self.is_due else max(0.0, self._due_at_s - self._loop.time())

    async def _run(self) -> None:
        await asyncio.sleep(self._delay_s)
        self.is_due = True
        while not self._queue.is_deleted:
            self.again.clear()
            began_s = self._loop.time()
            cursor = self._queue.waiting.cursor()
            try:
                await self._look(cursor)
                took_s = self._loop.time() - began_s
                until_s = self._loop.time() + max(_AGAIN_S, took_s * _AGAIN_SHARE)
                while not self.again.is_set() and self._loop.time() < until_s:
                    await self._wait()
                    await self._look(cursor)
            finally:
                cursor.close()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(POLL_S if self._queue.message_count else _EMPTY_S):
                await self.again.wait()
        except TimeoutError:
            return

    async def _look(self, cursor: Cursor) -> None:
        """Look at what a cursor has not seen yet, pages too."""
        queue = self._queue
        while not queue.is_deleted and not queue.is_paused:
            moves, large, is_end = self._find(cursor)
            if moves:
                await self._move_found(moves)
            if large is not None:
                await self._move_alone(large)
            if is_end and not await read_more(queue):
                return
            await asyncio.sleep(0)

    def _find(
        self, cursor: Cursor
    ) -> tuple[list[tuple[Reference, RemoteQueueBinding]], Reference | None, bool]:
        """Look for messages that go elsewhere, in one turn.

        Returns:
            These, a large one behind them, and whether there was no more.
        """
        moves: list[tuple[Reference, RemoteQueueBinding]] = []
        bindings = self._bindings(self._queue)
        for _ in range(_LOOK_COUNT):
            reference = cursor.advance()
            if reference is None:
                return moves, None, True
            target = self._target(reference.message, bindings)
            if target is None:
                continue
            if reference.message.is_large:
                return moves, reference, False
            moves.append((reference, target))
        return moves, None, False

    def _target(
        self, message: Message, bindings: list[RemoteQueueBinding]
    ) -> RemoteQueueBinding | None:
        """Give the binding that a message goes to; None: it stays."""
        queue = self._queue
        is_owned = (message.has_own_properties and message.get(GROUP_ID) is not None) or (
            queue.binding.exclusive and queue.admission is not None
        )
        if is_owned or self._is_kept(message):
            return None
        found = redistribution_target(bindings, self._position, message)
        if found is None:
            return None
        self._position = found + 1
        return bindings[found]

    async def _move_found(self, moves: list[tuple[Reference, RemoteQueueBinding]]) -> None:
        try:
            self._move_all(moves)
        except (BrokerError, JournalError):
            # One of them is refused, or some have no room: the others go.
            for reference, _ in moves:
                await self._move_alone(reference)

    async def _move_alone(self, reference: Reference) -> None:
        """Move a message that waited a moment ago, if it still is to go elsewhere."""
        queue = self._queue
        if reference.level < 0 or queue.is_deleted or queue.is_paused:
            return
        target = self._target(reference.message, self._bindings(queue))
        if target is None:
            return
        try:
            for delay_s in self._move(reference, target):
                await asyncio.sleep(delay_s)
        except (BrokerError, JournalError) as error:
            if not self._has_failed:
                log.warning("queue %s: a message is not redistributed: %s", queue.name, error)
            self._has_failed = True
            await asyncio.sleep(_FAILED_S)
        else:
            self._has_failed = False


def _log_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("redistribution has ended", exc_info=error)
