"""What the arrival of an AMQP message asks of it, read in one walk that makes no other objects.

    header ─▶ durable, priority, ttl    annotations ─▶ routing type    properties ─▶ to, expiry
    all else is skipped by its constructors, and is seen to be well formed

It is for what clients mostly send. A message that asks for more has no outline: one with a group,
with a time of delivery, with a property of the broker's own, or written in an uncommon way. It is
converted as a whole at once (amqp_to_core.py), which also says what is wrong with it. What has one
can be converted later without an error.
"""

from __future__ import annotations

from typing import Final

from broker.records.amqp_values import VALUE_WIDTHS, VARIABLE_WIDTH

__all__ = ["Outline", "outline_of"]

_HEADER: Final = 0x70
_DELIVERY_ANNOTATIONS: Final = 0x71
_MESSAGE_ANNOTATIONS: Final = 0x72
_PROPERTIES: Final = 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_DATA: Final = 0x75
_SEQUENCE: Final = 0x76
_VALUE: Final = 0x77
_FOOTER: Final = 0x78

# Constructors of values.
_NULL: Final = 0x40
_TRUE: Final = 0x41
_FALSE: Final = 0x42
_UINT_0: Final = 0x43
_LIST_0: Final = 0x45
_UBYTE: Final = 0x50
_BYTE: Final = 0x51
_UINT_1: Final = 0x52
_BOOLEAN: Final = 0x56
_UINT: Final = 0x70
_TIMESTAMP: Final = 0x83
_BINARY_1: Final = 0xA0
_STRING_1: Final = 0xA1
_SYMBOL_1: Final = 0xA3
_BINARY: Final = 0xB0
_STRING: Final = 0xB1
_SYMBOL: Final = 0xB3
_LIST_1: Final = 0xC0
_MAP_1: Final = 0xC1
_LIST: Final = 0xD0
_MAP: Final = 0xD1

# Numbers of fields.
_DURABLE: Final = 0
_PRIORITY: Final = 1
_TTL: Final = 2
_HEADER_FIELDS: Final = 5
_USER_ID: Final = 1
_TO: Final = 2
_EXPIRY: Final = 8
_CREATION: Final = 9
_GROUP_ID: Final = 10
_GROUP_SEQUENCE: Final = 11
_PROPERTIES_FIELDS: Final = 13

_WIDTHS: Final = VALUE_WIDTHS
_NO_WIDTH: Final = VARIABLE_WIDTH
_PRIORITY_DEFAULT: Final = 4
_PRIORITY_MAX: Final = 9
_NO_ROUTING: Final = -1
# Deeper values are left to the conversion.
_DEPTH_MAX: Final = 16
# By `x-opt-jms-dest`: queue, topic, and both of them temporary.
_ROUTING_TYPES: Final = b"\x01\x00\x01\x00"
_SECTION: Final = b"\x00\x53"
_OWN: Final = b"_AMQ_"
_ANNOTATION: Final = b"x-opt-"
_ROUTING_TYPE: Final = b"x-opt-routing-type"
_DESTINATION: Final = b"x-opt-jms-dest"
# They become properties of the broker's own.
_TIMES: Final = frozenset({b"x-opt-delivery-time", b"x-opt-delivery-delay", b"x-opt-ingress-time"})


def outline_of(encoded: bytes) -> Outline | None:
    """Look at a whole message; None where it has to be converted instead."""
    outline = Outline(encoded)
    try:
        return outline if outline._walk() else None
    except (IndexError, UnicodeDecodeError):
        return None


