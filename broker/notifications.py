"""What happens in a broker that others may want to hear of, by Artemis's names.

A broker has a notifier (broker.management.notifications), or else a `NullNotifier`. It is
called at the end of a change, never in its middle: a listener may get a message in the same turn.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.queues.consumer import Consumer
    from broker.queues.consumer_ports import Sink
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.queues.reference import Recipient, ReferenceQueue

__all__ = [
    "IN_PROCESS",
    "DemandListener",
    "GroupTeller",
    "NotificationType",
    "Notifications",
    "NotifyingSink",
    "NullNotifier",
    "Origin",
    "Subject",
]


class NotificationType(Enum):
    """What happened (CoreNotificationType); the names go into messages."""

    BINDING_ADDED = auto()
    BINDING_REMOVED = auto()
    BINDING_UPDATED = auto()
    CONSUMER_CREATED = auto()
    CONSUMER_CLOSED = auto()
    CONSUMER_SLOW = auto()
    SECURITY_AUTHENTICATION_VIOLATION = auto()
    SECURITY_PERMISSION_VIOLATION = auto()
    ACCEPTOR_STARTED = auto()
    ACCEPTOR_STOPPED = auto()
    ADDRESS_ADDED = auto()
    ADDRESS_REMOVED = auto()
    CONNECTION_CREATED = auto()
    CONNECTION_DESTROYED = auto()
    SESSION_CREATED = auto()
    SESSION_CLOSED = auto()
    MESSAGE_DELIVERED = auto()
    MESSAGE_EXPIRED = auto()
    BRIDGE_STARTED = auto()
    BRIDGE_STOPPED = auto()
    BROADCAST_GROUP_STARTED = auto()
    BROADCAST_GROUP_STOPPED = auto()
    DISCOVERY_GROUP_STARTED = auto()
    DISCOVERY_GROUP_STOPPED = auto()
    PROPOSAL = auto()
    PROPOSAL_RESPONSE = auto()
    UNPROPOSAL = auto()
    # Not of Artemis.
    GROUP_OWNER = auto()
    NODE_WAITING = auto()
    NODE_ACTIVATING = auto()
    NODE_ACTIVE = auto()
    NODE_FAILING_BACK = auto()
    NODE_STOPPING = auto()
    NODE_STOPPED = auto()
    NODE_FAILED = auto()
    MESSAGES_STRANDED = auto()
    NODE_IN_DOUBT = auto()


class Origin(NamedTuple):
    """The connection that a session is on.

    Attributes:
        connection_id: 8 hexadecimal digits.
        remote: `host:port` of the client.
        local: `host:port` of ours.
        client_id: that the client chose.
        protocol: such as CORE.
        created_ms: when it came, ms since 1970.
    """

    connection_id: str
    remote: str
    local: str
    client_id: str | None
    protocol: str
    created_ms: int


IN_PROCESS: Final = Origin("00000000", "invm:0", "invm:0", None, "CORE", 0)


class Subject(Protocol):
    """A session, as far as it is told of."""

    name: str
    user: str | None
    origin: Origin


class Address(Protocol):
    """An address, as far as it is told of; `broker.routing.addresses` has it."""

    @property
    def name(self) -> str:
        """Of the address."""

    @property
    def routing_types(self) -> Collection[RoutingType]:
        """That its queues may have."""


class Binding(Protocol):
    """What is bound to an address, as far as it is told of; `broker.routing.bindings` has it."""

    @property
    def binding_type(self) -> int:
        """Its kind, by Artemis's numbers."""

    @property
    def address(self) -> str:
        """That it is bound to."""

    @property
    def unique_name(self) -> str:
        """What tells it from others."""

    @property
    def routing_name(self) -> str | None:
        """Of those that share it one gets a message."""

    @property
    def routing_type(self) -> RoutingType:
        """Which messages it gets."""

    @property
    def is_type_known(self) -> bool:
        """Whether the routing type is known, and not guessed."""

    @property
    def binding_id(self) -> int:
        """Of its record; 0 where it has none."""

    @property
    def distance(self) -> int:
        """How many brokers away it is."""

    @property
    def filter(self) -> Filter | None:
        """Of what is routed there."""

    def cluster_name(self, node_id: str) -> str:
        """Give the name by which a cluster knows it."""


class DemandListener(Protocol):
    """Who wants to know of consumers here, whether anybody else hears of them or not."""

    def consumers_changed(self, queue: Queue) -> None:
        """A consumer of a queue here came or went."""

    def queue_added(self, queue: Queue) -> None:
        """A queue was made."""

    def queue_removed(self, binding: Binding) -> None:
        """A queue was deleted, here or in another broker."""


class GroupTeller(Protocol):
    """Who tells of the owners of message groups."""

    def tell_all(self) -> None:
        """Tell all owners."""

    def told_all(self) -> None:
        """Who asked for all hears what happens from now on."""


