"""A connection that speaks Core: frames to channels, pings, topology, sessions begun and taken up.

    channel 0     ping, topology
    channel 1     sessions created, reattached
    channel 3     another broker: who it is, how it is reached (cluster_channel.py)
    channel ≥ 10  one session each

Until a client has logged in, the following limits hold. A frame may have 64 KiB at most and must
come within the time of a handshake. Silence ends the connection after a minute, whatever the client
asks for. Only pings, topology, session requests and what a broker logs in with are handled. A
session with a confirmation window survives the loss of its connection, as long as the connection's
time to live, and may be taken up on another one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.notifications import Origin
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import versions
from broker.protocols.core.channel import Channel
from broker.protocols.core.cluster_channel import ClusterChannel
from broker.protocols.core.frames import FrameReader
from broker.protocols.core.packet_cluster import SubscribeTopology
from broker.protocols.core.packets import decode_packet
from broker.protocols.core.redirecting import check_version, disconnect_of
from broker.protocols.core.session_channel import SessionChannel
from broker.sessions.prefixes import Prefixes
from broker.sessions.session import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.protocols.core.packet import Packet
    from broker.protocols.peer import Peer, Sessions, ToldTopology
    from broker.sessions.session import Session

__all__ = ["CoreConnection", "CoreProtocol"]

log = logging.getLogger("broker")

# A connection that has not shown who it is may make us keep so much.
UNAUTHENTICATED_FRAME_MAX: Final = 64 * 1024
# Nor may anybody else have it keep what he likes: larger bodies come in parts. Artemis takes
# what the length field can tell, 2 GiB.
FRAME_MAX: Final = 128 * 1024 * 1024
TTL_MS_DEFAULT: Final = 60_000  # ActiveMQClient.DEFAULT_CONNECTION_TTL
FOR_EVER: Final = -1
# How long a client that was sent elsewhere may take to close.
_REDIRECTED_STAY_S: Final = 5.0


class CoreProtocol:
    """All Core connections of a broker.

    Args:
        sessions: the broker.

    Attributes:
        connections: open, or lost and still within their time to live; in order.
        by_session: the channel of each session, by name.
    """

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.connections: dict[CoreConnection, None] = {}
        self.by_session: dict[str, tuple[CoreConnection, SessionChannel]] = {}

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> CoreConnection:
        """Take a connection whose first bytes were Core's."""
        prefixes = Prefixes(parameters["anycastPrefix"], parameters["multicastPrefix"])
        topology = self.sessions.topology(parameters["clusterConnection"])
        made = CoreConnection(self, peer, prefixes, topology)
        self.connections[made] = None
        self.sessions.connected(made)
        return made

    def check(self) -> None:
        """End the sessions of lost connections whose time to live is over."""
        for one in list(self.connections):
            if one.is_lost:
                one.check()


