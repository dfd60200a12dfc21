"""Notifications as messages to `management-notification-address`, with Artemis's properties.

    queue ─▶ NotificationMessages.binding(BINDING_ADDED, …) ─▶ a durable message, routed at once

Nothing is made while no queue is bound to the address, and nothing before the broker is active.
As in Artemis connections, addresses and single messages are told of only where its
NotificationActiveMQServerPlugin is configured for them, and sessions can be suppressed.

Properties are named as in ManagementHelper. A value that is None is a null property where the
reference writes one, and left out where it leaves it out.

Threads: the event loop's alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType
from broker.routing.bindings import BindingType, LocalQueueBinding

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.notifications import (
        Address,
        Binding,
        DemandListener,
        GroupTeller,
        Origin,
        Subject,
    )
    from broker.options import NotificationOptions
    from broker.queues.consumer import Consumer
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.queues.reference import Recipient, ReferenceQueue
    from broker.routing.postoffice import PostOffice
    from broker.storage.manager import StorageManager

__all__ = ["NotificationMessages"]

NOTIFICATION_TYPE: Final = "_AMQ_NotifType"
NOTIFICATION_TIMESTAMP: Final = "_AMQ_NotifTimestamp"
ADDRESS: Final = "_AMQ_Address"
BINDING_ID: Final = "_AMQ_Binding_ID"
BINDING_TYPE: Final = "_AMQ_Binding_Type"
CERTIFICATE: Final = "_AMQ_CertSubjectDN"
CHECK_TYPE: Final = "_AMQ_CheckType"
CLIENT_ID: Final = "_AMQ_Client_ID"
CLUSTER_NAME: Final = "_AMQ_ClusterName"
CONNECTION_NAME: Final = "_AMQ_ConnectionName"
CONSUMER_COUNT: Final = "_AMQ_ConsumerCount"
CONSUMER_NAME: Final = "_AMQ_ConsumerName"
DISTANCE: Final = "_AMQ_Distance"
FILTER: Final = "_AMQ_FilterString"
GROUP_BUCKET: Final = "_QUIVER_GroupBucket"
GROUP_EPOCH: Final = "_QUIVER_GroupEpoch"
MESSAGE_ID: Final = "_AMQ_Message_ID"
NODE_REASON: Final = "_QUIVER_NodeReason"
STRANDED_NODE: Final = "_QUIVER_StrandedNode"
STRANDED_COUNT: Final = "_QUIVER_StrandedCount"
STRANDED_MS: Final = "_QUIVER_StrandedMs"
NODE_ROLE: Final = "_QUIVER_NodeRole"
NODE_SINCE: Final = "_QUIVER_NodeSince"
PINS_GROUPS: Final = "_QUIVER_PinsGroups"
QUEUE_TYPE: Final = "_QUIVER_QueueRoutingType"
"""Of a queue with its address's name, whose routing name does not say whether it is anycast."""
PROPOSAL_ALTERNATIVE: Final = "_JBM_ProposalAltValue"
PROPOSAL_GROUP: Final = "_JBM_ProposalGroupId"
PROPOSAL_VALUE: Final = "_JBM_ProposalValue"
PROTOCOL: Final = "_AMQ_Protocol_Name"
RESET: Final = "_AMQ_RESET_QUEUE_DATA"
RESET_COMPLETE: Final = "_AMQ_RESET_QUEUE_DATA_COMPLETE"
REMOTE_ADDRESS: Final = "_AMQ_RemoteAddress"
ROUTING_NAME: Final = "_AMQ_RoutingName"
ROUTING_TYPE: Final = "_AMQ_Routing_Type"
SESSION_NAME: Final = "_AMQ_SessionName"
USER: Final = "_AMQ_User"
VALIDATED_USER: Final = "_AMQ_ValidatedUser"

_NETTY_ACCEPTOR: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"


