"""A connection that speaks STOMP: its frames to calls of a session, answers in order.

    CONNECT, STOMP            version, user, heart-beats; a session
    SEND                      sends.py           in a transaction, transactions.py
    SUBSCRIBE … ACK, NACK     subscriptions.py   messages to the client, deliveries.py
    DISCONNECT                all that was asked for is durable, then the receipt, then the end

A receipt says that what its frame asked for is durable. A frame that is refused is answered by an
ERROR. That ends the connection in version 1.2; in the others only where the next frame may not be
found, and where a client has not shown who it is.

Until then these limits hold: 64 KiB a frame, within the time of a handshake, and a minute of
silence.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError
from broker.notifications import Origin
from broker.protocols.flow import Flow, Flowing
from broker.protocols.output import Output
from broker.protocols.stomp.answers import Answers
from broker.protocols.stomp.deliveries import Deliveries
from broker.protocols.stomp.destinations import Destinations
from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.frames import FrameReader, Limits, Part, encode_frame
from broker.protocols.stomp.heart_beats import Agreement, HeartBeats, agree
from broker.protocols.stomp.sends import Sends
from broker.protocols.stomp.silence import Silence
from broker.protocols.stomp.subscriptions import Subscription, Subscriptions
from broker.protocols.stomp.transactions import Transactions
from broker.protocols.stomp.versions import Version, negotiate
from broker.sessions.prefixes import Prefixes
from broker.sessions.session import SessionOptions
from journal.errors import JournalError
from journal.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.protocols.peer import Peer, Sessions
    from broker.protocols.stomp.frames import Frame
    from broker.sessions.session import Session
    from broker.storage.context import OperationContext

__all__ = ["StompConnection", "StompProtocol"]

# A connection that has not shown who it is may make us keep so much.
UNKNOWN_LIMITS: Final = Limits(64 * 1024, 100, 64 * 1024, -1)
# Nor may any other have all that it likes: larger bodies come with their size, and are streamed.
HEAD_SIZE_MAX: Final = 1024 * 1024
HEADER_COUNT_MAX: Final = 10_000
BODY_SIZE_MAX: Final = 128 * 1024 * 1024
_SUPPORTED: Final = [one.text for one in Version]
_SERVER: Final = f"Quiver/{__version__}"


class StompProtocol:
    """All STOMP connections of a broker.

    Args:
        sessions: the broker.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> StompConnection:
        """Take a connection whose first bytes were STOMP's."""
        made = StompConnection(self._sessions, peer, parameters)
        self._sessions.connected(made)
        return made

    def check(self) -> None:
        """Nothing is left of a connection that is gone."""


