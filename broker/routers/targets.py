"""One target: a broker that clients may be sent to, and how it is found to be ready.

    every check-period: connect, unless connected ─▶ ask management: NodeID, Active,
                        ConnectionCount where the policy wants it ─▶ ready, or not and why
    a lost connection:  not ready until the next check

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.client.aio.connection import AsyncConnection
from broker.client.errors import ClientError, NotConnected
from broker.client.session_state import AckMode
from broker.client.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.aio.session import AsyncSession
    from broker.client.options import ClientOptions, ClientSettings
    from broker.environment import Environment
    from broker.model.transport_configuration import TransportConfiguration

__all__ = ["ROUTER_CLIENT_PREFIX", "FoundTarget", "LocalTarget", "RemoteTarget", "TargetOptions"]

log = logging.getLogger("broker")

ROUTER_CLIENT_PREFIX: Final = "$.activemq.internal.router.client."
"""Begins the client id of a router that checks its targets: no router sends it elsewhere."""
# As Artemis: for each question.
_ANSWER_S: Final = 3.0


class FoundTarget(NamedTuple):
    """A broker, as a pool has found it.

    Attributes:
        node_id: of it; None where that is not known yet.
        connector: how this broker reaches it.
        told: the same as clients are told of it, without passwords.
    """

    node_id: str | None
    connector: TransportConfiguration
    told: TransportConfiguration


class LocalTarget:
    """This broker itself.

    Args:
        node_id: of it.
        count_connections: gives how many it has.
    """

    is_local: Final = True
    is_ready: Final = True
    connector: Final = None

    def __init__(self, node_id: str, count_connections: Callable[[], int]) -> None:
        self.node_id: str | None = node_id
        self._count_connections = count_connections

    @property
    def connection_count(self) -> int | None:
        """How many connections it has now."""
        return self._count_connections()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """How targets are checked.

    Attributes:
        router: name of the router, for logs.
        own_node_id: a target of this node id is this broker.
        check_period_s: between two checks.
        counts_connections: whether they are asked how many connections they have.
        client: what connections to them are made with.
    """

    router: str
    own_node_id: str
    check_period_s: float
    counts_connections: bool
    client: ClientOptions


class RemoteTarget:
    """See the module's text. Implements `broker.client.aio.connection.ConnectingClient`.

    Args:
        found: it, as its pool has found it.
        how: it is checked.
        environment: clock, ids, chance and network.
        on_change: called whenever it becomes ready, or is so no more.

    Attributes:
        node_id: as given, or as it has said itself.
        found: as given.
        connector: as clients are told of it.
        is_ready: clients may be sent there.
        connection_count: at the last check; None where it was not asked.
    """

    def __init__(
        self,
        found: FoundTarget,
        how: TargetOptions,
        environment: Environment,
        on_change: Callable[[], object],
    ) -> None:
        self.found = found
        self.connector = found.told
        self.node_id = found.node_id
        self.is_ready = False
        self.connection_count: int | None = None
        self._how = how
        self._on_change = on_change
        self._connection: AsyncConnection | None = None
        self._session: AsyncSession | None = None
        self._reason = ""
        self._task: asyncio.Task[None] | None = None
        # What a connection asks of its client.
        self.environment = environment
        self.options = dataclasses.replace(
            how.client, client_id=f"{ROUTER_CLIENT_PREFIX}{environment.ids.random_uuid()}"
        )
        self.topology = Topology()
        self.connectors: tuple[TransportConfiguration, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether its connector leads to this broker itself."""
        return self.node_id == self._how.own_node_id

    @property
    def place(self) -> str:
        """`HOST:PORT` of it."""
        return f"{self.connector.host}:{self.connector.port}"

    def options_with(self, changes: ClientSettings) -> ClientOptions:
        """Give the options with some changed."""
        return dataclasses.replace(self.options, **changes)

    def forget(self, connection: AsyncConnection) -> None:
        """Nothing: it closes its connection itself."""

    # --- checks -------------------------------------------------------------------------------

    def start(self) -> None:
        """Check it now, and from time to time."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Check it no more; it is not ready then."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        self._drop()
        self.is_ready = False

    async def _run(self) -> None:
        while True:
            try:
                await self._check()
            except (ClientError, TimeoutError) as error:
                self._drop()
                self._note(is_ready=False, reason=str(error) or "no answer in time")
            await asyncio.sleep(self._how.check_period_s)

    async def _check(self) -> None:
        session = self._session or await self._connect()
        if self.node_id is None:
            self.node_id = str(await _attribute(session, "NodeID"))
        if not await _attribute(session, "Active"):
            self._note(is_ready=False, reason="the broker is not active")
            return
        if self._how.counts_connections:
            self.connection_count = int(str(await _attribute(session, "ConnectionCount")))
        self._note(is_ready=True)

    async def _connect(self) -> AsyncSession:
        connection = self._connection = AsyncConnection(self, self.found.connector)
        # It is this broker that is asked: where it sends others does not matter.
        connection.follows_redirects = False
        connection.on_ended = self._lost
        await connection.open_to(self.found.connector)
        self._session = await connection.session(AckMode.AUTO)
        return self._session

    def _lost(self, error: Exception) -> None:
        self._connection = self._session = None
        self._note(is_ready=False, reason=str(error))

    def _drop(self) -> None:
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            connection.on_ended = lambda error: None
            connection.fail(NotConnected("not needed"))

    def _note(self, *, is_ready: bool, reason: str = "") -> None:
        if is_ready != self.is_ready:
            self.is_ready = is_ready
            log.info(
                "connection router %s: target %s is %s",
                self._how.router,
                self.place,
                "ready" if is_ready else f"not ready: {reason}",
            )
            self._on_change()
        elif reason != self._reason and not is_ready:
            log.warning(
                "connection router %s: target %s is not ready: %s",
                self._how.router,
                self.place,
                reason,
            )
        self._reason = reason


async def _attribute(session: AsyncSession, name: str) -> object:
    """Ask the broker for one attribute of it.

    Raises:
        ClientError: the connection is lost, or the user may not ask.
        TimeoutError: no answer came in time.
    """
    async with asyncio.timeout(_ANSWER_S):
        answer: object = await session.attribute("broker", name)
    return answer
