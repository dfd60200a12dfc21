"""The bodies of messages by type: text, maps, streams, as Artemis's JMS client makes them.

Bytes are the body as it is. An object is Java's serialization and stays bytes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import (
    BIT,
    BYTE,
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NSS,
    NSTR,
    SHORT,
    Body,
    BodyReader,
    BodyWriter,
    Codec,
)
from broker.model.properties import TYPED_PROPERTIES, Property, PropertyType, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1

_STREAM_CODECS: Final[dict[PropertyType, Codec[Any]]] = {
    PropertyType.BOOLEAN: BIT,
    PropertyType.BYTE: BYTE,
    PropertyType.BYTES: BYTES,
    PropertyType.SHORT: SHORT,
    PropertyType.INT: INT,
    PropertyType.LONG: LONG,
    PropertyType.FLOAT: FLOAT,
    PropertyType.DOUBLE: DOUBLE,
    # Unlike in properties, text here may be null, and stands in the other form.
    PropertyType.STRING: NSTR,
    PropertyType.CHAR: CHAR,
}


def property_of(name: str, value: PropertyValue | Property) -> Property:
    """Give a property of the type that a Python value has by itself.

    An int is an INT where it fits one and a LONG where not; a float is a DOUBLE. A `Property`
    brings its own type.

    Raises:
        TypeError: a value of any other class.

    >>> property_of("n", 2**31)
    Property(name='n', type=<PropertyType.LONG: 7>, value=2147483648)
    """
    if isinstance(value, Property):
        return value._replace(name=name)
    return Property(name, type_of(value), value)


def type_of(value: PropertyValue) -> PropertyType:
    """Give the type that a Python value has by itself, as `property_of` says."""
    if value is None:
        return PropertyType.NULL
    if isinstance(value, bool):
        return PropertyType.BOOLEAN
    if isinstance(value, int):
        return PropertyType.INT if _INT_MIN <= value <= _INT_MAX else PropertyType.LONG
    if isinstance(value, float):
        return PropertyType.DOUBLE
    if isinstance(value, str):
        return PropertyType.STRING
    if isinstance(value, bytes):
        return PropertyType.BYTES
    raise TypeError(f"{type(value).__name__} is not a valid type of a property")


def encode_text(text: str | None) -> bytes:
    """Give the body of a text message.

    >>> decode_text(encode_text("hi"))
    'hi'
    """
    writer = BodyWriter()
    NSS.write(writer, text)
    return writer.getvalue()


def decode_text(body: Body) -> str | None:
    """Give the text of a text message.

    Raises:
        RecordFormatError: no such body.
    """
    reader = BodyReader(body)
    return NSS.read(reader) if reader.remaining else None


def encode_map(values: Mapping[str, PropertyValue | Property]) -> bytes:
    """Give the body of a map message."""
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, tuple(property_of(name, values[name]) for name in values))
    return writer.getvalue()


def decode_map(body: Body) -> dict[str, PropertyValue]:
    """Give the values of a map message.

    Raises:
        RecordFormatError: no such body.
    """
    reader = BodyReader(body)
    found = TYPED_PROPERTIES.read(reader) if reader.remaining else ()
    return {item.name: item.value for item in found}


def encode_stream(values: Iterable[PropertyValue | Property]) -> bytes:
    """Give the body of a stream message; the names of properties do not matter.

    >>> decode_stream(encode_stream([1, "two", None]))
    [1, 'two', None]
    """
    writer = BodyWriter()
    for value in values:
        item = property_of("", value)
        # As Artemis writes null: a text that is none.
        kind = PropertyType.STRING if item.type is PropertyType.NULL else item.type
        writer.write_byte(kind)
        _STREAM_CODECS[kind].write(writer, item.value)
    return writer.getvalue()


def decode_stream(body: Body) -> list[PropertyValue]:
    """Give the values of a stream message.

    Raises:
        RecordFormatError: no such body.
    """
    return [item.value for item in stream_items(body)]


def stream_items(body: Body) -> list[Property]:
    """Give the values of a stream message with their types, as properties without a name.

    Raises:
        RecordFormatError: no such body.
    """
    reader = BodyReader(body)
    items: list[Property] = []
    while reader.remaining:
        tag = reader.read_byte()
        kind = next((one for one in _STREAM_CODECS if one == tag), None)
        if kind is None:
            raise reader.fail(f"stream value with the unknown tag {tag}")
        items.append(Property("", kind, _STREAM_CODECS[kind].read(reader)))
    return items
