"""Sends and acknowledgements that count together, or not at all: local ones and XA.

    ACTIVE ─▶ commit() ─▶ COMMITTED          records as they come, by the transaction's id;
       │  ╲                                   one commit record, synced; then all is applied
       │   ▶ prepare() ─▶ PREPARED ─▶ commit() or rollback()
       ▼
    ROLLBACK_ONLY ─▶ rollback() ─▶ ROLLEDBACK

Nothing is visible before the commit is durable: new messages are in no queue, acknowledged ones
stay with their consumer. A rollback gives these back to their queues, in order, before those that
wait; that of a prepared one when it is durable.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, ErrorCode
from broker.storage.context import Admission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.model.xid import Xid
    from broker.paging.paged_part import PagedPart
    from broker.queues.consumer import Consumer
    from broker.queues.counters import Counters
    from broker.queues.reference import Reference, ReferenceQueue
    from broker.storage.context import After, OperationContext
    from broker.storage.manager import StorageManager
    from journal.errors import JournalError

__all__ = ["DuplicateIds", "Transaction", "TransactionState"]


class DuplicateIds(Protocol):
    """The ids that an address has seen; `broker.routing.duplicates` has them."""

    address: str
    rejected_count: int

    def __contains__(self, duplicate_id: bytes) -> bool: ...

    def record(self, duplicate_id: bytes, tx_id: int | None, message_id: int) -> int:
        """Record an id, which counts from the commit on; the record's id, 0 without one."""

    def add(self, duplicate_id: bytes, record_id: int) -> None:
        """Remember an id from now on."""

    def forget(self, duplicate_id: bytes) -> bool:
        """Forget one id whose record is gone; whether it was there."""


class Room(Protocol):
    """What an address may hold; `broker.queues.memory` has it."""

    def add_uncommitted(self, size: int, count: int) -> None:
        """So much of what it holds is of a transaction that may still send; negative: no more."""


class TransactionState(enum.Enum):
    """Where a transaction is in its lifecycle."""

    ACTIVE = enum.auto()
    SUSPENDED = enum.auto()
    PREPARED = enum.auto()
    ROLLBACK_ONLY = enum.auto()
    COMMITTED = enum.auto()
    ROLLEDBACK = enum.auto()


_OPEN = (TransactionState.ACTIVE, TransactionState.SUSPENDED, TransactionState.ROLLBACK_ONLY)


