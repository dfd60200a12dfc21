"""Typed values of OpenWire (MarshallingSupport): properties, bodies of maps and streams.

Maps and lists within them are what no other protocol has: they become texts as Java writes them,
`{a=1}` and `[1, 2]`, as in Artemis.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from broker.model.encoding import BodyReader
from broker.model.java_text import double_text, float_text
from broker.model.properties import Property, PropertyType, PropertyValue
from broker.protocols.openwire.modified_utf8 import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MAP_SIZE_MAX", "read_map", "read_values", "write_map", "write_values"]

MAP_SIZE_MAX: Final = 1_000_000
# Texts from so many characters on are written with a size of 4 bytes.
_BIG_TEXT_MIN: Final = 8191
# A map in a list in a map …
_DEPTH_MAX: Final = 16
# A name and a null: 2 bytes of length, and the tag.
_ENTRY_SIZE_MIN: Final = 3
_MAP: Final = 11
_LIST: Final = 12
_BIG_STRING: Final = 13
_UNSIGNED_SHORT: Final = struct.Struct(">H").pack
_INT: Final = struct.Struct(">i").pack


def _read_utf(reader: BodyReader) -> str:
    return _decoded(reader, reader.read_short() & 0xFFFF)


def _decoded(reader: BodyReader, size: int) -> str:
    try:
        return decode(reader.read_bytes(size))
    except UnicodeDecodeError as error:
        raise reader.fail(f"a text is not UTF-8: {error.reason}") from None


_READS: Final[dict[int, tuple[PropertyType, Callable[[BodyReader], PropertyValue]]]] = {
    0: (PropertyType.NULL, lambda reader: None),
    1: (PropertyType.BOOLEAN, BodyReader.read_boolean),
    2: (PropertyType.BYTE, BodyReader.read_byte),
    3: (PropertyType.CHAR, BodyReader.read_char),
    4: (PropertyType.SHORT, BodyReader.read_short),
    5: (PropertyType.INT, BodyReader.read_int),
    6: (PropertyType.LONG, BodyReader.read_long),
    7: (PropertyType.DOUBLE, BodyReader.read_double),
    8: (PropertyType.FLOAT, BodyReader.read_float),
    9: (PropertyType.STRING, _read_utf),
    10: (PropertyType.BYTES, lambda reader: reader.read_bytes(reader.read_int())),
    _BIG_STRING: (PropertyType.STRING, lambda reader: _decoded(reader, reader.read_int())),
}


def read_map(data: bytes, *, size_max: int = MAP_SIZE_MAX) -> list[Property]:
    """Give the entries of a map; none for one that is null, or for no bytes.

    Raises:
        RecordFormatError: it is none, or has more than `size_max` entries.
    """
    reader = BodyReader(data)
    if not reader.remaining:
        return []
    count = _count(reader, size_max)
    found = []
    for _ in range(count):
        name = _read_utf(reader)
        found.append(_read_value(reader, name, 0))
    if reader.remaining:
        raise reader.fail(f"{reader.remaining} bytes behind a map")
    return found


def _count(reader: BodyReader, size_max: int) -> int:
    count = reader.read_int()
    if count > size_max or count * _ENTRY_SIZE_MIN > reader.remaining:
        raise reader.fail(f"a map of {count} entries")
    return count


def read_values(data: bytes) -> list[Property]:
    """Give the values of a stream, without names.

    Raises:
        RecordFormatError: it is none.
    """
    reader = BodyReader(data)
    found = []
    while reader.remaining:
        found.append(_read_value(reader, "", 0))
    return found


def _read_value(reader: BodyReader, name: str, depth: int) -> Property:
    tag = reader.read_byte()
    known = _READS.get(tag)
    if known is not None:
        kind, read = known
        return Property(name, kind, read(reader))
    if tag not in (_MAP, _LIST) or depth >= _DEPTH_MAX:
        raise reader.fail(f"a value with the unknown tag {tag}")
    texts = []
    if tag == _MAP:
        for _ in range(_count(reader, MAP_SIZE_MAX)):
            key = _read_utf(reader)
            texts.append(f"{key}={_text(_read_value(reader, '', depth + 1))}")
        return Property(name, PropertyType.STRING, f"{{{', '.join(texts)}}}")
    count = reader.read_count(item_size_min=1)
    texts = [_text(_read_value(reader, "", depth + 1)) for _ in range(count)]
    return Property(name, PropertyType.STRING, f"[{', '.join(texts)}]")


def _text(item: Property) -> str:
    """Give a value as Java's String.valueOf() does."""
    value = item.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value) if item.type is PropertyType.FLOAT else double_text(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


# --- writing ----------------------------------------------------------------------------------


def _packed(form: str) -> Callable[[Any], bytes]:
    return struct.Struct(form).pack


_WRITES: Final[dict[PropertyType, tuple[bytes, Callable[[Any], bytes]]]] = {
    PropertyType.NULL: (b"\0", lambda value: b""),
    PropertyType.BOOLEAN: (b"\1", lambda value: b"\1" if value else b"\0"),
    PropertyType.BYTE: (b"\2", _packed(">b")),
    PropertyType.CHAR: (b"\3", lambda value: _UNSIGNED_SHORT(ord(value))),
    PropertyType.SHORT: (b"\4", _packed(">h")),
    PropertyType.INT: (b"\5", _packed(">i")),
    PropertyType.LONG: (b"\6", _packed(">q")),
    PropertyType.DOUBLE: (b"\7", _packed(">d")),
    PropertyType.FLOAT: (b"\x08", _packed(">f")),
    PropertyType.BYTES: (b"\x0a", lambda value: _INT(len(value)) + value),
}


def _written(item: Property) -> bytes:
    if item.value is None:
        return b"\0"
    if item.type is PropertyType.STRING:
        text = str(item.value)
        data = encode(text)
        if len(text) >= _BIG_TEXT_MIN:
            return b"\x0d%b%b" % (_INT(len(data)), data)
        return b"\x09%b%b" % (_UNSIGNED_SHORT(len(data)), data)
    tag, pack = _WRITES[item.type]
    return tag + pack(item.value)


def write_map(items: Iterable[Property]) -> bytes:
    """Give the bytes of a map; a name that is longer than 65,535 bytes is left out."""
    parts = [b""]
    for item in items:
        name = encode(item.name)
        if len(name) <= 0xFFFF:
            parts.append(b"%b%b%b" % (_UNSIGNED_SHORT(len(name)), name, _written(item)))
    parts[0] = _INT(len(parts) - 1)
    return b"".join(parts)


def write_values(items: Iterable[Property]) -> bytes:
    """Give the bytes of a stream; names of properties do not matter."""
    return b"".join(map(_written, items))
