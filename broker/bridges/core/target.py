"""The other broker: where it is, and a connection to it as long as that holds.

    Target.connect() ─▶ Link: connection, session, what the target remembers ─▶ link.lost

The connectors are tried in their order, each as its turn comes. A node that was connected to is
tried again first, and its backup in turn with it, `reconnect-attempts-same-node` times. So is one
that tells of no way to it, where messages had no answer there: another node does not know their
ids. Nothing is reattached: a link that is lost is over, and what had no answer is sent again on the
next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import logging
from typing import TYPE_CHECKING

from broker.bridges.core.window import cache_size_of, forgets_ids
from broker.client.aio.connection import AsyncConnection
from broker.client.errors import BrokerRefused, ClientError, NotConnected
from broker.client.options import ClientOptions
from broker.client.session_state import AckMode
from broker.client.topology import Topology
from broker.errors import ErrorCode
from broker.model.transport_configuration import TransportConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.client.aio.session import AsyncSession
    from broker.client.options import ClientSettings
    from broker.config.cluster import BridgeConfig
    from broker.config.transport import TransportConfig
    from broker.environment import Environment

__all__ = ["Link", "Target", "client_options", "transport_of"]

log = logging.getLogger("broker.bridge")


def transport_of(connector: TransportConfig) -> TransportConfiguration:
    """Give a connector of the configuration as the client takes it."""
    return TransportConfiguration(
        connector.name,
        parameters={
            **connector.parameters,
            "host": connector.host or "localhost",
            "port": connector.port or 61616,
        },
    )


def client_options(config: BridgeConfig) -> ClientOptions:
    """Give what a bridge asks of its connections.

    No confirmation window is asked for: each message is answered by itself.
    """
    return ClientOptions(
        user=config.user or None,
        password=config.password,
        client_id=config.client_id,
        connection_ttl=config.connection_ttl_ms,
        check_period=config.check_period_ms,
        min_large_message_size=config.min_large_message_size_bytes,
        producer_window_size=config.producer_window_size_bytes,
        retry_interval=config.retry_interval_ms,
        retry_interval_multiplier=config.retry_interval_multiplier,
        max_retry_interval=config.max_retry_interval_ms,
    )


class Link:
    """A connection to the target and a session on it.

    Attributes:
        connection: as it is.
        session: where messages go.
        node_id: of the target; None where it is of no cluster.
        lost: done, with the reason, once the connection is lost.
    """

    def __init__(self, connection: AsyncConnection, session: AsyncSession) -> None:
        self.connection = connection
        self.session = session
        self.node_id = connection.node_id
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        connection.on_ended = self.lose

    def with_session(self, session: AsyncSession) -> Link:
        """Give the same connection with another session of it."""
        other = copy.copy(self)
        other.session = session
        return other

    def lose(self, reason: Exception) -> None:
        """Say that it is lost, or of no more use. Idempotent."""
        if not self.lost.done():
            self.lost.set_result(reason)

    def drop(self, reason: ClientError) -> None:
        """Give the connection up at once."""
        self.connection.fail(reason)

    async def close(self, timeout_s: float) -> None:
        """Close it in good order, or drop it where that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.connection.close()
        except TimeoutError:
            self.drop(NotConnected("not closed in time"))

    @property
    def where(self) -> str:
        """Host and port."""
        connector = self.connection.connector
        return f"{connector.host}:{connector.port}"


