"""A broker's insides on a bench: no sockets, no threads, a clock that the test moves."""

import heapq
import time
from collections import deque

from broker.model.address import WildcardConfiguration
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from broker.notifications import IN_PROCESS, NullNotifier
from broker.queues.counters import Counters
from broker.queues.factory import QueueFactory
from broker.queues.flow_control import FlowControl
from broker.queues.memory import GlobalMemory
from broker.records.binding_records import Divert
from broker.routing.addresses import Addresses
from broker.routing.administration import Administration
from broker.routing.dead_letters import DeadLetters
from broker.routing.divert import DivertBinding
from broker.routing.duplicates import DuplicateCaches
from broker.routing.message_copies import MessageCopies
from broker.routing.postoffice import PostOffice
from broker.security.allow_all import AllowAll
from broker.selector.filters import parse_filter
from broker.server.scanner import ExpiryScanner
from broker.sessions.resource_limits import ResourceLimits
from broker.sessions.send_marks import SendMarks
from broker.sessions.session import Session, SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.null_storage import NullStorage
from broker.transactions.xa import XaTransactions

START_MS = 1_700_000_000_000
UNLIMITED = -1


class Handle:
    def __init__(self):
        self.is_cancelled = False

    def cancel(self):
        self.is_cancelled = True


class FakeLoop:
    """Turns and timers, run when the test says so."""

    def __init__(self):
        self.now_s = 0.0
        self._soon = deque()
        self._later = []
        self._count = 0

    def call_soon(self, callback, *arguments):
        handle = Handle()
        self._soon.append((handle, callback, arguments))
        return handle

    def call_later(self, delay_s, callback, *arguments):
        handle = Handle()
        self._count += 1
        heapq.heappush(
            self._later, (self.now_s + delay_s, self._count, handle, callback, arguments)
        )
        return handle

    def run_turns(self, most=100_000, *, is_to_end=True):
        """Run what is to be run, which must end, or so much of it."""
        while self._soon:
            if most == 0 and not is_to_end:
                return
            assert most > 0, "it never ends"
            most -= 1
            handle, callback, arguments = self._soon.popleft()
            if not handle.is_cancelled:
                callback(*arguments)

    def jump(self, seconds):
        """Let time pass and nothing happen meanwhile, as on a busy machine."""
        self.now_s += seconds

    def pass_time(self, seconds):
        """Let time pass, with everything that comes due in it."""
        end_s = self.now_s + seconds
        self.run_turns()
        while self._later and self._later[0][0] <= end_s:
            due_s, _, handle, callback, arguments = heapq.heappop(self._later)
            self.now_s = max(self.now_s, due_s)
            if not handle.is_cancelled:
                callback(*arguments)
            self.run_turns()
        self.now_s = end_s


class Sink:
    """A protocol's end of consumers: keeps what it is given, each message for 100 credits."""

    def __init__(self):
        self.got = []
        self.counts = []
        self.closed = []

    def deliver(self, consumer, message, delivery_count):
        self.got.append(message)
        self.counts.append(delivery_count)
        return 100

    def disconnected(self, consumer):
        self.closed.append(consumer.consumer_id)

    @property
    def bodies(self):
        return [bytes(message.body).decode() for message in self.got]

    @property
    def ids(self):
        return [message.message_id for message in self.got]


class Switched:
    """Who may do what: as a test has said last."""

    def __init__(self, given):
        self.given = given

    def __getattr__(self, name):
        return getattr(self.given, name)


def one_becomes_durable(completions):
    """As a reap of the messages' store that tells of one record."""
    completions.messages.done(None)
    completions.run_due()


