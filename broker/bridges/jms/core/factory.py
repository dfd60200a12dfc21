"""Connects to a broker of the Core protocol: our own, or Apache Artemis; by TCP or in-process.

CoreConnectionFactory("tcp://host:61616")            also (tcp://a,tcp://b)?ha=true
CoreConnectionFactory("vm://", broker=embedded.broker)
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from broker.bridges.core.window import (
    ASSUMED,
    cache_size_at,
    deliveries_max_at,
    forgets_ids,
    told_of,
)
from broker.bridges.jms.core.in_process import InProcessNetwork
from broker.bridges.jms.core.session import CoreSession
from broker.bridges.jms.errors import BridgeConfigError, BridgeError
from broker.bridges.jms.in_flight import SIZE_MAX as IN_FLIGHT_SIZE_MAX
from broker.bridges.jms.providers import Capabilities, SessionKind
from broker.client.aio.client import AsyncClient
from broker.client.errors import BrokerRefused, CallTimeout
from broker.client.session_state import AckMode
from broker.environment import Environment

if TYPE_CHECKING:
    from broker.bridges.jms.core.in_process import InProcessBroker
    from broker.bridges.jms.providers import Credentials, Destination
    from broker.client.aio.connection import AsyncConnection
    from broker.client.options import ClientSettings

__all__ = ["CoreConnection", "CoreConnectionFactory"]

log = logging.getLogger("broker.bridges")

_IN_PROCESS: Final = "vm://"
_MODES: Final = {
    SessionKind.AUTO: AckMode.AUTO,
    SessionKind.CLIENT: AckMode.CLIENT,
    SessionKind.TRANSACTED: AckMode.TRANSACTED,
    SessionKind.TWO_PHASE: AckMode.XA_CLIENT,
}
# Acknowledgements of a batch are one packet, which is answered once they count.
_CLIENT_ACKNOWLEDGES: Final[ClientSettings] = {"block_on_acknowledge": True, "ack_batch_size": 0}
# Half of it comes with each round trip, which the 64 KiB of Artemis's clients make 1.6 MB/s over a
# link with 20 ms, and the 1 MiB of its core bridges 26.
_PRODUCER_WINDOW_SIZE: Final = IN_FLIGHT_SIZE_MAX
_CLOSE_S: Final = 3.0
_CLIENT_ID_KEY: Final = "jms-client-id"


@dataclass(frozen=True, slots=True)
class CoreConnectionFactory:
    """See the module's text. Two that are equal lead to the same broker.

    Attributes:
        uri: of a client (`broker.client.uri`), or `vm://`.
        broker: that `vm://` leads to; it may run in another thread.
        environment: clock, ids, chance and network.

    Raises:
        BridgeConfigError: the URI is wrong, or `vm://` has no broker.
    """

    uri: str
    broker: InProcessBroker | None = None
    environment: Environment = field(default_factory=Environment, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self._is_in_process and self.broker is None:
            raise BridgeConfigError(f"{self.uri!r} needs the broker of this process it leads to")
        self._made(Environment(), {})

    @property
    def _is_in_process(self) -> bool:
        return self.uri.startswith(_IN_PROCESS)

    def _made(self, environment: Environment, settings: ClientSettings) -> AsyncClient:
        uri = self.uri
        if self._is_in_process:
            assert self.broker is not None
            environment = replace(environment, network=InProcessNetwork(self.broker))
            uri = f"tcp://in-vm:1?{uri.partition('?')[2]}"
        try:
            return AsyncClient(uri, environment=environment, **settings)
        except ValueError as error:
            raise BridgeConfigError(f"connection URI {self.uri!r}: {error}") from error

    async def connect(self, credentials: Credentials) -> CoreConnection:
        """Connect; see `ConnectionFactory`."""
        settings: ClientSettings = {
            "user": credentials.user_name,
            "password": credentials.password,
            "client_id": credentials.client_id,
            # Unless the URI says something else.
            "producer_window_size": _PRODUCER_WINDOW_SIZE,
        }
        client = self._made(self.environment, settings)
        try:
            made = CoreConnection(client, await client.connect(), self.environment)
            await made.identify(credentials.client_id)
        except BaseException:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await client.close()
            raise
        return made


class CoreConnection:
    """A connection of the Core client; see `Connection`.

    Args:
        client: that made it; closed with it.
        connection: of the client.
        environment: clock and ids.
    """

    def __init__(
        self, client: AsyncClient, connection: AsyncConnection, environment: Environment
    ) -> None:
        self._client = client
        self._connection = connection
        self._environment = environment
        self.lost: Exception | None = None
        connection.on_failure = self._failed
        self._sessions: list[CoreSession] = []
        self.capabilities = Capabilities(
            node_id=connection.node_id,
            names_messages=True,
            keeps_duplicate_ids=True,
            two_phase=True,
        )

    def _failed(self, error: Exception) -> None:
        # Also where the client itself would reconnect: what its sessions have received comes again,
        # and the bridge has to know.
        self.lost = error
        for session in self._sessions:
            session.lost(error)

    async def identify(self, client_id: str | None) -> None:
        """Take the client id, as a JMS client does: two connections cannot have the same.

        Args:
            client_id: None is none.

        Raises:
            BridgeError: another connection has it.
        """
        if client_id is None:
            return
        session = await self._connection.session(start=False)
        try:
            await session.add_metadata(_CLIENT_ID_KEY, client_id, unique=True)
        except BrokerRefused as error:
            raise BridgeError(f"client id {client_id!r} is in use: {error}") from error

    async def session(self, kind: SessionKind) -> CoreSession:
        """Give a session; see `Connection`."""
        changes: ClientSettings = _CLIENT_ACKNOWLEDGES if kind is SessionKind.CLIENT else {}
        made = await self._connection.session(_MODES[kind], **changes)
        session = CoreSession(kind, self._connection, made, self._environment)
        self._sessions.append(session)
        return session

    async def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Give the id-cache-size of the address, or the broker's; see `Connection`."""
        address = destination.name.partition("::")[0]
        # A refusal comes at once.
        session = await self._connection.session(block_on_non_durable_send=True)
        try:
            async with asyncio.timeout(_ASKING_S):
                size = await cache_size_at(session, address)
            reason = "it is not told"
        except CallTimeout:
            # The connection is given up.
            raise
        except TimeoutError:
            size, reason = None, f"no answer within {_ASKING_S:.0f} s"
        finally:
            await session.close()
        if size is None:
            log.warning(
                "the id-cache-size of %s cannot be read (%s; permission manage): at most %d "
                "messages are on their way, which may double if it is smaller",
                *(destination, reason, ASSUMED),
            )
        return size

    async def ask_as_source(self) -> None:
        """Ask the broker for its node id, where its cluster has not told it; `AskedConnection`.

        A cluster names its members by their connectors, which an alias, an address behind NAT or
        `vm://` is none of.
        """
        if self.capabilities.node_id is not None:
            return
        session = await self._connection.session(block_on_non_durable_send=True)
        try:
            found = await told_of(session, "nodeID")
        finally:
            await session.close()
        self.capabilities = replace(
            self.capabilities,
            node_id=found if isinstance(found, str) and found else None,
            without_name="does not tell its node id to this user (permission manage)",
        )

    async def deliveries_max(self, destination: Destination) -> int | None:
        """Ask how often a message may be delivered where that counts; see `AskedConnection`.

        A broker of ours does not count what it delivers to a bridge.
        """
        address = destination.name.partition("::")[0]
        session = await self._connection.session(block_on_non_durable_send=True)
        try:
            version = await told_of(session, "version")
            major = version.partition(".")[0] if isinstance(version, str) else ""
            if not major.isdigit() or int(major) < _ARTEMIS:
                return None
            return await deliveries_max_at(session, address)
        finally:
            await session.close()

    async def ask_as_target(self) -> None:
        """Ask whether the broker keeps ids over a restart; see `AskedConnection`."""
        session = await self._connection.session(block_on_non_durable_send=True)
        try:
            forgets = await forgets_ids(session)
        finally:
            await session.close()
        if forgets:
            self.capabilities = replace(
                self.capabilities,
                keeps_duplicate_ids=False,
                without_ids="forgets duplicate ids when it restarts (persist-id-cache is false)",
            )

    async def close(self) -> None:
        """Close in good order if the broker answers, else at once; cancelled, at once too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._client.close()


_ASKING_S: Final = 5.0
# Its first major version.
_ARTEMIS: Final = 2
