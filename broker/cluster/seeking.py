"""Brokers that are configured or discovered, and not known as members yet: looked for.

    connectors ─▶ those that lead to no connected member ─▶ connect, introduce, hear the members
               ─▶ the topology knows them ─▶ their bridges connect ─▶ the connection is closed

It is looked for without end: Artemis gives up after `topology-scanner-attempts`, here a warning is
logged then, once.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from typing import TYPE_CHECKING, Final

from broker.client.aio.connection import AsyncConnection
from broker.client.errors import ClientError, NotConnected
from broker.client.session_state import AckMode
from broker.cluster.introduction import HeardTopology, introduce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.client.options import ClientOptions, ClientSettings
    from broker.client.topology import Topology
    from broker.cluster.introduction import Identity
    from broker.config.cluster_connections import ClusterConnection
    from broker.discovery.topology import Departure, Member
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["Seeking", "SeekingClient"]

log = logging.getLogger("broker.cluster")

# How long a connection stays for a bridge to take its place.
_STAY_S: Final = 5.0
_LOOK_S: Final = 0.05


class SeekingClient:
    """Of a connection that only looks. Implements `broker.client.aio.connection.ConnectingClient`.

    Args:
        options: of the connection.
        environment: clock, ids, chance and network.
        topology: takes what the broker tells of the members.
    """

    def __init__(
        self, options: ClientOptions, environment: Environment, topology: Topology
    ) -> None:
        self.options = options
        self.environment = environment
        self.topology = topology
        self.connectors: tuple[TransportConfiguration, ...] = ()

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the options with some changed."""
        return dataclasses.replace(self.options, **changes)

    def forget(self, connection: AsyncConnection) -> None:
        """Nothing: who has a connection closes it."""


class Seeking:
    """See the module's text.

    Args:
        config: of the cluster connection.
        identity: who we are.
        options: of connections.
        environment: clock, ids, chance and network.
        connectors: gives those that are configured, or discovered now.
        is_found: whether a connector needs not be looked for: it is that of a connected member.
        hear: called with what brokers say of the members.
        lost: called with the node id of a broker whose connection was lost before its bridge came.
    """

    def __init__(
        self,
        config: ClusterConnection,
        *,
        identity: Identity,
        options: ClientOptions,
        environment: Environment,
        connectors: Callable[[], Iterable[TransportConfiguration]],
        is_found: Callable[[TransportConfiguration], bool],
        hear: Callable[[Member | Departure], object],
        lost: Callable[[str], object],
    ) -> None:
        self._config = config
        self._identity = identity
        self._options = options
        self._environment = environment
        self._connectors = connectors
        self._is_found = is_found
        self._hear = hear
        self._lost = lost
        self._reasons: dict[tuple[str, int], str] = {}
        # Places of this broker itself.
        self._own: set[tuple[str, int]] = set()
        self._wake = asyncio.Event()

    def look(self) -> None:
        """Look again soon: what is configured or known has changed."""
        self._wake.set()

    def is_own(self, connector: TransportConfiguration) -> bool:
        """Whether a connector has led to this broker itself."""
        return (connector.host, connector.port) in self._own

    async def run(self) -> None:
        """Look for them until it is cancelled."""
        attempts = 0
        most = self._config.topology_scanner_attempts
        while True:
            self._wake.clear()
            missing = [
                one
                for one in self._connectors()
                if not self.is_own(one) and not self._is_found(one)
            ]
            await asyncio.gather(*map(self._seek, missing))
            attempts = attempts + 1 if missing else 0
            if 0 < most == attempts and not all(map(self._is_found, missing)):
                log.warning(
                    "AMQ224141: cluster-connection %s: incomplete cluster topology: after %d "
                    "attempts %s are not found",
                    self._config.name,
                    attempts,
                    ", ".join(f"{one.host}:{one.port}" for one in missing),
                )
            delay_s = self._options.retry_delay_s(max(0, attempts - 1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._wake.wait()
            await asyncio.sleep(min(delay_s, self._config.retry_interval_ms / 1000))

    async def _seek(self, connector: TransportConfiguration) -> None:
        place = (connector.host, connector.port)
        heard = HeardTopology(self._hear)
        connection = AsyncConnection(
            SeekingClient(self._options, self._environment, heard), connector
        )
        try:
            await connection.open_to(connector)
            timeout_s = self._config.call_timeout_ms / 1000
            said = await introduce(connection, self._identity, timeout_s)
        except ClientError as error:
            connection.fail(NotConnected("not needed"))
            self._left(connection)
            reason = str(error)
            if self._reasons.get(place) != reason:
                self._reasons[place] = reason
                log.info(
                    "cluster-connection %s: %s:%d is not found: %s",
                    *(self._config.name, *place, reason),
                )
            return
        except BaseException:
            connection.fail(NotConnected("not needed"))
            raise
        self._reasons.pop(place, None)
        if connection.node_id == self._identity.node_id:
            self._own.add(place)
        try:
            await self._stay(connector, connection)
            if connection.is_ended:
                self._left(connection)
        finally:
            connection.fail(NotConnected("found"))
            if place not in self._own and not self._is_found(connector):
                # It takes us for gone: what is said next has to be later.
                self._identity.event_id_after(said)

    def _left(self, connection: AsyncConnection) -> None:
        """A connection has ended before a bridge came: its broker is known no more."""
        if connection.node_id is not None:
            self._lost(connection.node_id)

    async def _stay(self, connector: TransportConfiguration, connection: AsyncConnection) -> None:
        """Keep a connection until the member's bridge has its own: else the member would go."""
        if self.is_own(connector):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STAY_S):
                while not self._is_found(connector) and not connection.is_ended:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
                return
        # By another name than its connector has, this broker is not known by its topology.
        with contextlib.suppress(ClientError):
            session = await connection.session(AckMode.PRE)
            if await session.attribute("broker", "NodeID") == self._identity.node_id:
                self._own.add((connector.host, connector.port))
