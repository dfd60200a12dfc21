"""Records of page files: a message and the queues that have it.

    +-----+--------+-------+-------+---------+-------------+--------------+-----+
    | '{' | length | tx id | large | message | queue count | queue ids    | '}' |
    |  1  |   4    |   8   |   1   |    n    |      4      | 8 each       |  1  |
    +-----+--------+-------+-------+---------+-------------+--------------+-----+

Integers are big-endian, sizes in bytes. `length` is all between itself and the brace. The tx id is
-1 for a message that was sent alone. The message is the body of record 45, or for a large Core
message (`large` 1, or -1 as old versions wrote it) its headers behind their size.

A record's number in its page, from 0, and the number of the page are its position. Nothing marks
the end of a page: what is no whole record is a torn tail, or damage where more follows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.message import Message
from broker.message_bytes import text_at
from broker.storage.encoding import BodyReader, RecordFormatError
from broker.storage.stored_messages import Persister, read_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["NO_TX", "OVERHEAD", "PageEntry", "encode_entry", "entries", "entry_size"]

NO_TX: Final = -1
OVERHEAD: Final = 6  # Braces and length (PageReadWriter.SIZE_RECORD).

_START: Final = 0x7B
_END: Final = 0x7D
_NOT_LARGE, _LARGE, _LARGE_OLD = 0, 1, -1

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_ID_AND_FLAG: Final = struct.Struct(">qB")
_HEAD: Final = struct.Struct(">Biqb")  # '{', length, tx id, large.
_HEAD_SIZE: Final = 14


class PageEntry(NamedTuple):
    """One record, of bytes that somebody else holds.

    Attributes:
        number: in its page, from 0.
        tx_id: of the transaction it was sent in; NO_TX alone.
        is_large: its body is elsewhere.
        is_core: a Core message; others cannot be read here and stay where they are.
        message_at: where the message begins in the bytes.
        message_size: of it.
        queue_ids: queues that have it.
        end: where the next record begins.
    """

    number: int
    tx_id: int
    is_large: bool
    is_core: bool
    message_at: int
    message_size: int
    queue_ids: tuple[int, ...]
    end: int

    def message(self, data: bytes) -> Message:
        """Decode its message; the body of a large one is for the caller to find.

        Raises:
            RecordFormatError: these bytes are no Core message.
        """
        at, end = self.message_at, self.message_at + self.message_size
        view = memoryview(data)
        if self.is_large:
            return Message.decode_headers(view[at:end])
        # As Message.from_record(), without its copies: the bytes are those of a whole page.
        message_id, has_address = _ID_AND_FLAG.unpack_from(data, at + 1)
        at += 10
        if has_address:
            size = _INT.unpack_from(data, at)[0]
            address = text_at(data, at + 4, size)
            at += 4 + size
        message = Message.decode(view[at + 4 : end])
        message.message_id = message_id
        if has_address:
            message.address = address
        return message

    def message_id(self, data: bytes) -> int:
        """Give the message's id without decoding it."""
        at = self.message_at if self.is_large else self.message_at + 1
        return int(_LONG.unpack_from(data, at)[0])


def encode_entry(message: Message, queue_ids: Sequence[int], tx_id: int = NO_TX) -> bytes:
    """Give the record of a message for these queues, the durable ones first.

    Raises:
        RecordFormatError: the message does not fit its encoding.
    """
    if message.is_large:
        headers = message.encode_headers()
        body = _INT.pack(len(headers)) + headers
        large = _LARGE
    else:
        body = message.record()
        large = _NOT_LARGE
    count = len(queue_ids)
    tail = struct.pack(f">i{count}qB", count, *queue_ids, _END)
    return b"".join((_HEAD.pack(_START, 8 + len(body) + len(tail), tx_id, large), body, tail))


def entry_size(data: bytes, at: int) -> int:
    """Give the bytes that the record at `at` takes by its length; 0 where these do not tell it."""
    if len(data) - at < 5 or data[at] != _START:
        return 0
    length = int(_INT.unpack_from(data, at + 1)[0])
    return length + OVERHEAD if length > 0 else 0


def entries(data: bytes, at: int, number: int) -> Iterator[PageEntry]:
    """Give the whole records of some bytes, as far as they are whole.

    Args:
        data: of a page.
        at: where a record begins.
        number: of that record.
    """
    size = len(data)
    unpack = _HEAD.unpack_from
    while size - at > _HEAD_SIZE:
        start, length, tx_id, large = unpack(data, at)
        stop = at + 5 + length
        if start != _START or length <= 0 or stop >= size or data[stop] != _END:
            return
        try:
            entry = _entry(data, at + _HEAD_SIZE, stop, number, tx_id, large)
        except (struct.error, IndexError):
            return
        if entry is None:
            return
        yield entry
        number += 1
        at = stop + 1


def _entry(
    data: bytes, at: int, stop: int, number: int, tx_id: int, large: int
) -> PageEntry | None:
    """Walk over the message at `at`; None where record and message do not fit each other."""
    is_large = large in (_LARGE, _LARGE_OLD)
    is_core = is_large or data[at] == Persister.CORE
    if is_large:
        begin = at + 4
        end = begin + int(_INT.unpack_from(data, at)[0])
    else:
        begin = at
        end = _core_end(data, at) if is_core else _other_end(data, at, stop)
    if not begin <= end <= stop - 4:
        return None
    count = _INT.unpack_from(data, end)[0]
    if count < 0 or end + 4 + 8 * count != stop:
        return None
    if count == 1:
        ids: tuple[int, ...] = _LONG.unpack_from(data, end + 4)
    else:
        ids = struct.unpack_from(f">{count}q", data, end + 4)
    return PageEntry(number, tx_id, is_large, is_core, begin, end - begin, ids, stop + 1)


def _core_end(data: bytes, at: int) -> int:
    """Give where a Core message ends: behind persister, id and address stands its size."""
    has_address = data[at + 9]
    at += 10
    if has_address:
        at += 4 + int(_INT.unpack_from(data, at)[0])
    return at + 4 + int(_INT.unpack_from(data, at)[0])


def _other_end(data: bytes, at: int, stop: int) -> int:
    reader = BodyReader(memoryview(data)[at:stop])
    try:
        read_message(reader)
    except RecordFormatError:
        return -1
    return at + reader.offset
