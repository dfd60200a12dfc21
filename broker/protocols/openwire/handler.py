"""A connection that speaks OpenWire: its commands to calls of sessions, answers once durable.

    WireFormatInfo            version and encoding, wire_format.py; then BrokerInfo
    ConnectionInfo            user, client id
    SessionInfo, ConsumerInfo, ProducerInfo, RemoveInfo     client_work.py
    messages                  sends.py           in a transaction, transactions.py
    MessageAck, MessagePull   acknowledgements.py, consumers.py
    TransactionInfo           begin, prepare, commit, rollback, recover

A Response says that what its command asked for is durable; what is refused is answered by an
ExceptionResponse. If a command that wants no answer is refused, its client gets a ConnectionError:
Artemis says nothing, and the message is lost. A frame that cannot be decoded is answered, and the
connection stays. One whose size is not valid ends it, since the next one cannot be found.

Until a client has shown who it is these limits hold: 64 KiB a frame, and the time of a handshake.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError
from broker.notifications import Origin
from broker.protocols.flow import Flow, Flowing
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.client_work import ClientWork
from broker.protocols.openwire.errors import (
    INVALID_CLIENT_ID,
    IO_ERROR,
    OpenWireError,
    java_class,
)
from broker.protocols.openwire.framing import FrameReader
from broker.protocols.openwire.identifiers import BrokerId, ConnectionId
from broker.protocols.openwire.inactivity import Inactivity
from broker.protocols.openwire.transactions import xa_error
from broker.protocols.openwire.wire_format import Agreement, WireFormatInfo, own_wire_format
from broker.protocols.redirection import Redirection
from broker.transactions.xa import XaError
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.protocols.openwire.fields import DataType
    from broker.protocols.openwire.protocol import OpenWireProtocol
    from broker.protocols.peer import Peer, Sessions
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session

__all__ = ["OpenWireConnection"]

log = logging.getLogger("broker")

_UNKNOWN_FRAME_MAX: Final = 64 * 1024


class OpenWireConnection(Flowing):
    """See the module's text.

    Args:
        sessions: the broker.
        protocol: all connections of it.
        peer: the socket.
        parameters: of the acceptor.

    Attributes:
        client_id: that the client chose; None until it has.
        remote: address of the client.
        name: of the broker.
        is_fault_tolerant: its client comes back, and sends again what was not answered.
    """

    __slots__ = (
        "_agreed",
        "_connection_info",
        "_flow",
        "_inactivity",
        "_peer",
        "_reader",
        "_work",
        "client_id",
        "is_fault_tolerant",
        "name",
        "parameters",
        "protocol",
        "remote",
        "sessions",
        "user",
    )

    def __init__(
        self,
        sessions: Sessions,
        protocol: OpenWireProtocol,
        peer: Peer,
        parameters: Mapping[str, Any],
    ) -> None:
        self.sessions = sessions
        self.protocol = protocol
        self._peer = peer
        self.parameters = parameters
        self.remote = peer.remote
        self.name: str = parameters["brokerName"]
        self.client_id: str | None = None
        self.user: str | None = None
        self.is_fault_tolerant = False
        self._reader = FrameReader(_UNKNOWN_FRAME_MAX)
        self._agreed: Agreement | None = None
        self._inactivity = Inactivity(
            peer, sessions, asyncio.get_running_loop(), self._keep_alive, parameters
        )
        self._work: ClientWork | None = None
        self._connection_info: c.ConnectionInfo | None = None
        # A step that was held refuses its command by itself.
        self._flow = Flow(peer, self._take_next, lambda step: step())
        peer.write(self._wire_format().encode())

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""
        peer = self._peer
        return Origin(
            peer.connection_id, peer.remote, peer.local, self.client_id, "OPENWIRE", peer.created_ms
        )

    @property
    def is_writable(self) -> bool:
        """Whether the socket takes what is written."""
        return not self._peer.is_paused

    # --- frames -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        flow = self._flow
        if flow.is_ending:
            return
        self._reader.feed(data)
        flow.take_all()
        if self._work is None:
            self._inactivity.note(has_partial=self._reader.has_partial)

    def _take_next(self) -> bool:
        """Take the next frame; False where none is complete."""
        try:
            frame = self._reader.next()
            if frame is None:
                return False
            self._take(frame)
        except OpenWireError as error:
            # The next frame cannot be found.
            self._refuse(error, None)
            self._end()
        return True

    def _take(self, frame: bytes) -> None:
        if self._agreed is None:
            self._agree(WireFormatInfo.decode(frame))
            return
        try:
            command = self._agreed.reader(frame).command()
        except OpenWireError as error:
            log.debug("%s: %s", self.remote, error.text)
            self._refuse(error, None)
            if self._work is None:
                self._end()
            return
        if isinstance(command, c.Command):
            self.attempt(command, lambda: self._do(command))
        elif command is not None:
            self._refuse(
                OpenWireError(f"a {type(command).__name__} is not a command", IO_ERROR), None
            )

    def _wire_format(self) -> WireFormatInfo:
        parameters = self.parameters
        return own_wire_format(
            max_inactivity_ms=parameters["maxInactivityDuration"],
            initial_delay_ms=parameters["maxInactivityDurationInitalDelay"],
            max_frame_size=parameters["maxFrameSize"],
        )

    def _agree(self, theirs: WireFormatInfo) -> None:
        agreed = self._agreed = Agreement(self._wire_format(), theirs)
        self._inactivity.agreed(agreed)
        peer = self._peer
        self.send(
            c.BrokerInfo(
                broker_id=BrokerId(self.sessions.node_id),
                broker_url=f"tcp://{peer.local}",
                broker_name=self.name,
            )
        )

    def _do(self, command: c.Command) -> None:
        """Do what a command asks for.

        Raises:
            OpenWireError: it is refused.
            BrokerError: likewise.
            XaError: likewise.
            JournalError: the storage has failed.
        """
        own = _OWN.get(type(command))
        if own is not None:
            own(self, command)
            return
        work = self._work
        if work is None:
            raise OpenWireError(f"a {type(command).__name__} before ConnectionInfo", closes=True)
        if isinstance(command, c.RemoveInfo) and isinstance(command.object_id, ConnectionId):
            self._leave(command)
        elif not work.take(command):
            self.answer(command, None)

    def _confirm(self, command: c.ConnectionControl) -> None:
        # A failover client's first command on a new connection: it says what it is again later.
        self.answer(command, None)

    def _do_nothing(self, command: c.KeepAliveInfo) -> None:
        pass

    def _not_from_clients(self, command: c.Command) -> None:
        raise OpenWireError("not implemented! ", closes=self._work is None)

    def attempt(self, command: c.Command, step: Callable[[], object]) -> None:
        """Do a step of what a command asks for, or refuse it."""
        if self._flow.is_lost:
            return
        try:
            step()
        except OpenWireError as error:
            self._refuse(error, command)
        except XaError as error:
            self._refuse(xa_error(error), command)
        except BrokerError as error:
            self._refuse(OpenWireError(error.text, java_class(error)), command)
        except JournalError as error:
            self._refuse(OpenWireError(f"AMQ229133: {error}", IO_ERROR), command)

    def waits(self, message: c.ActiveMQMessage, *, is_waiting: bool) -> None:
        """A message waits for room, or does no longer: silence does not count meanwhile."""
        self._inactivity.waiting_count += 1 if is_waiting else -1

    # --- answers ------------------------------------------------------------------------------

    def send(self, command: DataType) -> None:
        """Write a command."""
        agreed = self._agreed
        if agreed is None or self._flow.is_lost:
            return
        self._peer.write(agreed.write(command, has_size=agreed.has_size))
        self._inactivity.wrote()

    def answer(self, command: c.Command, session: Session | None) -> None:
        """Answer a command, if that is wanted, once what a session did is durable."""
        if not command.response_required:
            return
        if session is None:
            self.respond(None, c.Response(correlation_id=command.command_id))
        else:
            session.context.then(self.respond, (c.Response(correlation_id=command.command_id),))

    def respond(self, error: Exception | None, response: c.Response) -> None:
        """Write an answer, or why the storage has not taken it."""
        if error is None:
            self._write_response(response)
            return
        self.send(
            c.ExceptionResponse(
                correlation_id=response.correlation_id,
                exception=c.Throwable(IO_ERROR, f"AMQ229133: {error}"),
            )
        )

    def _write_response(self, response: c.Response) -> None:
        agreed = self._agreed
        if agreed is None or type(response) is not c.Response:
            self.send(response)
        elif not self._flow.is_lost:
            self._peer.write(agreed.response(response.correlation_id))
            self._inactivity.wrote()

    def _refuse(self, error: OpenWireError, command: c.Command | None) -> None:
        """Tell the client why something is not done."""
        told = c.Throwable(error.java_class, error.text)
        if command is None:
            self.send(c.ExceptionResponse(exception=told))
        elif command.response_required:
            self.send(c.ExceptionResponse(correlation_id=command.command_id, exception=told))
        else:
            log.warning("%s: %s is refused: %s", self.remote, type(command).__name__, error.text)
            self.send(c.ConnectionError(exception=told))
        if error.closes:
            self._end()

    # --- the connection -----------------------------------------------------------------------

    def _log_in(self, info: c.ConnectionInfo) -> None:
        if self._work is not None:
            # A client that comes back says so again.
            self.answer(info, None)
            return
        if not info.client_id:
            raise OpenWireError(
                "No clientID specified for connection request", INVALID_CLIENT_ID, closes=True
            )
        try:
            self.user = self.sessions.authenticate(
                info.user_name, info.password, self._peer.remote, self._peer.principal
            )
        except BrokerError as error:
            raise OpenWireError(
                f"User name [{info.user_name}] or password is invalid.",
                "java.lang.SecurityException",
                closes=True,
            ) from error
        if not self._is_served_here(info):
            return
        self.protocol.enter(
            info.client_id, self, comes_back=info.failover_reconnect, name=self.name
        )
        self.client_id = info.client_id
        self.is_fault_tolerant = info.fault_tolerant
        self._connection_info = info
        try:
            self._work = self._flow.deliveries = ClientWork(self, info)
        except BrokerError as error:
            self.protocol.leave(info.client_id, self)
            raise OpenWireError(error.text, java_class(error), closes=True) from error
        self._reader.max_size = self.parameters["maxFrameSize"]
        self._inactivity.known()
        if self.parameters["supportAdvisory"]:
            self.protocol.advisories.connection(info, self._work.source)
        if self.parameters["updateClusterClients"] and info.manageable:
            rebalances = self.parameters["rebalanceClusterClients"]
            self.protocol.cluster.add(
                self, rebalances=rebalances, comes_back=info.failover_reconnect
            )
        self.answer(info, None)

    def _is_served_here(self, info: c.ConnectionInfo) -> bool:
        """See whether this broker serves the client; it is sent to the one that does.

        Raises:
            OpenWireError: none does, or the client could not go there.
        """
        if self._peer.router and not info.fault_tolerant:
            raise OpenWireError("Client not fault tolerant", closes=True)
        route = self.sessions.route(self._peer, info.client_id, self.user or info.user_name)
        if route is None:
            return True
        if isinstance(route, Redirection):
            self.send(
                c.ConnectionControl(
                    connected_brokers=f"tcp://{route.place}", rebalance_connection=True
                )
            )
        # As Artemis, without an answer: a client with `failover:` connects again then.
        self._end()
        return False

    def _leave(self, command: c.RemoveInfo) -> None:
        """The client ends; it may come again on the same socket."""
        work, self._work, self._flow.deliveries = self._work, None, None
        if work is not None:
            work.close(has_failed=False, last_delivered=command.last_delivered_sequence_id)
        self._forget()
        if work is not None:
            self.answer(command, work.session)

    def _shut_down(self, command: c.ShutdownInfo) -> None:
        work = self._work
        if work is not None:
            self._leave(c.RemoveInfo())
            work.session.context.after(self._shut, command)
        else:
            self._shut(None, command)

    def _shut(self, error: Exception | None, command: c.ShutdownInfo) -> None:
        if command.response_required:
            self.respond(error, c.Response(correlation_id=command.command_id))
        self._end()

    def _end(self) -> None:
        """Close the socket behind what was written."""
        self._flow.is_ending = True
        self._close_work()
        self._peer.close()

    def _close_work(self) -> None:
        self._inactivity.stop()
        work, self._work, self._flow.deliveries = self._work, None, None
        if work is not None:
            work.close(has_failed=True, last_delivered=None)
        self._forget()

    def _forget(self) -> None:
        self.protocol.cluster.remove(self)
        if self.client_id is not None:
            self.protocol.leave(self.client_id, self)

    def slow(self, consumer: Consumer) -> None:
        """Tell of a consumer that is slow, if it is one of this client's."""
        if self._work is not None:
            self._work.slow(consumer)

    def _keep_alive(self) -> None:
        self.send(c.KeepAliveInfo())

    def lost(self, error: Exception | None) -> None:
        """The socket is gone: with it all of its sessions end."""
        self._flow.lost(error)
        self.sessions.disconnected(self)
        self._close_work()

    def check(self) -> None:
        """End it if it was silent for longer than it may be, or is too slow to log in."""
        if self._inactivity.is_over(is_known=self._work is not None):
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self._flow.is_ending = True
        self._close_work()
        self._peer.abort()

    def taken_over(self) -> None:
        """Its client has come back on another connection."""
        log.info("%s: client %s has connected again", self.remote, self.client_id)
        self.abort()

    def _fail(self, text: str) -> None:
        if self._flow.is_ending:
            self._peer.abort()
            return
        self.send(c.ConnectionError(exception=c.Throwable(IO_ERROR, text)))
        self._end()

    def connection_error(self, text: str) -> None:
        """Something of the client is gone: tell it, and end the connection."""
        self._fail(text)

    def fail(self) -> None:
        """End it with all its sessions: an operator wants it so."""
        self._fail("the connection was closed by an operator")

    def kill(self, session: Session) -> None:
        """End it with all its sessions: one of them is too slow."""
        self._fail(f"the connection was closed: a consumer of session {session.name} is too slow")

    def close_session(self, session: Session) -> None:
        """End a session: a client of OpenWire learns of that by its connection's end alone."""
        self._fail(f"session {session.name} was closed by an operator")

    def disconnect(self) -> None:
        """The broker stops: close it; a client with `failover:` goes elsewhere."""
        self._flow.is_ending = True
        self._inactivity.stop()
        self._peer.close()


# Those that are none of a client's work.
_OWN: Final[dict[type[c.Command], Callable[[OpenWireConnection, Any], None]]] = {
    c.KeepAliveInfo: OpenWireConnection._do_nothing,
    c.ConnectionControl: OpenWireConnection._confirm,
    c.ShutdownInfo: OpenWireConnection._shut_down,
    c.ConnectionInfo: OpenWireConnection._log_in,
    c.BrokerInfo: OpenWireConnection._not_from_clients,
    c.ControlCommand: OpenWireConnection._not_from_clients,
    c.FlushCommand: OpenWireConnection._not_from_clients,
    c.ConnectionError: OpenWireConnection._not_from_clients,
}
