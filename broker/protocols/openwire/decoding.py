"""Bytes of one frame to values, loose and tight.

Every length is compared with the bytes that remain before anything is made of it, and objects hold
objects to a small depth only. So a frame takes no more memory or time than its size allows.
"""

from __future__ import annotations

import struct
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from broker.protocols.openwire.commands import ActiveMQMessage, Throwable
from broker.protocols.openwire.data_types import CLASSES, FIELDS, LAST_VERSION
from broker.protocols.openwire.errors import IO_ERROR, OpenWireError
from broker.protocols.openwire.fields import DataType, Kind
from broker.protocols.openwire.modified_utf8 import decode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LooseReader", "TightReader", "broken"]

_SHORT: Final = struct.Struct(">h").unpack_from
_UNSIGNED_SHORT: Final = struct.Struct(">H").unpack_from
_INT: Final = struct.Struct(">i").unpack_from
_UNSIGNED_INT: Final = struct.Struct(">I").unpack_from
_LONG: Final = struct.Struct(">q").unpack_from
# A message in a command's data, with a transaction's connection in it: no more is sent.
_DEPTH_MAX: Final = 8
_CAUSES_MAX: Final = 32
_FRAMES_MAX: Final = 4096


def broken(text: str) -> OpenWireError:
    """Give the error of bytes that cannot be decoded."""
    return OpenWireError(text, IO_ERROR)


class LooseReader:
    """Reads one object, each value by itself.

    Args:
        data: of the frame, without its size.
        version: that was agreed on.
        has_stack_traces: exceptions come with them.
    """

    __slots__ = ("_at", "_data", "_depth", "_end", "_has_stack_traces", "_version")

    def __init__(self, data: bytes, version: int, *, has_stack_traces: bool) -> None:
        self._data = data
        self._at = 0
        self._end = len(data)
        self._version = version
        self._has_stack_traces = has_stack_traces
        self._depth = 0

    def command(self) -> DataType | None:
        """Read what the frame holds; None where it holds nothing.

        Raises:
            OpenWireError: it is not of a known type, or its bytes are not those of one.
        """
        try:
            type_id = self.read_byte() & 0xFF
            found = None if type_id == 0 else self._body(type_id)
        except (struct.error, IndexError):
            raise broken(f"a frame ends at byte {self._end}") from None
        except UnicodeDecodeError as error:
            raise broken(f"a text is not UTF-8: {error.reason}") from None
        if self._at != self._end:
            raise broken(f"{self._end - self._at} bytes behind a command")
        return found

    def _body(self, type_id: int) -> DataType:
        """Read the object of a type; the next bytes are its fields."""
        found = CLASSES.get(type_id)
        if found is None:
            raise broken(f"Unknown data type: {type_id}")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise broken(f"objects within objects, more than {_DEPTH_MAX} deep")
        made = found(*[read(self) for read in _READS[self._version][found]])
        self._depth -= 1
        return made

    def _take(self, size: int) -> bytes:
        at = self._at
        if size < 0 or size > self._end - at:
            raise broken(f"{size} bytes wanted, {self._end - at} left")
        self._at = at + size
        return self._data[at : self._at]

    # --- values -------------------------------------------------------------------------------

    def read_boolean(self) -> bool:
        """Read one."""
        return self.read_byte() != 0

    def read_byte(self) -> int:
        """Read a signed one."""
        value = self._data[self._at]
        self._at += 1
        return value - 0x100 if value >= 0x80 else value

    def read_short(self) -> int:
        """Read a signed number of 2 bytes."""
        value: int = _SHORT(self._data, self._at)[0]
        self._at += 2
        return value

    def read_int(self) -> int:
        """Read a signed number of 4 bytes."""
        value: int = _INT(self._data, self._at)[0]
        self._at += 4
        return value

    def read_long(self) -> int:
        """Read a signed number of 8 bytes."""
        value: int = _LONG(self._data, self._at)[0]
        self._at += 8
        return value

    def read_string(self) -> str | None:
        """Read a text that may be null."""
        return self._text() if self.read_boolean() else None

    def _text(self) -> str:
        size = _UNSIGNED_SHORT(self._data, self._at)[0]
        self._at += 2
        return decode(self._take(size))

    def read_bytes(self) -> bytes | None:
        """Read bytes that may be null."""
        return self._take(self.read_int()) if self.read_boolean() else None

    def read_nested(self, allowed: tuple[type[DataType], ...]) -> DataType | None:
        """Read an object that may be null."""
        if not self.read_boolean():
            return None
        made = self._nested_body(self.read_byte() & 0xFF)
        if not isinstance(made, allowed):
            raise broken(f"a {type(made).__name__} where none may be")
        return made

    def _nested_body(self, type_id: int) -> DataType:
        return self._body(type_id)

    def read_array(self, allowed: tuple[type[DataType], ...]) -> list[DataType | None] | None:
        """Read objects behind their number; the list may be null."""
        if not self.read_boolean():
            return None
        count = self.read_short()
        if count < 0 or count > self._items_left():
            raise broken(f"{count} objects in {self._end - self._at} bytes")
        return [self.read_nested(allowed) for _ in range(count)]

    def _items_left(self) -> int:
        """Give how many objects may follow at most."""
        return self._end - self._at

    def read_throwable(self) -> Throwable | None:
        """Read what an exception says of itself, as text; its cause and frames are left out."""
        first: Throwable | None = None
        for _ in range(_CAUSES_MAX):
            if not self.read_boolean():
                return first
            found = Throwable(self.read_string(), self.read_string())
            first = first or found
            if not self._has_stack_traces:
                return first
            count = self.read_short()
            if not 0 <= count <= _FRAMES_MAX:
                raise broken(f"a stack of {count} frames")
            for _ in range(count):
                for _ in range(3):
                    self.read_string()
                self.read_int()
        raise broken(f"an exception with more than {_CAUSES_MAX} causes")


class TightReader(LooseReader):
    """Reads one object whose booleans and sizes stand in bits at its beginning."""

    __slots__ = ("_bit", "_bits")

    def _start_bits(self) -> None:
        size = self._data[self._at]
        self._at += 1
        if size == 0xC0:
            size = self._data[self._at]
            self._at += 1
        elif size == 0x80:
            size = _UNSIGNED_SHORT(self._data, self._at)[0]
            self._at += 2
        self._bits = self._take(size)
        self._bit = 0

    def command(self) -> DataType | None:
        """Read what the frame holds, as in loose encoding."""
        self._bits, self._bit = b"", -1
        return super().command()

    def _body(self, type_id: int) -> DataType:
        if self._bit < 0:
            self._start_bits()
        return super()._body(type_id)

    def read_boolean(self) -> bool:
        """Read one."""
        at = self._bit
        self._bit = at + 1
        return self._bits[at >> 3] >> (at & 7) & 1 != 0

    def read_long(self) -> int:
        """Read a signed number of 0, 2, 4 or 8 bytes."""
        if self.read_boolean():
            if self.read_boolean():
                return super().read_long()
            value: int = _UNSIGNED_INT(self._data, self._at)[0]
            self._at += 4
            return value
        if self.read_boolean():
            value = _UNSIGNED_SHORT(self._data, self._at)[0]
            self._at += 2
            return value
        return 0

    def read_string(self) -> str | None:
        """Read a text that may be null."""
        if not self.read_boolean():
            return None
        if not self.read_boolean():
            return self._text()
        size = _UNSIGNED_SHORT(self._data, self._at)[0]
        self._at += 2
        return self._take(size).decode("latin-1")

    def _nested_body(self, type_id: int) -> DataType:
        found = CLASSES.get(type_id)
        if found is not None and issubclass(found, ActiveMQMessage) and self.read_boolean():
            # Marshalled before, with a size, a type and bits of its own.
            self._take(4)
            if self.read_byte() & 0xFF != type_id:
                raise broken("a message of two types")
            outer = self._bits, self._bit
            self._bit = -1
            made = self._body(type_id)
            self._bits, self._bit = outer
            return made
        return self._body(type_id)

    def _items_left(self) -> int:
        return 8 * len(self._bits) - self._bit


def _read_of(kind: Kind, nested: tuple[type[DataType], ...]) -> Callable[[LooseReader], Any]:
    if kind in (Kind.NESTED, Kind.CACHED):
        return methodcaller("read_nested", nested)
    if kind is Kind.ARRAY:
        return methodcaller("read_array", nested)
    return methodcaller(f"read_{kind.name.lower()}")


def _absent(kind: Kind) -> Callable[[LooseReader], Any]:
    value = {Kind.BOOLEAN: False, Kind.BYTE: 0, Kind.INT: 0, Kind.LONG: 0}.get(kind)
    return lambda reader: value


_READS: Final = [
    {
        one: [
            _read_of(field.kind, field.nested) if field.since <= version else _absent(field.kind)
            for field in fields
        ]
        for one, fields in FIELDS.items()
    }
    for version in range(LAST_VERSION + 1)
]
