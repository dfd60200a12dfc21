"""Walking over a message's bytes: texts that come again, and where its properties end."""

from __future__ import annotations

import struct
from typing import Final

from broker.storage.encoding import RecordFormatError
from broker.storage.properties import PropertyType

_INT: Final = struct.Struct(">i")

# Addresses and property names come again and again: one str each. Emptied when full, so that a
# sender of ever new names costs no memory for good.
_TEXTS_MAX: Final = 4096
_TEXT_SIZE_MAX: Final = 512
_texts: Final[dict[bytes, str]] = {}
_encoded_names: Final[dict[str, bytes]] = {}

# Sizes of property values by tag; 0 is a value that carries its own length, -1 is no tag.
_VALUE_SIZES: Final = (0, -1, 1, 1, 0, 2, 4, 8, 4, 8, 0, 2)
_SIZED_TAGS: Final = (PropertyType.BYTES, PropertyType.STRING)


def text_at(data: bytes, at: int, size: int) -> str:
    """Give the text of a SimpleString whose `size` bytes stand at `at`."""
    if size < 0 or size % 2 or size > len(data) - at:
        raise RecordFormatError(f"text of {size} bytes at byte {at} of {len(data)}")
    units = data[at : at + size]
    text = _texts.get(units)
    if text is None:
        text = units.decode("utf-16-le", "surrogatepass")
        if size <= _TEXT_SIZE_MAX:
            if len(_texts) >= _TEXTS_MAX:
                _texts.clear()
            _texts[units] = text
    return text


def encoded_name(name: str) -> bytes:
    """Give the bytes that stand in a message for this name."""
    units = _encoded_names.get(name)
    if units is None:
        units = name.encode("utf-16-le", "surrogatepass")
        if len(_encoded_names) >= _TEXTS_MAX:
            _encoded_names.clear()
        _encoded_names[name] = units
    return units


def properties_end(data: bytes, at: int) -> int:
    """Walk over `count, count × (name, tag, value)` at `at`; give where they end.

    Raises:
        RecordFormatError: a length or tag that cannot be.
        struct.error, IndexError: the bytes end too soon.
    """
    count = _INT.unpack_from(data, at)[0]
    at += 4
    # A name's length and a tag, each property has 5 bytes at least.
    if count < 0 or count * 5 > len(data) - at:
        raise RecordFormatError(f"{count} properties in {len(data) - at} bytes")
    for _ in range(count):
        size = _INT.unpack_from(data, at)[0]
        if size < 0 or size % 2 or size > len(data) - at - 4:
            raise RecordFormatError(f"property name of {size} bytes at byte {at}")
        at += 4 + size
        tag = data[at]
        at += 1
        if tag >= len(_VALUE_SIZES) or _VALUE_SIZES[tag] < 0:
            raise RecordFormatError(f"property with the unknown tag {tag} at byte {at - 1}")
        if tag in _SIZED_TAGS:
            size = _INT.unpack_from(data, at)[0]
            if size < 0 or (size % 2 and tag == PropertyType.STRING) or size > len(data) - at - 4:
                raise RecordFormatError(f"property value of {size} bytes at byte {at}")
            at += 4 + size
        else:
            at += _VALUE_SIZES[tag]
    if at > len(data):
        raise RecordFormatError(f"properties up to byte {at} of {len(data)}")
    return at
