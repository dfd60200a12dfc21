"""A message sent by an operator, under a user's name and with his permissions."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

from broker.management.errors import ManagementError
from broker.model.encoding import BodyWriter
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType
from broker.sessions.session import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.management.access import ManagedBroker

__all__ = ["send_message"]

ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"


def send_message(
    broker: ManagedBroker,
    address: str,
    headers: Mapping[str, object],
    type: int,
    body: str | None,
    *,
    durable: bool,
    user: str | None,
    password: str | None,
    has_user_id: bool,
) -> str:
    """Send a message; its id.

    Args:
        broker: to send it in.
        address: where to; may be qualified by a queue.
        headers: properties, all as text; null is none.
        type: of the message; of TEXT the body is text, of others Base64.
        body: None for none.
        durable: of the message.
        user: who sends.
        password: his.
        has_user_id: the message gets a message id of its sender.

    Raises:
        BrokerError: wrong password, no permission, or refused.
        ManagementError: the body is not valid Base64, the type does not fit a byte, or a header is
            a list or an object.
    """
    if not -128 <= type <= 127:
        raise ManagementError(f"a message has no type {type}")
    properties = [_property(key, value) for key, value in headers.items()]
    name = broker.clients.authenticate(user, password, "management")
    session = broker.clients.new_session(
        f"management::{broker.ids.random_uuid()}", name, SessionOptions(), set()
    )
    message = Message(
        address,
        _body(type, body),
        type=type,
        durable=durable,
        timestamp=broker.clock_ms(),
        user_id=broker.ids.time_uuid().bytes if has_user_id else None,
        properties=properties,
    )
    try:
        session.send(message, _sent)
    finally:
        session.close(has_failed=False)
    return str(message.message_id)


def _sent(error: Exception | None) -> None:
    """The answer to the request waits for the same records."""


def _property(name: str, value: object) -> Property:
    if value is None:
        return Property(name, PropertyType.NULL, None)
    if isinstance(value, list | dict):
        raise ManagementError(f"header {name} is not text")
    # Numbers and booleans as they stand in JSON.
    text = value if isinstance(value, str) else json.dumps(value)
    if name == ROUTING_TYPE and text in ("0", "1"):
        # Headers are texts; Artemis reads a number in a text as that number.
        return Property(name, PropertyType.BYTE, int(text))
    return Property(name, PropertyType.STRING, text)


def _body(type: int, body: str | None) -> bytes:
    if body is None:
        return b""
    if type == MessageType.TEXT:
        writer = BodyWriter()
        writer.write_nullable(BodyWriter.write_simple_string, body)
        return writer.getvalue()
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:
        raise ManagementError(f"the body is not valid Base64: {error}") from error
