"""A listening socket, and the protocols that may be spoken to it."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from broker.errors import BrokerError, ErrorCode
from broker.transport.connection import Connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from broker.protocols.peer import Handler

__all__ = ["Acceptor", "AcceptorOptions"]

log = logging.getLogger("broker")

# Connections that the kernel keeps until they are accepted (backlog); Netty takes somaxconn.
_BACKLOG: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptorOptions:
    """How one acceptor listens.

    Attributes:
        name: as configured.
        host: address or name; several joined by commas.
        port: 0 lets the system choose.
        handshake_timeout_s: seconds for a peer to say what it speaks; 0 for ever.
        connections_allowed: at a time; -1 without limit (connectionsAllowed).
        ssl: context of a TLS acceptor.
    """

    name: str = "artemis"
    host: str = "localhost"
    port: int = 61616
    handshake_timeout_s: float = 10.0
    connections_allowed: int = -1
    ssl: ssl.SSLContext | None = None


def _handshake_s(options: AcceptorOptions) -> float | None:
    """Seconds for a TLS handshake; None is the loop's own limit, a minute, or plain TCP."""
    if options.ssl is None or options.handshake_timeout_s <= 0:
        return None
    return options.handshake_timeout_s


class Acceptor:
    """Listens, and finds out what who connects speaks.

    Args:
        options: how.
        protocols: each gives a handler for the first 8 bytes, with how many are consumed, or None
            where it is another protocol.
    """

    def __init__(
        self,
        options: AcceptorOptions,
        protocols: Sequence[Callable[[Connection, bytes], tuple[Handler, int] | None]],
    ) -> None:
        self.options = options
        self._protocols = protocols
        self._servers: list[asyncio.Server] = []
        self.connections: set[Connection] = set()

    @property
    def port(self) -> int:
        """Where it listens, also where the system chose."""
        for server in self._servers:
            for one in server.sockets:
                return int(one.getsockname()[1])
        return self.options.port

    async def start(self) -> None:
        """Listen.

        Raises:
            BrokerError: the address is in use or not of this machine.
        """
        options = self.options
        loop = asyncio.get_running_loop()
        hosts = [host.strip() for host in options.host.split(",") if host.strip()]
        for host in hosts:
            try:
                server = await loop.create_server(
                    cast("Callable[[], asyncio.Protocol]", self._accept),
                    host,
                    options.port,
                    ssl=options.ssl,
                    # Else a minute: that is for peers, and not for whoever comes.
                    ssl_handshake_timeout=_handshake_s(options),
                    backlog=_BACKLOG,
                    reuse_address=True,
                )
            except OSError as error:
                await self.stop()
                where = f"{host}:{options.port}"
                name = errno.errorcode.get(error.errno or 0, "")
                raise BrokerError(
                    ErrorCode.ILLEGAL_STATE,
                    f"acceptor {options.name} cannot listen on {where}: {error.strerror or error}"
                    f" {name}".rstrip(),
                ) from error
            self._servers.append(server)
        log.info("AMQ221020: Started acceptor %s at %s:%d", options.name, options.host, self.port)

    def _accept(self) -> Connection:
        connection = Connection(
            self._detect,
            self.connections.discard,
            handshake_timeout_s=self.options.handshake_timeout_s,
            loop=asyncio.get_running_loop(),
        )
        allowed = self.options.connections_allowed
        if 0 <= allowed <= len(self.connections):
            return _Refused(allowed, connection)
        self.connections.add(connection)
        return connection

    def _detect(self, connection: Connection, first: bytes) -> tuple[Handler, int] | None:
        for protocol in self._protocols:
            found = protocol(connection, first)
            if found is not None:
                return found
        return None

    async def stop(self) -> None:
        """Listen no more; connections stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    def close_connections(self) -> None:
        """Close all connections, what was written to them sent before."""
        for connection in list(self.connections):
            connection.close()


class _Refused(Connection):
    """A connection too many: closed as soon as it is there."""

    def __init__(self, allowed: int, like: Connection) -> None:
        super().__init__(
            like._detect, like._on_end, handshake_timeout_s=0, loop=asyncio.get_running_loop()
        )
        self._allowed = allowed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        log.warning("AMQ222193: Connection limit of %d reached. Refusing", self._allowed)
        super().connection_made(transport)
        self.abort()
