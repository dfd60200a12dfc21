"""The layout of a Core message: its sizes, and how it is written.

    form of SESS_SEND and SESS_RECEIVE_MSG, integers big-endian, sizes in bytes
    +-------------+------+------------+---------+---------+------+---------+------------+
    | end of body | body | message id | address | user id | type | durable | expiration |
    |      4      |  n   |     8      |   NSS   | 1 or 17 |  1   |    1    |     8      |
    +-------------+------+------------+---------+---------+------+---------+------------+
    | timestamp | priority | properties |      end of body = 13 + n: it counts a packet's header
    |     8     |    1     |            |
    +-----------+----------+------------+

message_form.py reads it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import broker.model.packed as packed
from broker.model.encoding import BodyWriter, RecordFormatError
from broker.model.message_bytes import encoded_name
from broker.model.properties import TYPED_PROPERTIES, Property, PropertyType

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "END_OF_BODY_SIZE",
    "FIELDS_SIZE",
    "ID_SIZE",
    "NO_BODY",
    "PACKET_HEADER_SIZE",
    "TIMESTAMP_BEFORE",
    "USER_ID_SIZE",
    "beginning",
    "fitting_byte",
    "fitting_long",
    "fitting_user_id",
    "written",
    "written_properties",
]

# `end of body` counts from the start of a packet, 13 bytes before itself.
PACKET_HEADER_SIZE: Final = 13
END_OF_BODY_SIZE: Final = 4
ID_SIZE: Final = 8
USER_ID_SIZE: Final = 16
_INT: Final = struct.Struct(">i")
# type, durable, expiration, timestamp, priority. Behind them: the flag of the properties.
_FIELDS: Final = struct.Struct(">bBqqb")
_STRING: Final = PropertyType.STRING
_BYTES: Final = PropertyType.BYTES
_STRING_TAG: Final = bytes((PropertyType.STRING,))
_BYTES_TAG: Final = bytes((PropertyType.BYTES,))
# Tag and value of those that are whole numbers, by tag.
_NUMBERS: Final = [
    struct.Struct(form) if form else None
    for form in ("", "", ">b?", ">bb", "", ">bh", ">bi", ">bq", "", "", "", "")
]
# In front of properties: whether there are, and how many.
_COUNT_SIZE: Final = 5
NO_BODY: Final = _INT.pack(PACKET_HEADER_SIZE)
"""What the bytes of a message without a body begin with."""
FIELDS_SIZE: Final = _FIELDS.size
# From the timestamp to that flag.
TIMESTAMP_BEFORE: Final = 9


def fitting_byte(value: int) -> int:
    """Give a header's number of one byte.

    Raises:
        RecordFormatError: it is none.
    """
    return _fitting(value, 7)


def fitting_long(value: int) -> int:
    """Give a header's number of eight bytes.

    Raises:
        RecordFormatError: it is none.
    """
    return _fitting(value, 63)


def _fitting(value: int, bits: int) -> int:
    if not -1 << bits <= value < 1 << bits:
        raise RecordFormatError(f"a header of the message does not fit: {value}")
    return value


def fitting_user_id(value: bytes | None) -> bytes | None:
    """Give a user id, or None.

    Raises:
        RecordFormatError: it is none.
    """
    if value is not None and len(value) != USER_ID_SIZE:
        raise RecordFormatError(f"a user id has 16 bytes, not {len(value)}")
    return value


def beginning(body_size: int) -> bytes:
    """Give what stands in front of a body.

    Args:
        body_size: bytes of it.

    Raises:
        RecordFormatError: no message can have so many.
    """
    try:
        return _INT.pack(body_size + PACKET_HEADER_SIZE)
    except struct.error as error:
        raise RecordFormatError(f"a body of {body_size} bytes: {error}") from error


def written(
    body: memoryview,
    message_id: int,
    address: str | None,
    user_id: bytes | None,
    type: int,
    durable: int,
    expiration: int,
    timestamp: int,
    priority: int,
    properties: memoryview,
) -> bytes:
    """Give a message's bytes.

    Args:
        body: as its type has it.
        message_id: the broker's number.
        address: where it was sent.
        user_id: 16 bytes, or None.
        type: a `MessageType`.
        durable: whether it is, as a number.
        expiration: ms since 1970.
        timestamp: ms since 1970.
        priority: 0 … 9.
        properties: as they are encoded, their flag before them.

    Raises:
        RecordFormatError: a header does not fit its encoding.
    """
    at = END_OF_BODY_SIZE + len(body)
    try:
        return packed.with_headers(
            b"".join((beginning(len(body)), body, properties)),
            at,
            at,
            message_id,
            None if address is None else encoded_name(address),
            user_id,
            type,
            durable,
            expiration,
            timestamp,
            priority,
            None,
            None,
        )
    except OverflowError as error:
        raise RecordFormatError(f"a header of the message does not fit: {error}") from error


def written_properties(properties: Collection[Property]) -> bytes:
    """Give properties as they are encoded, their flag before them.

    Raises:
        RecordFormatError: one does not fit its type.
    """
    if not properties:
        return b"\0"
    pack = _INT.pack
    parts = [b"\1", pack(len(properties))]
    for item in properties:
        name, kind, value = item
        units = encoded_name(name)
        number = _NUMBERS[kind]
        if number is not None:
            try:
                parts += (pack(len(units)), units, number.pack(kind, value))
            except struct.error as error:
                raise RecordFormatError(
                    f"{value!r} does not fit {number.size - 1} bytes"
                ) from error
        elif kind is _STRING and isinstance(value, str):
            text = value.encode("utf-16-le", "surrogatepass")
            parts += (pack(len(units)), units, _STRING_TAG, pack(len(text)), text)
        elif kind is _BYTES and isinstance(value, bytes):
            # Of each message that goes to another broker.
            parts += (pack(len(units)), units, _BYTES_TAG, pack(len(value)), value)
        else:
            writer = BodyWriter()
            TYPED_PROPERTIES.write(writer, (item,))
            parts.append(writer.getvalue()[_COUNT_SIZE:])
    return b"".join(parts)
