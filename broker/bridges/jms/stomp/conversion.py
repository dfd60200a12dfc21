"""STOMP frames as messages of JMS, and back.

A frame has text or bytes, and headers of text. So a property comes out as text, whatever its type
was, and map, stream and object messages cannot be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.bridges.jms.errors import ProviderError
from broker.bridges.jms.message import BodyKind, JMSMessage
from broker.model.message import PRIORITY_DEFAULT
from broker.model.properties import Property, PropertyType

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["frame_of", "message_of"]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
# Headers that are fields of JMSMessage, or of the frame alone.
_HEADERS: Final = frozenset(
    (
        *("destination", "message-id", "subscription", "ack", "content-length", "content-type"),
        *("correlation-id", "reply-to", "type", "persistent", "priority", "expires", "timestamp"),
        *("redelivered", "destination-type", "receipt", "transaction", DUPLICATE_ID),
    )
)


def message_of(headers: Mapping[str, str], body: bytes) -> JMSMessage:
    """Give a received frame: bytes if it has a content-length or is not UTF-8, else text.

    Args:
        headers: as received.
        body: as received.
    """
    text = None
    if _is_text(headers):
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = None
    return JMSMessage(
        kind=BodyKind.BYTES if text is None else BodyKind.TEXT,
        body=body if text is None else text,
        message_id=headers.get("message-id"),
        correlation_id=headers.get("correlation-id"),
        reply_to=headers.get("reply-to"),
        type=headers.get("type"),
        durable=headers.get("persistent", "false").lower() == "true",
        priority=_number(headers.get("priority"), PRIORITY_DEFAULT),
        expiration_ms=_number(headers.get("expires"), 0),
        timestamp_ms=_number(headers.get("timestamp"), 0),
        properties={
            name: Property(name, PropertyType.STRING, value)
            for name, value in headers.items()
            if name not in _HEADERS
        },
    )


def _is_text(headers: Mapping[str, str]) -> bool:
    kind = headers.get("content-type", "")
    return kind.startswith("text/") or "content-length" not in headers


def _number(text: str | None, default: int) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        return default


def frame_of(message: JMSMessage) -> tuple[dict[str, str], str | bytes]:
    """Give headers and body of the frame to send.

    Args:
        message: of any provider.

    Raises:
        ProviderError: STOMP cannot carry its body.
    """
    content = message.content()
    if content is not None and not isinstance(content, str | bytes):
        raise ProviderError(
            f"message {message.message_id}: STOMP carries text and bytes, not a "
            f"{message.kind.value} message"
        )
    if message.kind is BodyKind.OBJECT:
        raise ProviderError(f"message {message.message_id}: STOMP carries no object messages")
    headers = {
        name: _text(one)
        for name, one in message.properties.items()
        if one.value is not None and name not in _HEADERS
    }
    fields = {
        "correlation-id": message.correlation_id,
        "reply-to": message.reply_to,
        "type": message.type,
    }
    headers |= {name: _plain(value) for name, value in fields.items() if value is not None}
    headers["persistent"] = "true" if message.durable else "false"
    headers["priority"] = str(message.priority)
    if message.expiration_ms:
        headers["expires"] = str(message.expiration_ms)
    if message.timestamp_ms:
        headers["timestamp"] = str(message.timestamp_ms)
    if message.duplicate_id is not None:
        headers[DUPLICATE_ID] = message.duplicate_id.hex()
    if isinstance(content, bytes):
        headers["content-length"] = str(len(content))
        return headers, content
    headers["content-type"] = "text/plain"
    return headers, content or ""


def _text(one: Property) -> str:
    if isinstance(one.value, bool):
        return "true" if one.value else "false"
    return _plain(one.value)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
