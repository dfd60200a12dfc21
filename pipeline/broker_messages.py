"""Rows as messages: what the columns of a frame that is written into a broker become."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from broker.client.content import (
    CORRELATION_ID,
    DUPLICATE_ID,
    GROUP_ID,
    REPLY_TO,
    SCHEDULED_DELIVERY,
)
from broker.model.bodies import encode_text, property_of
from broker.model.message import PRIORITY_DEFAULT, Message
from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType, PropertyValue
from broker.model.routing_type import RoutingType
from journal.errors import OptionError, WrongUse
from pipeline.schema import SENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.broker_options import BrokerOptions

__all__ = ["check_columns", "message_of"]

Row = dict[str, Any]

# What a column may have beside its own type.
_ALSO: Final = {
    "binary": ("string",),
    "int": ("tinyint", "smallint"),
    "bigint": ("tinyint", "smallint", "int"),
}
# Properties may have types of their own, which are those of their messages then.
_PROPERTY_VALUES: Final = ("string", "boolean", "int", "bigint", "double", "binary")
_PRIORITIES: Final = range(10)
_LONGS: Final = range(1 << 63)
_TEXTS: Final = (
    ("group_id", GROUP_ID),
    ("correlation_id", CORRELATION_ID),
    ("reply_to", REPLY_TO),
)


def check_columns(columns: Mapping[str, str]) -> None:
    """See that a frame has columns that a message has, with types that it takes.

    Args:
        columns: types by name, in the words of Spark's SQL.

    Raises:
        OptionError: it has others.
    """
    known = {column.name: column.type for column in SENT}
    for name, kind in columns.items():
        if name not in known:
            raise OptionError(f"column {name!r}: messages have {', '.join(known)}; drop the others")
        allowed: tuple[str, ...] = (known[name], *_ALSO.get(known[name], ()))
        if name == "properties":
            allowed = tuple(f"map<string,{value}>" for value in _PROPERTY_VALUES)
        if kind.replace(" ", "") not in {one.replace(" ", "") for one in allowed}:
            raise OptionError(f"column {name!r} is {kind}: it must be {' or '.join(allowed)}")
    if not columns.keys() & {"text", "body"}:
        raise OptionError("neither a column text nor body: nothing to send")


def message_of(row: Row, options: BrokerOptions, duplicate_id: str) -> Message:
    """Give the message of a row, which has an address.

    Args:
        row: values by column.
        options: of the write.
        duplicate_id: that it has where the row has none.

    Raises:
        WrongUse: a value that no message can have.
    """
    kind, body = _body(row)
    message = Message(
        None,
        body,
        type=kind,
        durable=_given(row, "durable", default=True),
        priority=_number(row, "priority", PRIORITY_DEFAULT, _PRIORITIES),
        timestamp=_number(row, "timestamp_ms", time.time_ns() // 1_000_000, _LONGS),
        expiration=_number(row, "expiration_ms", 0, _LONGS),
        user_id=_user_id(row),
        properties=_properties(row),
    )
    message.address = row.get("address") or options.address
    if not message.address:
        raise WrongUse("a row has no address, and the option address is not set")
    for name, of_message in _TEXTS:
        if row.get(name) is not None:
            message.set(of_message, PropertyType.STRING, row[name])
    scheduled = _number(row, "scheduled_ms", 0, _LONGS)
    if scheduled:
        message.set(SCHEDULED_DELIVERY, PropertyType.LONG, scheduled)
    routing_type = _routing_type(row, options)
    if routing_type is not None:
        message.routing_type = routing_type
    message.set(DUPLICATE_ID, PropertyType.STRING, row.get("duplicate_id") or duplicate_id)
    return message


def _given(row: Row, name: str, *, default: bool) -> bool:
    value = row.get(name)
    return default if value is None else bool(value)


def _number(row: Row, name: str, default: int, allowed: range) -> int:
    value = row.get(name)
    if value is None:
        return default
    if value not in allowed:
        raise WrongUse(f"{name} is {value}: it must be {allowed.start} to {allowed.stop - 1}")
    return int(value)


def _body(row: Row) -> tuple[int, bytes]:
    text, body = row.get("text"), row.get("body")
    # What is read of a text message has both only where the text is not all of it.
    is_whole = body is not None and row.get("type") == MessageType.TEXT.name
    if text is not None and not is_whole:
        return MessageType.TEXT, encode_text(text)
    if body is None:
        if "text" not in row or row.get("type") not in (None, MessageType.DEFAULT.name):
            raise WrongUse(
                f"a row of type {row.get('type')} has neither text nor body: of what is read, take"
                " both columns, and of large messages bodies (maxLargeBodyBytes)"
            )
        return MessageType.DEFAULT, b""
    if isinstance(body, str):
        return MessageType.TEXT, encode_text(body)
    kind = row.get("type") or MessageType.BYTES.name
    if kind not in MessageType.__members__:
        raise WrongUse(f"type is {kind!r}: it must be one of {', '.join(MessageType.__members__)}")
    return MessageType[kind], bytes(body)


def _user_id(row: Row) -> bytes | None:
    text = row.get("user_id")
    if text is None:
        return None
    try:
        return UUID(text.removeprefix("ID:")).bytes
    except ValueError as error:
        raise WrongUse(f"user_id is {text!r}: it must be a UUID") from error


def _routing_type(row: Row, options: BrokerOptions) -> RoutingType | None:
    name = row.get("routing_type")
    if name is None:
        return options.routing_type
    for kind in (RoutingType.ANYCAST, RoutingType.MULTICAST):
        if kind.name == name:
            return kind
    raise WrongUse(f"routing_type is {name!r}: it must be ANYCAST or MULTICAST")


# --- properties -----------------------------------------------------------------------------------


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


# How `messages` writes the values of these types.
_READERS: Final[dict[PropertyType, Callable[[str], PropertyValue]]] = {
    PropertyType.BOOLEAN: _boolean,
    PropertyType.BYTES: bytes.fromhex,
    **dict.fromkeys(
        (PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG), int
    ),
    **dict.fromkeys((PropertyType.FLOAT, PropertyType.DOUBLE), float),
    **dict.fromkeys((PropertyType.STRING, PropertyType.CHAR), str),
}
_BY_NAME: Final = {kind.name.lower(): kind for kind in PropertyType}
_BITS: Final = {
    PropertyType.BYTE: 8,
    PropertyType.SHORT: 16,
    PropertyType.INT: 32,
    PropertyType.LONG: 64,
}


def _properties(row: Row) -> list[Property]:
    given = dict(row.get("properties") or ())
    types = dict(row.get("property_types") or ())
    return [_property(name, value, types.get(name)) for name, value in given.items()]


def _property(name: str, value: PropertyValue, type_name: str | None) -> Property:
    if value is None:
        return Property(name, PropertyType.NULL, None)
    if type_name is None or not isinstance(value, str):
        return property_of(name, value)
    kind = _BY_NAME.get(type_name)
    if kind is None or kind is PropertyType.NULL:
        raise WrongUse(f"property {name!r} of type {type_name!r}: there is {', '.join(_BY_NAME)}")
    try:
        found = _READERS[kind](value)
    except ValueError as error:
        raise WrongUse(f"property {name!r} is {value!r}, which is no {type_name}") from error
    bits = _BITS.get(kind)
    if bits is not None and not -(1 << bits - 1) <= int(found or 0) < 1 << bits - 1:
        raise WrongUse(f"property {name!r} is {value}, which does not fit a {type_name}")
    if kind is PropertyType.CHAR and len(value) != 1:
        raise WrongUse(f"property {name!r} is {value!r}, which is not a char")
    return Property(name, kind, found)
