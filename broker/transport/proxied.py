"""A socket of a proxy, until it has said for whom it connects; then it is a `Connection`.

header of the PROXY protocol ─▶ TLS, where the acceptor has it ─▶ Connection
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from broker.transport.proxy_protocol import ProxyHeader, ProxyHeaderError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from broker.transport.connection import Connection
    from broker.transport.failed_handshakes import FailedHandshakes
    from broker.transport.proxy_protocol import ProxiedFrom

__all__ = ["ProxiedSocket"]

log = logging.getLogger("broker")


class ProxiedSocket(asyncio.BufferedProtocol):
    """See the module's text.

    Args:
        accept: makes the connection.
        on_end: called once, before accept() or when the socket is gone.
        acceptor_name: for logs.
        timeout_s: seconds for the header, and for the handshake of TLS; 0 is for ever.
        ssl: context of a TLS acceptor.
        failures: told of a handshake that failed.
    """

    def __init__(
        self,
        accept: Callable[[], Connection],
        on_end: Callable[[ProxiedSocket, None], object],
        *,
        acceptor_name: str,
        timeout_s: float,
        ssl: ssl.SSLContext | None,
        failures: FailedHandshakes,
    ) -> None:
        self._accept = accept
        self._on_end = on_end
        self._acceptor_name = acceptor_name
        self._timeout_s = timeout_s
        self._ssl = ssl
        self._failures = failures
        self._loop = asyncio.get_running_loop()
        self._header = ProxyHeader()
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._securing: asyncio.Task[None] | None = None
        self._is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_closed:
            self.close()
        elif self._timeout_s > 0:
            self._timer = self._loop.call_later(self._timeout_s, self._too_slow)

    def _too_slow(self) -> None:
        log.warning(
            "AMQ224088: acceptor %s: the proxy at %s sent no header in %.0f s: closed",
            self._acceptor_name,
            self._remote,
            self._timeout_s,
        )
        self.close()

    @property
    def _remote(self) -> object:
        return None if self._transport is None else self._transport.get_extra_info("peername")

    def get_buffer(self, sizehint: int) -> bytearray:
        """Give room for what is wanted, and no more: the rest is the connection's."""
        self._buffer = bytearray(self._header.wanted)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """The next bytes of the header."""
        try:
            self._header.feed(bytes(self._buffer[:nbytes]))
        except ProxyHeaderError as error:
            log.warning(
                "AMQ224152: %s: closed: acceptor %s has proxyProtocolEnabled=true: %s",
                self._remote,
                self._acceptor_name,
                error,
            )
            self.close()
            return
        found, transport = self._header.found, self._transport
        if found is None or transport is None:
            return
        self._stop_waiting()
        transport.pause_reading()
        if self._ssl is None:
            self._become(found, transport, b"")
        else:
            self._securing = self._loop.create_task(self._secure(found, transport, self._ssl))

    async def _secure(
        self, found: ProxiedFrom, transport: asyncio.Transport, context: ssl.SSLContext
    ) -> None:
        early = _Early()
        try:
            secured = await self._loop.start_tls(
                transport,
                early,
                context,
                server_side=True,
                ssl_handshake_timeout=self._timeout_s or None,
            )
        except OSError as error:
            self._failures.tell(found.source or self._remote, error)
            secured = None
        if secured is None or early.is_lost or self._is_closed:
            transport.abort()
            self._end()
            return
        self._become(found, secured, bytes(early.data))

    def _become(self, found: ProxiedFrom, transport: asyncio.Transport, data: bytes) -> None:
        """Hand the socket over to a connection."""
        self._end()
        connection = self._accept()
        transport.set_protocol(cast("asyncio.BaseProtocol", connection))
        connection.connection_made(transport)
        connection.remote = found.source or connection.remote
        connection.local = found.destination or connection.local
        if not transport.is_closing():
            transport.resume_reading()
            if data:
                connection.data_received(data)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._stop_waiting()
        on_end, self._on_end = self._on_end, _nothing
        on_end(self, None)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone before it has become a connection."""
        self._end()

    def close(self) -> None:
        """Close it at once: nothing was written."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()


class _Early(asyncio.Protocol):
    """Keeps what comes behind the handshake until the connection is told of its socket.

    It is one turn of the loop, in which the transport reads at most once.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True


def _nothing(socket: ProxiedSocket, _: None) -> None:
    """It has ended already."""
