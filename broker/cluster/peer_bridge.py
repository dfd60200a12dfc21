"""The bridge behind the store-and-forward queue of one peer, and what it hears over the same link.

    connect ─▶ introduce ─▶ is it that node? ─▶ notification queue there ─▶ sendQueueInfoToQueue
            ─▶ forward: _AMQ_ROUTE_TO<queue> becomes _AMQ_ROUTE_TO ─▶ … ─▶ lost: connect again

Forwarding, confirmations, duplicate ids and attempts are those of a core bridge. A message that the
peer refuses, because its queue or address is gone there, goes to another queue here or elsewhere.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
import struct
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.bridges.core.bridge import CoreBridge
from broker.bridges.core.outgoing import BRIDGE_ID, OutgoingMessages, TransformFailed
from broker.bridges.core.target import Link, Target
from broker.bridges.core.window import cache_size_at, window_of
from broker.client.errors import BrokerRefused, ClientError, NotConnected
from broker.client.session_state import AckMode
from broker.cluster.introduction import HeardTopology, introduce
from broker.cluster.told import ToldClient, read_told
from broker.errors import BrokerError, ErrorCode
from broker.model.address import split_fqqn
from broker.model.routing_type import RoutingType
from broker.protocols.core.packet_connection import DisconnectReason
from broker.routing.queue_ids import ROUTE_TO
from broker.routing.remote_bindings import SENT_TO, forget_routes
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from broker.bridges.core.ports import BridgingBroker
    from broker.client.aio.received import AsyncReceived
    from broker.client.aio.session import AsyncSession
    from broker.cluster.introduction import Identity
    from broker.cluster.peer_bindings import PeerBindings
    from broker.cluster.unanswered import Unanswered
    from broker.config.cluster import BridgeConfig
    from broker.discovery.topology import Departure, Member
    from broker.environment import Environment
    from broker.model.message import Message
    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet_connection import Disconnect
    from broker.routing.remote_bindings import RemoteQueueBinding

__all__ = ["PeerBridge", "PeerTarget"]

log = logging.getLogger("broker.cluster")

_ID: Final = struct.Struct(">q")
# What the peer says when the queue that a message names, or its address, is gone.
_GONE: Final = (ErrorCode.ADDRESS_DOES_NOT_EXIST, ErrorCode.QUEUE_DOES_NOT_EXIST)


def scale_down_target(packet: Disconnect) -> str | None:
    """Give the node to which the messages of one that disconnects go; None if they stay there."""
    if packet.reason == DisconnectReason.SCALE_DOWN and packet.target_node_id:
        return packet.target_node_id
    return packet.scale_down_node_id or None


async def _window_at(session: AsyncSession, address: str) -> int:
    """Give how many messages for an address may be on their way: the peer knows all their ids.

    Raises:
        ClientError: the connection is lost.
    """
    size = await cache_size_at(session, split_fqqn(address)[0])
    return window_of(size, bridge_count=1, uses_detection=True)


class PeerMessages(OutgoingMessages):
    """What a peer gets of a message of its store-and-forward queue.

    Args:
        config: of the bridge.
        node_id: of this broker.
        peer_id: of the peer.
    """

    __slots__ = ("_property", "_sent_to")

    def __init__(self, config: BridgeConfig, node_id: UUID, peer_id: str) -> None:
        super().__init__(config, node_id, None)
        self._property = ROUTE_TO + config.queue_name
        self._sent_to = SENT_TO + peer_id

    def ids_of(self, message: Message) -> bytes | None:
        """Give the ids of the peer's bindings that a message names."""
        ids = message.get(self._property)
        return ids if isinstance(ids, bytes) and ids else None

    def make(self, message: Message) -> Message:
        """Give the copy that names the peer's queues alone."""
        ids = self.ids_of(message)
        copy = super().make(message)
        forget_routes(copy)
        known = copy.get(self._sent_to)
        if isinstance(known, bytes):
            # The peer may have it by this id: another one would double it.
            copy.remove(self._sent_to)
            copy.set_bytes(BRIDGE_ID, known)
        if ids is None:
            # An operator put it here: the peer routes it by its address.
            return copy
        copy.set_bytes(ROUTE_TO, ids)
        return copy


