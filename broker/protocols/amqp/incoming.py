"""A link on which a peer sends: its transfers become messages, each answered once durable.

    transfer, transfer … ─▶ one message ─▶ session ─▶ durable ─▶ accepted, settled
                                              └─▶ refused: rejected or modified, by the error

A peer that asks for receiver settle mode second is answered unsettled: it settles, then the broker.

A message of amqpMinLargeMessageSize and more is written to a place of its own while it comes.

The peer has credit for so many messages as are on their way at most; a full address withholds it
(BLOCK), or has messages refused (FAIL) and the link drained.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from proton import Condition, Delivery, Described, Link, ulong

from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.model.encoding import RecordFormatError
from broker.model.properties import PropertyType
from broker.protocols.amqp.conditions import (
    DECODE_ERROR,
    DETACH_FORCED,
    AmqpError,
    of_delivery,
)
from broker.protocols.amqp.large_arrival import LargeArrival
from broker.protocols.amqp.links import OurLink
from broker.protocols.amqp.nodes import CONTAINER_ID
from broker.protocols.amqp.termini import symbols, value_of
from broker.protocols.amqp.transactions import ACCEPTED_CODE, TRANSACTIONAL, transaction_id
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage
from journal.errors import JournalError, RecordTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from proton import Receiver

    from broker.model.routing_type import RoutingType
    from broker.protocols.amqp.deliveries import EngineDelivery
    from broker.protocols.amqp.large_sends import LargeSends
    from broker.protocols.amqp.links import LinkConnection
    from broker.protocols.amqp.nodes import Nodes
    from broker.protocols.amqp.transactions import OpenTransaction
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session
    from broker.sessions.uploads import Uploads

__all__ = ["IncomingLink"]

# Bytes of a message that is kept in memory while it comes.
MESSAGE_SIZE_MAX: Final = 128 * 1024 * 1024
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_REJECTED: Final = "amqp:rejected:list"
_MODIFIED: Final = "amqp:modified:list"


class IncomingLink(OurLink):
    """See the module's text.

    Args:
        connection: it is on.
        session: sends what comes.
        link: of the engine.
        nodes: of the session.
        address: where all messages go, as the peer says it; None leaves it to each message.
        routing_type: of all messages; None leaves it to each.
        producer: counts them.
        large: of the session, for what is too large for a record.
    """

    def __init__(
        self,
        connection: LinkConnection,
        session: Session,
        link: Receiver,
        nodes: Nodes,
        address: str | None,
        routing_type: RoutingType | None,
        producer: Producer,
        large: LargeSends,
    ) -> None:
        super().__init__(connection, session)
        self._link = link
        self._nodes = nodes
        self._address = address
        self._routing_type = routing_type
        self._producer = producer
        self._large = large
        parameters = connection.parameters
        self._credits: int = parameters["amqpCredits"]
        self._low_credits: int = min(parameters["amqpLowCredits"], self._credits - 1)
        self._detects_duplicates: bool = parameters["amqpDuplicateDetection"]
        # What has come of a message, and its size.
        self._parts: list[bytes] = []
        self._size = 0
        # One that is written while it comes, and all that were not sent yet.
        self._arrival: LargeArrival | None = None
        self._arrivals: list[LargeArrival] = []
        self._large_size: int = parameters["amqpMinLargeMessageSize"]
        # The size at which a message is looked at, whether its body has begun.
        self._look_size = self._large_size
        # Not settled by us yet.
        self._open_count = 0
        self._settles_second = link.rcv_settle_mode == Link.RCV_SECOND
        self._is_asking = False
        self._is_draining = False
        self._drain_count = 0
        self._was_refused = False
        source = link.remote_source
        self._outcomes = symbols(value_of(source.outcomes))

    # --- credit -------------------------------------------------------------------------------

    def top_up(self) -> None:
        """Give credit where little is left, once the address has room."""
        if self.is_closed or self._is_asking or self._is_draining:
            return
        if self._link.credit > self._low_credits - self._open_count:
            return
        if self._address is None:
            self._granted(False)
            return
        self._is_asking = True
        self.session.request_credits(split_fqqn(self._address)[0], self._granted)

    def _granted(self, is_failing: bool) -> None:
        self._is_asking = False
        # A full address that fails: it is asked again from time to time.
        self._was_refused = is_failing
        if self.is_closed or is_failing or self._is_draining:
            return
        missing = self._credits - self._link.credit - self._open_count
        if missing > 0:
            self._link.flow(missing)
            self._connection.flush_later()

    def check(self) -> None:
        """From time to time: ask again for credit that was refused."""
        if self._was_refused:
            self._was_refused = False
            self.top_up()

    def flow(self) -> None:
        """The peer says what it has."""
        link = self._link
        if self._is_draining and link.credit <= 0 and link.queued == 0:
            self._end_drain()
        self.top_up()

    def _drain(self) -> None:
        """Take back what credit is left: the address is full."""
        if self._is_draining or self._link.credit <= 0:
            return
        if not self._connection.parameters["amqpDrainOnTransientDeliveryErrors"]:
            return
        self._is_draining = True
        self._drain_count += 1
        self._link.drain(0)
        timeout_ms = self._connection.parameters["amqpLinkQuiesceTimeout"]
        if timeout_ms:
            not_drained = partial(self._not_drained, self._drain_count)
            self._connection.call_later(timeout_ms / 1000, not_drained)

    def _end_drain(self) -> None:
        self._is_draining = False
        self._link.drained()
        self._link.drain_mode = False

    def _not_drained(self, drain: int) -> None:
        if self._is_draining and drain == self._drain_count and not self.is_closed:
            self._connection.end_link(
                self._link,
                AmqpError(DETACH_FORCED, "Timed out waiting for remote sender to drain"),
            )

    # --- transfers ----------------------------------------------------------------------------

    def updated(self, delivery: EngineDelivery) -> None:
        """Take what has come of a message.

        Raises:
            AmqpError: it is larger than what is kept.
        """
        link = self._link
        if delivery.aborted:
            self._begin_next()
            self._drop_arrival()
            delivery.settle()
            self.top_up()
            return
        if not delivery.readable:
            if self._settles_second and delivery.settled and delivery.local_state:
                self._end(delivery)
                self.top_up()
            return
        pending = delivery.pending
        if pending:
            part = link.recv(pending)
            if part is not None:
                self._take(bytes(part))
        if delivery.partial:
            return
        arrival, self._arrival = self._arrival, None
        parts = self._begin_next()
        encoded = parts[0] if len(parts) == 1 else b"".join(parts)
        link.advance()
        self._open_count += 1
        if arrival is not None:
            taken = partial(self._arrived, delivery, arrival)
        else:
            taken = partial(self._taken, delivery, encoded)
        if self._large.is_busy:
            self._large.after(taken)
        else:
            taken()

    def _begin_next(self) -> list[bytes]:
        """What comes next is another message; what is in memory of the last one."""
        parts, self._parts, self._size = self._parts, [], 0
        self._look_size = self._large_size
        return parts

    def _take(self, part: bytes) -> None:
        """Take what comes next of a message.

        Raises:
            AmqpError: it is larger than what is kept in memory.
        """
        if self._arrival is not None:
            self._arrival.append(part)
            return
        self._parts.append(part)
        self._size += len(part)
        if 0 < self._look_size <= self._size and self.session.keeps_large_messages:
            self._look()
        if self._size > MESSAGE_SIZE_MAX:
            raise AmqpError(
                "amqp:link:message-size-exceeded", f"a message of more than {self._size} bytes"
            )

    def _look(self) -> None:
        """Write a message to a place of its own from now on, if its body has begun."""
        start = b"".join(self._parts)
        try:
            message = LargeAmqpMessage.received(
                start, self._address, self._connection.clock.now_ms(), self._routing_type
            )
        except RecordFormatError:
            # Not whole before the body, or no message at all: that is seen at its end.
            message = None
        if message is None:
            self._look_size = 2 * self._size
            return
        self._begin_next()
        self._arrival = arrival = LargeArrival(self._connection.peer, self.session, message)
        self._arrivals.append(arrival)
        arrival.append(start)

    def _arrived(self, delivery: EngineDelivery, arrival: LargeArrival) -> None:
        """Send a large message that has come, or answer why not."""
        if self.is_closed:
            return
        tx = None
        try:
            tx = self._transaction_of(delivery)
            self._prepare(arrival.message)
        except (AmqpError, BrokerError) as error:
            self._not_taken(delivery, error, tx, arrival)
            return
        self._large.complete(
            arrival,
            lambda: self._attempt(delivery, tx, lambda: self._end_arrival(delivery, tx, arrival)),
            lambda error: self._not_taken(delivery, error, tx, arrival),
        )

    def _end_arrival(
        self, delivery: EngineDelivery, tx: OpenTransaction | None, arrival: LargeArrival
    ) -> int:
        self._arrivals.remove(arrival)
        self._end_upload(delivery, tx, arrival.uploads, -1)
        return arrival.size

    def _not_taken(
        self,
        delivery: EngineDelivery,
        error: Exception,
        tx: OpenTransaction | None,
        arrival: LargeArrival,
    ) -> None:
        if self.is_closed:
            return
        self._arrivals.remove(arrival)
        arrival.drop()
        self._refuse(delivery, error, tx)
        self.top_up()

    def _drop_arrival(self) -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is not None:
            self._arrivals.remove(arrival)
            arrival.drop()

    def _transaction_of(self, delivery: EngineDelivery) -> OpenTransaction | None:
        """Give the transaction that a message is sent in; None outside of one.

        Raises:
            AmqpError: it is unknown.
        """
        if delivery.remote_state != TRANSACTIONAL:
            return None
        return self._connection.transactions.find(transaction_id(delivery))

    def _taken(self, delivery: EngineDelivery, encoded: bytes) -> None:
        """Send a message, or answer why not."""
        if self.is_closed:
            return
        tx = None
        try:
            tx = self._transaction_of(delivery)
            message = AmqpMessage.received(
                encoded, self._address, self._connection.clock.now_ms(), self._routing_type
            )
            self._prepare(message)
            try:
                self._send(delivery, message, tx)
            except RecordTooLarge:
                size = len(message.body)
                uploads = self.session.uploads
                self._large.send(
                    message,
                    lambda: self._attempt(
                        delivery, tx, lambda: self._end_upload(delivery, tx, uploads, size)
                    ),
                    lambda error: self._refuse(delivery, error, tx),
                )
                return
        except RecordFormatError as error:
            self._refuse(delivery, AmqpError(DECODE_ERROR, str(error)), tx)
        except (AmqpError, BrokerError, JournalError) as error:
            self._refuse(delivery, error, tx)
        else:
            self._counted(delivery, len(encoded), tx)
        self.top_up()

    def _attempt(
        self, delivery: EngineDelivery, tx: OpenTransaction | None, step: Callable[[], int]
    ) -> None:
        try:
            size = step()
        except (BrokerError, JournalError) as error:
            self._refuse(delivery, error, tx)
        else:
            self._counted(delivery, size, tx)
        self.top_up()

    def _send(
        self, delivery: EngineDelivery, message: AmqpMessage, tx: OpenTransaction | None
    ) -> None:
        session = self.session
        if tx is None:
            session.send(message, self._accepted, delivery)
            return
        with session.transactions.within(tx.transaction):
            session.send(message, _nothing)

    def _end_upload(
        self, delivery: EngineDelivery, tx: OpenTransaction | None, uploads: Uploads, size: int
    ) -> int:
        """Send a large message whose body is written."""
        if tx is None:
            uploads.end(size, self._accepted, delivery)
        else:
            with self.session.transactions.within(tx.transaction):
                uploads.end(size, _nothing)
        return size

    def _counted(self, delivery: EngineDelivery, size: int, tx: OpenTransaction | None) -> None:
        producer = self._producer
        producer.sent_count += 1
        producer.sent_bytes += size
        if tx is not None:
            # It waits for its transaction; that it was taken needs not be durable.
            delivery.local.data = [tx.id, Described(ulong(ACCEPTED_CODE), [])]
            self._settle(delivery, TRANSACTIONAL)

    def _prepare(self, message: AmqpMessage | LargeAmqpMessage) -> None:
        address = self._address
        if address is None:
            address = message.address
            if not address:
                raise AmqpError(
                    "failed", "Missing 'to' field for message sent to an anonymous producer"
                )
            if message.routing_type is None:
                wanted = self._nodes.type_for(address)
                if wanted is not None:
                    message.note("_AMQ_ROUTING_TYPE", PropertyType.BYTE, int(wanted))
        if self.session.flow_control.is_rejecting(self._nodes.without_prefix(address)):
            raise BrokerError(ErrorCode.ADDRESS_FULL, f"Address is full: {address}")
        if self._connection.leaves_out_local:
            message.note(CONTAINER_ID, PropertyType.STRING, self._connection.container_id)
        if not self._detects_duplicates and message.get(_DUPLICATE_ID) is not None:
            message.forget(_DUPLICATE_ID)

    def _accepted(self, error: Exception | None, delivery: EngineDelivery) -> None:
        if error is not None or self.is_closed:
            # The storage has failed: the broker ends, and the peer does not know.
            return
        self._settle(delivery, Delivery.ACCEPTED)
        self.top_up()

    def _settle(self, delivery: EngineDelivery, state: int) -> None:
        if not delivery.settled:
            delivery.update(state)
            if self._settles_second:
                # The peer does it first: updated().
                self._connection.flush_later()
                return
        self._end(delivery)

    def _end(self, delivery: EngineDelivery) -> None:
        """Nothing more is said of a message by either side."""
        self._open_count -= 1
        delivery.settle()
        self._connection.flush_later()

    def _refuse(
        self, delivery: EngineDelivery, error: Exception, tx: OpenTransaction | None
    ) -> None:
        """Answer a message that is not taken, as far as the peer wants an answer."""
        if tx is not None:
            tx.fail(error)
        refusal = of_delivery(error)
        is_full = isinstance(error, BrokerError) and error.code is ErrorCode.ADDRESS_FULL
        uses_modified = self._connection.parameters["amqpUseModifiedForTransientDeliveryErrors"]
        outcomes = self._outcomes
        if is_full and uses_modified and _MODIFIED in outcomes:
            delivery.local.failed = True
            self._settle(delivery, Delivery.MODIFIED)
        else:
            delivery.local.condition = Condition(refusal.condition, refusal.text)
            self._settle(delivery, Delivery.REJECTED)
        if is_full:
            self._drain()

    def close(self) -> None:
        """The link, its session or the connection ends."""
        super().close()
        self._parts.clear()
        self._arrival = None
        arrivals, self._arrivals = self._arrivals, []
        for arrival in arrivals:
            arrival.drop()


def _nothing(error: Exception | None) -> None:
    """Who waits is told by the transaction's end."""
