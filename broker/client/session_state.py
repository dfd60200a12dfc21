"""A session as both ends know it; survives a lost connection. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from broker.client.channel import Channel
from broker.client.credits import AddressCredits
from broker.client.deliveries import ConsumerState
from broker.client.errors import ClientError, ClosedError, interrupted, refused
from broker.client.options import WINDOW_DEFAULT, ClientOptions
from broker.protocols.core import versions
from broker.protocols.core.packet_connection import (
    CreateSession,
    DisconnectConsumer,
    DisconnectConsumerKill,
    ExceptionResponse,
)
from broker.protocols.core.packet_message import (
    Acknowledge,
    IndividualAcknowledge,
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
)
from broker.protocols.core.packet_session import (
    AddMetadata2,
    CreateConsumer,
    CreateProducer,
    ProducerCredits,
    ProducerFailCredits,
    RequestProducerCredits,
    Start,
)
from broker.protocols.core.packet_xa import XaFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from broker.client.link import Link
    from broker.model.xid import Xid
    from broker.protocols.core.packet import Packet
    from broker.protocols.core.packet_queue import CreateQueue, QueueQueryResponse


class AckMode(Enum):
    """Who acknowledges a received message, and when."""

    AUTO = "auto"
    """The client, when it has handed the message over."""
    DUPS_OK = "dups-ok"
    """The client, many at a time; after a failure some come again."""
    CLIENT = "client"
    """The application: a message and all before it, of its consumer."""
    INDIVIDUAL = "individual"
    """The application, message by message."""
    PRE = "pre"
    """The broker, before it sends."""
    TRANSACTED = "transacted"
    """The commit of the session's transaction, which its sends are part of too."""
    XA = "xa"
    """The same, of a distributed transaction."""
    XA_CLIENT = "xa-client"
    """The same, but for what the application has not acknowledged: a message and all before it."""


_DISTRIBUTED: Final = (AckMode.XA, AckMode.XA_CLIENT)
_TRANSACTIONAL: Final = (AckMode.TRANSACTED, *_DISTRIBUTED)


