"""A listening socket, and the protocols that may be spoken to it."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from broker.errors import BrokerError, ErrorCode
from broker.protocols.registry import Detection, WebSocketUse
from broker.transport.connection import Connection
from broker.transport.failed_handshakes import FailedHandshakes
from broker.transport.proxied import ProxiedSocket
from broker.transport.proxy_protocol import is_proxy_header
from broker.transport.web_socket_options import HTTP_SIZE, WebSocketOptions, is_http

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable, Mapping

    from broker.environment import Clock, Ids, Listener, Network
    from broker.protocols.peer import Peer, Receiver

__all__ = ["AcceptedProtocol", "Acceptor", "AcceptorOptions"]

log = logging.getLogger("broker")

# Netty takes somaxconn.
_BACKLOG: Final = 4096
CONNECTION_ID_SIZE: Final = 4  # Bytes; Artemis shows as many.


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
        is_behind_proxy: every connection begins with a header of the PROXY protocol, and none
            does otherwise (proxyProtocolEnabled).
        router: connection router that may send its clients elsewhere; empty for none.
        web_socket: limits of its WebSockets.
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
    is_behind_proxy: bool = False
    router: str = ""
    web_socket: WebSocketOptions = field(default_factory=WebSocketOptions)
    parameters: Mapping[str, str] = field(default_factory=dict)


class AcceptedProtocol(NamedTuple):
    """A protocol, as an acceptor needs it.

    Attributes:
        detection_size: bytes that `detect` needs at most.
        preamble_size: bytes at the beginning that the handler is not given.
        detect: whether a connection that begins so speaks it.
        connect: makes the handler of one that does.
        web_socket: how it is spoken inside a WebSocket.
    """

    detection_size: int
    preamble_size: int
    detect: Callable[[bytes], Detection]
    connect: Callable[[Peer], Receiver]
    web_socket: WebSocketUse = WebSocketUse((), takes_text=False)


def _handshake_s(options: AcceptorOptions) -> float | None:
    """Seconds for a TLS handshake; None is the loop's own limit, a minute, or plain TCP."""
    if options.ssl is None or options.is_behind_proxy or options.handshake_timeout_s <= 0:
        return None
    return options.handshake_timeout_s