class NotificationMessages:
    """Implements `broker.notifications.Notifications`.

    Args:
        storage: where records go.
        clock_ms: wall clock, ms since 1970.
        node_id: of the broker: a part of the names by which a cluster knows queues.
        options: what is told.
        is_active: whether the broker serves.

    Attributes:
        postoffice: where messages go. Set once, by the composition root, before the broker is
            active: the post office tells of what happens, too.
        demand: told of queues and consumers here; None in a broker that is alone.
        groups: tells of the owners of groups; likewise.
    """

    postoffice: PostOffice
    demand: DemandListener | None = None
    groups: GroupTeller | None = None

    def __init__(
        self,
        storage: StorageManager,
        clock_ms: Callable[[], int],
        node_id: str,
        options: NotificationOptions,
        is_active: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._clock_ms = clock_ms
        self._node_id = node_id
        self._options = options
        self._is_active = is_active
        self._context = storage.new_context()
        self.is_enabled = True
        self.hears_deliveries = options.deliveries
        # Set while it is told to one queue alone what there is: see tell_all().
        self._only: Queue | None = None

    # --- the message --------------------------------------------------------------------------

    @property
    def _is_heard(self) -> bool:
        return self._only is not None or (
            self.is_enabled
            and self._is_active()
            and self.postoffice.has_queues(self._options.address)
        )

    def _tell(self, kind: NotificationType, *properties: Property) -> None:
        now_ms = self._clock_ms()
        message = Message(
            self._options.address,
            durable=True,
            timestamp=now_ms,
            message_id=self._storage.new_id(),
            properties=(
                *properties,
                _text(NOTIFICATION_TYPE, kind.name),
                _long(NOTIFICATION_TIMESTAMP, now_ms),
            ),
        )
        only = self._only
        if only is None:
            self.postoffice.route(message, self._context, rejects_duplicates=False)
        elif only.accepts(message):
            self.postoffice.enqueuer.put(message, [only], self._context, None)

    def tell_all(self, queue: Queue) -> None:
        """Tell a queue of everything that a peer has to know; what happens next follows behind.

        In one turn, so nothing is left out or told twice (PostOfficeImpl.sendQueueInfoToQueue):
        RESET_QUEUE_DATA, each binding with its consumers, owners of groups,
        RESET_QUEUE_DATA_COMPLETE. The filter of the queue selects all but the first and the last.

        Raises:
            JournalError: the storage has failed.
        """
        addresses = self.postoffice.addresses
        groups = self.groups
        self._tell_mark(queue, RESET, *(() if groups is None else (PINS_GROUPS,)))
        self._only = queue
        try:
            for one in addresses.queues.values():
                self.binding(NotificationType.BINDING_ADDED, LocalQueueBinding(one))
                for consumer in one.consumers.all():
                    wanted = _filter_text(consumer)
                    self._tell(
                        NotificationType.CONSUMER_CREATED,
                        *self._place_of(one),
                        *(() if wanted is None else (_text(FILTER, wanted),)),
                    )
            for remote in addresses.remote.by_name.values():
                self.binding(NotificationType.BINDING_ADDED, remote)
                for filter in remote.consumers():
                    self.remote_consumer(NotificationType.CONSUMER_CREATED, remote, filter)
            if groups is not None:
                groups.tell_all()
        finally:
            self._only = None
        self._tell_mark(queue, RESET_COMPLETE)
        if groups is not None:
            groups.told_all()

    def _tell_mark(self, queue: Queue, *names: str) -> None:
        message = Message(
            queue.name,
            timestamp=self._clock_ms(),
            message_id=self._storage.new_id(),
            properties=[Property(name, PropertyType.BOOLEAN, True) for name in names],
        )
        self.postoffice.enqueuer.put(message, [queue], self._context, None)

    # --- what happens -------------------------------------------------------------------------

    def binding(self, kind: NotificationType, binding: Binding) -> None:
        """Tell of BINDING_ADDED, _REMOVED, _UPDATED."""
        demand = self.demand
        if demand is not None and self._only is None:
            if kind is NotificationType.BINDING_REMOVED:
                demand.queue_removed(binding)
            elif (queue := self.postoffice.addresses.queues.get(binding.unique_name)) is not None:
                demand.queue_added(queue)
        if not self._is_heard:
            return
        properties = [*self._place(binding), _long(BINDING_ID, binding.binding_id)]
        if kind is NotificationType.BINDING_ADDED:
            properties.append(_int(BINDING_TYPE, binding.binding_type))
            if binding.routing_name == binding.address and binding.is_type_known:
                properties.append(_byte(QUEUE_TYPE, int(binding.routing_type)))
        if binding.filter is not None or kind is NotificationType.BINDING_REMOVED:
            text = None if binding.filter is None else binding.filter.text
            properties.append(_text(FILTER, text))
        self._tell(kind, *properties)

    def _place(self, binding: Binding) -> list[Property]:
        return [
            _text(ADDRESS, binding.address),
            _text(CLUSTER_NAME, binding.cluster_name(self._node_id)),
            _text(ROUTING_NAME, binding.routing_name),
            _int(DISTANCE, binding.distance),
        ]

    def _place_of(self, queue: ReferenceQueue) -> list[Property]:
        return [
            _text(ADDRESS, queue.binding.address),
            _text(CLUSTER_NAME, queue.name + self._node_id),
            _text(ROUTING_NAME, queue.binding.routing_name),
            _int(DISTANCE, 0),
        ]

    def address(self, kind: NotificationType, address: Address) -> None:
        """Tell of ADDRESS_ADDED, _REMOVED."""
        if self._options.addresses and self._is_heard:
            # Of an address with both Artemis gives the first in the order of EnumSet.
            first = min(address.routing_types, default=RoutingType.MULTICAST)
            self._tell(kind, _text(ADDRESS, address.name), _byte(ROUTING_TYPE, int(first)))

    def consumer(self, kind: NotificationType, consumer: Consumer, session: Subject) -> None:
        """Tell of CONSUMER_CREATED, _CLOSED, _SLOW."""
        if self.demand is not None and kind is not NotificationType.CONSUMER_SLOW:
            known = self.postoffice.addresses.queues.get(consumer.queue.name)
            if known is not None:
                self.demand.consumers_changed(known)
        if not self._is_heard:
            return
        origin = session.origin
        queue = consumer.queue
        common = (
            _int(CONSUMER_COUNT, queue.consumer_count),
            _text(REMOTE_ADDRESS, origin.remote),
            _text(SESSION_NAME, session.name),
            _long(CONSUMER_NAME, consumer.consumer_id),
        )
        if kind is NotificationType.CONSUMER_SLOW:
            self._tell(
                kind,
                *common,
                _text(ADDRESS, queue.binding.address),
                _text(CONNECTION_NAME, origin.connection_id),
            )
            return
        properties = [
            *self._place_of(queue),
            *common,
            _text(USER, session.user),
        ]
        wanted = _filter_text(consumer)
        if kind is NotificationType.CONSUMER_CREATED:
            properties += [_text(VALIDATED_USER, session.user), _text(CERTIFICATE, None)]
        if wanted is not None or kind is NotificationType.CONSUMER_CLOSED:
            properties.append(_text(FILTER, wanted))
        if origin.client_id is not None:
            properties.append(_text(CLIENT_ID, origin.client_id))
        self._tell(kind, *properties)

    def remote_consumer(
        self, kind: NotificationType, binding: Binding, filter: Filter | None
    ) -> None:
        """Tell of CONSUMER_CREATED, _CLOSED at a queue of another broker."""
        if self._is_heard:
            wanted = () if filter is None else (_text(FILTER, filter.text),)
            self._tell(kind, *self._place(binding), *wanted)

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
        """Tell of PROPOSAL, PROPOSAL_RESPONSE, UNPROPOSAL."""
        if not self._is_heard:
            return
        answer = (_text(PROPOSAL_ALTERNATIVE, alternative),)
        self._tell(
            kind,
            _text(PROPOSAL_GROUP, group),
            _text(PROPOSAL_VALUE, value),
            *(answer if kind is NotificationType.PROPOSAL_RESPONSE else ()),
            _int(BINDING_TYPE, BindingType.LOCAL_QUEUE),
            _text(ADDRESS, address),
            _int(DISTANCE, distance),
        )

    def group_owner(
        self, address: str, routing_name: str, bucket: int, epoch: int, cluster_name: str
    ) -> None:
        """Tell of GROUP_OWNER."""
        if self._is_heard:
            self._tell(
                NotificationType.GROUP_OWNER,
                _text(ADDRESS, address),
                _text(ROUTING_NAME, routing_name),
                _text(CLUSTER_NAME, cluster_name),
                _int(GROUP_BUCKET, bucket),
                _long(GROUP_EPOCH, epoch),
                _int(DISTANCE, 0),
            )

    def session(self, kind: NotificationType, session: Subject) -> None:
        """Tell of SESSION_CREATED, _CLOSED."""
        if self._options.sessions and self._is_heard:
            origin = session.origin
            self._tell(
                kind,
                _text(CONNECTION_NAME, origin.connection_id),
                _text(USER, session.user),
                _text(SESSION_NAME, session.name),
                _text(CLIENT_ID, origin.client_id),
                _text(REMOTE_ADDRESS, origin.remote),
                _text(PROTOCOL, origin.protocol),
                _text(ADDRESS, self._options.address),
                _int(DISTANCE, 0),
            )

    def session_elsewhere(
        self,
        client_id: str,
        protocol: str,
        remote: str | None,
        connection: str | None,
        distance: int,
    ) -> None:
        """Tell of SESSION_CREATED in another broker, so many hops away."""
        if self._options.sessions and self._is_heard:
            self._tell(
                NotificationType.SESSION_CREATED,
                _text(CONNECTION_NAME, connection),
                _text(REMOTE_ADDRESS, remote),
                _text(CLIENT_ID, client_id),
                _text(PROTOCOL, protocol),
                _int(DISTANCE, distance),
            )

    def connection(self, kind: NotificationType, origin: Origin) -> None:
        """Tell of CONNECTION_CREATED, _DESTROYED."""
        if self._options.connections and self._is_heard:
            self._tell(
                kind,
                _text(CONNECTION_NAME, origin.connection_id),
                _text(CERTIFICATE, None),
                _text(REMOTE_ADDRESS, origin.remote),
                _text(CLIENT_ID, origin.client_id),
                _text(PROTOCOL, origin.protocol),
            )

    def acceptor(self, kind: NotificationType, host: str, port: int) -> None:
        """Tell of ACCEPTOR_STARTED, _STOPPED."""
        if self._is_heard:
            self._tell(
                kind, _text("factory", _NETTY_ACCEPTOR), _text("host", host), _int("port", port)
            )

    def message(
        self,
        kind: NotificationType,
        message: Message,
        queue: ReferenceQueue,
        consumer: Recipient | None,
    ) -> None:
        """Tell of MESSAGE_DELIVERED, _EXPIRED, but not of notifications themselves."""
        is_wanted = (
            self._options.deliveries
            if kind is NotificationType.MESSAGE_DELIVERED
            else self._options.expiries
        )
        if not is_wanted or queue.binding.address == self._options.address or not self._is_heard:
            return
        properties = [
            _text(ADDRESS, queue.binding.address),
            _byte(ROUTING_TYPE, int(queue.binding.routing_type)),
            _text(ROUTING_NAME, queue.name),
            _long(MESSAGE_ID, message.message_id),
        ]
        if consumer is not None:
            properties.append(_long(CONSUMER_NAME, consumer.consumer_id))
        self._tell(kind, *properties)

    def bridge(self, kind: NotificationType, name: str) -> None:
        """Tell of BRIDGE_STARTED, _STOPPED."""
        if self._is_heard:
            self._tell(kind, _text("name", name))

    def discovery(self, kind: NotificationType, name: str) -> None:
        """Tell of BROADCAST_GROUP_STARTED, _STOPPED, DISCOVERY_GROUP_STARTED, _STOPPED."""
        if self._is_heard:
            self._tell(kind, _text("name", name))

    def node(self, kind: NotificationType, role: str, reason: str, since_ms: int) -> None:
        """Tell of NODE_WAITING, _ACTIVATING, _ACTIVE, _FAILING_BACK, _STOPPING, _STOPPED, _FAILED.

        Tell of NODE_IN_DOUBT, too.

        Args:
            kind: a step of one of a pair.
            role: `primary` or `backup`, as configured.
            reason: of the step.
            since_ms: when it was, ms since 1970.
        """
        if self._is_heard:
            texts = _text(NODE_ROLE, role), _text(NODE_REASON, reason)
            self._tell(kind, *texts, _long(NODE_SINCE, since_ms))

    def stranded(self, connection: str, node_id: str, count: int, lost_ms: int) -> None:
        """Tell of MESSAGES_STRANDED: messages wait for a node that is gone.

        Args:
            connection: cluster connection.
            node_id: of the node.
            count: of the messages.
            lost_ms: for how long it was not reached.
        """
        if self._is_heard:
            where = _text("name", connection), _text(STRANDED_NODE, node_id)
            counted = _long(STRANDED_COUNT, count), _long(STRANDED_MS, lost_ms)
            self._tell(NotificationType.MESSAGES_STRANDED, *where, *counted)

    def wrong_login(self, user: str | None, remote: str) -> None:
        """Tell of SECURITY_AUTHENTICATION_VIOLATION."""
        if self._is_heard:
            self._tell(
                NotificationType.SECURITY_AUTHENTICATION_VIOLATION,
                _text(USER, user),
                _text(CERTIFICATE, None),
                _text(REMOTE_ADDRESS, remote),
            )

    def forbidden(self, user: str | None, permission: str, address: str) -> None:
        """Tell of SECURITY_PERMISSION_VIOLATION; `permission` as in security-setting."""
        if self._is_heard:
            self._tell(
                NotificationType.SECURITY_PERMISSION_VIOLATION,
                _text(ADDRESS, address),
                _text(CHECK_TYPE, _check_type(permission)),
                _text(USER, user),
            )


def _filter_text(consumer: Consumer) -> str | None:
    # One that has refused messages has a filter without a text.
    return None if consumer.filter is None else consumer.filter.text or None


def _text(name: str, value: str | None) -> Property:
    return Property(name, PropertyType.NULL if value is None else PropertyType.STRING, value)


def _int(name: str, value: int) -> Property:
    return Property(name, PropertyType.INT, value)


def _long(name: str, value: int) -> Property:
    return Property(name, PropertyType.LONG, value)


def _byte(name: str, value: int) -> Property:
    return Property(name, PropertyType.BYTE, value)


def _check_type(permission: str) -> str:
    """Give CheckType's name.

    >>> _check_type("createDurableQueue")
    'CREATE_DURABLE_QUEUE'
    """
    return "".join(f"_{one}" if one.isupper() else one.upper() for one in permission)
