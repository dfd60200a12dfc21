"""AMQP messages on a link of Core, from broker to broker: whole, inside of a message of Core.

    AmqpMessage ──────▶ type 7, body `EMB` and the body of its record ───────▶ AmqpMessage
    LargeAmqpMessage ─▶ type 8, property `_AMQP_EMBED_LARGE` with its record,
                        body as it is stored ───────────────────────────────▶ LargeAmqpMessage

Artemis's bridges and cluster connections send them so (EmbedMessageUtil). A broker extracts them
from what any client of Core sends.
"""

from __future__ import annotations

import logging
from typing import Final

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import MessageType, Persister
from broker.model.properties import Property, PropertyType
from broker.records.amqp_large_body import AmqpLargeBody
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage

__all__ = ["EMBEDDED_SIGNATURE", "embedded", "extracted"]

log = logging.getLogger("broker")

EMBEDDED_SIGNATURE: Final = b"EMB"
_LARGE_RECORD: Final = "_AMQP_EMBED_LARGE"


def embedded(message: Message) -> Message:
    """Give what is sent for a message: itself, unless it is one of AMQP.

    Args:
        message: a large one with its body, unless the caller sends that.
    """
    if isinstance(message, LargeAmqpMessage):
        record = Property(_LARGE_RECORD, PropertyType.BYTES, message.record())
        made = _wrapper(message, MessageType.LARGE_EMBEDDED, b"", (record,))
        large = message.large
        if isinstance(large, AmqpLargeBody):
            made.large = large.stored
        return made
    if isinstance(message, AmqpMessage) and message.is_as_sent:
        body = EMBEDDED_SIGNATURE + message.record()
        return _wrapper(message, MessageType.EMBEDDED, body)
    return message


def _wrapper(
    message: Message, kind: MessageType, body: bytes, properties: tuple[Property, ...] = ()
) -> Message:
    return Message(
        message.address,
        body,
        type=kind,
        durable=message.durable,
        priority=message.priority,
        expiration=message.expiration,
        timestamp=message.timestamp,
        message_id=message.message_id,
        properties=properties,
    )


def extracted(message: Message) -> Message:
    """Give the message of AMQP that is inside of one of Core, under its message id; else itself.

    One that cannot be read stays as it came, as in Artemis.
    """
    kind = message.type
    try:
        if kind == MessageType.EMBEDDED:
            found = _regular(message)
        elif kind == MessageType.LARGE_EMBEDDED:
            found = _large(message)
        else:
            return message
    except RecordFormatError as error:
        log.warning("message %d: what is embedded in it is not read: %s", message.message_id, error)
        return message
    if found is None:
        return message
    if found.address is None:
        found.address = message.address
    found.give_id(message.message_id)
    return found


def _regular(message: Message) -> Message | None:
    body = bytes(message.body)
    if not body.startswith(EMBEDDED_SIGNATURE):
        return None
    record = body[len(EMBEDDED_SIGNATURE) :]
    if record[:1] == bytes((Persister.CORE,)):
        # Of one that its broker had changed.
        return Message.from_record(record)
    return AmqpMessage.from_record(record, is_recorded=message.durable)


def _large(message: Message) -> Message | None:
    record = message.get(_LARGE_RECORD)
    return LargeAmqpMessage.from_record(record) if isinstance(record, bytes) else None
