"""Commands to the bytes of frames, loose and tight."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from broker.protocols.openwire.commands import ActiveMQMessage
from broker.protocols.openwire.data_types import FIELDS, LAST_VERSION, NUMBERS
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.fields import Kind
from broker.protocols.openwire.modified_utf8 import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.protocols.openwire.commands import Throwable
    from broker.protocols.openwire.fields import DataType

__all__ = ["LooseWriter", "TightWriter"]

_PACK_BYTE: Final = struct.Struct(">b").pack
_PACK_SHORT: Final = struct.Struct(">h").pack
_PACK_UNSIGNED_SHORT: Final = struct.Struct(">H").pack
_PACK_INT: Final = struct.Struct(">i").pack
_PACK_UNSIGNED_INT: Final = struct.Struct(">I").pack
_PACK_LONG: Final = struct.Struct(">q").pack
# Of a text, in bytes (BaseDataStreamMarshaller).
_TEXT_SIZE_MAX: Final = 2**15 - 1

# As plain numbers: they are asked for with each field.
_BOOLEAN: Final = int(Kind.BOOLEAN)
_BYTE: Final = int(Kind.BYTE)
_INT: Final = int(Kind.INT)
_LONG: Final = int(Kind.LONG)
_STRING: Final = int(Kind.STRING)
_BYTES: Final = int(Kind.BYTES)
_NESTED: Final = int(Kind.NESTED)
_ARRAY: Final = int(Kind.ARRAY)
# By version and class: the name of each field and what is written for it, in the bytes' order.
_PLANS: Final = [
    {
        one: [(field.name, int(field.kind)) for field in fields if field.since <= version]
        for one, fields in FIELDS.items()
    }
    for version in range(LAST_VERSION + 1)
]
# What stands before an object.
_NUMBERS: Final = {one: bytes((number,)) for one, number in NUMBERS.items()}


class LooseWriter:
    """Writes one object, each value by itself.

    Args:
        version: that was agreed on.
        has_stack_traces: exceptions come with them; ours have none.
    """

    __slots__ = ("_has_stack_traces", "_parts", "_plans")

    def __init__(self, version: int, *, has_stack_traces: bool) -> None:
        self._plans = _PLANS[version]
        self._has_stack_traces = has_stack_traces
        self._parts: list[bytes] = []

    def frame(self, command: DataType, *, has_size: bool = True) -> bytes:
        """Give the bytes of a command.

        Raises:
            OpenWireError: a text of it is too long.
        """
        self._begin()
        self._body(command)
        self._end()
        parts, self._parts = self._parts, []
        parts[0] = _NUMBERS[type(command)]
        if has_size:
            parts.insert(0, _PACK_INT(sum(map(len, parts))))
        return b"".join(parts)

    def _begin(self) -> None:
        # The first is what it is of.
        self._parts = [b""]

    def _end(self) -> None:
        """Write what is known only behind all fields."""

    def _body(self, command: DataType) -> None:
        for name, step in self._plans[type(command)]:
            self._value(step, getattr(command, name))

    def _value(self, step: int, value: Any) -> None:  # noqa: ANN401 - of the field's type.
        """Write a field."""
        if step == _BOOLEAN:
            self._boolean(value)
        elif step == _NESTED:
            self._nested(value)
        elif step == _STRING:
            self._string(value)
        elif step == _LONG:
            self._long(value)
        elif step == _INT:
            self._parts.append(_PACK_INT(value))
        elif step == _ARRAY:
            self._array(value)
        elif step == _BYTES:
            self._bytes(value)
        elif step == _BYTE:
            self._parts.append(_PACK_BYTE(value))
        else:
            self._throwable(value)

    # --- values -------------------------------------------------------------------------------

    def _boolean(self, value: bool) -> None:
        self._parts.append(b"\1" if value else b"\0")

    def _long(self, value: int) -> None:
        self._parts.append(_PACK_LONG(value))

    def _string(self, value: str | None) -> None:
        self._boolean(value is not None)
        if value is not None:
            self._text(encode(value))

    def _text(self, data: bytes) -> None:
        if len(data) > _TEXT_SIZE_MAX:
            raise OpenWireError(f"a text of {len(data)} bytes is too long for OpenWire")
        self._parts.append(_PACK_UNSIGNED_SHORT(len(data)))
        self._parts.append(data)

    def _bytes(self, value: bytes | None) -> None:
        self._boolean(value is not None)
        if value is not None:
            self._parts.append(_PACK_INT(len(value)))
            self._parts.append(value)

    def _nested(self, value: DataType | None) -> None:
        """Write an object that may be null."""
        self._boolean(value is not None)
        if value is not None:
            self._parts.append(_NUMBERS[type(value)])
            self._nested_body(value)

    def _nested_body(self, value: DataType) -> None:
        self._body(value)

    def _array(self, values: Sequence[DataType | None] | None) -> None:
        """Write objects behind their number; the list may be null."""
        self._boolean(values is not None)
        if values is not None:
            self._parts.append(_PACK_SHORT(len(values)))
            for value in values:
                self._nested(value)

    def _throwable(self, value: Throwable | None) -> None:
        """Write what an exception says of itself: no stack trace, and no cause."""
        self._boolean(value is not None)
        if value is None:
            return
        self._string(value.class_name)
        self._string(value.message)
        if self._has_stack_traces:
            self._parts.append(_PACK_SHORT(0))
            self._throwable(None)


class TightWriter(LooseWriter):
    """Writes one object whose booleans and sizes stand in bits at its beginning."""

    __slots__ = ("_bit", "_bits")

    def _begin(self) -> None:
        # The bits come behind what it is of.
        self._parts = [b"", b""]
        self._bits = bytearray()
        self._bit = 0

    def _end(self) -> None:
        bits = self._bits
        size = len(bits)
        if size < 64:
            head = bytes((size,))
        elif size < 0x100:
            head = bytes((0xC0, size))
        else:
            head = b"\x80" + _PACK_UNSIGNED_SHORT(size)
        self._parts[1] = head + bits

    def _boolean(self, value: bool) -> None:
        at = self._bit & 7
        if at == 0:
            self._bits.append(0)
        if value:
            self._bits[self._bit >> 3] |= 1 << at
        self._bit += 1

    def _long(self, value: int) -> None:
        """Write a signed number of 0, 2, 4 or 8 bytes."""
        is_short = 0 < value <= 0xFFFF
        is_int = 0xFFFF < value <= 0xFFFFFFFF
        is_long = value < 0 or value > 0xFFFFFFFF
        self._boolean(is_int or is_long)
        self._boolean(is_short or is_long)
        if is_long:
            self._parts.append(_PACK_LONG(value))
        elif is_int:
            self._parts.append(_PACK_UNSIGNED_INT(value))
        elif is_short:
            self._parts.append(_PACK_UNSIGNED_SHORT(value))

    def _string(self, value: str | None) -> None:
        self._boolean(value is not None)
        if value is not None:
            data = encode(value)
            # Each character is one byte.
            self._boolean(len(data) == len(value))
            self._text(data)

    def _nested_body(self, value: DataType) -> None:
        if isinstance(value, ActiveMQMessage):
            # It was not marshalled before.
            self._boolean(False)
        self._body(value)
