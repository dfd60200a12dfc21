"""A queue: what it holds (contents.py), who may consume it, and when it is delivered.

Who gets the next message: dispatch.py.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import broker_error
from broker.queues.consumers import Consumers
from broker.queues.contents import QueueContents
from broker.queues.dispatch import browse, dispatch
from broker.queues.groups import GROUP_ID, Groups
from broker.queues.refusals import Refusals
from broker.queues.selector_index import SelectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.model.message import Message
    from broker.ports import Settings, Timer, Timers
    from broker.queues.consumer import Consumer
    from broker.queues.contents import DeadLetterHandler
    from broker.queues.filter import Filter
    from broker.queues.reference import Reference
    from broker.records.binding_records import QueueBinding
    from broker.storage.manager import StorageManager

__all__ = ["Queue"]


class Queue(QueueContents):
    """See the module's text.

    Args:
        queue_id: of its record, and of the references to it.
        binding: name, address and attributes.
        storage: where records go.
        timers: turns and timers.
        clock_ms: wall clock, ms since 1970.
        clock_s: the same in seconds, for consumers.
        consumer_numbers: unique in the broker.
        settings: of addresses.
        parse_filter: a selector's text to a Filter; raises BrokerError 103.
        dead_letters: takes what is delivered too often, or too late.
        auto_delete: called with its name when it is empty and unused, if it is to go then.
        is_durable: it has a record, and so have its durable messages.
        is_temporary: it goes with the connection that made it.
        records_deliveries: consumers record a delivery count before the message is written.

    Attributes:
        filter: of the queue, not of a consumer.
        consumers: all but browsers.
        groups: which consumer has which message group.
        index: finds who wants a message; None where consumers need none, or cursors.
    """

    def __init__(
        self,
        queue_id: int,
        binding: QueueBinding,
        *,
        storage: StorageManager,
        timers: Timers,
        clock_ms: Callable[[], int],
        clock_s: Callable[[], float],
        consumer_numbers: Iterator[int],
        settings: Settings,
        parse_filter: Callable[[str], Filter | None],
        dead_letters: DeadLetterHandler,
        auto_delete: Callable[[str], object],
        is_durable: bool,
        is_temporary: bool = False,
        records_deliveries: bool = False,
    ) -> None:
        super().__init__(
            queue_id,
            binding,
            storage=storage,
            timers=timers,
            clock_ms=clock_ms,
            settings=settings,
            dead_letters=dead_letters,
            auto_delete=auto_delete,
            is_durable=is_durable,
        )
        self.clock_s = clock_s
        self.consumer_numbers = consumer_numbers
        self.records_deliveries = records_deliveries
        self._parse_filter = parse_filter
        self.is_temporary = is_temporary
        self.filter: Filter | None = parse_filter(binding.filter) if binding.filter else None
        self.consumers = Consumers()
        self.browsers: list[Consumer] = []
        self.groups = Groups(binding.group_buckets)
        self.is_paused = False
        self.was_used = False
        self.status_record_id = 0
        self.created_ms = clock_ms()
        self.last_consumer_left_ms = self.created_ms
        self._has_groups = False
        # What each message would ask the binding for.
        self._takes_all = False
        self._is_delivering = False
        self._is_open = binding.consumers_before_dispatch <= 0
        self._open_timer: Timer | None = None
        self._turn: Timer | None = None
        self.index: SelectorIndex | None = None
        self._needs_cursors = False
        # Nothing is delivered before all consumers have answered what they have
        # (group-rebalance-pause-dispatch).
        self._is_rebalancing = False
        self._refresh()

    def __repr__(self) -> str:
        return f"Queue({self.name!r}, {self.message_count} messages)"

    @property
    def has_groups(self) -> bool:
        """Whether it has had messages of groups, or is exclusive."""
        return self._has_groups or self.binding.exclusive

    @property
    def consumer_count(self) -> int:
        """How many consumers it has, browsers included."""
        return self.consumers.count + len(self.browsers)

    @property
    def is_open(self) -> bool:
        """Whether it has begun to deliver (consumers-before-dispatch)."""
        return bool(self._is_open)

    @property
    def is_rebalancing(self) -> bool:
        """Whether it waits for answers of all consumers (group-rebalance-pause-dispatch)."""
        return bool(self._is_rebalancing)

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

    def load(self, reference: Reference) -> None:
        """Take a reference from the journal or a page; the caller has it delivered."""
        self._place(reference)

    def _place(self, reference: Reference) -> None:
        message = reference.message
        if self.admission is not None:
            self.admission.placed(self, message)
        if message.expiration:
            self.has_expiring = True
        if (
            message.has_own_properties
            and not self._has_groups
            and message.get(GROUP_ID) is not None
        ):
            self._has_groups = True
            self._refresh()
        self._put(reference)

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
                self._wait_for_answers()
            self.groups.reset()
        self.consumers.add(consumer)
        self._refresh()
        self._equip(consumer)
        if not self._is_open:
            self._consider_opening()
        if self.binding.group_rebalance:
            self.look_again()

    def _wait_for_answers(self) -> None:
        """Deliver nothing until no consumer has anything that it was delivered."""
        for member in self.consumers.all():
            member.on_answered = self._answered
        self._is_rebalancing = True
        self._end_rebalance()

    def _answered(self) -> None:
        """A consumer has nothing left that it was delivered: groups may go to others now."""
        if self._is_rebalancing and self._end_rebalance():
            self._refresh()
            self.deliver_later()

    def _end_rebalance(self) -> bool:
        """Go on if no consumer has deliveries left; whether it is so."""
        members = self.consumers.all()
        if any(member.delivering for member in members):
            return False
        self._is_rebalancing = False
        for member in members:
            member.on_answered = None
        return True

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
        self._answered()
        self._refresh()
        self.give_back((), returned)

    def give_back(self, references: Iterable[Reference], unseen: Iterable[Reference] = ()) -> None:
        """See QueueContents. A transaction may give back when all consumers have left long ago."""
        super().give_back(references, unseen)
        if self.consumer_count == 0 and self.binding.purge_on_no_consumers:
            self.timers.call_soon(self._purge_if_unused)

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

    def _purge_if_unused(self) -> None:
        if self.consumer_count == 0 and not self.is_deleted:
            self.remove_all()

    def _refresh(self) -> None:
        """Something that decides about delivery has changed."""
        binding = self.binding
        consumers = self.consumers
        consumers.may_take = (
            consumers.count > 0
            and self._is_open
            and not self._is_rebalancing
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
        has_selectors = consumers.filtered_count > 0
        consumers.is_plain = not (needs_cursors or has_selectors)
        needs_cursors = needs_cursors or (has_selectors and self.last_values is not None)
        if needs_cursors != self._needs_cursors:
            self._needs_cursors = needs_cursors
            for member in consumers.all():
                self._equip(member)
        self._use_index(not consumers.is_plain and not needs_cursors)

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
            self.index = SelectorIndex(self, self.consumers)
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
        if pages is not None and pages.is_dropping and not self.consumers.may_take:
            pages.replenish()
        if self.consumers.may_take and (self.waiting.count or pages is not None):
            self._is_delivering = True
            try:
                if pages is not None:
                    pages.replenish()
                has_more = dispatch(self, self.consumers, self.groups, self.index)
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
