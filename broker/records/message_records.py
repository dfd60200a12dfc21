"""The records of the message journal, except the messages themselves (`stored_messages.py`).

Layouts: docs/format/records.md. An update's record id is that of the message it belongs to, for a
page transaction that of the record it counts down.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from broker.model.encoding import (
    BOOLEAN,
    BYTE,
    BYTES,
    INT,
    LONG,
    REST,
    SS,
    BodyReader,
    BodyWriter,
    Codec,
    RecordFormatError,
    enumerated,
)
from broker.model.wire import RecordType, WireRecord, nested, wire
from broker.model.xid import Xid

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class LargeMessagePending(WireRecord):
    """Written by old versions while a large message was arriving; deleted at load."""

    record_type = RecordType.ADD_LARGE_MESSAGE_PENDING

    message_id: int = wire(LONG)


@dataclass(frozen=True, slots=True)
class OldMessage(WireRecord):
    """A message of an obsolete version, whose layout is not read any more."""

    record_type = RecordType.ADD_MESSAGE

    body: bytes = wire(REST)


@dataclass(frozen=True, slots=True)
class MessageBodyChunk(WireRecord):
    """Part of a large message's body, written as an event for the retention history."""

    record_type = RecordType.ADD_MESSAGE_BODY

    body: bytes = wire(REST)


@dataclass(frozen=True, slots=True)
class AddRef(WireRecord):
    """The message was routed to this queue."""

    record_type = RecordType.ADD_REF

    queue_id: int = wire(LONG)


@dataclass(frozen=True, slots=True)
class AcknowledgeRef(WireRecord):
    """The message left this queue."""

    record_type = RecordType.ACKNOWLEDGE_REF

    queue_id: int = wire(LONG)


@dataclass(frozen=True, slots=True)
class DeliveryCount(WireRecord):
    """How often the message was delivered from this queue; the latest counts."""

    record_type = RecordType.UPDATE_DELIVERY_COUNT

    queue_id: int = wire(LONG)
    count: int = wire(INT)


@dataclass(frozen=True, slots=True)
class PageTransaction(WireRecord):
    """The add record: a committed transaction put so many durable references into pages."""

    record_type = RecordType.PAGE_TRANSACTION

    tx_id: int = wire(LONG)
    number_of_messages: int = wire(INT)


@dataclass(frozen=True, slots=True)
class PageTransactionUpdate(WireRecord):
    """The update record: so many of the transaction's messages have left the pages."""

    record_type = RecordType.PAGE_TRANSACTION

    tx_id: int = wire(LONG)
    records: int = wire(INT)


@dataclass(frozen=True, slots=True)
class ScheduledDelivery(WireRecord):
    """This queue delivers the message at `time`, in ms since 1970; the latest counts."""

    record_type = RecordType.SET_SCHEDULED_DELIVERY_TIME

    queue_id: int = wire(LONG)
    time: int = wire(LONG)


@dataclass(frozen=True, slots=True)
class DuplicateId(WireRecord):
    """An id that this address has seen and will not accept again.

    Whose it is stands behind what Artemis writes, which reads no further. Recovery needs it.
    """

    record_type = RecordType.DUPLICATE_ID

    address: str = wire(SS)
    duplicate_id: bytes = wire(BYTES)
    message_id: int = wire(LONG, default=0)


def encode_duplicate_id(address: str, duplicate_id: bytes, message_id: int) -> bytes:
    """Give the body of a `DuplicateId`; an address is encoded once.

    Raises:
        RecordFormatError: the address does not fit its encoding.
    """
    size, owner = _INT.pack(len(duplicate_id)), _LONG.pack(message_id)
    return _encoded_address(address) + size + duplicate_id + owner


@functools.lru_cache(maxsize=1000)
def _encoded_address(address: str) -> bytes:
    writer = BodyWriter()
    SS.write(writer, address)
    return writer.getvalue()


@dataclass(frozen=True, slots=True)
class HeuristicCompletion(WireRecord):
    """An operator ended this prepared transaction."""

    record_type = RecordType.HEURISTIC_COMPLETION

    xid: Xid = wire(nested(Xid))
    is_commit: bool = wire(BOOLEAN)


@dataclass(frozen=True, slots=True)
class AcknowledgeCursor(WireRecord):
    """The queue has acknowledged one paged message."""

    record_type = RecordType.ACKNOWLEDGE_CURSOR

    queue_id: int = wire(LONG)
    page_nr: int = wire(LONG)
    message_nr: int = wire(INT)


@dataclass(frozen=True, slots=True)
class PageCounterValue(WireRecord):
    """How many paged messages, and bytes, the queue had."""

    record_type = RecordType.PAGE_CURSOR_COUNTER_VALUE

    queue_id: int = wire(LONG)
    value: int = wire(LONG)
    persistent_size: int = wire(LONG, default=0)


@dataclass(frozen=True, slots=True)
class PageCounterInc(WireRecord):
    """A change of the queue's page counter, as old versions wrote it."""

    record_type = RecordType.PAGE_CURSOR_COUNTER_INC

    queue_id: int = wire(LONG)
    inc: int = wire(INT)
    persistent_size: int = wire(LONG, default=0)


@dataclass(frozen=True, slots=True)
class PageComplete(WireRecord):
    """The queue has acknowledged every message of this page; `message_nr` is how many there are."""

    record_type = RecordType.PAGE_CURSOR_COMPLETE

    queue_id: int = wire(LONG)
    page_nr: int = wire(LONG)
    message_nr: int = wire(INT)


@dataclass(frozen=True, slots=True)
class PageCounterPending(WireRecord):
    """A page whose messages the queue's counter lacks, as old versions wrote it."""

    record_type = RecordType.PAGE_CURSOR_PENDING_COUNTER

    queue_id: int = wire(LONG)
    page_id: int = wire(LONG)


class AckReason(IntEnum):
    """Why a reference was acknowledged."""

    NORMAL = 0
    KILLED = 1
    EXPIRED = 2
    REPLACED = 3


def _read_version(reader: BodyReader) -> int:
    version = reader.read_byte()
    if version != 0:
        raise reader.fail(f"map record of version {version}")
    return version


def _read_node_id(reader: BodyReader) -> str | None:
    data = reader.read_sized_bytes()
    if not data.isascii():
        raise reader.fail("node id is not ASCII")
    return data.decode("ascii") or None


def _write_node_id(writer: BodyWriter, value: str | None) -> None:
    try:
        writer.write_sized_bytes((value or "").encode("ascii"))
    except UnicodeEncodeError as error:
        raise RecordFormatError(f"node id {value!r} is not ASCII") from error


_VERSION: Final = Codec(_read_version, BodyWriter.write_byte)
_NODE_ID: Final = Codec(_read_node_id, _write_node_id)


@dataclass(frozen=True, slots=True)
class AckRetry(WireRecord):
    """An acknowledgement from a mirror that found no message yet; `collection_id` is the queue."""

    record_type = RecordType.ACK_RETRY

    record_id: int = wire(LONG)
    version: int = wire(_VERSION)
    collection_id: int = wire(LONG)
    node_id: str | None = wire(_NODE_ID)
    message_id: int = wire(LONG)
    reason: AckReason = wire(enumerated(AckReason, BYTE))
