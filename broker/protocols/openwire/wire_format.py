"""WireFormatInfo: what both sides say first, and what they agree on (OpenWireFormat).

    client ─ WireFormatInfo ─▶           version, tight or loose encoding, stack traces, inactivity
           ◀─ WireFormatInfo ─ broker
           ◀───── BrokerInfo ─ broker    from here on as agreed

The broker offers no cache of objects, so none is agreed on, as with Artemis.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from broker.model.encoding import RecordFormatError
from broker.model.properties import Property, PropertyType, PropertyValue
from broker.protocols.openwire.commands import Response
from broker.protocols.openwire.data_types import LAST_VERSION
from broker.protocols.openwire.decoding import LooseReader, TightReader, broken
from broker.protocols.openwire.encoding import LooseWriter, TightWriter
from broker.protocols.openwire.primitives import read_map, write_map
from journal.version import __version__

__all__ = ["WIRE_FORMAT_INFO", "Agreement", "WireFormatInfo", "own_wire_format"]

WIRE_FORMAT_INFO: Final = 1
_MAGIC: Final = b"ActiveMQ"
_HEAD: Final = struct.Struct(">B8si?")
_INT: Final = struct.Struct(">i")
# As Artemis takes them at most.
_PROPERTIES_MAX: Final = 4096


class WireFormatInfo(NamedTuple):
    """What one side can do.

    Attributes:
        version: of OpenWire, at most.
        properties: by name, of Artemis's spelling.
    """

    version: int
    properties: dict[str, PropertyValue]

    @classmethod
    def decode(cls, data: bytes) -> WireFormatInfo:
        """Read one, with its type, without the frame's size.

        Raises:
            OpenWireError: it is none.
        """
        if len(data) < _HEAD.size:
            raise broken(f"a WireFormatInfo of {len(data)} bytes")
        number, magic, version, has_properties = _HEAD.unpack_from(data)
        if number != WIRE_FORMAT_INFO or magic != _MAGIC or version < 1:
            raise broken("a connection begins with a WireFormatInfo")
        properties: dict[str, PropertyValue] = {}
        if has_properties:
            rest = data[_HEAD.size :]
            if len(rest) < _INT.size or _INT.unpack_from(rest)[0] != len(rest) - _INT.size:
                raise broken("a WireFormatInfo of another size than it says")
            try:
                found = read_map(rest[_INT.size :], size_max=_PROPERTIES_MAX)
            except RecordFormatError as error:
                raise broken(f"a WireFormatInfo that cannot be read: {error}") from None
            properties = {item.name: item.value for item in found}
        elif len(data) > _HEAD.size:
            raise broken(f"{len(data) - _HEAD.size} bytes behind a WireFormatInfo")
        return cls(version, properties)

    def encode(self) -> bytes:
        """Give the frame, with its size."""
        properties = write_map(_property(name, value) for name, value in self.properties.items())
        data = b"".join(
            (
                _HEAD.pack(WIRE_FORMAT_INFO, _MAGIC, self.version, True),
                _INT.pack(len(properties)),
                properties,
            )
        )
        return _INT.pack(len(data)) + data

    def is_on(self, name: str) -> bool:
        """Whether it says so; one that is missing is off."""
        return self.properties.get(name) is True

    def number(self, name: str) -> int:
        """Give a number; 0 where it is missing."""
        value = self.properties.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _property(name: str, value: PropertyValue) -> Property:
    if isinstance(value, bool):
        return Property(name, PropertyType.BOOLEAN, value)
    if isinstance(value, str):
        return Property(name, PropertyType.STRING, value)
    kind = PropertyType.INT if name == "CacheSize" else PropertyType.LONG
    return Property(name, kind, value)


def own_wire_format(
    *, max_inactivity_ms: int, initial_delay_ms: int, max_frame_size: int
) -> WireFormatInfo:
    """Give what the broker says of itself.

    Args:
        max_inactivity_ms: of the acceptor.
        initial_delay_ms: likewise.
        max_frame_size: bytes of a frame that it takes.
    """
    return WireFormatInfo(
        LAST_VERSION,
        {
            "TcpNoDelayEnabled": True,
            "SizePrefixDisabled": False,
            "CacheSize": 1024,
            "StackTraceEnabled": True,
            "CacheEnabled": False,
            "TightEncodingEnabled": True,
            "MaxFrameSize": max_frame_size,
            "MaxInactivityDuration": max_inactivity_ms,
            "MaxInactivityDurationInitalDelay": initial_delay_ms,
            "ProviderName": "Quiver",
            "ProviderVersion": __version__,
        },
    )


class Agreement:
    """What both sides do from now on.

    Args:
        ours: of the broker.
        theirs: of the client.

    Attributes:
        version: of OpenWire.
        has_size: frames begin with their size.
        max_inactivity_ms: of silence; 0 is for ever.
        initial_delay_ms: before silence counts.
    """

    __slots__ = (
        "_has_stack_traces",
        "_is_tight",
        "_response",
        "has_size",
        "initial_delay_ms",
        "max_inactivity_ms",
        "version",
        "write",
    )

    def __init__(self, ours: WireFormatInfo, theirs: WireFormatInfo) -> None:
        def both(name: str) -> bool:
            return ours.is_on(name) and theirs.is_on(name)

        self.version = min(ours.version, theirs.version)
        self.has_size = not both("SizePrefixDisabled")
        self._is_tight = both("TightEncodingEnabled")
        self._has_stack_traces = both("StackTraceEnabled")
        self.max_inactivity_ms = _least(ours, theirs, "MaxInactivityDuration")
        self.initial_delay_ms = _least(ours, theirs, "MaxInactivityDurationInitalDelay")
        self.write = _writer(self.version, self._is_tight, self._has_stack_traces).frame
        self._response = _response(self.version, self._is_tight, self.has_size)

    def response(self, correlation_id: int) -> bytes:
        """Give the frame of a Response, which half of all frames to a producer are."""
        return self._response + _INT.pack(correlation_id)

    def reader(self, data: bytes) -> LooseReader:
        """Give what reads a frame, without its size."""
        reader = TightReader if self._is_tight else LooseReader
        return reader(data, self.version, has_stack_traces=self._has_stack_traces)


def _writer(version: int, is_tight: bool, has_stack_traces: bool) -> LooseWriter:
    made = TightWriter if is_tight else LooseWriter
    return made(version, has_stack_traces=has_stack_traces)


@cache
def _response(version: int, is_tight: bool, has_size: bool) -> bytes:
    """Give a Response but for its last four bytes, which say what it answers."""
    return _writer(version, is_tight, False).frame(Response(), has_size=has_size)[: -_INT.size]


def _least(ours: WireFormatInfo, theirs: WireFormatInfo, name: str) -> int:
    return max(0, min(ours.number(name), theirs.number(name)))
