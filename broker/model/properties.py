"""TypedProperties: the named, typed values of a message.

Kept as the sequence that was stored, so that encoding gives the same bytes back. Artemis
reads them into a hash map; text that shows its order sorts by `broker.model.java_text`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from broker.model.encoding import (
    BIT,
    BYTE,
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    SS,
    BodyReader,
    BodyWriter,
    Codec,
)

PropertyValue: TypeAlias = bool | int | float | str | bytes | None

# An empty key and a null value: 4 bytes of length and the tag.
_PROPERTY_SIZE_MIN: Final = 5


class PropertyType(IntEnum):
    """The tag of a property value. Java reads 8 and 9 as Float and Double."""

    NULL = 0
    BOOLEAN = 2
    BYTE = 3
    BYTES = 4
    SHORT = 5
    INT = 6
    LONG = 7
    FLOAT = 8
    DOUBLE = 9
    STRING = 10
    CHAR = 11


class Property(NamedTuple):
    """One property: its name, how it is stored, and its value as Python has it."""

    name: str
    type: PropertyType
    value: PropertyValue


TypedProperties: TypeAlias = tuple[Property, ...]

# As plain numbers: read_value() compares each with the tag of a value.
_BOOLEAN_TAG: Final = int(PropertyType.BOOLEAN)
_BYTE_TAG: Final = int(PropertyType.BYTE)
_BYTES_TAG: Final = int(PropertyType.BYTES)
_INT_TAG: Final = int(PropertyType.INT)
_STRING_TAG: Final = int(PropertyType.STRING)

_NULL: Final[Codec[None]] = Codec(lambda reader: None, lambda writer, value: None)

_CODECS: Final[dict[PropertyType, Codec[Any]]] = {
    PropertyType.NULL: _NULL,
    PropertyType.BOOLEAN: BIT,
    PropertyType.BYTE: BYTE,
    PropertyType.BYTES: BYTES,
    PropertyType.SHORT: SHORT,
    PropertyType.INT: INT,
    PropertyType.LONG: LONG,
    PropertyType.FLOAT: FLOAT,
    PropertyType.DOUBLE: DOUBLE,
    PropertyType.STRING: SS,
    PropertyType.CHAR: CHAR,
}


def _read(reader: BodyReader) -> TypedProperties:
    if not reader.read_boolean():
        return ()
    count = reader.read_count(item_size_min=_PROPERTY_SIZE_MIN)
    return tuple(_read_property(reader) for _ in range(count))


def _read_property(reader: BodyReader) -> Property:
    name = reader.read_simple_string()
    tag = reader.read_byte()
    try:
        kind = PropertyType(tag)
    except ValueError as error:
        raise reader.fail(f"property {name!r} has the unknown tag {tag}") from error
    return Property(name, kind, _CODECS[kind].read(reader))


def read_value(data: bytes, at: int) -> PropertyValue:
    """Give the value whose tag stands at `at`.

    Raises:
        RecordFormatError: these bytes are none.
    """
    tag = data[at]
    if tag == _BYTE_TAG:
        # The routing type, of nearly every message.
        value = data[at + 1]
        return value - 0x100 if value >= 0x80 else value
    if tag == _STRING_TAG:
        # Most others. Its size was seen to fit when the message came.
        size = int.from_bytes(data[at + 1 : at + 5], "big")
        return data[at + 5 : at + 5 + size].decode("utf-16-le", "surrogatepass")
    if tag == _INT_TAG and at + 5 <= len(data):
        return int.from_bytes(data[at + 1 : at + 5], "big", signed=True)
    if tag == _BOOLEAN_TAG and at + 1 < len(data):
        return data[at + 1] != 0
    if tag == _BYTES_TAG:
        # Ids of duplicates, mostly: without a copy of all that follows.
        first = at + 5
        size = int.from_bytes(data[at + 1 : first], "big", signed=True)
        if 0 <= size <= len(data) - first:
            return bytes(data[first : first + size])
    value_of: PropertyValue = _CODECS[PropertyType(tag)].read(BodyReader(data[at + 1 :]))
    return value_of


def _write(writer: BodyWriter, properties: TypedProperties) -> None:
    if not properties:
        writer.write_byte(0)
        return
    writer.write_byte(1)
    writer.write_int(len(properties))
    for name, kind, value in properties:
        writer.write_simple_string(name)
        writer.write_byte(kind)
        _CODECS[kind].write(writer, value)


TYPED_PROPERTIES: Final = Codec(_read, _write)


def last_values(properties: TypedProperties) -> dict[str, Property]:
    """Give the properties by name; of two of the same name the later one counts, in its place."""
    return {item.name: item for item in properties}
