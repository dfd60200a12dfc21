"""What a packet is: a dataclass whose fields say how they stand in the body of a frame.

    @dataclass(slots=True)
    class QueueQuery(Packet):
        types = ((0, 45),)
        queue: str = field(SS)

Rules:
- Fields are read and written in the order of the class. `since` names the protocol version that
  brought a field: it is written for such a peer only, and read while bytes remain.
- An `optional` field may be missing, with all behind it: an older peer ends its packet before it.
  So the first field of each later addition is marked, those added together with it are not.
- Bytes behind the last field are left alone: that is how the protocol grows.
- One class may have several numbers, the newest first with the version each is meant for.
- Where a packet passes for every message, its class reads and writes by hand (`packet_message.py`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

from broker.model.encoding import (
    BOOLEAN,
    BYTE,
    INT,
    LONG,
    BodyReader,
    BodyWriter,
    Codec,
    RecordFormatError,
)
from broker.model.routing_type import RoutingType
from broker.protocols.core.frames import HEADER

T = TypeVar("T")

# Type and channel, which the length of a frame counts beside the body.
_LENGTH_MIN: Final = 9
# Newer than any version: what a packet with the newest of its numbers may hold.
_ANY_VERSION: Final = 1 << 30
_REQUIRED: Final = object()


def field(
    codec: Codec[T],
    *,
    since: int = 0,
    until: int = _ANY_VERSION,
    default: T | object = _REQUIRED,
    optional: bool = False,
) -> Any:  # noqa: ANN401 - as dataclasses.field: the declared type of the field is what holds.
    """Declare a dataclass field that stands in the packet with `codec`.

    Args:
        codec: how the value is read and written.
        since: the protocol version that brought it.
        until: the one that has it no more.
        default: the value if the caller gives none, and if it is missing in the bytes.
        optional: the packet may end before this field.
    """
    metadata = {"codec": codec, "since": since, "until": until, "optional": optional}
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class _Place(NamedTuple):
    name: str
    codec: Codec[Any]
    since: int
    until: int
    optional: bool


# Filled as classes are used first; a class has one layout for good.
_LAYOUTS: Final[dict[type, tuple[_Place, ...]]] = {}


def _layout_of(kind: type[Packet]) -> tuple[_Place, ...]:
    layout = _LAYOUTS.get(kind)
    if layout is None:
        layout = _LAYOUTS[kind] = tuple(
            _Place(
                name=item.name,
                codec=item.metadata["codec"],
                since=item.metadata["since"],
                until=item.metadata["until"],
                optional=item.metadata["optional"],
            )
            for item in dataclasses.fields(kind)
        )
    return layout


@dataclass(slots=True)
class Packet:
    """Base of all packets; a subclass is a slotted dataclass."""

    types: ClassVar[tuple[tuple[int, int], ...]]
    """(version, number), newest first: which number is written for a peer of that version on."""

    always_confirmed: ClassVar[bool] = True

    @property
    def is_confirmed(self) -> bool:
        """Whether both sides count it for the confirmation window."""
        return self.always_confirmed

    def type_for(self, version: int) -> int:
        """Give the number that this packet has for a peer of `version`."""
        for since, number in self.types:
            if version >= since:
                return number
        return self.types[-1][1]

    def encode(self, version: int) -> bytes:
        """Give the body for a peer of `version`.

        Raises:
            RecordFormatError: a value does not fit its encoding.
        """
        writer = BodyWriter()
        for place in _layout_of(type(self)):
            if place.since <= version < place.until:
                place.codec.write(writer, getattr(self, place.name))
        return writer.getvalue()

    def frame(self, channel: int, version: int) -> bytes:
        """Give the whole frame, as it goes out."""
        body = self.encode(version)
        return HEADER.pack(_LENGTH_MIN + len(body), self.type_for(version), channel) + body

    @classmethod
    def decode(cls, body: memoryview, version: int, number: int | None = None) -> Self:
        """Read the body of a packet.

        Args:
            body: what the frame held behind its header.
            version: that of the connection; 0 while it is not known.
            number: the frame's type; the newest one of this class when None.

        Raises:
            RecordFormatError: the bytes are no such packet.
        """
        newest = cls._version_of(number)
        reader = BodyReader(body)
        values: dict[str, Any] = {}
        for place in _layout_of(cls):
            if place.since > newest:
                break
            if place.until <= newest and place.until != _ANY_VERSION:
                continue
            if place.optional and not reader.remaining:
                break
            values[place.name] = place.codec.read(reader)
        try:
            return cls(**values)
        except TypeError as error:
            raise reader.fail(f"a field of {cls.__name__} is missing") from error

    @classmethod
    def _version_of(cls, number: int | None) -> int:
        """Give the last version for which `number` was the right one."""
        newest = _ANY_VERSION
        for since, own in cls.types:
            if number is None or own == number:
                return newest
            newest = since - 1
        raise RecordFormatError(f"{number} is not a number of {cls.__name__}")


def _read_routing_type(reader: BodyReader) -> RoutingType | None:
    value = reader.read_byte()
    return RoutingType(value) if value in (0, 1) else None


def _write_routing_type(writer: BodyWriter, value: RoutingType | None) -> None:
    writer.write_byte(-1 if value is None else int(value))


ROUTING_TYPE: Final[Codec[RoutingType | None]] = Codec(_read_routing_type, _write_routing_type)


def _read_routing_types(reader: BodyReader) -> tuple[RoutingType, ...]:
    count = reader.read_count(item_size_min=1)
    found = (BYTE.read(reader) for _ in range(count))
    return tuple(RoutingType(value) for value in found if value in (0, 1))


def _write_routing_types(writer: BodyWriter, values: tuple[RoutingType, ...]) -> None:
    writer.write_int(len(values))
    for value in values:
        writer.write_byte(int(value))


ROUTING_TYPES: Final = Codec(_read_routing_types, _write_routing_types)


def _flagged(codec: Codec[T]) -> Codec[T | None]:
    """Give the codec of a value behind a boolean; text has another flag, 1 where this is 0xFF."""

    def write(writer: BodyWriter, value: T | None) -> None:
        writer.write_boolean(value is not None)
        if value is not None:
            codec.write(writer, value)

    return Codec(lambda reader: reader.read_nullable(codec.read), write)


N_BOOLEAN: Final[Codec[bool | None]] = _flagged(BOOLEAN)
N_INT: Final[Codec[int | None]] = _flagged(INT)
N_LONG: Final[Codec[int | None]] = _flagged(LONG)
