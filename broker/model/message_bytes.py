"""Walking over a message's bytes: integers, texts that come again, properties.

One property is put in, or taken out, between the bytes of the others, which are not decoded.

Compiled these are loops over bytes in C, which is why nothing here is unpacked by `struct`.
Integers are big-endian and signed. What ends too soon is an IndexError.
"""

from __future__ import annotations

from typing import Final

import broker.model.packed as packed
from broker.model.encoding import RecordFormatError

# Addresses and property names come again and again: one str each. Emptied when full, so that a
# sender of ever new names costs no memory for good.
_TEXTS_MAX: Final = 4096
_TEXT_SIZE_MAX: Final = 512
_texts: Final[dict[bytes, str]] = {}
_encoded_names: Final[dict[str, bytes]] = {}
# The one before: mostly it is the same address again.
_last_units = b""
_last_text = ""

# What names of the broker's own properties begin with, and the one that nearly every message has.
_OWN_PREFIX: Final = "_AMQ_".encode("utf-16-le")
_ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE".encode("utf-16-le")
_BYTE_TAG: Final = 3

NO_ROUTING: Final = -1
"""Of own_routing(): no property is of the broker."""
OTHERS: Final = -2
"""Of own_routing(): it has to be looked for."""
_NONE: Final = NO_ROUTING
_LOOK: Final = OTHERS

# Named, and typed where it is compiled: as literals they would be Python's integers.
_INT_RANGE: Final = 0x1_0000_0000
_INT_SIGN: Final = 0x8000_0000

# Sizes of property values by tag (PropertyType).
_NO_TAG: Final = 255
_BYTES_SIZED: Final = 254  # The value has its size before it.
_TEXT_SIZED: Final = 253  # Likewise, of two bytes a character.
_VALUE_SIZES: Final = bytes((0, _NO_TAG, 1, 1, _BYTES_SIZED, 2, 4, 8, 4, 8, _TEXT_SIZED, 2))


def byte_at(data: bytes, at: int) -> int:
    """Give the integer of one byte."""
    value = data[at]
    return value - 0x100 if value >= 0x80 else value


def int_at(data: bytes, at: int) -> int:
    """Give the integer of 4 bytes."""
    value = data[at]
    value = value << 8 | data[at + 1]
    value = value << 8 | data[at + 2]
    value = value << 8 | data[at + 3]
    return value - _INT_RANGE if value >= _INT_SIGN else value


def long_at(data: bytes, at: int) -> int:
    """Give the integer of 8 bytes."""
    high = int_at(data, at)
    low = int_at(data, at + 4)
    if low < 0:
        low += _INT_RANGE
    return high * _INT_RANGE + low


def text_at(data: bytes, at: int, size: int) -> str:
    """Give the text of a SimpleString whose `size` bytes stand at `at`."""
    if size < 0 or size % 2 or size > len(data) - at:
        raise RecordFormatError(f"text of {size} bytes at byte {at} of {len(data)}")
    global _last_text, _last_units
    if size == len(_last_units) and packed.stands_at(data, at, _last_units):
        return _last_text
    units = data[at : at + size]
    text = _texts.get(units)
    if text is None:
        text = units.decode("utf-16-le", "surrogatepass")
        if size <= _TEXT_SIZE_MAX:
            if len(_texts) >= _TEXTS_MAX:
                _texts.clear()
            _texts[units] = text
    if size <= _TEXT_SIZE_MAX:
        _last_units = units
        _last_text = text
    return text


def encoded_name(name: str) -> bytes:
    """Give the bytes that stand in a message for this name."""
    units = _encoded_names.get(name)
    if units is None:
        units = name.encode("utf-16-le", "surrogatepass")
        if len(units) <= _TEXT_SIZE_MAX:
            if len(_encoded_names) >= _TEXTS_MAX:
                _encoded_names.clear()
            _encoded_names[name] = units
    return units


def properties_end(data: bytes, at: int) -> int:
    """Walk over `count, count × (name, tag, value)` at `at`; give where they end.

    Raises:
        RecordFormatError: a length or tag that cannot be.
        IndexError: the bytes end too soon.
    """
    count = int_at(data, at)
    at += 4
    # A name's length and a tag, each property has 5 bytes at least.
    if count < 0 or count * 5 > len(data) - at:
        raise RecordFormatError(f"{count} properties in {len(data) - at} bytes")
    for _ in range(count):
        size = int_at(data, at)
        if size < 0 or size % 2 or size > len(data) - at - 4:
            raise RecordFormatError(f"property name of {size} bytes at byte {at}")
        at += 4 + size
        tag = data[at]
        at += 1
        width = _VALUE_SIZES[tag] if tag < len(_VALUE_SIZES) else _NO_TAG
        if width < _TEXT_SIZED:
            at += width
            continue
        if width == _NO_TAG:
            raise RecordFormatError(f"property with the unknown tag {tag} at byte {at - 1}")
        size = int_at(data, at)
        if size < 0 or (size % 2 and width == _TEXT_SIZED) or size > len(data) - at - 4:
            raise RecordFormatError(f"property value of {size} bytes at byte {at}")
        at += 4 + size
    if at > len(data):
        raise RecordFormatError(f"properties up to byte {at} of {len(data)}")
    return at


