"""Bytes to frames, and back. Knows no packet, no session, no socket.

frame, integers big-endian, sizes in bytes
+--------+------+---------+------+
| length | type | channel | body |      length counts what follows it: 9 + n
|   4    |  1   |    8    |  n   |
+--------+------+---------+------+
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import broker.model.message_bytes as walk
from broker.protocols.core.errors import PacketFormatError

MAGIC: Final = b"ARTEMIS"
"""What a client sends before its first frame; the broker answers nothing to it."""

HEADER: Final = struct.Struct(">ibq")
"""Length, type, channel."""

HEADER_SIZE: Final = HEADER.size
_BODY_AT: Final = HEADER_SIZE
_LENGTH_SIZE: Final = 4
# Type and channel.
_LENGTH_MIN: Final = HEADER_SIZE - _LENGTH_SIZE
FRAME_SIZE_MAX: Final = 2**31 - 1 + _LENGTH_SIZE
"""The largest frame that its length field can tell, in bytes."""

Frame: TypeAlias = tuple[int, int, memoryview]
"""Type, channel, body."""


class FrameReader:
    """Cuts a stream of bytes into frames. For one connection, one direction.

    Either all at once, by feed(), or one after the other and without an object for any:

        reader.begin(data)
        while reader.advance():
            ... reader.chunk[reader.start : reader.end]

    Memory: what has arrived and was not given out; a length that a peer claims allocates nothing.

    Attributes:
        size_max: the largest frame taken, in bytes with its header; may be changed at any time,
            such as when a client has told who it is.
        kind: type of the frame that advance() has found.
        channel_id: its channel.
        chunk: where its bytes are.
        start: where its body begins in there.
        end: where that ends.
    """

    __slots__ = (
        "_at",
        "_buffer",
        "_wanted",
        "channel_id",
        "chunk",
        "end",
        "kind",
        "size_max",
        "start",
    )

    def __init__(self, *, size_max: int = FRAME_SIZE_MAX) -> None:
        self.size_max = size_max
        self.chunk = b""
        self.kind = self.channel_id = self.start = self.end = 0
        self._at = 0
        self._buffer: bytearray | None = None
        # Bytes that must be there before it is worth looking again.
        self._wanted = 0

    @property
    def pending(self) -> int:
        """Bytes of a frame that has not arrived in full."""
        return 0 if self._buffer is None else len(self._buffer)

    def begin(self, data: bytes) -> None:
        """Take the next bytes, after the last ones were gone through to their end."""
        self._at = 0
        if self._buffer is None:
            self.chunk = data
        elif len(self._buffer) + len(data) < self._wanted:
            self._buffer += data
        else:
            self.chunk = b"".join((self._buffer, data))
            self._buffer = None

    def advance(self) -> bool:
        """Find the next frame that is there in full; false when there is none.

        Raises:
            PacketFormatError: a length that cannot be; the connection must be closed, and the
                reader not used again.
        """
        chunk, at = self.chunk, self._at
        left = len(chunk) - at
        wanted = _LENGTH_SIZE
        if left >= _LENGTH_SIZE:
            length = walk.int_at(chunk, at)
            if length < _LENGTH_MIN or length > self.size_max - _LENGTH_SIZE:
                raise PacketFormatError(
                    f"frame of {length} bytes; between {_LENGTH_MIN} and "
                    f"{self.size_max - _LENGTH_SIZE} are taken"
                )
            wanted = _LENGTH_SIZE + length
            if wanted <= left:
                self.kind = walk.byte_at(chunk, at + _LENGTH_SIZE)
                self.channel_id = walk.long_at(chunk, at + _LENGTH_SIZE + 1)
                self.start = at + _BODY_AT
                self.end = self._at = at + wanted
                return True
        if left:
            self._buffer = bytearray(memoryview(chunk)[at:])
            self._wanted = wanted
        self.chunk = b""
        self._at = 0
        return False

    def feed(self, data: bytes) -> list[Frame]:
        """Give the frames that `data` completes, in order.

        Args:
            data: the next bytes; bodies are views of them.

        Raises:
            PacketFormatError: as for advance().
        """
        frames: list[Frame] = []
        self.begin(data)
        view = memoryview(self.chunk)
        while self.advance():
            frames.append((self.kind, self.channel_id, view[self.start : self.end]))
        return frames


def encode_frame(kind: int, channel: int, body: bytes) -> bytes:
    """Give a whole frame.

    >>> encode_frame(10, 0, b"body").hex(" ", -4)
    '0000000d 0a000000 00000000 00626f64 79'
    """
    return HEADER.pack(_LENGTH_MIN + len(body), kind, channel) + body
