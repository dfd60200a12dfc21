"""Wills: published with the permissions of the user whose client has gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.protocols.mqtt.published_message import message_of
from broker.protocols.mqtt.publishing import routing_type_of
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.topics import destination_of
from broker.sessions.session import SessionOptions
from journal.errors import JournalError

if TYPE_CHECKING:
    from broker.protocols.mqtt.retained import RetainedMessages
    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.peer import Sessions

__all__ = ["send_will"]

log = logging.getLogger("broker")


def send_will(sessions: Sessions, state: SessionState, retained: RetainedMessages) -> None:
    """Publish the will of a client that has gone; what is refused is logged.

    Args:
        sessions: the broker.
        state: of the client; it has no will afterwards.
        retained: messages of the broker.
    """
    left, state.will = state.will, None
    assert left is not None, "it has one"
    will = left.will
    session = sessions.new_session(
        f"mqtt-will-{state.client_id}", left.user, SessionOptions(), set()
    )
    try:
        address, by_prefix = destination_of(
            will.topic,
            session.wildcards,
            left.prefixes,
            ReasonCode.TOPIC_NAME_INVALID,
        )
        message = message_of(
            address,
            will.payload,
            qos=will.qos,
            retain=will.retain,
            properties=will.properties,
            client_id=state.client_id,
            routing_type=routing_type_of(session, address) if by_prefix is None else by_prefix,
            now_ms=sessions.clock.now_ms(),
            message_id=session.new_id(),
        )
        if will.retain:
            retained.publish(session, message, address, lambda: session.accept(message), _sent)
        else:
            session.accept(message)
    except (BrokerError, JournalError) as error:
        log.warning("AMQ834007: the will of %s cannot be sent: %s", state.client_id, error)
    finally:
        session.close(has_failed=False)


def _sent(error: Exception | None) -> None:
    """It has no waiter."""
