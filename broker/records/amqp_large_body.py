"""The body of a large AMQP message, as Core's consumers read it; it is kept as its peer sent it.

    stored      head │ data 00 53 75 b0 … │ data 00 53 75 b0 … │ footer
                            ╰─ content ─╯          ╰─ content ─╯
    read()      bytes: the contents, one behind another │ an object: its size before them
                a text: in the encoding of Core, piece by piece
                a map, stream or any other value: converted as a whole while it is held

Nothing is converted until it is read.
"""

from __future__ import annotations

import codecs
import errno
from typing import TYPE_CHECKING, Final

from broker.model.bodies import encode_text
from broker.model.encoding import RecordFormatError
from broker.model.message_types import MessageType
from broker.records.amqp_sections import BODY_START_MAX, BodyStart, body_start
from broker.records.amqp_to_core import body_type, core_body
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.large_body import LargeBody, LargeCopy

__all__ = ["AmqpLargeBody", "StoredPart"]

_CHUNK_SIZE: Final = 64 * 1024
_TEXT_HEADER_SIZE: Final = len(encode_text(""))
# Consumers that read one text at the same time without beginning anew.
_CURSORS_MAX: Final = 4


class StoredPart:
    """What of a stored body begins at some byte: a `LargeBody` to be read."""

    def __init__(self, stored: LargeBody, start: int) -> None:
        self._stored = stored
        self._start = start
        self.size = stored.size - start

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """See LargeBody."""
        return self._stored.is_ready(self._start + offset, size, callback)

    def read(self, offset: int, size: int) -> bytes:
        """See LargeBody."""
        return self._stored.read(self._start + offset, size)

    def hold(self) -> None:
        """See LargeBody."""
        self._stored.hold()

    def release(self) -> None:
        """See LargeBody."""
        self._stored.release()

    def copy(self, message_id: int) -> LargeCopy:
        """See LargeBody; of all that is stored."""
        return self._stored.copy(message_id)

    def delete(self) -> None:
        """See LargeBody; all that is stored."""
        self._stored.delete()


