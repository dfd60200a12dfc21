"""A connection that speaks MQTT: its packets to calls of a session, answers in order.

    CONNECT                   version, client id, user; the client's session, taken up or new
    PUBLISH, PUBREL           publishing.py
    SUBSCRIBE, UNSUBSCRIBE    subscriptions.py   messages to the client, deliveries.py
    PUBACK, PUBREC, PUBCOMP   deliveries.py
    DISCONNECT                the will is dropped, the session waits or ends

What is answered is durable. A packet that breaks the protocol ends the connection: a client of
MQTT 5 is told the reason by DISCONNECT.

Until a client has shown who it is these limits hold: 1 MiB a packet, and the time of a handshake.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError
from broker.notifications import Origin
from broker.protocols.flow import Flow, Flowing
from broker.protocols.mqtt.deliveries import Deliveries
from broker.protocols.mqtt.encoding import confirmation, encode
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.framing import HEAD_MAX, Framing, Limits
from broker.protocols.mqtt.login import assigned_id, log_in
from broker.protocols.mqtt.packets import (
    Acknowledgement,
    Connack,
    Connect,
    Disconnect,
    PacketType,
    Part,
    Ping,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Version,
)
from broker.protocols.mqtt.properties import NO_PROPERTIES, PropertyId
from broker.protocols.mqtt.publishing import LARGE_SIZE, Publishing
from broker.protocols.mqtt.reason_codes import ReasonCode, disconnect_code, return_code
from broker.protocols.mqtt.session_state import WillToSend
from broker.protocols.mqtt.subscriptions import Subscriptions
from broker.protocols.mqtt.wire import VARIABLE_MAX
from broker.protocols.output import Output
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.protocols.mqtt.login import Login
    from broker.protocols.mqtt.outgoing_message import OutgoingMessages
    from broker.protocols.mqtt.packets import Packet, Will
    from broker.protocols.mqtt.properties import Properties
    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.mqtt.session_states import SessionStates
    from broker.protocols.mqtt.subscriptions import Active
    from broker.protocols.peer import Peer, Sessions
    from broker.sessions.session import Session

__all__ = ["MqttConnection"]

log = logging.getLogger("broker")

_UNKNOWN_LIMITS: Final = Limits(HEAD_MAX, -1)


class MqttConnection(Flowing):
    """See the module's text.

    Args:
        sessions: the broker.
        states: sessions of all clients.
        messages: what messages are for all of their subscribers.
        peer: the socket.
        parameters: of the acceptor.
    """

    __slots__ = (
        *("_agreement", "_client_id", "_deliveries", "_flow", "_framing", "_messages"),
        *("_opened_s", "_output", "_packet", "_parameters", "_peer", "_publishing"),
        *("_session", "_sessions", "_state", "_states", "_subscriptions", "_timers"),
        *("_user", "_version", "_will"),
    )

    def __init__(
        self,
        sessions: Sessions,
        states: SessionStates,
        messages: OutgoingMessages,
        peer: Peer,
        parameters: Mapping[str, Any],
    ) -> None:
        self._sessions = sessions
        self._states = states
        self._messages = messages
        self._peer = peer
        self._parameters = parameters
        self._timers = asyncio.get_running_loop()
        self._framing = Framing(_UNKNOWN_LIMITS)
        self._output = Output(peer)
        self._version = Version.V3_1_1
        self._client_id: str | None = None
        self._opened_s = sessions.clock.monotonic_s()
        # From the login on.
        self._session: Session | None = None
        self._state: SessionState | None = None
        self._user: str | None = None
        self._will: Will | None = None
        self._packet: Packet | None = None
        self._publishing: Publishing | None = None
        self._flow = Flow(peer, self._take_next, self._attempt)

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""
        peer = self._peer
        name = "MQTT5" if self._version is Version.V5 else "MQTT"
        return Origin(
            peer.connection_id, peer.remote, peer.local, self._client_id, name, peer.created_ms
        )

    # --- packets ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        if not self._flow.is_ending:
            self._framing.feed(data)
            self._flow.take_all()

    def _take_next(self) -> bool:
        """Take the next packet, or part of a payload; False where none is complete."""
        try:
            found = self._framing.next()
        except MqttError as error:
            self._refuse(error)
            return False
        if found is None:
            return False
        if isinstance(found, Part):
            if self._session is not None:
                self._attempt(self._publisher.append, found)
        else:
            self._packet = found
            self._attempt(self._take)
        return True

    def _attempt(self, step: Callable[..., object], *arguments: object) -> None:
        """Do what a packet asks for, or end the connection."""
        try:
            step(*arguments)
        except MqttError as error:
            self._refuse(error)
        except (BrokerError, JournalError) as error:
            self._refuse(MqttError(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, str(error)))

    def _take(self) -> None:
        packet = self._packet
        if self._session is None:
            if not isinstance(packet, Connect):
                raise MqttError(ReasonCode.PROTOCOL_ERROR, "a packet before CONNECT")
            self._connect(packet)
            return
        handle = _HANDLERS.get(type(packet))
        if handle is None:
            raise MqttError(
                ReasonCode.PROTOCOL_ERROR, f"{type(packet).__name__} on a connection in use"
            )
        handle(self, packet)

    def write(self, packet: Packet) -> None:
        """Send a packet."""
        self._output.write(encode(packet, self._version))

    def confirm(self, kind: PacketType, packet_id: int) -> None:
        """Send a packet that says that another one has succeeded."""
        self._output.write(confirmation(kind, packet_id))

    # --- CONNECT ------------------------------------------------------------------------------

    def _connect(self, connect: Connect) -> None:
        self._version = self._framing.version = connect.version
        assigned = assigned_id(connect, self._sessions.ids)
        client_id = self._client_id = assigned or connect.client_id
        login = log_in(
            connect, client_id, self, self._peer, self._sessions, self._states, self._parameters
        )
        self._begin(login, connect.will)
        properties: dict[PropertyId, Any] = {}
        if assigned is not None:
            properties[PropertyId.ASSIGNED_CLIENT_IDENTIFIER] = assigned
        properties.update(login.agreement.properties)
        # In front of all that is delivered, and behind what the session began with.
        active = self._subscriptions.resume()
        if login.is_present or login.state.subscriptions:
            self._states.save(login.state, login.session)
        connack = Connack(login.is_present, ReasonCode.SUCCESS, properties)
        self._states.after(login.session, self._connected, connack, active)
        # It stays for as long as the client says no more, with a password.
        self._packet = None

    def _begin(self, login: Login, will: Will | None) -> None:
        session, state, agreement = login.session, login.state, login.agreement
        self._user = login.user
        self._session = session
        self._state = state
        self._will = will
        # Its CONNACK is said once.
        self._agreement = agreement._replace(properties=NO_PROPERTIES)
        state.expiry_s = agreement.expiry_s
        clock = self._sessions.clock
        self._deliveries = self._flow.deliveries = Deliveries(
            session,
            state,
            agreement,
            self._messages,
            self._peer,
            self._output,
            self._timers,
            clock,
            self._subscription_ended,
        )
        self._subscriptions = self._deliveries.subscriptions = Subscriptions(
            session,
            state,
            self._states,
            self._deliveries,
            self._version,
            clock=clock,
            own_addresses=self._sessions.own_addresses,
            prefixes=agreement.prefixes,
        )
        size: int = self._parameters["maximumPacketSize"]
        self._framing.limits = Limits(
            VARIABLE_MAX if size < 0 else size,
            LARGE_SIZE if session.keeps_large_messages else -1,
        )
        session.metadata["jms-client-id"] = state.client_id

    def _connected(self, error: Exception | None, connack: Connack, active: list[Active]) -> None:
        if error is not None or self._flow.is_lost:
            return
        self.write(connack)
        if self._flow.is_ending:
            return
        self._in_use.start()
        self._deliveries.release_again()
        self._let_come(active)

    def _let_come(self, active: list[Active]) -> None:
        for one in active:
            if (cause := self._deliveries.pause_cause) is not None:
                one.consumer.pause(cause)
            one.begin()

    @property
    def _in_use(self) -> Session:
        assert self._session is not None, "it has logged in"
        return self._session

    @property
    def _state_in_use(self) -> SessionState:
        assert self._state is not None, "it has logged in"
        return self._state

    @property
    def _publisher(self) -> Publishing:
        """What publishes; a client that only listens has none."""
        found = self._publishing
        if found is None:
            found = self._publishing = Publishing(
                self,
                self._in_use,
                self._state_in_use,
                self._version,
                clock=self._sessions.clock,
                new_producer=self._sessions.new_producer,
                parameters=self._parameters,
                prefixes=self._agreement.prefixes,
                retained=self._states.retained,
            )
        return found

    # --- the other packets --------------------------------------------------------------------

    def _publish(self, packet: Publish) -> None:
        self._publisher.publish(packet, self._take)

    def _acknowledgement(self, packet: Acknowledgement) -> None:
        if packet.type is PacketType.PUBACK:
            self._deliveries.acknowledged(packet)
        elif packet.type is PacketType.PUBREC:
            self._deliveries.received(packet)
        elif packet.type is PacketType.PUBREL:
            self._publisher.release(packet)
        else:
            self._deliveries.completed(packet)

    def _subscribe(self, packet: Subscribe) -> None:
        identifier = packet.properties.get(PropertyId.SUBSCRIPTION_IDENTIFIER)
        for one in packet.filters:
            if one.no_local and one.text.startswith("$share/"):
                raise MqttError(ReasonCode.PROTOCOL_ERROR, "no-local of a shared subscription")
        codes, active = self._subscriptions.subscribe(packet.filters, identifier)
        answer = Suback(PacketType.SUBACK, packet.packet_id, tuple(codes))
        self._states.after(self._in_use, self._subscribed, answer, active)

    def _subscribed(self, error: Exception | None, answer: Suback, active: list[Active]) -> None:
        """Messages come behind the answer."""
        if error is None and not self._flow.is_lost:
            self.write(answer)
            self._let_come(active)

    def _unsubscribe(self, packet: Unsubscribe) -> None:
        codes = self._subscriptions.unsubscribe(packet.filters)
        told = tuple(codes) if self._version is Version.V5 else ()
        answer = Suback(PacketType.UNSUBACK, packet.packet_id, told)
        self._states.after(self._in_use, self._subscribed, answer, [])

    def _ping(self, packet: Ping) -> None:
        if packet.type is not PacketType.PINGREQ:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, "a PINGRESP of a client")
        self.write(Ping(PacketType.PINGRESP))

    def _disconnect(self, packet: Disconnect) -> None:
        state = self._state_in_use
        expiry_s = packet.properties.get(PropertyId.SESSION_EXPIRY_INTERVAL)
        if expiry_s is not None and expiry_s != state.expiry_s:
            if not state.expiry_s:
                raise MqttError(
                    ReasonCode.PROTOCOL_ERROR, "a session expiry where CONNECT had none"
                )
            state.expiry_s = expiry_s
            self._states.save(state, self._in_use)
        if packet.code != ReasonCode.DISCONNECT_WITH_WILL:
            self._will = None
        self._flow.is_ending = True
        self._leave()
        self._output.close()

    # --- the end ------------------------------------------------------------------------------

    def _leave(self) -> None:
        """End the session of the connection; that of the client waits, or ends as well."""
        session, state = self._session, self._state
        if session is None or state is None or session.is_closed:
            return
        self._deliveries.close()
        self._sessions.close_session(session, has_failed=True)
        will, self._will = self._will, None
        if state.owner is not self:
            return
        if will is not None:
            delay_s = will.properties.get(PropertyId.WILL_DELAY_INTERVAL, 0)
            due_s = self._sessions.clock.monotonic_s() + min(delay_s, state.expiry_s)
            prefixes = self._agreement.prefixes
            state.will = WillToSend(will, self._user, due_s, self._version, prefixes)
        self._states.leave(state)

    def _refuse(self, error: MqttError) -> None:
        """End the connection because of what the client sent."""
        log.info("%s: MQTT client %s: %s", self._peer.remote, self._client_id, error.text)
        if self._flow.is_ending:
            return
        self._flow.is_ending = True
        session = self._session
        if session is None:
            self._refuse_connect(error)
            return
        self._tell(error)
        self._leave()
        self._output.close()

    def _refuse_connect(self, error: MqttError) -> None:
        version = error.version or self._version
        if version is Version.V5:
            connack = Connack(False, error.code, error.properties)
            self._output.write(encode(connack, version))
        elif isinstance(self._packet, Connect) or error.version is not None:
            code = return_code(error.code)
            if code is not None:
                self._output.write(encode(Connack(False, code), version))
        self._output.close()

    def _tell(self, error: MqttError) -> None:
        """Tell a client of MQTT 5 why its connection ends."""
        if self._version is not Version.V5:
            return
        properties: Properties = {}
        if self._agreement.wants_problems:
            properties = {PropertyId.REASON_STRING: error.text[:200]}
        code = disconnect_code(error.code)
        told = encode(Disconnect(code, properties), self._version)
        if len(told) > self._agreement.packet_size_max:
            told = encode(Disconnect(code), self._version)
        self._output.write(told)

    def _end(self, error: MqttError) -> None:
        """End it from our side; at once where it was ending."""
        if self._flow.is_ending:
            self._peer.abort()
            return
        self._flow.is_ending = True
        if self._session is not None:
            self._tell(error)
            self._leave()
        self._output.close()

    def taken_over(self) -> None:
        """Another connection has the client's session from now on."""
        self._end(MqttError(ReasonCode.SESSION_TAKEN_OVER, "the client has connected again"))
        # Where it was ending its socket may be there still.
        self._leave()

    @property
    def connected_ms(self) -> int:
        """When the client came, ms since 1970."""
        return 0 if self._session is None else self._session.created_ms

    def _subscription_ended(self, why: str) -> None:
        """The broker has ended a subscription: the client takes it up again when it comes back."""
        if not self._flow.is_ending:
            self._end(MqttError(ReasonCode.ADMINISTRATIVE_ACTION, why))

    def lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self._flow.lost(error)
        self._sessions.disconnected(self)
        self._leave()

    def check(self) -> None:
        """End it if it was silent for longer than it may be, or is too slow to log in."""
        if self._session is None:
            limit_s = self._peer.handshake_timeout_s
            if 0 < limit_s <= self._sessions.clock.monotonic_s() - self._opened_s:
                log.warning(
                    "AMQ224088: %s did not end its handshake in %.0f s: closed",
                    self._peer.remote,
                    limit_s,
                )
                self._peer.abort()
            return
        silence_s = self._agreement.silence_s
        if 0 < silence_s < self._peer.silent_s:
            text = f"AMQ229014: nothing came of {self._peer.remote} for {silence_s:.0f} s"
            log.warning("%s", text)
            self._end(MqttError(ReasonCode.KEEP_ALIVE_TIMEOUT, text))

    def fail(self) -> None:
        """End it: an operator wants it so."""
        self._end(
            MqttError(ReasonCode.ADMINISTRATIVE_ACTION, "the connection was closed by an operator")
        )

    def kill(self, session: Session) -> None:
        """End it: one of its consumers is too slow."""
        self._end(
            MqttError(
                ReasonCode.ADMINISTRATIVE_ACTION,
                f"a consumer of session {session.name} is too slow",
            )
        )

    def close_session(self, session: Session) -> None:
        """End its session, and so the connection: an operator wants it so."""
        self._end(
            MqttError(
                ReasonCode.ADMINISTRATIVE_ACTION,
                f"session {session.name} was closed by an operator",
            )
        )

    def disconnect(self) -> None:
        """The broker stops: tell the client, then close."""
        if not self._flow.is_ending and self._session is not None:
            self._tell(MqttError(ReasonCode.SERVER_SHUTTING_DOWN, "the broker stops"))
        self._flow.is_ending = True
        self._peer.close()


_HANDLERS: Final[dict[type, Callable[[MqttConnection, Any], None]]] = {
    Publish: MqttConnection._publish,
    Acknowledgement: MqttConnection._acknowledgement,
    Subscribe: MqttConnection._subscribe,
    Unsubscribe: MqttConnection._unsubscribe,
    Ping: MqttConnection._ping,
    Disconnect: MqttConnection._disconnect,
}
