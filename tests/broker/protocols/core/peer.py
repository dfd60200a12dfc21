"""A peer of the Core protocol within the broker's own process: frames without a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocols.core import packet_connection as connections
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader

if TYPE_CHECKING:
    from broker.transport.acceptor import Acceptor

CHANNEL = 10
VERSION = versions.CURRENT


class Wire:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self._is_closed = False

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        self.written.append(bytes(data))

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Say who is at the other end."""
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, **limits: int) -> None:
        """Nothing waits here."""

    def is_closing(self) -> bool:
        """Whether no more is taken."""
        return self._is_closed

    def close(self) -> None:
        """End it."""
        self._is_closed = True

    abort = close


class Peer:
    """A connection to the broker, and the frames that come by it."""

    def __init__(self, acceptor: Acceptor) -> None:
        self.wire = Wire()
        self._frames = FrameReader()
        self._connection: Any = acceptor._accept()
        self._connection.connection_made(self.wire)
        self.put(MAGIC)
        self.send(connections.Ping(60_000), 0)

    def put(self, data: bytes) -> None:
        """Let bytes come to the broker."""
        self._connection.data_received(data)

    def send(self, packet: Any, channel: int = CHANNEL) -> None:
        """Let a packet come to the broker."""
        self.put(packet.frame(channel, VERSION))

    def begin(self, name: str, window_size: int, *, is_xa: bool = False) -> None:
        """Ask for a session that commits by itself, or as a transaction manager says.

        Args:
            name: of the session.
            window_size: of confirmations, in bytes; -1 for none.
            is_xa: its work belongs to branches.
        """
        session = connections.CreateSession(
            *(name, CHANNEL, VERSION, None, None, 100 * 1024),
            xa=is_xa,
            auto_commit_sends=not is_xa,
            auto_commit_acks=not is_xa,
            window_size=window_size,
            pre_acknowledge=False,
            default_address=None,
        )
        self.send(session, connections.SESSION_CHANNEL)

    def lose(self) -> None:
        """Lose the connection."""
        self.wire.close()
        self._connection.connection_lost(None)

    def take(self) -> list[tuple[int, bytes]]:
        """Give the packets that have come: type and body."""
        written = self.wire.written.copy()
        self.wire.written.clear()
        return [
            (kind, bytes(body)) for data in written for kind, _, body in self._frames.feed(data)
        ]
