"""One connection to a broker with its sessions; taken up again when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol, Unpack

from broker.client.aio.calls import Calls
from broker.client.aio.creating import create
from broker.client.aio.restoring import take_up
from broker.client.aio.session import AsyncSession
from broker.client.aio.transport import Driver, open_socket
from broker.client.aio.waiting import settled
from broker.client.errors import CallInterrupted, ClientError, ClosedError, NotConnected
from broker.client.link import Link
from broker.client.session_state import AckMode, SessionState
from broker.client.topology import distinct
from broker.protocols.core.packet_connection import (
    FIRST_CLIENT_CHANNEL,
    CheckForFailoverReply,
    Disconnect,
    DisconnectReason,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.client.options import ClientOptions, ClientSettings
    from broker.client.topology import Topology
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration
    from broker.protocols.core.packet_cluster import ClusterTopology

# Brokers that send a client to each other must not keep it busy for ever.
_REDIRECTS_MAX: Final = 10


class ConnectingClient(Protocol):
    """What a connection needs of the client that made it."""

    options: ClientOptions
    """What the URI and the arguments say."""
    environment: Environment
    """Clock, ids, chance and network."""
    topology: Topology
    """The members of the cluster, as far as brokers have told them."""

    @property
    def connectors(self) -> tuple[TransportConfiguration, ...]:
        """The brokers of the URI, or those that were discovered."""

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the options with some changed.

        Raises:
            ValueError: no option has such a name, or a value is out of its range.
        """

    def forget(self, connection: AsyncConnection) -> None:
        """Drop a connection that was closed."""