class Bench:
    """The parts of a broker, and sessions, over some storage, by default none."""

    def __init__(
        self,
        storage=None,
        loop=None,
        *,
        security=None,
        notifications=None,
        marks=None,
        resource_limits=None,
        id_cache_size=20_000,
        management_address=None,
    ):
        self.loop = loop = loop or FakeLoop()
        self.storage = storage = storage or NullStorage()
        self.settings = settings = SettingsRepository()
        self.clock_ms = clock_ms = lambda: START_MS + round(loop.now_s * 1000)
        self.parse_filter = parse_filter
        self._security = Switched(security or AllowAll())
        self.notifications = notifications = notifications or NullNotifier()
        self.management = self.paging = self.retroactive = None
        self.marks = marks or SendMarks()
        self.resource_limits = resource_limits or ResourceLimits({})
        self.counters = Counters()
        queue_factory = QueueFactory(
            storage=storage,
            timers=loop,
            clock_ms=clock_ms,
            clock_s=lambda: clock_ms() / 1000,
            settings=settings,
            parse_filter=parse_filter,
        )
        duplicates = DuplicateCaches(storage, settings, size=id_cache_size)
        self.addresses = Addresses(
            storage=storage,
            clock_ms=clock_ms,
            settings=settings,
            notifications=notifications,
            queue_factory=queue_factory,
            duplicates=duplicates,
            memory=GlobalMemory(),
            wildcards=WildcardConfiguration(),
        )
        copies = MessageCopies(storage)
        self.transactions = XaTransactions(
            storage=storage,
            clock_ms=lambda: self.clock_ms(),
            monotonic_s=lambda: loop.now_s,
            counters=self.counters,
        )
        self.postoffice = PostOffice(
            addresses=self.addresses,
            duplicates=duplicates,
            paging=None,
            storage=storage,
            clock_ms=clock_ms,
            monotonic_s=time.monotonic,
            settings=settings,
            transactions=self.transactions,
            copies=copies,
            counters=self.counters,
        )
        self.dead_letters = queue_factory.dead_letters = DeadLetters(
            postoffice=self.postoffice,
            transactions=self.transactions,
            copies=copies,
            storage=storage,
            timers=loop,
            clock_ms=clock_ms,
            settings=settings,
            counters=self.counters,
            notifications=notifications,
            random_number=lambda: 0.5,
        )
        self.flow_control = FlowControl(
            settings=settings,
            addresses=self.addresses.by_name,
            memory=self.addresses.memory,
            pages={},
            counters=self.counters,
            clock_s=lambda: 0.0,
            management_address=management_address,
        )
        self.administration = Administration(self.addresses, settings)
        self._names = 0

    @property
    def security(self):
        return self._security.given

    @security.setter
    def security(self, given):
        self._security.given = given

    @property
    def now_ms(self):
        return self.clock_ms()

    def set(self, match="#", **settings):
        """Set address settings."""
        self.settings.add(match, AddressSettings(**settings))

    def queue(self, name="q", address=None, routing_type=RoutingType.ANYCAST, **attributes):
        """Make a queue."""
        return self.administration.create_queue(
            QueueRequest(
                name=name, address=address or name, routing_type=routing_type, **attributes
            )
        )

    def divert(
        self, source, target, *, is_exclusive=False, filter=None, routing_type=RoutingType.STRIP
    ):
        """Bind a divert to an address."""
        record = Divert(
            name=f"{source} to {target}",
            address=source,
            forwarding_address=target,
            routing_name="r",
            exclusive=is_exclusive,
            filter=filter,
            routing_type=routing_type,
            transformer=None,
        )
        made = DivertBinding(record, parse_filter=parse_filter)
        self.addresses.bind(made)
        return made

    def new_session(self, name, user, options, temporary, origin=IN_PROCESS):
        """Begin a session, as a broker does."""
        return Session(
            name,
            user,
            options,
            temporary,
            origin,
            postoffice=self.postoffice,
            administration=self.administration,
            dead_letters=self.dead_letters,
            transactions=self.transactions,
            flow_control=self.flow_control,
            marks=self.marks,
            resource_limits=self.resource_limits,
            security=self._security,
            management=self.management,
            notifications=self.notifications,
            storage=self.storage,
            large=None,
            history=None,
            clock_ms=self.clock_ms,
            settings=self.settings,
            parse_filter=parse_filter,
        )

    def session(self, **options):
        """Begin a session."""
        self._names += 1
        return self.new_session(f"session-{self._names}", None, SessionOptions(**options), set())

    def scan_expired(self):
        """Look for expired messages, as a broker does from time to time."""
        ExpiryScanner(self.loop, self.addresses.queues).scan()

    def transacted(self):
        return self.session(auto_commit_sends=False, auto_commit_acks=False)

    def consume(self, queue="q", session=None, credits=UNLIMITED, consumer_id=0, **options):
        """Begin to consume; the sink, with the consumer and its session as attributes."""
        session = session or self.session()
        sink = Sink()
        sink.session = session
        sink.consumer = session.create_consumer(consumer_id, queue, sink, **options)
        session.start()
        if credits:
            sink.consumer.receive_credits(credits)
        return sink


def message(body="m", address="q", durable=True, priority=4, expiration=0, **properties):
    """A message as one comes from a client; properties by name, typed by their values."""
    made = Message(
        address, body.encode(), durable=durable, priority=priority, expiration=expiration
    )
    for name, value in properties.items():
        kinds = {bool: PropertyType.BOOLEAN, int: PropertyType.LONG, bytes: PropertyType.BYTES}
        made.set(name, kinds.get(type(value), PropertyType.STRING), value)
    # Of one that was read it is known what is in it, and what is not: it may take a CachedRoute.
    return Message.decode(made.encode())


class Answers:
    """A `done` that remembers."""

    def __init__(self):
        self.errors = []

    def __call__(self, error, *arguments):
        self.errors.append(error)

    @property
    def count(self):
        return len(self.errors)


def done(error, *arguments):
    """A `done` that wants success."""
    assert error is None
