"""Messages as maps of names and values: what an operator is shown (Message.toMap)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.properties import PropertyValue

__all__ = ["message_map"]


def message_map(message: Message, size_max: int = -1) -> dict[str, object]:
    """Give properties and headers by name.

    Args:
        message: to show.
        size_max: of a text or bytes; longer ones are cut (management-message-attribute-size-limit);
            -1 cuts nothing.
    """
    shown: dict[str, object] = {
        name: _cut(one.value, size_max) for name, one in message.properties.items()
    }
    shown["messageID"] = message.message_id
    if message.user_id is not None:
        shown["userID"] = f"ID:{uuid.UUID(bytes=message.user_id)}"
    shown["address"] = message.address or ""
    shown["type"] = message.type
    shown["durable"] = message.durable
    shown["expiration"] = message.expiration
    shown["timestamp"] = message.timestamp
    shown["priority"] = message.priority
    return shown


def _cut(value: PropertyValue, size_max: int) -> object:
    """Shorten a value, and say of a text by how much.

    >>> _cut("abcdef", 4), _cut(b"abcdef", 4), _cut(None, 4), _cut("abcdef", -1)
    ('abcd, + 2 more', b'abcd', '', 'abcdef')
    """
    if value is None:
        return ""
    if size_max < 0 or not isinstance(value, str | bytes) or len(value) <= size_max:
        return value
    if isinstance(value, bytes):
        return value[:size_max]
    return f"{value[:size_max]}, + {len(value) - size_max} more"
