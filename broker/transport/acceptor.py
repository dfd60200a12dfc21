"""A listening socket, and the protocols that may be spoken to it."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from broker.errors import BrokerError, ErrorCode
from broker.protocols.registry import Detection
from broker.transport.connection import Connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from broker.protocols.peer import Handler

__all__ = ["AcceptedProtocol", "Acceptor", "AcceptorOptions"]

log = logging.getLogger("broker")

# Netty takes somaxconn.
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
        protocols: names of those that may be spoken; none named are all.
        auto_start: listen when the broker starts; else when somebody starts the acceptor.
        backlog: connections that the kernel keeps until they are accepted.
        parameters: of its protocols, by name, as texts.
    """

    name: str = "artemis"
    host: str = "localhost"
    port: int = 61616
    handshake_timeout_s: float = 10.0
    connections_allowed: int = -1
    ssl: ssl.SSLContext | None = None
    protocols: tuple[str, ...] = ()
    auto_start: bool = True
    backlog: int = _BACKLOG
    parameters: Mapping[str, str] = field(default_factory=dict)


class AcceptedProtocol(NamedTuple):
    """A protocol, as an acceptor needs it.

    Attributes:
        detection_size: bytes that `detect` needs at most.
        preamble_size: bytes at the beginning that the handler is not given.
        detect: whether a connection that begins so speaks it.
        connect: makes the handler of one that does.
    """

    detection_size: int
    preamble_size: int
    detect: Callable[[bytes], Detection]
    connect: Callable[[Connection], Handler]


def _handshake_s(options: AcceptorOptions) -> float | None:
    """Seconds for a TLS handshake; None is the loop's own limit, a minute, or plain TCP."""
    if options.ssl is None or options.handshake_timeout_s <= 0:
        return None
    return options.handshake_timeout_s


class Acceptor:
    """Listens, and finds out which protocol each connection speaks.

    bind() takes the ports, so that a port in use is told before data are loaded; nothing can
    connect until start().

    Args:
        options: how.
        protocols: by name. Those that the options name are asked, else all of them.

    Raises:
        BrokerError: the options name a protocol that is not among `protocols`.
    """

    def __init__(
        self,
        options: AcceptorOptions,
        protocols: Mapping[str, AcceptedProtocol],
    ) -> None:
        self.options = options
        missing = [name for name in options.protocols if name not in protocols]
        if missing:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"acceptor {options.name}: unknown protocol {', '.join(missing)}; "
                f"the broker has {', '.join(protocols)}",
            )
        self._protocols = [protocols[name] for name in options.protocols or protocols]
        self._bound: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self.connections: set[Connection] = set()
        self._has_left = asyncio.Event()

    @property
    def port(self) -> int:
        """Where it listens, also where the system chose."""
        listening = (one for server in self._servers for one in server.sockets)
        for found in (*self._bound, *listening):
            return int(found.getsockname()[1])
        return self.options.port

    @property
    def is_listening(self) -> bool:
        """Whether clients can connect."""
        return bool(self._servers)

    def bind(self) -> None:
        """Take the ports without listening. Idempotent.

        Raises:
            BrokerError: an address is in use, or not of this machine.
        """
        if self._bound or self._servers:
            return
        for host in self._hosts:
            try:
                for found in _addresses(host, self.options.port):
                    self._bound.append(_bound_socket(*found))
            except OSError as error:
                self._unbind()
                raise self._cannot_listen(host, error) from error

    @property
    def _hosts(self) -> list[str]:
        return [host.strip() for host in self.options.host.split(",") if host.strip()]

    def _unbind(self) -> None:
        for one in self._bound:
            one.close()
        self._bound.clear()

    def _cannot_listen(self, host: str, error: OSError) -> BrokerError:
        name = errno.errorcode.get(error.errno or 0, "")
        return BrokerError(
            ErrorCode.ILLEGAL_STATE,
            f"acceptor {self.options.name} cannot listen on {host}:{self.options.port}: "
            f"{error.strerror or error} {name}".rstrip(),
        )

    async def start(self) -> None:
        """Listen, and take the ports before where bind() has not.

        Raises:
            BrokerError: an address is in use, or not of this machine.
        """
        self.bind()
        options = self.options
        loop = asyncio.get_running_loop()
        while self._bound:
            bound = self._bound[0]
            try:
                server = await loop.create_server(
                    cast("Callable[[], asyncio.Protocol]", self._accept),
                    sock=bound,
                    ssl=options.ssl,
                    # Without: a minute, which is too long for peers that send nothing.
                    ssl_handshake_timeout=_handshake_s(options),
                    backlog=options.backlog,
                )
            except OSError as error:
                host = bound.getsockname()[0]
                await self.stop()
                raise self._cannot_listen(host, error) from error
            del self._bound[0]
            self._servers.append(server)
        log.info("AMQ221020: Started acceptor %s at %s:%d", options.name, options.host, self.port)

    def _accept(self) -> Connection:
        connection = Connection(
            self._detect,
            self._left,
            handshake_timeout_s=self.options.handshake_timeout_s,
            loop=asyncio.get_running_loop(),
        )
        allowed = self.options.connections_allowed
        if 0 <= allowed <= len(self.connections):
            return _Refused(allowed, connection)
        self.connections.add(connection)
        return connection

    def _detect(self, connection: Connection, first: bytes) -> tuple[Handler, int] | Detection:
        """Ask the protocols in turn; one that needs more bytes is waited for."""
        for one in self._protocols:
            answer = one.detect(first[: one.detection_size])
            if answer is Detection.YES:
                return one.connect(connection), one.preamble_size
            if answer is Detection.MORE and len(first) < one.detection_size:
                return Detection.MORE
        return Detection.NO

    async def reload(self, ssl_context: ssl.SSLContext) -> None:
        """Take another certificate, for connections that come from now on.

        Raises:
            BrokerError: another process has taken the port meanwhile.
        """
        was_listening, port = self.is_listening, self.port
        await self.stop()
        self.options = replace(self.options, ssl=ssl_context, port=port)
        if was_listening:
            await self.start()

    async def stop(self) -> None:
        """Listen no more and give the ports up; connections stay."""
        self._unbind()
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _left(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._has_left.set()

    async def wait_until_left(self) -> None:
        """Wait until no connection is open."""
        while self.connections:
            self._has_left.clear()
            await self._has_left.wait()

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


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    """Give what a name stands for, each once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, place) for family, _, _, _, place in found))


def _bound_socket(family: socket.AddressFamily, place: Any) -> socket.socket:  # noqa: ANN401 - the system's.
    """Give a socket that has the port and does not listen."""
    # asyncio turns Nagle's algorithm off only where the protocol is named: without it an answer
    # that follows a delivery would wait for the client's delayed acknowledgement, 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Else "::" takes the port of "0.0.0.0", too.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(place)
    except OSError:
        made.close()
        raise
    return made
