"""One connection to a broker as bytes in and bytes out: no socket, no clock, no loop.

A driver feeds `receive_data()`, sends what `take_outgoing()` gives, and calls `ping()` in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.client.channel import Channel
from broker.client.errors import ClientError, NotConnected, interrupted
from broker.client.replies import Reply
from broker.protocols.core import versions
from broker.protocols.core.frames import HEADER_SIZE, MAGIC, FrameReader
from broker.protocols.core.packet_cluster import ClusterTopology, SubscribeTopology
from broker.protocols.core.packet_connection import (
    FIRST_CLIENT_CHANNEL,
    PING_CHANNEL,
    SESSION_CHANNEL,
    CheckForFailover,
    CheckForFailoverReply,
    CreateSession,
    CreateSessionResponse,
    Disconnect,
    Ping,
    ReattachSession,
    ReattachSessionResponse,
)
from broker.protocols.core.packet_session import AddMetadata2
from broker.protocols.core.packets import decode_packet

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.packet import Packet


class Link:
    """The state of one connection, from its first byte to its end.

    Attributes:
        version: what the broker is written to in; 0 until it told its own.
        ready: done once the broker has told the cluster's members; sessions wait for it.
        wake: called when there is something to send and nothing was waiting before.
        on_topology: called with each member that comes or goes.
        on_disconnect: called when the broker says that it ends the connection.
    """

    def __init__(
        self,
        *,
        connection_ttl: int,
        wake: Callable[[], None],
        on_topology: Callable[[ClusterTopology], None],
        on_disconnect: Callable[[Disconnect], None],
    ) -> None:
        self.version = 0
        self.ready: Reply[None] = Reply()
        self.wake = wake
        self.on_topology = on_topology
        self.on_disconnect = on_disconnect
        self._connection_ttl = connection_ttl
        self._reader = FrameReader()
        self._outgoing: list[bytes] = []
        self._channels: dict[int, Channel] = {}
        self.is_lost = False
        self._requests = self.open_channel(Channel(SESSION_CHANNEL, self._ignore))

    # Bytes.

    def write(self, frame: bytes) -> None:
        """Queue a frame; the driver is woken for the first one."""
        if self.is_lost:
            return
        self._outgoing.append(frame)
        if len(self._outgoing) == 1:
            self.wake()

    def take_outgoing(self) -> list[bytes]:
        """Give what is to be sent now, in order."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def receive_data(self, data: bytes) -> None:
        """Handle the next bytes of the broker.

        Raises:
            PacketFormatError: they are not frames of this protocol; give the connection up.
        """
        for kind, channel_id, body in self._reader.feed(data):
            packet = decode_packet(kind, body, self.version)
            if channel_id == PING_CHANNEL:
                self._receive_control(packet)
            else:
                channel = self._channels.get(channel_id)
                # A session that was closed may still be sent something.
                if channel is not None:
                    channel.receive(packet, len(body) + HEADER_SIZE)

    def _receive_control(self, packet: Packet) -> None:
        if isinstance(packet, ClusterTopology):
            if packet.server_version:
                self.version = min(packet.server_version, versions.CURRENT)
            self.on_topology(packet)
            if packet.last:
                self.ready.succeed(None)
        elif isinstance(packet, Disconnect):
            self.on_disconnect(packet)
        # The echo of a ping is a sign of life like any byte, which the driver counts.

    def _ignore(self, packet: Packet, size: int) -> None:
        """Answers on channel 1 that no caller waits for any more."""

    # The lifecycle of a connection.

    def start(self) -> None:
        """Say who we are; `ready` follows."""
        self.write(MAGIC)
        self.ping()
        subscribe = SubscribeTopology(False, versions.CURRENT)
        self.write(subscribe.frame(PING_CHANNEL, versions.CURRENT))

    def ping(self) -> None:
        """Send a sign of life, and confirm what was handled."""
        self.write(Ping(self._connection_ttl).frame(PING_CHANNEL, self.version))
        for channel in self._channels.values():
            channel.confirm()

    def lose(self, error: ClientError) -> None:
        """The connection is gone: sessions are detached, and what else waits for an answer ends."""
        self.is_lost = True
        self._outgoing.clear()
        self.ready.fail(error)
        for channel in tuple(self._channels.values()):
            if channel.channel_id < FIRST_CLIENT_CHANNEL:
                # Of the connection: only sessions go on with another one.
                channel.interrupt(error)
            elif not channel.is_resumable:
                channel.interrupt(interrupted())
            channel.detach()
        self._channels.clear()

    # Channels and sessions.

    def open_channel(self, channel: Channel) -> Channel:
        """Let a channel send and receive here."""
        self.listen(channel)
        channel.link = self
        return channel

    def listen(self, channel: Channel) -> None:
        """Let a channel receive here; what it sends it keeps, until it is reattached.

        A broker that takes a session up again sends what was lost right behind its answer.
        """
        if self.is_lost:
            raise NotConnected("the connection is lost")
        self._channels[channel.channel_id] = channel

    def close_channel(self, channel: Channel) -> None:
        """Forget a channel."""
        if self._channels.get(channel.channel_id) is channel:
            del self._channels[channel.channel_id]
        channel.detach()

    def create_session(self, request: CreateSession) -> Reply[Packet]:
        """Ask for a session; its channel must be open."""
        return self._requests.call(request, CreateSessionResponse)

    def reattach_session(self, name: str, last_confirmed: int) -> Reply[Packet]:
        """Ask for a session of a lost connection."""
        return self._requests.call(ReattachSession(name, last_confirmed), ReattachSessionResponse)

    def check_for_failover(self, node_id: str | None) -> Reply[Packet]:
        """Ask whether sessions of that node may go on here."""
        return self._requests.call(CheckForFailover(node_id), CheckForFailoverReply)

    def session_created(self, response: CreateSessionResponse) -> None:
        """Write for the version that the broker told with a session."""
        self.version = min(response.server_version, versions.CURRENT)


def metadata(key: str, data: str) -> AddMetadata2:
    """Give the packet that names a session for operators."""
    return AddMetadata2(key, data, True)
