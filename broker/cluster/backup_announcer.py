"""A broker of a pair that waits for its place is told to the cluster as the node's backup.

    for each broker that a cluster connection names or hears, until the store is to be had:
    connect ─▶ CLUSTER_CONNECT(user, password) ─▶ NODE_ANNOUNCE(backup) ─▶ lost ─▶ once more

So clients learn of the backup before they need it, and a backup of Artemis's that serves gives its
place back (BackupManager). A primary that waits for its place announces itself likewise.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING

from broker.bridges.core.target import transport_of
from broker.client.aio.connection import AsyncConnection
from broker.client.aio.waiting import settled
from broker.client.channel import Channel
from broker.client.errors import ClientError, NotConnected
from broker.client.options import ClientOptions
from broker.client.topology import Topology
from broker.cluster.connectors import told_connector
from broker.discovery.group import DiscoveryGroup
from broker.errors import BrokerError
from broker.protocols.core.packet_cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from broker.protocols.core.packet_connection import CLUSTER_CHANNEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.client.options import ClientSettings
    from broker.config.cluster import ClusterConfig
    from broker.config.cluster_connections import ClusterConnection
    from broker.config.transport import TransportConfig
    from broker.discovery.entries import DiscoveryEntry
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet import Packet

__all__ = ["BackupAnnouncer", "ClusterUser"]

log = logging.getLogger("broker")


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterUser:
    """What brokers of a cluster show each other."""

    name: str
    password: str = dataclasses.field(repr=False)


class BackupAnnouncer:
    """All cluster connections of a broker that waits.

    Args:
        config: of the broker.
        user: of the cluster.
        environment: clock, ids, chance and network.
    """

    def __init__(self, config: ClusterConfig, user: ClusterUser, environment: Environment) -> None:
        self._config = config
        self._user = user
        self._environment = environment
        self._announcements: list[_Announcement] = []

    def start(self, node_id: str) -> None:
        """Announce this broker until stop(). Idempotent.

        Args:
            node_id: of the pair.
        """
        if self._announcements:
            return
        by_name = {one.name: one for one in self._config.connectors}
        for connection in self._config.cluster_connections:
            own = by_name.get(connection.connector_ref)
            if own is None:
                continue  # AMQ222217, told once it serves.
            one = _Announcement(connection, own, node_id, self._user, self._environment)
            self._announcements.append(one)
            group = self._discovery(connection)
            if group is None:
                static = connection.static_connectors
                names = () if static is None else static.connector_refs
                listed = (*connection.members, *(by_name[name] for name in names))
                one.tell(map(transport_of, listed))
            else:
                one.listen(group)

    def _discovery(self, connection: ClusterConnection) -> DiscoveryGroup | None:
        for discovery in self._config.discovery_groups:
            if discovery.name == connection.discovery_group_ref:
                try:
                    endpoint = discovery.open_with(self._environment)
                except (ValueError, BrokerError) as error:
                    log.error("discovery group %s: %s", discovery.name, error)
                    return None
                return DiscoveryGroup(
                    discovery.name,
                    endpoint,
                    refresh_timeout_ms=discovery.refresh_timeout_ms,
                    monotonic_s=self._environment.clock.monotonic_s,
                )
        return None

    def served_at(self) -> dict[str, TransportConfiguration]:
        """Give how the one that this broker waits for is reached, by cluster connection."""
        found = ((one.name, one.served_at) for one in self._announcements)
        return {name: connector for name, connector in found if connector is not None}

    async def stop(self) -> None:
        """Announce it no more. Idempotent."""
        announcements, self._announcements = self._announcements, []
        for one in announcements:
            await one.stop()


class _Announcement:
    """One cluster connection. Implements `broker.client.aio.connection.ConnectingClient`."""

    def __init__(
        self,
        connection: ClusterConnection,
        own: TransportConfig,
        node_id: str,
        user: ClusterUser,
        environment: Environment,
    ) -> None:
        self.options = ClientOptions(
            connection_ttl=connection.connection_ttl_ms,
            check_period=connection.check_period_ms,
            call_timeout=connection.call_timeout_ms,
            retry_interval=connection.retry_interval_ms,
            retry_interval_multiplier=connection.retry_interval_multiplier,
            max_retry_interval=connection.max_retry_interval_ms,
        )
        self.environment = environment
        self.topology = Topology()
        self.connectors: tuple[TransportConfiguration, ...] = ()
        self._own = told_connector(own)
        self._node_id = node_id
        self._user = user
        self.name = connection.name
        self._group: DiscoveryGroup | None = None
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._starting: asyncio.Task[None] | None = None
        self._told_refusals: set[str] = set()

    # What a connection asks of its client.

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the options with some changed."""
        return dataclasses.replace(self.options, **changes)

    def forget(self, connection: AsyncConnection) -> None:
        """Nothing: each connection has a task that closes it."""

    @property
    def served_at(self) -> TransportConfiguration | None:
        """Where the one that has the node's place is reached, as it has told; None before."""
        member = self.topology.member(self._node_id)
        found = None if member is None else member.primary
        return None if found == self._own else found

    # Whom to tell.

    def listen(self, group: DiscoveryGroup) -> None:
        """Tell all brokers that are heard in a group."""
        self._group = group
        group.listen(self._heard)
        self._starting = asyncio.get_running_loop().create_task(self._start(group))

    async def _start(self, group: DiscoveryGroup) -> None:
        try:
            await group.start()
        except OSError as error:
            log.error("unable to start discovery group %s: %s", group.name, error)

    def _heard(self, entries: tuple[DiscoveryEntry, ...]) -> None:
        self.tell(connector for entry in entries for connector in entry.connectors)

    def tell(self, connectors: Iterable[TransportConfiguration]) -> None:
        """Tell these brokers, each as long as it is connected to and again afterwards."""
        loop = asyncio.get_running_loop()
        for connector in connectors:
            place = connector.host, connector.port
            if place not in self._tasks and place != (self._own.host, self._own.port):
                self._tasks[place] = loop.create_task(self._keep_told(connector))

    async def _keep_told(self, connector: TransportConfiguration) -> None:
        attempt = 0
        while True:
            try:
                await self._tell_once(connector)
                attempt = 0
            except ClientError as error:
                # Of a pair and others, most of the time some do not run.
                log.debug("not announced at %s:%s: %s", connector.host, connector.port, error)
            await asyncio.sleep(self.options.retry_delay_s(attempt))
            attempt += 1

    async def _tell_once(self, connector: TransportConfiguration) -> None:
        """Announce this broker to one, and return once the connection is lost.

        Raises:
            ClientError: it cannot be reached, or refuses.
        """
        connection = AsyncConnection(self, connector)
        lost = asyncio.Event()
        connection.on_ended = lambda error: lost.set()
        await connection.open_to(connector)
        try:
            channel = connection.link.open_channel(Channel(CLUSTER_CHANNEL, _ignore))
            asked = ClusterConnect(self._user.name, self._user.password)
            reply = channel.call(asked, ClusterConnectReply)
            answer = await settled(reply, self.options.call_timeout_s, "the cluster's user")
            assert isinstance(answer, ClusterConnectReply)
            self._check(connector, is_authorized=answer.authorized)
            now_ms = self.environment.clock.now_ms()
            channel.post(NodeAnnounce(self._node_id, None, True, now_ms, self._own, None))
            log.info(
                "AMQ221031: backup announced at %s:%s (cluster-connection %s)",
                connector.host,
                connector.port,
                self.name,
            )
            await lost.wait()
        finally:
            await connection.close()

    def _check(self, connector: TransportConfiguration, *, is_authorized: bool) -> None:
        where = f"{connector.host}:{connector.port}"
        if is_authorized:
            self._told_refusals.discard(where)
            return
        if where not in self._told_refusals:
            self._told_refusals.add(where)
            log.warning(
                "%s refuses the cluster user and password: it does not tell clients of this "
                "backup. Set the same <cluster-user> and <cluster-password> on all nodes",
                where,
            )
        raise NotConnected("the cluster's user or password is refused")

    async def stop(self) -> None:
        """End all connections."""
        group, self._group = self._group, None
        if group is not None:
            group.unlisten(self._heard)
            group.stop()
        tasks = [*self._tasks.values(), *([] if self._starting is None else [self._starting])]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ignore(packet: Packet, size: int) -> None:
    """What a broker says on the channel of the cluster besides the answer."""
