"""One channel of a connection: requests and their answers, and what survives a lost connection.

Rules:
- A request without a correlation id is answered in turn, so one at a time is under way and the rest
  wait here. Sends and commits have a correlation id (versions from 130 on) and overlap freely. So
  do requests of callers that give everything up with the connection: answers come in their order.
- With a confirmation window, everything counted is kept until the broker confirms it, and sent
  again when the session is taken up on another connection (`reattach`). So is what was posted
  meanwhile.
- Only an answer says that a request was done. A confirmation says that a packet was taken, and
  Artemis's count of those runs ahead after a reattach under load.
- Without a link and without a window a packet is dropped: a session that is not reattached begins
  anew, and credits or acknowledgements of the old one mean nothing to it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.client.errors import ClientError, refused
from broker.client.replies import Reply
from broker.protocols.core import versions
from broker.protocols.core.packet_connection import (
    NO_CORRELATION,
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
)
from broker.protocols.core.packet_session import Commit
from broker.protocols.core.packet_xa import XaResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.packet import Packet
    from broker.protocols.core.packet_message import Send, SendContinuation

NO_WINDOW: Final = -1
# A tuple: a union would be made anew for each answer.
_CORRELATED: Final = (NullResponse, ExceptionResponse, XaResponse)


class ChannelLink(Protocol):
    """What a channel needs of its connection."""

    version: int

    def write(self, frame: bytes) -> None:
        """Send a frame; it may leave later, behind others."""


class _Call(NamedTuple):
    packet: Packet
    expected: type[Packet]
    reply: Reply[Packet]


class Channel:
    """The requests of one session, or those that create sessions. No I/O, no lock.

    Attributes:
        channel_id: its number on the wire.
        link: the connection it is on; None while that is lost.
        last_confirmed: the number of the last packet handled here that counts, -1 before the first.
        is_resumable: of a session that the broker may take up again when the connection is lost, so
            that answers come on another one. While it is created and restored it is not.
    """

    def __init__(
        self,
        channel_id: int,
        on_packet: Callable[[Packet, int], None],
        *,
        confirmation_window: int = NO_WINDOW,
    ) -> None:
        self.channel_id = channel_id
        self.link: ChannelLink | None = None
        self.last_confirmed = -1
        self.is_resumable = True
        # What the broker understands, also while it is disconnected.
        self._version = versions.CURRENT
        self._on_packet = on_packet
        self._window = confirmation_window
        self._calls: deque[_Call] = deque()
        # How many of those were sent, from the first one on.
        self._asked = 0
        self._correlated: dict[int, Reply[Packet]] = {}
        self._next_correlation = 0
        self._kept: deque[bytes] = deque()
        # The number of the first packet in `_kept`.
        self._first_kept = 0
        self._unconfirmed_bytes = 0

    # Sending.

    def post(self, packet: Packet) -> None:
        """Send a packet that the broker does not answer."""
        self._write(packet)

    def call(
        self,
        packet: Packet,
        expected: type[Packet] = NullResponse,
        reply: Reply[Packet] | None = None,
        *,
        ahead: bool = False,
    ) -> Reply[Packet]:
        """Send a request; give its answer, which is of the `expected` class or an error.

        Args:
            packet: the request.
            expected: what answers it.
            reply: takes the answer; None makes one.
            ahead: do not wait for earlier answers, unless a request before it does.
        """
        if reply is None:
            reply = Reply()
        self._calls.append(_Call(packet, expected, reply))
        if not self._asked or (ahead and self._asked == len(self._calls) - 1):
            self._asked += 1
            self._write(packet)
        return reply

    def call_correlated(
        self, packet: Send | SendContinuation | Commit, reply: Reply[Packet] | None = None
    ) -> Reply[Packet]:
        """Send a request that other requests may overtake; the answer says which it belongs to.

        Args:
            packet: the request.
            reply: takes the answer; None makes one.
        """
        version = self._known_version()
        least = versions.COMMIT_CORRELATION
        if not isinstance(packet, Commit):
            packet.requires_response = True
            least = versions.ASYNC_RESPONSE
        if version < least:
            return self.call(packet, reply=reply)
        self._next_correlation += 1
        packet.correlation_id = self._next_correlation
        if reply is None:
            reply = Reply()
        self._correlated[packet.correlation_id] = reply
        self._write(packet)
        return reply

    def _write(self, packet: Packet) -> None:
        frame = packet.frame(self.channel_id, self._known_version())
        if self._window != NO_WINDOW and packet.is_confirmed:
            self._kept.append(frame)
        if self.link is not None:
            self.link.write(frame)

    def _known_version(self) -> int:
        if self.link is not None:
            self._version = self.link.version
        return self._version

    # Receiving.

    def receive(self, packet: Packet, size: int) -> None:
        """Take a packet of this channel; `size` is that of its frame, in bytes."""
        if isinstance(packet, PacketsConfirmed):
            self._drop_confirmed(packet.command_id)
            return
        if not self._answers(packet):
            self._on_packet(packet, size)
        if self._window != NO_WINDOW and packet.is_confirmed:
            self.last_confirmed += 1
            self._unconfirmed_bytes += size
            if self._unconfirmed_bytes >= self._window:
                self.confirm()

    def confirm(self) -> None:
        """Tell the broker what was handled, if it does not know yet."""
        if self._unconfirmed_bytes and self.link is not None:
            self._unconfirmed_bytes = 0
            self.post(PacketsConfirmed(self.last_confirmed))

    def _answers(self, packet: Packet) -> bool:
        """Give the packet to the request it answers, if it does answer one."""
        if isinstance(packet, _CORRELATED):
            found = self._correlated.pop(packet.correlation_id, None)
            if found is not None:
                self._finish(found, packet)
                return True
            if packet.correlation_id != NO_CORRELATION:
                # The late answer to a request that was given up; a refusal is still told.
                return not isinstance(packet, ExceptionResponse)
        if not self._calls:
            # The answer to what a lost connection interrupted means nothing to anybody.
            return isinstance(packet, NullResponse)
        call = self._calls[0]
        if not isinstance(packet, ExceptionResponse) and not isinstance(packet, call.expected):
            return isinstance(packet, NullResponse)
        self._calls.popleft()
        self._asked -= 1
        if self._calls and not self._asked:
            self._asked = 1
            self._write(self._calls[0].packet)
        self._finish(call.reply, packet)
        return True

    def _finish(self, reply: Reply[Packet], packet: Packet) -> None:
        if isinstance(packet, ExceptionResponse):
            reply.fail(refused(packet.code, packet.message))
        else:
            reply.succeed(packet)

    def _drop_confirmed(self, command_id: int) -> None:
        while self._kept and self._first_kept <= command_id:
            self._kept.popleft()
            self._first_kept += 1

    # A lost connection.

    def detach(self) -> None:
        """The connection is lost; answers may still come when the session is taken up again."""
        self.link = None

    def reattach(self, link: ChannelLink, broker_confirmed: int) -> None:
        """The session goes on: send again what the broker has not handled.

        Args:
            link: the new connection.
            broker_confirmed: the number of the last packet that it handled.
        """
        self.link = link
        self._drop_confirmed(broker_confirmed)
        for frame in self._kept:
            link.write(frame)

    @property
    def last_correlation(self) -> int:
        """The number of the last correlated request."""
        return self._next_correlation

    def give_up_until(self, correlation: int, error: ClientError) -> None:
        """Answers up to this number are not coming any more; the broker sent the rest again."""
        for number in [number for number in self._correlated if number <= correlation]:
            self._correlated.pop(number).fail(error)

    def interrupt(self, error: ClientError) -> None:
        """The session begins anew: callers that wait for an answer get this error."""
        waiting = [call.reply for call in self._calls] + list(self._correlated.values())
        self._calls.clear()
        self._asked = 0
        self._correlated.clear()
        self._kept.clear()
        self._first_kept = 0
        self.last_confirmed = -1
        self._unconfirmed_bytes = 0
        for reply in waiting:
            reply.fail(error)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._calls or self._correlated)
