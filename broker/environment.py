"""What a broker or a client has of the machine: clock, ids, chance, network, threads.

    Broker(options, environment=…)   AsyncClient(uri, environment=…)   each part gets what it uses

`Environment()` is the real one. Another one lets many brokers and clients run in one process, on
another clock, without sockets and threads.

The event loop is the seam for everything else: timers (`call_later`, `asyncio.sleep`), the age of a
connection (`loop.time`), and blocking work that an `await` waits for (`asyncio.to_thread` is the
loop's `run_in_executor`). Completions of a store come by `broker.storage.loop_store.LoopStore`.
tests/house/test_seams.py finds what reads a clock, a socket or chance elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

__all__ = [
    *("FULL_READ", "Clock", "DatagramSocket", "Environment", "Ids", "Listener", "Network"),
    *("new_executor", "pause_after_full_read"),
]

FULL_READ: Final = 256_000
"""Bytes of a full read of uvloop's (UV_STREAM_RECV_BUF_SIZE). libuv follows it by up to 31 more at
once, before it looks at any other socket or at what has become durable (uv__read). A protocol
that gets one pauses reading for a turn of the loop."""

P = TypeVar("P", bound=asyncio.BaseProtocol)


def pause_after_full_read(
    data: bytes, transport: asyncio.Transport | None, loop: asyncio.AbstractEventLoop
) -> None:
    """Where a read was full, let everything else have a turn before the next; see FULL_READ.

    Args:
        data: what was read.
        transport: that it came from; None where it is gone.
        loop: of both.
    """

    def resume() -> None:
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    if len(data) >= FULL_READ and transport is not None and not transport.is_closing():
        transport.pause_reading()
        loop.call_soon(resume)


# Sockets that a TLS acceptor takes before others have their turn.
_ACCEPTED_AT_ONCE: Final = 64
_ACCEPT_AGAIN_S: Final = 1.0


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Give the wall clock, ms since 1970. It may be set back."""

    def now_s(self) -> float:
        """As now_ms(), in seconds and without arithmetic: for what each message passes."""

    def monotonic_s(self) -> float:
        """Give seconds since some moment; they never fall."""


class Ids(Protocol):
    """Makes ids that nothing else has."""

    def time_uuid(self) -> uuid.UUID:
        """Give one of version 1: of a node, or of a message."""

    def random_uuid(self) -> uuid.UUID:
        """Give one of version 4."""

    def token(self, size: int) -> str:
        """Give `size` bytes as hexadecimal digits."""


class Listener(Protocol):
    """A port that is taken; clients can connect once it listens."""

    host: str
    """Address, not name."""
    port: int
    """Also where the system chose it."""

    async def listen(
        self,
        accept: Callable[[], asyncio.BaseProtocol],
        *,
        ssl: ssl.SSLContext | None,
        handshake_timeout_s: float | None,
        shaken: Callable[[asyncio.BaseProtocol, str, Exception | None], object],
        backlog: int,
    ) -> None:
        """Let clients connect, once.

        Args:
            accept: makes the protocol of a connection.
            ssl: for TLS.
            handshake_timeout_s: seconds for a TLS handshake; None is the loop's own limit, or TCP.
            shaken: told at the end of each TLS handshake: the protocol, the peer, and what was
                wrong. Of a peer that was gone that is None, and the protocol got no transport.
            backlog: connections that wait until they are accepted.

        Raises:
            OSError: the port is not to be had any more.
        """

    def close(self) -> None:
        """Listen no more and give the port up; connections stay. Idempotent."""


class DatagramSocket(Protocol):
    """A UDP socket, or the membership in a multicast group."""

    def send(self, data: bytes, host: str, port: int) -> None:
        """Send one datagram. That it was sent does not mean that anybody gets it.

        Raises:
            OSError: that address cannot be reached, or the datagram is too large.
        """

    def close(self) -> None:
        """Send and receive no more. Idempotent."""