class PeerTarget(Target):
    """Where a peer is: its primary, and its backup.

    Args:
        config: of the bridge.
        member: as the topology has it.
        environment: clock, ids, chance and network.
        hear: called with what it says of the members of the cluster.
    """

    def __init__(
        self,
        config: BridgeConfig,
        member: Member,
        environment: Environment,
        hear: Callable[[Member | Departure], object],
    ) -> None:
        super().__init__(config, (), environment)
        self._hear = hear
        self.update(member)

    def update(self, member: Member) -> None:
        """It is reached in another way now."""
        found = [one for one in (member.primary, member.backup) if one is not None]
        if found:
            self.connectors = tuple(found)

    async def connect(self, attempt: int) -> Link:
        """Connect once, and open a session; as Target.connect()."""
        # What another connection told may be of a node that was here before.
        self.topology = HeardTopology(self._hear)
        return await super().connect(attempt)

    def _next(self, attempt: int) -> TransportConfiguration:
        return self.connectors[attempt % len(self.connectors)]


class PeerBridge(CoreBridge):
    """See the module's text. An address that takes nothing does not keep the others waiting.

    Args:
        config: of the bridge.
        node_id: of the peer.
        target: where it is.
        broker: that it belongs to.
        identity: who we are.
        call_timeout_s: seconds that an answer may take.
        notification_address: of this broker, and so of its peers.
        told_filter: selects what is told.
        told_addresses: of the cluster connection.
        bindings: what is known of the peer's queues.
        unanswered: of its queue.
        durable: returns once all that was recorded so far is durable.
        reroute: called with a copy of a message that the peer refuses, the queues that it is for
            and the name of its queue; whether others have it now.
        on_changed: called when it was connected or lost.
        on_unreached: called when a connection told of the peer, and was lost before it was of use.
        on_scaled_down: called with the node id of the broker that the peer's messages went to.

    Attributes:
        node_id: as given.
        unanswered: as given.
        scaled_down_to: the node that the peer's messages went to, when it stopped for good.
        is_left: the peer has ended the connection in good order, and was not reached since.
        is_other_node: another node answered where the peer was.
        lost_at_s: since when it is not connected, by the loop's clock; None while it is.
        sent_back_count: messages that the peer refused.
    """

    def __init__(
        self,
        config: BridgeConfig,
        node_id: str,
        target: PeerTarget,
        broker: BridgingBroker,
        *,
        identity: Identity,
        call_timeout_s: float,
        notification_address: str,
        told_filter: str,
        told_addresses: str,
        bindings: PeerBindings,
        unanswered: Unanswered,
        durable: Callable[[], Awaitable[None]],
        reroute: Callable[[Message, list[RemoteQueueBinding] | None, str], bool],
        on_changed: Callable[[], object],
        on_unreached: Callable[[], object],
        on_scaled_down: Callable[[str], object] = lambda target: None,
        on_client: Callable[[ToldClient], object] = lambda told: None,
    ) -> None:
        self._messages = PeerMessages(config, broker.node_uuid, node_id)
        super().__init__(config, config.name, (), broker, outgoing=self._messages, target=target)
        self._holds_back = True
        # Addresses for which it was told that a message stays.
        self._stays: set[str] = set()
        self.node_id = node_id
        self.peer_target = target
        self._identity = identity
        self._call_timeout_s = call_timeout_s
        self._notification_address = notification_address
        self._told_filter = told_filter
        self._told_addresses = told_addresses
        self.bindings = bindings
        self.unanswered = unanswered
        self._durable = durable
        self._reroute = reroute
        self._on_changed = on_changed
        self._on_unreached = on_unreached
        self._on_scaled_down = on_scaled_down
        self._on_client = on_client
        self.scaled_down_to: str | None = None
        self.is_left = self.is_other_node = False
        # The event id that the peer was told last.
        self._said: int | None = None
        self.lost_at_s: float | None = self._loop.time()
        self.sent_back_count = 0

    async def _connect(self, failures: int) -> None:
        try:
            await super()._connect(failures)
        except ClientError:
            is_told = self.peer_target.topology.member(self.node_id) is not None
            # Another node in its place tells of it as of any member.
            if is_told and not self.is_other_node:
                self._on_unreached()
            raise

    async def _prepare(self, link: Link) -> None:
        self._said = await introduce(
            link.connection, self._identity, self._call_timeout_s, self._said
        )
        session = await link.connection.session(AckMode.PRE)
        found = await session.attribute("broker", "NodeID")
        if found != self.node_id:
            self.is_other_node = True
            self._on_changed()
            raise NotConnected(
                f"{link.where} is node {found}, and not {self.node_id}: what waits for that stays"
            )
        self.is_other_node = self.is_left = False
        self._stays.clear()
        await self._listen(link, session)
        if self.config.use_duplicate_detection:
            self._window_at = partial(_window_at, session)
        await self._record_link()
        self.lost_at_s = None
        self.scaled_down_to = None
        self._on_changed()

    async def _record_link(self) -> None:
        """Record that messages may be sent from now on: a start has to know of it."""
        if self.unanswered.is_linked:
            return
        try:
            self.unanswered.linked()
        except BrokerError as error:
            raise NotConnected(f"{self.name} cannot record what it sends: {error}") from error
        await self._durable()

    async def ask(self, operation: str, *arguments: object) -> object:
        """Call an operation of the peer's management, of the broker itself.

        Raises:
            ClientError: it refuses, or is not connected.
        """
        link = self._link
        if link is None:
            raise NotConnected(f"{self.name} is not connected")
        session = await link.connection.session(AckMode.PRE)
        try:
            answer: object = await session.manage(
                "broker", operation, *arguments, timeout_s=self._call_timeout_s
            )
        finally:
            await session.close()
        return answer

    async def _listen(self, link: Link, session: AsyncSession) -> None:
        """Have the peer tell of its queues and consumers."""
        name = f"notif.{self._broker.environment.ids.random_uuid()}.{self.config.name}"
        name = name.replace("::", "_")
        await session.create_queue(
            name,
            self._notification_address,
            routing_type=RoutingType.MULTICAST,
            selector=self._told_filter,
            durable=False,
            temporary=True,
        )

        def told(received: AsyncReceived) -> None:
            # A link that is lost already tells nothing any more.
            if not link.lost.done():
                self._told(received.message)

        consumer = await session.consumer(name, listener=told)
        # With the link, or for a fault here: in both cases all is told anew on the next one.
        consumer.on_error = link.lose
        await session.manage(
            "broker",
            "sendQueueInfoToQueue",
            name,
            self._told_addresses,
            timeout_s=self._call_timeout_s,
        )

    def _told(self, message: Message) -> None:
        try:
            told = read_told(message)
            if isinstance(told, ToldClient):
                self._on_client(told)
            elif told is not None:
                self.bindings.apply(told)
        except (ValueError, BrokerError) as error:
            log.error("%s: what the peer tells cannot be read: %s", self.name, error)

    def _lost(self, link: Link, reason: Exception) -> None:
        self.is_left = link.connection.disconnect is not None
        self.lost_at_s = self._loop.time()
        self._note_unanswered()
        packet = link.connection.disconnect
        target = None if packet is None else scale_down_target(packet)
        if self.is_left:
            self.bindings.clear()
        else:
            self.bindings.disconnected()
        self._on_changed()
        if target is not None:
            self.scaled_down_to = target
            self._on_scaled_down(target)

    def _close_near_side(self) -> None:
        self._note_unanswered()
        super()._close_near_side()

    def _note_unanswered(self) -> None:
        """What the peer may have is recorded: a start, or an operator, has to know of it."""
        forwarding = self._forwarding
        if forwarding is None or not self.unanswered.is_linked:
            return
        try:
            self.unanswered.unlinked(forwarding.unanswered_ids)
        except (JournalError, BrokerError) as error:
            # It is recorded still that the link is up: a start takes the oldest for sent.
            log.warning("%s: what the peer may have is not recorded: %s", self.name, error)

    def _send_back(self, message: Message, error: BrokerRefused) -> bool:
        ids = self._messages.ids_of(message)
        if error.code not in _GONE or ids is None:
            return False
        named = self.bindings.named(message, self.config.queue_name)
        for (remote_id,) in _ID.iter_unpack(ids):
            self.bindings.is_stale(remote_id)
        try:
            copy = message.copy()
            # Once, also where this broker ends before the message is acknowledged here.
            copy.set_bytes(BRIDGE_ID, self._messages.duplicate_id(message.message_id))
            is_done = self._reroute(copy, named, self.config.queue_name)
        except (BrokerError, TransformFailed) as failure:
            log.error("%s: message %d stays: %s", self.name, message.message_id, failure)
            return False
        address = message.address or ""
        if not is_done:
            if address not in self._stays:
                self._stays.add(address)
                log.error(
                    "%s: message %d to %s stays, no queue takes it: make one, or set a "
                    "dead-letter-address: %s",
                    *(self.name, message.message_id, address, error),
                )
            return False
        self._stays.discard(address)
        self.sent_back_count += 1
        log.warning(
            "%s: the peer refuses message %d to %s, other queues get it: %s",
            *(self.name, message.message_id, message.address, error),
        )
        return True
