"""One side of a TCP connection in memory, and what listens for them; see network.py."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.loop import Process, SimLoop
    from tests.sim.network import Host, Network

# Bytes on their way, or not read by the peer, at most.
WINDOW = 128 * 1024
HIGH_WATER = 64 * 1024
# Share of what is written that arrives in two parts.
SPLIT = 0.01
# Of the trace: which connection, which side of it, how many bytes, a checksum of them.
_ARRIVED = struct.Struct("<I?II")


class BoundSocket:
    """A port that was taken, and is not listened to yet."""

    def __init__(self, host: Host, port: int) -> None:
        self.host = host
        self.port = port
        self.family = socket.AF_INET

    def getsockname(self) -> tuple[str, int]:
        return self.host.address, self.port

    def close(self) -> None:
        """Give the port up."""
        if self.host.listeners.get(self.port) is self:
            del self.host.listeners[self.port]


class Listener(asyncio.AbstractServer):
    """What create_server() gives."""

    def __init__(self, bound: BoundSocket, factory: Callable[[], Any], process: Process) -> None:
        self.bound = bound
        self.factory = factory
        self.process = process
        self.is_open = True

    @property
    def sockets(self) -> tuple[BoundSocket, ...]:
        return (self.bound,) if self.is_open else ()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            listeners = self.bound.host.listeners
            if listeners.get(self.bound.port) is self:
                del listeners[self.bound.port]

    async def wait_closed(self) -> None:
        """Nothing: it is closed at once."""

    def is_serving(self) -> bool:
        return self.is_open

    def get_loop(self) -> SimLoop:
        return self.process.loop


class SimTransport(asyncio.Transport):
    """One side of a TCP connection.

    Attributes:
        is_near: of the side that has connected.
    """

    peer: SimTransport
    is_near = False

    def __init__(
        self,
        network: Network,
        number: int,
        process: Process,
        host: Host,
        peer_host: Host,
        local: tuple[str, int],
        remote: tuple[str, int],
    ) -> None:
        super().__init__({"sockname": local, "peername": remote, "socket": None})
        self.network = network
        self.number = number
        self.process = process
        self.host = host
        self.peer_host = peer_host
        self.protocol: Any = None
        self.last_arrival = 0.0
        # The socket is not there any more, even if its peer does not know.
        self.is_gone = False
        self._is_closing = False
        self._is_told = False
        self._is_reading = True
        self._is_paused = False
        # write_eof() was called; the peer was told.
        self._is_ending = False
        self._has_sent_end = False
        self._high = HIGH_WATER
        self._low = HIGH_WATER // 4
        # Written, and not on its way; on its way, or not read by the peer.
        self._waiting: deque[bytes] = deque()
        self._waiting_size = 0
        self._flying = 0
        # Arrived, and not read; None is the end.
        self._unread: deque[bytes | None] = deque()

    # --- lifecycle ----------------------------------------------------------------------------

    def begin(self, protocol: Any) -> None:
        """It is connected."""
        self.protocol = protocol
        protocol.connection_made(self)

    def accept(self, listener: Listener) -> None:
        """In the process that listens."""
        if self.is_gone:
            return
        if not listener.is_open:
            self.abort()
            return
        self.begin(listener.factory())
        self._read()

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if not self._waiting:
            self._end(None)

    def abort(self) -> None:
        if self.is_gone:
            return
        self._waiting.clear()
        self._waiting_size = 0
        self._end(None)

    def lose(self, error: Exception | None) -> None:
        """The network ended it: this side is told, the other is not."""
        if self.is_gone:
            return
        self._waiting.clear()
        self._forget()
        self._tell(error)

    def reset_by_peer(self) -> None:
        """The other side knows nothing of this connection."""
        self.network.counts["resets"] += 1
        self.lose(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))

    def cut_off(self) -> None:
        """A device between the two ended it: both sides are told, each when it is."""
        for side in (self, self.peer):
            if not side.is_gone:
                least, most = self.network.delay_s
                moment = self.network.loop.time() + self.network.loop.seeded.uniform(least, most)
                self.network.loop.call_in(side.process, moment, side.reset_by_peer)

    def vanish(self) -> None:
        """Its host has no power any more: no peer is told."""
        self.is_gone = self._is_closing = True

    def die(self) -> None:
        """The process was killed: its host closes the socket."""
        if self.is_gone:
            return
        self._forget()
        self._send_end(is_reset=bool(self._unread) or self.network.loop.seeded.random() < 0.5)

    def _end(self, error: Exception | None) -> None:
        """Closed by this side."""
        if self.is_gone:
            return
        self._is_closing = True
        self._forget()
        self._send_end(is_reset=bool(self._unread))
        self._tell(error)

    def _forget(self) -> None:
        self.is_gone = True
        self._is_closing = True
        self.host.transports.pop(id(self), None)

    def _send_end(self, *, is_reset: bool) -> None:
        if not self._has_sent_end or is_reset:
            self._has_sent_end = True
            self.network.send(self, 0, self.peer.arrived_end, is_reset)

    def _tell(self, error: Exception | None) -> None:
        if not self._is_told and self.protocol is not None:
            self._is_told = True
            process = self.process
            process.loop.call_soon(
                self.protocol.connection_lost, error, context=process.context.copy()
            )

    # --- reading ------------------------------------------------------------------------------

    def arrived(self, data: bytes) -> None:
        """In the process that reads."""
        loop = self.network.loop
        if self.is_gone:
            if self.host.is_up:
                # Bytes for a socket that was closed.
                self.network.send(self, 0, self.peer.arrived_end, True)
            return
        loop.note(_ARRIVED.pack(self.number, self.is_near, len(data), zlib.crc32(data)))
        self._unread.append(data)
        self._read()

    def arrived_end(self, is_reset: bool) -> None:
        """The other side sends no more, or knows nothing of the connection."""
        if self.is_gone:
            return
        self.network.loop.note(b"%d end %d" % (self.number, is_reset))
        if is_reset:
            self._unread.clear()
            self.reset_by_peer()
            return
        self._unread.append(None)
        self._read()

    def _read(self) -> None:
        unread = self._unread
        while unread and self._is_reading and not self.is_gone and self.protocol is not None:
            data = unread.popleft()
            if data is None:
                self._read_end()
                return
            self.peer.consumed(len(data))
            # After close() nothing is handed out any more.
            if not self._is_closing:
                self.protocol.data_received(data)

    def _read_end(self) -> None:
        keeps_open = self.protocol.eof_received()
        if not keeps_open:
            self.close()

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading and not self._is_closing:
            self._is_reading = True
            self.process.loop.call_soon(self._read)

    # --- writing ------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self.is_gone or self._is_closing or not data:
            return
        data = bytes(data)
        if self._waiting or self._flying + len(data) > WINDOW:
            self._waiting.append(data)
            self._waiting_size += len(data)
            if self._waiting_size > self._high and not self._is_paused:
                self._is_paused = True
                self.protocol.pause_writing()
            if not self._flying:
                self._fill_window()
            return
        self._transmit(data)

    def _transmit(self, data: bytes) -> None:
        self._flying += len(data)
        chance = self.network.loop.seeded.random()
        if chance < SPLIT and len(data) > 1:
            # A stream has no frames.
            place = 1 + int(chance / SPLIT * (len(data) - 1))
            self.network.send(self, place, self.peer.arrived, data[:place])
            data = data[place:]
        self.network.send(self, len(data), self.peer.arrived, data)

    def consumed(self, size: int) -> None:
        """The peer has read so many bytes."""
        self._flying -= size
        if self._waiting and not self.is_gone:
            self.network.loop.call_soon(self._fill_window, context=self.process.context.copy())

    def _fill_window(self) -> None:
        waiting = self._waiting
        while waiting and self._flying < WINDOW and not self.is_gone:
            data = waiting.popleft()
            room = WINDOW - self._flying
            if len(data) > room:
                waiting.appendleft(data[room:])
                data = data[:room]
            self._waiting_size -= len(data)
            self._transmit(data)
        if self._is_paused and self._waiting_size <= self._low and not self.is_gone:
            self._is_paused = False
            self.protocol.resume_writing()
        if not waiting and self._is_ending:
            self._send_end(is_reset=False)
        if not waiting and self._is_closing:
            self._end(None)

    def write_eof(self) -> None:
        self._is_ending = True
        if not self._waiting:
            self._send_end(is_reset=False)

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._waiting_size

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol
