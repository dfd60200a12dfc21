"""Commands to the bytes of frames, loose and tight."""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from broker.protocols.openwire.commands import ActiveMQMessage
from broker.protocols.openwire.data_types import FIELDS, LAST_VERSION, NUMBERS
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.fields import Kind
from broker.protocols.openwire.modified_utf8 import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.protocols.openwire.commands import Throwable
    from broker.protocols.openwire.fields import DataType

__all__ = ["LooseWriter", "TightWriter"]

_BYTE: Final = struct.Struct(">b").pack
_SHORT: Final = struct.Struct(">h").pack
_UNSIGNED_SHORT: Final = struct.Struct(">H").pack
_INT: Final = struct.Struct(">i").pack
_UNSIGNED_INT: Final = struct.Struct(">I").pack
_LONG: Final = struct.Struct(">q").pack
# Of a text, in bytes (BaseDataStreamMarshaller).
_TEXT_SIZE_MAX: Final = 2**15 - 1


class LooseWriter:
    """Writes one object, each value by itself.

    Args:
        version: that was agreed on.
        has_stack_traces: exceptions come with them; ours have none.
    """

    __slots__ = ("_has_stack_traces", "_parts", "_version")

    def __init__(self, version: int, *, has_stack_traces: bool) -> None:
        self._version = version
        self._has_stack_traces = has_stack_traces
        self._parts: list[bytes] = []

    def frame(self, command: DataType, *, has_size: bool = True) -> bytes:
        """Give the bytes of a command.

        Raises:
            OpenWireError: a text of it is too long.
        """
        self._parts = []
        self._body(command)
        data = self._number(command) + self._joined()
        return _INT(len(data)) + data if has_size else data

    def _number(self, command: DataType) -> bytes:
        return bytes((NUMBERS[type(command)],))

    def _joined(self) -> bytes:
        return b"".join(self._parts)

    def _body(self, command: DataType) -> None:
        for get, write in _WRITES[self._version][type(command)]:
            write(self, get(command))

    # --- values -------------------------------------------------------------------------------

    def write_boolean(self, value: bool) -> None:
        """Write one."""
        self._parts.append(b"\1" if value else b"\0")

    def write_byte(self, value: int) -> None:
        """Write a signed one."""
        self._parts.append(_BYTE(value))

    def write_int(self, value: int) -> None:
        """Write a signed number of 4 bytes."""
        self._parts.append(_INT(value))

    def write_long(self, value: int) -> None:
        """Write a signed number of 8 bytes."""
        self._parts.append(_LONG(value))

    def write_string(self, value: str | None) -> None:
        """Write a text that may be null."""
        self.write_boolean(value is not None)
        if value is not None:
            self._text(encode(value))

    def _text(self, data: bytes) -> None:
        if len(data) > _TEXT_SIZE_MAX:
            raise OpenWireError(f"a text of {len(data)} bytes is too long for OpenWire")
        self._parts.append(_UNSIGNED_SHORT(len(data)))
        self._parts.append(data)

    def write_bytes(self, value: bytes | None) -> None:
        """Write bytes that may be null."""
        self.write_boolean(value is not None)
        if value is not None:
            self._parts.append(_INT(len(value)))
            self._parts.append(value)

    def write_nested(self, value: DataType | None) -> None:
        """Write an object that may be null."""
        self.write_boolean(value is not None)
        if value is not None:
            self._parts.append(self._number(value))
            self._body(value)

    def write_array(self, values: Sequence[DataType | None] | None) -> None:
        """Write objects behind their number; the list may be null."""
        self.write_boolean(values is not None)
        if values is not None:
            self._parts.append(_SHORT(len(values)))
            for value in values:
                self.write_nested(value)

    def write_throwable(self, value: Throwable | None) -> None:
        """Write what an exception says of itself: no stack trace, and no cause."""
        self.write_boolean(value is not None)
        if value is None:
            return
        self.write_string(value.class_name)
        self.write_string(value.message)
        if self._has_stack_traces:
            self._parts.append(_SHORT(0))
            self.write_throwable(None)


class TightWriter(LooseWriter):
    """Writes one object whose booleans and sizes stand in bits at its beginning."""

    __slots__ = ("_bits",)

    def frame(self, command: DataType, *, has_size: bool = True) -> bytes:
        """Give the bytes of a command, as in loose encoding."""
        self._bits: list[bool] = []
        return super().frame(command, has_size=has_size)

    def _joined(self) -> bytes:
        bits = self._bits
        size = (len(bits) + 7) // 8
        value = 0
        for place, bit in enumerate(bits):
            if bit:
                value |= 1 << place
        if size < 64:
            head = bytes((size,))
        elif size < 0x100:
            head = bytes((0xC0, size))
        else:
            head = b"\x80" + _UNSIGNED_SHORT(size)
        return b"".join((head, value.to_bytes(size, "little"), *self._parts))

    def write_boolean(self, value: bool) -> None:
        """Write one."""
        self._bits.append(value)

    def write_long(self, value: int) -> None:
        """Write a signed number of 0, 2, 4 or 8 bytes."""
        if value == 0:
            self._bits += (False, False)
        elif 0 < value <= 0xFFFF:
            self._bits += (False, True)
            self._parts.append(_UNSIGNED_SHORT(value))
        elif 0 < value <= 0xFFFFFFFF:
            self._bits += (True, False)
            self._parts.append(_UNSIGNED_INT(value))
        else:
            self._bits += (True, True)
            self._parts.append(_LONG(value))

    def write_string(self, value: str | None) -> None:
        """Write a text that may be null."""
        self._bits.append(value is not None)
        if value is not None:
            data = encode(value)
            # Each character is one byte.
            self._bits.append(len(data) == len(value))
            self._text(data)

    def write_nested(self, value: DataType | None) -> None:
        """Write an object that may be null."""
        self._bits.append(value is not None)
        if value is not None:
            self._parts.append(self._number(value))
            if isinstance(value, ActiveMQMessage):
                # It was not marshalled before.
                self._bits.append(False)
            self._body(value)


def _write_of(kind: Kind) -> Callable[[LooseWriter, object], None]:
    name = "write_nested" if kind is Kind.CACHED else f"write_{kind.name.lower()}"

    def write(writer: LooseWriter, value: object) -> None:
        getattr(writer, name)(value)

    return write


_BY_KIND: Final = {kind: _write_of(kind) for kind in Kind}
_WRITES: Final = [
    {
        one: [
            (attrgetter(field.name), _BY_KIND[field.kind])
            for field in fields
            if field.since <= version
        ]
        for one, fields in FIELDS.items()
    }
    for version in range(LAST_VERSION + 1)
]
