"""A cluster connection: this broker, every other member, and a bridge to each of them.

    Seeking ─▶ topology ─▶ a member with a primary ─▶ its store-and-forward queue ─▶ PeerBridge
                                                  └▶ PeerBindings ─▶ RemoteBindings ─▶ routes

A member that leaves keeps its store-and-forward queue, whose messages wait for it. Its bridge goes
on trying, as the configuration says, whether the topology still has the member or not.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.bridges.core.target import client_options
from broker.cluster.bridge_config import bridge_config
from broker.cluster.introduction import Identity, is_same_place
from broker.cluster.lost_nodes import LostNodes
from broker.cluster.peer_bindings import PeerBindings
from broker.cluster.peer_bridge import PeerBridge, PeerTarget
from broker.cluster.peer_rows import nodes_with_queues, row_of_peer, row_of_queue
from broker.cluster.seeking import Seeking
from broker.cluster.told import subscription_filter
from broker.cluster.unanswered import Unanswered
from broker.discovery.topology import Departure
from broker.errors import BrokerError, ErrorCode
from broker.routing.remote_bindings import STORE_AND_FORWARD, RemoteQueueBinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.bridges.core.ports import BridgingBroker
    from broker.cluster.groups import ClusterGroups
    from broker.cluster.redistribution import Redistribution
    from broker.cluster.stranded import Stranded
    from broker.cluster.told import Told, ToldClient
    from broker.cluster.topology import ClusterTopology
    from broker.config.cluster import BridgeConfig
    from broker.config.cluster_connections import ClusterConnection as ClusterConnectionConfig
    from broker.discovery.topology import Member
    from broker.model.message import Message
    from broker.model.transport_configuration import TransportConfiguration
    from broker.queues.filter import Filter
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCaches
    from broker.routing.remote_bindings import RemoteBindings

__all__ = ["ClusterConnection", "ClusteringBroker"]

log = logging.getLogger("broker.cluster")

# Seconds that bridges may wait for confirmations when the broker stops.
STOP_S: Final = 10.0
_FULL_DISK_RETRY_S = 1.0


class ClusteringBroker(Protocol):
    """What a cluster connection needs of its broker, beside what its bridges need."""

    @property
    def bridging(self) -> BridgingBroker:
        """What bridges ask."""

    @property
    def remote(self) -> RemoteBindings:
        """Bindings of all peers."""

    @property
    def duplicates(self) -> DuplicateCaches:
        """Ids that are kept over restarts."""

    @property
    def scale_down_group(self) -> str | None:
        """Group of brokers that scale down to each other."""

    async def durable(self) -> None:
        """Return once all that was recorded so far is durable.

        Raises:
            Exception: the storage has failed.
        """

    def scaled_down(self, connection: ClusterConnection, node_id: str, target: str) -> None:
        """A node has stopped for good, and its messages went to another one."""

    @property
    def cluster_user(self) -> str:
        """Of the configuration."""

    @property
    def cluster_password(self) -> str:
        """Likewise."""

    @property
    def management_address(self) -> str:
        """Of this broker, and so of its peers."""

    @property
    def notification_address(self) -> str:
        """Likewise."""

    @property
    def redistribution(self) -> Redistribution:
        """What moves messages to nodes that have consumers for them."""

    @property
    def stranded(self) -> Stranded:
        """Messages that wait although a consumer takes them."""

    def parse_filter(self, text: str) -> Filter | None:
        """Give the filter of a selector's text.

        Raises:
            BrokerError: it cannot be read.
        """

    def new_id(self) -> int:
        """Give an id that no binding, queue or message has."""

    def store_and_forward(self, name: str) -> Queue:
        """Give the store-and-forward queue of this name, made if it is not there.

        Raises:
            BrokerError: it cannot be made.
        """

    def reroute(self, message: Message, named: list[RemoteQueueBinding] | None, queue: str) -> bool:
        """Let other queues take a message that a peer refuses; as Clustering.reroute()."""

    def consumers_there_changed(self, binding: RemoteQueueBinding) -> None:
        """Consumers of a queue of another broker came or went."""

    def client_elsewhere(self, told: ToldClient) -> None:
        """A client has come to another broker, with an id that is connected once."""

    @property
    def groups(self) -> ClusterGroups:
        """Message groups of the cluster."""


class ClusterConnection:
    """See the module's text.

    Args:
        config: of it.
        broker: that it belongs to.
        topology: that this broker tells of it.
        own: how this broker is reached.
        listed: gives the connectors that are configured, or discovered now.

    Attributes:
        config: as given.
        topology: as given.
        peers: bridges by the node ids of their members.
    """

    def __init__(
        self,
        config: ClusterConnectionConfig,
        *,
        broker: ClusteringBroker,
        topology: ClusterTopology,
        own: TransportConfiguration,
        listed: Callable[[], Iterable[TransportConfiguration]],
    ) -> None:
        self.config = config
        self.topology = topology
        self.peers: dict[str, PeerBridge] = {}
        self._broker = broker
        self._own = own
        self._listed = listed
        environment = broker.bridging.environment
        self._identity = Identity(
            topology.node_id,
            own,
            broker.cluster_user,
            broker.cluster_password,
            topology.event_id_after,
            broker.scale_down_group,
        )
        untold = (broker.management_address, broker.notification_address)
        self._told_filter = subscription_filter(config.address, config.max_hops, own=untold)
        self._seeking = Seeking(
            config,
            identity=self._identity,
            options=client_options(self.bridge_config("")),
            environment=environment,
            connectors=self._others,
            is_found=self._is_found,
            hear=topology.told,
            lost=topology.lost,
        )
        self._task: asyncio.Task[None] | None = None
        self._made_s = asyncio.get_running_loop().time()
        self._unanswered: dict[str, Unanswered] = {}
        self._lost_nodes = LostNodes(
            config.name,
            self._waiting,
            timers=asyncio.get_running_loop(),
            notifications=broker.bridging.notifications,
        )
        # Of peers that are lost, until they are given up.
        self._lost: dict[str, asyncio.TimerHandle] = {}

    @property
    def name(self) -> str:
        """As configured."""
        return self.config.name

    @property
    def is_joined(self) -> bool:
        """Whether all peers that it knows have told what they have."""
        if not all(one.bindings.is_told for one in self.peers.values()):
            return False
        expected = sum(not self._seeking.is_own(one) for one in self._others())
        if self.config.discovery_group_ref is not None:
            # Who is silent so far may be there.
            expected = max(expected, 1)
        return len(self.peers) >= expected

    def is_awaited(self, node_id: str) -> bool:
        """Whether a peer is about to tell what it has."""
        peer = self.peers.get(node_id)
        if peer is None or peer.is_left:
            return False
        return not peer.bindings.is_told and not peer.bindings.is_given_up

    @property
    def is_started(self) -> bool:
        """Whether it connects to other members."""
        return self._task is not None

    # --- lifecycle ----------------------------------------------------------------------------

    def start(self) -> None:
        """Look for the other members, and connect to each. Nothing happens to one that does."""
        if self._task is not None:
            return
        self.topology.started_again()
        self.topology.listen(self._hear)
        for member in self.topology.members:
            self._hear(member)
        self._task = asyncio.get_running_loop().create_task(self._seeking.run())
        self._task.add_done_callback(self._ended)
        self._lost_nodes.start()
        self._broker.groups.settling.watch(self)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("cluster-connection %s has ended", self.config.name, exc_info=error)

    async def stop(self) -> None:
        """Leave all members; what waits for them stays in its queues. Idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        self._lost_nodes.stop()
        self.topology.unlisten(self._hear)
        self._broker.groups.settling.leave(self)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for timer in self._lost.values():
            timer.cancel()
        self._lost.clear()
        peers, self.peers = self.peers, {}
        for peer in peers.values():
            peer.bindings.clear()
        await asyncio.gather(*(one.stop(within_s=STOP_S) for one in peers.values()))

    def look(self) -> None:
        """Brokers were discovered, or are silent."""
        self._seeking.look()

    def queue_of(self, node_id: str) -> Queue | None:
        """Give the store-and-forward queue of a node; None where there is none."""
        return self._broker.bridging.queues.get(f"{STORE_AND_FORWARD}{self.config.name}.{node_id}")

    def unanswered(self, node_id: str, queue: Queue) -> Unanswered:
        """Give what a node may have of its store-and-forward queue."""
        found = self._unanswered.get(node_id)
        if found is None:
            found = self._unanswered[node_id] = Unanswered(
                queue, node_id, self._broker.bridging.node_uuid.bytes, self._broker.duplicates
            )
        return found

    def forget(self, node_id: str) -> None:
        """Know nothing of a node any more; its bridge has stopped.

        It is met anew if it comes back.
        """
        if (later := self._lost.pop(node_id, None)) is not None:
            later.cancel()
        self._unanswered.pop(node_id, None)
        peer = self.peers.pop(node_id, None)
        if peer is not None:
            peer.bindings.clear()
            self._broker.groups.settling.peers_changed()

    def _nodes_with_queues(self) -> dict[str, Queue]:
        return nodes_with_queues(self._broker.bridging.queues, self.config.name)

    def _waiting(self) -> Iterable[tuple[str, int, float]]:
        """Give of each node that is not reached what waits for it, and for how long it was not."""
        now_s = asyncio.get_running_loop().time()
        for node_id, queue in self._nodes_with_queues().items():
            peer = self.peers.get(node_id)
            lost_s = self._made_s if peer is None else peer.lost_at_s
            if lost_s is not None:
                yield node_id, queue.message_count, now_s - lost_s

    def peer_rows(self) -> list[dict[str, object]]:
        """Give what is known of each other node, as values for JSON; of those too that are gone."""
        now_s = asyncio.get_running_loop().time()
        is_told = self._lost_nodes.is_told
        rows = [
            row_of_peer(one, now_s, is_stranded=is_told(one.node_id)) for one in self.peers.values()
        ]
        lost_ms, reason = (
            int((now_s - self._made_s) * 1000),
            "not seen since the start of this broker",
        )
        return rows + [
            row_of_queue(node_id, queue, lost_ms, reason, is_stranded=is_told(node_id))
            for node_id, queue in self._nodes_with_queues().items()
            if node_id not in self.peers
        ]

    # --- members ------------------------------------------------------------------------------

    def _others(self) -> list[TransportConfiguration]:
        return [one for one in self._listed() if not is_same_place(one, self._own)]

    def _is_found(self, connector: TransportConfiguration) -> bool:
        """Whether a connected member is reached by this connector."""
        for peer in self.peers.values():
            places = peer.peer_target.connectors
            if peer.is_connected and any(is_same_place(one, connector) for one in places):
                return True
        return False

    def _hear(self, told: Member | Departure) -> None:
        if isinstance(told, Departure) or told.node_id == self.topology.node_id:
            # A member that is gone is tried on: whether it is there, its bridge finds out itself.
            return
        primary = told.primary
        if primary is None:
            return
        peer = self.peers.get(told.node_id)
        if peer is not None:
            peer.peer_target.update(told)
            if not peer.is_started:
                # No attempt was left; now it has come back.
                peer.start()
            return
        static = self.config.static_connectors
        is_listed = any(is_same_place(one, primary) for one in self._others())
        if static is None or not static.allow_direct_connections_only or is_listed:
            self._meet(told)

    def _meet(self, member: Member) -> None:
        """Connect to a member; later, where a full disk has no room for its queue."""
        if (later := self._lost.pop(member.node_id, None)) is not None:
            later.cancel()
        try:
            self._connect(member)
        except BrokerError as error:
            if error.code is not ErrorCode.ADDRESS_FULL:
                raise
            log.warning(
                "cluster-connection %s: node %s: %s", self.config.name, member.node_id, error
            )
            loop = asyncio.get_running_loop()
            self._lost[member.node_id] = loop.call_later(_FULL_DISK_RETRY_S, self._hear, member)

    def bridge_config(self, queue: str) -> BridgeConfig:
        """Give how a queue is forwarded to a member, as the configuration of a bridge."""
        broker = self._broker
        return bridge_config(
            self.config, queue, user=broker.cluster_user, password=broker.cluster_password
        )

    def _connect(self, member: Member) -> None:
        broker, node_id = self._broker, member.node_id
        name = f"{STORE_AND_FORWARD}{self.config.name}.{node_id}"
        queue = broker.store_and_forward(name)
        config = self.bridge_config(name)

        def make(told: Told, filter: Filter | None) -> RemoteQueueBinding:
            return RemoteQueueBinding(
                address=told.address,
                cluster_name=told.cluster_name,
                routing_name=told.routing_name,
                binding_id=broker.new_id(),
                remote_id=told.binding_id,
                filter=filter,
                distance=told.distance + 1,
                forwarding=queue,
                mode=self.config.load_balancing,
                routing_type=told.routing_type,
            )

        bindings = PeerBindings(
            name,
            node_id=self.topology.node_id,
            make=make,
            registry=broker.remote,
            parse_filter=broker.parse_filter,
            notifications=broker.bridging.notifications,
            on_demand=broker.consumers_there_changed,
            on_group=broker.groups.told,
            on_told=lambda: self._told_all(node_id),
        )
        peer = PeerBridge(
            config,
            node_id,
            PeerTarget(config, member, broker.bridging.environment, self.topology.told),
            broker.bridging,
            identity=self._identity,
            call_timeout_s=self.config.call_timeout_ms / 1000,
            notification_address=broker.notification_address,
            told_filter=self._told_filter,
            told_addresses=self.config.address,
            bindings=bindings,
            unanswered=self.unanswered(node_id, queue),
            durable=broker.durable,
            reroute=broker.reroute,
            on_changed=lambda: self._changed(node_id),
            on_unreached=lambda: self.topology.lost(node_id),
            on_scaled_down=lambda target: broker.scaled_down(self, node_id, target),
            on_client=broker.client_elsewhere,
        )
        self.peers[node_id] = peer
        self._wait_for(node_id)
        peer.start()

    def _changed(self, node_id: str) -> None:
        """A peer was connected, or lost."""
        peer = self.peers.get(node_id)
        if peer is None:
            return
        if peer.lost_at_s is None:
            if (lost := self._lost.pop(node_id, None)) is not None:
                lost.cancel()
            self.topology.reached(node_id, peer)
        else:
            self.topology.disconnected(peer)
            self._seeking.look()
            self._wait_for(node_id)
            self._broker.groups.settling.peers_changed()

    def _wait_for(self, node_id: str) -> None:
        if node_id not in self._lost:
            delay_s = self.config.connection_ttl_ms / 1000
            loop = asyncio.get_running_loop()
            self._lost[node_id] = loop.call_later(delay_s, self._give_up, node_id)

    def _told_all(self, node_id: str) -> None:
        peer, groups = self.peers[node_id], self._broker.groups
        if groups.is_started and not peer.bindings.is_pinning and not groups.pins_alone:
            log.warning(
                "%s: this node does not keep to the owners of message groups: what is sent to it "
                "is delivered there or elsewhere; a <grouping-handler> on all nodes pins groups",
                peer.name,
            )
        groups.settling.peers_changed()

    def _give_up(self, node_id: str) -> None:
        """Others may take over what a peer alone delivers."""
        self._lost.pop(node_id, None)
        peer = self.peers.get(node_id)
        if peer is not None:
            peer.bindings.give_up()
            self._broker.groups.settling.peers_changed()
