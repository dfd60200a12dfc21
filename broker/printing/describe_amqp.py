"""Artemis's text of stored AMQP messages and of the AMQP values in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.model.java_text import (
    IDENTITY,
    date_text,
    double_text,
    float_text,
    table_size_for,
    text_of,
)
from broker.model.properties import Property, PropertyType, last_values
from broker.printing.describe_properties import properties_text_of
from broker.records.amqp_sections import (
    PROPERTIES_FIELDS,
    AmqpMap,
    AmqpSections,
    read_sections,
    sections_of_values,
)
from broker.records.stored_messages import (
    AMQP_ADDRESS_PROPERTY,
    AmqpLargeMessage,
    AmqpMessage,
    AmqpMessageV1,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.properties import TypedProperties
    from broker.records.amqp_values import AmqpValue

# Properties that are plain strings, which the text puts in quotes.
_QUOTED: Final = ("to", "subject", "reply-to", "group-id", "reply-to-group-id")
_TEXT_NAMES: Final = {
    name: "".join(
        part.capitalize() if index else part for index, part in enumerate(name.split("-"))
    )
    for name in PROPERTIES_FIELDS
}
_PRINTABLE: Final = range(32, 127)


def sections_of(message: AmqpMessage | AmqpLargeMessage) -> AmqpSections:
    """Read the sections of a stored message.

    Raises:
        RecordFormatError: the message is not AMQP.
    """
    if isinstance(message, AmqpLargeMessage):
        return sections_of_values(
            message.header,
            message.message_annotations,
            message.properties,
            message.application_properties,
        )
    return read_sections(message.encoded)


def amqp_user_id(sections: AmqpSections) -> str | None:
    """Give the text of the AMQP message-id, which the broker calls the user's message id."""
    properties = sections.properties or {}
    found = properties.get("message-id")
    return None if found is None or found.value is None else value_text(found)


def amqp_text(message: AmqpMessage, sections: AmqpSections) -> str:
    """Give the text of a message that is stored whole."""
    durable = (sections.header or {}).get("durable")
    extra = None if isinstance(message, AmqpMessageV1) else message.extra_properties
    address = message.address
    if isinstance(message, AmqpMessageV1):
        added = address  # That version keeps the address among the extra properties.
    else:
        added = None
        address = address or _address(extra, sections)
    return _text(
        "AMQPStandardMessage",
        message,
        sections,
        durable=bool(durable is not None and durable.value),
        address=address,
        size=len(message.encoded) - sections.delivery_annotations_size,
        extra=_extra_text(extra, added),
    )


def amqp_large_text(message: AmqpLargeMessage, sections: AmqpSections) -> str:
    """Give the text of a message whose bytes are a file; its size reads 0, as in Artemis."""
    return _text(
        "AMQPLargeMessage",
        message,
        sections,
        durable=message.durable,
        address=message.address or _address(message.extra_properties, sections),
        size=0,
        extra=_extra_text(message.extra_properties, message.address),
    )


def _text(
    kind: str,
    message: AmqpMessage | AmqpLargeMessage,
    sections: AmqpSections,
    *,
    durable: bool,
    address: str | None,
    size: int,
    extra: str,
) -> str:
    return (
        f"{kind}( [durable={text_of(durable)}, messageID={message.message_id}, "
        f"address={text_of(address)}, size={size}, scanningStatus=SCANNED, "
        f"applicationProperties={_map_text(sections.application_properties or ())}, "
        f"messageAnnotations={_map_text(sections.message_annotations or ())}, "
        f"properties={_properties_text(sections)}, extraProperties = {extra}]"
    )


def _address(extra: TypedProperties | None, sections: AmqpSections) -> str | None:
    """Give where the message goes when the record does not say: the broker's note, then `to`."""
    kept = last_values(extra or ()).get(AMQP_ADDRESS_PROPERTY)
    if kept is not None:
        return None if kept.value is None else str(kept.value)
    to = (sections.properties or {}).get("to")
    return None if to is None else to.value


def _extra_text(extra: TypedProperties | None, added_address: str | None) -> str:
    """Give the text of the extra properties, with the address that reading the record adds."""
    if extra is None and added_address is None:
        return "null"
    by_name = last_values(extra or ())
    # A map read from bytes has a bucket an entry and doubles when full; a new one starts with 16.
    table_size = table_size_for(len(extra)) if extra else 16
    if added_address is not None:
        kind = PropertyType.STRING
        by_name[AMQP_ADDRESS_PROPERTY] = Property(AMQP_ADDRESS_PROPERTY, kind, added_address)
        while len(by_name) > table_size:
            table_size *= 2
    return properties_text_of(by_name, table_size)


def _properties_text(sections: AmqpSections) -> str:
    if sections.properties is None:
        return "null"
    parts = []
    for name in PROPERTIES_FIELDS:
        found = sections.properties.get(name)
        text = "null" if found is None else value_text(found)
        quote = "'" if name in _QUOTED else ""
        parts.append(f"{_TEXT_NAMES[name]}={quote}{text}{quote}")
    return f"Properties{{{', '.join(parts)}}}"


def _map_text(pairs: AmqpMap) -> str:
    return "{" + ", ".join(f"{value_text(key)}={value_text(item)}" for key, item in pairs) + "}"


def value_text(value: AmqpValue) -> str:
    """Give the text of one AMQP value as Artemis's library prints it."""
    text: Callable[[Any], str] = _VALUE_TEXTS.get(value.type, text_of)
    return text(value.value)


def _binary_text(data: bytes) -> str:
    backslash = ord("\\")
    return "".join(
        chr(byte) if byte in _PRINTABLE and byte != backslash else f"\\x{byte:02x}" for byte in data
    )


def _char_text(code: int) -> str:
    return chr(code) if code <= 0x10FFFF else "?"


def _list_text(items: tuple[AmqpValue, ...]) -> str:
    return "[" + ", ".join(value_text(item) for item in items) + "]"


def _described_text(parts: tuple[AmqpValue, AmqpValue]) -> str:
    descriptor, described = (value_text(part) for part in parts)
    return f"UnknownDescribedType{{descriptor={descriptor}, described={described}}}"


_VALUE_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "binary": _binary_text,
    "char": _char_text,
    "float": float_text,
    "double": double_text,
    "timestamp": lambda value: date_text(value) if value else "Thu Jan 01 00:00:00 UTC 1970",
    "decimal32": bytes.hex,
    "decimal64": bytes.hex,
    "decimal128": bytes.hex,
    "list": _list_text,
    "map": _map_text,
    "array": lambda items: f"[Ljava.lang.Object;@{IDENTITY}",
    "described": _described_text,
}
