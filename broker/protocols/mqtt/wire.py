"""The data types of MQTT (1.5): numbers, texts, binary data.

What is not one is a malformed packet: its error says where, and nothing beyond the packet is read.
"""

from __future__ import annotations

from typing import Final

from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.reason_codes import ReasonCode

__all__ = ["SIZE_MAX", "VARIABLE_MAX", "PacketReader", "binary", "number", "text", "variable"]

SIZE_MAX: Final = 0xFFFF
"""Bytes of a text, and of binary data."""
VARIABLE_MAX: Final = 268_435_455
"""Greatest number of up to four bytes of seven bits: the size of a packet, for one."""


class PacketReader:
    """Reads the fields of one packet, from front to back.

    Args:
        data: of the packet, behind its fixed header.
        strict: a number of variable size has to be as short as it can be (MQTT 5).
    """

    __slots__ = ("_at", "_data", "_end", "_strict")

    def __init__(self, data: bytes, *, strict: bool = False) -> None:
        self._data = data
        self._at = 0
        self._end = len(data)
        self._strict = strict

    @property
    def at(self) -> int:
        """Bytes read so far."""
        return self._at

    @property
    def remaining(self) -> int:
        """Bytes left."""
        return self._end - self._at

    def malformed(self, what: str) -> MqttError:
        """Give the error for what was found here."""
        return MqttError(
            ReasonCode.MALFORMED_PACKET, f"{what} at byte {self._at} of {self._end} of a packet"
        )

    def take(self, size: int) -> bytes:
        """Give the next bytes."""
        start = self._at
        if size > self._end - start:
            raise self.malformed(f"{size} bytes wanted, {self._end - start} left")
        self._at = start + size
        return self._data[start : self._at]

    def rest(self) -> bytes:
        """Give all that is left."""
        return self.take(self.remaining)

    def number(self, size: int) -> int:
        """Give a number of up to four bytes."""
        data = self.take(size)
        value = 0
        for place in range(size):
            value = value << 8 | data[place]
        return value

    def variable(self) -> int:
        """Give a number of one to four bytes."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                raise self.malformed("a number of more than four bytes")
        if self._strict and shift and byte == 0:
            raise self.malformed("a number that is longer than it has to be")
        return value

    def binary(self) -> bytes:
        """Give binary data: its size in two bytes is before it."""
        return self.take(self.number(2))

    def text(self) -> str:
        """Give a text: UTF-8, without NUL."""
        data = self.binary()
        try:
            value = data.decode()
        except UnicodeDecodeError:
            raise self.malformed("a text that is not UTF-8") from None
        if "\0" in value:
            raise self.malformed("a text with NUL")
        return value

    def part(self, size: int) -> PacketReader:
        """Give a reader of the next bytes alone."""
        return PacketReader(self.take(size), strict=self._strict)

    def end(self) -> None:
        """See that nothing is left."""
        if self._at != self._end:
            raise self.malformed(f"{self._end - self._at} bytes too many")


def number(value: int, size: int) -> bytes:
    """Write a number in so many bytes."""
    return value.to_bytes(size, "big")


def variable(value: int) -> bytes:
    r"""Write a number in one to four bytes.

    Raises:
        ValueError: it is greater than VARIABLE_MAX.

    >>> variable(127), variable(128)
    (b'\x7f', b'\x80\x01')
    """
    if value < 0x80:
        return bytes((value,))
    if value > VARIABLE_MAX:
        raise ValueError(f"{value} does not fit four bytes of seven bits")
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def binary(data: bytes) -> bytes:
    """Write binary data.

    Raises:
        ValueError: more than SIZE_MAX bytes.
    """
    if len(data) > SIZE_MAX:
        raise ValueError(f"{len(data)} bytes do not fit a field of {SIZE_MAX}")
    return len(data).to_bytes(2, "big") + data


def text(value: str) -> bytes:
    """Write a text; what UTF-8 has not is replaced by a question mark.

    Raises:
        ValueError: more than SIZE_MAX bytes.
    """
    return binary(value.encode("utf-8", "replace"))
