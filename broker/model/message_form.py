"""The bytes of a Core message in memory: read, changed, written, spilled. Layout: core_layout.py.

Rules:
- `decode()` takes the fixed headers, walks over the properties to see that they are well formed,
  and keeps one copy of all the bytes. Properties become objects when a caller asks for one.
- A changed message id or address is put between the bytes before and behind it: one copy, the body
  is not looked at. `encode()` keeps what it made until the next change.
- Artemis's own messages keep their bytes: what was decoded and not changed is encoded equal.
- The bytes of a waiting message may be spilled to a file (`spill`). They are read back when a
  caller asks for more than queues need, and dropped from memory again later unless they changed.
- A million of these may wait: what few of them have, or a caller asked for, is in their `Parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import broker.model.core_layout as layout
import broker.model.message_bytes as walk
import broker.model.packed as packed
from broker.model.core_layout import (
    beginning,
    fitting_byte,
    fitting_long,
    fitting_user_id,
    written_properties,
)
from broker.model.encoding import Body, RecordFormatError
from broker.model.message_fields import MessageFields, Parts
from broker.model.message_types import MessageType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message_owners import SpillFile
    from broker.model.properties import Property

__all__ = [
    "GROUP_ID",
    "MEMORY_OVERHEAD",
    "PRIORITY_DEFAULT",
    "ROUTING_TYPE_PROPERTY",
    "MessageForm",
    "Parts",
]

_PACKET_HEADER_SIZE: Final = layout.PACKET_HEADER_SIZE
_END_OF_BODY_SIZE: Final = layout.END_OF_BODY_SIZE
_ID_SIZE: Final = layout.ID_SIZE
_USER_ID_SIZE: Final = layout.USER_ID_SIZE
_FIELDS_SIZE: Final = layout.FIELDS_SIZE
_TIMESTAMP_BEFORE: Final = layout.TIMESTAMP_BEFORE
_NO_BODY: Final = layout.NO_BODY

PRIORITY_DEFAULT: Final = 4
ROUTING_TYPE_PROPERTY: Final = "_AMQ_ROUTING_TYPE"
# Every queue asks every message for it.
GROUP_ID: Final = "_AMQ_GROUP_ID"

# Artemis counts 352 bytes for the object beside its buffer (CoreMessage.memoryOffset); ours,
# with its fields and the header of its bytes, takes less, and nothing for properties not looked at.
MEMORY_OVERHEAD: Final = 352
_MEMORY_OVERHEAD: Final = MEMORY_OVERHEAD

_NO_ROUTING: Final = walk.NO_ROUTING
_OTHERS: Final = walk.OTHERS

# Of `_changed`: not at all, the id alone, anything.
_UNCHANGED: Final = 0
_ID: Final = 1
_ALL: Final = 2
# Of `has_own_properties`: none, some but no group, any.
_NONE_OWN: Final = 0
_OWN_BUT_GROUP: Final = 1
_ANY_OWN: Final = 2


class MessageForm(MessageFields):
    """The bytes of one message and its fields, as `broker.model.message.Message` gives them."""

    __slots__ = ()

    def __init__(
        self,
        address: str | None = None,
        body: bytes = b"",
        *,
        type: int = MessageType.DEFAULT,
        durable: bool = False,
        priority: int = PRIORITY_DEFAULT,
        expiration: int = 0,
        timestamp: int = 0,
        user_id: bytes | None = None,
        message_id: int = 0,
        properties: Iterable[Property] = (),
    ) -> None:
        self._message_id = message_id
        self._address = address
        self._type: int = fitting_byte(type)
        self._durable = durable
        self._priority = fitting_byte(priority)
        self._expiration = fitting_long(expiration)
        # Until the first encode() these stand alone; then they are parts of `_data`.
        parts = Parts()
        self._parts: Parts | None = parts
        parts.body = body
        parts.user_id = fitting_user_id(user_id)
        parts.timestamp = fitting_long(timestamp)
        parts.properties = {item.name: item for item in properties}
        # The bytes, or the file that they were spilled to: then `_headers_at` is the place in it,
        # `_properties_at` the size.
        self._data: bytes | SpillFile | None = b""
        self._headers_at = 0
        self._properties_at = 0
        self._is_read_back = False
        self._changed = _ALL
        self.has_own_properties = _ANY_OWN
        self._routing = _OTHERS
        self.is_large = False
        self.references = 0
        self.durable_references = 0
        self.owner = None

    @classmethod
    def decode(cls, view: Body) -> Self:
        """Read a message, in the form of SESS_SEND, that fills `view`; the bytes are copied.

        Raises:
            RecordFormatError: these bytes are not a message.
        """
        message = cls.__new__(cls)
        message._read_form(bytes(view))
        return message

    def read(self, chunk: bytes, start: int, end: int, message_id: int) -> None:
        """Become the message, in the form of SESS_SEND, of chunk[start:end], with another id.

        For one that __new__() has made. The bytes are copied once.

        Raises:
            RecordFormatError: these bytes are not a message.
        """
        if start + _END_OF_BODY_SIZE > end:
            raise RecordFormatError(f"a message of {end - start} bytes")
        headers_at = walk.int_at(chunk, start) - _PACKET_HEADER_SIZE + _END_OF_BODY_SIZE
        if headers_at < _END_OF_BODY_SIZE or headers_at > end - start - _ID_SIZE:
            raise RecordFormatError(f"a body up to byte {headers_at} in {end - start} bytes")
        self._read(packed.with_long(chunk, start, end, start + headers_at, message_id), headers_at)

    @classmethod
    def decode_headers(cls, view: Body) -> Self:
        """Read headers and properties alone: a large message, whose `body` comes otherwise.

        Raises:
            RecordFormatError: these bytes are not valid headers.
        """
        message = cls.__new__(cls)
        message._read(_NO_BODY + view, _END_OF_BODY_SIZE)
        message.is_large = True
        return message

    def _read_form(self, data: bytes) -> None:
        if len(data) < _END_OF_BODY_SIZE:
            raise RecordFormatError(f"a message of {len(data)} bytes")
        headers_at = walk.int_at(data, 0) - _PACKET_HEADER_SIZE + _END_OF_BODY_SIZE
        if headers_at < _END_OF_BODY_SIZE or headers_at > len(data):
            raise RecordFormatError(f"a body up to byte {headers_at} in {len(data)} bytes")
        self._read(data, headers_at)

    def _read(self, data: bytes, headers_at: int) -> None:
        """Take the headers at `headers_at`; the properties behind them end the bytes."""
        at = headers_at
        try:
            self._message_id = walk.long_at(data, at)
            at += 9
            if data[at - 1]:
                size = walk.int_at(data, at)
                self._address = walk.text_at(data, at + 4, size)
                at += 4 + size
            else:
                self._address = None
            # Nor is the user id wanted by hardly anybody.
            at += 1 + _USER_ID_SIZE if data[at] else 1
            self._type = walk.byte_at(data, at)
            self._durable = data[at + 1] != 0
            self._expiration = walk.long_at(data, at + 2)
            # The timestamp as well stays among the bytes.
            self._priority = walk.byte_at(data, at + 18)
            at += 20
            end = walk.properties_end(data, at) if data[at - 1] else at
        except IndexError as error:
            raise RecordFormatError(f"a message's headers end at byte {len(data)}") from error
        if end != len(data):
            raise RecordFormatError(f"{len(data) - end} bytes behind a message's properties")
        self._data = data
        self._parts = None
        self._headers_at = headers_at
        self._properties_at = at - 1
        # Asked for several times on a message's way, and mostly not there: looked for once.
        self._routing = walk.own_routing(data, at) if end > at else _NO_ROUTING
        self.has_own_properties = _ANY_OWN if self._routing == _OTHERS else _NONE_OWN
        self._is_read_back = False
        self._changed = _UNCHANGED
        self.is_large = False
        self.references = 0
        self.durable_references = 0
        self.owner = None

    # One property, between the bytes of the others, which are not decoded.

    def _append(self, name: str, value: bytes) -> None:
        """Put a property behind all others, none of which has its name; `value` has its tag."""
        if not self._are_bytes_enough():
            self._put_together()
        self._put_headers(walk.encoded_name(name), value)
        self._have_other_bytes()

    def _cut_out(self, name: str) -> bool:
        """Take a property out; False, and nothing is done, where several have the name."""
        data = self.encode()
        at = self._properties_at
        rest = walk.without_property(data, at, walk.encoded_name(name))
        if rest is None or rest is data:
            return rest is data
        self._data = rest
        self._have_other_bytes()
        # Others are known by now to be well formed: mostly none is the broker's any more.
        self._routing = walk.own_routing(rest, at + 1) if rest[at] else _NO_ROUTING
        self.has_own_properties = _ANY_OWN if self._routing == _OTHERS else _NONE_OWN
        return True

    def _have_other_bytes(self) -> None:
        self._is_read_back = False
        # Nothing is to be rebuilt; but they are not the bytes that it was made of.
        self._changed = _ID
        self._forget_own()

    # Writing.

    def encode(self) -> bytes:
        """Give the form of SESS_SEND and SESS_RECEIVE_MSG; the same object until a change.

        Raises:
            RecordFormatError: a header or property does not fit its encoding.
        """
        if self._changed:
            if self._changed == _ID:
                self._put_id()
            else:
                self._rebuild()
        return self._bytes()

    def _bytes(self) -> bytes:
        """Give the bytes, read back if they were spilled.

        Raises:
            JournalIOError: the disk fails.
        """
        data = self._data
        return data if isinstance(data, bytes) else self._read_back(data)

    def _read_back(self, aside: SpillFile | None) -> bytes:
        assert aside is not None, "only a subclass has bytes that are still to be made"
        place = self._headers_at
        data = aside.read(place, self._properties_at)
        self._data = data
        self._is_read_back = True
        self._headers_at = walk.int_at(data, 0) - _PACKET_HEADER_SIZE + _END_OF_BODY_SIZE
        self._properties_at = self._user_id_at(data)
        self._properties_at += 1 + _USER_ID_SIZE if data[self._properties_at] else 1
        self._properties_at += _FIELDS_SIZE
        aside.was_read(self, place, len(data))
        return data

    def lies_in(self, aside: SpillFile, place: int) -> None:
        """Say that its bytes, which are in memory, are in a file as well: they may be forgotten."""
        self._is_read_back = True
        aside.was_read(self, place, len(self._bytes()))

    def spill(self, aside: SpillFile, place: int) -> None:
        """Forget the bytes of encode(), which are in a file now.

        Args:
            aside: the file.
            place: where in it.
        """
        data = self.encode()
        if self.has_own_properties and not self._may_have(GROUP_ID):
            self.has_own_properties = _OWN_BUT_GROUP
        self._lie_aside(aside, place, len(data))

    def forget_bytes(self, aside: SpillFile, place: int) -> None:
        """Forget again what was read back from there, unless it was changed since."""
        if self._is_read_back and not self._changed:
            self._lie_aside(aside, place, len(self._bytes()))

    def _lie_aside(self, aside: SpillFile, place: int, size: int) -> None:
        self._data = aside
        self._is_read_back = False
        self._headers_at = place
        self._properties_at = size
        self._parts = None

    def encode_headers(self) -> bytes:
        """Give headers and properties alone: SESS_SEND_LARGE, record 30."""
        return self.encode()[self._headers_at :]

    def _put_id(self) -> None:
        """Put the changed message id between the bytes before and behind it."""
        data = self._bytes()
        try:
            self._data = packed.with_long(data, 0, len(data), self._headers_at, self._message_id)
        except OverflowError as error:
            raise RecordFormatError(f"the message id does not fit: {error}") from error
        self._is_read_back = False
        self._changed = _UNCHANGED

    def _are_bytes_enough(self) -> bool:
        """Whether body and properties are those among the bytes, whatever the headers are."""
        parts = self._parts
        return parts is None or (parts.body is None and parts.properties is None)

    def _put_headers(self, name: bytes | None, value: bytes | None) -> None:
        """Put the headers between body and properties, and a property behind these.

        Args:
            name: of that property, encoded; None without one.
            value: of it, behind its tag.
        """
        data, parts = self._bytes(), self._parts
        address = None if self._address is None else walk.encoded_name(self._address)
        user_id, timestamp = self.user_id, self._timestamp()
        try:
            self._data = packed.with_headers(
                data,
                self._headers_at,
                self._properties_at,
                self._message_id,
                address,
                user_id,
                self._type,
                self._durable,
                self._expiration,
                timestamp,
                self._priority,
                name,
                value,
            )
        except OverflowError as error:
            raise RecordFormatError(f"a header of the message does not fit: {error}") from error
        at = self._headers_at + _ID_SIZE + 1 + _FIELDS_SIZE
        at += 1 if address is None else 5 + len(address)
        self._properties_at = at if user_id is None else at + _USER_ID_SIZE
        self._is_read_back = False
        self._changed = _UNCHANGED
        if parts is not None:
            parts.timestamp = None
            parts.user_id = True

    def _rebuild(self) -> None:
        """Make `_data` from the fields, untouched properties as they are."""
        if not self._are_bytes_enough():
            self._put_together()
        self._put_headers(None, None)

    def _put_together(self) -> None:
        """Make bytes of body and properties alone, and keep beside them what else counts."""
        body, user_id, timestamp = self.body, self.user_id, self._timestamp()
        parts = self._with_parts()
        if parts.properties is None:
            properties = self._bytes()[self._properties_at :]
        else:
            properties = written_properties(parts.properties.values())
        self._data = b"".join((beginning(len(body)), body, properties))
        self._headers_at = self._properties_at = _END_OF_BODY_SIZE + len(body)
        parts.body, parts.user_id, parts.timestamp = None, user_id, timestamp

    def copy(self) -> Self:
        """Give a message of its own with the same content, in no queue.

        Bytes are shared until one of the two changes.
        """
        kind = type(self)
        other = kind.__new__(kind)
        other._become(self)
        return other

    def _become(self, source: MessageForm) -> None:
        """Take everything of another message but what queues know of it."""
        self._message_id = source._message_id
        self._address = source._address
        self._type = source._type
        self._durable = source._durable
        self._priority = source._priority
        self._expiration = source._expiration
        # Before its places: they are those of the file, while the bytes lie there.
        self._data = source._bytes()
        self._headers_at = source._headers_at
        self._properties_at = source._properties_at
        self._is_read_back = False
        self._changed = source._changed
        self._parts = None
        known = source._parts
        if known is not None:
            parts = self._parts = Parts()
            parts.body = known.body
            parts.user_id = known.user_id
            parts.timestamp = known.timestamp
            parts.properties = None if known.properties is None else dict(known.properties)
            parts.large = known.large
        self.has_own_properties = source.has_own_properties
        self._routing = source._routing
        self.is_large = source.is_large
        self.references = self.durable_references = 0
        self.owner = None

    def _change(self) -> None:
        """The bytes are to be made anew."""
        self._changed = _ALL

    def _forget_own(self) -> None:
        """What was found out about the broker's own properties may not hold any more."""
        self.has_own_properties = _ANY_OWN
        self._routing = _OTHERS

    def _with_parts(self) -> Parts:
        """Give what is kept beside the bytes, to be changed."""
        if self._parts is None:
            self._parts = Parts()
        return self._parts

    def _may_have(self, name: str) -> bool:
        """Whether a name is anywhere in the bytes."""
        if not self.has_own_properties and name.startswith("_AMQ_"):
            return name == ROUTING_TYPE_PROPERTY and self._routing != _NO_ROUTING
        if name == GROUP_ID and self.has_own_properties == _OWN_BUT_GROUP:
            return False
        data = self._bytes()
        return data.find(walk.encoded_name(name), self._properties_at) >= 0

    def _encoded_size(self) -> int:
        if not self._changed and not isinstance(self._data, bytes):
            return self._properties_at
        return len(self.encode())

    def _memory_size(self) -> int:
        return self._encoded_size() + _MEMORY_OVERHEAD

    def give_id(self, message_id: int) -> None:
        """Set the id, in less time than an attribute takes."""
        if message_id != self._message_id:
            self._message_id = message_id
            if self._changed == _UNCHANGED:
                self._changed = _ID

    @property
    def user_id(self) -> bytes | None:
        """16 bytes, or None."""
        parts = self._parts
        known = True if parts is None else parts.user_id
        if known is True:
            data = self._bytes()
            at = self._user_id_at(data)
            return data[at + 1 : at + 1 + _USER_ID_SIZE] if data[at] else None
        assert not isinstance(known, bool), "only True says where it is"
        return known

    @user_id.setter
    def user_id(self, value: bytes | None) -> None:
        self._with_parts().user_id = fitting_user_id(value)
        self._change()

    def _user_id_at(self, data: bytes) -> int:
        """Give where the bytes say whether there is a user id.

        Behind their id and address, which may not be those that count any more.
        """
        at = self._headers_at + _ID_SIZE
        return at + 5 + walk.int_at(data, at + 1) if data[at] else at + 1

    def _timestamp(self) -> int:
        parts = self._parts
        if parts is not None and parts.timestamp is not None:
            return parts.timestamp
        data = self._bytes()
        return walk.long_at(data, self._properties_at - _TIMESTAMP_BEFORE)

    @property
    def body(self) -> memoryview:
        """The body's bytes; a view that stays as it is when the message changes."""
        parts = self._parts
        if parts is not None and parts.body is not None:
            return memoryview(parts.body)
        data = self._bytes()
        return memoryview(data)[_END_OF_BODY_SIZE : self._headers_at]

    @body.setter
    def body(self, value: bytes) -> None:
        self._with_parts().body = value
        self._change()
