"""The node that gets everything when this one scales down, as a client sees it.

    connect ─▶ CLUSTER_CONNECT ─▶ … messages … ─▶ SCALEDOWN_ANNOUNCEMENT

Our nodes take duplicate ids by an operation. Artemis's own, updateDuplicateIdCache, takes texts
alone, and refuses every list that comes in a message (2.44: ArrayStoreException): it gets messages.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Final

from broker.bridges.core.window import cache_size_at, window_of
from broker.client.errors import BrokerRefused, NotConnected
from broker.client.session_state import AckMode
from broker.cluster.introduction import authorize
from broker.cluster.peer_bridge import PeerTarget
from broker.errors import ErrorCode
from broker.protocols.core.packet_cluster import ScaleDownAnnouncement
from broker.routing.duplicates import BRIDGE_ID, BRIDGE_PREFIX, DUPLICATE_ID
from broker.routing.queue_ids import ROUTE_TO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.bridges.core.target import Link
    from broker.client.aio.session import AsyncSession
    from broker.client.channel import Channel
    from broker.cluster.introduction import Identity
    from broker.config.cluster import BridgeConfig
    from broker.discovery.topology import Member
    from broker.environment import Environment
    from broker.queues.queue import Queue

__all__ = ["ScaleDownTarget"]

# Duplicate ids in one request: their texts stay far below min-large-message-size.
_IDS_COUNT: Final = 500
_NO_QUEUE: Final = -1


class ScaleDownTarget:
    """See the module's text.

    Args:
        config: how to connect, as a bridge of the cluster connection.
        member: of the cluster.
        identity: who we are.
        environment: clock, ids, chance and network.
        call_timeout_s: seconds that an answer may take.

    Attributes:
        node_id: of the member.
        link: set by connect().
    """

    link: Link

    def __init__(
        self,
        config: BridgeConfig,
        member: Member,
        identity: Identity,
        environment: Environment,
        call_timeout_s: float,
    ) -> None:
        self.node_id = member.node_id
        self._config = config
        self._identity = identity
        self._timeout_s = call_timeout_s
        self._target = PeerTarget(config, member, environment, lambda told: None)
        self._channel: Channel | None = None
        self._session: AsyncSession | None = None
        self._queue_ids: dict[str, int] = {}
        self._windows: dict[str, int] = {}

    @property
    def where(self) -> str:
        """Host and port."""
        return ", ".join(f"{one.host}:{one.port}" for one in self._target.connectors)

    async def connect(self, attempt: int = 0) -> None:
        """Connect once.

        Raises:
            ClientError: it is not reached, is another node, or refuses the credentials.
        """
        link = await self._target.connect(attempt)
        try:
            self._channel = await authorize(link.connection, self._identity, self._timeout_s)
            session = self._session = await link.connection.session(AckMode.PRE)
            found = await session.attribute("broker", "NodeID")
            if found != self.node_id:
                raise NotConnected(f"{link.where} is node {found}, and not {self.node_id}")
        except BaseException:
            link.drop(NotConnected("not needed"))
            raise
        self.link = link
        # Queues may be others after a restart there.
        self._queue_ids.clear()

    @property
    def _managing(self) -> AsyncSession:
        assert self._session is not None, "connect() was before"
        return self._session

    async def begin(self) -> None:
        """Say that this node's messages are about to come: its end is announced at the end.

        Raises:
            ClientError: the connection is lost.
        """
        try:
            await self._managing.manage("broker", "beginScaleDown", self._identity.node_id)
        except BrokerRefused:
            # Artemis, which keeps no account of it.
            return

    async def queue_id(self, queue: Queue, address: str) -> int:
        """Give the id of a queue there, made if it is not there.

        Args:
            queue: of this broker.
            address: that it is bound to.

        Raises:
            ClientError: it cannot be made; the connection is lost.
        """
        known = self._queue_ids.get(queue.name)
        if known is None:
            known = await self._find(queue.name)
            if known == _NO_QUEUE:
                await self._create(queue, address)
                known = await self._find(queue.name)
            if known == _NO_QUEUE:
                raise BrokerRefused(
                    ErrorCode.QUEUE_DOES_NOT_EXIST, f"queue {queue.name} is not there once made"
                )
            self._queue_ids[queue.name] = known
        return known

    async def _find(self, name: str) -> int:
        try:
            return int(await self._managing.attribute(f"queue.{name}", "ID"))
        except BrokerRefused:
            return _NO_QUEUE

    async def _create(self, queue: Queue, address: str) -> None:
        binding = queue.binding
        await self._managing.create_queue(
            queue.name,
            address,
            routing_type=binding.routing_type,
            selector=binding.filter or None,
            durable=queue.is_durable,
            auto_created=binding.auto_created,
            max_consumers=binding.max_consumers,
            purge_on_no_consumers=binding.purge_on_no_consumers,
            exclusive=binding.exclusive,
            last_value=binding.last_value,
            non_destructive=binding.non_destructive,
            ring_size=binding.ring_size,
        )

    async def window(self, address: str) -> int:
        """Give how many messages to an address may be on their way: it has to know all their ids.

        Raises:
            ClientError: the connection is lost.
        """
        known = self._windows.get(address)
        if known is None:
            size = await cache_size_at(self._managing, address)
            known = self._windows[address] = window_of(size, bridge_count=1, uses_detection=True)
        return known

    async def add_duplicate_ids(self, address: str, ids: Sequence[bytes]) -> None:
        """Tell the duplicate ids of an address, the oldest first.

        Raises:
            ClientError: the connection is lost.
        """
        for part in _parts(ids):
            texts = [base64.b64encode(one).decode() for one in part]
            try:
                await self._managing.manage("broker", "addDuplicateIds", address, texts)
            except BrokerRefused:
                await self._send_ids(address, part)

    async def _send_ids(self, address: str, ids: Sequence[bytes]) -> None:
        """Send a message for no queue with each: Artemis remembers its id all the same."""
        is_of_bridges = address.startswith(BRIDGE_PREFIX)
        name = BRIDGE_ID if is_of_bridges else DUPLICATE_ID
        producer = self._managing.producer(address.removeprefix(BRIDGE_PREFIX))
        answers = [
            await producer.post(b"", durable=True, properties={name: one, ROUTE_TO: b""})
            for one in ids
        ]
        await asyncio.gather(*answers)

    def announce(self) -> None:
        """Say that all of this node is there now."""
        assert self._channel is not None, "connect() was before"
        self._channel.post(ScaleDownAnnouncement(self.node_id, self._identity.node_id))

    async def xa_session(self) -> AsyncSession:
        """Give a session for distributed transactions.

        Raises:
            ClientError: the connection is lost.
        """
        return await self.link.connection.session(AckMode.XA)

    async def close(self) -> None:
        """Disconnect."""
        await self.link.close(self._timeout_s)


def _parts(ids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(ids), _IDS_COUNT):
        yield ids[start : start + _IDS_COUNT]
