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

from broker.protocols.core.errors import PacketFormatError

MAGIC: Final = b"ARTEMIS"
"""What a client sends before its first frame; the broker answers nothing to it."""

HEADER: Final = struct.Struct(">ibq")
"""Length, type, channel."""

HEADER_SIZE: Final = HEADER.size
_LENGTH: Final = struct.Struct(">i")
# Type and channel.
_LENGTH_MIN: Final = HEADER_SIZE - _LENGTH.size
FRAME_SIZE_MAX: Final = 2**31 - 1 + _LENGTH.size
"""The largest frame that its length field can tell, in bytes."""

Frame: TypeAlias = tuple[int, int, memoryview]
"""Type, channel, body."""


class FrameReader:
    """Cuts a stream of bytes into frames. For one connection, one direction.

    Memory: what has arrived and was not given out; a length that a peer claims allocates nothing.

    Attributes:
        size_max: the largest frame taken, in bytes with its header; may be changed at any time,
            such as when a client has told who it is.
    """

    __slots__ = ("_buffer", "_wanted", "size_max")

    def __init__(self, *, size_max: int = FRAME_SIZE_MAX) -> None:
        self.size_max = size_max
        self._buffer: bytearray | None = None
        # Bytes that must be there before it is worth looking again.
        self._wanted = 0

    @property
    def pending(self) -> int:
        """Bytes of a frame that has not arrived in full."""
        return 0 if self._buffer is None else len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Give the frames that `data` completes, in order.

        Args:
            data: the next bytes; bodies are views of them, so they must not change afterwards.

        Raises:
            PacketFormatError: a length that cannot be; the connection must be closed, and the
                reader not used again.
        """
        chunk: bytes | bytearray = data
        if self._buffer is not None:
            self._buffer += data
            if len(self._buffer) < self._wanted:
                return []
            chunk, self._buffer = self._buffer, None
        view = memoryview(chunk)
        size = len(chunk)
        at = 0
        frames: list[Frame] = []
        wanted = _LENGTH.size
        while size - at >= _LENGTH.size:
            length = _LENGTH.unpack_from(chunk, at)[0]
            if length < _LENGTH_MIN or length > self.size_max - _LENGTH.size:
                raise PacketFormatError(
                    f"frame of {length} bytes; between {_LENGTH_MIN} and "
                    f"{self.size_max - _LENGTH.size} are taken"
                )
            end = at + _LENGTH.size + length
            if end > size:
                wanted = _LENGTH.size + length
                break
            _, kind, channel = HEADER.unpack_from(chunk, at)
            frames.append((kind, channel, view[at + HEADER_SIZE : end]))
            at = end
        if at < size:
            self._buffer = bytearray(view[at:])
            self._wanted = wanted
        return frames


def encode_frame(kind: int, channel: int, body: bytes) -> bytes:
    """Give a whole frame.

    >>> encode_frame(10, 0, b"body").hex(" ", -4)
    '0000000d 0a000000 00000000 00626f64 79'
    """
    return HEADER.pack(_LENGTH_MIN + len(body), kind, channel) + body
