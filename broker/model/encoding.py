"""The primitive encodings of a stored object: integers, booleans, strings, nullable values.

Everything is big-endian, except that a SimpleString's UTF-16 units stand low byte first. A name
in capitals (`SS`, `NSTR`, `ND` …) is that of docs/format/records.md, and is a `Codec`: how to read
and how to write one such value, side by side.

Rules:
- A length is compared with the bytes that remain before anything is allocated or looped over, so
  the work and the memory for a body are bounded by its size, whatever its bytes claim.
- A reader raises only `RecordFormatError`, with the offset inside the body.
- What Artemis writes is given back byte for byte by the writer. What it merely accepts
  (any non-zero boolean) is read and written in Artemis's own form.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import IntEnum

_BYTE: Final = struct.Struct(">b")
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_FLOAT: Final = struct.Struct(">f")
_DOUBLE: Final = struct.Struct(">d")

# The one NaN that Java writes, whatever NaN it read.
_FLOAT_NAN: Final = bytes.fromhex("7fc00000")
_DOUBLE_NAN: Final = bytes.fromhex("7ff8000000000000")

# A `STR` is written in one of three forms, by its number of UTF-16 units.
_UTF_CHARS_MIN: Final = 9
_SIMPLE_CHARS_MIN: Final = 0xFFF
_UTF_SIZE_MAX: Final = 0xFFFF
# Four-byte UTF-8 starts here; Artemis writes two surrogates of three bytes instead.
_UTF8_FOUR_BYTES: Final = 0xF0

# What a record body may come as; a reader works on a copy of its own.
Body: TypeAlias = bytes | bytearray | memoryview

T = TypeVar("T")
E = TypeVar("E", bound="IntEnum")


class RecordFormatError(ValueError):
    """A body is not what its record type says, or a value does not fit its encoding.

    The only error of decoding and encoding. A caller reports the record and goes on with the next
    one, or stops: nothing was changed.
    """


class BodyReader:
    """Reads one record body from front to back. Not for use by two threads at once."""

    __slots__ = ("_body", "_end", "_offset")

    def __init__(self, body: Body) -> None:
        self._body = bytes(body)
        self._offset = 0
        self._end = len(self._body)

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._offset

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self._end - self._offset

    def fail(self, reason: str) -> RecordFormatError:
        """Give the error for what was found at this place, to be raised by the caller."""
        return RecordFormatError(f"{reason} at byte {self._offset} of {self._end}")

    def read_bytes(self, size: int) -> bytes:
        """Give the next `size` bytes."""
        if size < 0 or size > self._end - self._offset:
            raise self.fail(f"{size} bytes wanted, {self.remaining} left")
        start = self._offset
        self._offset = start + size
        return self._body[start : self._offset]

    def read_rest(self) -> bytes:
        """Give all bytes that remain."""
        return self.read_bytes(self.remaining)

    def rewind(self, offset: int) -> None:
        """Go back to where `offset` was `offset`."""
        assert 0 <= offset <= self._offset, "only back, to what was read"
        self._offset = offset

    def read_byte(self) -> int:
        """Give a signed byte, -128 … 127."""
        return int.from_bytes(self.read_bytes(1), "big", signed=True)

    def read_short(self) -> int:
        """Give a signed 2-byte integer."""
        return int.from_bytes(self.read_bytes(2), "big", signed=True)

    def read_int(self) -> int:
        """Give a signed 4-byte integer."""
        return int.from_bytes(self.read_bytes(4), "big", signed=True)

    def read_long(self) -> int:
        """Give a signed 8-byte integer."""
        return int.from_bytes(self.read_bytes(8), "big", signed=True)

    def read_float(self) -> float:
        """Give a 4-byte float."""
        return float(_FLOAT.unpack(self.read_bytes(4))[0])

    def read_double(self) -> float:
        """Give an 8-byte float."""
        return float(_DOUBLE.unpack(self.read_bytes(8))[0])

    def read_boolean(self) -> bool:
        """Give a boolean: any byte but 0 is true."""
        return self.read_bytes(1) != b"\x00"

    def read_char(self) -> str:
        """Give one UTF-16 unit, which may be half of a pair."""
        return chr(int.from_bytes(self.read_bytes(2), "big"))

    def read_count(self, *, item_size_min: int) -> int:
        """Give a number of items that follow, each at least `item_size_min` bytes long."""
        count = self.read_int()
        if count < 0 or count * item_size_min > self.remaining:
            raise self.fail(f"count {count} does not fit the {self.remaining} bytes left")
        return count

    def read_sized_bytes(self) -> bytes:
        """Give the bytes behind an int that says how many."""
        return self.read_bytes(self.read_int())

    def read_simple_string(self) -> str:
        """Give an `SS`: byte length, then UTF-16 with the low byte first."""
        data = self.read_sized_bytes()
        if len(data) % 2:
            raise self.fail(f"a string of {len(data)} bytes ends inside a character")
        return data.decode("utf-16-le", "surrogatepass")

    def read_string(self) -> str:
        """Give a `STR`, in whichever of its three forms its length asks for."""
        char_count = self.read_int()
        if char_count < 0:
            raise self.fail(f"string of {char_count} characters")
        if char_count < _UTF_CHARS_MIN:
            return self.read_bytes(char_count * 2).decode("utf-16-be", "surrogatepass")
        text = self._read_utf() if char_count < _SIMPLE_CHARS_MIN else self.read_simple_string()
        if _utf16_length(text) != char_count:
            raise self.fail(f"string of {char_count} characters holds {_utf16_length(text)}")
        return text

    def _read_utf(self) -> str:
        size = int.from_bytes(self.read_bytes(2), "big")
        data = self.read_bytes(size)
        if data.isascii():
            return data.decode("ascii")
        if max(data) >= _UTF8_FOUR_BYTES:
            raise self.fail("four-byte character in a string of this form")
        try:
            halves = data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.fail(f"string is not UTF-8: {error.reason}") from error
        # Two surrogates of three bytes each become the one character they mean.
        return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def read_nullable(self, read: Callable[[BodyReader], T]) -> T | None:
        """Give None for a flag byte 0, else what `read` finds behind the flag."""
        return read(self) if self.read_boolean() else None


class BodyWriter:
    """Builds one record body. Not for use by two threads at once."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts = bytearray()

    def getvalue(self) -> bytes:
        """Give the body written so far."""
        return bytes(self._parts)

    def _pack(self, layout: struct.Struct, value: float) -> None:
        try:
            self._parts += layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise RecordFormatError(f"{value!r} does not fit {layout.size} bytes") from error

    def write_bytes(self, data: bytes) -> None:
        """Append bytes as they are."""
        self._parts += data

    def write_byte(self, value: int) -> None:
        """Append a signed byte."""
        self._pack(_BYTE, value)

    def write_short(self, value: int) -> None:
        """Append a signed 2-byte integer."""
        self._pack(_SHORT, value)

    def write_int(self, value: int) -> None:
        """Append a signed 4-byte integer."""
        self._pack(_INT, value)

    def write_long(self, value: int) -> None:
        """Append a signed 8-byte integer."""
        self._pack(_LONG, value)

    def write_float(self, value: float) -> None:
        """Append a 4-byte float; every NaN becomes Java's."""
        if math.isnan(value):
            self._parts += _FLOAT_NAN
        else:
            self._pack(_FLOAT, value)

    def write_double(self, value: float) -> None:
        """Append an 8-byte float; every NaN becomes Java's."""
        if math.isnan(value):
            self._parts += _DOUBLE_NAN
        else:
            self._pack(_DOUBLE, value)

    def write_boolean(self, value: bool) -> None:
        """Append a boolean of a record body: 0xFF or 0."""
        self._parts.append(0xFF if value else 0)

    def write_bit(self, value: bool) -> None:
        """Append a boolean of a message's headers and properties: 1 or 0."""
        self._parts.append(1 if value else 0)

    def write_char(self, value: str) -> None:
        """Append one UTF-16 unit."""
        unit = value.encode("utf-16-be", "surrogatepass")
        if len(unit) != 2:
            raise RecordFormatError(f"{value!r} is not one UTF-16 unit")
        self._parts += unit

    def write_sized_bytes(self, data: bytes) -> None:
        """Append an int with the number of bytes, then the bytes."""
        self.write_int(len(data))
        self._parts += data

    def write_simple_string(self, text: str) -> None:
        """Append an `SS`."""
        self.write_sized_bytes(text.encode("utf-16-le", "surrogatepass"))

    def write_string(self, text: str) -> None:
        """Append a `STR`; its length decides the form."""
        units = text.encode("utf-16-be", "surrogatepass")
        char_count = len(units) // 2
        self.write_int(char_count)
        if char_count < _UTF_CHARS_MIN:
            self._parts += units
        elif char_count < _SIMPLE_CHARS_MIN:
            data = _encode_utf(text)
            assert len(data) <= _UTF_SIZE_MAX, "three bytes a unit, under 4,095 units"
            self._parts += len(data).to_bytes(2, "big")
            self._parts += data
        else:
            self.write_simple_string(text)

    def write_nullable(self, write: Callable[[BodyWriter, T], None], value: T | None) -> None:
        """Append the flag byte 0 for None, else 1 and the value."""
        if value is None:
            self._parts.append(0)
        else:
            self._parts.append(1)
            write(self, value)


