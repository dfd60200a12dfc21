"""The columns that come from one message's bytes, of whatever protocol: a Python object each.

Core messages that are as they should be take a shorter way (pipeline.message_columns).
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from broker.model.bodies import encode_text
from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.java_text import uuid_text, whole_pairs
from broker.model.message_types import MessageType, Persister
from broker.model.properties import PropertyType, last_values
from broker.printing.describe_amqp import amqp_user_id, sections_of
from broker.printing.json_view import json_view
from broker.records.records import decode_record
from broker.records.stored_messages import (
    AMQP_ADDRESS_PROPERTY,
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV2,
    AmqpMessageV3,
    CoreMessage,
    LargeCoreMessage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.model.message import Message
    from broker.model.properties import Property, PropertyValue
    from broker.model.wire import WireRecord
    from broker.printing.json_view import JSON
    from broker.records.stored_messages import MessageHeaders

__all__ = [
    "DUPLICATE_ID",
    "content_of",
    "core_body",
    "core_headers",
    "message_content",
    "property_text",
    "text_of",
]

# By which Artemis, and we, refuse a second copy of a message.
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
# AMQP 1.0, 3.2.1: what a header that does not say otherwise means.
AMQP_PRIORITY: Final = 4
_TYPE_NAMES: Final = {int(kind): kind.name for kind in MessageType}
_PROPERTY_TYPES: Final = {kind: kind.name.lower() for kind in PropertyType}


def message_content(user_type: int, body: bytes) -> dict[str, Any]:
    """The columns of a message, those that its kind has.

    Raises:
        RecordFormatError: its version is unsupported, or a part of it is damaged.
    """
    message = decode_record(user_type, body, is_update=False)
    assert message is not None, "every type of MESSAGE_TYPES has a class"
    return content_of(message)


def content_of(message: WireRecord) -> dict[str, Any]:
    """The columns of a message, as it is in a record or a page.

    Raises:
        RecordFormatError: see message_content().
    """
    if isinstance(message, CoreMessage):
        headers = message.headers
        address = headers.address if message.address is None else message.address
        return {
            **_core_headers(headers, address),
            "is_large": False,
            **core_body(headers.type, message.body),
        }
    if isinstance(message, LargeCoreMessage):
        return {**_core_headers(message.headers, message.headers.address), "is_large": True}
    if isinstance(message, AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage):
        return _amqp_content(message)
    raise RecordFormatError("message of an old version: its layout is not supported")


def _core_headers(headers: MessageHeaders, address: str | None) -> dict[str, Any]:
    return core_headers(headers, last_values(headers.properties), address)


def core_headers(
    headers: MessageHeaders | Message, found: Mapping[str, Property], address: str | None
) -> dict[str, Any]:
    """The columns of a Core message's headers; texts are those of `print-data --decode`.

    Args:
        headers: of the message, stored or received.
        found: its properties by name.
        address: that it was sent to.
    """
    by_name = {_whole(name): item for name, item in found.items()}
    properties = {name: property_text(item.value) for name, item in by_name.items()}
    return {
        "address": None if address is None else _whole(address),
        "protocol": Persister.CORE.name,
        "type": _TYPE_NAMES.get(headers.type, str(headers.type)),
        "durable": headers.durable,
        "priority": headers.priority,
        "timestamp_ms": headers.timestamp,
        "expiration_ms": headers.expiration,
        "user_id": None if headers.user_id is None else uuid_text(headers.user_id),
        "duplicate_id": properties.get(DUPLICATE_ID),
        "properties": list(properties.items()),
        "property_types": [(name, _PROPERTY_TYPES[item.type]) for name, item in by_name.items()],
    }


def core_body(kind: int, body: bytes) -> dict[str, Any]:
    """The columns of a Core message's body: a text stands once, where it is all of the body.

    Args:
        kind: the message's type.
        body: all of it.
    """
    text = text_of(body) if kind == MessageType.TEXT else None
    is_all = text is not None and encode_text(text) == body
    return {"body": None if is_all else body, "body_size": len(body), "text": text}


def text_of(body: bytes) -> str | None:
    """The text that the body of a text message holds; None where it holds something else."""
    try:
        text = NSS.read(BodyReader(body))
    except RecordFormatError:
        # Clients may put anything under any type; the bytes themselves are in `body`.
        return None
    return None if text is None else _whole(text)


def _whole(text: str) -> str:
    """A text that is UTF-8, too: no half of a surrogate pair."""
    return whole_pairs(text, "\ufffd")


def property_text(value: PropertyValue) -> str | None:
    """A property's value as text: bytes as hex, numbers as JSON has them."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _text(value)


def _amqp_content(
    message: AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage,
) -> dict[str, Any]:
    view = json_view(message)
    sections = sections_of(message)
    header = _object(view["header"])
    properties = _object(view["properties"])
    application = _object(view["applicationProperties"])
    extra = () if isinstance(message, AmqpMessageV1) else message.extra_properties or ()
    kept = last_values(extra).get(AMQP_ADDRESS_PROPERTY)
    noted = properties.get("to") if kept is None else property_text(kept.value)
    address = view["address"] or noted
    is_large = isinstance(message, AmqpLargeMessage)
    whole = None if isinstance(message, AmqpLargeMessage) else message.encoded
    return {
        "address": address if isinstance(address, str) else None,
        "protocol": message.persister.name,
        "is_large": is_large,
        "durable": bool(header.get("durable")),
        "priority": _integer(header.get("priority", AMQP_PRIORITY), 31),
        "timestamp_ms": _integer(properties.get("creationTime"), 63),
        "expiration_ms": getattr(message, "expiration", 0),
        "user_id": amqp_user_id(sections),
        "duplicate_id": _text(application.get(DUPLICATE_ID)),
        "properties": [(name, _text(value)) for name, value in application.items()],
        "body": whole,
        "body_size": None if whole is None else len(whole),
    }


def _object(view: JSON) -> dict[str, JSON]:
    return view if isinstance(view, dict) else {}


def _integer(value: JSON, bits: int) -> int | None:
    """A value if it is an integer of so many bits and a sign: clients may send anything."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << bits) <= value < 1 << bits else None


def _text(value: JSON) -> str | None:
    """A property's value as text: strings as they are, the rest as JSON has it.

    >>> _text("a"), _text(True), _text(1.5), _text(None)
    ('a', 'true', '1.5', None)
    """
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