class StompConnection(Flowing):
    """See the module's text.

    Args:
        sessions: the broker.
        peer: the socket.
        parameters: of the acceptor.

    Attributes:
        connection_id: of the socket.
        client_id: that the client chose; None is none.
    """

    __slots__ = (
        "_answers",
        "_beats",
        "_deliveries",
        "_flow",
        "_output",
        "_parameters",
        "_peer",
        "_reader",
        "_receipt",
        "_sends",
        "_session",
        "_session_count",
        "_sessions",
        "_silence",
        "_subscriptions",
        "_temporary",
        "_timers",
        "_transactions",
        "_user",
        "_version",
        "client_id",
        "connection_id",
    )

    def __init__(self, sessions: Sessions, peer: Peer, parameters: Mapping[str, Any]) -> None:
        self._sessions = sessions
        self._peer = peer
        self._parameters = parameters
        self._timers = asyncio.get_running_loop()
        self._reader = FrameReader(UNKNOWN_LIMITS)
        self._output = Output(peer)
        self._answers = Answers(peer, self._output)
        self._beats = HeartBeats(self._timers, self._output.beat)
        self._version = Version.V1_0
        self._silence = Silence(peer, sessions, parameters["connectionTtl"])
        self.connection_id = peer.connection_id
        self.client_id: str | None = None
        # From the login on.
        self._session: Session | None = None
        self._transactions = Transactions(self._new_transaction, self._close)
        self._session_count = 0
        self._user: str | None = None
        self._temporary: set[str] = set()
        # That of the frame that is being looked at, or was last.
        self._receipt: str | None = None
        # It is ending after a DISCONNECT, or an error that ended it.
        self._flow = Flow(peer, self._take_next, self._attempt)

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""
        peer = self._peer
        return Origin(
            peer.connection_id, peer.remote, peer.local, self.client_id, "STOMP", peer.created_ms
        )

    # --- frames -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        flow = self._flow
        if flow.is_ending:
            return
        self._reader.feed(data)
        flow.take_all()
        if self._session is None:
            self._silence.note(has_partial=self._reader.has_partial)

    def _take_next(self) -> bool:
        """Take the next frame, or part of a body; False where none is complete."""
        try:
            found = self._reader.next()
        except StompError as error:
            # Bytes that are not a frame.
            self._receipt = None
            self._refuse(error)
            return False
        if found is None:
            return False
        if isinstance(found, Part):
            self._attempt(self._append, found)
        else:
            self._receipt = found.headers.get("receipt")
            self._attempt(self._take, found)
        return True

    def _attempt(self, step: Callable[..., object], *arguments: object) -> None:
        """Do what a frame asks for, or refuse it."""
        try:
            step(*arguments)
        except StompError as error:
            self._refuse(error)
        except BrokerError as error:
            self._refuse(StompError(error.text))
        except JournalError as error:
            self._refuse(StompError(f"AMQ229133: {error}"))

    def _take(self, frame: Frame) -> None:
        command = frame.command
        if self._session is None and command not in ("CONNECT", "STOMP"):
            raise StompError("AMQ339008: Connection has not been established.", closes=True)
        _HANDLERS[command](self, frame)

    def _append(self, part: Part) -> None:
        if self._session is not None:
            self._sends.append(part)

    # --- answers ------------------------------------------------------------------------------

    def answer(self, session: Session, receipt: str | None) -> None:
        """Send a receipt, if one is wanted, once what a session did is durable."""
        if receipt is not None:
            session.context.then(self._answers.done, (receipt,))

    def _refuse(self, error: StompError) -> None:
        """Answer a frame by an ERROR, behind the answers to those before it."""
        self._end_with(error, self._receipt)

    def _end_with(self, error: StompError, receipt: str | None = None) -> None:
        """Send an ERROR; from then on no frame is looked at, where it closes the connection."""
        data, closes = self._answers.error(error, receipt)
        self._flow.is_ending |= closes
        session = self._session
        if session is None:
            self._answers.send_error(None, data, closes)
        else:
            session.context.after(self._answers.send_error, data, closes)

    # --- CONNECT, DISCONNECT ------------------------------------------------------------------

    def _connect(self, frame: Frame) -> None:
        headers = frame.headers
        if self._session is not None:
            raise StompError("the connection has been established already")
        accepted = headers.get("accept-version")
        version = negotiate(accepted)
        if version is None:
            raise StompError(
                f"AMQ339002: Stomp versions not supported: {accepted}",
                closes=True,
                details=f"Supported protocol versions are {' v'.join(['', *_SUPPORTED]).lstrip()}",
                headers={"version": ",".join(_SUPPORTED)},
            )
        if frame.command == "STOMP" and version is Version.V1_0:
            raise StompError("AMQ339029: Unsupported command: STOMP")
        beats = self._agreed(headers, version)
        session = self._log_in(headers)
        self._begin(session, version)
        answer = []
        if version is not Version.V1_0 or accepted is not None:
            answer.append(("version", version.text))
        answer.append(("session", self.connection_id))
        if version is not Version.V1_0 and not self._parameters["disableStompServerHeader"]:
            answer.append(("server", _SERVER))
        if "request-id" in headers:
            answer.append(("response-id", headers["request-id"]))
        if beats is not None:
            answer.append(("heart-beat", beats.answer))
        if "receipt" in headers:
            answer.append(("receipt-id", headers["receipt"]))
        self._output.write(encode_frame("CONNECTED", answer, version))
        if beats is not None:
            self._silence.ttl_ms = beats.ttl_ms
            self._beats.start(beats.period_ms)

    def _agreed(self, headers: Mapping[str, str], version: Version) -> Agreement | None:
        header = headers.get("heart-beat")
        if header is None or version is Version.V1_0:
            return None
        return agree(header, self._silence.ttl_ms, self._parameters)

    def _log_in(self, headers: Mapping[str, str]) -> Session:
        """Give the session of a client that shows who it is.

        Raises:
            StompError: it does not, or the broker takes no client now.
        """
        login = headers.get("login")
        try:
            self._user = self._sessions.authenticate(
                login, headers.get("passcode"), self._peer.remote, self._peer.principal
            )
        except BrokerError as error:
            raise StompError(
                f"Security Error occurred: User name [{login}] or password is invalid", closes=True
            ) from error
        self.client_id = headers.get("client-id")
        try:
            return self._new_session(SessionOptions())
        except BrokerError as error:
            raise StompError(error.text, closes=True) from error

    def _begin(self, session: Session, version: Version) -> None:
        self._session = session
        self._version = self._reader.version = self._answers.version = version
        prefixes = Prefixes(self._parameters["anycastPrefix"], self._parameters["multicastPrefix"])
        destinations = Destinations(session.administration, prefixes)
        self._deliveries = self._flow.deliveries = Deliveries(
            session, self._peer, self._output, self._timers, version, self._subscription_ended
        )
        self._subscriptions = self._deliveries.subscriptions = Subscriptions(
            session,
            destinations,
            self._deliveries,
            connection_id=self.connection_id,
            client_id=self.client_id,
            ids=self._sessions.ids,
            parameters=self._parameters,
        )
        self._sends = Sends(
            self,
            session,
            self._transactions,
            destinations,
            self._subscriptions,
            clock=self._sessions.clock,
            new_producer=self._sessions.new_producer,
            parameters=self._parameters,
        )
        self._reader.limits = Limits(
            HEAD_SIZE_MAX, HEADER_COUNT_MAX, BODY_SIZE_MAX, self._sends.large_size
        )
        session.start()

    def _new_session(self, options: SessionOptions) -> Session:
        name = f"stomp-{self.connection_id}-{self._session_count}"
        self._session_count += 1
        return self._sessions.create_session(
            name, self._user, options, self._temporary, self.origin
        )

    def _new_transaction(self) -> Session:
        return self._new_session(SessionOptions(auto_commit_sends=False, auto_commit_acks=False))

    def _close(self, session: Session) -> None:
        self._sessions.close_session(session, has_failed=True)

    def _disconnect(self, frame: Frame) -> None:
        self._flow.is_ending = True
        self._beats.stop()
        contexts = [one.context for one in self._end_sessions()]
        receipt = frame.headers.get("receipt")
        self._end_behind(None, contexts, receipt)

    def _end_behind(
        self, error: Exception | None, contexts: list[OperationContext], receipt: str | None
    ) -> None:
        """Close the connection once all that its sessions did is durable, and answered."""
        while error is None and contexts:
            context = contexts.pop()
            if not context.is_durable:
                context.after(self._end_behind, contexts, receipt)
                return
        self._answers.done(error, receipt)
        self._output.close()

    def _end_sessions(self) -> list[Session]:
        """End all of them, and what goes with them; they are given."""
        main = self._session
        if main is None:
            return []
        ended = [one for one in (*self._transactions.sessions(), main) if not one.is_closed]
        for one in ended:
            # A client that leaves has seen what it was given: that was delivered, as in Artemis.
            self._close(one)
        temporary, self._temporary = self._temporary, set()
        self._sessions.delete_temporary(temporary)
        return ended

    # --- the other commands -------------------------------------------------------------------

    def _send(self, frame: Frame) -> None:
        self._sends.send(frame, self._take)

    def _subscribe(self, frame: Frame) -> None:
        made = self._subscriptions.subscribe(frame.headers)
        if (cause := self._deliveries.pause_cause) is not None:
            made.consumer.pause(cause)
        self._in_use.context.after(self._subscribed, made, frame.headers.get("receipt"))

    def _subscribed(self, error: Exception | None, made: Subscription, receipt: str | None) -> None:
        """Messages come behind the receipt."""
        self._answers.done(error, receipt)
        if error is None:
            made.begin()

    def _unsubscribe(self, frame: Frame) -> None:
        self._subscriptions.unsubscribe(frame.headers, self._version)
        self._answer(frame)

    def _ack(self, frame: Frame) -> None:
        self._subscriptions.acknowledge(frame.headers, self._version)
        self._answer(frame)

    def _nack(self, frame: Frame) -> None:
        if self._version is Version.V1_0:
            raise StompError("AMQ339023: Invalid STOMP frame: NACK", closes=True)
        self._subscriptions.refuse(frame.headers, self._version)
        self._answer(frame)

    def _begin_transaction(self, frame: Frame) -> None:
        self._transactions.begin(frame.headers.get("transaction"))
        self._answer(frame)

    def _commit(self, frame: Frame) -> None:
        headers = frame.headers
        self._transactions.commit(
            headers.get("transaction"), self._answers.done, headers.get("receipt")
        )

    def _abort(self, frame: Frame) -> None:
        headers = frame.headers
        self._transactions.abort(
            headers.get("transaction"), self._answers.done, headers.get("receipt")
        )

    @property
    def _in_use(self) -> Session:
        assert self._session is not None, "it has logged in"
        return self._session

    def _answer(self, frame: Frame) -> None:
        self.answer(self._in_use, frame.headers.get("receipt"))

    def _subscription_ended(self, subscription: Subscription, why: str) -> None:
        """The broker has ended one."""
        self._end_with(
            StompError(
                f"subscription {subscription.id} has ended: {why}",
                details=f"consumer with ID {subscription.consumer.consumer_id} disconnected by "
                "server",
            )
        )

    # --- the connection -----------------------------------------------------------------------

    def lost(self, error: Exception | None) -> None:
        """The socket is gone: with it all of its sessions end."""
        self._flow.lost(error)
        self._sessions.disconnected(self)
        self._beats.stop()
        if self._session is not None:
            self._deliveries.close()
        self._end_sessions()

    def check(self) -> None:
        """End it if it was silent for longer than its time to live, or is too slow to log in."""
        is_known = self._session is not None
        if not is_known and self._silence.is_too_slow():
            self._peer.abort()
            return
        text = self._silence.too_long(is_known=is_known)
        if text is not None:
            self._fail(text)

    def _fail(self, text: str) -> None:
        """End it with all its sessions, and tell the client why; at once where it was ending."""
        if self._flow.is_ending:
            self._peer.abort()
            return
        self._flow.is_ending = True
        self._end_sessions()
        data, _ = self._answers.error(StompError(text), None)
        self._answers.send_error(None, data, True)

    def fail(self) -> None:
        """End it with all its sessions: an operator wants it so."""
        self._fail("the connection was closed by an operator")

    def kill(self, session: Session) -> None:
        """End it with all its sessions: one of them is too slow."""
        self._fail(f"the connection was closed: a consumer of session {session.name} is too slow")

    def close_session(self, session: Session) -> None:
        """End a session: a transaction, or with that of the connection all of it."""
        if self._transactions.forget(session):
            self._close(session)
        else:
            self._fail(f"session {session.name} was closed by an operator")

    def disconnect(self) -> None:
        """The broker stops: close it; clients come back unless it was an error."""
        self._flow.is_ending = True
        self._beats.stop()
        self._peer.close()


_HANDLERS: Final[dict[str, Callable[[StompConnection, Frame], None]]] = {
    "CONNECT": StompConnection._connect,
    "STOMP": StompConnection._connect,
    "SEND": StompConnection._send,
    "SUBSCRIBE": StompConnection._subscribe,
    "UNSUBSCRIBE": StompConnection._unsubscribe,
    "ACK": StompConnection._ack,
    "NACK": StompConnection._nack,
    "BEGIN": StompConnection._begin_transaction,
    "COMMIT": StompConnection._commit,
    "ABORT": StompConnection._abort,
    "DISCONNECT": StompConnection._disconnect,
}