def _utf16_length(text: str) -> int:
    return len(text) + sum(1 for char in text if char > "\uffff")


def _encode_utf(text: str) -> bytes:
    if text.isascii():
        return text.encode("ascii")
    units = text.encode("utf-16-le", "surrogatepass")
    return b"".join(
        chr(unit).encode("utf-8", "surrogatepass") for (unit,) in struct.iter_unpack("<H", units)
    )


class Codec(NamedTuple, Generic[T]):
    """How one value is read and written."""

    read: Callable[[BodyReader], T]
    write: Callable[[BodyWriter, T], None]


def nullable(codec: Codec[T]) -> Codec[T | None]:
    """Give the codec of the same value behind a flag byte (1 present, 0 null)."""
    return Codec(
        lambda reader: reader.read_nullable(codec.read),
        lambda writer, value: writer.write_nullable(codec.write, value),
    )


def counted(codec: Codec[T], *, item_size_min: int) -> Codec[tuple[T, ...]]:
    """Give the codec of an int count and so many values of at least `item_size_min` bytes each."""

    def read(reader: BodyReader) -> tuple[T, ...]:
        return tuple(
            codec.read(reader) for _ in range(reader.read_count(item_size_min=item_size_min))
        )

    def write(writer: BodyWriter, values: tuple[T, ...]) -> None:
        writer.write_int(len(values))
        for value in values:
            codec.write(writer, value)

    return Codec(read, write)