class _TextCursor:
    """The position of one reader of a text."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Bytes of the content that were read, and of the text that were given.
        self.content_at = 0
        self.offset = _TEXT_HEADER_SIZE
        self.data = b""


class _ArrivingText:
    """The size of a text that comes, in the encoding of Core.

    Args:
        content_size: bytes of UTF-8 that come.
    """

    def __init__(self, content_size: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = content_size
        self._size = _TEXT_HEADER_SIZE

    def take(self, data: bytes) -> int:
        """Count the next bytes; the size of all, -1 before they have come."""
        data = data[: self._left]
        self._left -= len(data)
        self._size += len(self._decoder.decode(data, not self._left).encode("utf-16-le"))
        return -1 if self._left else self._size


class AmqpLargeBody:
    """See the module's text. Implements `LargeBody`, and `LargeCopy` of one that comes.

    Args:
        stored: all sections of the message, as they came.
        body_at: where its body begins in them.
        content_type: as the message says.

    Attributes:
        stored: as given.
    """

    def __init__(self, stored: LargeBody, body_at: int, content_type: str | None) -> None:
        self.stored = stored
        self._body_at = body_at
        self._content_type = content_type
        # Offset and size of each content; the bytes before all of them.
        self._contents: list[tuple[int, int]] | None = None
        self._kind = MessageType.BYTES
        self._prefix = b""
        self._size = -1
        self._arriving: _ArrivingText | None = None
        self._cursors: list[_TextCursor] = []
        self._holders = 0
        self._whole: bytes | None = None

    # --- while it comes -----------------------------------------------------------------------

    def begin(self, start: bytes) -> None:
        """Note what is stored first: a text is counted while it comes, not read for its size.

        Args:
            start: where the body has begun.
        """
        found = body_start(start[self._body_at :])
        if found is not None and found.section == "value" and found.type == "string":
            self._arriving = _ArrivingText(found.content_size)
            self.append(start[self._body_at + found.content_at :])

    def append(self, data: bytes) -> None:
        """Note what is stored next; it has begun."""
        if self._arriving is not None and self._size < 0:
            self._size = self._arriving.take(data)

    # --- what is there ------------------------------------------------------------------------

    def look(self) -> tuple[int, int]:
        """Give the type of Core that it has, and what it was (JMS_AMQP_ORIGINAL_ENCODING).

        Raises:
            JournalIOError: it cannot be read.
        """
        self.stored.hold()
        try:
            start = self._start_at(self._body_at)
        finally:
            self.stored.release()
        return (MessageType.BYTES, 0) if start is None else body_type(start, self._content_type)

    def _start_at(self, offset: int) -> BodyStart | None:
        try:
            return body_start(self.stored.read(offset, BODY_START_MAX))
        except RecordFormatError:
            return None

    def _scan(self) -> list[tuple[int, int]]:
        """Find the contents; none where it is converted as a whole."""
        if self._contents is not None:
            return self._contents
        found: list[tuple[int, int]] = []
        at = self._body_at
        first = start = self._start_at(at)
        while start is not None and start.type in ("binary", "string"):
            found.append((at + start.content_at, start.content_size))
            at += start.content_at + start.content_size
            start = (
                self._start_at(at) if start.section == "data" and at < self.stored.size else None
            )
        if first is not None:
            self._kind = MessageType(body_type(first, self._content_type)[0])
        if self._kind is MessageType.OBJECT:
            self._prefix = sum(size for _, size in found).to_bytes(4, "big")
        self._contents = found
        return found

    @property
    def _content_size(self) -> int:
        return sum(size for _, size in self._scan())

    @property
    def size(self) -> int:
        """Bytes, as Core's consumers get them; after a restart a text is counted by reading it."""
        if self._size < 0:
            self.stored.hold()
            try:
                self._size = self._count()
            finally:
                self.stored.release()
        return self._size

    def _count(self) -> int:
        if not self._scan():
            return len(self._converted())
        if self._kind is not MessageType.TEXT:
            return len(self._prefix) + self._content_size
        cursor = _TextCursor()
        size = _TEXT_HEADER_SIZE
        while piece := self._next_piece(cursor):
            size += len(piece)
        return size

    def _converted(self) -> bytes:
        """Convert it as a whole."""
        if self._whole is not None:
            return self._whole
        encoded = self.stored.read(self._body_at, max(0, self.stored.size - self._body_at))
        try:
            _, made = core_body(encoded, self._content_type)
        except RecordFormatError as error:
            raise JournalIOError(errno.EILSEQ, f"a body of AMQP is none: {error}") from error
        if self._holders:
            self._whole = made
        return made

    # --- reading ------------------------------------------------------------------------------

    def _place(self, offset: int) -> tuple[int, int]:
        """Give where a byte of the contents is stored, and how many follow it there."""
        for begin, size in self._scan():
            if offset < size:
                return begin + offset, size - offset
            offset -= size
        return self.stored.size, 0

    def _read_content(self, offset: int, size: int) -> bytes:
        found = []
        while size > 0:
            at, left = self._place(offset)
            if not left:
                break
            piece = self.stored.read(at, min(left, size))
            if not piece:
                break
            found.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(found)

    def _next_piece(self, cursor: _TextCursor) -> bytes:
        """Give more of a text; nothing at its end."""
        while True:
            data = self._read_content(cursor.content_at, _CHUNK_SIZE)
            cursor.content_at += len(data)
            text = cursor.decoder.decode(data, not data)
            if text or not data:
                return text.encode("utf-16-le")

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """See LargeBody; what is converted as a whole is read where it is asked for."""
        if not self._scan():
            return True
        if self._kind is MessageType.TEXT:
            at, left = self._place(self._cursor(offset).content_at)
            size = _CHUNK_SIZE
        else:
            at, left = self._place(max(0, offset - len(self._prefix)))
        return not left or self.stored.is_ready(at, min(left, size), callback)

    def _cursor(self, offset: int) -> _TextCursor:
        """Give the cursor that is nearest before an offset."""
        near = [
            one
            for one in self._cursors
            if one.offset <= max(offset, _TEXT_HEADER_SIZE) <= one.offset + len(one.data)
        ]
        if near:
            return near[0]
        made = _TextCursor()
        self._cursors = [made, *self._cursors[: _CURSORS_MAX - 1]]
        return made

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; fewer only at the end.

        Raises:
            JournalIOError: it cannot be read, or is not what the message says.
        """
        if not self._scan():
            return self._converted()[offset : offset + size]
        if self._kind is MessageType.TEXT:
            return self._read_text(offset, size)
        before = self._prefix[offset : offset + size]
        rest = size - len(before)
        return before + self._read_content(max(0, offset - len(self._prefix)), rest)

    def _read_text(self, offset: int, size: int) -> bytes:
        before = b""
        if offset < _TEXT_HEADER_SIZE:
            header = b"\x01" + (self.size - _TEXT_HEADER_SIZE).to_bytes(4, "big")
            before = header[offset : offset + size]
            offset, size = _TEXT_HEADER_SIZE, size - len(before)
        cursor = self._cursor(offset)
        while cursor.offset + len(cursor.data) < offset + size:
            # What was given is not kept.
            skipped = min(max(0, offset - cursor.offset), len(cursor.data))
            cursor.offset += skipped
            piece = self._next_piece(cursor)
            cursor.data = cursor.data[skipped:] + piece
            if not piece:
                break
        start = offset - cursor.offset
        found = cursor.data[start : start + size]
        cursor.offset += start + len(found)
        cursor.data = cursor.data[start + len(found) :]
        return before + found

    def hold(self) -> None:
        """See LargeBody."""
        self.stored.hold()
        self._holders += 1

    def release(self) -> None:
        """See LargeBody."""
        self._holders -= 1
        if not self._holders:
            self._whole = None
            self._cursors.clear()
        self.stored.release()

    # --- the place it has ---------------------------------------------------------------------

    def copy(self, message_id: int) -> AmqpLargeBody:
        """See LargeBody."""
        made = AmqpLargeBody(self.stored.copy(message_id), self._body_at, self._content_type)
        made._size = self._size
        return made

    def delete(self) -> None:
        """See LargeBody."""
        self.stored.delete()

    def finish(self, *, sync: bool, callback: Callable[[], object]) -> bool:
        """See LargeCopy."""
        return self._copy.finish(sync=sync, callback=callback)

    def settle(self) -> None:
        """See LargeCopy."""
        self._copy.settle()

    def close(self) -> None:
        """See LargeCopy."""
        self._copy.close()

    @property
    def _copy(self) -> LargeCopy:
        stored: LargeCopy = self.stored  # type: ignore[assignment] # Only one that comes is asked.
        return stored
