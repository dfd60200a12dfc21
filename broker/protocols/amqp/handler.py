"""A connection that speaks AMQP 1.0: events of the engine to calls of sessions.

    bytes ─▶ sasl.py ─▶ engine.py ─▶ open, begin, attach, flow, transfer, disposition, detach, end
                                        attach.py      what a link is for
                                        incoming.py    messages of the peer
                                        outgoing.py    messages to the peer
                                        transactions.py

An exception that no rule of the protocol provides for closes the connection with
amqp:internal-error; what was delivered goes back. Until the peer has opened, one frame is kept, and
it has the time of a handshake.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from cproton import pn_delivery_link, pn_event_delivery, pn_event_link
from proton import Condition, Event, Link

from broker.errors import BrokerError
from broker.notifications import Origin
from broker.protocols.amqp.attach import Attachments
from broker.protocols.amqp.conditions import (
    DECODE_ERROR,
    FORCED,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    AmqpError,
    of_attach,
)
from broker.protocols.amqp.deliveries import EngineDelivery
from broker.protocols.amqp.engine import Engine, is_undecodable
from broker.protocols.amqp.nodes import Nodes
from broker.protocols.amqp.opening import accept, admit, end
from broker.protocols.amqp.parameters import silence_ms
from broker.protocols.amqp.peer_session import PeerSession, end_of
from broker.protocols.amqp.sasl import Sasl
from broker.protocols.amqp.transactions import Transactions
from broker.sessions.prefixes import Prefixes
from broker.sessions.session import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from proton import Session as EngineSession

    from broker.ports import Timer, Timers
    from broker.protocols.amqp.links import OurLink
    from broker.protocols.amqp.opening import Containers
    from broker.protocols.peer import Peer, Sessions
    from broker.sessions.session import Session

__all__ = ["AmqpConnection"]

log = logging.getLogger("broker")


class AmqpConnection:
    """See the module's text.

    Args:
        sessions: the broker.
        containers: of all connections.
        peer: the socket.
        parameters: of the acceptor.

    Attributes:
        connection_id: of the socket.
        client_id: the peer's container id, once it has opened; None before.
        clock: of the broker.
        parameters: as given.
        peer: as given.
        timers: of the event loop.
        transactions: that the peer has declared.
        leaves_out_local: a subscription of the container wants nothing that it sends.
    """

    def __init__(
        self,
        sessions: Sessions,
        containers: Containers,
        peer: Peer,
        parameters: Mapping[str, Any],
    ) -> None:
        self._sessions = sessions
        self._containers = containers
        self.peer = peer
        self.parameters = parameters
        self.clock = sessions.clock
        self.timers: Timers = asyncio.get_running_loop()
        self.connection_id = peer.connection_id
        self.client_id: str | None = None
        self.leaves_out_local = False
        self.transactions = Transactions(sessions.ids)
        self._prefixes = Prefixes(parameters["anycastPrefix"], parameters["multicastPrefix"])
        self._sasl = Sasl(
            parameters["saslMechanisms"],
            self._authenticate,
            None if peer.principal is None else self._authenticate_certificate,
            peer.write,
        )
        self._opened_s = sessions.clock.monotonic_s()
        self._ttl_ms = silence_ms(parameters, sessions.connection_ttl_override_ms)
        self._engine: Engine | None = None
        self._by_session: dict[EngineSession, PeerSession] = {}
        # By the engine's handle of each link, since it was looked for; emptied when one ends.
        self._ends: dict[object, OurLink] = {}
        self._session_count = 0
        self._temporary: set[str] = set()
        self._user: str | None = None
        self._calls: set[Timer] = set()
        self._tick: Timer | None = None
        self._is_flush_due = False
        self._is_flushing = False
        # No event is looked at any more: the peer or we have closed it.
        self._is_ending = False
        self._is_lost = False

    @property
    def origin(self) -> Origin:
        """What sessions, and those who manage the broker, know of the connection."""
        peer = self.peer
        return Origin(
            peer.connection_id, peer.remote, peer.local, self.client_id, "AMQP", peer.created_ms
        )

    @property
    def container_id(self) -> str:
        """Of the peer."""
        return self.client_id or ""

    def _authenticate(self, user: str | None, password: str | None) -> str | None:
        peer = self.peer
        return self._sessions.authenticate(user, password, peer.remote, peer.principal)

    def _authenticate_certificate(self) -> str | None:
        principal = self.peer.principal
        assert principal is not None, "it is asked where there is one"
        return self._sessions.authenticate_principal(principal, self.peer.remote)

    # --- bytes --------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take the next bytes."""
        engine = self._engine
        if engine is None:
            data = self._greet(data)
            engine = self._engine
        if engine is None or not data:
            return
        for _ in engine.push(data):
            self._look()
            if self._is_lost:
                return
        self._look()
        if engine.is_stuck and not self._is_ending:
            self._close(DECODE_ERROR, "a frame that cannot be decoded")
        self.flush()

    def _greet(self, data: bytes) -> bytes:
        """Take what comes before AMQP's frames; what is left of it is for the engine."""
        sasl = self._sasl
        if self._is_ending:
            return b""
        data = sasl.receive(data)
        if sasl.is_refused:
            self._is_ending = True
            self.peer.close()
        elif sasl.is_done:
            self._engine = Engine(
                frame_size_max=self.parameters["maxFrameSize"], idle_timeout_ms=self._ttl_ms
            )
        return data

    def _look(self) -> None:
        """Look at what has happened."""
        engine = self._engine
        if engine is None:
            return
        for kind, handle in engine.events():
            if self._is_ending:
                continue
            handler = _HANDLERS.get(kind)
            if handler is None:
                continue
            try:
                handler(self, handle)
            except AmqpError as error:
                self._close(error.condition, error.text, error.info)
            except BrokerError as error:
                found = of_attach(error)
                self._close(found.condition, found.text)
            except Exception as error:
                if is_undecodable(error):
                    self._close(DECODE_ERROR, f"{type(error).__name__}: {error}")
                    continue
                # As Artemis: a fault ends the connection, not the broker.
                log.warning(
                    "AMQ222061: %s: connection closed: %s: %s",
                    self.peer.remote,
                    type(error).__name__,
                    error,
                )
                log.debug("%s", self.peer.remote, exc_info=error)
                self._close(INTERNAL_ERROR, f"Unrecoverable error: {error}")

    def flush_later(self) -> None:
        """Write what the engine has to say, behind this turn."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self.timers.call_soon(self.flush)

    def flush(self) -> None:
        """Write what the engine has to say."""
        self._is_flush_due = False
        engine = self._engine
        if engine is None or self._is_lost or self._is_flushing:
            return
        self._is_flushing = True
        try:
            for data in engine.output():
                self.peer.write(data)
        finally:
            self._is_flushing = False
        if engine.is_at_end:
            if engine.error is not None:
                log.warning("AMQ222061: %s: %s", self.peer.remote, engine.error)
            self._end_all()
            self.peer.close()
            return
        for one in self._by_session.values():
            for link in one.links.values():
                link.relieve()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call it while the connection lasts."""

        def call() -> None:
            self._calls.discard(handle)
            callback()
            self.flush_later()

        handle = self.timers.call_later(delay_s, call)
        self._calls.add(handle)

    def _beat(self) -> None:
        """Let heartbeats be due."""
        self._tick = None
        engine = self._engine
        if engine is None or self._is_lost:
            return
        now_s = self.clock.monotonic_s()
        due_s = engine.tick(now_s)
        self.flush()
        if due_s > 0 and not self._is_lost:
            self._tick = self.timers.call_later(max(0.05, due_s - now_s), self._beat)

    # --- open, close --------------------------------------------------------------------------

    def _open(self, event: Event) -> None:
        """The peer opens: see who it is, then answer.

        Raises:
            AmqpError: it is refused.
            BrokerError: its user may not connect.
        """
        connection, sasl = event.connection, self._sasl
        self._user = sasl.user if sasl.is_authenticated else self._authenticate(None, None)
        admit(self._sessions, self.peer, connection.remote_container, self._user)
        self.client_id = self._containers.enter(connection)
        accept(connection, self._sessions)
        self._beat()

    def _closed(self, event: Event) -> None:
        """The peer closes."""
        self._end_all()
        event.connection.close()
        self._is_ending = True

    def _close(
        self, condition: str, text: str, info: Mapping[object, object] | None = None
    ) -> None:
        """Close the connection, and tell why."""
        self._is_ending = True
        self._end_all()
        engine = self._engine
        if engine is None:
            self.peer.close()
            return
        left = end(engine.connection, self._sessions, Condition(condition, text, info))
        if left:
            self.flush()
            self.peer.write(left)
            self.peer.close()
        self.flush_later()

    # --- sessions -----------------------------------------------------------------------------

    def _session_begun(self, event: Event) -> None:
        if self.client_id is None:
            # The engine does not mind; who it is, is not known.
            raise AmqpError(NOT_ALLOWED, "a session before the connection is open")
        name = f"amqp-{self.connection_id}-{self._session_count}"
        self._session_count += 1
        session = self._sessions.create_session(
            name,
            self._user,
            SessionOptions(prefixes=self._prefixes),
            self._temporary,
            self.origin,
        )
        nodes = Nodes(session, self._prefixes, self.container_id, self._sessions)
        self._by_session[event.session] = PeerSession(session, nodes)
        event.session.open()
        session.start()

    def _session_ended(self, event: Event) -> None:
        self._end_session(event.session)
        event.session.close()
        event.session.free()

    def _end_session(self, engine_session: EngineSession, *, has_failed: bool = False) -> None:
        found = self._by_session.pop(engine_session, None)
        if found is None:
            return
        self._ends.clear()
        found.large.close()
        for link in list(found.links.values()):
            link.close()
        self._attachments.session_ends(found)
        found.links.clear()
        if not found.session.is_closed:
            self._sessions.close_session(found.session, has_failed=has_failed)

    def _end_all(self, *, has_failed: bool = False) -> None:
        """End all sessions, and what goes with them."""
        self.transactions.close()
        for one in list(self._by_session):
            self._end_session(one, has_failed=has_failed)
        temporary, self._temporary = self._temporary, set()
        if temporary:
            self._sessions.delete_temporary(temporary)
        container, self.client_id = self.client_id, None
        if container is not None:
            self._containers.leave(container)
        for handle in self._calls:
            handle.cancel()
        self._calls.clear()

    # --- links --------------------------------------------------------------------------------

    @property
    def _attachments(self) -> Attachments:
        return Attachments(self, self._sessions)

    def _attached(self, event: Event) -> None:
        of = self._by_session.get(event.link.session)
        if of is not None:
            self._attachments.attach(of, event.link)

    def _detached(self, event: Event) -> None:
        self._ends.clear()
        of = self._by_session.get(event.link.session)
        if of is not None:
            is_closing = event.type is Event.LINK_REMOTE_CLOSE
            self._attachments.detach(of, event.link, is_closing=is_closing)

    def end_link(self, link: Link, error: AmqpError) -> None:
        """Detach a link, and tell why."""
        self._ends.clear()
        of = self._by_session.get(link.session)
        ours = None if of is None else of.links.pop(link, None)
        if of is None or ours is None:
            return
        self._attachments.close(of, ours)
        link.condition = Condition(error.condition, error.text)
        link.close()
        self.flush_later()

    def _flow(self, handle: object) -> None:
        ours = end_of(self._ends, self._by_session, pn_event_link(handle))
        if ours is not None:
            ours.flow()

    def _delivery(self, handle: object) -> None:
        delivery = pn_event_delivery(handle)
        link = pn_delivery_link(delivery)
        ours = end_of(self._ends, self._by_session, link)
        if ours is None:
            return
        try:
            ours.updated(EngineDelivery(delivery))
        except AmqpError as error:
            self.end_link(Link.wrap(link), error)

    # --- the connection -----------------------------------------------------------------------

    def _links(self) -> list[OurLink]:
        return [link for one in self._by_session.values() for link in one.links.values()]

    def pause(self) -> None:
        """The peer does not read."""
        for link in self._links():
            link.pause()

    def go_on(self) -> None:
        """The peer reads again."""
        for link in self._links():
            link.go_on()

    def lost(self, error: Exception | None) -> None:
        """The socket is gone: with it all of its sessions end."""
        self._is_lost = self._is_ending = True
        self._sessions.disconnected(self)
        if error is not None:
            log.info("AMQ222061: %s: connection lost: %s", self.peer.remote, error)
        self._end_all(has_failed=True)
        if self._tick is not None:
            self._tick.cancel()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.free()

    def check(self) -> None:
        """End it if it was silent for longer than it may be, or is too slow to open."""
        if self.client_id is None:
            limit_s = self.peer.handshake_timeout_s
            if 0 < limit_s <= self.clock.monotonic_s() - self._opened_s:
                log.warning(
                    "AMQ224088: %s did not end its handshake in %.0f s: closed",
                    self.peer.remote,
                    limit_s,
                )
                self.peer.abort()
            return
        for link in self._links():
            link.check()
        if 0 < self._ttl_ms <= self.peer.silent_s * 1000:
            self._fail(
                f"AMQ229014: Did not receive data from {self.peer.remote} within the "
                f"{self._ttl_ms}ms connection TTL. The connection will now be closed."
            )

    def _fail(self, text: str) -> None:
        """End it with all its sessions, and tell the client why; at once where it was ending."""
        log.warning("%s", text)
        if self._is_ending:
            self.peer.abort()
            return
        self._close(FORCED, text)
        self.flush()
        self.peer.close()

    def fail(self) -> None:
        """End it with all its sessions: an operator wants it so."""
        self._fail("the connection was closed by an operator")

    def kill(self, session: Session) -> None:
        """End it with all its sessions: one of them is too slow."""
        self._fail(f"the connection was closed: a consumer of session {session.name} is too slow")

    def close_session(self, session: Session) -> None:
        """End one of its sessions, and tell its client: an operator wants it so."""
        for engine_session, one in list(self._by_session.items()):
            if one.session is session:
                self._end_session(engine_session)
                engine_session.condition = Condition(
                    FORCED, f"session {session.name} was closed by an operator"
                )
                engine_session.close()
                self.flush_later()

    def disconnect(self) -> None:
        """The broker stops: tell the client, then close."""
        if not self._is_ending and self._engine is not None:
            self._close(FORCED, "the broker stops")
            self.flush()
        self._is_ending = True
        self.peer.close()


def _wrapping(method: Callable[[AmqpConnection, Event], None]) -> Callable[..., None]:
    """Give a handler of events that are rare enough for Proton's object."""
    return lambda connection, handle: method(connection, Event.wrap(handle))


_HANDLERS: Final[dict[int, Callable[[AmqpConnection, object], None]]] = {
    Event.CONNECTION_REMOTE_OPEN.number: _wrapping(AmqpConnection._open),
    Event.CONNECTION_REMOTE_CLOSE.number: _wrapping(AmqpConnection._closed),
    Event.SESSION_REMOTE_OPEN.number: _wrapping(AmqpConnection._session_begun),
    Event.SESSION_REMOTE_CLOSE.number: _wrapping(AmqpConnection._session_ended),
    Event.LINK_REMOTE_OPEN.number: _wrapping(AmqpConnection._attached),
    Event.LINK_REMOTE_DETACH.number: _wrapping(AmqpConnection._detached),
    Event.LINK_REMOTE_CLOSE.number: _wrapping(AmqpConnection._detached),
    Event.LINK_FLOW.number: AmqpConnection._flow,
    Event.DELIVERY.number: AmqpConnection._delivery,
}
