"""One consumer of one queue: its credits, and what it was given and has not acknowledged.

    queue ─▶ handle(reference) ─▶ sink.deliver() ─▶ bytes; the answer is what it costs in credits

A consumer takes while it is started, has credits left and its connection can be written to. What
it was given stays in `delivering`, in order, until it is acknowledged, alone or with all before it,
or goes back to the queue.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.queues.consumer_ports import Pause
from broker.queues.joint_records import record_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.queues.consumer_ports import ConsumerQueue, ConsumerTransaction, Sink, Stream
    from broker.queues.filter import Filter
    from broker.queues.pages import PageBrowser
    from broker.queues.reference import Reference
    from broker.queues.reference_lists import Cursor

__all__ = ["UNLIMITED", "Consumer"]

log = logging.getLogger("broker")

UNLIMITED = -1
_NUMBERS = itertools.count(1)


class Consumer:
    """See the module's text.

    Args:
        consumer_id: the protocol's number.
        queue: where it takes from.
        sink: where it gives to.
        filter: a selector of its own beside the queue's; None takes all.
        is_browser: looks without taking: nothing it is given counts as delivered.
        priority: higher ones come first.
        is_pre_acknowledging: messages count as acknowledged when they are handed over.
        counts_messages: a message costs one credit, whatever its size, and its body none.

    Attributes:
        number: unique in the process.
        can_take: started, with credits left, not paused; each change of these updates it.
        counted_delivery: what a delivery adds to the count of its message; 0 for a bridge, which
            looks at none.
        pause_cause: why it is paused, while it is.
        delivering: given and not acknowledged, in order.
        on_answered: called when nothing of that is left; None: not called.
        credits: bytes or messages left; below 0 after a message larger than what was left.
        is_unlimited: credits do not matter.
        is_closed: takes nothing any more.
        created_ms: when, ms since 1970.
        delivered_count: how often it was given a message.
        delivered_bytes: of these messages.
        last_delivered_s: when the last one was, seconds since 1970; 0 never.
        last_acknowledged_s: when it acknowledged the last time, likewise.
    """

    def __init__(
        self,
        consumer_id: int,
        queue: ConsumerQueue,
        sink: Sink,
        *,
        filter: Filter | None = None,
        is_browser: bool = False,
        priority: int = 0,
        is_pre_acknowledging: bool = False,
        counts_messages: bool = False,
    ) -> None:
        self.consumer_id = consumer_id
        self.counts_messages = counts_messages
        self.number = next(_NUMBERS)
        self.queue = queue
        self._clock_s = queue.clock_s
        self._records_deliveries: bool = queue.records_deliveries
        self.sink = sink
        self.filter = filter
        self.is_browser = is_browser
        self.priority = priority
        self.is_pre_acknowledging = is_pre_acknowledging
        self.counted_delivery = 1
        self.credits = 0
        self.is_unlimited = False
        self.delivering: deque[Reference] = deque()
        # Where the message stood that was looked for last.
        self._found_at = 0
        self.on_answered: Callable[[], object] | None = None
        self.can_take = False
        # A browser looks whether its session is started or not.
        self.is_started = is_browser
        self.is_paused = False
        self.pause_cause = Pause.CONNECTION
        self.is_closed = False
        self.acknowledged_count = 0
        self.delivered_count = 0
        self.delivered_bytes = 0
        self.last_delivered_s = 0.0
        self.last_acknowledged_s = 0.0
        self.created_ms = queue.clock_ms()
        # The body of a large message on its way: nothing else comes before its end.
        self.stream: Stream | None = None
        # Where it looks next, in a queue whose consumers do not all want the same.
        self.cursor: Cursor | None = None
        # Of a browser: where it looks in the queue's pages.
        self.page_browser: PageBrowser | None = None

    def _refresh(self) -> None:
        self.can_take = (
            self.is_started
            and not self.is_paused
            and not self.is_closed
            and self.stream is None
            and (self.is_unlimited or self.credits > 0)
        )

    def start(self) -> None:
        """Take from now on."""
        self.is_started = True
        self._wake()

    def stop(self) -> None:
        """Take nothing until start(); a browser looks on (ServerConsumerImpl.setStarted)."""
        if not self.is_browser:
            self.is_started = self.can_take = False

    def pause(self, cause: Pause = Pause.CONNECTION) -> None:
        """Nothing can be written for it for now, and why: take nothing until go_on()."""
        self.is_paused = True
        self.pause_cause = cause
        self.can_take = False

    def go_on(self) -> None:
        """It can be written for again.

        All consumers of a connection go on together: their queues deliver once, in the next turn.
        """
        self.is_paused = False
        self._refresh()
        if self.stream is not None:
            self._write_on()
        elif self.can_take:
            self.queue.prompt_later(self)

    def receive_credits(self, credits: int) -> None:
        """Take a flow token: -1 unlimited from now on, 0 none at all, else so many more.

        Raises:
            BrokerError: any other negative number.
        """
        if credits < UNLIMITED:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, f"flow token of {credits} is not valid")
        if credits == UNLIMITED:
            self.is_unlimited = True
        elif credits == 0:
            self.is_unlimited = False
            self.credits = 0
            self.can_take = False
        else:
            self.credits += credits
        self._wake()

    def _wake(self) -> None:
        self._refresh()
        if self.stream is not None:
            self._write_on()
        elif self.can_take:
            self.queue.prompt(self)

    def after_read(self, callback: Callable[[], object]) -> bool:
        """Call it once what is being read from pages for this consumer has come.

        Returns:
            False where nothing is being read that it could take: nothing is called, then.
        """
        pages = self.queue.pages
        if not self.can_take or pages is None:
            return False
        if not self.is_browser:
            return pages.after_read(callback)
        return self.page_browser is not None and self.page_browser.after_read(callback)

    @property
    def can_stream(self) -> bool:
        """Whether the next part of a large message may be written."""
        return (
            self.is_started
            and not self.is_paused
            and not self.is_closed
            and (self.is_unlimited or self.counts_messages or self.credits > 0)
        )

    def begin_stream(self, stream: Stream) -> None:
        """A large message's body follows: nothing else comes before its end."""
        self.stream = stream
        self.can_take = False

    def end_stream(self) -> None:
        """The body is written, or no longer wanted. Idempotent."""
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()
            self._refresh()
            if self.can_take:
                # In a turn of its own: who writes large messages one after another lets others in.
                self.queue.timers.call_soon(self._wake)

    def handle(self, reference: Reference, message: Message) -> None:
        """Take a reference: it is counted, remembered, and `message` written for it."""
        if self.is_browser:
            self._write(message, reference.delivery_count)
            return
        reference.delivery_count += self.counted_delivery
        if reference.level < 0:
            # Else its queue keeps it: no consumer has it, and it may go while it is delivered.
            reference.consumer = self
        self.delivered_count += 1
        self.last_delivered_s = self._clock_s()
        if self.is_pre_acknowledging:
            # Before it is written: what is lost on the way is lost, as asked for.
            self.last_acknowledged_s = self.last_delivered_s
            try:
                self._acknowledge(None, reference, True)
            except BrokerError as error:
                self._refused(error)
                return
        else:
            self.delivering.append(reference)
            if self._records_deliveries:
                self._record_delivery(reference)
        self._write(message, reference.delivery_count)
        self.delivered_bytes += message.encoded_size

    def _refused(self, error: BrokerError) -> None:
        """The disk has no room for the acknowledgement before delivery: nothing is written.

        The consumer ends behind this turn, as in Artemis one that cannot handle a message; what it
        was given goes back to its queue.
        """
        self.delivered_count -= 1
        self.is_paused = True
        self.can_take = False
        # Behind what was refused before it, in the same turn.
        self.delivering.rotate(-1)
        self.queue.timers.call_soon(self._fail, error)

    def _cannot_be_written(self, error: Exception) -> None:
        """What a message holds cannot be told in the protocol of this consumer.

        Other consumers may be able to take it. Each attempt is counted, so it ends at the dead
        letter address (max-delivery-attempts).
        """
        log.error(
            "AMQ222151: consumer %s of queue %s did not handle a message",
            self.consumer_id,
            self.queue.name,
            exc_info=error,
        )
        self.is_paused = True
        self.can_take = False
        last = self.delivering[-1] if self.delivering else None
        self.queue.timers.call_soon(self._fail, error, last)

    def _fail(self, error: Exception, attempted: Reference | None = None) -> None:
        """End a consumer that cannot be given messages, and tell its client.

        Args:
            error: why.
            attempted: its delivery stays counted; None of nothing.
        """
        if self.is_closed:
            return
        if attempted is not None and attempted.consumer is self:
            attempted.delivery_count += 1
        log.warning(
            "AMQ222151: removing consumer %s of queue %s, which could not be given a message: %s",
            self.consumer_id,
            self.queue.name,
            error,
        )
        self.close(has_failed=False)
        self.sink.disconnected(self)

    def _record_delivery(self, reference: Reference) -> None:
        """Record a delivery count before the message is written, if the reference is recorded.

        The message does not wait until the record is durable, as in Artemis.
        """
        if reference.is_recorded and not self.queue.binding.internal:
            count = reference.delivery_count
            self.queue.storage.update_delivery_count(
                self.queue.queue_id, reference.message.message_id, count
            )
            reference.persisted_count = count

    def _write(self, message: Message, delivery_count: int) -> None:
        try:
            cost = self.sink.deliver(self, message, delivery_count)
        except Exception as error:  # noqa: BLE001 - whatever it is; the log has it.
            # One message must not end the broker, whatever its bytes are.
            self._cannot_be_written(error)
            return
        self.charge(1 if self.counts_messages else cost)
        if self.stream is not None:
            self._write_on()

    def _write_on(self) -> None:
        """Write more of a large message, as far as the connection takes it."""
        assert self.stream is not None, "it has begun"
        try:
            self.stream.go_on()
        except Exception as error:  # noqa: BLE001 - whatever it is; the log has it.
            self._cannot_be_written(error)

    def charge(self, size: int) -> None:
        """Take bytes from the credits; below 0 it is that much that has to come first."""
        if not self.is_unlimited:
            self.credits -= size
            if self.credits <= 0:
                self.can_take = False

    # --- acknowledging ------------------------------------------------------------------------

    def acknowledge(self, tx: ConsumerTransaction | None, message_id: int) -> None:
        """Acknowledge all that was delivered up to this message.

        Raises:
            BrokerError: it was not delivered, or has been acknowledged; or the disk is full.
                Without a transaction nothing is acknowledged, then.
        """
        if self.is_browser:
            return
        delivering = self.delivering
        last = self._find(message_id)
        self.last_acknowledged_s = self._clock_s()
        if tx is None and delivering[0] is not last:
            self._acknowledge_together(last)
        else:
            reference = delivering.popleft()
            while reference is not last:
                self._acknowledge(tx, reference, False)
                reference = delivering.popleft()
            self._acknowledge(tx, reference, True)
        self._answered()

    def _acknowledge_together(self, last: Reference) -> None:
        """The same, outside of any transaction: a crash leaves all of it or none."""
        delivering, queue = self.delivering, self.queue
        recorded = []
        if queue.is_durable:
            for reference in delivering:
                if reference.consumer is self and reference.leaves_record():
                    recorded.append(reference)
                if reference is last:
                    break
        if len(recorded) == 1:
            recorded[0].record_gone(None, True)
        elif recorded:
            record_together(queue.storage, recorded)
        while True:
            reference = delivering.popleft()
            if reference.consumer is self:
                queue.acknowledged(reference)
            self.acknowledged_count += 1
            if reference is last:
                return

    def _answered(self) -> None:
        """Something that was delivered is not any more."""
        if self.on_answered is not None and not self.delivering:
            self.on_answered()

    def _find(self, message_id: int) -> Reference:
        """Give what is being delivered of a message, and note where it stands."""
        # Where the last one stood: of many that stay, those behind go in their order.
        at = self._found_at
        if at < len(self.delivering):
            reference = self.delivering[at]
            message = reference.message
            if message.message_id == message_id:
                return reference
        for at, reference in enumerate(self.delivering):
            message = reference.message
            if message.message_id == message_id:
                self._found_at = at
                return reference
        raise self.not_delivered(message_id)

    def acknowledge_one(self, tx: ConsumerTransaction | None, message_id: int) -> None:
        """Acknowledge this message alone.

        Raises:
            BrokerError: as for acknowledge().
        """
        if self.is_browser:
            return
        reference = self.take_back(message_id)
        self.last_acknowledged_s = self._clock_s()
        self._acknowledge(tx, reference, True)

    def _acknowledge(
        self, tx: ConsumerTransaction | None, reference: Reference, is_last: bool
    ) -> None:
        """See that it is recorded; what is refused is being delivered as before."""
        if reference.consumer is self:
            reference.consumer = None
            try:
                if tx is None:
                    self.queue.acknowledge(reference, is_last)
                else:
                    tx.acknowledge(reference, self)
            except BrokerError:
                reference.consumer = self
                self.delivering.appendleft(reference)
                raise
        self.acknowledged_count += 1

    def take_back(self, message_id: int) -> Reference:
        """Take one message out of what is being delivered.

        Raises:
            BrokerError: it is not.
        """
        found = self._find(message_id)
        del self.delivering[self._found_at]
        self._answered()
        return found

    def not_delivered(self, message_id: int) -> BrokerError:
        """Give the error about a message that is not being delivered to it."""
        return broker_error(
            "no_reference",
            f"consumer {self.consumer_id} on {self.queue.name} has no message {message_id} "
            "that waits for its acknowledgement",
        )

    def take_all_back(
        self, *, has_failed: bool, first_was_delivered: bool = False
    ) -> tuple[list[Reference], list[Reference]]:
        """Give back, in order, all that is being delivered, to be put into the queue again.

        Without what a non-destructive queue has kept, or has lost meanwhile.

        Returns:
            What the application has seen, and what comes behind that.

        Args:
            has_failed: the connection broke: the client may have seen them, so they stay counted.
            first_was_delivered: the client has seen the first one (JMS recover).
        """
        self.end_stream()
        taken = list(self.delivering)
        self.delivering.clear()
        self._answered()
        for position, reference in enumerate(taken):
            if not has_failed and not (first_was_delivered and position == 0):
                reference.delivery_count -= self.counted_delivery
        seen_count = 1 if first_was_delivered else 0
        seen, unseen = taken[:seen_count], taken[seen_count:]
        return self._own(seen), self._own(unseen)

    def _own(self, references: list[Reference]) -> list[Reference]:
        return [reference for reference in references if reference.consumer is self]

    def close(self, *, has_failed: bool) -> None:
        """Give everything back and leave the queue. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self.can_take = False
        _, returned = self.take_all_back(has_failed=has_failed)
        self.queue.remove_consumer(self, returned)

    def disconnect(self) -> None:
        """The queue is gone: forget everything and tell the client."""
        if not self.is_closed:
            self.is_closed = True
            self.can_take = False
            self.end_stream()
            self.delivering.clear()
            self.sink.disconnected(self)