class Network(Protocol):
    """Opens streams, and sockets for datagrams."""

    def bind(self, host: str, port: int) -> Sequence[Listener]:
        """Take a port of every address that a name stands for; all, or none.

        Args:
            host: address or name.
            port: 0 lets the system choose.

        Raises:
            OSError: an address is in use, or not of this machine; a name is unknown.
        """

    async def connect(
        self,
        make: Callable[[], P],
        host: str,
        port: int,
        *,
        ssl: ssl.SSLContext | None,
        server_hostname: str | None,
    ) -> P:
        """Connect, and give the protocol, which has its transport then.

        Args:
            make: makes the protocol.
            host: address or name.
            port: there.
            ssl: for TLS.
            server_hostname: name that the certificate must have; None is `host`.

        Raises:
            OSError: nothing listens there.
        """

    async def open_datagrams(self, host: str | None, port: int) -> DatagramSocket:
        """Take a port to send datagrams from; those to multicast groups leave by its interface.

        Args:
            host: address of an interface; None leaves it to the system.
            port: 0 lets the system choose.

        Raises:
            OSError: the port is in use, or the address is not of this machine.
        """

    async def join_group(
        self,
        group: str,
        port: int,
        interface: str | None,
        received: Callable[[bytes], object],
    ) -> DatagramSocket:
        """Receive what is sent to a multicast group, beside others on this machine who do.

        Args:
            group: class D address.
            port: of the group.
            interface: address of the interface where; None leaves it to the system.
            received: called with each datagram.

        Raises:
            OSError: the port is in use by others than receivers of groups; no such interface.
        """


class _SystemClock:
    """The machine's."""

    # Plain functions, without an object between: some are called for each message.
    @staticmethod
    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    now_s = staticmethod(time.time)
    monotonic_s = staticmethod(time.monotonic)


class _SystemIds:
    """Of the machine's address, clock and source of chance."""

    time_uuid = staticmethod(uuid.uuid1)
    random_uuid = staticmethod(uuid.uuid4)
    token = staticmethod(secrets.token_hex)


