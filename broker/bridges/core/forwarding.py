"""The near side of a bridge: a consumer of its queue, and what became of each message.

    queue ─▶ deliver() ─▶ Sending ─▶ confirmed by the target ─▶ acknowledged here ─▶ durable: done

A message is acknowledged once the target has confirmed it, and forgotten once that is durable.
Until then it stays with the bridge, over lost connections too: what had no answer is sent again
first, in the same order and with the same duplicate id. So the ids that a target has to remember
are those of the window, and no more (window.py). Artemis gives them back to their queue meanwhile.

A link to a peer holds back what its address has no room or queue for, and sends the others
(held_back.py): it tries again when there is credit, or after a second.

The consumer is paused without a link, the next message waits for credit or the socket, or
the window is full: then messages wait in the queue, in memory or in pages.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from broker.bridges.core.held_back import HeldBack
from broker.bridges.core.outgoing import TransformFailed
from broker.bridges.core.sending import Sending, Sent, Waits
from broker.client.errors import BrokerRefused
from broker.errors import BrokerError, ErrorCode
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.bridges.core.outgoing import OutgoingMessages
    from broker.bridges.core.target import Link
    from broker.model.message import Message
    from broker.ports import Timers
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["Forwarding"]

log = logging.getLogger("broker.bridge")

_CONSUMER: Final = 0
_UNLIMITED: Final = -1
# Why an acknowledgement was not recorded, and will be.
_NOT_STORED: Final = (ErrorCode.ADDRESS_FULL, ErrorCode.IO_ERROR)
_ACKNOWLEDGE_AGAIN_S: Final = 1.0
# What one address refuses, while others may take what is for them.
_REFUSED_THERE: Final = (
    ErrorCode.ADDRESS_FULL,
    ErrorCode.ADDRESS_DOES_NOT_EXIST,
    ErrorCode.QUEUE_DOES_NOT_EXIST,
)
_TRY_AGAIN_S: Final = 1.0


class Forwarding:
    """See the module's text. Implements `broker.queues.consumer_ports.Sink`.

    Args:
        name: of the bridge.
        session: of this broker; closed with it.
        outgoing: makes what the target gets.
        bytes_max: of messages on their way, at most (confirmation-window-size).
        timers: turns and timers.
        on_failed: called when a link has to be given up, with the reason.
        on_gone: called when the queue is gone.
        send_back: called with a message that the target refuses; whether it is acknowledged here,
            for it goes elsewhere. Else the link is given up, and the message sent again.
        holds_back: what its address alone has no room or queue for is held back, and the link kept.

    Attributes:
        forwarded_count: messages that were sent, again or not.
        acknowledged_count: messages that the target confirmed.
        is_taking: new messages are taken from the queue.
    """

    def __init__(
        self,
        name: str,
        session: Session,
        outgoing: OutgoingMessages,
        *,
        bytes_max: int,
        timers: Timers,
        on_failed: Callable[[Exception], object],
        on_gone: Callable[[], object],
        send_back: Callable[[Message, BrokerRefused], bool] = lambda message, error: False,
        holds_back: bool = False,
    ) -> None:
        self._name = name
        self._session = session
        self._outgoing = outgoing
        self._bytes_max = bytes_max
        self._timers = timers
        self._on_failed = on_failed
        self._on_gone = on_gone
        self._send_back = send_back
        self._consumer: Consumer | None = None
        self._sending: Sending | None = None
        self._window = 0
        # Addresses of which the target remembers fewer ids than the window has, and how many
        # messages for each address are on their way.
        self._limits: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._held: HeldBack | None = HeldBack() if holds_back else None
        # Addresses of these that have room again, and those whose first one was refused.
        self._released: dict[str, None] = {}
        self._refused: set[str] = set()
        self._is_trying = self._is_releasing = False
        # By their numbers; the oldest that is not done stands first.
        self._sent: deque[Sent] = deque()
        self._bytes = 0
        self._last_number = 0
        # Confirmed in this turn.
        self._confirmed: list[Sent] = []
        self._on_settled: list[Callable[[], object]] = []
        self.forwarded_count = 0
        self.acknowledged_count = 0
        self.is_taking = True

    # --- lifecycle ----------------------------------------------------------------------------

    def open(self, queue: str, filter_text: str | None) -> None:
        """Begin to consume; nothing comes before begin().

        Raises:
            BrokerError: no such queue; it takes no consumer.
        """
        consumer = self._session.create_consumer(_CONSUMER, queue, self, filter_text=filter_text)
        self._consumer = consumer
        consumer.pause()
        consumer.receive_credits(_UNLIMITED)
        self._session.start()

    def begin(
        self,
        link: Link,
        window: int,
        window_at: Callable[[str], Awaitable[int]] | None = None,
    ) -> None:
        """Send over a link: first what had no answer on the last one.

        Args:
            link: new.
            window: messages on their way at most.
            window_at: awaited with each address, for those on their way there at most; None where
                there is one address.
        """

        async def limit(address: str) -> None:
            assert window_at is not None, "else nothing is asked"
            size = await window_at(address)
            self._limits.pop(address, None)
            if size < self._window:
                self._limits[address] = size

        sending = self._sending = Sending(
            link,
            on_answer=self._answered,
            on_failed=self._on_failed,
            on_room=self._look,
            limit=None if window_at is None else limit,
            on_blocked=None if self._held is None else self._hold_back,
            on_credit=self._release,
        )
        self._window = window
        for sent in tuple(self._sent):
            if not sent.is_confirmed and self._sending is sending:
                self._put(sending, sent)
        self._look()

    def end(self) -> None:
        """The link is of no use any more. Idempotent."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.close()
        for sent in self._sent:
            sent.is_uncertain = True
        # What is given back is not to come again now.
        self._look()
        self._give_back()

    def _give_back(self) -> None:
        """Without a link nothing is held back: it waits in the queue, or for its answer."""
        self._released.clear()
        self._refused.clear()
        if self._held is None:
            return
        unsent = []
        for sent in self._held.take_all():
            if sent.is_uncertain:
                self._take(sent)
            else:
                unsent.append(sent.message.message_id)
        consumer = self._consumer
        if consumer is None or not unsent:
            return
        # An operator may have taken some out of the queue.
        there = {one.message.message_id for one in consumer.delivering}
        try:
            self._session.settlement.release(
                _CONSUMER, [one for one in unsent if one in there], lambda error: None
            )
        except (BrokerError, JournalError) as error:
            # The queue is gone, or the storage has failed.
            log.debug("bridge %s: %s", self._name, error)

    def hold(self, on_settled: Callable[[], object]) -> None:
        """Take nothing more; `on_settled()` once all that was taken is done, perhaps at once."""
        self.is_taking = False
        self._on_settled.append(on_settled)
        self._look()
        self._tell_settled()

    def close(self) -> None:
        """End the session: what the target has not confirmed goes back, in its order. Idempotent.

        Raises:
            JournalError: the storage has failed.
        """
        self.end()
        self._sent.clear()
        self._counts.clear()
        self._bytes = 0
        self._consumer = None
        self._session.close(has_failed=False)

    # --- what others see ----------------------------------------------------------------------

    @property
    def pending_count(self) -> int:
        """Messages that were taken and not confirmed."""
        return sum(not sent.is_confirmed for sent in self._sent) + self.held_count

    @property
    def held_count(self) -> int:
        """Messages that wait for their addresses alone."""
        return 0 if self._held is None else self._held.count

    @property
    def held_addresses(self) -> list[str]:
        """These addresses."""
        return [] if self._held is None else self._held.addresses

    @property
    def unanswered_ids(self) -> list[int]:
        """The ids of messages that were sent, or might have been, and not confirmed."""
        held = () if self._held is None else self._held
        return [
            *(sent.message.message_id for sent in self._sent if not sent.is_confirmed),
            *(sent.message.message_id for sent in held if sent.is_uncertain),
        ]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way, or held back."""
        return not self._sent and not self.held_count

    @property
    def is_window_full(self) -> bool:
        """Whether the oldest message has to be done before another is sent."""
        sent = self._sent
        if not sent:
            return False
        # Asked for each message, and mostly there is none: a generator of nothing costs, too.
        if self._limits and any(
            self._counts.get(address, 0) >= limit for address, limit in self._limits.items()
        ):
            return True
        return (
            self._last_number - sent[0].number + 1 >= self._window or self._bytes >= self._bytes_max
        )

    @property
    def waits(self) -> tuple[Waits, str, float]:
        """What the next message waits for, at which address, since when by the loop's clock."""
        sending = self._sending
        if sending is None:
            return Waits.NOTHING, "", 0.0
        return sending.waits, sending.waits_for, sending.waits_since_s

    # --- messages come ------------------------------------------------------------------------

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Send a message on; it costs no credits."""
        sent = Sent(message, self._last_number + 1)
        address = message.address or ""
        if self._held is not None and address in self._held:
            self._last_number += 1
            self._held.add(address, sent)
        else:
            self._start(sent)
        self._look()
        return 0

    def _start(self, sent: Sent) -> None:
        self._take(sent)
        if self._sending is not None:
            self._put(self._sending, sent)

    def _take(self, sent: Sent) -> None:
        """Count it among those on their way."""
        self._last_number += 1
        sent.number = self._last_number
        self._sent.append(sent)
        self._bytes += sent.size

    def disconnected(self, consumer: Consumer) -> None:
        """The queue is gone, and what it had with it."""
        self._session.disconnected(consumer)
        self._consumer = None
        self._sent.clear()
        if self._held is not None:
            self._held.take_all()
        self._counts.clear()
        self._bytes = 0
        self._on_gone()

    def _put(self, sending: Sending, sent: Sent) -> None:
        self.forwarded_count += 1
        try:
            message = self._outgoing.make(sent.message)
        except TransformFailed as error:
            self._on_failed(error)
            return
        if sent.address is None:
            address = sent.address = message.address or ""
            self._counts[address] = self._counts.get(address, 0) + 1
        sending.put(sent, message)

    # --- what waits for its address alone ------------------------------------------------------

    def _hold_back(self, sent: Sent, is_refused: bool) -> None:
        """Keep a message, which the target does not have from this link, from the others' way."""
        assert self._held is not None, "else its link is given up"
        address = sent.message.address or ""
        again = Sent(sent.message, sent.number)
        again.order, again.is_uncertain = sent.order, sent.is_uncertain
        self._held.add(address, again)
        self._released.pop(address, None)
        # It is on its way no more.
        sent.is_confirmed = sent.is_done = True
        self._forget_done()
        self._tell_settled()
        if not is_refused:
            self._refused.discard(address)
            return
        self._refused.add(address)
        if not self._is_trying:
            self._is_trying = True
            self._timers.call_later(_TRY_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        """Send the first message for each address that refused one."""
        self._is_trying = False
        held = self._held
        if self._sending is None or held is None or not self.is_taking:
            return
        for address in tuple(self._refused):
            first = held.take_first(address)
            if first is not None:
                first.is_try = True
                self._start(first)

    def _release(self, address: str) -> None:
        """An address has room, or takes what it refused."""
        self._refused.discard(address)
        if self._held is not None and address in self._held:
            self._released[address] = None
            self._look()

    def _send_released(self, held: HeldBack) -> None:
        """Send what was held back, as far as the window and the target allow."""
        self._is_releasing = True
        while self._released and self._may_send:
            address = next(iter(self._released))
            first = held.take_first(address)
            if first is not None:
                self._start(first)
                continue
            del self._released[address]
            held.end(address)
            if self._sending is not None:
                self._sending.is_even(address)
        self._is_releasing = False

    @property
    def _may_send(self) -> bool:
        sending = self._sending
        return sending is not None and not sending.is_waiting and not self.is_window_full

    def _look(self) -> None:
        """Let the queue give more, or not."""
        consumer = self._consumer
        if consumer is None:
            return
        held = self._held
        if self._released and held is not None and self.is_taking and not self._is_releasing:
            self._send_released(held)
        takes = self.is_taking and self._may_send and (held is None or not held.is_full)
        if takes is not consumer.is_paused:
            return
        if takes:
            consumer.go_on()
        else:
            consumer.pause()

    # --- the target answers -------------------------------------------------------------------

    def _answered(self, sent: Sent, error: Exception | None) -> None:
        if error is None:
            if not sent.is_confirmed:
                sent.is_confirmed = True
                self.acknowledged_count += 1
                self._acknowledge(sent)
            if sent.is_try:
                self._release(sent.message.address or "")
        elif isinstance(error, BrokerRefused):
            if not sent.is_confirmed and self._send_back(sent.message, error):
                sent.is_confirmed = True
                self._acknowledge(sent)
                if sent.is_try:
                    self._release(sent.message.address or "")
            elif self._held is not None and error.code in _REFUSED_THERE:
                self._hold_back(sent, True)
                self._look()
            else:
                self._on_failed(error)
        # Else the link is lost: it is sent again on the next one.

    def _acknowledge(self, sent: Sent) -> None:
        """Acknowledge it to its queue; all of a turn wait together until that is durable."""
        try:
            self._session.accept_acknowledgement(_CONSUMER, sent.message.message_id, True)
        except BrokerError as error:
            if error.code in _NOT_STORED:
                log.error(
                    "AMQ224055: Bridge %s failed to acknowledge message %d, tries again: %s",
                    *(self._name, sent.message.message_id, error),
                )
                self._timers.call_later(_ACKNOWLEDGE_AGAIN_S, self._acknowledge_again, sent)
                return
            # An operator has taken it out of the queue, or the queue is gone.
            log.debug("bridge %s: %s", self._name, error)
        except JournalError as error:
            # The storage has failed, and with it the broker: the next start sends it again.
            log.debug("bridge %s: %s", self._name, error)
            return
        if not self._confirmed:
            self._timers.call_soon(self._wait_until_durable)
        self._confirmed.append(sent)

    def _acknowledge_again(self, sent: Sent) -> None:
        if self._sent and not sent.is_done:
            self._acknowledge(sent)

    def _wait_until_durable(self) -> None:
        confirmed, self._confirmed = self._confirmed, []
        self._session.context.then(self._durable, (confirmed,))

    def _durable(self, error: Exception | None, confirmed: list[Sent]) -> None:
        if error is not None:
            return
        for sent in confirmed:
            sent.is_done = True
        self._forget_done()
        self._look()
        self._tell_settled()

    def _forget_done(self) -> None:
        waiting = self._sent
        while waiting and waiting[0].is_done:
            done = waiting.popleft()
            self._bytes -= done.size
            if done.address is not None:
                self._forget_address(done.address)

    def _forget_address(self, address: str) -> None:
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]

    def _tell_settled(self) -> None:
        if self._on_settled and not self._sent:
            waiting, self._on_settled = self._on_settled, []
            for on_settled in waiting:
                on_settled()
