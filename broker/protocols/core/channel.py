"""One session's channel: what was sent and not confirmed, what was handled and is to be confirmed.

With a confirmation window both sides count packets. Who receives tells from time to time how far he
has come (PACKETS_CONFIRMED); who sends keeps what was not told of, and sends it again when the
session is taken up on a new connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker.protocols.core.packet_connection import PacketsConfirmed

if TYPE_CHECKING:
    from broker.protocols.core.packet import Packet
    from broker.protocols.peer import Peer

__all__ = ["Channel"]


class Channel:
    """See the module's text.

    Args:
        connection: where frames go; None while it is lost.
        channel_id: the client's number.
        version: of the protocol that the peer speaks.
        window_size: bytes after which what was handled is confirmed; -1 counts nothing.

    Attributes:
        last_handled: number of the last packet of the peer that was handled, -1 at first.
    """

    __slots__ = (
        "_first_unconfirmed",
        "_handled_size",
        "_unconfirmed",
        "channel_id",
        "connection",
        "last_handled",
        "version",
        "window_size",
    )

    def __init__(self, connection: Peer, channel_id: int, version: int, window_size: int) -> None:
        self.connection: Peer | None = connection
        self.channel_id = channel_id
        self.version = version
        self.window_size = window_size
        self.last_handled = -1
        self._handled_size = 0
        # None where nothing is counted: an empty deque takes more than 600 bytes.
        self._unconfirmed: deque[bytes] | None = deque() if window_size != -1 else None
        self._first_unconfirmed = 0

    @property
    def counts(self) -> bool:
        """Whether there is a confirmation window."""
        return self.window_size != -1

    @property
    def is_writable(self) -> bool:
        """Whether what is written now goes out soon."""
        connection = self.connection
        return connection is not None and connection.is_open and not connection.is_paused

    def send(self, packet: Packet, version: int | None = None) -> int:
        """Write a packet; bytes of its frame."""
        frame = packet.frame(self.channel_id, self.version if version is None else version)
        self.send_frame(frame, packet.is_confirmed)
        return len(frame)

    def send_frame(self, frame: bytes, is_confirmed: bool) -> None:
        """Write a whole frame."""
        if is_confirmed and self._unconfirmed is not None:
            self._unconfirmed.append(frame)
        connection = self.connection
        if connection is not None:
            connection.write(frame)

    def handled(self, size: int) -> None:
        """A packet of the peer was handled, and what it asked for is durable.

        Args:
            size: bytes of its frame.
        """
        self.last_handled += 1
        self._handled_size += size
        if self._handled_size >= self.window_size:
            self.flush_confirmation()

    def flush_confirmation(self) -> None:
        """Tell the peer how far we have come, if there is anything to tell."""
        if self._handled_size and self.connection is not None:
            self._handled_size = 0
            self.send(PacketsConfirmed(self.last_handled))

    def confirmed(self, command_id: int) -> None:
        """The peer has handled our packets up to this number: they are forgotten."""
        unconfirmed = self._unconfirmed
        if unconfirmed is None:
            return
        count = min(command_id + 1 - self._first_unconfirmed, len(unconfirmed))
        for _ in range(count):
            unconfirmed.popleft()
        if count > 0:
            self._first_unconfirmed += count

    def give_up(self) -> None:
        """It cannot be taken up any more: with its connection the session ends."""
        self.window_size = -1
        self._unconfirmed = None

    def reattach(self, connection: Peer, version: int, last_confirmed: int) -> None:
        """Go on, on a new connection, behind what the peer says it has handled."""
        self.connection = connection
        self.version = version
        self.confirmed(last_confirmed)

    def resend(self) -> None:
        """Write again what the peer has not handled."""
        assert self.connection is not None, "it was taken up"
        for frame in self._unconfirmed or ():
            self.connection.write(frame)
