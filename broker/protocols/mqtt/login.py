"""CONNECT: who a client is, and which session it has from then on.

    client id ─▶ user ─▶ session of the broker ─▶ will ─▶ state of the client, taken up or new

A client that connects again takes its session from the connection that has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.errors import BrokerError
from broker.model.address import SEPARATOR
from broker.protocols.mqtt.agreement import agree
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.properties import PropertyId
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.session_state import Owner
from broker.protocols.mqtt.topics import OWN_PREFIX, check_topic, destination_of
from broker.protocols.redirection import Redirection, RoutingRefusal
from broker.sessions.session import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.environment import Ids
    from broker.notifications import Origin
    from broker.protocols.mqtt.agreement import Agreement
    from broker.protocols.mqtt.packets import Connect, Will
    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.mqtt.session_states import SessionStates
    from broker.protocols.peer import Peer, Sessions
    from broker.sessions.prefixes import Prefixes
    from broker.sessions.session import Session

__all__ = ["Login", "assigned_id", "log_in"]

_OPTIONS: Final = SessionOptions()


class ConnectingClient(Owner, Protocol):
    """The connection that a CONNECT came on."""

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of it."""


class Login(NamedTuple):
    """What a client has by its CONNECT.

    Attributes:
        user: as it was authenticated; None is anonymous.
        session: of the broker, not started.
        state: of the client.
        is_present: the state was there before.
        agreement: of the client and the broker.
    """

    user: str | None
    session: Session
    state: SessionState
    is_present: bool
    agreement: Agreement


def assigned_id(connect: Connect, ids: Ids) -> str | None:
    """Give an id to a client that has none; None where it has.

    Raises:
        MqttError: its id is not valid, or it wants a session without one.
    """
    if SEPARATOR in connect.client_id:
        raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, f"a client id with {SEPARATOR}")
    if connect.client_id:
        return None
    if not connect.clean_start:
        raise MqttError(
            ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "a session of a client without an id"
        )
    return str(ids.random_uuid())


def log_in(
    connect: Connect,
    client_id: str,
    connection: ConnectingClient,
    peer: Peer,
    sessions: Sessions,
    states: SessionStates,
    parameters: Mapping[str, Any],
) -> Login:
    """Let a client in; its state belongs to the connection from then on.

    Args:
        connect: of the client.
        client_id: its own, or the one that it is given.
        connection: of the client.
        peer: the socket.
        sessions: the broker.
        states: sessions of all clients.
        parameters: of the acceptor.

    Raises:
        MqttError: it may not connect; nothing is left of it.
    """
    if PropertyId.AUTHENTICATION_METHOD in connect.properties:
        raise MqttError(ReasonCode.BAD_AUTHENTICATION_METHOD, "enhanced authentication")
    user = _authenticated(connect, peer, sessions)
    _check_route(sessions.route(peer, client_id, user or connect.user))
    agreement = agree(connect, parameters)
    try:
        session = sessions.create_session(
            f"mqtt-{peer.connection_id}", user, _OPTIONS, set(), connection.origin
        )
    except BrokerError as error:
        raise MqttError(ReasonCode.SERVER_UNAVAILABLE, error.text) from error
    try:
        _check_will(session, connect.will, agreement.prefixes)
        state, is_present = _state_of(
            client_id,
            session,
            states,
            is_new=connect.clean_start,
            may_steal=parameters["allowLinkStealing"],
        )
    except BaseException:
        sessions.close_session(session, has_failed=True)
        raise
    state.owner = connection
    # It came back before its time.
    state.will = None
    return Login(user, session, state, is_present, agreement)


def _authenticated(connect: Connect, peer: Peer, sessions: Sessions) -> str | None:
    password = None
    try:
        if connect.password is not None:
            password = connect.password.decode()
        return sessions.authenticate(connect.user, password, peer.remote, peer.principal)
    except (BrokerError, UnicodeDecodeError) as error:
        raise MqttError(ReasonCode.BAD_USER_NAME_OR_PASSWORD, str(error)) from error


def _check_route(route: Redirection | RoutingRefusal | None) -> None:
    """See whether this broker serves the client.

    Raises:
        MqttError: another one does, or none. A client of MQTT 3.1.1 is told "server unavailable":
            it has no word for another server.
    """
    if route is None:
        return
    if isinstance(route, RoutingRefusal) and route.is_unavailable:
        raise MqttError(ReasonCode.SERVER_UNAVAILABLE, route.text)
    error = MqttError(ReasonCode.USE_ANOTHER_SERVER, route.text)
    if isinstance(route, Redirection):
        error.properties = {PropertyId.SERVER_REFERENCE: route.place}
    raise error


def _check_will(session: Session, will: Will | None, prefixes: Prefixes) -> None:
    if will is None:
        return
    check_topic(will.topic)
    wildcards = session.wildcards
    to = destination_of(will.topic, wildcards, prefixes, ReasonCode.TOPIC_NAME_INVALID)
    if to.address.startswith(OWN_PREFIX):
        raise MqttError(ReasonCode.NOT_AUTHORIZED, f"a will to {will.topic}")


def _state_of(
    client_id: str, session: Session, states: SessionStates, *, is_new: bool, may_steal: bool
) -> tuple[SessionState, bool]:
    """Take up the client's session, or begin a new one; and whether there was one to take up."""
    state = states.find(client_id)
    if state is not None and state.owner is not None:
        if not may_steal:
            raise MqttError(
                ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, f"{client_id} is connected already"
            )
        state.owner.taken_over()
        state = states.find(client_id)
    if state is not None and not is_new:
        return state, True
    if state is not None:
        try:
            states.end(state, session)
        except BrokerError as error:
            raise MqttError(ReasonCode.NOT_AUTHORIZED, error.text) from error
    return states.make(client_id), False
