"""What one client works with: its sessions, producers, consumers and transactions, by their ids.

A command says again what is there after a failover of its client; then it is without effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.protocols.openwire import commands as c
from broker.protocols.openwire.acknowledgements import acknowledge
from broker.protocols.openwire.advisories import (
    AdvisoryConsumer,
    AdvisorySource,
    wants_advisories,
)
from broker.protocols.openwire.consumer_work import ConsumerWork
from broker.protocols.openwire.consumers import durable_queue
from broker.protocols.openwire.destinations import Destinations, is_temporary, parts_of
from broker.protocols.openwire.errors import ILLEGAL_STATE, OpenWireError
from broker.protocols.openwire.identifiers import (
    ConsumerId,
    LocalTransactionId,
    ProducerId,
    SessionId,
    XATransactionId,
)
from broker.protocols.openwire.sends import Sends
from broker.protocols.openwire.transactions import Transactions
from broker.sessions.session import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.notifications import Origin
    from broker.protocols.openwire.advisories import Advisories
    from broker.protocols.openwire.fields import DataType
    from broker.protocols.peer import Sessions
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["ClientWork", "WorkingConnection"]

# The session of what a client consumes for itself: its ConnectionInfo has made it.
_OWN_SESSION: Final = -1
# Of one connection.
_SESSIONS_MAX: Final = 10_000
_PRODUCERS_MAX: Final = 100_000
# TransactionInfo.
BEGIN: Final = 0
PREPARE: Final = 1
COMMIT_ONE_PHASE: Final = 2
COMMIT_TWO_PHASE: Final = 3
ROLLBACK: Final = 4
RECOVER: Final = 5
FORGET: Final = 6
END: Final = 7
# Of a message whose window is acknowledged: what Artemis counts beside its content.
_MESSAGE_OVERHEAD: Final = 1024


class WorkingProtocol(Protocol):
    """What this needs of all connections."""

    advisories: Advisories


class WorkingConnection(Protocol):
    """What this needs of its connection."""

    sessions: Sessions
    parameters: Mapping[str, Any]
    client_id: str | None
    user: str | None
    remote: str
    name: str
    is_fault_tolerant: bool

    @property
    def protocol(self) -> WorkingProtocol:
        """All connections."""

    @property
    def origin(self) -> Origin:
        """What sessions know of it."""

    @property
    def is_writable(self) -> bool:
        """Whether the socket takes what is written."""

    def send(self, command: DataType) -> None:
        """Write a command."""

    def answer(self, command: c.Command, session: Session | None) -> None:
        """Answer a command once what a session did is durable."""

    def respond(self, error: Exception | None, response: c.Response) -> None:
        """Write an answer."""

    def attempt(self, command: c.Command, step: Callable[[], object]) -> None:
        """Do a step of a command, or refuse it."""

    def hold(self, then: Callable[[], object]) -> None:
        """Look at no frame until resume()."""

    def resume(self) -> None:
        """Go on."""

    def waits(self, message: c.ActiveMQMessage, *, is_waiting: bool) -> None:
        """A message waits for room, or does no longer."""

    def connection_error(self, text: str) -> None:
        """Tell the client, and end the connection."""

    def abort(self) -> None:
        """End the connection at once."""


class ClientWork:
    """See the module's text.

    Args:
        connection: of the client.
        info: that it has logged in by.

    Attributes:
        session: of the connection, for what belongs to none of the client's.
        source: what advisories say of the connection.
        client_id: of the client.
        is_fault_tolerant: it comes back, and sends again what was not answered.

    Raises:
        BrokerError: the broker takes no session now.
    """

    __slots__ = (
        "_advised",
        "_connection",
        "_consumers",
        "_destinations",
        "_info",
        "_producers",
        "_sends",
        "_sessions",
        "_temporary",
        "_temporary_destinations",
        "_transactions",
        "client_id",
        "is_fault_tolerant",
        "session",
        "source",
    )

    def __init__(self, connection: WorkingConnection, info: c.ConnectionInfo) -> None:
        self._connection = connection
        self.client_id = connection.client_id
        self.is_fault_tolerant = connection.is_fault_tolerant
        self._info = info
        self.source = AdvisorySource(
            str(info.connection_id),
            connection.sessions.node_id,
            connection.name,
            f"tcp://{connection.origin.local}",
        )
        self._temporary: set[str] = set()
        self._temporary_destinations: dict[c.ActiveMQDestination, c.DestinationInfo] = {}
        self.session = self._new_session(str(info.connection_id))
        self._sessions: dict[int, Session] = {_OWN_SESSION: self.session}
        self._producers: dict[ProducerId, c.ProducerInfo] = {}
        self._advised: dict[ConsumerId, AdvisoryConsumer] = {}
        self._destinations = Destinations(self.session.administration, self.session.wildcards)
        self._transactions = Transactions(self.session)
        parameters = connection.parameters
        self._consumers = ConsumerWork(
            connection, self._destinations, self._transactions, parameters
        )
        sessions = connection.sessions
        self._sends = Sends(
            self,
            self._transactions,
            self._destinations,
            clock=sessions.clock,
            new_producer=sessions.new_producer,
            sets_duplicate_id=parameters["openwireUseDuplicateDetectionOnFailover"],
        )
        self.session.start()

    def _new_session(self, name: str) -> Session:
        connection = self._connection
        return connection.sessions.create_session(
            name, connection.user, SessionOptions(), self._temporary, connection.origin
        )

    def _session(self, number: int, what: str, id: object) -> Session:
        found = self._sessions.get(number)
        if found is None:
            raise OpenWireError(
                f"Cannot {what} to a session that had not been registered: {id}", ILLEGAL_STATE
            )
        return found

    def take(self, command: c.Command) -> bool:
        """Do what a command asks for; whether it is answered by itself.

        Raises:
            OpenWireError: it is refused.
            BrokerError: likewise.
            XaError: likewise.
            JournalError: the storage has failed.
        """
        work = _COMMANDS.get(type(command))
        if work is not None:
            work(self, command)
            return True
        if isinstance(command, c.ActiveMQMessage):
            self._send(command)
            return True
        # What a broker says, or a client says to one that is none of ours, is without effect.
        return False

    def hold(self, then: Callable[[], object]) -> None:
        """Look at no frame until resume(), which begins by calling `then()`."""
        self._connection.hold(then)

    def resume(self) -> None:
        """Go on with the frame that was held."""
        self._connection.resume()

    def attempt(self, command: c.Command, step: Callable[[], object]) -> None:
        """Do a step of a command, or refuse it."""
        self._connection.attempt(command, step)

    def waits(self, message: c.ActiveMQMessage, *, is_waiting: bool) -> None:
        """A message waits for room, or does no longer."""
        self._connection.waits(message, is_waiting=is_waiting)

    def sent(self, message: c.ActiveMQMessage, session: Session, size: int) -> None:
        """Answer a message once it is durable."""
        connection = self._connection
        if message.response_required:
            connection.answer(message, session)
            return
        producer = None if message.producer_id is None else self._producers.get(message.producer_id)
        if producer is not None and producer.window_size > 0:
            size = _MESSAGE_OVERHEAD + len(message.content or b"")
            size += len(message.marshalled_properties or b"")
            ack = c.ProducerAck(producer_id=message.producer_id, size=size)
            session.context.after(self._acknowledge, ack)

    def _acknowledge(self, error: Exception | None, ack: c.ProducerAck) -> None:
        if error is None:
            self._connection.send(ack)

    # --- sessions, producers, consumers -------------------------------------------------------

    def _add_session(self, command: c.SessionInfo) -> None:
        id = command.session_id
        if id is None:
            raise OpenWireError("a session without an id")
        if id.value not in self._sessions:
            if len(self._sessions) >= _SESSIONS_MAX:
                raise OpenWireError(f"a connection may have {_SESSIONS_MAX} sessions")
            made = self._sessions[id.value] = self._new_session(str(id))
            made.start()
        self._connection.answer(command, None)

    def _add_producer(self, command: c.ProducerInfo) -> None:
        id = command.producer_id
        if id is None:
            raise OpenWireError("a producer without an id")
        session = self._session(id.session_id, "add a producer", id)
        if id not in self._producers:
            if len(self._producers) >= _PRODUCERS_MAX:
                raise OpenWireError(f"a connection may have {_PRODUCERS_MAX} producers")
            if command.destination is not None:
                for one in parts_of(command.destination):
                    target = self._destinations.target(one)
                    if not is_temporary(one):
                        # Whether the user may send there.
                        session.create_sender(target.name, target.routing_type)
                    if self._destinations.prepare(one, target):
                        self._tell(one, is_made=True)
            self._producers[id] = command
        self._connection.answer(command, session)

    def _add_consumer(self, command: c.ConsumerInfo) -> None:
        id = command.consumer_id
        if id is None or command.destination is None:
            raise OpenWireError("a consumer without an id or a destination")
        session = self._session(id.session_id, "add a consumer", id)
        if wants_advisories(command):
            self._connection.answer(command, None)
            if id not in self._advised:
                made = self._advised[id] = AdvisoryConsumer(command, self._connection)
                if self._connection.parameters["supportAdvisory"]:
                    self._connection.protocol.advisories.add(made)
            return
        self._consumers.add(command, session)

    def _remove(self, command: c.RemoveInfo) -> None:
        id = command.object_id
        session: Session | None = None
        if isinstance(id, ConsumerId):
            advised = self._advised.pop(id, None)
            if advised is not None:
                self._stop_advising([advised])
            else:
                session = self._consumers.remove(id, command.last_delivered_sequence_id)
        elif isinstance(id, ProducerId):
            if self._producers.pop(id, None) is not None:
                session = self._sessions.get(id.session_id)
        elif isinstance(id, SessionId):
            session = self._remove_session(id, command.last_delivered_sequence_id)
        self._connection.answer(command, session)

    def _remove_session(self, id: SessionId, last_delivered: int) -> Session | None:
        if id.value == _OWN_SESSION:
            return None
        session = self._sessions.pop(id.value, None)
        if session is None:
            return None
        self._consumers.remove_of(session, last_delivered)
        for producer_id in [one for one in self._producers if one.session_id == id.value]:
            del self._producers[producer_id]
        self._connection.sessions.close_session(session, has_failed=False)
        return session

    def _stop_advising(self, consumers: list[AdvisoryConsumer]) -> None:
        if self._connection.parameters["supportAdvisory"]:
            self._connection.protocol.advisories.remove(consumers)

    # --- messages -----------------------------------------------------------------------------

    def _send(self, message: c.ActiveMQMessage) -> None:
        id = message.producer_id
        if id is None:
            raise OpenWireError("a message without a producer")
        session = self._session(id.session_id, "send", id)
        producer = self._producers.get(id)
        has_window = producer is not None and producer.window_size > 0
        self._sends.send(message, session, has_window=has_window)

    def _acknowledged(self, ack: c.MessageAck) -> None:
        id = ack.consumer_id
        advised = None if id is None else self._advised.get(id)
        if advised is not None:
            advised.acknowledged(ack)
            self._connection.answer(ack, None)
            return
        consumer = None if id is None else self._consumers.get(id)
        if consumer is None:
            # It has ended: what it had not acknowledged is with its queue again.
            self._connection.answer(ack, None)
            return
        acknowledge(ack, consumer, self._transactions)
        self._consumers.went_on(consumer)
        self._connection.answer(ack, consumer.session)

    def _pull(self, pull: c.MessagePull) -> None:
        self._consumers.pull(pull)
        self._connection.answer(pull, None)

    def _control(self, command: c.ConsumerControl) -> None:
        consumer = None if command.consumer_id is None else self._consumers.get(command.consumer_id)
        if consumer is not None and not command.close:
            consumer.reset(command.prefetch)
        self._connection.answer(command, None)

    # --- transactions -------------------------------------------------------------------------

    def _transaction(self, command: c.TransactionInfo) -> None:
        id, kind = command.transaction_id, command.type
        transactions, number = self._transactions, command.command_id
        respond = self._connection.respond
        done = c.Response(correlation_id=number)
        if kind == RECOVER:
            found: list[DataType | None] = [*transactions.in_doubt()]
            respond(None, c.DataArrayResponse(correlation_id=number, data=found))
            return
        if id is None:
            raise OpenWireError("a transaction without an id")
        if kind == BEGIN:
            transactions.begin(id)
            self._connection.answer(command, None)
        elif kind == END:
            self._connection.answer(command, None)
        elif kind == PREPARE and isinstance(id, XATransactionId):
            transactions.prepare(id, self._ended, command, c.IntegerResponse(correlation_id=number))
        elif kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE):
            transactions.commit(id, kind == COMMIT_ONE_PHASE, self._ended, command, done)
        elif kind == ROLLBACK:
            transactions.rollback(id, self._ended, command, done)
        elif kind == FORGET and isinstance(id, XATransactionId):
            transactions.forget(id, self._ended, command, done)
        else:
            what = "local" if isinstance(id, LocalTransactionId) else "XA"
            raise OpenWireError(f"a {what} transaction has no operation {kind}")

    def _ended(
        self, error: Exception | None, command: c.TransactionInfo, response: c.Response
    ) -> None:
        if command.response_required:
            self._connection.respond(error, response)

    # --- destinations -------------------------------------------------------------------------

    def _destination(self, command: c.DestinationInfo) -> None:
        destination = command.destination
        if destination is None:
            raise OpenWireError("a DestinationInfo without a destination")
        for one in parts_of(destination):
            target = self._destinations.target(one)
            if command.operation_type == 0:
                if self._destinations.prepare(one, target):
                    self._tell(one, is_made=True)
            elif self._destinations.remove(one, target):
                self._tell(one, is_made=False)
        self._connection.answer(command, self.session)

    def _tell(self, destination: c.ActiveMQDestination, *, is_made: bool) -> None:
        info = c.DestinationInfo(
            connection_id=self._info.connection_id,
            destination=destination,
            operation_type=0 if is_made else 1,
        )
        if is_temporary(destination):
            if is_made:
                self._temporary_destinations[destination] = info
            else:
                self._temporary_destinations.pop(destination, None)
        if self._connection.parameters["supportAdvisory"]:
            self._connection.protocol.advisories.destination(info, self.source)

    def slow(self, consumer: Consumer) -> None:
        """Tell of a consumer that is slow, if it is one of these."""
        part = self._consumers.part_of(consumer)
        if part is not None and self._connection.parameters["supportAdvisory"]:
            advisories = self._connection.protocol.advisories
            advisories.slow(part.owner.info, part.destination, self.source)

    def _remove_subscription(self, command: c.RemoveSubscriptionInfo) -> None:
        name = command.subscription_name
        queue = durable_queue(command.client_id or self.client_id, name or "")
        administration = self.session.administration
        if name is None or administration.query_queue(queue).queue is None:
            raise OpenWireError(
                f"No durable subscription exists for clientID: {command.client_id} and "
                f"subscriptionName: {name}",
                "javax.jms.InvalidDestinationException",
            )
        administration.delete_queue(queue)
        self._connection.answer(command, self.session)

    # --- the connection -----------------------------------------------------------------------

    def pause(self) -> None:
        """The peer does not read."""
        self._consumers.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        self._consumers.go_on()

    def close(self, *, has_failed: bool, last_delivered: int | None) -> None:
        """End all of it.

        Args:
            has_failed: the connection broke: the client may have seen what it was given.
            last_delivered: number of the last message that it has seen; None is not known.
        """
        self._stop_advising(list(self._advised.values()))
        self._advised.clear()
        self._transactions.close()
        sessions, self._sessions = self._sessions, {_OWN_SESSION: self.session}
        if not has_failed and last_delivered is not None:
            for session in sessions.values():
                self._consumers.remove_of(session, last_delivered)
        self._consumers.close()
        for session in sessions.values():
            self._connection.sessions.close_session(session, has_failed=has_failed)
        temporary, self._temporary = self._temporary, set()
        self._connection.sessions.delete_temporary(temporary)
        for info in list(self._temporary_destinations.values()):
            assert info.destination is not None, "it was made"
            self._tell(info.destination, is_made=False)


_COMMANDS: Final[dict[type[c.Command], Callable[[ClientWork, Any], None]]] = {
    c.SessionInfo: ClientWork._add_session,
    c.ProducerInfo: ClientWork._add_producer,
    c.ConsumerInfo: ClientWork._add_consumer,
    c.RemoveInfo: ClientWork._remove,
    c.MessageAck: ClientWork._acknowledged,
    c.MessagePull: ClientWork._pull,
    c.ConsumerControl: ClientWork._control,
    c.TransactionInfo: ClientWork._transaction,
    c.DestinationInfo: ClientWork._destination,
    c.RemoveSubscriptionInfo: ClientWork._remove_subscription,
}
