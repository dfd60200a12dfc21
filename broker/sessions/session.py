"""One client's work with the broker: the one API that protocols use.

    protocol ─▶ Session ─▶ post office, queues, transactions
                   └─▶ context.after ─▶ done(error, *arguments)     once what was done is durable

Every request that records something takes `done`; it is called in the order of the requests, with
None, or with what ended the storage. What is refused is raised at once as BrokerError, and nothing
happened then.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.model.address import split_fqqn
from broker.notifications import IN_PROCESS, NotificationType, NotifyingSink
from broker.queues.consumer import Consumer
from broker.routing.postoffice import Routing
from broker.sessions.queries import AddressQuery, QueueQuery
from broker.sessions.sender import Sender
from broker.sessions.session_options import SessionOptions
from broker.sessions.settlement import Settlement
from broker.sessions.uploads import Uploads
from broker.sessions.xa_resource import XaResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.notifications import Notifications, Origin
    from broker.ports import Management, Security, Settings
    from broker.queues.consumer import Sink
    from broker.queues.filter import Filter
    from broker.queues.limits import Limits
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.administration import Administration
    from broker.routing.cached_routes import CachedRoute
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.postoffice import PostOffice
    from broker.sessions.producer import Producer
    from broker.sessions.resource_limits import ResourceLimits
    from broker.sessions.send_marks import SendMarks
    from broker.settings.queue_defaults import QueueRequest
    from broker.storage.context import After
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["AddressQuery", "QueueQuery", "Session", "SessionOptions"]


# Names are chosen by clients: what is remembered for them is dropped when there are that many.
_ROUTES_MAX: Final = 100


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
        limits: what producers may send when something is full.
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
        tx: the current transaction.
        metadata: what the client says of itself.
        producers: by the protocol's number, or by address where the protocol has none.
        created_ms: when, ms since 1970.
        is_started: consumers are delivered to.
        settlement: how single messages are accepted, released, modified and rejected.
        context: what callers wait by.
        default_address: where a message without an address goes.
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
        limits: Limits,
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
        self._administration = administration
        self._dead_letters = dead_letters
        self._transactions = transactions
        self._limits = limits
        self._marks = marks
        self._resource_limits = resource_limits
        self._security = security
        self._management = management
        self._notifications = notifications
        self._storage = storage
        self._large = large
        self._history = history
        self._clock_ms = clock_ms
        self._settings = settings
        self._parse_filter = parse_filter
        self._sends_alone = options.auto_commit_sends
        self._acknowledges_alone = options.auto_commit_acks
        self._prefixes = options.prefixes
        self._has_prefixes = bool(options.prefixes)
        self._routes: dict[str | None, CachedRoute] = {}
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
        self.default_address = options.default_address
        self._uploads: Uploads | None = None
        self._xa: XaResource | None = None
        is_local = not options.is_xa and not (
            options.auto_commit_sends and options.auto_commit_acks
        )
        self.tx: Transaction | None = transactions.begin() if is_local else None

    @property
    def uploads(self) -> Uploads:
        """Large messages whose bodies come in parts."""
        uploads = self._uploads
        if uploads is None:
            uploads = self._uploads = Uploads(
                self, self._storage, self._large, self._history, self._dead_letters
            )
        return uploads

    @property
    def xa(self) -> XaResource:
        """Branches of transactions that a manager names."""
        xa = self._xa
        if xa is None:
            xa = self._xa = XaResource(self, self._transactions)
        return xa

    # --- sending ------------------------------------------------------------------------------

    def create_sender(self, address: str | None, routing_type: RoutingType | None = None) -> Sender:
        """Begin to send to an address, or to that of each message (None: an anonymous sender).

        The address is made if it is missing and its settings say so.

        Raises:
            BrokerError: the user may not send there, or there is no such address.
        """
        if address is None:
            return Sender(self, None, routing_type)
        plain, by_prefix = self._prefixes.split(address)
        if by_prefix is not None:
            routing_type = by_prefix
        name, queue = split_fqqn(plain)
        self._check("send", name, queue)
        self._prepare_address(name, queue, routing_type)
        return Sender(self, plain, routing_type)

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
        if self._sends_alone and message.durable:
            self._storage.prewarm()

    def accept(self, message: Message) -> Routing:
        """Send a message that has its id; callers that wait for it ask the context.

        Raises:
            BrokerError: as for send().
            JournalError: likewise.
        """
        if self._sends_alone and not message.has_own_properties and not message.is_large:
            route = self._routes.get(message.address)
            if route is not None and self._postoffice.send_cached(route, message, self.context):
                return Routing.ROUTED
        tx = None if self._sends_alone else self._usable_tx()
        try:
            return self._send(message, tx)
        except BrokerError as error:
            if tx is not None:
                tx.fail(error)
            raise
        finally:
            if message.is_large and message.references == 0:
                # No queue took it, or it was refused.
                self._postoffice.drop_body(message)

    def _send(self, message: Message, tx: Transaction | None) -> Routing:
        if self._has_prefixes:
            self._prefixes.remove_from(message)
        name = message.address
        if name is None:
            name = message.address = self.default_address
            if name is None:
                raise BrokerError(ErrorCode.ADDRESS_DOES_NOT_EXIST, "the message has no address")
        elif self.default_address is None:
            self.default_address = name
        address, queue = split_fqqn(name)
        management = self._management
        if management is not None and address == management.address:
            self._check("manage", address, queue)
            management.handle(self.user, message)
            self.context.note()
            return Routing.ROUTED
        until_s = self._check("send", address, queue)
        self._marks.put(message, self.user, self._settings.match(address), self._clock_ms)
        for other in self._postoffice.queues_by_id(message):
            if other.binding.address != address:
                self._check("send", other.binding.address, other.name)
        self._prepare_address(address, queue, message.routing_type)
        if not self._limits.admits(address, message):
            return Routing.NO_BINDINGS
        result = self._postoffice.route(message, self.context, tx)
        if until_s is not None and queue is None and tx is None:
            self._remember_route(address, until_s)
        return result

    def _remember_route(self, address: str, until_s: float) -> None:
        """What the next message to an address need not ask again."""
        known = self._routes.get(address)
        if known is not None and known.holds(self._addresses.version):
            return
        route = None
        if not self._marks.are_put(self._settings.match(address)):
            route = self._postoffice.cached_route(address, until_s)
        if route is None:
            self._routes.pop(address, None)
            return
        if len(self._routes) >= _ROUTES_MAX:
            self._routes.clear()
        self._routes[address] = route

    def _check(self, permission: str, address: str, queue: str | None) -> float | None:
        """See whether the user may do something; until when, as Security.check().

        Raises:
            BrokerError: the user may not; a notification is sent.
        """
        try:
            return self._security.check(self.user, permission, address, queue)
        except BrokerError:
            self._notifications.forbidden(self.user, permission, address)
            raise

    def _prepare_address(
        self, address: str, queue: str | None, routing_type: RoutingType | None
    ) -> None:
        found = self._addresses.by_name.get(address)
        if found is not None:
            # Nearly always: it is there, with a queue. Then nothing is made or refused, even where
            # the message gets nowhere, by its routing type or the queue that it names (as
            # PostOfficeImpl.simpleRoute).
            if self._postoffice.has_queues(address):
                return
            if found.diverts and queue is None and routing_type in found.routing_types:
                return
        if found is None:
            self._check("createAddress", address, None)
        self._administration.prepare_for_send(address, queue, routing_type)
        self.context.note()

    def request_credits(self, address: str, grant: Callable[[bool], object]) -> None:
        """Call `grant(is_failing)` once a producer may send to an address; often at once.

        It fails instead where the address is full and says so (FAIL).
        """
        self._limits.request_credits(self._prefixes.split(address)[0], grant)

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
        _, name = self._split(queue_name)
        queue = self._addresses.queue(name)
        permission = "browse" if is_browser else "consume"
        self._check(permission, queue.binding.address, queue.name)
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

    def _split(self, name: str) -> tuple[str | None, str]:
        """Give the address, if it is told, and the queue of a name that may be qualified."""
        first, second = split_fqqn(self._prefixes.split(name)[0])
        return (None, first) if second is None else (first, second)

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
        tx = None if self._acknowledges_alone else self._usable_tx()
        try:
            consumer = self.consumer(consumer_id)
            if is_individual:
                consumer.acknowledge_one(tx, message_id)
            else:
                consumer.acknowledge(tx, message_id)
        except BrokerError as error:
            if tx is not None:
                tx.fail(error)
            raise
        self.context.note()

    def expire(self, consumer_id: int, message_id: int) -> None:
        """The client found a message that it was given expired.

        Raises:
            BrokerError: it was not delivered, or has been acknowledged.
        """
        consumer = self.consumer(consumer_id)
        if consumer.is_browser:
            return
        reference = consumer.take_back(message_id)
        # A non-destructive queue may have lost it meanwhile.
        if reference.consumer is consumer or reference.level >= 0:
            self._dead_letters.expire(reference)

    # --- local transactions -------------------------------------------------------------------

    def _usable_tx(self) -> Transaction | None:
        """Give what the session works for; None where each request counts alone.

        That is an XA session between two branches, as in Artemis: a JMS XASession that no
        transaction manager enlisted sends and acknowledges like any other.
        """
        tx = self.tx
        if tx is None:
            if self.options.is_xa:
                return None
            tx = self.tx = self._transactions.begin()
        tx.check_usable()
        return tx

    def _next_tx(self) -> Transaction | None:
        """Give what the session works for behind a local commit or rollback."""
        return None if self.options.is_xa else self._transactions.begin()

    def commit(self, done: After, *arguments: object) -> None:
        """Let all since the last commit count; `done(error, *arguments)` once that is durable.

        Raises:
            BrokerError: something of it was refused: it is rolled back.
        """
        tx = self._local_tx()
        self.tx = self._next_tx()
        try:
            tx.commit(self.context, done, *arguments)
        except BrokerError:
            tx.rollback(self.context)
            raise

    def _local_tx(self) -> Transaction:
        if self.options.is_xa and self.tx is not None and self.tx.xid is not None:
            raise BrokerError(ErrorCode.ILLEGAL_STATE, "an XA transaction is ended by its manager")
        return self.tx if self.tx is not None else self._transactions.begin()

    def rollback(
        self, done: After, *arguments: object, considers_last_delivered: bool = False
    ) -> None:
        """Let nothing since the last commit count, and deliver again what was delivered.

        Raises:
            BrokerError: the transaction is a manager's.
        """
        tx = self._local_tx()
        self.tx = self._next_tx()
        self.roll_back(tx, has_failed=False, first_was_delivered=considers_last_delivered)
        self.context.after(done, *arguments)

    def roll_back(self, tx: Transaction, *, has_failed: bool, first_was_delivered: bool) -> None:
        """Roll a transaction back, and give all that consumers here have to their queues again.

        Args:
            tx: local, or a manager's.
            has_failed: the connection broke.
            first_was_delivered: the client has looked at the last message that it was given.
        """
        # No consumer takes anything before all is back, or the order would be lost.
        taking = [consumer for consumer in self.consumers.values() if consumer.is_started]
        for consumer in taking:
            consumer.stop()
        seen: list[Reference] = []
        unseen: list[Reference] = []
        for consumer in self.consumers.values():
            first, others = consumer.take_all_back(
                has_failed=has_failed, first_was_delivered=first_was_delivered
            )
            seen += first
            unseen += others
        tx.rollback(self.context, seen, unseen)
        if not has_failed:
            for consumer in taking:
                consumer.start()

    # --- queues and addresses -----------------------------------------------------------------

    def create_address(
        self, name: str, routing_types: Iterable[RoutingType], *, is_auto_created: bool
    ) -> None:
        """Make an address, or add routing types to it.

        Raises:
            BrokerError: no permission, or it exists and was not asked for by the way.
        """
        name, routing_type = self._prefixes.split(name)
        if routing_type is not None:
            routing_types = [routing_type]
        self._check("createAddress", name, None)
        if is_auto_created:
            self._administration.ensure_address(name, routing_types, is_auto_created=True)
        else:
            self._addresses.create(name, routing_types)
        self.context.note()

    def create_queue(self, request: QueueRequest, *, is_shared: bool = False) -> Queue:
        """Make a queue, or with `is_shared` give the same one if it is there.

        Raises:
            BrokerError: no permission, or it cannot be made.
        """
        if self._has_prefixes:
            address, routing_type = self._prefixes.split(request.address)
            request = replace(
                request,
                address=address,
                name=self._prefixes.split(request.name)[0],
                routing_type=request.routing_type if routing_type is None else routing_type,
            )
        kind = "createDurableQueue" if request.is_durable else "createNonDurableQueue"
        self._check(kind, request.address, request.name)
        if request.address not in self._addresses.by_name:
            self._check("createAddress", request.address, None)
        self._resource_limits.check_queue(self.user, self._addresses.queues.values())
        if is_shared:
            queue = self._administration.create_shared_queue(request)
        else:
            queue = self._administration.create_queue(request)
        if request.is_temporary:
            self.temporary.add(queue.name)
        self.context.note()
        return queue

    def delete_queue(self, name: str) -> None:
        """Remove a queue that has no consumer.

        Raises:
            BrokerError: no such queue, no permission, or it has consumers.
        """
        _, plain = self._split(name)
        queue = self._addresses.queue(plain)
        kind = "deleteDurableQueue" if queue.is_durable else "deleteNonDurableQueue"
        self._check(kind, queue.binding.address, queue.name)
        self._addresses.delete_queue(plain, check_consumers=True, delete_address=True)
        self.temporary.discard(plain)
        self.context.note()

    def query_queue(self, name: str) -> QueueQuery:
        """Tell what is known of a queue name, which may be qualified."""
        address, plain = self._split(name)
        queue = self._addresses.queues.get(plain)
        if address is None:
            address = plain if queue is None else queue.binding.address
        return QueueQuery(
            plain,
            address,
            queue,
            self._settings.match(address),
            is_management=self._is_management(plain),
        )

    def query_address(self, name: str) -> AddressQuery:
        """Tell what is known of an address name, patterns that match it included."""
        name, _ = self._prefixes.split(name)
        route = self._postoffice.route_of(name)
        return AddressQuery(
            self._addresses.by_name.get(name),
            tuple(one.unique_name for one in (*route.anycast, *route.multicast)),
            self._settings.match(name),
            is_management=self._is_management(name),
        )

    def _is_management(self, name: str) -> bool:
        return self._management is not None and name == self._management.address

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
        tx, self.tx = self.tx, None
        if tx is not None and tx.xid is None:
            self.roll_back(tx, has_failed=has_failed, first_was_delivered=False)
        for consumer in list(self.consumers.values()):
            self._close(consumer, has_failed=has_failed)
        self.consumers.clear()
        self.context.note()