class AsyncConnection:
    """One TCP connection, and whatever replaces it. Made by `AsyncClient.connect()`.

    Belongs to the event loop that made it. Sessions survive a lost connection when the client's
    options allow attempts to reconnect.

    Attributes:
        on_failure: called with the error when the connection is lost, before anything is tried.
        on_reconnected: called when its sessions work again.
        on_ended: called with the error when no attempt is left.
        follows_redirects: whether it goes where a connection router sends it.
        disconnect: what the broker said when it ended the connection; None as long as it did not.
    """

    def __init__(self, client: ConnectingClient, connector: TransportConfiguration) -> None:
        self.client = client
        self.options = client.options
        self.connector = connector
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self.on_reconnected: Callable[[], None] = lambda: None
        self.on_ended: Callable[[Exception], None] = lambda error: None
        self._sessions: dict[int, AsyncSession] = {}
        self._next_channel = FIRST_CLIENT_CHANNEL
        self._driver: Driver | None = None
        self._link: Link | None = None
        self._node_id: str | None = None
        self._preferred: TransportConfiguration | None = None
        # Where it was connected to before its present broker: that may get its place back.
        self._former: TransportConfiguration | None = None
        self._ready = asyncio.Event()
        self._ended: ClientError | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._checking: asyncio.Task[None] | None = None
        self._is_killed = False
        self.disconnect: Disconnect | None = None
        self.follows_redirects = True
        # How often a connection router has sent it elsewhere, and up to which it has gone there.
        self._redirect_count = self._followed_count = 0

    # Opening.

    async def open_to(self, connector: TransportConfiguration) -> None:
        """Connect to this broker, once; the client calls it.

        Args:
            connector: where to.

        Raises:
            NotConnected: that is not possible.
        """
        driver, link = await self._attempt(connector)
        self._use(connector, driver, link)
        self._ready.set()

    async def _attempt(self, connector: TransportConfiguration) -> tuple[Driver, Link]:
        """Connect and say who we are, up to the broker's word on its cluster."""
        lost: list[Exception] = []
        driver = await open_socket(
            connector,
            lost.append,
            self.options.call_timeout_s,
            self.client.environment.network,
        )
        link = Link(
            connection_ttl=self.options.connection_ttl,
            wake=driver.wake,
            on_topology=self._learn,
            on_disconnect=lambda packet: self._told_to_leave(packet, driver),
        )
        driver.link = link

        def lose(error: Exception) -> None:
            link.lose(error if isinstance(error, ClientError) else NotConnected(str(error)))

        driver.on_lost = lose
        if lost:
            lose(lost[0])
        link.start()
        try:
            await settled(link.ready, self.options.call_timeout_s, "the cluster's members")
        except ClientError as error:
            driver.close()
            raise NotConnected(f"{connector.host}:{connector.port}: {error}") from error
        except BaseException:
            driver.close()
            raise
        return driver, link

    def _use(self, connector: TransportConfiguration, driver: Driver, link: Link) -> None:
        if connector != self.connector:
            self._former, self.connector = self.connector, connector
        member = self.client.topology.member_at(connector)
        if member is not None:
            # Another node may have taken over: it has a backup of its own.
            self._node_id = member.node_id
        self._driver, self._link = driver, link
        driver.on_lost = self._lost
        if link.is_lost:
            raise NotConnected("the connection was lost at once")
        if self._checking is not None:
            self._checking.cancel()
        if self.options.check_period > 0:
            self._checking = self._spawn(self._check(driver, link))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    async def _check(self, driver: Driver, link: Link) -> None:
        """Send pings, and give up a broker that is silent."""
        loop = asyncio.get_running_loop()
        while not link.is_lost:
            await asyncio.sleep(self.options.check_period / 1000)
            silent_ms = (loop.time() - driver.last_received) * 1000
            if 0 <= self.options.connection_ttl < silent_ms:
                driver.lose(NotConnected(f"nothing from the broker for {silent_ms:.0f} ms"))
                return
            link.ping()

    def _learn(self, packet: ClusterTopology) -> None:
        topology = self.client.topology
        topology.update(packet)
        if self._node_id is None and packet.last:
            member = topology.member_at(self.connector)
            self._node_id = None if member is None else member.node_id

    def _told_to_leave(self, packet: Disconnect, driver: Driver) -> None:
        """The broker ends the connection; it may say where to go."""
        self.disconnect = packet
        connector = packet.target_connector
        is_redirect = packet.reason == DisconnectReason.REDIRECT and connector is not None
        if not is_redirect:
            # One that scales down names the node that has its messages then.
            member = self.client.topology.member(packet.target_node_id or "")
            self._preferred = connector if member is None else connector or member.primary
        elif self.follows_redirects and connector is not None:
            self._preferred = connector
            self._redirect_count += 1
            # Nothing of the broker that sends it away goes on there.
            self._node_id = packet.target_node_id
            if driver is self._driver:
                self._ready.clear()
            reason = NotConnected(f"sent on to {connector.host}:{connector.port}")
            # Behind the packets that came with this one.
            asyncio.get_running_loop().call_soon(driver.lose, reason)

    # Sessions.

    async def session(
        self, mode: AckMode = AckMode.AUTO, *, start: bool = True, **changes: Unpack[ClientSettings]
    ) -> AsyncSession:
        """Create a session.

        Args:
            mode: who acknowledges, and when.
            start: whether messages come at once; else `start()` lets them.
            **changes: options that differ from the client's, by their names in `ClientOptions`.

        Raises:
            BrokerRefused: such as `SecurityRefused`.
            NotConnected: the connection is lost for good.
        """
        options = self.client.options_with(changes)
        for _ in range(_REDIRECTS_MAX):
            told = self._redirect_count
            try:
                return await self._new_session(mode, options, start=start)
            except ClientError:
                if self._redirect_count == told:
                    raise
        raise NotConnected(f"the client was sent on to another broker {_REDIRECTS_MAX} times")

    async def _new_session(
        self, mode: AckMode, options: ClientOptions, *, start: bool
    ) -> AsyncSession:
        await self.wait_ready()
        state = SessionState(
            self._next_channel, options, mode, self.client.environment.ids.random_uuid
        )
        self._next_channel += 1
        state.on_kill = self._killed
        link = self.link
        link.open_channel(state.channel)
        try:
            await create(link, state, options.call_timeout_s)
        except BaseException:
            link.close_channel(state.channel)
            raise
        session = AsyncSession(Calls(self, state, self.client.environment), self._forget)
        self._sessions[state.channel.channel_id] = session
        if start:
            session.start()
        return session

    def _forget(self, session: AsyncSession) -> None:
        """Drop a session that was closed."""
        channel = session.state.channel
        self._sessions.pop(channel.channel_id, None)
        if self._link is not None:
            self._link.close_channel(channel)

    def _killed(self) -> None:
        """A consumer was too slow for the broker: do not come back."""
        self._is_killed = True

    @property
    def link(self) -> Link:
        """The connection as it is now."""
        if self._link is None:
            raise NotConnected("the client is not connected")
        return self._link

    @property
    def is_connected(self) -> bool:
        """Whether sessions work now."""
        return self._ready.is_set()

    @property
    def is_ended(self) -> bool:
        """Whether it was closed, or is lost for good."""
        return self._ended is not None

    @property
    def is_writable(self) -> bool:
        """Whether the socket takes more now; `drain()` waits until it does."""
        return self._driver is None or self._driver.is_writable

    @property
    def node_id(self) -> str | None:
        """Of the broker it leads to; None as long as that has not told."""
        return self._node_id

    async def wait_ready(self) -> None:
        """Wait for a reconnect that is under way.

        Raises:
            ClientError: closed, or the connection is lost for good, or not back in time.
        """
        if not self._ready.is_set() and self._ended is None:
            try:
                async with asyncio.timeout(self.options.call_failover_timeout_s):
                    await self._ready.wait()
            except TimeoutError as error:
                raise CallInterrupted("the connection did not come back in time") from error
        if self._ended is not None:
            raise self._ended

    async def drain(self) -> None:
        """Wait until the socket takes more."""
        if self._driver is not None:
            await self._driver.drain()

    def fail(self, error: ClientError) -> None:
        """Give the connection up, such as when an answer did not come.

        Args:
            error: why; calls that wait raise it.
        """
        if self._driver is not None:
            self._driver.lose(error)

    # A lost connection.

    def _lost(self, error: Exception) -> None:
        reason = error if isinstance(error, ClientError) else NotConnected(str(error))
        if self._link is not None:
            self._link.lose(reason)
        if self._checking is not None:
            self._checking.cancel()
        self._ready.clear()
        try:
            self.on_failure(reason)
        finally:
            # Whatever the application's code raises, its sessions go on.
            attempts = self._reconnect_attempts
            if self._is_killed or (attempts == 0 and self.options.failover_attempts == 0):
                self._end(reason)
            else:
                self._spawn(self._reconnect(reason))

    @property
    def _reconnect_attempts(self) -> int:
        """Rounds after a lost connection: one at least, if it was lost by a redirect."""
        if self._redirect_count == self._followed_count:
            return self.options.reconnect_attempts
        return self.options.reconnect_attempts or 1

    def _end(self, error: ClientError) -> None:
        self._ended = error
        self._ready.set()
        for session in tuple(self._sessions.values()):
            session.ended(error)
        self._sessions.clear()
        self.on_ended(error)

    async def _reconnect(self, reason: ClientError) -> None:
        refusal = ""
        for rounds, places in (
            (self._reconnect_attempts, self._candidates),
            (self.options.failover_attempts, self._others),
        ):
            attempt = 0
            while attempt < rounds or rounds == -1:
                for connector in places():
                    error = await self._reconnect_to(connector)
                    if error is None:
                        return
                    refusal = f"; the last one: {error}"
                await asyncio.sleep(self.options.retry_delay_s(attempt))
                attempt += 1
        self._end(NotConnected(f"no attempt is left: {reason}{refusal}"))

    def _candidates(self) -> list[TransportConfiguration]:
        """Give where to try: where told to, the same, the rest of its pair, where it began."""
        member = self.client.topology.member(self._node_id) if self._node_id else None
        pair = () if member is None else (member.backup, member.primary)
        former = self._former
        wanted = (self._preferred, self.connector, *pair, former, *self.client.connectors)
        return distinct([item for item in wanted if item is not None])

    def _others(self) -> list[TransportConfiguration]:
        members = self.client.topology.members
        return distinct([member.primary for member in members if member.primary is not None])

    async def _reconnect_to(self, connector: TransportConfiguration) -> ClientError | None:
        """Try one broker, and those that it sends to; as `_reconnect_at`."""
        error: ClientError | None = None
        for _ in range(_REDIRECTS_MAX):
            told = self._redirect_count
            error = await self._reconnect_at(connector)
            if error is None or self._redirect_count == told or self._preferred is None:
                break
            connector = self._preferred
        return error

    async def _reconnect_at(self, connector: TransportConfiguration) -> ClientError | None:
        """Try one broker; None once all sessions work there, else what it said."""
        try:
            driver, link = await self._attempt(connector)
        except NotConnected as error:
            return error
        try:
            if self._node_id is not None and not await self._may_go_on(link):
                driver.close()
                return NotConnected(
                    f"{connector.host}:{connector.port} does not take over for the broker"
                )
            for session in tuple(self._sessions.values()):
                await take_up(link, session.state)
            self._use(connector, driver, link)
        except ClientError as error:
            # Lost again, or refused: the next attempt begins from the start.
            driver.close()
            link.lose(NotConnected("given up"))
            return error
        except BaseException:
            driver.close()
            raise
        self._preferred = None
        self._followed_count = self._redirect_count
        self._ready.set()
        self.on_reconnected()
        return None

    async def _may_go_on(self, link: Link) -> bool:
        reply = link.check_for_failover(self._node_id)
        answer = await settled(reply, self.options.call_timeout_s, "failover check")
        assert isinstance(answer, CheckForFailoverReply)
        return answer.ok_to_failover

    def __repr__(self) -> str:
        """Where it leads, and whether its sessions work."""
        if self._ended is not None:
            state = "closed" if isinstance(self._ended, ClosedError) else "lost"
        elif self._link is None:
            state = "not connected yet"
        else:
            now = "connected" if self.is_connected else "reconnecting"
            state = f"{now}, {len(self._sessions)} sessions"
        return f"<AsyncConnection {self.connector.host}:{self.connector.port}: {state}>"

    async def close(self) -> None:
        """Close its sessions and the connection; nothing is reconnected. Cancelled, it aborts."""
        if self._ended is not None:
            return
        end = Driver.abort
        try:
            if self._ready.is_set():
                for session in tuple(self._sessions.values()):
                    with contextlib.suppress(ClientError):
                        await session.close()
            end = Driver.close
        finally:
            self._closed(end)
        # The transport reports its end to the loop once more.
        await asyncio.sleep(0)

    def abort(self) -> None:
        """End at once, without a word to the broker; nothing is reconnected. Idempotent."""
        self._closed(Driver.abort)

    def _closed(self, end: Callable[[Driver], None]) -> None:
        self._ended = ClosedError("the connection is closed")
        self._ready.set()
        for task in tuple(self._tasks):
            task.cancel()
        for session in tuple(self._sessions.values()):
            session.ended(self._ended)
        if self._driver is not None:
            end(self._driver)
        if self._link is not None:
            self._link.lose(self._ended)
        self.client.forget(self)
