"""Artemis's text of stored messages, of any protocol."""

from __future__ import annotations

from typing import TypeAlias

from broker.model.java_text import IDENTITY, date_text, text_of, uuid_text
from broker.printing.describe_amqp import amqp_large_text, amqp_text, amqp_user_id, sections_of
from broker.printing.describe_properties import properties_text
from broker.records.stored_messages import (
    AmqpLargeMessage,
    CoreMessage,
    LargeCoreMessage,
    StoredMessage,
)

__all__ = ["AnyMessage", "message_parts", "message_text"]

AnyMessage: TypeAlias = StoredMessage | LargeCoreMessage


def message_text(message: AnyMessage, record_id: int) -> str:
    """Give the text of a message's record.

    Raises:
        RecordFormatError: an AMQP message is not what it says.
    """
    user_id, text = message_parts(message)
    is_large = isinstance(message, LargeCoreMessage | AmqpLargeMessage)
    message_id = (
        message.headers.message_id if isinstance(message, LargeCoreMessage) else message.message_id
    )
    kind = "LargeMessage" if is_large else "Message"
    user = "" if user_id is None else f";userMessageID={user_id}"
    return f"{kind}(messageID={message_id}{user};msg={text}"


def message_parts(message: AnyMessage) -> tuple[str | None, str]:
    """Give a message's user id, if it has one, and the text of the message alone.

    Raises:
        RecordFormatError: as above.
    """
    if isinstance(message, CoreMessage):
        return _core_parts(message)
    if isinstance(message, LargeCoreMessage):
        return _large_core_parts(message)
    sections = sections_of(message)
    if isinstance(message, AmqpLargeMessage):
        return amqp_user_id(sections), amqp_large_text(message, sections)
    return amqp_user_id(sections), amqp_text(message, sections)


def _core_parts(message: CoreMessage) -> tuple[str | None, str]:
    headers = message.current_headers
    user_id = None if headers.user_id is None else uuid_text(headers.user_id)
    fields = (
        ("messageID", headers.message_id),
        ("durable", headers.durable),
        ("userID", user_id),
        ("priority", headers.priority),
        ("timestamp", date_text(headers.timestamp)),
        ("expiration", date_text(headers.expiration)),
        ("durable", headers.durable),
        ("address", headers.address),
        ("size", message.persistent_size),
        ("properties", properties_text(headers.properties)),
    )
    described = ", ".join(f"{name}={text_of(value)}" for name, value in fields)
    return user_id, f"CoreMessage[{described}]@{IDENTITY}"


def _large_core_parts(message: LargeCoreMessage) -> tuple[str | None, str]:
    headers = message.headers
    user_id = None if headers.user_id is None else uuid_text(headers.user_id)
    # The separators are Artemis's, with and without a space.
    described = (
        f"LargeServerMessage[messageID={headers.message_id},durable={text_of(headers.durable)},"
        f"userID={text_of(user_id)},priority={headers.priority}, "
        f"timestamp={date_text(headers.timestamp)},expiration={date_text(headers.expiration)}, "
        f"durable={text_of(headers.durable)}, address={text_of(headers.address)}, "
        f"properties={properties_text(headers.properties)}]"
    )
    return user_id, f"{described}@{IDENTITY}"