class _TlsServer:
    """Accepts sockets and shakes hands with each: the loop's server is silent on a failure."""

    def __init__(
        self,
        bound: socket.socket,
        accept: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        handshake_timeout_s: float | None,
        shaken: Callable[[asyncio.BaseProtocol, str, Exception | None], object],
    ) -> None:
        self._socket = bound
        self._accept = accept
        self._context = context
        self._timeout_s = handshake_timeout_s
        self._shaken = shaken
        self._loop = asyncio.get_running_loop()
        # The loop alone keeps only weak references.
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def listen(self, backlog: int) -> None:
        self._socket.listen(backlog)
        self._socket.setblocking(False)
        self._resume()

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket.fileno(), self._ready)

    def _ready(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                one, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # No file descriptor is left: those who wait are taken later, as the loop does it.
                self._loop.remove_reader(self._socket.fileno())
                self._pause = self._loop.call_later(_ACCEPT_AGAIN_S, self._resume)
                self._loop.call_exception_handler(
                    {"message": "socket.accept() out of system resource", "exception": error}
                )
                return
            one.setblocking(False)
            task = self._loop.create_task(self._shake_hands(one, f"{peer[0]}:{peer[1]}"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, one: socket.socket, peer: str) -> None:
        made = self._accept()
        wrong: Exception | None = None
        try:
            await self._loop.connect_accepted_socket(
                cast("Callable[[], asyncio.Protocol]", lambda: made),
                one,
                ssl=self._context,
                ssl_handshake_timeout=self._timeout_s,
            )
        except OSError as error:
            wrong = error
        self._shaken(made, peer, wrong)

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        else:
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()


class _SocketListener:
    """A bound socket, and the server of the running event loop on it."""

    def __init__(self, bound: socket.socket) -> None:
        self._socket = bound
        self._server: asyncio.Server | _TlsServer | None = None
        self.host, self.port = bound.getsockname()[:2]

    async def listen(
        self,
        accept: Callable[[], asyncio.BaseProtocol],
        *,
        ssl: ssl.SSLContext | None,
        handshake_timeout_s: float | None,
        shaken: Callable[[asyncio.BaseProtocol, str, Exception | None], object],
        backlog: int,
    ) -> None:
        if ssl is not None:
            server = _TlsServer(self._socket, accept, ssl, handshake_timeout_s, shaken)
            server.listen(backlog)
            self._server = server
            return
        self._server = await asyncio.get_running_loop().create_server(
            cast("Callable[[], asyncio.Protocol]", accept), sock=self._socket, backlog=backlog
        )

    def close(self) -> None:
        server, self._server = self._server, None
        if server is None:
            self._socket.close()
        else:
            server.close()


class _Datagrams(asyncio.DatagramProtocol):
    """A UDP socket in the running event loop."""

    def __init__(self, bound: socket.socket, received: Callable[[bytes], object] | None) -> None:
        self._socket = bound
        self._received = received
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: object) -> None:
        del address
        if self._received is not None:
            self._received(data)

    def send(self, data: bytes, host: str, port: int) -> None:
        # On the socket itself: the transport's sendto() tells of an error later, and not the
        # caller. Few datagrams are sent; one that finds no room is as one that was lost.
        if self._socket.fileno() >= 0:
            with contextlib.suppress(BlockingIOError):
                self._socket.sendto(data, (host, port))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._socket.close()


class _SystemNetwork:
    """TCP and UDP sockets, in the running event loop."""

    def bind(self, host: str, port: int) -> Sequence[Listener]:
        bound: list[_SocketListener] = []
        try:
            for family, place in _addresses(host, port):
                bound.append(_SocketListener(_bound_socket(family, place)))
        except OSError:
            for one in bound:
                one.close()
            raise
        return bound

    async def connect(
        self,
        make: Callable[[], P],
        host: str,
        port: int,
        *,
        ssl: ssl.SSLContext | None,
        server_hostname: str | None,
    ) -> P:
        _, made = await asyncio.get_running_loop().create_connection(
            cast("Callable[[], asyncio.Protocol]", make),
            host,
            port,
            ssl=ssl,
            server_hostname=server_hostname,
        )
        return cast("P", made)

    async def open_datagrams(self, host: str | None, port: int) -> DatagramSocket:
        made = _multicast_socket(host)
        try:
            made.bind((host or "", port))
        except OSError:
            made.close()
            raise
        return _Datagrams(made, None)

    async def join_group(
        self,
        group: str,
        port: int,
        interface: str | None,
        received: Callable[[bytes], object],
    ) -> DatagramSocket:
        made = _multicast_socket(interface)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # To the group's address: else what is sent to other groups of the port would come, too.
            made.bind((group, port))
            membership = socket.inet_aton(group) + socket.inet_aton(interface or "0.0.0.0")
            made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            protocol = _Datagrams(made, received)
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: protocol, sock=made)
        except OSError:
            made.close()
            raise
        return protocol


def _multicast_socket(interface: str | None) -> socket.socket:
    """Give a socket for datagrams that uses this interface for multicast groups."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    if interface is not None:
        try:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        except OSError:
            made.close()
            raise
    return made


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


def new_executor(thread_count: int, name: str) -> Executor:
    """Give threads of one kind.

    Args:
        thread_count: pieces of work done at the same time.
        name: of the threads.
    """
    return ThreadPoolExecutor(thread_count, thread_name_prefix=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """See the module's text.

    Attributes:
        clock: tells the time.
        ids: of nodes, sessions, connections, queues for answers.
        chance: of delays and of the choice among brokers; not for secrets.
        network: opens streams, and sockets for datagrams.
        executor: makes threads of some count and name, for work beside the event loop. What does
            such work without threads ends a future no later than its `result()` is asked for.
    """

    clock: Clock = field(default_factory=_SystemClock)
    ids: Ids = field(default_factory=_SystemIds)
    chance: random.Random = field(default_factory=random.Random)
    network: Network = field(default_factory=_SystemNetwork)
    executor: Callable[[int, str], Executor] = new_executor
