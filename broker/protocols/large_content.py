"""Bodies for clients without types: unpacked, a text as UTF-8, a large one piece by piece."""

from __future__ import annotations

import codecs
import logging
import zlib
from typing import TYPE_CHECKING, Final

from broker.model.encoding import RecordFormatError
from broker.model.large_body import LARGE_COMPRESSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody
    from broker.model.message import Message

__all__ = ["CHUNK_SIZE", "LargeContent", "unpacked"]

log = logging.getLogger("broker")

CHUNK_SIZE: Final = 64 * 1024
# Of the flag and the length in front of a text (NSS).
_TEXT_HEADER_SIZE: Final = 5
# An unpacked piece; the rest of what was read waits.
_UNPACKED_MAX: Final = 256 * 1024
# A compressed body that is not kept as a large one is unpacked up to this size; else it is sent as
# it is.
_UNPACKED_WHOLE_MAX: Final = 128 * 1024 * 1024


class LargeContent:
    """Reads one body once. Its pieces come by next(), after is_ready() has said so.

    Args:
        body: of the message.
        is_text: it is a text, as Core's clients write one.
        is_compressed: it is a zlib stream.
    """

    def __init__(self, body: LargeBody, *, is_text: bool, is_compressed: bool) -> None:
        self._body = body
        self._offset = 0
        self._unpacker = zlib.decompressobj() if is_compressed else None
        self._unread = b""
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("surrogatepass")
        self._is_text = is_text
        self._text_header = b""

    @property
    def is_at_end(self) -> bool:
        """Whether all of it was given."""
        return self._offset >= self._body.size and not self._unread

    def is_ready(self, callback: Callable[[], object]) -> bool:
        """Whether next() gives a piece without waiting; else `callback()` when to ask again."""
        return bool(self._unread) or self._body.is_ready(self._offset, CHUNK_SIZE, callback)

    def next(self) -> bytes:
        """Give the next piece; it may be empty.

        Raises:
            JournalIOError: the body cannot be read.
            RecordFormatError: it is not what the message says.
        """
        data = self._unread
        self._unread = b""
        if not data:
            data = self._body.read(self._offset, CHUNK_SIZE)
            if not data and self._offset < self._body.size:
                raise RecordFormatError(f"a body ends at byte {self._offset} of {self._body.size}")
            self._offset += len(data)
        if self._unpacker is not None:
            data = self._unpack(self._unpacker, data)
        return self._decode(data) if self._is_text else data

    def _unpack(self, unpacker: zlib._Decompress, data: bytes) -> bytes:
        try:
            made = unpacker.decompress(data, _UNPACKED_MAX)
        except zlib.error as error:
            raise RecordFormatError(f"a compressed body cannot be unpacked: {error}") from error
        self._unread = unpacker.unconsumed_tail
        if self.is_at_end and not unpacker.eof:
            raise RecordFormatError("a compressed body ends too early")
        return made

    def _decode(self, data: bytes) -> bytes:
        missing = _TEXT_HEADER_SIZE - len(self._text_header)
        if missing:
            self._text_header += data[:missing]
            data = data[missing:]
            if self._text_header[:1] not in (b"", b"\1"):
                raise RecordFormatError("a text that is none")
        try:
            text = self._decoder.decode(data, self.is_at_end)
        except UnicodeDecodeError as error:
            raise RecordFormatError(f"a text cannot be read: {error}") from error
        return text.encode("utf-8", "replace")


def unpacked(message: Message) -> bytes:
    """Give the body of a regular message, unpacked where its sender compressed it."""
    body = bytes(message.body)
    if message.get(LARGE_COMPRESSED) is not True:
        return body
    unpacker = zlib.decompressobj()
    try:
        made = unpacker.decompress(body, _UNPACKED_WHOLE_MAX)
    except zlib.error as error:
        log.warning("message %d is sent as it is: %s", message.message_id, error)
        return body
    return made if unpacker.eof else body
