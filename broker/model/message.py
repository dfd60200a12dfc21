"""A Core message: headers and properties of the bytes its sender made, as they are asked for.

The bytes themselves, how they are read and changed: message_form.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import broker.model.message_bytes as walk
import broker.model.packed as packed
from broker.model.core_layout import fitting_byte, fitting_long
from broker.model.encoding import Body, RecordFormatError
from broker.model.message_form import (
    GROUP_ID,
    MEMORY_OVERHEAD,
    PRIORITY_DEFAULT,
    ROUTING_TYPE_PROPERTY,
    MessageForm,
)
from broker.model.message_types import Persister
from broker.model.properties import Property, PropertyType, PropertyValue, read_value
from broker.model.routing_type import RoutingType
from broker.model.scheduled_time import SCHEDULED, time_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.model.large_body import LargeBody

__all__ = ["GROUP_ID", "MEMORY_OVERHEAD", "PRIORITY_DEFAULT", "ROUTING_TYPE_PROPERTY", "Message"]

# By the property's value, whatever kind of number it is.
_ROUTING_TYPES: Final[dict[PropertyValue, RoutingType]] = {
    int(one): one for one in (RoutingType.MULTICAST, RoutingType.ANYCAST)
}
# By number; else what own_routing() says.
_TYPES: Final = (RoutingType.MULTICAST, RoutingType.ANYCAST)
_NO_ROUTING: Final = walk.NO_ROUTING
# As a plain int: it is packed into the record of every message.
_PERSISTER: Final = int(Persister.CORE)
# What stands before the address of a record: persister, id, whether there is one.
_RECORD_ADDRESS_AT: Final = 10
_STRING: Final = PropertyType.STRING
_BOOLEAN_TAG: Final = int(PropertyType.BOOLEAN)
_INT_TAG: Final = int(PropertyType.INT)
_BYTES_TAG: Final = bytes((PropertyType.BYTES,))
# The same, encoded behind their tag.
_ROUTING_VALUES: Final = {one: bytes((PropertyType.BYTE, one)) for one in _TYPES}
# By tag; there is no 1.
_KINDS: Final = [PropertyType(tag) if tag != 1 else PropertyType.NULL for tag in range(12)]
_GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_REPLY_TO: Final = "JMSReplyTo"
_CORRELATION_ID: Final = "JMSCorrelationID"


class Message(MessageForm):
    """One Core message. Belongs to the event loop or thread that holds it.

    Attributes:
        message_id: the broker's number; 0 until it gave one.
        address: where it was sent, or None for the default of its session.
        type: a `MessageType`; others occur.
        durable: survives a restart, where its queues do.
        priority: 0 … 9.
        expiration: ms since 1970, 0 is never.
        timestamp: ms since 1970, 0 is none.
        user_id: 16 bytes, or None.
        large: the body, where it is kept outside of the message; then `body` is empty.
        has_own_properties: whether it may have a property that means something to the broker, one
            whose name begins with _AMQ_, beside the routing type; true or false, as a number.
        references: how many queues have it.
        durable_references: how many of them say so in the journal.
        owner: the address whose memory it counts for; None while no queue has it.
    """

    __slots__ = ()

    @property
    def message_id(self) -> int:
        """The broker's number; 0 until it gave one."""
        return self._message_id

    @message_id.setter
    def message_id(self, value: int) -> None:
        self.give_id(value)

    @property
    def address(self) -> str | None:
        """Where it was sent, or None."""
        return self._address

    @address.setter
    def address(self, value: str | None) -> None:
        if value != self._address:
            self._address = value
            self._change()

    @property
    def type(self) -> int:
        """A `MessageType`; others occur."""
        return self._type

    @type.setter
    def type(self, value: int) -> None:
        self._type = fitting_byte(value)
        self._change()

    @property
    def durable(self) -> bool:
        """Whether it survives a restart."""
        return self._durable != 0

    @durable.setter
    def durable(self, value: bool) -> None:
        self._durable = value
        self._change()

    @property
    def priority(self) -> int:
        """0 … 9."""
        return self._priority

    @priority.setter
    def priority(self, value: int) -> None:
        self._priority = fitting_byte(value)
        self._change()

    @property
    def expiration(self) -> int:
        """In ms since 1970, 0 is never."""
        return self._expiration

    @expiration.setter
    def expiration(self, value: int) -> None:
        self._expiration = fitting_long(value)
        self._change()

    @property
    def timestamp(self) -> int:
        """In ms since 1970, 0 is none."""
        return self._timestamp()

    @timestamp.setter
    def timestamp(self, value: int) -> None:
        self._with_parts().timestamp = fitting_long(value)
        self._change()

    @property
    def is_large_core(self) -> bool:
        """Whether a large message has the record of Core's: its headers and properties alone."""
        return True

    @property
    def large(self) -> LargeBody | None:
        """The body, where it is kept outside of the message; then `body` is empty."""
        return None if self._parts is None else self._parts.large

    @large.setter
    def large(self, value: LargeBody | None) -> None:
        self._with_parts().large = value
        if value is not None:
            self.is_large = True

    @property
    def large_size(self) -> int:
        """Bytes of the body that is kept outside of the message, as it is stored; 0 without one."""
        large = self.large
        return 0 if large is None else large.size

    @property
    def is_changed(self) -> bool:
        """Whether the bytes that it was made of are not those of encode()."""
        return self._changed != 0

    @property
    def encoded_size(self) -> int:
        """Bytes of `encode()`, which credits and counters count."""
        return self._encoded_size()

    @property
    def memory_size(self) -> int:
        """Bytes that the limits of addresses and of the broker count for this message."""
        return self._memory_size()

    # Properties.

    @property
    def properties(self) -> Mapping[str, Property]:
        """The properties by name; change them by `set` and `remove` alone."""
        return self._all_properties()

    def _all_properties(self) -> dict[str, Property]:
        parts = self._parts
        if parts is None or parts.properties is None:
            found = self._read_properties(self._bytes())
            parts = self._with_parts()
            parts.properties = found
        return parts.properties

    def _read_properties(self, data: bytes) -> dict[str, Property]:
        """Give all of them; of two of a name the later one counts."""
        found: dict[str, Property] = {}
        if data[self._properties_at]:
            for name, at in walk.tags_of(data, self._properties_at + 1):
                found[name] = Property(name, _KINDS[data[at]], read_value(data, at))
        return found

    def get(self, name: str) -> PropertyValue:
        """Give the value of a property; None where it is null or missing.

        Until a caller wants all of them, it alone is decoded.
        """
        parts = self._parts
        if parts is None or parts.properties is None:
            if not self._may_have(name):
                return None
            # The flag before them says that there are some: their bytes have the name.
            data = self._bytes()
            at = walk.property_at(data, self._properties_at + 1, walk.encoded_name(name))
            if at < 0:
                return None
            tag = data[at]
            if tag == _INT_TAG and at + 5 <= len(data):
                return walk.int_at(data, at + 1)
            if tag == _BOOLEAN_TAG and at + 1 < len(data):
                return data[at + 1] != 0
            return read_value(data, at)
        found = parts.properties.get(name)
        return None if found is None else found.value

    def typed(self, name: str) -> tuple[PropertyType, PropertyValue] | None:
        """Give type and value of a property, as get(); None where it is null or missing."""
        parts = self._parts
        if parts is None or parts.properties is None:
            if not self._may_have(name):
                return None
            data = self._bytes()
            at = walk.property_at(data, self._properties_at + 1, walk.encoded_name(name))
            if at < 0:
                return None
            tag = data[at]
            if tag == _STRING:
                # What selectors mostly ask for. Its size was seen to fit when the message came.
                first = at + 5
                size = walk.int_at(data, at + 1)
                return _STRING, data[first : first + size].decode("utf-16-le", "surrogatepass")
            value = read_value(data, at)
            return None if value is None else (PropertyType(tag), value)
        found = parts.properties.get(name)
        return None if found is None or found.value is None else (found.type, found.value)

    def names_with(self, prefix: str) -> list[str]:
        """Give the names of properties that begin with a prefix; no value is decoded."""
        parts = self._parts
        if parts is None or parts.properties is None:
            data = self._bytes()
            if not data[self._properties_at]:
                return []
            return walk.names_with(data, self._properties_at + 1, walk.encoded_name(prefix))
        return [name for name in parts.properties if name.startswith(prefix)]

    def set(self, name: str, kind: PropertyType, value: PropertyValue) -> None:
        """Set a property, instead of any of that name."""
        self._all_properties()[name] = Property(name, kind, value)
        self._change()
        self._forget_own()

    def set_bytes(self, name: str, value: bytes) -> None:
        """Set a property of bytes, as set(); others are not decoded where that can be."""
        parts = self._parts
        if (parts is not None and parts.properties is not None) or self._may_have(name):
            self.set(name, PropertyType.BYTES, value)
        else:
            self._append(name, b"".join((_BYTES_TAG, len(value).to_bytes(4, "big"), value)))

    def remove(self, name: str) -> None:
        """Remove a property; no error when there is none.

        Others are not decoded, unless several have the name.
        """
        parts = self._parts
        is_encoded = parts is None or parts.properties is None
        if is_encoded and (not self._may_have(name) or self._cut_out(name)):
            return
        if self._all_properties().pop(name, None) is not None:
            self._change()
            self._forget_own()

    @property
    def routing_number(self) -> int:
        """Of the routing type, below 0 where it is not known without looking."""
        return self._routing

    @property
    def routing_type(self) -> RoutingType | None:
        """What the sender asked for, where it asked for one that there is."""
        if self._routing >= 0:
            return _TYPES[self._routing]
        if self._routing == _NO_ROUTING:
            return None
        value = self.get(ROUTING_TYPE_PROPERTY)
        if value is None or isinstance(value, bool):
            return None
        return _ROUTING_TYPES.get(value)

    @routing_type.setter
    def routing_type(self, value: RoutingType | None) -> None:
        parts = self._parts
        if value is None:
            self.remove(ROUTING_TYPE_PROPERTY)
        elif self._routing == _NO_ROUTING and (parts is None or parts.properties is None):
            own = self.has_own_properties
            self._append(ROUTING_TYPE_PROPERTY, _ROUTING_VALUES[value])
            self._routing = int(value)
            self.has_own_properties = own
        else:
            self.set(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(value))

    # The record of a message journal.

    @classmethod
    def from_record(cls, body: Body) -> Self:
        """Read the body of record 45 by persister CORE; its message id and address count.

        Raises:
            RecordFormatError: another persister, or bytes that are not a message.
        """
        message = cls.__new__(cls)
        message._read_record(bytes(body))
        return message

    def _read_record(self, data: bytes) -> None:
        address = None
        at = _RECORD_ADDRESS_AT
        try:
            if data[0] != _PERSISTER:
                raise RecordFormatError(f"message persister {data[0]}, not that of Core messages")
            message_id = walk.long_at(data, 1)
            if data[at - 1]:
                size = walk.int_at(data, at)
                address = walk.text_at(data, at + 4, size)
                at += 4 + size
            size = walk.int_at(data, at)
        except IndexError as error:
            raise RecordFormatError(f"a message's record ends at byte {len(data)}") from error
        at += 4
        if size < 0 or size > len(data) - at:
            raise RecordFormatError(f"a message of {size} bytes in {len(data) - at}")
        self._read_form(data[at : at + size])
        self.give_id(message_id)
        if address is not None and address != self._address:
            self._address = address
            self._change()

    def record(self) -> bytes:
        """Give the body of record 45, persister CORE."""
        data = self.encode()
        address = None if self._address is None else walk.encoded_name(self._address)
        return packed.record(_PERSISTER, self._message_id, address, data)

    # What all protocols have under a name of their own (message_interface.py).

    @property
    def group_id(self) -> str | None:
        """The group whose messages go to one consumer."""
        return self._text(GROUP_ID)

    @property
    def group_sequence(self) -> int:
        """Its number in the group; -1 ends the group behind it, 0 is none."""
        value = self.get(_GROUP_SEQUENCE)
        return value if isinstance(value, int) else 0

    @property
    def scheduled_ms(self) -> int:
        """When it is to be delivered, ms since 1970; 0 is at once."""
        return time_ms(self.get(SCHEDULED))

    @property
    def duplicate_id(self) -> str | bytes | None:
        """What its address does not accept twice."""
        return self._text_or_bytes(_DUPLICATE_ID)

    @property
    def reply_to(self) -> str | None:
        """Where an answer is to go, as JMS writes it: `queue://…`."""
        return self._text(_REPLY_TO)

    @property
    def correlation_id(self) -> str | bytes | None:
        """What it answers to."""
        return self._text_or_bytes(_CORRELATION_ID)

    def _text(self, name: str) -> str | None:
        value = self.get(name)
        return value if isinstance(value, str) else None

    def _text_or_bytes(self, name: str) -> str | bytes | None:
        value = self.get(name)
        return value if isinstance(value, str | bytes) else None

    def __repr__(self) -> str:
        return (
            f"Message(message_id={self._message_id}, address={self._address!r}, "
            f"type={self._type}, durable={self.durable}, body={len(self.body)} bytes)"
        )
