"""What a queue holds: references that wait, are being delivered, or are not due yet.

    put ─▶ waiting ─▶ (dispatch) ─▶ delivering ─▶ acknowledge() ─▶ gone
     └─▶ schedule ─┘    ▲               │
                        └─ give_back() ─┘

A message is in exactly one of the three places, or, where the queue is non-destructive, stays in
`waiting` while consumers see it. What records say is written here where one message leaves alone,
and by broker.transactions where several leave together.

Of consumers this knows that `deliver()` serves them; queue.py has both.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from broker.queues.last_values import LastValues
from broker.queues.reference_lists import PriorityList
from broker.queues.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.model.message import Message
    from broker.ports import Settings, Timer, Timers
    from broker.queues.pages import QueuePages
    from broker.queues.reference import Reference
    from broker.records.binding_records import QueueBinding
    from broker.settings.settings import AddressSettings
    from broker.storage.manager import StorageManager

__all__ = ["LOOK_COUNT_MAX", "DeadLetterHandler", "GroupAdmission", "QueueContents"]

# References scanned in one turn (QueueImpl.MAX_DELIVERIES_IN_LOOP).
LOOK_COUNT_MAX: Final = 1000


class DeadLetterHandler(Protocol):
    """Where a queue sends what it cannot deliver; `broker.routing.dead_letters` is one."""

    def is_redelivered(self, reference: Reference, *, is_delayed: bool = True) -> bool:
        """Decide about a reference that comes back: whether its queue keeps it.

        It has a `scheduled_ms` then if it has to wait.

        Args:
            reference: that comes back.
            is_delayed: the redelivery delay applies.
        """

    def expire(self, reference: Reference) -> None:
        """Move a reference, which waits or is being delivered, to the expiry address."""


class GroupAdmission(Protocol):
    """Who knows which message groups a queue of a cluster may deliver."""

    def placed(self, queue: QueueContents, message: Message) -> None:
        """A message waits in a queue."""

    def may_deliver(self, queue: QueueContents, message: Message) -> bool:
        """Whether the queue has the message's group, or the message is in none."""