def enumerated(kind: type[E], number: Codec[int]) -> Codec[E]:
    """Give the codec of an enumeration stored as `number`; an unknown number is an error."""

    def read(reader: BodyReader) -> E:
        value = number.read(reader)
        try:
            return kind(value)
        except ValueError as error:
            raise reader.fail(f"{value} is not a valid {kind.__name__}") from error

    return Codec(read, lambda writer, value: number.write(writer, int(value)))


def _write_nullable_double(writer: BodyWriter, value: float | None) -> None:
    # Alone among the nullable values its flag is a boolean of the body kind, 0xFF.
    writer.write_boolean(value is not None)
    if value is not None:
        writer.write_double(value)


BOOLEAN: Final = Codec(BodyReader.read_boolean, BodyWriter.write_boolean)
BIT: Final = Codec(BodyReader.read_boolean, BodyWriter.write_bit)
BYTE: Final = Codec(BodyReader.read_byte, BodyWriter.write_byte)
SHORT: Final = Codec(BodyReader.read_short, BodyWriter.write_short)
INT: Final = Codec(BodyReader.read_int, BodyWriter.write_int)
LONG: Final = Codec(BodyReader.read_long, BodyWriter.write_long)
FLOAT: Final = Codec(BodyReader.read_float, BodyWriter.write_float)
DOUBLE: Final = Codec(BodyReader.read_double, BodyWriter.write_double)
CHAR: Final = Codec(BodyReader.read_char, BodyWriter.write_char)
BYTES: Final = Codec(BodyReader.read_sized_bytes, BodyWriter.write_sized_bytes)
REST: Final = Codec(BodyReader.read_rest, BodyWriter.write_bytes)
SS: Final = Codec(BodyReader.read_simple_string, BodyWriter.write_simple_string)
STR: Final = Codec(BodyReader.read_string, BodyWriter.write_string)
NSS: Final = nullable(SS)
NSTR: Final = nullable(STR)
NI: Final = nullable(INT)
NL: Final = nullable(LONG)
NB: Final = nullable(BOOLEAN)
ND: Final = Codec(lambda reader: reader.read_nullable(DOUBLE.read), _write_nullable_double)
UUID_BYTES: Final[Codec[bytes]] = Codec(
    lambda reader: reader.read_bytes(16), lambda writer, value: writer.write_bytes(value)
)