class Notifications(Protocol):
    """Who tells of what happens; a method for each kind of thing it happens to."""

    hears_deliveries: bool
    """Whether each delivery is told: consumers that are made then tell."""

    def binding(self, kind: NotificationType, binding: Binding) -> None:
        """Tell of BINDING_ADDED, _REMOVED, _UPDATED."""

    def address(self, kind: NotificationType, address: Address) -> None:
        """Tell of ADDRESS_ADDED, _REMOVED."""

    def consumer(self, kind: NotificationType, consumer: Consumer, session: Subject) -> None:
        """Tell of CONSUMER_CREATED, _CLOSED, _SLOW."""

    def remote_consumer(
        self, kind: NotificationType, binding: Binding, filter: Filter | None
    ) -> None:
        """Tell of CONSUMER_CREATED, _CLOSED at a queue of another broker."""

    def tell_all(self, queue: Queue) -> None:
        """Tell one queue of all bindings and consumers; what happens next follows behind."""

    def proposal(
        self,
        kind: NotificationType,
        group: str,
        value: str,
        alternative: str | None,
        *,
        address: str,
        distance: int,
    ) -> None:
        """Tell of PROPOSAL, PROPOSAL_RESPONSE, UNPROPOSAL of a grouping-handler."""

    def group_owner(
        self, address: str, routing_name: str, bucket: int, epoch: int, cluster_name: str
    ) -> None:
        """Tell of GROUP_OWNER."""

    def session(self, kind: NotificationType, session: Subject) -> None:
        """Tell of SESSION_CREATED, _CLOSED."""

    def session_elsewhere(
        self,
        client_id: str,
        protocol: str,
        remote: str | None,
        connection: str | None,
        distance: int,
    ) -> None:
        """Tell of SESSION_CREATED in another broker, so many hops away."""

    def connection(self, kind: NotificationType, origin: Origin) -> None:
        """Tell of CONNECTION_CREATED, _DESTROYED."""

    def acceptor(self, kind: NotificationType, host: str, port: int) -> None:
        """Tell of ACCEPTOR_STARTED, _STOPPED."""

    def message(
        self,
        kind: NotificationType,
        message: Message,
        queue: ReferenceQueue,
        consumer: Recipient | None,
    ) -> None:
        """Tell of MESSAGE_DELIVERED, _EXPIRED."""

    def bridge(self, kind: NotificationType, name: str) -> None:
        """Tell of BRIDGE_STARTED, _STOPPED."""

    def discovery(self, kind: NotificationType, name: str) -> None:
        """Tell of BROADCAST_GROUP_STARTED, _STOPPED, DISCOVERY_GROUP_STARTED, _STOPPED."""

    def stranded(self, connection: str, node_id: str, count: int, lost_ms: int) -> None:
        """Tell of MESSAGES_STRANDED."""

    def wrong_login(self, user: str | None, remote: str) -> None:
        """Tell of SECURITY_AUTHENTICATION_VIOLATION."""

    def forbidden(self, user: str | None, permission: str, address: str) -> None:
        """Tell of SECURITY_PERMISSION_VIOLATION; `permission` as in security-setting."""


class NullNotifier:
    """Drops all notifications."""

    hears_deliveries = False

    def binding(self, kind: NotificationType, binding: Binding) -> None:
        """Nothing."""

    def address(self, kind: NotificationType, address: Address) -> None:
        """Nothing."""

    def consumer(self, kind: NotificationType, consumer: Consumer, session: Subject) -> None:
        """Nothing."""

    def remote_consumer(
        self, kind: NotificationType, binding: Binding, filter: Filter | None
    ) -> None:
        """Nothing."""

    def tell_all(self, queue: Queue) -> None:
        """Nothing."""

    def proposal(
        self,
        kind: NotificationType,
        group: str,
        value: str,
        alternative: str | None,
        *,
        address: str,
        distance: int,
    ) -> None:
        """Nothing."""

    def group_owner(
        self, address: str, routing_name: str, bucket: int, epoch: int, cluster_name: str
    ) -> None:
        """Nothing."""

    def session(self, kind: NotificationType, session: Subject) -> None:
        """Nothing."""

    def session_elsewhere(
        self,
        client_id: str,
        protocol: str,
        remote: str | None,
        connection: str | None,
        distance: int,
    ) -> None:
        """Nothing."""

    def connection(self, kind: NotificationType, origin: Origin) -> None:
        """Nothing."""

    def acceptor(self, kind: NotificationType, host: str, port: int) -> None:
        """Nothing."""

    def message(
        self,
        kind: NotificationType,
        message: Message,
        queue: ReferenceQueue,
        consumer: Recipient | None,
    ) -> None:
        """Nothing."""

    def bridge(self, kind: NotificationType, name: str) -> None:
        """Nothing."""

    def discovery(self, kind: NotificationType, name: str) -> None:
        """Nothing."""

    def stranded(self, connection: str, node_id: str, count: int, lost_ms: int) -> None:
        """Nothing."""

    def wrong_login(self, user: str | None, remote: str) -> None:
        """Nothing."""

    def forbidden(self, user: str | None, permission: str, address: str) -> None:
        """Nothing."""


class NotifyingSink:
    """A protocol's side of a consumer, and MESSAGE_DELIVERED for whatever goes there.

    Beside consumers instead of in them: it is rarely used, and each message would pay for it.

    Args:
        sink: the protocol's.
        notifications: who tells.
    """

    __slots__ = ("_notifications", "_sink")

    def __init__(self, sink: Sink, notifications: Notifications) -> None:
        self._sink = sink
        self._notifications = notifications

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        """Write the message, and tell."""
        size = self._sink.deliver(consumer, message, delivery_count)
        self._notifications.message(
            NotificationType.MESSAGE_DELIVERED, message, consumer.queue, consumer
        )
        return size

    def disconnected(self, consumer: Consumer) -> None:
        """The broker has closed the consumer."""
        self._sink.disconnected(consumer)
