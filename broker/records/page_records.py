"""Records of page files: a message and the queues that have it.

    +-----+--------+-------+-------+---------+-------------+--------------+-----+
    | '{' | length | tx id | large | message | queue count | queue ids    | '}' |
    |  1  |   4    |   8   |   1   |    n    |      4      | 8 each       |  1  |
    +-----+--------+-------+-------+---------+-------------+--------------+-----+

Integers are big-endian, sizes in bytes. `length` is all between itself and the brace. The tx id is
-1 for a message that was sent alone. The message is the body of record 45, of a large AMQP one too
(`large` 2), or for a large Core message (`large` 1, or -1 as old versions wrote it) its headers
behind their size.

A record's number in its page, from 0, and the number of the page are its position. Nothing marks
the end of a page: what is not a whole record is a torn tail, or damage where more follows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import broker.model.message_bytes as walk
from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.message import Message
from broker.model.message_types import Persister
from broker.records.persisters import message_of_record
from broker.records.stored_messages import read_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "NO_TX",
    "OVERHEAD",
    "PageEntries",
    "PageEntry",
    "encode_entry",
    "entries",
    "entry_size",
]

NO_TX: Final = -1
OVERHEAD: Final = 6  # Braces and length (PageReadWriter.SIZE_RECORD).

_START: Final = 0x7B
_END: Final = 0x7D
_NOT_LARGE, _LARGE, _LARGE_OLD, _LARGE_OTHER = 0, 1, -1, 2

_INT: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">Biqb")  # '{', length, tx id, large.
_HEAD_SIZE: Final = 14
# Brace and length.
_LENGTH_END: Final = 5
# As a plain int: every record is asked for it.
_CORE: Final = int(Persister.CORE)
_AMQP_LARGE: Final = int(Persister.AMQP_LARGE)


class PageEntry:
    """One record, of bytes that another object holds.

    Attributes:
        number: in its page, from 0.
        tx_id: of the transaction it was sent in; NO_TX alone.
        is_large: its body is elsewhere.
        is_core: a Core message; others are read by their persister.
        message_at: where the message begins in the bytes.
        message_size: of it.
        queue_ids: queues that have it.
        end: where the next record begins.
    """

    __slots__ = (
        "end",
        "is_core",
        "is_large",
        "message_at",
        "message_size",
        "number",
        "queue_ids",
        "tx_id",
    )

    def fill(
        self,
        number: int,
        tx_id: int,
        is_large: bool,
        is_core: bool,
        message_at: int,
        message_end: int,
        queue_ids: tuple[int, ...],
        end: int,
    ) -> None:
        """Say what it is. In place of __init__, which costs more."""
        self.number = number
        self.tx_id = tx_id
        self.is_large = is_large
        self.is_core = is_core
        self.message_at = message_at
        self.message_size = message_end - message_at
        self.queue_ids = queue_ids
        self.end = end

    def message(self, data: bytes) -> Message:
        """Decode its message; the body of a large one is for the caller to find.

        Raises:
            RecordFormatError: these bytes are not a message of its kind.
            UnsupportedMessage: it is of a kind that is not read here.
        """
        at, end = self.message_at, self.message_at + self.message_size
        if not self.is_core:
            return message_of_record(data[at:end])
        if self.is_large:
            return Message.decode_headers(data[at:end])
        # As Message.from_record(), without its copies: the bytes are those of a whole page.
        address = None
        message_id = walk.long_at(data, at + 1)
        has_address = data[at + 9]
        at += 10
        if has_address:
            size = walk.int_at(data, at)
            address = walk.text_at(data, at + 4, size)
            at += 4 + size
        message = Message.__new__(Message)
        message.read(data, at + 4, end, message_id)
        if address is not None:
            message.address = address
        return message

    def message_id(self, data: bytes) -> int:
        """Give the message's id without decoding it."""
        return walk.long_at(data, self.message_at + (0 if self.is_large_core else 1))

    @property
    def is_large_core(self) -> bool:
        """Whether its message is the headers of a large Core one, else the body of record 45."""
        return self.is_large and self.is_core