class Transaction:
    """See the module's text.

    Args:
        storage: where records go.
        counters: for metrics.
        now_ms: when it begins, ms since 1970.
        xid: the name a transaction manager gave it; None for a local one.
        tx_id: of its records; None takes a new one.

    Attributes:
        state: where it is.
        sends: references of its messages, in order.
        acknowledged: references that it acknowledges, in order.
        arrived: of these, what came with it from a node that scales down: it has that again if the
            transaction is not prepared here.
        consumers: which consumer was given each of these; not those of an earlier run.
        has_records: anything of it was recorded.
        paged: what it does with pages; None where it has to do with none.
        started_ms: when, by the wall clock.
        began_s: when, by a clock that never falls; for its timeout.
        timeout_ms: how long it may stay active; None takes the broker's.
        is_late: it was rolled back because it took longer.
    """

    __slots__ = (
        "_counters",
        "_duplicate_ids",
        "_error",
        "_rooms",
        "_storage",
        "acknowledged",
        "arrived",
        "began_s",
        "consumers",
        "has_records",
        "is_late",
        "paged",
        "sends",
        "started_ms",
        "state",
        "timeout_ms",
        "tx_id",
        "xid",
    )

    def __init__(
        self,
        storage: StorageManager,
        counters: Counters,
        now_ms: int,
        xid: Xid | None = None,
        tx_id: int | None = None,
    ) -> None:
        self._storage = storage
        self._counters = counters
        self.xid = xid
        self.tx_id = storage.new_id() if tx_id is None else tx_id
        self.state = TransactionState.ACTIVE
        self.sends: list[Reference] = []
        self.acknowledged: list[Reference] = []
        self.arrived: list[Reference] = []
        self.consumers: dict[Reference, Consumer] = {}
        self.has_records = False
        self.paged: PagedPart | None = None
        self.started_ms = now_ms
        self.began_s = 0.0
        self.timeout_ms: int | None = None
        self.is_late = False
        self._rooms: dict[Room, tuple[int, int]] = {}
        self._duplicate_ids: list[tuple[DuplicateIds, bytes, int]] = []
        self._error: BrokerError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has done nothing."""
        return not (
            self.sends or self.acknowledged or self.has_records or self.paged or self._error
        )

    # --- what it does -------------------------------------------------------------------------

    def check_usable(self) -> None:
        """See that something may still be done in it.

        Raises:
            BrokerError: it has ended, or is prepared.
        """
        if self.state not in _OPEN:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE, f"transaction {self.tx_id} is {self.state.name}"
            )

    def send(self, reference: Reference) -> None:
        """A queue gets a message when it commits; its records are written already."""
        self.sends.append(reference)
        reference.queue.undecided_count += 1

    def take_room(self, room: Room, size: int) -> None:
        """A message of this transaction takes so many bytes of what an address may hold."""
        before_size, before_count = self._rooms.get(room, (0, 0))
        self._rooms[room] = before_size + size, before_count + 1
        room.add_uncommitted(size, 1)

    def _end_of_sends(self) -> None:
        """What it has sent is no more of one that may still send."""
        for room, (size, count) in self._rooms.items():
            room.add_uncommitted(-size, -count)
        self._rooms.clear()

    def acknowledge(self, reference: Reference, consumer: Consumer | None = None) -> None:
        """A queue loses a message, which it does not list, when it commits.

        Args:
            reference: of the message.
            consumer: that was given it.
        """
        # One that can only be rolled back gives it back; a store may take no record of it any more.
        is_recorded = self.state is not TransactionState.ROLLBACK_ONLY
        if is_recorded and reference.record_gone(self, False):
            self.has_records = True
        self.acknowledged.append(reference)
        if consumer is not None:
            self.consumers[reference] = consumer

    def has_duplicate_id(self, cache: DuplicateIds, duplicate_id: bytes) -> bool:
        """Whether a message of this transaction carries the id already."""
        return any(
            cache is other and duplicate_id == found for other, found, _ in self._duplicate_ids
        )

    def add_duplicate_id(self, cache: DuplicateIds, duplicate_id: bytes, message_id: int) -> None:
        """An address sees this id of a message when it commits."""
        record_id = cache.record(duplicate_id, self.tx_id, message_id)
        self.has_records = self.has_records or record_id != 0
        self.load_duplicate_id(cache, duplicate_id, record_id)

    def load_duplicate_id(self, cache: DuplicateIds, duplicate_id: bytes, record_id: int) -> None:
        """The same, where it is recorded."""
        self._duplicate_ids.append((cache, duplicate_id, record_id))

    def fail(self, error: BrokerError | JournalError) -> None:
        """Something in it was refused, or not recorded: it can only be rolled back."""
        if self.state in _OPEN:
            if not isinstance(error, BrokerError):
                error = BrokerError(ErrorCode.IO_ERROR, str(error))
            self.state = TransactionState.ROLLBACK_ONLY
            self._error = self._error or error

    # --- how it ends --------------------------------------------------------------------------

    def check_committable(self) -> None:
        """See that nothing of it was refused, and that no other has taken its ids meanwhile.

        Raises:
            BrokerError: it can only be rolled back.
        """
        for cache, duplicate_id, _ in self._duplicate_ids:
            if self.state is not TransactionState.PREPARED and duplicate_id in cache:
                cache.rejected_count += 1
                self._counters.duplicates += 1
                self.fail(_duplicate(cache.address))
        if self.state is TransactionState.ROLLBACK_ONLY:
            raise self._error or BrokerError(
                ErrorCode.TRANSACTION_ROLLED_BACK, f"transaction {self.tx_id} was rolled back"
            )

    def prepare(self, context: OperationContext, done: After, *arguments: object) -> None:
        """Let it survive until it is decided; `done(error, *arguments)` once that is durable.

        Raises:
            BrokerError: it can only be rolled back, or has no name.
        """
        assert self.xid is not None, "only one with a name can be asked for later"
        self.check_committable()
        for cache, duplicate_id, record_id in self._duplicate_ids:
            # From here on no other message can use it: the decision to come must not fail.
            cache.add(duplicate_id, record_id)
        # Artemis records nothing where nothing was recorded; then a restart loses it, and the
        # manager, which asks for what is in doubt, takes it for rolled back.
        self._record_paged()
        self.state = TransactionState.PREPARED
        self._end_of_sends()
        xid = self.xid

        def append(storage: StorageManager) -> None:
            # Rolled back while its pages were written: that is recorded, and nothing is in doubt.
            if self.state is not TransactionState.ROLLEDBACK:
                storage.prepare(self.tx_id, xid)

        self._end(append, context, done, *arguments)

    def _record_paged(self) -> None:
        """Append, once, what has to be known of its pages before its end is.

        Raises:
            BrokerError: the disk is full, and the reserve used up: it can only be rolled back.
        """
        if self.paged is None:
            return
        try:
            if self.paged.record(self.tx_id):
                self.has_records = True
        except BrokerError as error:
            # Some of it may be recorded.
            self.has_records = True
            self.fail(error)
            raise

    def _end(
        self,
        append: Callable[[StorageManager], object],
        context: OperationContext,
        done: After,
        *arguments: object,
    ) -> None:
        """Append what ends it, if anything was recorded, and call `done` once that is durable.

        Behind what it put into pages: or a crash could leave the one without the other.
        """
        storage = self._storage
        if not self.has_records:
            context.after(done, *arguments)
        elif self.paged is None:
            append(storage)
            context.note()
            context.after(done, *arguments)
        else:
            admission = Admission()
            context.after_admission(admission, done, *arguments)

            def end() -> None:
                append(storage)
                admission.open(storage.completions.messages)

            storage.after_pages(lambda: self._note_late(end))

    def _note_late(self, then: Callable[[], object]) -> None:
        """Where it commits what an earlier run put into pages, tell the history; then go on."""
        if self.state is TransactionState.COMMITTED and self.paged is not None:
            self.paged.note_recovered(then)
        else:
            then()

    def commit(self, context: OperationContext, done: After, *arguments: object) -> None:
        """Let all of it count; `done(error, *arguments)` once it is durable and applied.

        Raises:
            BrokerError: it can only be rolled back.
        """
        self.check_committable()
        was_prepared = self.state is TransactionState.PREPARED
        self._record_paged()
        self.state = TransactionState.COMMITTED
        self._end_of_sends()
        if self.paged is not None:
            self.paged.committing()
        if not was_prepared:
            # At once: who sends the same id now comes behind this commit.
            for cache, duplicate_id, record_id in self._duplicate_ids:
                cache.add(duplicate_id, record_id)
        self._end(
            lambda storage: storage.commit(self.tx_id), context, self._committed, done, arguments
        )

    def _committed(
        self, error: Exception | None, done: After, arguments: tuple[object, ...]
    ) -> None:
        if error is None:
            for reference in self.acknowledged:
                reference.queue.acknowledged(reference)
            for reference in self.sends:
                reference.queue.undecided_count -= 1
                reference.queue.add(reference)
            if self.paged is not None:
                self.paged.committed()
        done(error, *arguments)

    def rollback(
        self,
        context: OperationContext,
        seen: Sequence[Reference] = (),
        unseen: Sequence[Reference] = (),
    ) -> None:
        """Let none of it count; what it acknowledged goes back to its queues.

        Args:
            context: of who ends it.
            seen: taken back from consumers at the same time: they come behind.
            unseen: likewise, behind these: the application has not had them.
        """
        was_prepared = self.state is TransactionState.PREPARED
        self.state = TransactionState.ROLLEDBACK
        self._end_of_sends()
        if self.has_records:
            # At once: what goes back to its queues may be acknowledged by others in this turn, and
            # a start must not find the transaction in doubt that had it before.
            self._storage.rollback(self.tx_id)
            context.note()
        if self.paged is not None:
            self.paged.rolled_back()
        if was_prepared:
            for cache, duplicate_id, _ in self._duplicate_ids:
                # Its record is gone with the transaction.
                cache.forget(duplicate_id)
        for reference in self.sends:
            reference.queue.undecided_count -= 1
            owner = reference.message.owner
            if owner is not None:
                owner.remove(reference.message)
        if not was_prepared:
            for reference in self.arrived:
                self.acknowledged.remove(reference)
                reference.queue.acknowledge(reference, True)
        for reference in self.acknowledged:
            reference.queue.unacknowledged_count += 1
        if was_prepared and self.has_records:
            # A start may find it prepared until the rollback is durable, and its manager may commit
            # it then: no other consumer is to have seen what it took.
            _give_back(None, seen, unseen)
            context.after(_give_back, self.acknowledged, ())
        else:
            _give_back(None, [*self.acknowledged, *seen], unseen)
        context.note()


def _give_back(
    error: Exception | None, seen: Sequence[Reference], unseen: Sequence[Reference]
) -> None:
    """Let queues have again what was taken from them; not where the storage has failed."""
    if error is not None:
        return
    back: dict[ReferenceQueue, tuple[list[Reference], list[Reference]]] = {}
    for index, references in enumerate((seen, unseen)):
        for reference in references:
            back.setdefault(reference.queue, ([], []))[index].append(reference)
    for queue, returned in back.items():
        queue.give_back(*returned)


def _duplicate(address: str) -> BrokerError:
    return BrokerError(
        ErrorCode.DUPLICATE_ID_REJECTED,
        f"AMQ222059: Duplicate message detected - message will not be routed. Address {address}",
    )