class SessionState:
    """What a session has: a channel, consumers, credits, and what must be told to a new broker.

    Attributes:
        name: what the broker knows it by, to take it up again.
        is_rollback_only: the transaction lost a part of its work with a connection.
        has_work: the transaction has sends or acknowledgements.
        on_error: called with an error that belongs to no request.
        on_kill: called when the broker closed a consumer for being slow.
    """

    def __init__(
        self,
        channel_id: int,
        options: ClientOptions,
        mode: AckMode,
        new_uuid: Callable[[], UUID],
    ) -> None:
        self._new_uuid = new_uuid
        self.name = str(new_uuid())
        self.mode = mode
        self.options = options
        self.channel = Channel(
            channel_id, self._receive, confirmation_window=options.confirmation_window_size
        )
        self.on_error: Callable[[ClientError], None] = lambda error: None
        self.on_kill: Callable[[], None] = lambda: None
        self.is_started = False
        self.is_rollback_only = False
        self.has_work = False
        self.xid: Xid | None = None
        self.metadata: dict[str, str] = {}
        self._consumers: dict[int, ConsumerState] = {}
        # Queues that end with their session or connection, to be created again with it.
        self._own_queues: dict[str, CreateQueue] = {}
        self._credits: dict[str, AddressCredits] = {}
        self._producers: dict[int, str | None] = {}
        self._next_consumer = 0
        self._next_producer = 0

    @property
    def is_transacted(self) -> bool:
        """Whether sends and acknowledgements wait for a commit."""
        return self.mode in _TRANSACTIONAL

    def create_request(self, version: int) -> CreateSession:
        """Give what creates this session at a broker."""
        return CreateSession(
            name=self.name,
            session_channel_id=self.channel.channel_id,
            version=version,
            username=self.options.user,
            password=self.options.password,
            min_large_message_size=self.options.min_large_message_size,
            xa=self.mode in _DISTRIBUTED,
            auto_commit_sends=not self.is_transacted,
            auto_commit_acks=not self.is_transacted,
            window_size=self.options.confirmation_window_size,
            pre_acknowledge=self.mode is AckMode.PRE or self.options.pre_acknowledge,
            default_address=None,
            client_id=self.options.client_id,
        )

    # Packets of the broker that answer nothing.

    def _receive(self, packet: Packet, size: int) -> None:
        if isinstance(packet, ReceiveMessage):
            consumer = self._consumers.get(packet.consumer_id)
            if consumer is not None:
                consumer.receive(packet.message, packet.delivery_count, size)
        elif isinstance(packet, ReceiveContinuation):
            consumer = self._consumers.get(packet.consumer_id)
            if consumer is not None:
                consumer.receive_chunk(packet.chunk, size, continues=packet.continues)
        elif isinstance(packet, ReceiveLargeMessage):
            consumer = self._consumers.get(packet.consumer_id)
            if consumer is not None:
                consumer.receive_large(
                    packet.message, packet.delivery_count, packet.body_size, size
                )
        elif isinstance(packet, ProducerCredits | ProducerFailCredits):
            self._receive_credits(packet)
        elif isinstance(packet, DisconnectConsumer):
            consumer = self._consumers.pop(packet.consumer_id, None)
            if consumer is not None:
                consumer.close(ClosedError("the broker closed the consumer"))
        elif isinstance(packet, DisconnectConsumerKill):
            self.on_kill()
        elif isinstance(packet, ExceptionResponse):
            self.on_error(refused(packet.code, packet.message))

    def _receive_credits(self, packet: ProducerCredits | ProducerFailCredits) -> None:
        credits = self._credits.get(packet.address)
        if credits is None:
            return
        if isinstance(packet, ProducerCredits):
            credits.granted(packet.credits)
        else:
            credits.refused(packet.credits)

    # Producers.

    def add_producer(self, address: str | None) -> int:
        """Tell the broker of a producer; give its number."""
        self._next_producer += 1
        number = self._next_producer
        self._producers[number] = address
        if self.channel.link is not None and self.channel.link.version >= versions.PRODUCER_ID:
            self.channel.post(CreateProducer(number, address))
        return number

    def remove_producer(self, number: int) -> bool:
        """Forget it; whether the broker is to be told."""
        self._producers.pop(number, None)
        link = self.channel.link
        return link is not None and link.version >= versions.PRODUCER_ID

    def credits_for(self, address: str) -> AddressCredits:
        """Give the credits of an address, shared by the producers of this session."""
        credits = self._credits.get(address)
        if credits is None:
            credits = AddressCredits(
                address, self.options.producer_window_size, self._request_credits
            )
            self._credits[address] = credits
        return credits

    def _request_credits(self, amount: int, address: str) -> None:
        self.channel.post(RequestProducerCredits(amount, address))

    # Consumers.

    def new_consumer(
        self, queue: str, selector: str | None, *, browse_only: bool, priority: int
    ) -> ConsumerState:
        """Give a consumer that the broker does not know yet."""
        request = CreateConsumer(self._next_consumer, queue, selector, browse_only, True, priority)
        self._next_consumer += 1
        consumer = ConsumerState(self.channel, request, self.options.consumer_window_size)
        # From here on, since messages may come with the answer.
        self._consumers[consumer.consumer_id] = consumer
        return consumer

    def consumer_created(self, consumer: ConsumerState, queue: QueueQueryResponse) -> None:
        """Use what the broker's settings say, and let messages come."""
        default = queue.default_consumer_window_size
        if default is not None and consumer.window_size == WINDOW_DEFAULT:
            consumer.set_window(default)
        consumer.open()

    def remove_consumer(self, consumer: ConsumerState) -> None:
        """Forget a consumer."""
        self._consumers.pop(consumer.consumer_id, None)

    @property
    def consumers(self) -> tuple[ConsumerState, ...]:
        """All consumers that are open."""
        return tuple(self._consumers.values())

    def acknowledge(
        self, consumer_id: int, message_id: int, *, individual: bool, blocking: bool
    ) -> Acknowledge:
        """Give the packet that acknowledges."""
        self.has_work = True
        kind = IndividualAcknowledge if individual else Acknowledge
        return kind(consumer_id, message_id, blocking)

    # Queues that must be made anew with the session.

    def remember_queue(self, request: CreateQueue) -> None:
        """A queue that would be gone with a broker's restart."""
        self._own_queues[request.queue] = request

    @property
    def own_queues(self) -> dict[str, CreateQueue]:
        """Those queues by name."""
        return dict(self._own_queues)

    def forget_queue(self, name: str) -> None:
        """It was deleted."""
        self._own_queues.pop(name, None)

    # A lost connection.

    def new_name(self) -> None:
        """Use another name: the broker may still hold what had the old one."""
        self.name = str(self._new_uuid())
        # The broker has a part of it at most, until it is restored.
        self.channel.is_resumable = False

    def begin_anew(self, link: Link) -> None:
        """The broker has created the session again: tell it what needs no answer.

        What waits for an answer gets `CallInterrupted`; a transaction with work can only be
        rolled back.
        """
        error = interrupted()
        if self.is_transacted and self.has_work:
            self.is_rollback_only = True
        self.channel.interrupt(error)
        link.open_channel(self.channel)
        for consumer in self._consumers.values():
            consumer.begin_anew(error)
        for number, address in self._producers.items():
            if link.version >= versions.PRODUCER_ID:
                self.channel.post(CreateProducer(number, address))
        for key, data in self.metadata.items():
            self.channel.post(AddMetadata2(key, data, False))
        if self.xid is not None:
            self.channel.post(XaFailed(self.xid))
        for credits in self._credits.values():
            credits.reset()

    def restored(self) -> None:
        """Queues and consumers are there again: let messages come."""
        if self.is_started:
            self.channel.post(Start())
        self.channel.is_resumable = True
        for consumer in self._consumers.values():
            consumer.on_change()

    def fail(self, error: ClientError) -> None:
        """The session is over: everybody who waits is told."""
        self.channel.interrupt(error)
        for credits in self._credits.values():
            credits.interrupt(error)
        consumers, self._consumers = self._consumers, {}
        for consumer in consumers.values():
            consumer.close(error)
