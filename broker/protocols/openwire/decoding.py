"""Bytes of one frame to values, loose and tight.

Every length is compared with the bytes that remain before anything is made of it, and objects hold
objects to a small depth only. So a frame takes no more memory or time than its size allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import broker.model.message_bytes as walk
from broker.protocols.openwire.commands import ActiveMQMessage, Throwable
from broker.protocols.openwire.data_types import CLASSES, FIELDS, LAST_VERSION
from broker.protocols.openwire.errors import IO_ERROR, OpenWireError
from broker.protocols.openwire.fields import EMPTY, Kind
from broker.protocols.openwire.modified_utf8 import decode

if TYPE_CHECKING:
    from broker.protocols.openwire.fields import DataType, Field

__all__ = ["LooseReader", "TightReader", "broken"]

# As plain numbers: they are asked for with each field.
_BOOLEAN: Final = int(Kind.BOOLEAN)
_BYTE: Final = int(Kind.BYTE)
_INT: Final = int(Kind.INT)
_LONG: Final = int(Kind.LONG)
_STRING: Final = int(Kind.STRING)
_BYTES: Final = int(Kind.BYTES)
_NESTED: Final = int(Kind.NESTED)
_ARRAY: Final = int(Kind.ARRAY)
_THROWABLE: Final = int(Kind.THROWABLE)
_ABSENT: Final = 0
# A message in a command's data, with a transaction's connection in it: no more is sent.
_DEPTH_MAX: Final = 8
_CAUSES_MAX: Final = 32
_FRAMES_MAX: Final = 4096
# In front of a size of one byte, and of two, where that is 64 or more.
_ONE_BYTE: Final = 0xC0
_TWO_BYTES: Final = 0x80


def broken(text: str) -> OpenWireError:
    """Give the error of bytes that cannot be decoded."""
    return OpenWireError(text, IO_ERROR)


def _step(field: Field, version: int) -> tuple[int, Any]:
    """Give what is read for a field, and what may stand there, or does where none is read."""
    if field.since <= version:
        return int(field.kind), field.nested
    return _ABSENT, EMPTY.get(field.kind)


# By version and number: a class, and what is read for each of its fields in the order of the bytes.
_PLANS: Final = [
    {
        number: (one, [_step(field, version) for field in FIELDS[one]])
        for number, one in CLASSES.items()
    }
    for version in range(LAST_VERSION + 1)
]


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
        found = None
        try:
            type_id = self._unsigned_byte()
            if type_id:
                self._begin()
                found = self._body(type_id)
        except IndexError:
            raise broken(f"a frame ends at byte {self._end}") from None
        except UnicodeDecodeError as error:
            raise broken(f"a text is not UTF-8: {error.reason}") from None
        if self._at != self._end:
            raise broken(f"{self._end - self._at} bytes behind a command")
        return found

    def _begin(self) -> None:
        """Read what stands before the fields of all objects."""

    def _body(self, type_id: int) -> DataType:
        """Read the object of a type; the next bytes are its fields."""
        plan = _PLANS[self._version].get(type_id)
        if plan is None:
            raise broken(f"Unknown data type: {type_id}")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise broken(f"objects within objects, more than {_DEPTH_MAX} deep")
        made: DataType = plan[0](*[self._value(step, nested) for step, nested in plan[1]])
        self._depth -= 1
        return made

    def _value(self, step: int, nested: Any) -> Any:  # noqa: ANN401 - of the field's type.
        """Read a field."""
        if step == _BOOLEAN:
            return self._boolean()
        if step == _NESTED:
            return self._nested(nested)
        if step == _STRING:
            return self._string()
        if step == _LONG:
            return self._long()
        if step == _INT:
            return self._int()
        if step == _ARRAY:
            return self._array(nested)
        if step == _BYTES:
            return self._bytes()
        if step == _BYTE:
            return self._byte()
        if step == _THROWABLE:
            return self._throwable()
        return nested

    def _take(self, size: int) -> bytes:
        at = self._at
        if size < 0 or size > self._end - at:
            raise broken(f"{size} bytes wanted, {self._end - at} left")
        self._at = at + size
        return self._data[at : at + size]

    # --- values -------------------------------------------------------------------------------

    def _boolean(self) -> bool:
        return self._unsigned_byte() != 0

    def _unsigned_byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _byte(self) -> int:
        value = self._unsigned_byte()
        return value - 0x100 if value >= 0x80 else value

    def _unsigned_short(self) -> int:
        value = self._unsigned_byte()
        return value << 8 | self._unsigned_byte()

    def _int(self) -> int:
        value = walk.int_at(self._data, self._at)
        self._at += 4
        return value

    def _long(self) -> int:
        return self._whole_long()

    def _whole_long(self) -> int:
        """Read a signed number of 8 bytes."""
        value = walk.long_at(self._data, self._at)
        self._at += 8
        return value

    def _string(self) -> str | None:
        return decode(self._take(self._unsigned_short())) if self._boolean() else None

    def _bytes(self) -> bytes | None:
        return self._take(self._int()) if self._boolean() else None

    def _nested(self, allowed: tuple[type[DataType], ...]) -> DataType | None:
        """Read an object that may be null."""
        if not self._boolean():
            return None
        made = self._nested_body(self._unsigned_byte())
        if not isinstance(made, allowed):
            raise broken(f"a {type(made).__name__} where none may be")
        return made

    def _nested_body(self, type_id: int) -> DataType:
        return self._body(type_id)

    def _array(self, allowed: tuple[type[DataType], ...]) -> list[DataType | None] | None:
        """Read objects behind their number; the list may be null."""
        if not self._boolean():
            return None
        count = self._short()
        if count < 0 or count > self._items_left():
            raise broken(f"{count} objects in {self._end - self._at} bytes")
        return [self._nested(allowed) for _ in range(count)]

    def _short(self) -> int:
        value = self._unsigned_short()
        return value - 0x10000 if value >= 0x8000 else value

    def _items_left(self) -> int:
        """Give how many objects may follow at most."""
        return self._end - self._at

    def _throwable(self) -> Throwable | None:
        """Read what an exception says of itself, as text; its cause and frames are left out."""
        first: Throwable | None = None
        for _ in range(_CAUSES_MAX):
            if not self._boolean():
                return first
            found = Throwable(self._string(), self._string())
            first = first or found
            if not self._has_stack_traces:
                return first
            count = self._short()
            if not 0 <= count <= _FRAMES_MAX:
                raise broken(f"a stack of {count} frames")
            for _ in range(count):
                for _ in range(3):
                    self._string()
                self._int()
        raise broken(f"an exception with more than {_CAUSES_MAX} causes")


class TightReader(LooseReader):
    """Reads one object whose booleans and sizes stand in bits at its beginning."""

    __slots__ = ("_bit", "_bits")

    def _begin(self) -> None:
        size = self._unsigned_byte()
        if size == _ONE_BYTE:
            size = self._unsigned_byte()
        elif size == _TWO_BYTES:
            size = self._unsigned_short()
        self._bits = self._take(size)
        self._bit = 0

    def _boolean(self) -> bool:
        at = self._bit
        self._bit = at + 1
        return (self._bits[at >> 3] >> (at & 7) & 1) != 0

    def _long(self) -> int:
        """Read a signed number of 0, 2, 4 or 8 bytes."""
        if self._boolean():
            if self._boolean():
                return self._whole_long()
            high = self._unsigned_short()
            return high * 0x10000 + self._unsigned_short()
        return self._unsigned_short() if self._boolean() else 0

    def _string(self) -> str | None:
        if not self._boolean():
            return None
        if self._boolean():
            return self._take(self._unsigned_short()).decode("latin-1")
        return decode(self._take(self._unsigned_short()))

    def _nested_body(self, type_id: int) -> DataType:
        found = CLASSES.get(type_id)
        if found is not None and issubclass(found, ActiveMQMessage) and self._boolean():
            # Marshalled before, with a size, a type and bits of its own.
            self._take(4)
            if self._unsigned_byte() != type_id:
                raise broken("a message of two types")
            bits, bit = self._bits, self._bit
            self._begin()
            made = self._body(type_id)
            self._bits, self._bit = bits, bit
            return made
        return self._body(type_id)

    def _items_left(self) -> int:
        return 8 * len(self._bits) - self._bit
