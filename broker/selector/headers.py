"""Resolves the names in a selector: headers of the message, or properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.java_text import uuid_text
from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.selector.values import SupportsProperties, Value

__all__ = ["fetcher"]

# FilterConstants of Artemis.
NATIVE_MESSAGE_ID: Final = "NATIVE_MESSAGE_ID"
_NO_PREFIX: Final = "ID:AMQP_NO_PREFIX:"
GROUP_ID: Final = "_AMQ_GROUP_ID"


def fetcher(name: str) -> Callable[[SupportsProperties], Value]:
    """A function that gives the value of a name; a header that is missing may be a property."""
    header = _HEADERS.get(name)

    def of_property(message: SupportsProperties) -> Value:
        return message.typed(name)

    if header is None:
        return of_property

    def of_header(message: SupportsProperties) -> Value:
        value = header(message)
        return of_property(message) if value is None else value

    return of_header


def _user_id(message: SupportsProperties) -> Value:
    native = message.get(NATIVE_MESSAGE_ID)
    if isinstance(native, str):
        # Of AMQP: as its sender wrote it, whatever kinds of id Core's clients have for it.
        return PropertyType.STRING, native.removeprefix(_NO_PREFIX)
    if message.user_id is not None:
        return PropertyType.STRING, f"ID:{uuid_text(message.user_id)}"
    return None


def _address(message: SupportsProperties) -> Value:
    return None if message.address is None else (PropertyType.STRING, message.address)


def _group_id(message: SupportsProperties) -> Value:
    group = message.get(GROUP_ID)
    return (PropertyType.STRING, group) if isinstance(group, str) else None


_HEADERS: Final[Mapping[str, Callable[[SupportsProperties], Value]]] = {
    "AMQUserID": _user_id,
    "AMQPriority": lambda message: (PropertyType.INT, message.priority),
    "AMQTimestamp": lambda message: (PropertyType.LONG, message.timestamp),
    "AMQDurable": lambda message: (
        PropertyType.STRING,
        "DURABLE" if message.durable else "NON_DURABLE",
    ),
    "AMQExpiration": lambda message: (PropertyType.LONG, message.expiration),
    "AMQSize": lambda message: (PropertyType.INT, message.encoded_size),
    "AMQAddress": _address,
    "AMQGroupID": _group_id,
}
