"""A link on which a peer receives: what its consumer is given becomes transfers.

    queue ─▶ deliver() ─▶ transfer ─▶ disposition: accepted, released, modified, rejected

Credit counts messages. The bytes of an AMQP message go as they came; others are converted. A large
body is written piece by piece as the peer takes it; meanwhile the link is given nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from cproton import pn_delivery, pn_delivery_settle
from proton import Delivery, Described, ulong

from broker.errors import BrokerError
from broker.protocols.amqp.conditions import ILLEGAL_STATE, RESOURCE_DELETED, AmqpError
from broker.protocols.amqp.deliveries import EngineDelivery
from broker.protocols.amqp.large_delivery import LargeDelivery
from broker.protocols.amqp.links import OurLink
from broker.protocols.amqp.transactions import (
    ACCEPTED_CODE,
    TRANSACTIONAL,
    Outcome,
    outcome_of,
    transaction_id,
)
from broker.protocols.large_content import unpacked
from broker.queues.consumer_ports import Pause
from broker.records.amqp_message import AmqpMessage
from broker.records.core_to_amqp import body_of, sections_of
from journal.errors import JournalError

if TYPE_CHECKING:
    from proton import Sender

    from broker.model.message import Message
    from broker.protocols.amqp.links import LinkConnection
    from broker.protocols.amqp.nodes import Source
    from broker.protocols.amqp.transactions import OpenTransaction
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["OutgoingLink"]

log = logging.getLogger("broker")

# Bytes that the peer's session window lets wait before consumers pause.
WAITING_MAX: Final = 1024 * 1024


class OutgoingLink(OurLink):
    """See the module's text. Implements `queues.consumer.Sink`.

    Args:
        connection: it is on.
        session: of the link.
        link: of the engine.
        source: where it takes from.
        is_settled: what is sent is settled: the peer answers nothing.

    Attributes:
        consumer: set by begin().
        source: as given.
        session: as given.
    """

    consumer: Consumer

    def __init__(
        self,
        connection: LinkConnection,
        session: Session,
        link: Sender,
        source: Source,
        *,
        is_settled: bool,
    ) -> None:
        super().__init__(connection, session)
        self._link = link
        self._engine_session = link.session
        self.source = source
        self._is_settled = is_settled
        self._tags = 0
        # Message ids of what the peer has not settled, by delivery tag.
        self._open: dict[str, int] = {}
        # Acknowledged in a transaction that is open.
        self._enlisted: dict[str, OpenTransaction] = {}
        self._stream: LargeDelivery | None = None
        self._is_congested = False
        self._is_draining = False

    def begin(self, *, is_browser: bool, priority: int) -> None:
        """Make its consumer.

        Raises:
            BrokerError: it is refused.
        """
        session = self.session
        self.consumer = session.create_consumer(
            session.new_id(),
            self.source.queue,
            self,
            filter_text=self.source.selector,
            is_browser=is_browser,
            priority=priority,
            is_pre_settled=self._is_settled,
            counts_messages=True,
        )
        if self._connection.peer.is_paused:
            self.consumer.pause()

    # --- credit -------------------------------------------------------------------------------

    def flow(self) -> None:
        """The peer gives credit, takes it back, or wants the link drained."""
        consumer = self.consumer
        if consumer.is_closed:
            return
        # What is being streamed has taken its credit from the consumer, not yet from the link.
        credit = self._link.credit - (self._stream is not None)
        if credit < consumer.credits:
            consumer.receive_credits(0)
        if credit > consumer.credits:
            consumer.receive_credits(credit - consumer.credits)
        if self._link.drain_mode and not self._is_draining:
            self._is_draining = True
            # Behind what is on its way into the queue by this session.
            self.session.context.after(self._drain)

    def _drain(self, error: Exception | None) -> None:
        """Give what there is, then the credit that is left back."""
        consumer = self.consumer
        if error is not None or self.is_closed or consumer.is_closed:
            return
        if self._is_behind() or self._connection.peer.is_paused:
            return
        if not consumer.is_paused:
            consumer.queue.prompt(consumer)
            if consumer.after_read(lambda: self._drain(None)):
                return
        if self._is_behind() or self._is_being_written():
            return
        self._is_draining = False
        if self._link.drain_mode:
            consumer.receive_credits(0)
            self._link.drained()
            self._connection.flush_later()

    def _is_behind(self) -> bool:
        """Whether more comes before the answer to a drain."""
        return self._stream is not None or self._is_congested

    def _is_being_written(self) -> bool:
        """Whether the peer's window is full: the engine forgets a drained() ahead of what waits."""
        if self._engine_session.outgoing_bytes:
            self._connection.flush()
        return bool(self._engine_session.outgoing_bytes)

    # --- deliveries ---------------------------------------------------------------------------

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Send a message; its bytes."""
        before = max(0, delivery_count - 1)
        if consumer.is_browser:
            before = delivery_count
        if message.large is not None:
            return self._begin_large(message, before)
        if isinstance(message, AmqpMessage) and message.is_as_sent:
            encoded = message.to_deliver(before)
        else:
            encoded = sections_of(message, self._connection.clock.now_ms(), before) + body_of(
                message, unpacked(message)
            )
        link = self._link
        delivery = self._new_delivery(message.message_id)
        link.stream(encoded)
        link.advance()
        if self._is_settled:
            pn_delivery_settle(delivery)
        self._sent()
        return len(encoded)

    def _new_delivery(self, message_id: int) -> object:
        """Begin one; the engine's handle of it, valid until the engine is called again."""
        self._tags += 1
        tag = str(self._tags)
        if not self._is_settled:
            self._open[tag] = message_id
        return pn_delivery(self._link._impl, tag)

    def _sent(self) -> None:
        """Let consumers wait where the peer does not take what it gave credit for."""
        if self._engine_session.outgoing_bytes > WAITING_MAX:
            self._connection.flush()
            if self._engine_session.outgoing_bytes > WAITING_MAX:
                self._is_congested = True
                self.consumer.pause()
                return
        self._connection.flush_later()

    def _begin_large(self, message: Message, before: int) -> int:
        delivery = EngineDelivery(self._new_delivery(message.message_id))
        self.consumer.pause(Pause.LARGE_MESSAGE)
        self._stream = LargeDelivery(
            self._connection,
            self._link,
            message,
            before,
            lambda: self._streamed(delivery),
        )
        # Behind this turn of the queue.
        self._connection.timers.call_soon(self._stream.go_on)
        return self._stream.size

    def _streamed(self, delivery: EngineDelivery) -> None:
        self._stream = None
        if self._is_settled:
            delivery.settle()
        self._sent()
        if self.is_closed or self.consumer.is_closed:
            return
        if self._is_congested or self._connection.peer.is_paused:
            self.consumer.pause()
        else:
            self.consumer.go_on()
        if self._is_draining:
            self._drain(None)

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed the consumer: its queue is gone, or cannot be acknowledged to."""
        self.session.disconnected(consumer)
        self._connection.end_link(
            self._link, AmqpError(RESOURCE_DELETED, f"Queue deleted: {consumer.queue.name}")
        )

    # --- dispositions -------------------------------------------------------------------------

    def updated(self, delivery: EngineDelivery) -> None:
        """The peer says what became of a message."""
        tag = delivery.tag
        message_id = self._open.get(tag)
        if message_id is None:
            if delivery.settled and tag not in self._enlisted:
                delivery.settle()
            return
        state = delivery.remote_state
        if not state and not delivery.settled:
            return
        if self.consumer.is_closed or self.consumer.is_browser:
            del self._open[tag]
            delivery.settle()
            return
        try:
            self._settle(delivery, tag, message_id, state)
        except AmqpError as error:
            self._connection.end_link(self._link, error)
        except BrokerError as error:
            self._connection.end_link(self._link, AmqpError(ILLEGAL_STATE, error.text))
        except JournalError as error:
            self._connection.end_link(self._link, AmqpError(ILLEGAL_STATE, str(error)))

    def _settle(self, delivery: EngineDelivery, tag: str, message_id: int, state: int) -> None:
        session, consumer_id = self.session, self.consumer.consumer_id
        if state == TRANSACTIONAL:
            self._settle_in_transaction(delivery, tag, message_id)
            return
        if state == Delivery.RECEIVED and not delivery.settled:
            return
        del self._open[tag]
        if state == Delivery.ACCEPTED:
            session.accept_acknowledgement(consumer_id, message_id, True)
            session.context.then(self._settled, (delivery, Delivery.ACCEPTED))
        elif state == Delivery.MODIFIED:
            remote = delivery.remote
            outcome = Outcome(state, bool(remote.failed), bool(remote.undeliverable))
            self._give_back(delivery, message_id, outcome)
        else:
            self._give_back(delivery, message_id, Outcome(state))

    def _give_back(self, delivery: EngineDelivery, message_id: int, outcome: Outcome) -> None:
        """Do what an outcome other than accepted says."""
        consumer_id, ids = self.consumer.consumer_id, (message_id,)
        settlement, state = self.session.settlement, outcome.code
        is_failed = outcome.is_failed
        if state == Delivery.REJECTED:
            if not self._connection.parameters["amqpTreatRejectAsUnmodifiedDeliveryFailed"]:
                settlement.reject(consumer_id, ids, self._settled, delivery, state)
                return
            is_failed = True
        elif state != Delivery.MODIFIED:
            # Released; or settled without any outcome, as if the peer had not seen it.
            settlement.release(consumer_id, ids, self._settled, delivery, Delivery.RELEASED)
            return
        settlement.modify(
            consumer_id,
            ids,
            self._settled,
            delivery,
            state,
            delivery_failed=is_failed,
            undeliverable_here=outcome.is_undeliverable,
        )

    def _settled(self, error: Exception | None, delivery: EngineDelivery, state: int) -> None:
        """What the peer said is durable: settle it from this side, too."""
        if error is not None or self.is_closed:
            return
        if not delivery.settled:
            delivery.update(state)
        delivery.settle()
        self._connection.flush_later()

    def _settle_in_transaction(self, delivery: EngineDelivery, tag: str, message_id: int) -> None:
        tx = self._connection.transactions.find(transaction_id(delivery))
        outcome = outcome_of(delivery)
        del self._open[tag]
        if outcome.code == ACCEPTED_CODE:
            self._enlisted[tag] = tx
            with self.session.transactions.within(tx.transaction):
                self.session.accept_acknowledgement(self.consumer.consumer_id, message_id, True)
            if not delivery.settled:
                delivery.local.data = [tx.id, Described(ulong(ACCEPTED_CODE), [])]
                delivery.update(TRANSACTIONAL)
                self._connection.flush_later()
            tx.at_end.append(lambda commits: self._ended(delivery, tag, commits))
            return
        # It counts with the commit: until then it is the peer's.
        tx.at_end.append(lambda commits: self._decided(delivery, message_id, outcome, commits))

    def _ended(self, delivery: EngineDelivery, tag: str, commits: bool) -> None:
        """A transaction that it was acknowledged in has ended."""
        self._enlisted.pop(tag, None)
        if self.is_closed:
            return
        if not delivery.settled:
            # Rolled back, it is in its queue again: the peer has it no more.
            delivery.update(Delivery.ACCEPTED if commits else Delivery.RELEASED)
        delivery.settle()
        self._connection.flush_later()

    def _decided(
        self,
        delivery: EngineDelivery,
        message_id: int,
        outcome: Outcome,
        commits: bool,
    ) -> None:
        """The same, where the outcome gives the message back."""
        if self.is_closed or self.consumer.is_closed:
            return
        if commits:
            self._give_back(delivery, message_id, outcome)
        else:
            self.session.settlement.modify(
                self.consumer.consumer_id,
                (message_id,),
                self._settled,
                delivery,
                Delivery.RELEASED,
                delivery_failed=True,
            )

    # --- the connection -----------------------------------------------------------------------

    def pause(self) -> None:
        """The peer does not read."""
        self.consumer.pause(Pause.CONNECTION if self._stream is None else Pause.LARGE_MESSAGE)

    def go_on(self) -> None:
        """The peer reads again, or its window has opened."""
        if self.is_closed or self.consumer.is_closed:
            return
        if self._stream is not None:
            self._stream.go_on()
        elif not self._is_congested:
            self.consumer.go_on()
            if self._is_draining:
                self._drain(None)

    def relieve(self) -> None:
        """Something was written: go on where less waits now."""
        waiting = self._engine_session.outgoing_bytes
        if self._is_congested and waiting <= WAITING_MAX // 2:
            self._is_congested = False
            if not self._connection.peer.is_paused:
                self.go_on()
        elif self._stream is not None and waiting <= WAITING_MAX // 2:
            self._stream.go_on()
        if self._is_draining and not self._engine_session.outgoing_bytes:
            self._drain(None)

    def close(self) -> None:
        """The link, its session or the connection ends."""
        super().close()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