class CoreConnection:
    """See the module's text.

    Args:
        protocol: of the broker.
        connection: the socket.
        prefixes: of its acceptor.
        topology: that its client is told of.
    """

    def __init__(
        self,
        protocol: CoreProtocol,
        connection: Peer,
        prefixes: Prefixes,
        topology: ToldTopology,
    ) -> None:
        self._prefixes = prefixes
        self._protocol = protocol
        self._sessions = protocol.sessions
        self._clock = protocol.sessions.clock
        self._connection = connection
        self._reader = FrameReader(size_max=UNAUTHENTICATED_FRAME_MAX)
        self._version = 0
        self._channels: dict[int, SessionChannel] = {}
        self._temporary: set[str] = set()
        self._ttl_ms = TTL_MS_DEFAULT
        override = protocol.sessions.connection_ttl_override_ms
        if override != FOR_EVER:
            self._ttl_ms = override
        self._lost_s: float | None = None
        self._is_known = False
        self._cluster = ClusterChannel(
            protocol.sessions, topology, self._send, connection.remote, self._trust
        )
        self._receivers: dict[int, Callable[[Packet], None]] = {
            connections.PING_CHANNEL: self._receive_ping,
            connections.SESSION_CHANNEL: self._receive_session_request,
            connections.CLUSTER_CHANNEL: self._cluster.receive,
        }
        # Since when a frame of somebody unknown is incomplete.
        self._incomplete_s: float | None = None
        self.client_id: str | None = None
        self._is_routed = False

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""
        peer = self._connection
        return Origin(
            peer.connection_id, peer.remote, peer.local, self.client_id, "CORE", peer.created_ms
        )

    @property
    def is_lost(self) -> bool:
        """Whether its socket is gone; its sessions may wait to be taken up."""
        return self._lost_s is not None

    # --- frames -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            PacketFormatError: they are not a valid frame or packet.
        """
        reader = self._reader
        reader.begin(data)
        has_frames = False
        while reader.advance():
            has_frames = True
            channel = self._channels.get(reader.channel_id)
            if channel is not None:
                channel.receive(reader.kind, reader.chunk, reader.start, reader.end)
            else:
                self._receive_own(reader)
        if not self._is_known:
            self._note_incomplete(has_frames=has_frames)

    def _receive_own(self, reader: FrameReader) -> None:
        """Take a frame of no session."""
        receive = self._receivers.get(reader.channel_id)
        if receive is not None:
            body = memoryview(reader.chunk)[reader.start : reader.end]
            receive(decode_packet(reader.kind, body, self._version))
        # A channel that was closed, or never opened: dropped, as in Artemis.

    def _note_incomplete(self, *, has_frames: bool) -> None:
        if not self._reader.pending:
            self._incomplete_s = None
        elif has_frames or self._incomplete_s is None:
            self._incomplete_s = self._clock.monotonic_s()

    def _send(self, channel_id: int, packet: Packet, version: int | None = None) -> None:
        self._connection.write(
            packet.frame(channel_id, self._version if version is None else version)
        )

    def _receive_ping(self, packet: Packet) -> None:
        if isinstance(packet, connections.Ping):
            if self._sessions.connection_ttl_override_ms == FOR_EVER:
                self._ttl_ms = packet.connection_ttl
            self._send(connections.PING_CHANNEL, packet)
            for channel in self._channels.values():
                channel.channel.flush_confirmation()
        elif isinstance(packet, SubscribeTopology):
            if packet.client_version:
                self._version = min(packet.client_version, versions.CURRENT)
            self._cluster.subscribe()

    # --- sessions -----------------------------------------------------------------------------

    def _receive_session_request(self, packet: Packet) -> None:
        if isinstance(packet, connections.CreateSession):
            try:
                self._create_session(packet)
            except BrokerError as error:
                # In the layout that has no correlation, whatever the version.
                self._send(
                    connections.SESSION_CHANNEL,
                    connections.ExceptionResponse(int(error.code), error.text),
                    0,
                )
        elif isinstance(packet, connections.ReattachSession):
            self._reattach(packet)
        elif isinstance(packet, connections.CheckForFailover):
            may_come = self._sessions.may_come(packet.node_id)
            self._send(connections.SESSION_CHANNEL, connections.CheckForFailoverReply(may_come))

    def _create_session(self, packet: connections.CreateSession) -> None:
        if packet.version not in versions.COMPATIBLE_VERSIONS or (
            packet.version < versions.ADDRESSING
        ):
            raise broker_error(
                "incompatible_version",
                "Server and client versions incompatible: the client speaks "
                f"{packet.version}, the server {versions.ADDRESSING} to {versions.CURRENT}",
            )
        if not self._sessions.is_active:
            raise broker_error("server_not_started", "Server not started")
        if self._version == 0:
            self._version = min(packet.version, versions.CURRENT)
        if packet.client_id is not None:
            self.client_id = packet.client_id
        channel_id = packet.session_channel_id
        if channel_id < connections.FIRST_CLIENT_CHANNEL or channel_id in self._channels:
            raise BrokerError(
                ErrorCode.INTERNAL_ERROR, f"channel {channel_id} is in use or reserved"
            )
        user = self._sessions.authenticate(
            packet.username,
            packet.password,
            self._connection.remote,
            self._connection.principal,
        )
        self._route(user or packet.username)
        self._end_unanswered(packet.name, user)
        options = SessionOptions(
            auto_commit_sends=packet.auto_commit_sends,
            auto_commit_acks=packet.auto_commit_acks,
            pre_acknowledge=packet.pre_acknowledge,
            is_xa=packet.xa,
            default_address=packet.default_address,
            prefixes=self._prefixes,
        )
        session = self._sessions.create_session(
            packet.name, user, options, self._temporary, self.origin
        )
        self._trust()
        channel = Channel(self._connection, channel_id, self._version, packet.window_size)
        self._add(
            SessionChannel(
                session,
                channel,
                self._closed,
                self._sessions.has_metadata,
                self._sessions.new_producer,
                packet.min_large_message_size,
            )
        )
        self._send(connections.SESSION_CHANNEL, connections.CreateSessionResponse(versions.CURRENT))

    def _route(self, user: str | None) -> None:
        """See whether this broker serves the client.

        Raises:
            BrokerError: it does not; the client has been told where to go, if there is a place.
        """
        peer = self._connection
        # A client is asked about with its first session: all others are where that one is.
        if not peer.router or self._is_routed:
            return
        check_version(self._version)
        route = self._sessions.route(peer, self.client_id, user)
        if route is not None:
            told = disconnect_of(route, self._sessions.node_id)
            self._send(connections.PING_CHANNEL, told)
            # Nothing more of it is looked at.
            self._receivers.clear()
            # The client closes. Were it done here at once, what the client still sends would reset
            # the connection, and it might not see where to go.
            asyncio.get_running_loop().call_later(_REDIRECTED_STAY_S, peer.close)
            raise broker_error("redirected", route.text)
        self._is_routed = True

    def _end_unanswered(self, name: str, user: str | None) -> None:
        """End a session whose client begins it anew: the first answer was lost with a connection.

        Of the same user alone: to all others the name is in use, as it is on the same connection.
        """
        found = self._protocol.by_session.get(name)
        if found is None:
            return
        owner, channel = found
        if owner is self or channel.session.user != user:
            return
        owner._fail_session(channel)
        owner._forget_if_empty()

    def _trust(self) -> None:
        """Somebody has shown who he is."""
        self._is_known = True
        self._reader.size_max = FRAME_MAX

    def _add(self, channel: SessionChannel) -> None:
        self._channels[channel.channel.channel_id] = channel
        self._protocol.by_session[channel.session.name] = (self, channel)

    def _closed(self, channel: SessionChannel) -> None:
        """The client has closed a session."""
        self._channels.pop(channel.channel.channel_id, None)
        self._protocol.by_session.pop(channel.session.name, None)
        self._sessions.close_session(channel.session, has_failed=False)

    def _reattach(self, packet: connections.ReattachSession) -> None:
        found = self._protocol.by_session.get(packet.name)
        if found is None or not self._sessions.is_active:
            self._send(connections.SESSION_CHANNEL, connections.ReattachSessionResponse(-1, False))
            return
        owner, channel = found
        if not channel.channel.counts:
            # What was lost on the way is unknown: the session cannot be reattached.
            owner._fail_session(channel)
            self._send(connections.SESSION_CHANNEL, connections.ReattachSessionResponse(-1, False))
            return
        channel.settle()
        owner._channels.pop(channel.channel.channel_id, None)
        self._temporary |= owner._temporary
        channel.session.temporary = self._temporary
        channel.session.origin = self.origin
        # Nothing of it comes or goes until it is said how far it has come.
        channel.channel.connection = None
        self._version = self._version or channel.channel.version
        self._trust()
        self._add(channel)
        channel.on_close = self._closed
        if owner is not self:
            owner._temporary = set()
            owner._forget_if_empty()
        # What has come and is not durable yet counts as handled then: the client would send it
        # again, and it would be done twice.
        channel.session.context.after(self._go_on, channel, packet.last_confirmed_command_id)

    def _go_on(self, error: Exception | None, channel: SessionChannel, last_confirmed: int) -> None:
        """All that a session had asked for before is durable: it goes on here."""
        known = self._channels.get(channel.channel.channel_id)
        if error is not None or self._lost_s is not None or known is not channel:
            # The storage has failed, or the session was lost again, reattached elsewhere or closed.
            return
        channel.channel.reattach(self._connection, self._version, last_confirmed)
        self._send(
            connections.SESSION_CHANNEL,
            connections.ReattachSessionResponse(channel.channel.last_handled, True),
        )
        channel.channel.resend()
        if not self._connection.is_paused:
            channel.go_on()

    # --- the connection -----------------------------------------------------------------------

    def pause(self) -> None:
        """The peer does not read."""
        for channel in self._channels.values():
            channel.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        for channel in list(self._channels.values()):
            channel.go_on()

    def lost(self, error: Exception | None) -> None:
        """The socket is gone: sessions that can be taken up wait, the others end."""
        self._lost_s = self._clock.monotonic_s()
        self._sessions.disconnected(self)
        self._cluster.close()
        if error is not None:
            log.info("AMQ222061: %s: connection lost: %s", self._connection.remote, error)
        for channel in list(self._channels.values()):
            if channel.channel.counts and channel.channel.window_size > 0:
                channel.channel.connection = None
                channel.pause()
            else:
                self._fail_session(channel)
        self._forget_if_empty()

    def _fail_session(self, channel: SessionChannel) -> None:
        self._channels.pop(channel.channel.channel_id, None)
        self._protocol.by_session.pop(channel.session.name, None)
        channel.channel.connection = None
        self._sessions.close_session(channel.session, has_failed=True)

    def _forget_if_empty(self) -> None:
        if self._lost_s is not None and not self._channels:
            self._protocol.connections.pop(self, None)
            temporary, self._temporary = self._temporary, set()
            self._sessions.delete_temporary(temporary)

    def check(self) -> None:
        """End what is silent for longer than its time to live; confirm what was not confirmed."""
        if self._lost_s is None:
            for channel in self._channels.values():
                channel.channel.flush_confirmation()
        ttl_ms = self._ttl_ms
        if not self._is_known:
            if self._is_too_slow():
                return
            if ttl_ms == FOR_EVER or ttl_ms > TTL_MS_DEFAULT:
                ttl_ms = TTL_MS_DEFAULT
        if ttl_ms == FOR_EVER:
            return
        silent_s = self._connection.silent_s
        if self._lost_s is not None:
            silent_s = self._clock.monotonic_s() - self._lost_s
        if silent_s * 1000 < ttl_ms:
            return
        log.warning(
            "AMQ229014: Did not receive data from %s within the %dms connection TTL. "
            "The connection will now be closed.",
            self._connection.remote,
            ttl_ms,
        )
        self.fail()

    def _is_too_slow(self) -> bool:
        """End one whose first frames do not get complete; whether it was."""
        limit_s = self._connection.handshake_timeout_s
        if self._incomplete_s is None or limit_s <= 0:
            return False
        if self._clock.monotonic_s() - self._incomplete_s < limit_s:
            return False
        log.warning(
            "AMQ224088: %s did not end its handshake in %.0f s: closed",
            self._connection.remote,
            limit_s,
        )
        self.fail()
        return True

    def fail(self) -> None:
        """End it with all its sessions."""
        for channel in list(self._channels.values()):
            self._fail_session(channel)
        if self._lost_s is None:
            self._connection.abort()
        else:
            self._forget_if_empty()

    def kill(self, session: Session) -> None:
        """End it with all its sessions, and tell the client that one of them is too slow."""
        for channel in list(self._channels.values()):
            if channel.session is session:
                # On the session's channel, where clients look; Artemis's broker sends it on
                # channel 1, where its own do not.
                channel.channel.send(connections.DisconnectConsumerKill(self._sessions.node_id))
            self._fail_session(channel)
        self._connection.close()

    def close_session(self, session: Session) -> None:
        """Close one session, and tell its client of the consumers; the connection stays."""
        for channel in self._channels.values():
            if channel.session is session:
                channel.end()
        self._sessions.close_session(session, has_failed=True)

    def disconnect(self) -> None:
        """The broker stops: confirm, tell, close."""
        for channel in self._channels.values():
            channel.channel.flush_confirmation()
        target = self._sessions.scale_down_to
        reasons = connections.DisconnectReason
        self._send(
            connections.PING_CHANNEL,
            connections.Disconnect(
                self._sessions.node_id,
                scale_down_node_id=target,
                reason=int(reasons.SHUT_DOWN if target is None else reasons.SCALE_DOWN),
                target_node_id=target,
            ),
        )
        self._connection.close()
