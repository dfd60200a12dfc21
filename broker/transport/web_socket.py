"""A WebSocket in a connection: the protocol that is spoken inside sees it as its socket.

    Connection ─▶ WebSocket.receive() ─▶ messages without their frames ─▶ handler.receive()
    Connection ◀─ frames ◀─ WebSocket.write() ◀─ handler

RFC 6455 by the package `websockets`, of which the part without I/O is used. As in Artemis the
upgrade is answered whatever subprotocol a client offers; the first bytes inside say what is spoken.
Each write() is one message, in frames of at most `frame_size_max` bytes. Incoming frames have the
same limit, messages have none.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
from typing import TYPE_CHECKING

from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from broker.protocols.registry import Detection
from broker.transport.web_socket_options import WebSocketEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from websockets.typing import Subprotocol

    from broker.protocols.peer import Peer, Receiver
    from broker.transport.web_socket_options import WebSocketOptions

__all__ = ["WebSocket"]

log = logging.getLogger("broker")
# The package tells of each connection that opens and closes.
_quiet = logging.getLogger("broker.websocket")
_quiet.setLevel(logging.ERROR)


class WebSocket:
    """The `Receiver` of a connection, and the `Peer` of what is spoken inside. Never waits.

    Args:
        peer: the connection.
        options: of the acceptor.
        subprotocols: that the acceptor's protocols know.
        detect: gives the handler for the first bytes inside, how many of them it is not given, and
            whether its protocol may come and go as text; or whether more are needed.
    """

    def __init__(
        self,
        peer: Peer,
        options: WebSocketOptions,
        subprotocols: Sequence[str],
        detect: Callable[[Peer, bytes], tuple[Receiver, int, bool] | Detection],
    ) -> None:
        def select(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
            return next((one for one in offered if one in subprotocols), None)

        self._peer = peer
        self._options = options
        self._detect = detect
        self._protocol = ServerProtocol(
            extensions=[ServerPerMessageDeflateFactory()] if options.compresses else None,
            select_subprotocol=select,
            max_size=(None, options.frame_size_max),
            logger=_quiet,
        )
        self._handler: Receiver | None = None
        self._first = b""
        # The peer sent what is not WebSocket.
        self._is_refused = False
        # Of the message that is coming.
        self._is_text = False
        self._takes_text = True
        self._encoder: codecs.IncrementalDecoder | None = None
        self.connection_id = peer.connection_id
        self.remote = peer.remote
        self.local = peer.local
        self.principal = peer.principal
        self.sni_host = peer.sni_host
        self.router = peer.router
        self.created_ms = peer.created_ms
        self.handshake_timeout_s = peer.handshake_timeout_s
        self._handshake: asyncio.TimerHandle | None = None
        if self.handshake_timeout_s > 0:
            self._handshake = asyncio.get_running_loop().call_later(
                self.handshake_timeout_s, self._too_slow
            )

    def _too_slow(self) -> None:
        log.warning("AMQ224088: %s did not say what it speaks: closed", self.remote)
        self.abort()

    # --- what the connection calls ------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Request):
                self._upgrade(event)
            elif isinstance(event, Frame):
                self._take(event)
        error = protocol.handshake_exc or protocol.parser_exc
        if error is not None and not self._is_refused:
            self._is_refused = True
            log.warning("%s: WebSocket closed: %s", self.remote, error)
        self._send()

    def _upgrade(self, request: Request) -> None:
        protocol = self._protocol
        if protocol.close_rcvd is not None or protocol.parser_exc is not None:
            # RFC 6455, 4.1: a client waits for the answer before it says more. What it said with
            # its request has ended the WebSocket, which the package cannot open then.
            self._is_refused = True
            log.warning("%s: WebSocket closed: it ended before it was open", self.remote)
            self._peer.abort()
            return
        protocol.send_response(protocol.accept(request))

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            # The package answers a ping and a close.
            return
        data = bytes(frame.data)
        if not data or not self._is_open:
            return
        if self._handler is None:
            data = self._begin(data)
        if self._handler is None:
            return
        if self._is_text and not self._takes_text:
            self._fail(CloseCode.UNSUPPORTED_DATA, "this protocol takes binary messages only")
        elif data:
            self._handler.receive(data)

    def _begin(self, data: bytes) -> bytes:
        """Find out what is spoken; the bytes for its handler, once there is one."""
        data = self._first + data
        found = self._detect(self, data)
        if found is Detection.MORE:
            self._first = data
            return b""
        self._stop_waiting()
        self._first = b""
        if isinstance(found, Detection):
            self._fail(CloseCode.UNSUPPORTED_DATA, "no protocol of this acceptor")
            return b""
        self._handler, consumed, self._takes_text = found
        if self._takes_text and self._options.encoder is WebSocketEncoder.text:
            self._encoder = codecs.getincrementaldecoder("utf-8")()
        if self.is_paused:
            self._handler.pause()
        return data[consumed:]

    def _stop_waiting(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
            self._handshake = None

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close it because of the peer, who is told why."""
        log.warning("%s: WebSocket closed: %s", self.remote, reason)
        self._protocol.fail(code, reason)
        self._send()

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._peer.write(data)
            else:
                self._peer.close()

    def pause(self) -> None:
        """The peer does not read."""
        if self._handler is not None:
            self._handler.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        if self._handler is not None:
            self._handler.go_on()

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self._stop_waiting()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.lost(error)

    # --- what the handler inside calls --------------------------------------------------------

    @property
    def _is_open(self) -> bool:
        return self._protocol.state is State.OPEN

    @property
    def is_open(self) -> bool:
        """Whether anything written may still arrive."""
        return self._peer.is_open and self._is_open

    @property
    def is_paused(self) -> bool:
        """The other side does not read what it was sent."""
        return self._peer.is_paused

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte came."""
        return self._peer.silent_s

    def hold_reading(self) -> None:
        """Read no more from the socket, until release_reading() was called as often."""
        self._peer.hold_reading()

    def release_reading(self) -> None:
        """Read again, unless another holder is left."""
        self._peer.release_reading()

    def write(self, data: bytes) -> None:
        """Send bytes as a message; dropped where the WebSocket is closed."""
        if not self._is_open:
            return
        if self._encoder is None:
            self._send_message(data)
            return
        try:
            # Characters are not cut: large bodies come in pieces.
            self._send_message(self._encoder.decode(data).encode())
        except UnicodeDecodeError:
            self._fail(CloseCode.INVALID_DATA, "not UTF-8, and webSocketEncoderType is text")

    def _send_message(self, data: bytes) -> None:
        """Send one message, in as many frames as it takes."""
        protocol, size = self._protocol, self._options.frame_size_max
        send: Callable[[bytes, bool], None]
        send = protocol.send_binary if self._encoder is None else protocol.send_text
        for first in range(0, len(data), size):
            is_last = first + size >= len(data)
            part = data if is_last and first == 0 else data[first : first + size]
            send(part, is_last)
            send = protocol.send_continuation
        self._send()

    def close(self) -> None:
        """Send what was written, then close."""
        if self._is_open:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self._send()
        self._peer.close()

    def abort(self) -> None:
        """Close at once."""
        self._peer.abort()
