"""Decoded records as JSON, for `print-data --decode`.

Keys are the field names of docs/format/records.md in camel case, in the order of the bytes; before
them `recordType`, the name of the type. Bytes are lower-case hex, enumerations their names, what
JSON has no number for ("NaN", "Infinity") a string, half of a surrogate pair U+FFFD, so that the
text can be written as UTF-8. Nothing is masked: the body stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from broker.model.encoding import NSS, BodyReader, RecordFormatError
from broker.model.java_text import uuid_text, whole_pairs
from broker.model.message_types import MessageType
from broker.model.properties import TYPED_PROPERTIES, TypedProperties, last_values
from broker.printing.describe_amqp import sections_of, value_text
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV2,
    AmqpMessageV3,
    CoreMessage,
    LargeCoreMessage,
    MessageHeaders,
)

if TYPE_CHECKING:
    from broker.model.wire import WireRecord
    from broker.records.amqp_sections import AmqpMap
    from broker.records.amqp_values import AmqpValue

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

# What the sections of an AMQP message say, in place of their bytes.
_AMQP_ENCODED: Final = (
    *("header", "message_annotations", "properties", "application_properties"),
    *("encoded", "extra_properties"),
)


def json_view(record: WireRecord) -> dict[str, JSON]:
    """Give a decoded record as a JSON object.

    Raises:
        RecordFormatError: a part that is only read for this view is damaged.
    """
    return {"recordType": record.record_type.name, **_content(record)}


def _content(record: WireRecord) -> dict[str, JSON]:
    if isinstance(record, CoreMessage):
        return _core_view(record)
    if isinstance(record, LargeCoreMessage):
        return _headers_view(record.headers)
    if isinstance(record, AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage):
        return _amqp_view(record)
    return _fields_view(record)


def _fields_view(record: Any, *, without: tuple[str, ...] = ()) -> dict[str, JSON]:  # noqa: ANN401
    return {
        item.metadata.get("label") or camel_case(item.name): _value_view(getattr(record, item.name))
        for item in fields(record)
        if item.name not in without
    }


def _value_view(value: Any) -> JSON:  # noqa: ANN401 - any field of any record.
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_value_view(item) for item in value]
    if is_dataclass(value):
        return _fields_view(value)
    if isinstance(value, str):
        return whole_pairs(value, "\ufffd")
    assert value is None or isinstance(value, bool | int | float)
    return value


def camel_case(name: str) -> str:
    """Give a field's name as the format writes it.

    >>> camel_case("queue_id"), camel_case("ha")
    ('queueId', 'ha')
    """
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _properties_view(properties: TypedProperties) -> dict[str, JSON]:
    by_name = last_values(properties)
    return {
        "properties": {_key(name): _value_view(item.value) for name, item in by_name.items()},
        "propertyTypes": {_key(name): item.type.name.lower() for name, item in by_name.items()},
    }


def _key(name: str) -> str:
    return whole_pairs(name, "\ufffd")


def _headers_view(headers: MessageHeaders) -> dict[str, JSON]:
    view = _fields_view(headers, without=("properties",))
    view["userId"] = None if headers.user_id is None else uuid_text(headers.user_id)
    return {**view, **_properties_view(headers.properties)}


def _core_view(message: CoreMessage) -> dict[str, JSON]:
    return {
        "persister": message.persister.name,
        **_headers_view(message.current_headers),
        "bodySize": len(message.body),
        "body": message.body.hex(),
        **_body_view(message),
    }


def _body_view(message: CoreMessage) -> dict[str, JSON]:
    """Give the text or the entries of a body that its type says holds them, if it does."""
    reader = BodyReader(message.body)
    try:
        if message.headers.type == MessageType.TEXT:
            return {"text": _value_view(NSS.read(reader))}
        if message.headers.type == MessageType.MAP:
            return {"map": _properties_view(TYPED_PROPERTIES.read(reader))["properties"]}
    except RecordFormatError:
        # Clients may put anything under any type; the bytes themselves are in "body".
        return {}
    return {}


def _amqp_view(
    message: AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3 | AmqpLargeMessage,
) -> dict[str, JSON]:
    sections = sections_of(message)
    view = {
        "persister": message.persister.name,
        **_fields_view(message, without=_AMQP_ENCODED),
        "header": _named_view(sections.header),
        "messageAnnotations": _map_view(sections.message_annotations),
        "properties": _named_view(sections.properties),
        "applicationProperties": _map_view(sections.application_properties),
    }
    if not isinstance(message, AmqpMessageV1):
        extra = _properties_view(message.extra_properties or ())
        view["extraProperties"] = extra["properties"]
    if not isinstance(message, AmqpLargeMessage):
        view["encodedSize"] = len(message.encoded)
        view["encoded"] = message.encoded.hex()
    return view


def _named_view(section: dict[str, AmqpValue] | None) -> JSON:
    if section is None:
        return None
    return {
        camel_case(name.replace("-", "_")): _amqp_value_view(item)
        for name, item in section.items()
        if item.value is not None
    }


def _map_view(pairs: AmqpMap | None) -> JSON:
    if pairs is None:
        return None
    return {_key(value_text(key)): _amqp_value_view(item) for key, item in pairs}


def _amqp_value_view(item: AmqpValue) -> JSON:
    if item.type == "map":
        return _map_view(item.value)
    if item.type in ("list", "array"):
        return [_amqp_value_view(entry) for entry in item.value]
    if item.type == "described":
        descriptor, described = item.value
        return {
            "descriptor": _amqp_value_view(descriptor),
            "described": _amqp_value_view(described),
        }
    return str(item.value) if isinstance(item.value, UUID) else _value_view(item.value)
