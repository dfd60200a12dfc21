"""A queue: references that wait, are being delivered, or are not due yet.

    route ─▶ add() ─▶ waiting ─▶ dispatch ─▶ delivering ─▶ acknowledge() ─▶ gone
                 └─▶ schedule ─┘    ▲              │
                                    └─ give_back() ┘

A message is in exactly one of the three places, or, where the queue is non-destructive, stays in
`waiting` while consumers see it. Who gets the next one: dispatch.py. What records say is written
here where one message leaves alone, and by transaction.py where several leave together.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Protocol

from broker.errors import broker_error
from broker.queues.dispatch import LOOK_COUNT_MAX, Consumers, browse, dispatch
from broker.queues.groups import GROUP_ID, Groups
from broker.queues.last_values import LastValues
from broker.queues.reference import PriorityList, Reference
from broker.queues.refusals import Refusals
from broker.queues.schedule import Schedule
from broker.queues.selector_index import SelectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.model.message import Message
    from broker.ports import Settings, Timer, Timers
    from broker.queues.consumer import Consumer
    from broker.queues.filter import Filter
    from broker.queues.pages import QueuePages
    from broker.records.binding_records import QueueBinding
    from broker.settings.settings import AddressSettings
    from broker.storage.manager import StorageManager

__all__ = ["DeadLetterHandler", "Queue"]


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


class Queue:
    """See the module's text.

    Args:
        queue_id: of its record, and of the references to it.
        binding: name, address and attributes.
        storage: where records go.
        timers: turns and timers.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        parse_filter: a selector's text to a Filter; raises BrokerError 103.
        dead_letters: takes what is delivered too often, or too late.
        auto_delete: called with it when it is empty and unused, if it is to go then.
        is_durable: it has a record, and so have its durable messages.
        is_temporary: it goes with the connection that made it.
        records_deliveries: consumers record a delivery count before the message is written.

    Attributes:
        waiting: to be delivered, in order.
        delivering_count: delivered and neither acknowledged nor given back.
        filter: of the queue, not of a consumer.
        groups: which consumer has which message group.
        is_plain: no consumer wants anything special, see dispatch.py.
        index: finds who wants a message; None where consumers need none, or cursors.
        is_dispatching: whether anything may be delivered now.
        is_rebalancing: nothing is delivered before all consumers have answered what they have
            (group-rebalance-pause-dispatch).
        is_deleted: it is gone.
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
        parse_filter: Callable[[str], Filter | None],
        dead_letters: DeadLetterHandler,
        auto_delete: Callable[[Queue], object],
        is_durable: bool,
        is_temporary: bool = False,
        records_deliveries: bool = False,
    ) -> None:
        self.queue_id = queue_id
        self.binding = binding
        self.storage = storage
        self.timers = timers
        self.clock_ms = clock_ms
        self.records_deliveries = records_deliveries
        self._settings = settings
        self._parse_filter = parse_filter
        self._dead_letters = dead_letters
        self._auto_delete = auto_delete
        self.name = binding.name
        self.is_durable = is_durable
        self.is_temporary = is_temporary
        self.filter: Filter | None = parse_filter(binding.filter) if binding.filter else None
        self.waiting = PriorityList()
        # What it has in pages, while its address has any.
        self.pages: QueuePages | None = None
        self.delivering_count = 0
        self.consumers = Consumers()
        self.browsers: list[Consumer] = []
        self.groups = Groups(binding.group_buckets)
        self.last_values = LastValues(binding) if binding.last_value else None
        self.is_paused = False
        self.is_deleted = False
        self.was_used = False
        self.status_record_id = 0
        self.created_ms = clock_ms()
        self.last_consumer_left_ms = self.created_ms
        # Totals since the start; unacknowledged are acknowledgements that were rolled back.
        self.added_count = 0
        self.acknowledged_count = 0
        self.unacknowledged_count = 0
        self.expired_count = 0
        self.killed_count = 0
        self.replaced_count = 0
        self.has_expiring = False
        self._schedule: Schedule | None = None
        self._has_groups = False
        # What each message would ask the binding for.
        self._takes_all = False
        self._has_ring = False
        self._is_delivering = False
        self._is_open = binding.consumers_before_dispatch <= 0
        self._open_timer: Timer | None = None
        self._turn: Timer | None = None
        self.is_plain = True
        self.index: SelectorIndex | None = None
        self._needs_cursors = False
        self.is_dispatching = False
        self.is_rebalancing = False
        # Auto-created, used, without consumers: it is deleted when it holds nothing more.
        self._goes_when_empty = False
        self._end_turn: Timer | None = None
        self._refresh()

    def __repr__(self) -> str:
        return f"Queue({self.name!r}, {self.message_count} messages)"

    # --- what it holds ------------------------------------------------------------------------

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
    def consumer_count(self) -> int:
        """How many consumers it has, browsers included."""
        return self.consumers.count + len(self.browsers)

    def scheduled(self) -> Iterator[Reference]:
        """Those that are not due yet, in order of their times."""
        return iter(()) if self._schedule is None else iter(self._schedule)

    def references(self) -> Iterator[Reference]:
        """Those that wait, then those not due yet; the one given last may be removed."""
        yield from self.waiting
        yield from list(self.scheduled())

    # --- messages come ------------------------------------------------------------------------

    def accepts(self, message: Message) -> bool:
        """Whether a message is routed here."""
        if self._takes_all:
            return True
        binding = self.binding
        if not binding.enabled or self.is_deleted:
            return False
        if binding.purge_on_no_consumers and self.consumer_count == 0:
            return False
        return self.filter is None or self.filter.matches(message)

    def has_consumer_for(self, message: Message) -> bool:
        """Whether a consumer takes a message, browsers not counted; credits do not matter."""
        return self.consumers.wants(message)

    def add(self, reference: Reference) -> None:
        """Take a new reference, whose records are durable, and deliver what can be.

        Behind the answers of this turn: so the producer sends on while the consumer is served.
        """
        if self.is_deleted:
            self._forget(reference)
            return
        self.added_count += 1
        self._place(reference)
        if self._has_ring or self.last_values is not None:
            # Else the next ones of this turn would push it out, though a consumer takes it.
            self.deliver()
        else:
            self.deliver_later()

    @property
    def takes_stored(self) -> bool:
        """Whether plain references of a start may come as they are stored, not one by one."""
        return self.last_values is None and not self._has_ring

    def load(self, reference: Reference) -> None:
        """Take a reference from the journal or a page; the caller has it delivered."""
        self._place(reference)

    def _place(self, reference: Reference) -> None:
        message = reference.message
        if message.expiration:
            self.has_expiring = True
        if (
            message.has_own_properties
            and not self._has_groups
            and message.get(GROUP_ID) is not None
        ):
            self._has_groups = True
            self._refresh()
        if reference.scheduled_ms:
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
        """The same, by a transaction whose commit is durable."""
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
            self._auto_delete(self)

    def expire_if_due(self, reference: Reference) -> bool:
        """Move a waiting reference to the expiry address if its time is over; whether it was."""
        if reference.message.expiration > self.clock_ms():
            return False
        self._dead_letters.expire(reference)
        return True

    # --- messages come back -------------------------------------------------------------------

    def give_back(self, references: Iterable[Reference], unseen: Iterable[Reference] = ()) -> None:
        """Put references that were delivered, in their order, before those that wait.

        Those delivered too often go to the dead letter address.

        Args:
            references: that the application may have seen: they wait for the redelivery delay.
            unseen: that come behind them, and without a delay: they lay in the client's buffer,
                or their consumer went (QueueImpl.cancel with ignoreRedeliveryCheck).
        """
        kept = [item for item in references if self._take_back(item, is_delayed=True)]
        kept += [item for item in unseen if self._take_back(item, is_delayed=False)]
        for reference in reversed(kept):
            self.waiting.add_head(reference)
        self.deliver()

    def cancel(self, references: Iterable[Reference]) -> None:
        """Put single references that were delivered back, in the order in which they came.

        Those delivered too often go to the dead letter address; the redelivery delay applies. As
        QueueImpl.cancel(reference, timeBase).
        """
        by_level: dict[int, list[Reference]] = {}
        for reference in references:
            if self._take_back(reference, is_delayed=True):
                level = self.waiting.level_of(reference.message)
                by_level.setdefault(level.level, []).append(reference)
        for number, returned in by_level.items():
            returned.sort(key=_message_id)
            level = self.waiting.levels[number]
            last_id = _message_id(returned[-1])
            before: list[Reference] = []
            # What came back earlier stands at the head, too.
            while len(before) < LOOK_COUNT_MAX:
                head = level.first()
                if head is None or _message_id(head) > last_id:
                    break
                self.waiting.remove(head)
                before.append(head)
            for reference in reversed(list(merge(before, returned, key=_message_id))):
                self.waiting.add_head(reference)
        self.deliver()

    def refuse(self, consumer: Consumer, message: Message) -> None:
        """Give a message to this consumer no more; other consumers may have it."""
        refusals = consumer.filter
        if not isinstance(refusals, Refusals):
            refusals = Refusals(consumer.filter)
            is_member = self.consumers.remove(consumer)
            if self.index is not None:
                self.index.remove(consumer)
            consumer.filter = refusals
            if is_member:
                self.consumers.add(consumer)
                self._refresh()
                self._equip(consumer)
        refusals.add(message)

    def _take_back(self, reference: Reference, *, is_delayed: bool) -> bool:
        """Whether it goes to the head; else it went somewhere else."""
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

    # --- consumers ----------------------------------------------------------------------------

    def check_consumer(self, *, is_browser: bool) -> None:
        """See whether one more consumer may come.

        Raises:
            BrokerError: there are as many as allowed.
        """
        most = self.binding.max_consumers
        if not is_browser and most != -1 and self.consumer_count >= most:
            raise broker_error(
                "max_consumers",
                f"Maximum Consumer Limit Reached on Queue:(address={self.binding.address},"
                f"queue={self.name})",
            )

    def add_consumer(self, consumer: Consumer) -> None:
        """Let a consumer take part; it takes nothing before it has credits and is started."""
        self.was_used = True
        if consumer.is_browser:
            consumer.cursor = self.waiting.cursor()
            self.browsers.append(consumer)
            return
        if self.binding.group_rebalance:
            if self.binding.group_rebalance_pause_dispatch:
                self.is_rebalancing = self._has_unanswered()
            self.groups.reset()
        self.consumers.add(consumer)
        self._refresh()
        self._equip(consumer)
        if not self._is_open:
            self._consider_opening()
        if self.binding.group_rebalance:
            self.look_again()

    def _has_unanswered(self) -> bool:
        return any(member.delivering for member in self.consumers.all())

    def answered(self) -> None:
        """A consumer has nothing left that it was delivered: groups may go to others now."""
        if self.is_rebalancing and not self._has_unanswered():
            self.is_rebalancing = False
            self._refresh()
            self.deliver_later()

    def look_again(self) -> None:
        """A group has no owner any more: consumers look at what they passed over on its account.

        Not where messages stay: there a cursor is all that tells what its consumer has seen.
        """
        if not self.binding.non_destructive:
            self.consumers.look_again()

    def reset_groups(self, group: str | None = None) -> None:
        """Let a group, or all, have no consumer any more; the next message finds one anew."""
        if group is None:
            self.groups.reset()
        else:
            self.groups.reset_group(group)
        self.look_again()
        self.deliver_later()

    def _consider_opening(self) -> None:
        """Begin to deliver once enough consumers are there, or the first one waited enough."""
        if self.consumers.count >= self.binding.consumers_before_dispatch:
            self._open()
        elif self._open_timer is None and self.binding.delay_before_dispatch >= 0:
            self._open_timer = self.timers.call_later(
                self.binding.delay_before_dispatch / 1000, self._open
            )

    def _open(self) -> None:
        self._stop_open_timer()
        self._is_open = True
        self._refresh()
        self.deliver()

    def _stop_open_timer(self) -> None:
        if self._open_timer is not None:
            self._open_timer.cancel()
            self._open_timer = None

    def remove_consumer(self, consumer: Consumer, returned: Iterable[Reference]) -> None:
        """Let it take part no more.

        Args:
            consumer: that leaves.
            returned: what it was given and gives back, in order, to be delivered again at once;
                nothing behind it is delivered before it, not even to the next one of its groups.
        """
        self.last_consumer_left_ms = self.clock_ms()
        if consumer.cursor is not None:
            consumer.cursor.close()
            consumer.cursor = None
        if consumer.is_browser:
            if consumer in self.browsers:
                self.browsers.remove(consumer)
        elif self.consumers.remove(consumer):
            if self.index is not None:
                self.index.remove(consumer)
            if self.groups.forget(consumer):
                self.look_again()
        if self.consumers.count == 0:
            self._stop_open_timer()
            self._is_open = self.binding.consumers_before_dispatch <= 0
        self.answered()
        self._refresh()
        if self.consumer_count == 0 and self.binding.purge_on_no_consumers:
            self.timers.call_soon(self._purge_if_unused)
        self.give_back((), returned)

    def _purge_if_unused(self) -> None:
        if self.consumer_count == 0 and not self.is_deleted:
            self.remove_all()

    def _refresh(self) -> None:
        """Something that decides about delivery has changed."""
        binding = self.binding
        self.is_dispatching = (
            self.consumers.count > 0
            and self._is_open
            and not self.is_rebalancing
            and not self.is_paused
            and not self.is_deleted
        )
        self._goes_when_empty = (
            binding.auto_delete
            and binding.auto_delete_delay <= 0
            and self.was_used
            and not self.consumer_count
            and not self.is_temporary
            and not self.is_deleted
        )
        self._has_ring = binding.ring_size >= 0
        self._takes_all = (
            binding.enabled
            and not self.is_deleted
            and not binding.purge_on_no_consumers
            and self.filter is None
        )
        needs_cursors = self._has_groups or binding.exclusive or binding.non_destructive
        has_selectors = self.consumers.filtered_count > 0
        self.is_plain = not (needs_cursors or has_selectors)
        needs_cursors = needs_cursors or (has_selectors and self.last_values is not None)
        if needs_cursors != self._needs_cursors:
            self._needs_cursors = needs_cursors
            for member in self.consumers.all():
                self._equip(member)
        self._use_index(not self.is_plain and not needs_cursors)

    def _equip(self, consumer: Consumer) -> None:
        """Let a consumer have a cursor, or take part in the index, or neither, as all have."""
        if not self._needs_cursors and consumer.cursor is not None:
            consumer.cursor.close()
            consumer.cursor = None
        elif self._needs_cursors and consumer.cursor is None:
            consumer.cursor = self.waiting.cursor()
        if self.index is not None:
            self.index.add(consumer)

    def _use_index(self, is_wanted: bool) -> None:
        if is_wanted and self.index is None:
            self.index = SelectorIndex(self)
        elif not is_wanted and self.index is not None:
            self.index.close()
            self.index = None

    def renew_index(self) -> None:
        """References were put in other places."""
        if self.index is not None:
            self._use_index(False)
            self._use_index(True)

    # --- delivery -----------------------------------------------------------------------------

    def prompt(self, consumer: Consumer) -> None:
        """A consumer can take (again)."""
        if consumer.is_browser:
            if browse(consumer):
                self.deliver_later()
        else:
            if self.index is not None:
                self.index.wake(consumer)
            self.deliver()

    def prompt_later(self, consumer: Consumer) -> None:
        """The same, to be delivered to in the next turn."""
        if self.index is not None and not consumer.is_browser:
            self.index.wake(consumer)
        self.deliver_later()

    def deliver(self) -> None:
        """Deliver what can be delivered, in this turn and the next ones."""
        if self._is_delivering:
            return
        pages = self.pages
        if pages is not None and pages.is_dropping and not self.is_dispatching:
            pages.replenish()
        if self.is_dispatching and (self.waiting.count or pages is not None):
            self._is_delivering = True
            try:
                if pages is not None:
                    pages.replenish()
                has_more = dispatch(self)
            finally:
                self._is_delivering = False
            if has_more or (self.pages is not None and self.pages.wants_to_go_on):
                self.deliver_later()
        if self.browsers:
            for browser in list(self.browsers):
                if browser.can_take and browse(browser):
                    self.deliver_later()

    def deliver_later(self) -> None:
        """Deliver what can be delivered in the next turn."""
        if self._turn is None:
            self._turn = self.timers.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._turn = None
        self.deliver()

    def pause(self) -> None:
        """Deliver nothing until resume(); messages come as before."""
        self.is_paused = True
        self._refresh()

    def resume(self) -> None:
        """Deliver again."""
        self.is_paused = False
        self._refresh()
        self.deliver()

    def update(self, binding: QueueBinding) -> None:
        """Take changed attributes; those that make it another queue stay as they are."""
        if binding.filter != self.binding.filter:
            self.filter = self._parse_filter(binding.filter) if binding.filter else None
        self.binding = binding
        if binding.ring_size >= 0:
            self._trim_ring()
        self._refresh()
        self.deliver()

    # --- the end ------------------------------------------------------------------------------

    def remove_all(self) -> int:
        """Remove all that waits, is not due yet, or lies in pages; how many.

        What lies in pages goes as it is read, in later turns.
        """
        removed = list(self.references())
        for reference in removed:
            self.remove(reference)
        return len(removed) + (0 if self.pages is None else self.pages.drop_all())

    def delete(self) -> None:
        """Remove everything, what is being delivered too, and close all consumers."""
        members = [*self.consumers.all(), *self.browsers]
        if self.pages is not None:
            self.pages.close()
        for consumer in members:
            for reference in consumer.delivering:
                if reference.consumer is consumer:
                    self.delivering_count -= 1
                    self._forget(reference)
        self.remove_all()
        self.is_deleted = True
        self._takes_all = False
        if self.index is not None:
            self.index.close()
            self.index = None
        for consumer in members:
            self.consumers.remove(consumer)
            if consumer.cursor is not None:
                consumer.cursor.close()
                consumer.cursor = None
            consumer.disconnect()
        self.browsers.clear()
        self._stop_open_timer()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._schedule is not None:
            self._schedule.close()
        self._refresh()


def _message_id(reference: Reference) -> int:
    return reference.message.message_id
