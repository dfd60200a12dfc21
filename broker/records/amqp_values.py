"""AMQP 1.0 values (OASIS AMQP 1.0, part 1) as far as stored messages need them.

Reading is bounded: sizes and counts are compared with the bytes that remain, nesting ends at
`DEPTH_MAX`, and the items of an array that take no bytes at `ITEMS_EMPTY_MAX`.
"""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.model.encoding import BodyReader

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH_MAX: Final = 32
ITEMS_EMPTY_MAX: Final = 4096

_DESCRIBED: Final = 0x00


class AmqpValue(NamedTuple):
    """One value and its AMQP type.

    Attributes:
        type: the name of the AMQP primitive type, or "described".
        value: None, bool, int, float, str, bytes, `uuid.UUID`; a tuple of `AmqpValue` for a list or
            an array; a tuple of pairs for a map; (descriptor, value) for a described one.
    """

    type: str
    value: Any


def _unpacked(layout: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(layout).unpack
    return lambda data: unpack(data)[0]


# Values whose format code alone says them, then those whose code says how many bytes follow.
_CONSTANTS: Final = {
    0x40: AmqpValue("null", None),
    0x41: AmqpValue("boolean", True),
    0x42: AmqpValue("boolean", False),
    0x43: AmqpValue("uint", 0),
    0x44: AmqpValue("ulong", 0),
    0x45: AmqpValue("list", ()),
}
_FIXED: Final[dict[int, tuple[str, Callable[[bytes], Any]]]] = {
    0x50: ("ubyte", _unpacked(">B")),
    0x51: ("byte", _unpacked(">b")),
    0x52: ("uint", _unpacked(">B")),
    0x53: ("ulong", _unpacked(">B")),
    0x54: ("int", _unpacked(">b")),
    0x55: ("long", _unpacked(">b")),
    0x56: ("boolean", lambda data: data != b"\x00"),
    0x60: ("ushort", _unpacked(">H")),
    0x61: ("short", _unpacked(">h")),
    0x70: ("uint", _unpacked(">I")),
    0x71: ("int", _unpacked(">i")),
    0x72: ("float", _unpacked(">f")),
    0x73: ("char", _unpacked(">I")),
    0x74: ("decimal32", bytes),
    0x80: ("ulong", _unpacked(">Q")),
    0x81: ("long", _unpacked(">q")),
    0x82: ("double", _unpacked(">d")),
    0x83: ("timestamp", _unpacked(">q")),
    0x84: ("decimal64", bytes),
    0x94: ("decimal128", bytes),
    0x98: ("uuid", lambda data: uuid.UUID(bytes=data)),
}
_FIXED_SIZES: Final = {0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
VARIABLE_WIDTH: Final = 0xFF
VALUE_WIDTHS: Final = bytes(
    0 if code in _CONSTANTS else _FIXED_SIZES[code >> 4] if code in _FIXED else VARIABLE_WIDTH
    for code in range(256)
)
"""Bytes behind each format code; VARIABLE_WIDTH where the code alone does not say it."""

_VARIABLE: Final = {0x0: "binary", 0x1: "string", 0x3: "symbol"}


def read_value(reader: BodyReader) -> AmqpValue:
    """Read one value.

    Raises:
        RecordFormatError: not a value, cut short, or nested deeper than `DEPTH_MAX`.
    """
    return _read_value(reader, DEPTH_MAX)


def value_size(reader: BodyReader) -> int:
    """Give the size in bytes of the value that comes next, which is left unread."""
    start = reader.offset
    read_value(reader)
    size = reader.offset - start
    reader.rewind(start)
    return size


def _read_value(reader: BodyReader, depth: int) -> AmqpValue:
    code = _read_code(reader)
    if code != _DESCRIBED:
        return _read_coded(reader, code, depth)
    _check_depth(reader, depth)
    descriptor = _read_value(reader, depth - 1)
    return AmqpValue("described", (descriptor, _read_value(reader, depth - 1)))


def _read_code(reader: BodyReader) -> int:
    return reader.read_bytes(1)[0]


def _check_depth(reader: BodyReader, depth: int) -> None:
    if depth == 0:
        raise reader.fail(f"values nested deeper than {DEPTH_MAX}")


def _read_coded(reader: BodyReader, code: int, depth: int) -> AmqpValue:
    if code in _CONSTANTS:
        return _CONSTANTS[code]
    if code in _FIXED:
        name, convert = _FIXED[code]
        return AmqpValue(name, convert(reader.read_bytes(_FIXED_SIZES[code >> 4])))
    family, kind = code >> 4, code & 0x0F
    width = 1 if family in (0xA, 0xC, 0xE) else 4
    if family in (0xA, 0xB) and kind in _VARIABLE:
        return _read_variable(reader, _VARIABLE[kind], width)
    if family in (0xC, 0xD) and kind in (0, 1):
        return _read_compound(reader, width, depth, is_map=kind == 1)
    if family in (0xE, 0xF) and kind == 0:
        return _read_array(reader, width, depth)
    raise reader.fail(f"0x{code:02x} is not an AMQP format code")


def _read_unsigned(reader: BodyReader, width: int) -> int:
    return int.from_bytes(reader.read_bytes(width), "big")


def _read_variable(reader: BodyReader, name: str, width: int) -> AmqpValue:
    data = reader.read_bytes(_read_unsigned(reader, width))
    if name == "binary":
        return AmqpValue(name, data)
    try:
        return AmqpValue(name, data.decode("utf-8" if name == "string" else "ascii"))
    except UnicodeDecodeError as error:
        raise reader.fail(f"{name} is not text: {error.reason}") from error


def _read_compound(reader: BodyReader, width: int, depth: int, *, is_map: bool) -> AmqpValue:
    _check_depth(reader, depth)
    content = BodyReader(reader.read_bytes(_read_unsigned(reader, width)))
    count = _read_unsigned(content, width)
    if count > content.remaining:
        raise content.fail(f"{count} items do not fit")
    items = tuple(_read_value(content, depth - 1) for _ in range(count))
    if not is_map:
        return AmqpValue("list", items)
    if count % 2:
        raise content.fail("map ends with a key")
    return AmqpValue("map", tuple(zip(items[::2], items[1::2], strict=True)))


def _read_array(reader: BodyReader, width: int, depth: int) -> AmqpValue:
    _check_depth(reader, depth)
    content = BodyReader(reader.read_bytes(_read_unsigned(reader, width)))
    count = _read_unsigned(content, width)
    code = _read_code(content)
    descriptor = None
    if code == _DESCRIBED:
        descriptor = _read_value(content, depth - 1)
        code = _read_code(content)
    if count > (ITEMS_EMPTY_MAX if code in _CONSTANTS else content.remaining):
        raise content.fail(f"{count} items do not fit")
    items = tuple(_read_coded(content, code, depth - 1) for _ in range(count))
    if descriptor is not None:
        items = tuple(AmqpValue("described", (descriptor, item)) for item in items)
    return AmqpValue("array", items)


_NUMBERS: Final = {
    "ubyte": b"\x50",
    "byte": b"\x51",
    "ushort": b"\x60",
    "short": b"\x61",
    "uint": b"\x70",
    "int": b"\x71",
    "char": b"\x73",
    "ulong": b"\x80",
    "long": b"\x81",
    "timestamp": b"\x83",
}
_FLOATS: Final = {"float": (b"\x72", ">f"), "double": (b"\x82", ">d")}
_DECIMALS: Final = {"decimal32": b"\x74", "decimal64": b"\x84", "decimal128": b"\x94"}
_SIZED: Final = {"binary": b"\xb0", "string": b"\xb1", "symbol": b"\xb3"}
_SIGNED: Final = frozenset({"byte", "short", "int", "long", "timestamp"})


def encode_value(value: AmqpValue) -> bytes:
    """Give a value in the widest encoding of its type: the same value, maybe other bytes."""
    code, data = _encoded(value)
    return code + data


def _encoded(value: AmqpValue) -> tuple[bytes, bytes]:
    """Give the constructor and what follows it."""
    kind, plain = value.type, value.value
    if kind == "null":
        return b"\x40", b""
    if kind == "boolean":
        return b"\x56", bytes([plain])
    if kind in _NUMBERS:
        code = _NUMBERS[kind]
        size = _FIXED_SIZES[code[0] >> 4]
        return code, int(plain).to_bytes(size, "big", signed=kind in _SIGNED)
    if kind in _FLOATS:
        code, layout = _FLOATS[kind]
        return code, struct.pack(layout, plain)
    if kind in _DECIMALS:
        return _DECIMALS[kind], plain
    if kind == "uuid":
        return b"\x98", plain.bytes
    if kind in _SIZED:
        data = plain if kind == "binary" else plain.encode()
        return _SIZED[kind], _size(data) + data
    if kind == "described":
        descriptor, described = plain
        code, data = _encoded(described)
        return b"\x00" + encode_value(descriptor) + code, data
    if kind == "array":
        items = [_encoded(item) for item in plain]
        code = items[0][0] if items else b"\x40"
        content = len(items).to_bytes(4, "big") + code + b"".join(data for _, data in items)
        return b"\xf0", _size(content) + content
    items_of = plain if kind == "list" else [one for pair in plain for one in pair]
    content = len(items_of).to_bytes(4, "big") + b"".join(map(encode_value, items_of))
    return (b"\xd0" if kind == "list" else b"\xd1"), _size(content) + content


def _size(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big")
