"""Messages moved to another address or queue: as copies, all of it or nothing.

    waiting or being delivered ─▶ its body copied ─▶ the copy routed, the original acknowledged

What is moved is a copy with an id of its own, which says where it came from, in one transaction
with the acknowledgement of the original.

The body of a large one may take a while to be copied (large_copies.py). What is forced out of its
queue counts as being delivered until then, and what leaves the same queue by the same way waits
behind it. What an operator moves stays where it is, and may be gone when the body is there. While
the disk is full what is forced out waits, and is tried again every second.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.routing.body_count import BodyCount
from broker.routing.large_copies import BodyCopies, keep_as_large
from broker.routing.message_copies import ORIGINAL_ROUTING_TYPE, mark_original
from broker.routing.postoffice import Routing
from broker.routing.queue_ids import set_queue_ids
from broker.routing.remote_bindings import forget_routes
from journal.errors import RecordTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from contextlib import AbstractContextManager

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.ports import Timer, Timers
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference, ReferenceQueue
    from broker.routing.bindings import Binding
    from broker.routing.message_copies import MessageCopies
    from broker.routing.postoffice import PostOffice
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["MessageMover", "Moving"]

log = logging.getLogger("broker")

_FULL_DISK_RETRY_S: Final = 1.0

# Yields seconds to wait for bodies; whether it was done.
Moving: TypeAlias = "Generator[float, None, bool]"


class MessageMover:
    """See the module's text.

    Args:
        postoffice: where copies go.
        transactions: where those begin that move something.
        copies: makes them.
        storage: where records go.
        timers: of the event loop.
        large: bodies of large messages; None without storage for them.
    """

    def __init__(
        self,
        *,
        postoffice: PostOffice,
        transactions: XaTransactions,
        copies: MessageCopies,
        storage: StorageManager,
        timers: Timers,
        large: LargeBodies | None = None,
    ) -> None:
        self._postoffice = postoffice
        self._transactions = transactions
        self._copies = copies
        self._storage = storage
        self._timers = timers
        self._large = large
        self._context = storage.new_context()
        # What is on its way out of a queue, in order, behind one that waits for its body.
        self._lines: dict[ReferenceQueue, deque[Generator[float, None, None]]] = {}
        # What waits, out of its queue, for a full disk to have room for its copy.
        self._put_off: dict[Reference, Timer] = {}

    @property
    def is_moving(self) -> bool:
        """Whether anything has left its queue and is nowhere else yet."""
        return bool(self._lines)

    def move_to_queue(
        self,
        reference: Reference,
        target: Queue,
        *,
        address: str | None = None,
        rejects_duplicates: bool = False,
    ) -> Moving:
        """Move a reference that waits, or is not due yet, to another queue; whether it was moved.

        Another consumer may have taken it while its body was copied.

        Args:
            reference: of a queue.
            target: which gets it, whatever its filter.
            address: what the message says it was sent to; None is the target's.
            rejects_duplicates: what the target's address has seen stays where it is.

        Raises:
            RecordTooLarge: the storage has no room for the copy; the reference stays in its queue.
        """
        if target.is_deleted:
            return False
        if rejects_duplicates:
            ids = self._postoffice.duplicates.ids_of(reference.message, target.binding.address)
            if any(duplicate_id in cache for cache, duplicate_id in ids):
                return False
        return (
            yield from self._move(
                reference,
                lambda copy: self._mark_for(copy, reference, target, address),
                _look_again,
                rejects_duplicates=rejects_duplicates,
            )
        )

    def copy_to_queue(self, reference: Reference, target: Queue) -> Moving:
        """Send a copy of a message to another queue, whatever its filter; whether it was there.

        Raises:
            RecordTooLarge: the storage has no room for the copy.
        """
        if target.is_deleted:
            return False
        tx = yield from self._route(
            reference,
            lambda copy: self._mark_for(copy, reference, target),
            _look_again,
            is_wanted=lambda: not target.is_deleted,
        )
        if tx is None:
            return False
        tx.commit(self._context, self._moved)
        return True

    def redistribute(self, reference: Reference, target: Binding) -> Moving:
        """Move a reference that waits to another queue; whether it was moved.

        Its message keeps its address, its time and what else it has (PostOffice.redistribute).

        Args:
            reference: of a queue.
            target: in use.

        Raises:
            RecordTooLarge: the storage has no room for the copy; the reference stays in its queue.
            BrokerError: the disk is full; likewise.
        """

        def mark(copy: Message) -> None:
            forget_routes(copy)
            set_queue_ids(copy, [target.binding_id])

        return (yield from self._move(reference, mark, _look_again))

    def forward(
        self,
        reference: Reference,
        targets: Iterable[Binding],
        marks: Iterable[tuple[str, bytes]] = (),
    ) -> Moving:
        """Move a reference of a store-and-forward queue to other queues, here or elsewhere.

        Args:
            reference: of a store-and-forward queue.
            targets: in use.
            marks: properties that the copy gets.

        Raises:
            RecordTooLarge: the storage has no room for the copy; the reference stays in its queue.
        """
        ids = [one.binding_id for one in targets]
        return (
            yield from self._move(reference, lambda copy: _reroute(copy, ids, marks), _look_again)
        )

    def return_message(
        self,
        reference: Reference,
        named: Iterable[Binding] | None,
        marks: Iterable[tuple[str, bytes]] = (),
    ) -> Moving:
        """Move a reference of a store-and-forward queue to other queues; whether it was moved.

        Each queue that it is for has to have another one in its place: any anycast queue of the
        address, or the subscription of the same name. Else it stays.

        Args:
            reference: of a store-and-forward queue.
            named: the queues that it is for; None where one of them is not known.
            marks: properties that the copy gets.

        Raises:
            RecordTooLarge: the storage has no room for the copy; the reference stays in its queue.
        """
        queue = self._postoffice.addresses.queues.get(reference.queue.name)
        if queue is None:
            return False
        found = self._postoffice.elsewhere(reference.message, named, queue)
        if not found.is_complete:
            return False
        return (yield from self.forward(reference, found.bindings, marks))

    def give_up(self) -> None:
        """The broker stops: what waits for room on the disk is in its queue at the next start."""
        for handle in self._put_off.values():
            handle.cancel()
        self._put_off.clear()

    def _try_later(self, reference: Reference, again: Callable[[], object]) -> None:
        """The disk has no room for the copy of a reference: keep it aside, and try again."""
        if not self._put_off:
            log.warning(
                "messages that expired or were delivered too often stay in %s and other queues "
                "until the disk has room for their copies",
                reference.queue.name,
            )
        self._take_out(reference)
        self._put_off[reference] = self._timers.call_later(
            _FULL_DISK_RETRY_S, self._try_again, reference, again
        )

    def _try_again(self, reference: Reference, again: Callable[[], object]) -> None:
        del self._put_off[reference]
        if reference.queue.is_deleted:
            reference.queue.give_back((), [reference])
        else:
            again()

    def _drop(self, reference: Reference) -> None:
        """Acknowledge it in its queue, whatever its kind."""
        tx = self._transactions.begin()
        self._commit_without(reference, tx)

    def _send_on(self, reference: Reference, mark: Callable[[Message], None]) -> None:
        """Move a reference to an address; where no queue takes it, it is gone."""
        queue = reference.queue
        line = self._lines.get(queue)
        sending = self._send(reference, mark, lambda: self._go_on(queue))
        if line is None:
            for _ in sending:
                line = self._lines[queue] = deque()
                break
            else:
                return
        self._take_out(reference)
        line.append(sending)

    def _go_on(self, queue: ReferenceQueue) -> None:
        """A body is there, or failed."""
        line = self._lines[queue]
        while line:
            for _ in line[0]:
                return
            line.popleft()
        del self._lines[queue]

    def _send(
        self,
        reference: Reference,
        mark: Callable[[Message], None],
        callback: Callable[[], object],
    ) -> Generator[float, None, None]:
        queue = reference.queue
        try:
            is_done = yield from self._move(reference, mark, callback, is_kept=False)
        except RecordTooLarge as error:
            # Left where it is it would come here again and again.
            log.error(
                "AMQ222148: message %d of %s is dropped: with what is noted in it the storage has "
                "no room for it: %s",
                reference.message.message_id,
                queue.name,
                error,
            )
            self._drop(reference)
            return
        except BrokerError as error:
            if error.code is not ErrorCode.ADDRESS_FULL:
                raise
            self._try_later(reference, lambda: self._send_on(reference, mark))
            return
        if not is_done:
            # Its queue was deleted meanwhile.
            queue.give_back((), [reference])

    def _move(
        self,
        reference: Reference,
        mark: Callable[[Message], None],
        callback: Callable[[], object],
        *,
        is_kept: bool = True,
        rejects_duplicates: bool = False,
    ) -> Moving:
        """Route a copy of a reference and acknowledge it, at once; whether that was done.

        Args:
            reference: that waits, is not due yet, or, unless `is_kept`, is being delivered.
            mark: notes in the copy what is to be noted; may be called for several.
            callback: called when to go on.
            is_kept: where no queue takes the copy, it stays.
            rejects_duplicates: the target sees the copy's duplicate id.

        Raises:
            RecordTooLarge: the storage has no room for the copy; nothing was done.
            JournalIOError: the disk or database has failed; likewise.
        """
        queue = reference.queue

        def is_wanted() -> bool:
            return not queue.is_deleted and (not is_kept or _is_listed(reference))

        tx = yield from self._route(
            reference,
            mark,
            callback,
            is_wanted=is_wanted,
            is_kept=is_kept,
            rejects_duplicates=rejects_duplicates,
        )
        if tx is None:
            return False
        self._commit_without(reference, tx)
        return True

    def _commit_without(self, reference: Reference, tx: Transaction) -> None:
        # Only now: what raises before leaves it in its queue.
        self._take_out(reference)
        tx.acknowledge(reference)
        tx.commit(self._context, self._moved)

    @staticmethod
    def _take_out(reference: Reference) -> None:
        if _is_listed(reference):
            reference.queue.take(reference)

    def _moved(self, error: Exception | None) -> None:
        """No caller waits for it: a storage that failed has stopped the broker."""

    def _route(
        self,
        reference: Reference,
        mark: Callable[[Message], None],
        callback: Callable[[], object],
        *,
        is_wanted: Callable[[], bool],
        is_kept: bool = True,
        rejects_duplicates: bool = False,
    ) -> Generator[float, None, Transaction | None]:
        """Route a copy in a transaction of its own; None where that came to nothing.

        What fits the storage no more with what is noted in it is kept as a large message
        (QueueImpl.makeCopy).

        Args:
            reference: whose message.
            mark: as for _move().
            callback: likewise.
            is_wanted: asked in the turn in which it is routed.
            is_kept: it came to nothing where no queue takes the copy.
            rejects_duplicates: as for _move().

        Raises:
            RecordTooLarge: it does not fit as a large message either, or the store keeps none.
            JournalIOError: the disk or database has failed.
        """
        message, files = reference.message, self._large
        copies = None
        if message.large is not None:
            ahead = message.copy()
            mark(ahead)
            copies = self.copies_for(message.large, ahead, 1)
        if copies is not None:
            yield from copies.wait(callback)
        with self._copies.using(copies):
            if not is_wanted():
                return None
            try:
                return self._try_to_route(
                    self._marked(message, mark), is_kept, rejects_duplicates=rejects_duplicates
                )
            except RecordTooLarge:
                if files is None or message.is_large:
                    raise
        copy = self._marked(message, mark)
        yield from keep_as_large(copy, files, callback)
        if not is_wanted():
            self._postoffice.drop_body(copy)
            return None
        return self._try_to_route(copy, is_kept, rejects_duplicates=rejects_duplicates)

    def _marked(self, message: Message, mark: Callable[[Message], None]) -> Message:
        copy = self._copies.copy_of(message)
        mark(copy)
        return copy

    def _try_to_route(
        self, copy: Message, is_kept: bool, *, rejects_duplicates: bool
    ) -> Transaction | None:
        tx = self._transactions.begin()
        try:
            result = self._postoffice.route(
                copy, self._context, tx, rejects_duplicates=rejects_duplicates
            )
        except BrokerError as error:
            tx.rollback(self._context)
            if is_kept and error.code is ErrorCode.QUEUE_DOES_NOT_EXIST:
                # The queue that it was to go to is gone meanwhile.
                return None
            raise
        except RecordTooLarge:
            tx.rollback(self._context)
            raise
        finally:
            if copy.is_large and copy.references == 0:
                self._postoffice.drop_body(copy)
        if is_kept and result is not Routing.ROUTED:
            tx.rollback(self._context)
            return None
        return tx

    # --- the copy -----------------------------------------------------------------------------

    def copies_for(self, body: LargeBody, message: Message, own_count: int) -> BodyCopies | None:
        """Begin to make the bodies that a message needs; None where it needs none.

        Args:
            body: complete.
            message: as it will be routed.
            own_count: how many it needs itself.

        Raises:
            JournalIOError: the disk fails; nothing was begun.
        """
        needed = BodyCount(self._postoffice)
        needed.route(message, self._context)
        count = own_count + needed.count
        if count == 0:
            return None
        ids = [self._storage.new_id() for _ in range(count)]
        return BodyCopies(body, is_durable=message.durable, ids=ids)

    def using(self, bodies: BodyCopies | None) -> AbstractContextManager[None]:
        """Let copies that are made within take these bodies; those left are dropped at the end."""
        return self._copies.using(bodies)

    def _mark(self, copy: Message, reference: Reference, address: str | None = None) -> None:
        # What was moved before gets the routing type back that it had at first (QueueImpl.move).
        first_type = reference.message.get(ORIGINAL_ROUTING_TYPE)
        mark_original(copy, reference.message, reference.queue.name)
        copy.expiration = 0
        if address is not None:
            copy.address = address
        copy.routing_type = None
        if first_type in (RoutingType.MULTICAST, RoutingType.ANYCAST):
            copy.routing_type = RoutingType(int(first_type))

    def _mark_for(
        self, copy: Message, reference: Reference, target: Queue, address: str | None = None
    ) -> None:
        self._mark(copy, reference)
        copy.address = address or target.binding.address
        set_queue_ids(copy, [target.queue_id])


def _reroute(copy: Message, ids: list[int], marks: Iterable[tuple[str, bytes]]) -> None:
    forget_routes(copy)
    set_queue_ids(copy, ids)
    for name, value in marks:
        copy.set_bytes(name, value)


def _is_listed(reference: Reference) -> bool:
    """Whether it waits, or is not due yet."""
    return reference.level >= 0 or reference.scheduled_ms > 0


def _look_again() -> None:
    """For those who go on by themselves."""
