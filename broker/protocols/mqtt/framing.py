"""Packets found in a stream of bytes, however they are cut.

    feed(bytes) ─▶ next() ─▶ Packet │ PUBLISH without payload, then Part … │ None: more is needed

Nothing larger than the limits is kept: a PUBLISH from `stream_size` on gives its payload in parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.protocols.mqtt.decoding import check_flags, read_packet, read_publish
from broker.protocols.mqtt.errors import MqttError
from broker.protocols.mqtt.packets import Acknowledgement, PacketType, Part, Version
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.wire import PacketReader

if TYPE_CHECKING:
    from broker.protocols.mqtt.packets import Packet, Publish

__all__ = ["HEAD_MAX", "Framing", "Limits"]

HEAD_MAX: Final = 1024 * 1024
"""Bytes of a packet but for a payload: of a CONNECT, say, or of properties."""
_VARIABLE_SIZE_MAX: Final = 4
_SIZE_FIELDS: Final = 2


class Limits(NamedTuple):
    """What a client may make us keep.

    Attributes:
        packet: bytes of a packet.
        stream: of a PUBLISH from which its payload comes in parts; -1 never.
    """

    packet: int
    stream: int


class Framing:
    """See the module's text.

    Args:
        limits: of the client.

    Attributes:
        limits: may be changed between two packets.
        version: of the connection; before a CONNECT says so it does not count.
    """

    __slots__ = (
        "_buffer",
        "_missing",
        "limits",
        "version",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.version = Version.V3_1_1
        self._buffer = bytearray()
        # Bytes of a streamed payload that are still to come.
        self._missing = 0

    @property
    def has_partial(self) -> bool:
        """Whether a packet has begun that is not complete."""
        return bool(self._buffer or self._missing)

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._buffer += data

    def next(self) -> Packet | Part | None:
        """Give the next packet, or part of one; None where more bytes are needed.

        Raises:
            MqttError: it is malformed or too large: nothing behind it can be read.
        """
        if self._missing:
            return self._part()
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        flags = buffer[0] & 0xF
        kind = check_flags(buffer[0] >> 4, flags, self.version)
        is_publish = kind is PacketType.PUBLISH
        found = self._size()
        if found is None:
            return None
        size, start = found
        if start + size > self.limits.packet:
            raise MqttError(
                ReasonCode.PACKET_TOO_LARGE,
                f"a packet of {start + size} bytes, with at most {self.limits.packet} allowed",
            )
        if is_publish and 0 <= self.limits.stream <= size:
            return self._begin(flags, start, size)
        if not is_publish and size > HEAD_MAX:
            raise _too_large(size)
        end = start + size
        if len(buffer) < end:
            return None
        if size == _SIZE_FIELDS and kind is PacketType.PUBACK:
            # With QoS 1 half of what comes: a packet id, and success.
            packet_id = buffer[start] << 8 | buffer[start + 1]
            if packet_id:
                del buffer[:end]
                return Acknowledgement(kind, packet_id)
        body = bytes(buffer[start:end])
        del buffer[:end]
        return read_packet(kind, flags, body, self.version)

    def _size(self) -> tuple[int, int] | None:
        """Give the size behind the fixed header, and where that begins."""
        buffer = self._buffer
        value = 0
        for position in range(_VARIABLE_SIZE_MAX):
            if len(buffer) <= 1 + position:
                return None
            byte = buffer[1 + position]
            value |= (byte & 0x7F) << 7 * position
            if byte < 0x80:
                if self.version is Version.V5 and position and not byte:
                    break
                return value, 2 + position
        raise MqttError(ReasonCode.MALFORMED_PACKET, "a size of a packet that is not valid")

    def _begin(self, flags: int, start: int, size: int) -> Publish | None:
        """Give a PUBLISH whose payload follows, once all before that is here."""
        head_size = self._head_size(flags, start, start + size)
        if head_size is None:
            return None
        data = bytes(self._buffer[start : start + head_size])
        reader = PacketReader(data, strict=self.version is Version.V5)
        head = read_publish(reader, flags, self.version, has_payload=False)
        reader.end()
        del self._buffer[: start + head_size]
        self._missing = size - head_size
        return head._replace(is_streamed=self._missing > 0)

    def _head_size(self, flags: int, start: int, end: int) -> int | None:
        """Give the bytes before the payload; None where they are not all here."""
        buffer = self._buffer
        at = start + _SIZE_FIELDS
        if len(buffer) < at:
            return None
        at += int.from_bytes(buffer[start:at], "big")
        if flags & 6:
            at += _SIZE_FIELDS
        if self.version is Version.V5:
            size = shift = 0
            while True:
                if at >= end:
                    raise MqttError(ReasonCode.MALFORMED_PACKET, "a PUBLISH that ends too early")
                if len(buffer) <= at:
                    return None
                byte = buffer[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 or shift > 21:
                    break
            at += size
        if at > end:
            raise MqttError(ReasonCode.MALFORMED_PACKET, "a PUBLISH that ends too early")
        if at - start > HEAD_MAX:
            raise _too_large(at - start)
        return None if len(buffer) < at else at - start

    def _part(self) -> Part | None:
        buffer = self._buffer
        if not buffer:
            return None
        data = bytes(buffer[: self._missing])
        del buffer[: self._missing]
        self._missing -= len(data)
        return Part(data, not self._missing)


def _too_large(size: int) -> MqttError:
    return MqttError(
        ReasonCode.PACKET_TOO_LARGE,
        f"a packet of {size} bytes beside a payload, with at most {HEAD_MAX} allowed",
    )
