"""One socket: its protocol found out, its bytes handed over, what goes out held within bounds.

    first bytes ─▶ which protocol ─▶ handler.receive(bytes) …
    write(bytes) ─▶ gathered for one turn of the loop ─▶ transport

After a full read the rest of the loop has a turn before the next one: see `environment.FULL_READ`.

Bounds: until the protocol is known no more bytes are kept than the protocols need to tell, and for
`handshake_timeout_s` seconds at most. If the peer does not read what it is sent, nothing more is
read from it either. The handler is told to pause deliveries: what waits is what was on its way, and
no more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from broker.environment import FULL_READ
from broker.protocols.registry import Detection
from broker.transport.principal import principal_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.protocols.peer import Receiver

__all__ = ["Connection"]

log = logging.getLogger("broker")

# Bytes that may wait to be sent before the peer is paused (writeBufferHighWaterMark).
WRITE_HIGH_WATER: Final = 128 * 1024
WRITE_LOW_WATER: Final = 32 * 1024
_FULL_READ: Final = FULL_READ
# Gathered at most before they are handed to the transport within a turn.
_GATHERED_MAX: Final = 64 * 1024


class Connection:
    """See the module's text. An asyncio.Protocol but for the base, which what is compiled has not.

    Args:
        detect: gives the handler for the first bytes, with how many of them it is not given; or
            whether more are needed. NO closes the connection.
        on_end: called once when the connection is gone.
        handshake_timeout_s: seconds for the first bytes (handshake-timeout); 0 is for ever.
        loop: that it belongs to.
        connection_id: 8 hexadecimal digits, for operators.
        created_ms: when it came, ms since 1970.
        router: connection router of the acceptor; empty for none.

    Attributes:
        connection_id: as given.
        remote: address of the peer.
        local: address of ours.
        principal: who the peer's certificate is for, verified by TLS; None without one.
        sni_host: host name that a client of TLS has asked for; None without one.
        created_ms: as given.
        router: as given.
        last_received_s: loop time of the last byte.
        handshake_timeout_s: as given.
    """

    def __init__(
        self,
        detect: Callable[[Connection, bytes], tuple[Receiver, int] | Detection],
        on_end: Callable[[Connection], object],
        *,
        handshake_timeout_s: float,
        loop: asyncio.AbstractEventLoop,
        connection_id: str,
        created_ms: int,
        router: str = "",
    ) -> None:
        self._detect = detect
        self._on_end = on_end
        self.handshake_timeout_s = handshake_timeout_s
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        # Closed before its socket was there.
        self._is_closed = False
        self._handler: Receiver | None = None
        self._first = b""
        self._handshake: asyncio.TimerHandle | None = None
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._is_flush_due = False
        self.is_paused = False
        # How many want nothing to be read for now.
        self._reading_holders = 0
        # For the rest of a turn of the loop.
        self._yields = False
        self.remote = self.local = ""
        self.principal: str | None = None
        self.sni_host: str | None = None
        self.connection_id = connection_id
        self.created_ms = created_ms
        self.router = router
        self.last_received_s = loop.time()

    # --- the transport's calls ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER, low=WRITE_LOW_WATER)
        peer = transport.get_extra_info("peername")
        self.remote = _place(peer)
        self.local = _place(transport.get_extra_info("sockname"))
        self.principal = principal_of(transport.get_extra_info("peercert"))
        self.sni_host = getattr(transport.get_extra_info("ssl_object"), "sni_host", None)
        if self._is_closed:
            self.abort()
        elif self.handshake_timeout_s > 0:
            self._handshake = self._loop.call_later(self.handshake_timeout_s, self._too_slow)

    def _too_slow(self) -> None:
        log.warning("AMQ224088: %s did not say what it speaks: closed", self.remote)
        self.abort()

    def data_received(self, data: bytes) -> None:
        """The next bytes."""
        self.last_received_s = self._loop.time()
        handler = self._handler
        try:
            if handler is None:
                found = self._begin(data)
                if found is None:
                    return
                handler, data = found
            handler.receive(data)
            if len(data) >= _FULL_READ and not self._yields:
                self._yields = True
                self._read_or_not()
                self._loop.call_soon(self._resume_after_turn)
        except Exception as error:
            log.warning("%s: closed: %s: %s", self.remote, type(error).__name__, error)
            log.debug("%s", self.remote, exc_info=error)
            self.abort()

    def _resume_after_turn(self) -> None:
        self._yields = False
        self._read_or_not()

    def _begin(self, data: bytes) -> tuple[Receiver, bytes] | None:
        data = self._first + data
        found = self._detect(self, data)
        if found is Detection.MORE:
            self._first = data
            return None
        self._first = b""
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        if isinstance(found, Detection):
            log.warning("%s speaks no protocol of this acceptor: closed", self.remote)
            self.abort()
            return None
        self._handler, consumed = found
        if self.is_paused:
            self._handler.pause()
        return self._handler, data[consumed:]

    def eof_received(self) -> bool:
        """The peer sends no more: a half-open connection is of no use."""
        return False

    def pause_writing(self) -> None:
        """The peer does not read."""
        self.is_paused = True
        self._read_or_not()
        if self._handler is not None:
            self._handler.pause()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self.is_paused = False
        self._read_or_not()
        if self._handler is not None:
            self._handler.go_on()

    def _read_or_not(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_held = self.is_paused or self._yields or self._reading_holders > 0
        if is_held and transport.is_reading():
            transport.pause_reading()
        elif not is_held and not transport.is_reading():
            transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None
        self._transport = None
        self._gathered.clear()
        handler, self._handler = self._handler, None
        self._on_end(self)
        if handler is not None:
            handler.lost(error)

    # --- what handlers use --------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether anything written may still arrive."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte came; 0 while we are the ones who do not read."""
        return 0.0 if self._reading_holders else self._loop.time() - self.last_received_s

    def hold_reading(self) -> None:
        """Read no more from the socket, until release_reading() was called as often."""
        self._reading_holders += 1
        self._read_or_not()

    def release_reading(self) -> None:
        """Read again, unless another holder is left."""
        self._reading_holders -= 1
        if self._reading_holders == 0:
            self.last_received_s = self._loop.time()
            self._read_or_not()

    def write(self, data: bytes) -> None:
        """Send bytes, in the order of the calls; dropped where the connection is gone."""
        if self._transport is None:
            return
        self._gathered.append(data)
        self._gathered_size += len(data)
        if self._gathered_size >= _GATHERED_MAX:
            self._flush()
        elif not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._is_flush_due = False
        self._flush()

    def _flush(self) -> None:
        if not self._gathered or self._transport is None:
            return
        data = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
        self._gathered.clear()
        self._gathered_size = 0
        self._transport.write(data)

    def close(self) -> None:
        """Send what was written, then close."""
        self._is_closed = True
        self._flush()
        # One of TLS that is closed again forgets its connection, and fails at its next call.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()


def _place(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)