class QueueContents:
    """See the module's text.

    Args:
        queue_id: of its record, and of the references to it.
        binding: name, address and attributes.
        storage: where records go.
        timers: turns and timers.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        dead_letters: takes what is delivered too often, or too late.
        auto_delete: called with its name when it is empty, if it is to go then.
        is_durable: it has a record, and so have its durable messages.

    Attributes:
        waiting: to be delivered, in order.
        delivering_count: delivered and neither acknowledged nor given back.
        undecided_count: sent to it, and not there yet: not durable, or in an open transaction.
        has_expiring: it had a message that expires.
        is_deleted: it is gone.
        admission: asked before messages of groups are delivered; None in a broker that is alone.
    """

    def __init__(
        self,
        queue_id: int,
        binding: QueueBinding,
        *,
        storage: StorageManager,
        timers: Timers,
        clock_ms: Callable[[], int],
        settings: Settings,
        dead_letters: DeadLetterHandler,
        auto_delete: Callable[[str], object],
        is_durable: bool,
    ) -> None:
        self.queue_id = queue_id
        self.binding = binding
        self.storage = storage
        self.timers = timers
        self.clock_ms = clock_ms
        self._settings = settings
        self._dead_letters = dead_letters
        self._auto_delete = auto_delete
        self.name = binding.name
        self.is_durable = is_durable
        self.is_deleted = False
        self.admission: GroupAdmission | None = None
        self.waiting = PriorityList()
        # What it has in pages, while its address has any.
        self.pages: QueuePages | None = None
        self.last_values = LastValues(binding) if binding.last_value else None
        self.has_expiring = False
        self._schedule: Schedule | None = None
        # What each message would ask the binding for.
        self._has_ring = binding.ring_size >= 0
        self.delivering_count = 0
        self.undecided_count = 0
        # Totals since the start; unacknowledged are acknowledgements that were rolled back.
        self.added_count = 0
        self.acknowledged_count = 0
        self.unacknowledged_count = 0
        self.expired_count = 0
        self.killed_count = 0
        self.replaced_count = 0
        # Auto-created, used, without consumers: it is deleted when it holds nothing more.
        self._goes_when_empty = False
        self._end_turn: Timer | None = None

    @property
    def settings(self) -> AddressSettings:
        """The effective settings of its address."""
        return self._settings.match(self.binding.address)

    @property
    def scheduled_count(self) -> int:
        """How many are not due yet."""
        return 0 if self._schedule is None else len(self._schedule)

    @property
    def message_count(self) -> int:
        """How many it holds: waiting, being delivered, not due yet, in pages."""
        count = self.waiting.count + self.delivering_count + self.scheduled_count
        return count if self.pages is None else count + self.pages.unread_count

    def has_at_most(self, count: int) -> bool:
        """Whether it holds no more than that; false after a start until its pages are counted."""
        is_counted = self.pages is None or self.pages.is_counted
        return is_counted and self.message_count <= count

    @property
    def has_undecided(self) -> bool:
        """Whether messages that were sent to it may still come: who deletes it loses them."""
        return self.undecided_count > 0 or (self.pages is not None and self.pages.has_undecided)

    def scheduled(self) -> Iterator[Reference]:
        """Those that are not due yet, in order of their times."""
        return iter(()) if self._schedule is None else iter(self._schedule)

    def scheduled_unordered(self) -> list[Reference]:
        """The same in no order, without sorting very many."""
        return [] if self._schedule is None else self._schedule.unordered()

    def first_scheduled(self) -> Reference | None:
        """The one that is due first; None where there is none."""
        return None if self._schedule is None else self._schedule.first()

    def references(self) -> Iterator[Reference]:
        """Those that wait, then those not due yet; the one given last may be removed."""
        yield from self.waiting
        yield from list(self.scheduled())

    def deliver(self) -> None:
        """Deliver what can be delivered, in this turn and the next ones."""
        raise NotImplementedError

    # --- messages come ------------------------------------------------------------------------

    @property
    def takes_stored(self) -> bool:
        """Whether plain references of a start may come as they are stored, not one by one."""
        return self.last_values is None and not self._has_ring

    def _put(self, reference: Reference) -> None:
        """Let a reference wait, or be scheduled."""
        if reference.sequence < 0:
            if reference.scheduled_ms > self.clock_ms():
                self._put_off(reference)
                return
            reference.scheduled_ms = 0
        if self.last_values is None:
            self.waiting.add_tail(reference)
        else:
            replaced = self.last_values.put(reference, self.waiting)
            if replaced is not None:
                self._replaced(replaced)
        if self._has_ring:
            self._trim_ring()

    def _put_off(self, reference: Reference) -> None:
        if self._schedule is None:
            self._schedule = Schedule(self.timers, self.clock_ms, self._became_due)
        self._schedule.add(reference)

    def _became_due(self, references: list[Reference]) -> None:
        for reference in reversed(references):
            reference.scheduled_ms = 0
            if self.last_values is not None:
                replaced = self.last_values.put(reference, self.waiting)
                if replaced is not None:
                    self._replaced(replaced)
            else:
                self.waiting.add_head(reference)
        if self.binding.ring_size >= 0:
            self._trim_ring()
        self.deliver()

    def _replaced(self, reference: Reference) -> None:
        self.replaced_count += 1
        self._forget(reference)

    def _trim_ring(self) -> None:
        while self.waiting.count > self.binding.ring_size:
            oldest = self.waiting.head()
            assert oldest is not None, "more than none wait"
            self.waiting.remove(oldest)
            self._replaced(oldest)

    def deliver_now(self, references: Iterable[Reference]) -> int:
        """Let references that are not due yet be due; how many.

        Their records keep the time: a restart before they are acknowledged waits for it again.
        """
        due = [one for one in references if one.scheduled_ms and self._schedule is not None]
        for reference in due:
            assert self._schedule is not None, "it has those"
            self._schedule.remove(reference)
        if due:
            self._became_due(due)
        return len(due)

    # --- messages leave -----------------------------------------------------------------------

    def acknowledge(self, reference: Reference, is_last: bool) -> None:
        """A consumer has it for good: recorded outside of any transaction.

        Args:
            reference: that it was given.
            is_last: no other follows that asks for the sync of all.
        """
        # First, for it may be refused.
        reference.record_gone(None, is_last)
        self.delivering_count -= 1
        self.acknowledged_count += 1
        self._release(reference)

    def acknowledged(self, reference: Reference) -> None:
        """The same, where that is recorded already."""
        self.delivering_count -= 1
        self.acknowledged_count += 1
        self._release(reference)

    def remove(self, reference: Reference) -> None:
        """Take out one that waits or is not due yet, and record that it is gone."""
        self.take(reference)
        self.delivering_count -= 1
        self._forget(reference)

    def take(self, reference: Reference) -> None:
        """Take out one that waits or is not due yet, as if it were delivered."""
        if reference.level >= 0:
            self.waiting.remove(reference)
        elif reference.scheduled_ms and self._schedule is not None:
            self._schedule.remove(reference)
            reference.scheduled_ms = 0
        self.delivering_count += 1

    def _forget(self, reference: Reference) -> None:
        """Record that it is gone, and release the message."""
        reference.record_gone(None, True)
        self._release(reference)

    def _release(self, reference: Reference) -> None:
        """Its record says that it is gone: the message goes when no queue has it any more."""
        reference.consumer = None
        if self.last_values is not None:
            self.last_values.gone(reference)
        reference.release()
        if self._goes_when_empty and self._end_turn is None:
            self._end_turn = self.timers.call_soon(self._go_if_empty)

    def _go_if_empty(self) -> None:
        """In a turn of its own: the caller that emptied it may still use it."""
        self._end_turn = None
        if self._goes_when_empty:
            self._auto_delete(self.name)

    def expire_if_due(self, reference: Reference) -> bool:
        """Move a waiting reference to the expiry address if its time is over; whether it was."""
        if reference.message.expiration > self.clock_ms():
            return False
        self._dead_letters.expire(reference)
        return True

    def remove_all(self) -> int:
        """Remove all that waits, is not due yet, or lies in pages; how many.

        What lies in pages goes as it is read, in later turns.
        """
        removed = list(self.references())
        for reference in removed:
            self.remove(reference)
        return len(removed) + (0 if self.pages is None else self.pages.drop_all())

    # --- messages come back -------------------------------------------------------------------

    def give_back(self, references: Iterable[Reference], unseen: Iterable[Reference] = ()) -> None:
        """Put references that were delivered where they stood.

        Those delivered too often go to the dead letter address. As QueueImpl.addSorted.

        Args:
            references: that the application may have seen: they wait for the redelivery delay.
            unseen: without a delay: they lay in the client's buffer, or their consumer went
                (QueueImpl.cancel with ignoreRedeliveryCheck).
        """
        kept = [item for item in references if self._take_back(item, is_delayed=True)]
        kept += [item for item in unseen if self._take_back(item, is_delayed=False)]
        self.waiting.add_back(kept)
        self.deliver()

    def _take_back(self, reference: Reference, *, is_delayed: bool) -> bool:
        """Whether it waits again; else it went somewhere else."""
        reference.consumer = None
        if self.is_deleted:
            self.delivering_count -= 1
            self._forget(reference)
            return False
        if not self._dead_letters.is_redelivered(reference, is_delayed=is_delayed):
            return False
        self.delivering_count -= 1
        ring_size = self.binding.ring_size
        if (self.last_values is not None and not self.last_values.is_last(reference)) or (
            0 <= ring_size <= self.waiting.count
        ):
            # A newer one has its place.
            self._replaced(reference)
            return False
        if reference.scheduled_ms:
            self._put_off(reference)
            return False
        return True