class Target:
    """See the module's text. Implements `broker.client.aio.connection.ConnectingClient`.

    Args:
        config: of the bridge.
        connectors: where to begin, in their order.
        environment: clock, ids, chance and network.

    Attributes:
        connectors: where to begin, as a connection takes them.
        name: what is configured, for operators.
        is_awaited: whether messages were sent that had no answer.
    """

    def __init__(
        self,
        config: BridgeConfig,
        connectors: Sequence[TransportConfig],
        environment: Environment,
    ) -> None:
        self.options = client_options(config)
        self.environment = environment
        self.connectors: tuple[TransportConfiguration, ...] = tuple(map(transport_of, connectors))
        self.name = ", ".join(one.name for one in connectors)
        self.topology = Topology()
        self._forwarding_address = config.forwarding_address
        self._same_node_attempts = config.reconnect_attempts_same_node
        self.is_awaited: Callable[[], bool] = lambda: False
        self._node_id: str | None = None
        # How the last link was made.
        self._last: TransportConfiguration | None = None
        self._turn = 0
        # What nodes have told, by their ids and addresses.
        self._cache_sizes: dict[tuple[str, str], int | None] = {}
        self._is_silent = False

    # What a connection asks of its client.

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the options with some changed."""
        return dataclasses.replace(self.options, **changes)

    def forget(self, connection: AsyncConnection) -> None:
        """Nothing: who has a link closes it."""

    # What the bridge asks.

    async def connect(self, attempt: int) -> Link:
        """Connect once, and open a session.

        Args:
            attempt: how many have failed since a link worked.

        Raises:
            BrokerRefused: the target refuses the session, or has no forwarding address.
            ClientError: it cannot be reached.
        """
        connector = self._next(attempt)
        connection = AsyncConnection(self, connector)
        # Messages are for this broker, not for one that clients are sent to.
        connection.follows_redirects = False
        await connection.open_to(connector)
        try:
            session = await connection.session(AckMode.AUTO, start=False)
            await self._check_address(session)
        except BaseException:
            connection.fail(NotConnected("not needed"))
            raise
        link = Link(connection, session)
        if connection.is_ended:
            link.lose(NotConnected("the connection was lost at once"))
        if self.is_awaited():
            self._tell_of_doubles(connector)
        self._node_id = link.node_id
        self._last = connector
        return link

    def _tell_of_doubles(self, connector: TransportConfiguration) -> None:
        """Warn where messages that had no answer go to another node than before."""
        last = self._last
        if last is None:
            return
        known = {(one.host, one.port) for one in (last, *self._pair())}
        if (connector.host, connector.port) in known:
            return
        log.warning(
            "%s: messages that had no answer from %s:%d go to %s:%d. If that is another broker, it "
            "does not know their ids, and they may double",
            *(self.name, last.host, last.port, connector.host, connector.port),
        )

    def close(self) -> None:
        """Nothing is looked for any more. Idempotent; connect() begins anew."""

    async def _check_address(self, session: AsyncSession) -> None:
        address = self._forwarding_address
        if address is not None and not (await session.query_address(address)).exists:
            raise BrokerRefused(
                ErrorCode.ADDRESS_DOES_NOT_EXIST, f"address {address!r} does not exist there"
            )

    def _pair(self) -> list[TransportConfiguration]:
        """Give how the last node and its backup are reached, as far as it told."""
        member = None if self._node_id is None else self.topology.member(self._node_id)
        pair = () if member is None else (member.primary, member.backup)
        return [one for one in pair if one is not None]

    def _next(self, attempt: int) -> TransportConfiguration:
        """Give where to try now."""
        most = self._same_node_attempts
        if most < 0 or attempt < most:
            pair = self._pair()
            if pair:
                return pair[attempt % len(pair)]
            if self._last is not None and self.is_awaited():
                return self._last
        connector = self.connectors[self._turn % len(self.connectors)]
        self._turn += 1
        return connector

    async def cache_size(self, link: Link, address: str) -> int | None:
        """Ask how many duplicate ids the target remembers; None where it does not tell.

        A target that is silent is asked again on the next link, and believed to tell nothing then:
        its management address may be another one.

        Raises:
            ClientError: the connection is lost, or the target is silent for the first time.
        """
        key = (link.node_id or link.where, address)
        first = await link.connection.session(AckMode.AUTO, block_on_non_durable_send=True)
        second = await link.connection.session(AckMode.AUTO, block_on_non_durable_send=True)
        try:
            size = await cache_size_of((first, second), address)
        except TimeoutError:
            if key in self._cache_sizes:
                return self._cache_sizes[key]
            if not self._is_silent:
                self._is_silent = True
                raise NotConnected(f"{link.where} does not tell its id-cache-size") from None
            return None
        with contextlib.suppress(BrokerRefused):
            await asyncio.gather(first.close(), second.close())
        self._cache_sizes[key] = size
        return size

    async def forgets_ids(self, link: Link) -> bool:
        """Ask whether the target forgets duplicate ids when it restarts.

        Raises:
            ClientError: the connection is lost.
        """
        session = await link.connection.session(AckMode.AUTO, block_on_non_durable_send=True)
        forgets = await forgets_ids(session)
        with contextlib.suppress(BrokerRefused):
            await session.close()
        return forgets
