"""What the cluster connections of a broker use of it, from one start to the next stop.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType
from broker.routing.duplicates import SCALED_DOWN_NODES, KeptNames
from broker.routing.message_copies import mark_original
from broker.routing.postoffice import Routing
from broker.routing.queue_ids import set_queue_ids
from broker.routing.remote_bindings import forget_routes
from broker.selector.filters import parse_filter
from broker.settings.queue_defaults import QueueRequest
from broker.storage.durable import durable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.cluster.cluster_connection import ClusterConnection
    from broker.cluster.grouping_handler import GroupingHandler
    from broker.cluster.redistribution import Redistribution
    from broker.cluster.stranded import Stranded
    from broker.cluster.told import ToldClient
    from broker.config.cluster import GroupingHandler as GroupingConfig
    from broker.model.message import Message
    from broker.model.wire import WireRecord
    from broker.notifications import Binding
    from broker.options import BrokerOptions
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.routing.remote_bindings import RemoteQueueBinding
    from broker.server.bridging import Bridging
    from broker.server.composition import Parts

__all__ = ["Clustering"]

log = logging.getLogger("broker.cluster")


class Clustering:
    """See the module's text.

    Implements `broker.cluster.cluster_connection.ClusteringBroker` and
    `broker.notifications.DemandListener`.

    Args:
        options: of the broker.
        parts: of the broker.
        bridging: what bridges ask.
        node_id: of the broker.
        recorded: what the start found in the bindings journal.
        connected_elsewhere: told the protocol and id of a client that has come to another broker,
            and when.

    Attributes:
        bridging: as given.
        groups: message groups and exclusive queues with one owner in the cluster.
        remote: queues of other brokers.
        redistribution: moves messages to brokers that have consumers for them.
        stranded: messages that wait although a consumer takes them.
    """

    def __init__(
        self,
        options: BrokerOptions,
        parts: Parts,
        bridging: Bridging,
        node_id: str,
        recorded: Iterable[tuple[int, WireRecord]],
        connected_elsewhere: Callable[[str, str, int], object],
    ) -> None:
        # A broker without cluster connections does not load them.
        from broker.cluster.groups import ClusterGroups
        from broker.cluster.redistribution import Redistribution
        from broker.cluster.settling import SETTLES_S
        from broker.cluster.stranded import Stranded
        from broker.routing.joint_moves import JointMoves
        from broker.server.following import Following

        self._following = Following
        security = options.configuration.security
        self.bridging = bridging
        self.duplicates = parts.postoffice.duplicates
        self.scale_down_group = options.configuration.cluster.scale_down_group
        self._tasks: set[asyncio.Task[None]] = set()
        self.cluster_user = security.cluster_user
        self.cluster_password = security.cluster_password
        self.management_address = options.management.address
        self.notification_address = options.notifications.address
        self._parts = parts
        self._settings = options.settings
        self._connected_elsewhere = connected_elsewhere
        self._addresses = addresses = parts.postoffice.addresses
        self._context = parts.storage.new_context()
        self.remote = addresses.remote
        self.remote.on_promoted = self._promoted
        self.redistribution: Redistribution = Redistribution(
            addresses,
            parts.dead_letters,
            JointMoves(parts.postoffice, parts.transactions, parts.storage),
            parts.counters,
            (self.management_address, self.notification_address),
        )
        self.stranded: Stranded = Stranded(
            addresses.queues,
            self.remote,
            asyncio.get_running_loop(),
            options.configuration.watch.stranded_message_period_ms,
            (self.management_address, self.notification_address),
        )
        cluster = options.configuration.cluster
        config = cluster.grouping_handler
        handler = self._grouping_handler(config, recorded)
        self.groups = ClusterGroups(
            node_id=node_id,
            addresses=addresses,
            notifications=parts.notifications,
            mover=parts.dead_letters,
            counters=parts.counters,
            handler=handler,
            own_addresses=(self.management_address, self.notification_address),
            settles_s=SETTLES_S if config is None else config.timeout_ms / 1000,
        )
        distributes = any(one.load_balancing.distributes for one in cluster.cluster_connections)
        if distributes or handler is not None:
            self.groups.start()
            parts.postoffice.grouping = self.groups
            parts.notifications.groups = self.groups
        parts.notifications.demand = self

    def _grouping_handler(
        self, config: GroupingConfig | None, recorded: Iterable[tuple[int, WireRecord]]
    ) -> GroupingHandler | None:
        from broker.cluster.grouping_handler import LocalGroupingHandler, RemoteGroupingHandler
        from broker.config.cluster import GroupingType

        notifications = self._parts.notifications
        if config is None:
            return None
        if config.type is GroupingType.LOCAL:
            return LocalGroupingHandler(config, notifications, self._parts.storage, recorded)
        return RemoteGroupingHandler(config, notifications)

    def leave(self) -> None:
        """The broker stops, and its peers are about to be left."""
        self.groups.leave()

    def stop(self) -> None:
        """Redistribute nothing any more, and look for nothing. Idempotent."""
        self.stranded.stop()
        self.redistribution.stop()
        for task in self._tasks:
            task.cancel()
        self.groups.stop()
        self._parts.notifications.demand = None

    # --- queues and consumers here ------------------------------------------------------------

    def consumers_changed(self, queue: Queue) -> None:
        """A consumer of a queue here came or went."""
        self.redistribution.consumers_changed(queue)
        self.groups.consumers_changed(queue)

    def queue_added(self, queue: Queue) -> None:
        """A queue was made, or changed."""
        self.groups.queue_added(queue)
        self.redistribution.queue_added(queue)

    def queue_removed(self, binding: Binding) -> None:
        """A queue was deleted, here or in another broker."""
        self._parts.postoffice.named_queues.remember(binding)
        self.redistribution.queue_removed(binding.unique_name)
        self.groups.queue_removed(binding.unique_name)

    # --- other brokers ------------------------------------------------------------------------

    def consumers_there_changed(self, binding: RemoteQueueBinding) -> None:
        """Consumers of a queue of another broker came or went."""
        self.redistribution.consumers_there_changed(binding)
        self.groups.consumers_there_changed(binding)

    def client_elsewhere(self, told: ToldClient) -> None:
        """A client has come to another broker: its connection to this one, if any, ends.

        Brokers behind this one are told, too.
        """
        self._connected_elsewhere(told.protocol, told.client_id, told.at_ms)
        self._parts.notifications.session_elsewhere(
            told.client_id, told.protocol, told.remote, told.connection, told.distance + 1
        )

    def _promoted(self, binding: RemoteQueueBinding, instead_of: RemoteQueueBinding | None) -> None:
        """Tell of a queue that is reached by another way now."""
        tell = self._parts.notifications
        if instead_of is not None:
            tell.binding(NotificationType.BINDING_REMOVED, instead_of)
        tell.binding(NotificationType.BINDING_ADDED, binding)
        for filter in binding.consumers():
            tell.remote_consumer(NotificationType.CONSUMER_CREATED, binding, filter)
        # What waits here may go there now.
        self.consumers_there_changed(binding)

    def parse_filter(self, text: str) -> Filter | None:
        """Give the filter of a selector's text.

        Raises:
            BrokerError: it cannot be read.
        """
        return parse_filter(text)

    def new_id(self) -> int:
        """Give an id that no binding, queue or message has."""
        return self._parts.storage.new_id()

    def store_and_forward(self, name: str) -> Queue:
        """Give the store-and-forward queue of this name, made if it is not there.

        Raises:
            BrokerError: it cannot be made.
        """
        found = self._addresses.queues.get(name)
        if found is not None:
            return found
        if name not in self._addresses.by_name:
            self._addresses.create(name, [RoutingType.MULTICAST], is_internal=True)
        request = QueueRequest(
            name=name,
            address=name,
            routing_type=RoutingType.MULTICAST,
            is_durable=True,
            is_internal=True,
            auto_delete=False,
            purge_on_no_consumers=False,
            max_consumers=-1,
        )
        return self._parts.administration.create_queue(request)

    def reroute(self, message: Message, named: list[RemoteQueueBinding] | None, queue: str) -> bool:
        """Let other queues take a message that a peer refuses, for those that it is for are gone.

        Where no queue takes it one is made, or it goes to the dead letter address, as the settings
        say. A subscription that is gone everywhere gets nothing.

        Args:
            message: with the bridge's id, by which it is taken once.
            named: the queues that it is for; None where one of them is not known.
            queue: name of the store-and-forward queue that it waits in.

        Returns:
            Whether it may be acknowledged; false where it has to stay.

        Raises:
            BrokerError: it is refused.
        """
        postoffice = self._parts.postoffice
        forwarding = self._addresses.queues[queue]
        found = postoffice.elsewhere(message, named, forwarding)
        if found.is_queue_missing:
            self._make_queue_for(message)
            found = postoffice.elsewhere(message, named, forwarding)
        if found.is_queue_missing and not self._to_dead_letters(message, queue):
            return False
        if found.bindings:
            copy = postoffice.copy_of(message)
            forget_routes(copy)
            set_queue_ids(copy, [one.binding_id for one in found.bindings])
            postoffice.route(copy, self._context)
        elif found.is_subscription_missing:
            self._parts.counters.stale_routes += 1
        return True

    def _make_queue_for(self, message: Message) -> None:
        address, name = split_fqqn(message.address or "")
        try:
            self._parts.administration.prepare_for_send(address, name, RoutingType.ANYCAST)
        except BrokerError as error:
            if error.code is not ErrorCode.ADDRESS_DOES_NOT_EXIST:
                raise
            log.warning("message %d has no queue: %s", message.message_id, error)

    def _to_dead_letters(self, message: Message, queue: str) -> bool:
        postoffice = self._parts.postoffice
        target = self._settings.match(split_fqqn(message.address or "")[0]).dead_letter_address
        if not target or not postoffice.has_queues(target):
            return False
        copy = postoffice.copy_of(message)
        forget_routes(copy)
        mark_original(copy, message, queue)
        copy.address, copy.routing_type = target, None
        log.warning(
            "AMQ222149: message %d of %s, which no queue takes, goes to dead letter address %s",
            *(message.message_id, queue, target),
        )
        found = postoffice.route(copy, self._context, is_dead=True)
        return found in (Routing.ROUTED, Routing.DUPLICATE)

    async def durable(self) -> None:
        """Return once all that was recorded so far is durable.

        Raises:
            JournalError: the storage has failed.
        """
        await durable(self._context)

    # --- a node has scaled down ---------------------------------------------------------------

    def scaled_down(self, connection: ClusterConnection, node_id: str, target: str) -> None:
        """Let what waits for a node that stops for good wait for the one that gets its messages."""
        queue, left = connection.queue_of(node_id), connection.peers.get(node_id)
        if queue is None or left is None:
            return
        following = self._following(
            connection,
            left,
            queue,
            target,
            mover=self._parts.dead_letters,
            duplicates=self.duplicates,
            is_here=KeptNames(self.duplicates, SCALED_DOWN_NODES).__contains__,
        )
        task = asyncio.get_running_loop().create_task(following.run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("what waits for a node that has scaled down stays", exc_info=error)