def property_at(data: bytes, at: int, units: bytes) -> int:
    """Give where the tag of the last property of a name stands, -1 where there is none.

    Args:
        data: a message's bytes.
        at: where its properties are counted; properties_end() has been there.
        units: the name, by encoded_name().
    """
    found = -1
    count = int_at(data, at)
    at += 4
    for _ in range(count):
        size = int_at(data, at)
        at += 4
        is_it = size == len(units) and data.startswith(units, at)
        at += size
        if is_it:
            found = at
        width = _VALUE_SIZES[data[at]]
        at += 1
        at += width if width < _TEXT_SIZED else 4 + int_at(data, at)
    return found


def names_with(data: bytes, at: int, units: bytes) -> list[str]:
    """Give the names of properties that begin with these bytes, in order.

    Args:
        data: a message's bytes.
        at: where its properties are counted; properties_end() has been there.
        units: how they begin, by encoded_name().
    """
    found: list[str] = []
    count = int_at(data, at)
    at += 4
    for _ in range(count):
        size = int_at(data, at)
        at += 4
        if size >= len(units) and data.startswith(units, at):
            found.append(text_at(data, at, size))
        at += size
        width = _VALUE_SIZES[data[at]]
        at += 1
        at += width if width < _TEXT_SIZED else 4 + int_at(data, at)
    return found


def tags_of(data: bytes, at: int) -> list[tuple[str, int]]:
    """Give the name of each property, in order, and where its tag stands.

    Args:
        data: a message's bytes.
        at: where its properties are counted; properties_end() has been there.
    """
    found: list[tuple[str, int]] = []
    count = int_at(data, at)
    at += 4
    for _ in range(count):
        size = int_at(data, at)
        at += 4
        name = text_at(data, at, size)
        at += size
        found.append((name, at))
        width = _VALUE_SIZES[data[at]]
        at += 1
        at += width if width < _TEXT_SIZED else 4 + int_at(data, at)
    return found


def only_property(data: bytes, at: int, units: bytes) -> tuple[int, int]:
    """Give where the one property of a name begins and ends.

    Args:
        data: a message's bytes.
        at: where its properties are counted; properties_end() has been there.
        units: the name, by encoded_name().

    Returns:
        (0, 0) where there is none, (-1, -1) where there are several.
    """
    found = (0, 0)
    count = int_at(data, at)
    at += 4
    for _ in range(count):
        start = at
        size = int_at(data, at)
        at += 4
        is_it = size == len(units) and data.startswith(units, at)
        at += size
        width = _VALUE_SIZES[data[at]]
        at += 1
        at += width if width < _TEXT_SIZED else 4 + int_at(data, at)
        if is_it:
            if found[1]:
                return (-1, -1)
            found = (start, at)
    return found


def without_property(data: bytes, at: int, units: bytes) -> bytes | None:
    """Give a message's bytes without a property; the same object where none has the name.

    Args:
        data: a message's bytes.
        at: where they say whether there are properties.
        units: the name, by encoded_name().

    Returns:
        None where several have the name.
    """
    if not data[at]:
        return data
    start, end = only_property(data, at + 1, units)
    if end <= 0:
        return data if end == 0 else None
    count = int_at(data, at + 1) - 1
    if not count:
        return data[:at] + b"\0"
    return b"".join((data[: at + 1], count.to_bytes(4, "big"), data[at + 5 : start], data[end:]))


def own_routing(data: bytes, at: int) -> int:
    """Give the routing type, 0 or 1, where it is the only property that is the broker's own.

    Args:
        data: a message's bytes.
        at: where its properties are counted; properties_end() has been there.

    Returns:
        NO_ROUTING where none is the broker's, OTHERS where another one is, or the routing type is
        none that there is.
    """
    found = _NONE
    count = int_at(data, at)
    at += 4
    for _ in range(count):
        size = int_at(data, at)
        at += 4
        if size >= len(_OWN_PREFIX) and packed.stands_at(data, at, _OWN_PREFIX):
            if size != len(_ROUTING_TYPE) or not packed.stands_at(data, at, _ROUTING_TYPE):
                return _LOOK
            if data[at + size] != _BYTE_TAG or data[at + size + 1] > 1:
                return _LOOK
            found = data[at + size + 1]
        at += size
        width = _VALUE_SIZES[data[at]]
        at += 1
        at += width if width < _TEXT_SIZED else 4 + int_at(data, at)
    return found
