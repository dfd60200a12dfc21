"""The sections of a stored AMQP message.

OASIS AMQP 1.0, part 3: header, delivery annotations, message annotations, properties, application
properties; then the body, which is read by itself, and a footer, which is not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from broker.model.encoding import BodyReader, RecordFormatError
from broker.records.amqp_values import AmqpValue, read_value, value_size

AmqpMap: TypeAlias = tuple[tuple[AmqpValue, AmqpValue], ...]

# A section's descriptor, as a number or as a symbol.
_SECTIONS: Final = {
    0x70: "header",
    0x71: "delivery_annotations",
    0x72: "message_annotations",
    0x73: "properties",
    0x74: "application_properties",
}
_SECTION_SYMBOLS: Final = {
    "amqp:header:list": "header",
    "amqp:delivery-annotations:map": "delivery_annotations",
    "amqp:message-annotations:map": "message_annotations",
    "amqp:properties:list": "properties",
    "amqp:application-properties:map": "application_properties",
}
HEADER_FIELDS: Final = ("durable", "priority", "ttl", "first-acquirer", "delivery-count")
PROPERTIES_FIELDS: Final = (
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
)


@dataclass(frozen=True, slots=True)
class AmqpSections:
    """The sections before the body; None where the message has no such section.

    Attributes:
        header: the header's fields by the standard's names.
        delivery_annotations_size: bytes that section takes in the message, 0 if there is none.
        message_annotations: key and value pairs in the order of the bytes.
        properties: the fields by the standard's names.
        application_properties: key and value pairs in the order of the bytes.
    """

    header: dict[str, AmqpValue] | None = None
    delivery_annotations_size: int = 0
    message_annotations: AmqpMap | None = None
    properties: dict[str, AmqpValue] | None = None
    application_properties: AmqpMap | None = None


def read_sections(encoded: bytes) -> AmqpSections:
    """Read the sections of a whole encoded message up to its body.

    Raises:
        RecordFormatError: the bytes are not AMQP sections.
    """
    reader = BodyReader(encoded)
    found: dict[str, AmqpValue] = {}
    delivery_annotations_size = 0
    while reader.remaining and next_section(reader) is not None:
        start = reader.offset
        name, value = _read_section(reader)
        if name in found:
            raise reader.fail(f"second section {name}")
        found[name] = value
        if name == "delivery_annotations":
            delivery_annotations_size = reader.offset - start
    return _sections(found, delivery_annotations_size)


# Sections of a body, likewise.
_BODIES: Final = {0x75: "data", 0x76: "sequence", 0x77: "value"}
_BODY_SYMBOLS: Final = {
    "amqp:data:binary": "data",
    "amqp:amqp-sequence:list": "sequence",
    "amqp:amqp-value:*": "value",
}


class AmqpBody(NamedTuple):
    """The body of a message.

    Attributes:
        section: data, sequence or value.
        value: of several sections of data or of a sequence, all in one.
        encoded: the sections as they are.
    """

    section: str
    value: AmqpValue
    encoded: bytes


def read_body(encoded: bytes) -> AmqpBody | None:
    """Read the body of a whole encoded message; None where it has none.

    Raises:
        RecordFormatError: the bytes are not AMQP sections.
    """
    reader = BodyReader(encoded)
    while reader.remaining and next_section(reader) is not None:
        read_value(reader)
    start = end = reader.offset
    found: list[AmqpValue] = []
    name = None
    while reader.remaining:
        section = read_value(reader)
        kind = _body_section(section)
        if kind is None or name not in (None, kind):
            # A footer.
            break
        name, end = kind, reader.offset
        found.append(section.value[1])
    if name is None:
        return None
    wanted = {"data": "binary", "sequence": "list"}.get(name)
    if wanted is not None and any(one.type != wanted for one in found):
        raise RecordFormatError(f"a body section {name} is not a {wanted}")
    value = found[0]
    if name == "data" and len(found) > 1:
        value = AmqpValue("binary", b"".join(one.value for one in found))
    elif name == "sequence" and len(found) > 1:
        value = AmqpValue("list", tuple(item for one in found for item in one.value))
    return AmqpBody(name, value, encoded[start:end])


def _body_section(section: AmqpValue) -> str | None:
    if section.type != "described":
        return None
    return _body_named(section.value[0])


def _body_named(descriptor: AmqpValue) -> str | None:
    if descriptor.type == "ulong":
        return _BODIES.get(descriptor.value)
    return _BODY_SYMBOLS.get(descriptor.value) if descriptor.type == "symbol" else None


class BodyStart(NamedTuple):
    """Where a section of a body begins.

    Attributes:
        section: data, sequence or value.
        type: null, binary, string, list, map; empty for any other.
        content_at: bytes from the section's begin to the content.
        content_size: bytes of that, where its type says so: binary, string, list, map; else 0.
    """

    section: str
    type: str
    content_at: int
    content_size: int


# The longest begin of a section that is looked at: a descriptor, a type, a size.
BODY_START_MAX: Final = 64
_TYPES: Final = {
    0x40: "null",
    0xA0: "binary",
    0xB0: "binary",
    0xA1: "string",
    0xB1: "string",
    0x45: "list",
    0xC0: "list",
    0xD0: "list",
    0xC1: "map",
    0xD1: "map",
}


def body_start(encoded: bytes) -> BodyStart | None:
    """Look at the first bytes of a section; None where it is none of a body: a footer.

    Raises:
        RecordFormatError: these bytes do not tell it.
    """
    reader = BodyReader(encoded)
    if reader.read_bytes(1) != b"\x00":
        raise reader.fail("no section begins here")
    section = _body_named(read_value(reader))
    if section is None:
        return None
    code = reader.read_bytes(1)[0]
    kind = _TYPES.get(code, "")
    size = 0
    # Constructors of these two ranges are followed by a size, of one byte or of four.
    if code >= 0xA0:
        size = int.from_bytes(reader.read_bytes(4 if code & 0x10 else 1), "big")
    return BodyStart(section, kind, reader.offset, size)


class Head(NamedTuple):
    """The sections before a body, as they are encoded.

    Attributes:
        sections: by name.
        positions: where each begins.
        size: bytes of all of them.
    """

    sections: dict[str, bytes]
    positions: dict[str, int]
    size: int


def read_head(encoded: bytes) -> Head:
    """Cut the sections before the body out of the first bytes of a message.

    Raises:
        RecordFormatError: the bytes are not AMQP sections, or end among these.
    """
    reader = BodyReader(encoded)
    sections: dict[str, bytes] = {}
    positions: dict[str, int] = {}
    while reader.remaining and (name := next_section(reader)) is not None:
        if name in sections:
            raise reader.fail(f"second section {name}")
        positions[name] = reader.offset
        sections[name] = reader.read_bytes(value_size(reader))
    return Head(sections, positions, reader.offset)


def sections_of_values(
    header: bytes, message_annotations: bytes, properties: bytes, application_properties: bytes
) -> AmqpSections:
    """Read the sections of a large message, each kept as a value (AMQP null when absent).

    Raises:
        RecordFormatError: one of them is not what its name says.
    """
    found: dict[str, AmqpValue] = {}
    for encoded in (header, message_annotations, properties, application_properties):
        reader = BodyReader(encoded)
        if next_section(reader) is None:
            if read_value(reader).value is not None:
                raise reader.fail("saved section is neither a section nor null")
            continue
        name, value = _read_section(reader)
        found[name] = value
    return _sections(found, 0)


def next_section(reader: BodyReader) -> str | None:
    """Give the name of the section that comes next, or None when it is the body or no section."""
    start = reader.offset
    is_described = reader.read_bytes(1) == b"\x00"
    descriptor = read_value(reader) if is_described else AmqpValue("null", None)
    reader.rewind(start)
    if descriptor.type == "ulong":
        return _SECTIONS.get(descriptor.value)
    if descriptor.type == "symbol":
        return _SECTION_SYMBOLS.get(descriptor.value)
    return None


def _read_section(reader: BodyReader) -> tuple[str, AmqpValue]:
    name = next_section(reader)
    assert name is not None, "the caller looked"
    described = read_value(reader)
    value: AmqpValue = described.value[1]
    wanted = "list" if name in ("header", "properties") else "map"
    if value.type not in (wanted, "null"):
        raise reader.fail(f"section {name} is a {value.type}")
    return name, value


def _sections(found: dict[str, AmqpValue], delivery_annotations_size: int) -> AmqpSections:
    return AmqpSections(
        header=_named(found.get("header"), HEADER_FIELDS),
        delivery_annotations_size=delivery_annotations_size,
        message_annotations=_pairs(found.get("message_annotations")),
        properties=_named(found.get("properties"), PROPERTIES_FIELDS),
        application_properties=_pairs(found.get("application_properties")),
    )


def _named(value: AmqpValue | None, names: tuple[str, ...]) -> dict[str, AmqpValue] | None:
    if value is None or value.value is None:
        return None
    if len(value.value) > len(names):
        raise RecordFormatError(f"section of {len(value.value)} fields, {len(names)} are known")
    return dict(zip(names, value.value, strict=False))


def _pairs(value: AmqpValue | None) -> AmqpMap | None:
    return None if value is None else value.value