class Outline:
    """See the module's text; outline_of() makes one.

    Attributes:
        durable: as it says; False where it does not.
        priority: 0 … 9.
        ttl_ms: time to live; 0 where it does not say.
        expiration: ms since 1970; 0 where it does not say.
        routing: number of the routing type it asks for; -1 where it asks for none.
        has_delivery_annotations: it has that section.
    """

    __slots__ = (
        "_at",
        "_data",
        "_end",
        "_to_at",
        "durable",
        "expiration",
        "has_delivery_annotations",
        "priority",
        "routing",
        "ttl_ms",
    )

    def __init__(self, data: bytes) -> None:
        self._data = data
        # What is read next, and the end of what is walked over.
        self._at = 0
        self._end = len(data)
        self._to_at = 0
        self.durable = False
        self.priority = _PRIORITY_DEFAULT
        self.ttl_ms = 0
        self.expiration = 0
        self.routing = _NO_ROUTING
        self.has_delivery_annotations = False

    @property
    def address(self) -> str | None:
        """Where it was sent, as it says; None where it does not."""
        at = self._to_at
        if not at:
            return None
        data = self._data
        first = at + (2 if data[at] == _STRING_1 else 5)
        return data[first : first + self._size(at)].decode()

    # Each of these is False where the message is none for an outline.

    def _walk(self) -> bool:
        data = self._data
        end = self._end
        last = 0
        while self._at < end:
            if not data.startswith(_SECTION, self._at):
                return False
            section = data[self._at + 2]
            self._at += 3
            if section < last or last == _FOOTER:
                return False
            if section == last and section != _DATA and section != _SEQUENCE:
                return False
            if last >= _DATA and section not in (last, _FOOTER):
                return False
            if not self._section(section):
                return False
            last = section
        return True

    def _section(self, section: int) -> bool:
        if section == _HEADER:
            return self._header()
        if section == _MESSAGE_ANNOTATIONS:
            return self._message_annotations()
        if section == _PROPERTIES:
            return self._properties()
        if section == _APPLICATION_PROPERTIES:
            return self._application_properties()
        code = self._data[self._at]
        if section == _DATA:
            return (code in (_BINARY_1, _BINARY)) and self._skip(0)
        if section == _SEQUENCE:
            return (code in (_LIST_0, _LIST_1, _LIST)) and self._skip(_DEPTH_MAX)
        if section == _VALUE:
            return self._skip(_DEPTH_MAX)
        if section == _DELIVERY_ANNOTATIONS:
            self.has_delivery_annotations = True
        elif section != _FOOTER:
            return False
        return (code in (_MAP_1, _MAP)) and self._skip(_DEPTH_MAX)

    def _header(self) -> bool:
        data, end = self._data, self._end
        count = self._enter(_LIST_1)
        if count < 0 or count > _HEADER_FIELDS:
            return False
        for field in range(count):
            at = self._at
            if not self._skip(_DEPTH_MAX):
                return False
            code = data[at]
            if code == _NULL:
                continue
            if field == _DURABLE:
                if code != _TRUE and code != _FALSE and code != _BOOLEAN:
                    return False
                self.durable = code == _TRUE or (code == _BOOLEAN and data[at + 1] != 0)
            elif field == _PRIORITY:
                if code != _UBYTE:
                    return False
                self.priority = min(data[at + 1], _PRIORITY_MAX)
            elif field == _TTL:
                if code == _UINT:
                    self.ttl_ms = self._uint(at + 1)
                elif code == _UINT_1:
                    self.ttl_ms = data[at + 1]
                elif code != _UINT_0:
                    return False
        return self._leave(end)

    def _message_annotations(self) -> bool:
        data, end = self._data, self._end
        count = self._enter(_MAP_1)
        if count < 0 or count % 2:
            return False
        asked = by_destination = _NO_ROUTING
        for _ in range(count // 2):
            at = self._at
            # Its size is seen to fit by the skip.
            if data[at] != _SYMBOL_1 or not self._skip(0):
                return False
            value_at = self._at
            if not self._skip(_DEPTH_MAX):
                return False
            if not data.startswith(_ANNOTATION, at + 2):
                continue
            name = data[at + 2 : value_at]
            if name in _TIMES:
                return False
            is_routing = name == _ROUTING_TYPE
            if not is_routing and name != _DESTINATION:
                continue
            code, number = data[value_at], data[value_at + 1]
            if code != _BYTE and code != _UBYTE:
                return False
            if number >= (2 if is_routing else len(_ROUTING_TYPES)):
                return False
            if is_routing:
                asked = number
            else:
                by_destination = _ROUTING_TYPES[number]
        self.routing = by_destination if asked == _NO_ROUTING else asked
        return self._leave(end)

    def _properties(self) -> bool:
        data, end = self._data, self._end
        count = self._enter(_LIST_1)
        if count < 0 or count > _PROPERTIES_FIELDS:
            return False
        for field in range(count):
            at = self._at
            if not self._skip(_DEPTH_MAX):
                return False
            code = data[at]
            if code == _NULL:
                continue
            if field == _TO:
                if code != _STRING_1 and code != _STRING:
                    return False
                self._to_at = at
            elif field in (_EXPIRY, _CREATION):
                if code != _TIMESTAMP:
                    return False
                if field == _EXPIRY and data[at + 1] < 0x80:
                    self.expiration = self._uint(at + 1) << 32 | self._uint(at + 5)
            elif field in (_USER_ID, _GROUP_ID, _GROUP_SEQUENCE):
                return False
        return self._leave(end)

    def _application_properties(self) -> bool:
        data, end = self._data, self._end
        count = self._enter(_MAP_1)
        if count < 0 or count % 2:
            return False
        for _ in range(count // 2):
            at = self._at
            if data[at] != _STRING_1 or data.startswith(_OWN, at + 2):
                return False
            if not self._skip(0) or not self._skip(_DEPTH_MAX):
                return False
        return self._leave(end)

    # Values.

    def _enter(self, small: int) -> int:
        """Step into a list or map, by its shorter constructor; its items, -1 where it is none.

        Until _leave() its end is that of the walk.
        """
        data, at = self._data, self._at
        code = data[at]
        if code == _LIST_0 and small == _LIST_1:
            self._at = self._end = at + 1
            return 0
        if code == small:
            end = at + 2 + data[at + 1]
            count = data[at + 2]
            at += 3
        elif code == small + (_LIST - _LIST_1):
            end = at + 5 + self._uint(at + 1)
            count = self._uint(at + 5)
            at += 9
        else:
            return -1
        if at > end or end > self._end or count > end - at:
            return -1
        self._at, self._end = at, end
        return count

    def _leave(self, end: int) -> bool:
        """Step out of a list or map, to go on up to `end`."""
        self._at, self._end = self._end, end
        return True

    def _skip(self, depth: int) -> bool:
        """Step over one value, with lists and maps in it up to a depth."""
        data, at = self._data, self._at
        if at >= self._end:
            return False
        code = data[at]
        width = _WIDTHS[code]
        if width != _NO_WIDTH:
            self._at = at + 1 + width
            return self._at <= self._end
        if code in (_LIST_1, _LIST, _MAP_1, _MAP):
            return depth > 0 and self._skip_items(code, depth - 1)
        is_text = code in (_STRING_1, _STRING)
        is_symbol = code in (_SYMBOL_1, _SYMBOL)
        if not is_text and not is_symbol and code != _BINARY_1 and code != _BINARY:
            return False
        first = at + (2 if code < _BINARY else 5)
        last = first + self._size(at)
        if last > self._end:
            return False
        self._at = last
        if is_text:
            data[first:last].decode()
        return not is_symbol or data[first:last].isascii()

    def _skip_items(self, code: int, depth: int) -> bool:
        end = self._end
        count = self._enter(_LIST_1 if code in (_LIST_1, _LIST) else _MAP_1)
        if count < 0 or (count % 2 and (code in (_MAP_1, _MAP))):
            return False
        for _ in range(count):
            if not self._skip(depth):
                return False
        return self._leave(end)

    def _size(self, at: int) -> int:
        """Give the size of a binary, string or symbol."""
        data = self._data
        return data[at + 1] if data[at] < _BINARY else self._uint(at + 1)

    def _uint(self, at: int) -> int:
        data = self._data
        value = data[at]
        value = value << 8 | data[at + 1]
        value = value << 8 | data[at + 2]
        return value << 8 | data[at + 3]
