"""Frames of a connection, however its bytes are cut: four bytes of size, then as many."""

from __future__ import annotations

import struct
from typing import Final

from broker.protocols.openwire.decoding import broken

__all__ = ["FrameReader"]

_SIZE: Final = struct.Struct(">i")


class FrameReader:
    """See the module's text.

    Args:
        max_size: bytes of a frame, its size not counted.

    Attributes:
        max_size: as given; it may be changed.
    """

    __slots__ = ("_at", "_data", "max_size")

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._data = bytearray()
        self._at = 0

    @property
    def has_partial(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return len(self._data) > self._at

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += data

    def next(self) -> bytes | None:
        """Give the next frame without its size; None where it is not complete.

        Raises:
            OpenWireError: it is larger than it may be, or of less than a byte.
        """
        at = self._at
        left = len(self._data) - at
        if left < _SIZE.size:
            return None
        size = _SIZE.unpack_from(self._data, at)[0]
        if not 1 <= size <= self.max_size:
            raise broken(f"Frame size of {size} bytes: at most {self.max_size} are taken")
        if left < _SIZE.size + size:
            return None
        self._at = at + _SIZE.size + size
        return bytes(memoryview(self._data)[at + _SIZE.size : self._at])
