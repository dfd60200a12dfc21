"""A connection's stream: the only place of the client that opens one."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, cast

from broker.client.errors import NotConnected
from broker.environment import pause_after_full_read
from broker.protocols.core.errors import PacketFormatError
from broker.security.keystores import load_key, load_trusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.client.link import Link
    from broker.environment import Network
    from broker.model.transport_configuration import TransportConfiguration

# Bytes waiting in the socket's buffer from which on senders wait.
_WRITE_HIGH_WATER: Final = 256 * 1024


class Driver(asyncio.Protocol):
    """Carries bytes between a socket and a `Link`.

    Attributes:
        on_lost: called once, with the reason, when the connection is gone by itself.
        last_received: the loop's time of the last byte from the broker.
    """

    def __init__(self, on_lost: Callable[[Exception], None], *, is_secured: bool) -> None:
        self.on_lost = on_lost
        self._is_secured = is_secured
        self.link: Link | None = None
        self.last_received = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_lost = False

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # By what it does: that of uvloop is of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_WRITE_HIGH_WATER)
        self.last_received = self._loop.time()

    def data_received(self, data: bytes) -> None:
        """Hand the bytes on; an invalid packet ends the connection."""
        self.last_received = self._loop.time()
        if self.link is None:
            return
        try:
            self.link.receive_data(data)
        except PacketFormatError as error:
            question = self._question
            self.lose(NotConnected(f"the broker sent an invalid packet: {error}{question}"))
        pause_after_full_read(data, self._transport, self._loop)

    def eof_received(self) -> None:
        """Nothing: asyncio closes the transport and says so."""

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the owner."""
        self._writable.set()
        reason = error or "closed by the broker"
        self._report(NotConnected(f"the connection is lost: {reason}{self._question}"))

    @property
    def _question(self) -> str:
        """What may be wrong where the broker has not answered the first packet."""
        if self._is_secured or self.link is None or self.link.ready.is_done:
            return ""
        return "; does the port expect TLS (sslEnabled=true)?"

    def pause_writing(self) -> None:
        """Pause senders."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume senders."""
        self._writable.set()

    # What the client calls.

    def wake(self) -> None:
        """Send what the link has, once this turn of the loop is over: many frames, one write."""
        self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what the link has now."""
        if self.link is None or self._transport is None:
            return
        frames = self.link.take_outgoing()
        if frames and not self._transport.is_closing():
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    @property
    def is_writable(self) -> bool:
        """Whether the socket takes more now."""
        return self._writable.is_set()

    async def drain(self) -> None:
        """Wait until the socket takes more."""
        await self._writable.wait()

    def lose(self, error: Exception) -> None:
        """Give the connection up."""
        if self._transport is not None:
            self._transport.abort()
        self._report(error)

    def close(self) -> None:
        """Close it in peace, with what is still to be sent."""
        self._is_lost = True
        self.flush()
        # One of TLS that is closed again forgets its connection, and fails at its next call.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close it at once; what is still to be sent is dropped."""
        self._is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def _report(self, error: Exception) -> None:
        if not self._is_lost:
            self._is_lost = True
            self.on_lost(error)


def tls_context(connector: TransportConfiguration) -> ssl.SSLContext | None:
    """Give what the connector's parameters say of TLS, None where it is off.

    `trustStorePath` and `keyStorePath` name PEM files or keystores of Java (PKCS12, JKS).

    Raises:
        OSError: a file cannot be read.
        ValueError: a keystore is damaged, or has another password.
    """

    def text(name: str) -> str | None:
        value = connector.parameters.get(name)
        return None if value is None else str(value)

    def flag(name: str, default: bool) -> bool:
        return (text(name) or str(default)).lower() == "true"

    if not flag("sslEnabled", False):
        return None
    trust_store = text("trustStorePath")
    if trust_store is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        load_trusted(context, trust_store, text("trustStorePassword"))
    if flag("trustAll", False):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not flag("verifyHost", True):
        context.check_hostname = False
    key_store = text("keyStorePath")
    if key_store is not None:
        load_key(context, key_store, text("keyStorePassword"), text("keyStoreAlias"))
    return context


async def open_socket(
    connector: TransportConfiguration,
    on_lost: Callable[[Exception], None],
    timeout_s: float | None,
    network: Network,
) -> Driver:
    """Connect.

    Raises:
        NotConnected: no broker listens there, or none answered in time.
    """
    where = f"{connector.host}:{connector.port}"
    try:
        context = tls_context(connector)
        async with asyncio.timeout(timeout_s):
            return await network.connect(
                lambda: Driver(on_lost, is_secured=context is not None),
                connector.host,
                connector.port,
                ssl=context,
                server_hostname=str(connector.parameters["sniHost"])
                if "sniHost" in connector.parameters
                else None,
            )
    except TimeoutError as error:
        raise NotConnected(f"{where}: no connection in {timeout_s} s") from error
    except (OSError, ValueError) as error:
        # The peer of a TLS handshake may go without a word.
        reason = str(error) or "closed in the TLS handshake; does the port expect TLS?"
        raise NotConnected(f"{where}: {reason}") from error