class Acceptor:
    """Listens, and finds out which protocol each connection speaks.

    bind() takes the ports, so that a port in use is told before data are loaded; nothing can
    connect until start().

    Args:
        options: how.
        protocols: by name. Those that the options name are asked, else all of them.
        network: where its ports are.
        clock: says when a connection came.
        ids: name connections.

    Raises:
        BrokerError: the options name a protocol that is not among `protocols`.
    """

    def __init__(
        self,
        options: AcceptorOptions,
        protocols: Mapping[str, AcceptedProtocol],
        *,
        network: Network,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.options = options
        self._network = network
        self._clock = clock
        self._ids = ids
        missing = [name for name in options.protocols if name not in protocols]
        if missing:
            raise BrokerError(
                ErrorCode.ILLEGAL_STATE,
                f"acceptor {options.name}: unknown protocol {', '.join(missing)}; "
                f"the broker has {', '.join(protocols)}",
            )
        self._protocols = [protocols[name] for name in options.protocols or protocols]
        self._subprotocols = [
            name for one in self._protocols for name in one.web_socket.subprotocols
        ]
        self._detected = list(self._protocols)
        if self._subprotocols:
            self._detected.append(AcceptedProtocol(HTTP_SIZE, 0, is_http, self._web_socket))
        self._listeners: list[Listener] = []
        self._is_listening = False
        # In the order in which they came.
        self.connections: dict[Connection, None] = {}
        # Those whose proxy has not said for whom it connects.
        self._arriving: dict[ProxiedSocket, None] = {}
        self._failed_handshakes = FailedHandshakes()
        self._has_left = asyncio.Event()
        # Between close_connections() and the next start().
        self._is_closed = False

    @property
    def port(self) -> int:
        """Where it listens, also where the system chose."""
        return self._listeners[0].port if self._listeners else self.options.port

    @property
    def is_listening(self) -> bool:
        """Whether clients can connect."""
        return self._is_listening

    def bind(self) -> None:
        """Take the ports without listening. Idempotent.

        Raises:
            BrokerError: an address is in use, or not of this machine.
        """
        if self._listeners:
            return
        for host in self._hosts:
            try:
                self._listeners += self._network.bind(host, self.options.port)
            except OSError as error:
                self._close()
                raise self._cannot_listen(host, error) from error

    @property
    def _hosts(self) -> list[str]:
        return [host.strip() for host in self.options.host.split(",") if host.strip()]

    def _close(self) -> None:
        for one in self._listeners:
            one.close()
        self._listeners.clear()
        self._is_listening = False

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
        self._is_closed = False
        options = self.options
        if not self._is_listening:
            for listener in self._listeners:
                try:
                    await listener.listen(
                        cast(
                            "Callable[[], asyncio.BaseProtocol]",
                            self._accept_proxied if options.is_behind_proxy else self._accept,
                        ),
                        # A proxy speaks first.
                        ssl=None if options.is_behind_proxy else options.ssl,
                        # Without: a minute, which is too long for peers that send nothing.
                        handshake_timeout_s=_handshake_s(options),
                        shaken=self._shaken,
                        backlog=options.backlog,
                    )
                except OSError as error:
                    self._close()
                    raise self._cannot_listen(listener.host, error) from error
            self._is_listening = bool(self._listeners)
        log.info("AMQ221020: Started acceptor %s at %s:%d", options.name, options.host, self.port)

    async def accept_in_process(self, connected: socket.socket) -> None:
        """Serve a client of this process at the other end of a connected socket; no port is used.

        Args:
            connected: does not block; the connection closes it.
        """
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(
            cast("Callable[[], asyncio.Protocol]", self._accept), connected
        )

    def _accept(self) -> Connection:
        connection = Connection(
            self._detect,
            self._left,
            handshake_timeout_s=self.options.handshake_timeout_s,
            loop=asyncio.get_running_loop(),
            connection_id=self._ids.token(CONNECTION_ID_SIZE),
            created_ms=self._clock.now_ms(),
            router=self.options.router,
        )
        if self._is_closed:
            # It was accepted before the port was given up.
            connection.close()
            return connection
        allowed = self.options.connections_allowed
        if 0 <= allowed <= len(self.connections) + len(self._arriving):
            return _Refused(allowed, connection)
        self.connections[connection] = None
        return connection

    def _accept_proxied(self) -> ProxiedSocket:
        options = self.options
        made = ProxiedSocket(
            self._accept,
            self._arriving.pop,
            acceptor_name=options.name,
            timeout_s=options.handshake_timeout_s,
            ssl=options.ssl,
            failures=self._failed_handshakes,
        )
        self._arriving[made] = None
        return made

    def _shaken(
        self, connection: asyncio.BaseProtocol, remote: str, error: Exception | None
    ) -> None:
        made = cast("Connection", connection)
        if made.remote:
            return  # It has its transport.
        self._failed_handshakes.tell(remote, error or "")
        # The transport will not say so: it never was the connection's.
        self._left(made)

    def _detect(self, connection: Connection, first: bytes) -> tuple[Receiver, int] | Detection:
        found = _spoken(self._detected, first)
        if isinstance(found, Detection):
            if found is Detection.NO and is_proxy_header(first):
                log.warning(
                    "AMQ224152: %s used the PROXY protocol; acceptor %s has "
                    "proxyProtocolEnabled=false",
                    connection.remote,
                    self.options.name,
                )
            return found
        return found.connect(connection), found.preamble_size

    def _web_socket(self, connection: Peer) -> Receiver:
        # It takes a tenth of a second to import, and not every broker is asked for one.
        from broker.transport.web_socket import WebSocket

        return WebSocket(
            connection, self.options.web_socket, self._subprotocols, self._detect_inside
        )

    def _detect_inside(self, peer: Peer, first: bytes) -> tuple[Receiver, int, bool] | Detection:
        """As for the connection itself, but that a WebSocket has no WebSocket in it."""
        found = _spoken(self._protocols, first)
        if isinstance(found, Detection):
            return found
        return found.connect(peer), found.preamble_size, found.web_socket.takes_text

    async def reload(self, ssl_context: ssl.SSLContext) -> None:
        """Take another certificate, for connections that come from now on.

        Raises:
            BrokerError: another process has taken the port meanwhile.
        """
        was_listening = self.is_listening
        await self._stop_for_now()
        self.options = replace(self.options, ssl=ssl_context)
        if was_listening:
            await self.start()

    async def stop(self) -> None:
        """Listen no more and give the ports up; connections stay."""
        self._close()

    async def _stop_for_now(self) -> None:
        """As stop(); start() takes the same port again, also where the system chose it."""
        port = self.port
        await self.stop()
        self.options = replace(self.options, port=port)

    async def leave(self) -> None:
        """Close all connections and give the ports up, which start() takes again."""
        await self._stop_for_now()
        self.close_connections()

    def _left(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self._has_left.set()

    async def wait_until_left(self) -> None:
        """Wait until no connection is open."""
        while self.connections:
            self._has_left.clear()
            await self._has_left.wait()

    def close_connections(self) -> None:
        """Close all connections, what was written to them sent before; and those still to come."""
        self._is_closed = True
        for connection in list(self.connections):
            connection.close()
        for arriving in list(self._arriving):
            arriving.close()


def _spoken(protocols: Iterable[AcceptedProtocol], first: bytes) -> AcceptedProtocol | Detection:
    """Ask the protocols in turn; one that needs more bytes is waited for."""
    for one in protocols:
        answer = one.detect(first[: one.detection_size])
        if answer is Detection.YES:
            return one
        if answer is Detection.MORE and len(first) < one.detection_size:
            return Detection.MORE
    return Detection.NO


class _Refused(Connection):
    """A connection too many: closed as soon as it is there."""

    def __init__(self, allowed: int, like: Connection) -> None:
        super().__init__(
            like._detect,
            like._on_end,
            handshake_timeout_s=0,
            loop=asyncio.get_running_loop(),
            connection_id=like.connection_id,
            created_ms=like.created_ms,
        )
        self._allowed = allowed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        log.warning("AMQ222193: Connection limit of %d reached. Refusing", self._allowed)
        super().connection_made(transport)
        self.abort()