def encode_entry(message: Message, queue_ids: Sequence[int], tx_id: int = NO_TX) -> bytes:
    """Give the record of a message for these queues, the durable ones first.

    Raises:
        RecordFormatError: the message does not fit its encoding.
    """
    if message.is_large and message.is_large_core:
        headers = message.encode_headers()
        body = _INT.pack(len(headers)) + headers
        large = _LARGE
    else:
        body = message.record()
        large = _LARGE_OTHER if message.is_large else _NOT_LARGE
    count = len(queue_ids)
    tail = struct.pack(f">i{count}qB", count, *queue_ids, _END)
    return b"".join((_HEAD.pack(_START, 8 + len(body) + len(tail), tx_id, large), body, tail))


def entry_size(data: bytes, at: int) -> int:
    """Give the bytes that the record at `at` takes by its length; 0 where these do not tell it."""
    if len(data) - at < 5 or data[at] != _START:
        return 0
    length = walk.int_at(data, at + 1)
    return length + OVERHEAD if length > 0 else 0


def entries(data: bytes, at: int, number: int) -> Iterator[PageEntry]:
    """Give the whole records of some bytes, as far as they are whole.

    Args:
        data: of a page.
        at: where a record begins.
        number: of that record.
    """
    found = PageEntries(data, at, number)
    while (entry := found.next()) is not None:
        yield entry


class PageEntries:
    """Walks over the whole records of some bytes, as entries() does, one call a record.

    Args:
        data: of a page.
        at: where a record begins.
        number: of that record.
    """

    __slots__ = ("_at", "_data", "_number")

    def __init__(self, data: bytes, at: int, number: int) -> None:
        self._data = data
        self._at = at
        self._number = number

    def next(self) -> PageEntry | None:
        """Give the next record; None from where they are no more whole."""
        data, at = self._data, self._at
        size = len(data)
        if size - at <= _HEAD_SIZE:
            return None
        begin = at + _LENGTH_END
        stop = begin + walk.int_at(data, at + 1)
        if data[at] != _START or stop <= begin or stop >= size or data[stop] != _END:
            return None
        try:
            entry = _entry(data, at, stop, self._number)
        except IndexError:
            return None
        if entry is not None:
            self._number += 1
            self._at = stop + 1
        return entry


def _entry(data: bytes, at: int, stop: int, number: int) -> PageEntry | None:
    """Walk over the record from `at` to its brace at `stop`.

    None where record and message do not fit each other.

    Raises:
        IndexError: the same.
    """
    tx_id = walk.long_at(data, at + _LENGTH_END)
    large = walk.byte_at(data, at + _HEAD_SIZE - 1)
    begin = at + _HEAD_SIZE
    is_large_core = large in (_LARGE, _LARGE_OLD)
    is_core = is_large_core or data[begin] == _CORE
    if is_large_core:
        begin += 4
        end = begin + walk.int_at(data, begin - 4)
    elif is_core:
        end = _core_end(data, begin)
    else:
        end = _other_end(data, begin, stop)
    if end < begin or end > stop - 4:
        return None
    count = walk.int_at(data, end)
    if count < 0 or end + 4 + 8 * count != stop:
        return None
    if count == 1:
        ids: tuple[int, ...] = (walk.long_at(data, end + 4),)
    else:
        ids = struct.unpack_from(f">{count}q", data, end + 4)
    entry = PageEntry.__new__(PageEntry)
    is_large = is_large_core or (not is_core and data[begin] == _AMQP_LARGE)
    entry.fill(number, tx_id, is_large, is_core, begin, end, ids, stop + 1)
    return entry


def _core_end(data: bytes, at: int) -> int:
    """Give where a Core message ends: behind persister, id and address stands its size.

    Below `at` where a size is none.
    """
    has_address = data[at + 9]
    at += 10
    if has_address:
        size = walk.int_at(data, at)
        if size < 0:
            return -1
        at += 4 + size
    size = walk.int_at(data, at)
    return -1 if size < 0 else at + 4 + size


def _other_end(data: bytes, at: int, stop: int) -> int:
    reader = BodyReader(memoryview(data)[at:stop])
    try:
        read_message(reader)
    except RecordFormatError:
        return -1
    return at + reader.offset
