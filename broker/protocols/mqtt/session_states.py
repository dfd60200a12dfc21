"""The sessions of all clients, connected or not: by client id, found again after a restart.

    CONNECT ─▶ find(), make() ─▶ SessionState ─▶ leave() ─▶ send_due(): its will │ expire(): its end

Subscriptions of a session that outlives its connection are recorded in `$sys.mqtt.sessions`; their
queues are durable by themselves. They are not recorded where the broker is configured so: after a
restart a client subscribes again, and gets what waits for it. PUBRELs that have no answer are
messages in a queue of the client.

Not recorded, as in Artemis: packet ids of messages without any answer, and wills. After a restart
such messages come under new ids.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.message_properties import PACKET_ID
from broker.protocols.mqtt.retained import RetainedMessages
from broker.protocols.mqtt.session_records import read_subscriptions, write_subscriptions
from broker.protocols.mqtt.session_state import (
    NEVER_S,
    Outgoing,
    Owner,
    SessionState,
    Subscribed,
)
from broker.protocols.mqtt.topics import OWN_PREFIX, address_of, split_shared
from broker.queues.last_values import LAST_VALUE
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.peer import Sessions
    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["RELEASE_PREFIX", "SESSIONS", "SessionStates"]

log = logging.getLogger("broker")

SESSIONS: Final = f"{OWN_PREFIX}sessions"
RELEASE_PREFIX: Final = f"{OWN_PREFIX}queue.qos2."
"""Before a client id: the queue of PUBRELs that have no answer."""
# Ours: seconds; Artemis does not look at it.
_EXPIRY: Final = "mqtt.session.expiry.interval"
_SESSIONS_QUEUE: Final = QueueRequest(
    name=SESSIONS,
    address=SESSIONS,
    routing_type=RoutingType.ANYCAST,
    last_value=True,
    last_value_key=LAST_VALUE,
    is_internal=True,
)


class SessionStates:
    """See the module's text.

    Args:
        sessions: the broker.
        send_will: publishes that of a client that has gone, of its session's state.

    Attributes:
        retained: messages of the broker.
    """

    def __init__(self, sessions: Sessions, send_will: Callable[[SessionState], object]) -> None:
        self._sessions = sessions
        self._send_will = send_will
        self.retained = RetainedMessages()
        self._own: Session | None = None
        self._by_id: dict[str, SessionState] = {}
        self._is_stored = sessions.mqtt_subscription_persistence
        # Those that may have a will that waits, so that not all are looked through for it.
        self._with_will: dict[str, SessionState] = {}
        # Records that go once what was recorded before them is durable.
        self._going_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    # --- what is stored -----------------------------------------------------------------------

    def _session(self) -> Session:
        """Give the protocol's own session, and read what is stored when it is made."""
        own = self._own
        if own is None:
            own = self._own = self._sessions.new_session("mqtt", None, SessionOptions(), set())
            if self._is_stored:
                self._load(own)
        return own

    def _load(self, own: Session) -> None:
        now_s = self._sessions.clock.monotonic_s()
        for message in own.own_queues.messages(SESSIONS):
            client_id = message.get(LAST_VALUE)
            if not isinstance(client_id, str):
                log.warning("AMQ834012: a record of an MQTT session names no client")
                continue
            state = SessionState(client_id)
            expiry_s = message.get(_EXPIRY)
            state.expiry_s = expiry_s if isinstance(expiry_s, int) else NEVER_S
            state.ended_s = now_s
            state.record_id = message.message_id
            try:
                self._load_subscriptions(own, state, message)
            except (RecordFormatError, MqttError) as error:
                log.warning("AMQ834013: the MQTT session of %s is left out: %s", client_id, error)
                continue
            self._load_releases(own, state)
            self._by_id[client_id] = state
        log.debug("%d MQTT sessions were stored", len(self._by_id))

    def _load_subscriptions(self, own: Session, state: SessionState, message: Message) -> None:
        for filter, identifier in read_subscriptions(message.body):
            share, plain = split_shared(filter.text)
            address = address_of(plain, own.wildcards)
            queue = f"{state.client_id if share is None else share}.{address}"
            state.subscriptions[filter.text] = Subscribed(filter, identifier, queue, share)

    def _load_releases(self, own: Session, state: SessionState) -> None:
        queue = f"{RELEASE_PREFIX}{state.client_id}"
        for message in own.own_queues.messages(queue):
            packet_id = message.get(PACKET_ID)
            if isinstance(packet_id, int) and 0 < packet_id <= 0xFFFF:
                state.outgoing[packet_id] = Outgoing(packet_id, 2, "", 0, is_released=True)

    def save(self, state: SessionState, session: Session) -> None:
        """Record the subscriptions of a session, where it outlives its connection.

        Durable with what `session` does.

        Raises:
            BrokerError: the disk is full.
            JournalError: the storage has failed.
        """
        if not self._is_stored:
            return
        if not state.is_kept or not state.subscriptions:
            self._forget_record(state)
            return
        own = session.own_queues
        own.make(_SESSIONS_QUEUE)
        found = [(one.filter, one.identifier) for one in state.subscriptions.values()]
        message = Message(
            SESSIONS,
            write_subscriptions(found),
            type=MessageType.DEFAULT,
            durable=True,
            priority=0,
            message_id=session.new_id(),
            properties=[
                Property(LAST_VALUE, PropertyType.STRING, state.client_id),
                Property(_EXPIRY, PropertyType.LONG, state.expiry_s),
            ],
        )
        own.put(message, SESSIONS)
        state.record_id = message.message_id

    def _forget_record(self, state: SessionState) -> None:
        if not state.record_id:
            return
        record_id, state.record_id = state.record_id, 0
        # Behind a record of it that is on its way.
        context = self._session().context
        context.note()
        self._going_count += 1
        context.after(self._remove_record, state.client_id, record_id)

    def _remove_record(self, error: Exception | None, client_id: str, record_id: int) -> None:
        self._going_count -= 1
        if error is None:
            self._session().own_queues.remove_last(SESSIONS, client_id, record_id)

    def after(self, session: Session, done: After, *arguments: object) -> None:
        """Call `done(error, *arguments)` once what a session did and removed is durable.

        Args:
            session: of the client.
            done: called so.
            *arguments: for it.
        """
        if self._going_count:
            # Behind the removals, and then behind what these record.
            self._session().context.after(self._gone, session, done, arguments)
        else:
            session.context.after(done, *arguments)

    def _gone(
        self, error: Exception | None, session: Session, done: After, arguments: tuple[object, ...]
    ) -> None:
        if error is None:
            session.context.note()
        session.context.after(done, *arguments)

    # --- sessions -----------------------------------------------------------------------------

    def find(self, client_id: str) -> SessionState | None:
        """Give the session of a client; None where it has none."""
        self._session()
        return self._by_id.get(client_id)

    def owner(self, client_id: str) -> Owner | None:
        """Give the connection of a client; None where it has none."""
        state = self._by_id.get(client_id)
        return None if state is None else state.owner

    def make(self, client_id: str) -> SessionState:
        """Make one, of a client that has none."""
        if not self._is_stored:
            # PUBRELs of a session that a restart has ended: a client that comes to a new one knows
            # nothing of their packet ids.
            self._session().own_queues.delete(f"{RELEASE_PREFIX}{client_id}")
        state = self._by_id[client_id] = SessionState(client_id)
        return state

    def leave(self, state: SessionState) -> None:
        """Its connection has ended: let it wait for the next one, or end it."""
        state.owner = None
        state.ended_s = self._sessions.clock.monotonic_s()
        state.disconnected()
        self._send_due(state)
        if not state.is_kept:
            self.end(state)

    def end(self, state: SessionState, user_session: Session | None = None) -> None:
        """End a session: its queues go, and its will is sent if it waits.

        Args:
            state: of no connection.
            user_session: whose user has to be allowed to; None asks for no permission.

        Raises:
            BrokerError: the user may not delete a queue; the session is as it was.
        """
        own = self._session().own_queues
        for text, one in list(state.subscriptions.items()):
            if one.queue in own and self._is_unused(state, one):
                if user_session is not None:
                    user_session.administration.delete_queue(one.queue)
                else:
                    own.delete(one.queue)
            del state.subscriptions[text]
        own.delete(f"{RELEASE_PREFIX}{state.client_id}")
        self._forget_record(state)
        self._by_id.pop(state.client_id, None)
        if state.will is not None:
            self._send_will(state)

    def _is_unused(self, state: SessionState, one: Subscribed) -> bool:
        """Whether the queue of a subscription goes with it."""
        if not one.is_own:
            return False
        if one.share is None:
            return True
        if self._session().own_queues.consumer_count(one.queue):
            return False
        return not any(
            other.queue == one.queue
            for another in self._by_id.values()
            if another is not state
            for other in another.subscriptions.values()
        )

    def drop_queue(self, state: SessionState, one: Subscribed, session: Session) -> None:
        """A client has ended a subscription: remove its queue, unless others need it.

        Raises:
            BrokerError: the user may not.
        """
        if one.queue in session.own_queues and self._is_unused(state, one):
            session.administration.delete_queue(one.queue)

    def expire(self) -> None:
        """From time to time: end what has expired."""
        if not self._sessions.is_active:
            return
        self._session()
        now_s = self._sessions.clock.monotonic_s()
        for state in list(self._by_id.values()):
            if state.owner is not None or state.expiry_s == NEVER_S:
                continue
            if now_s - state.ended_s >= state.expiry_s:
                try:
                    self.end(state)
                except BrokerError as error:
                    log.warning(
                        "AMQ834008: the MQTT session of %s cannot end: %s", state.client_id, error
                    )

    def send_due(self) -> None:
        """From time to time: send wills that have waited for their delay."""
        if not self._sessions.is_active:
            return
        for state in list(self._with_will.values()):
            if state.owner is None and state.will is not None:
                self._send_due(state)
            if state.owner is not None or state.will is None:
                del self._with_will[state.client_id]

    def _send_due(self, state: SessionState) -> None:
        will = state.will
        if will is None:
            return
        if will.due_s <= self._sessions.clock.monotonic_s():
            self._send_will(state)
        else:
            self._with_will[state.client_id] = state
