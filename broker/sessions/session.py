"""One client's work with the broker: the one API that protocols use.

    protocol ─▶ Session ─▶ post office, queues, transactions
                   └─▶ context.after ─▶ done(error, *arguments)     once what was done is durable

Every request that records something takes `done`; it is called in the order of the requests, with
None, or with what ended the storage. What is refused is raised at once as BrokerError, and nothing
happened then.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.notifications import IN_PROCESS, NotificationType, NotifyingSink
from broker.queues.consumer import Consumer
from broker.routing.postoffice import Routing
from broker.sessions.client_administration import ClientAdministration
from broker.sessions.explicit_transactions import ExplicitTransactions
from broker.sessions.own_queues import OwnQueues
from broker.sessions.permissions import Permissions
from broker.sessions.sender import Sender
from broker.sessions.sending import Sending
from broker.sessions.session_options import SessionOptions
from broker.sessions.session_transaction import SessionTransaction
from broker.sessions.settlement import Settlement
from broker.sessions.uploads import Uploads
from broker.sessions.xa_resource import XaResource
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.notifications import Notifications, Origin
    from broker.ports import Management, Security, Settings
    from broker.queues.consumer_ports import Sink
    from broker.queues.filter import Filter
    from broker.queues.flow_control import FlowControl
    from broker.routing.administration import Administration
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.postoffice import PostOffice
    from broker.sessions.producer import Producer
    from broker.sessions.resource_limits import ResourceLimits
    from broker.sessions.send_marks import SendMarks
    from broker.storage.context import After
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["Session", "SessionOptions"]


class Session:
    """See the module's text.

    Args:
        name: the client's; unique in the broker.
        user: who was authenticated; None is anonymous.
        options: how the client wants it.
        temporary: names of the connection's temporary queues, which its end deletes.
        origin: the connection; another one when the session is taken up there.
        postoffice: where messages go.
        administration: makes queues and addresses.
        dead_letters: takes what a client found expired.
        transactions: where the session's begin, and those of a manager are found.
        flow_control: what producers may send when something is full.
        marks: what is written into messages.
        resource_limits: what one user may have.
        security: who may do what.
        management: answers messages to the management address; None without one.
        notifications: who tells of what happens.
        storage: where records go.
        large: bodies of large messages; None without storage for them.
        history: of the message journal; None where none is kept.
        clock_ms: wall clock, ms since 1970.
        settings: of addresses.
        parse_filter: a selector's text to a Filter; raises BrokerError 103.

    Attributes:
        consumers: by the protocol's number.
        metadata: what the client says of itself.
        producers: by the protocol's number, or by address where the protocol has none.
        created_ms: when, ms since 1970.
        is_started: consumers are delivered to.
        sends_alone: each message counts by itself, for now.
        acknowledges_alone: each acknowledgement does.
        settlement: how single messages are accepted, released, modified, rejected and expired.
        transactions: of a session whose requests count alone otherwise.
        flow_control: as given; it knows no prefixes.
        context: what callers wait by.
        wildcards: how names with wildcards are written.
    """

    def __init__(
        self,
        name: str,
        user: str | None,
        options: SessionOptions,
        temporary: set[str],
        origin: Origin = IN_PROCESS,
        *,
        postoffice: PostOffice,
        administration: Administration,
        dead_letters: DeadLetters,
        transactions: XaTransactions,
        flow_control: FlowControl,
        marks: SendMarks,
        resource_limits: ResourceLimits,
        security: Security,
        management: Management | None,
        notifications: Notifications,
        storage: StorageManager,
        large: LargeBodies | None,
        history: MessageHistory | None,
        clock_ms: Callable[[], int],
        settings: Settings,
        parse_filter: Callable[[str], Filter | None],
    ) -> None:
        self._postoffice = postoffice
        self._addresses = postoffice.addresses
        self.wildcards = postoffice.addresses.wildcards
        self._queue_administration = administration
        self._dead_letters = dead_letters
        self._xa_transactions = transactions
        self.flow_control = flow_control
        self._resource_limits = resource_limits
        self._permissions = Permissions(user, security, notifications)
        self._management = management
        self._notifications = notifications
        self._storage = storage
        self._large = large
        self._history = history
        self._settings = settings
        self._parse_filter = parse_filter
        self.sends_alone = options.auto_commit_sends
        self.acknowledges_alone = options.auto_commit_acks
        self._prefixes = options.prefixes
        self.name = name
        self.user = user
        self.options = options
        self.temporary = temporary
        self.origin = origin
        self.created_ms = clock_ms()
        self.context = storage.new_context()
        self.consumers: dict[int, Consumer] = {}
        self.metadata: dict[str, str] = {}
        self.producers: dict[int | str | None, Producer] = {}
        self.is_started = False
        self.is_closed = False
        self.settlement = Settlement(self, dead_letters)
        self._uploads: Uploads | None = None
        self._xa: XaResource | None = None
        self._administration: ClientAdministration | None = None
        self._sending = Sending(
            user,
            options,
            self.context,
            self._permissions,
            postoffice=postoffice,
            administration=administration,
            flow_control=flow_control,
            marks=marks,
            management=management,
            clock_ms=clock_ms,
            settings=settings,
        )
        self._transaction = SessionTransaction(transactions, self.context, self.consumers, options)
        self.transactions = ExplicitTransactions(self, self._transaction, transactions)

    @property
    def uploads(self) -> Uploads:
        """Large messages whose bodies come in parts."""
        if self._uploads is None:
            self._uploads = self.new_uploads()
        return self._uploads

    def new_uploads(self) -> Uploads:
        """Make one more place for a large message that comes beside others; its owner drops it."""
        return Uploads(self, self._storage, self._large, self._history, self._dead_letters)

    @property
    def keeps_large_messages(self) -> bool:
        """Whether there is a place for bodies of large messages."""
        return self._large is not None

    @property
    def administration(self) -> ClientAdministration:
        """Queues and addresses that the client makes, removes and asks about."""
        if self._administration is None:
            self._administration = ClientAdministration(
                self,
                self._permissions,
                self._postoffice,
                self._queue_administration,
                self._resource_limits,
                self._settings,
                self._management,
            )
        return self._administration

    @property
    def own_queues(self) -> OwnQueues:
        """Queues of the protocol, for which no permission of the user counts."""
        return OwnQueues(self, self._postoffice, self._queue_administration)

    @property
    def xa(self) -> XaResource:
        """Branches of transactions that a manager names."""
        if self._xa is None:
            self._xa = XaResource(self._transaction, self._xa_transactions)
        return self._xa

    @property
    def default_address(self) -> str | None:
        """Where a message without an address goes."""
        return self._sending.default_address

    # --- sending ------------------------------------------------------------------------------

    def create_sender(self, address: str | None, routing_type: RoutingType | None = None) -> Sender:
        """Begin to send to an address, or to that of each message (None: an anonymous sender).

        The address is made if it is missing and its settings say so.

        Raises:
            BrokerError: the user may not send there, or there is no such address.
        """
        if address is not None:
            address, routing_type = self._sending.prepare(address, routing_type)
        return Sender(self, address, routing_type)

    def send(self, message: Message, done: After, *arguments: object) -> Routing:
        """Send a message; `done(error, *arguments)` once it is durable, as far as it is to be.

        Raises:
            BrokerError: it is refused; the transaction it was for can only be rolled back.
            JournalError: it is too large for the storage, or that has failed.
        """
        if not message.is_large:
            message.message_id = self.new_id()
        result = self.accept(message)
        self.context.after(done, *arguments)
        return result

    def new_id(self) -> int:
        """Give an id for a message that comes."""
        return self._storage.new_id()

    def prewarm(self, message: Message) -> None:
        """Get the storage ready for a message that comes next, whose sender waits for it."""
        if self.sends_alone and message.durable:
            self._storage.prewarm()

    def accept(self, message: Message) -> Routing:
        """Send a message that has its id; callers that wait for it ask the context.

        Raises:
            BrokerError: as for send().
            JournalError: likewise.
        """
        if self.sends_alone and not message.is_large:
            route = self._sending.routes.get(message.address)
            if route is not None:
                if not message.has_own_properties:
                    is_sent = self._postoffice.send_cached(route, message, self.context)
                else:
                    is_sent = self._postoffice.send_with_id(route, message, self.context)
                if is_sent:
                    return Routing.ROUTED
        tx = None if self.sends_alone else self._transaction.usable()
        try:
            return self._sending.send(message, tx)
        except (BrokerError, JournalError) as error:
            if tx is not None:
                tx.fail(error)
            raise
        finally:
            if message.is_large and message.references == 0:
                # No queue took it, or it was refused.
                self._postoffice.drop_body(message)

    def request_credits(self, address: str, grant: Callable[[bool], object]) -> None:
        """Call `grant(is_failing)` once one may send to an address; FAIL lets it fail if full."""
        self.flow_control.request_credits(self._prefixes.split(address)[0], grant)

    # --- consuming ----------------------------------------------------------------------------

    def create_consumer(
        self,
        consumer_id: int,
        queue_name: str,
        sink: Sink,
        *,
        filter_text: str | None = None,
        is_browser: bool = False,
        priority: int = 0,
        is_pre_settled: bool = False,
        counts_messages: bool = False,
    ) -> Consumer:
        """Begin to consume from, or look into, a queue; nothing comes before there are credits.

        Args:
            consumer_id: the protocol's number, new in the session.
            queue_name: may be qualified by its address.
            sink: where messages go.
            filter_text: a selector; None takes all.
            is_browser: looks without taking.
            priority: higher ones come first.
            is_pre_settled: messages count as acknowledged when they are handed over: the settle
                mode "settled" of AMQP; also if the session was asked for that.
            counts_messages: credits are messages; else they are bytes.

        Raises:
            BrokerError: no such queue, no permission, too many consumers, a filter that cannot be
                read, or the number is in use.
        """
        _, name = self._prefixes.split_queue(queue_name)
        queue = self._addresses.queue(name)
        permission = "browse" if is_browser else "consume"
        self._permissions.check(permission, queue.binding.address, queue.name)
        if consumer_id in self.consumers:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE, f"session {self.name} has a consumer {consumer_id}"
            )
        wanted = self._parse_filter(filter_text) if filter_text else None
        queue.check_consumer(is_browser=is_browser)
        notifications = self._notifications
        consumer = Consumer(
            consumer_id,
            queue,
            NotifyingSink(sink, notifications) if notifications.hears_deliveries else sink,
            filter=wanted,
            is_browser=is_browser,
            priority=priority,
            is_pre_acknowledging=is_pre_settled or self.options.pre_acknowledge,
            counts_messages=counts_messages,
        )
        self.consumers[consumer_id] = consumer
        queue.add_consumer(consumer)
        if not is_browser:
            notifications.consumer(NotificationType.CONSUMER_CREATED, consumer, self)
        if self.is_started:
            consumer.start()
        return consumer

    def consumer(self, consumer_id: int) -> Consumer:
        """Give a consumer.

        Raises:
            BrokerError: there is none of that number.
        """
        found = self.consumers.get(consumer_id)
        if found is None:
            raise broker_error("no_such_consumer", f"consumer {consumer_id} does not exist")
        return found

    def close_consumer(self, consumer_id: int, *, has_failed: bool = False) -> None:
        """End a consumer; what it has not acknowledged goes back.

        Raises:
            BrokerError: there is none of that number.
        """
        consumer = self.consumer(consumer_id)
        del self.consumers[consumer_id]
        self._close(consumer, has_failed=has_failed)

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed a consumer: its queue is gone."""
        if self.consumers.pop(consumer.consumer_id, None) is not None:
            self._tell_closed(consumer)

    def _tell_closed(self, consumer: Consumer) -> None:
        if not consumer.is_browser:
            self._notifications.consumer(NotificationType.CONSUMER_CLOSED, consumer, self)

    def _close(self, consumer: Consumer, *, has_failed: bool) -> None:
        consumer.close(has_failed=has_failed)
        self._tell_closed(consumer)
        self._addresses.auto_delete(consumer.queue.name)
        self.context.note()

    def start(self) -> None:
        """Deliver from now on."""
        self.is_started = True
        for consumer in list(self.consumers.values()):
            consumer.start()

    def stop(self) -> None:
        """Deliver nothing until start()."""
        self.is_started = False
        for consumer in self.consumers.values():
            consumer.stop()

    def fail_send(self, error: BrokerError | JournalError) -> None:
        """A message did not come whole: a transaction that it was for can only be rolled back.

        Args:
            error: why; who commits is told of it.

        Raises:
            BrokerError: that has ended, or is prepared.
        """
        tx = None if self.sends_alone else self._transaction.usable()
        if tx is not None:
            tx.fail(error)

    def acknowledge(
        self,
        consumer_id: int,
        message_id: int,
        done: After,
        *arguments: object,
        is_individual: bool = False,
    ) -> None:
        """Acknowledge all up to a message, or it alone; `done(error, *arguments)` once durable.

        Raises:
            BrokerError: it was not delivered, or has been acknowledged; a transaction it was for
                can only be rolled back.
        """
        self.accept_acknowledgement(consumer_id, message_id, is_individual)
        self.context.then(done, arguments)

    def accept_acknowledgement(
        self, consumer_id: int, message_id: int, is_individual: bool
    ) -> None:
        """The same; callers that wait for it ask the context.

        Raises:
            BrokerError: as for acknowledge().
        """
        tx = None if self.acknowledges_alone else self._transaction.usable()
        try:
            consumer = self.consumer(consumer_id)
            if is_individual:
                consumer.acknowledge_one(tx, message_id)
            else:
                consumer.acknowledge(tx, message_id)
        except (BrokerError, JournalError) as error:
            if tx is not None:
                tx.fail(error)
            raise
        self.context.note()

    # --- local transactions -------------------------------------------------------------------

    @property
    def tx(self) -> Transaction | None:
        """The current transaction."""
        return self._transaction.tx

    def commit(self, done: After, *arguments: object) -> None:
        """Let all since the last commit count; `done(error, *arguments)` once that is durable.

        Raises:
            BrokerError: something of it was refused: it is rolled back. Or it is a manager's.
        """
        self._transaction.commit(done, *arguments)

    def rollback(
        self, done: After, *arguments: object, considers_last_delivered: bool = False
    ) -> None:
        """Let nothing since the last commit count, and deliver again what was delivered.

        Raises:
            BrokerError: the transaction is a manager's.
        """
        self._transaction.rollback(
            done, *arguments, considers_last_delivered=considers_last_delivered
        )

    # --- the end ------------------------------------------------------------------------------

    def close(self, *, has_failed: bool) -> None:
        """End the session: transaction rolled back, what was delivered given back. Idempotent.

        Args:
            has_failed: the connection broke: the client may have seen what it did not acknowledge.
        """
        if self.is_closed:
            return
        self.is_closed = True
        if self._uploads is not None:
            self._uploads.drop()
        self._transaction.close(has_failed=has_failed)
        for consumer in list(self.consumers.values()):
            self._close(consumer, has_failed=has_failed)
        self.consumers.clear()
        self.context.note()
