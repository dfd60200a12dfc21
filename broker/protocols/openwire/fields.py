"""How a field of an OpenWire data type is declared: its kind, and since which version.

    @dataclass(slots=True)
    class MessagePull(Command):
        consumer_id: ConsumerId | None = field(Kind.CACHED)
        timeout: int = field(Kind.LONG)
        correlation_id: str | None = field(Kind.STRING, since=3)

The order of the fields is that of the bytes, those of the base class first.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EMPTY", "VERSION_MAX", "DataType", "Field", "Kind", "field", "fields_of"]

VERSION_MAX: Final = 12


class Kind(IntEnum):
    """How a field stands in the bytes; none is 0."""

    BOOLEAN = auto()
    BYTE = auto()
    INT = auto()
    LONG = auto()
    STRING = auto()
    BYTES = auto()
    NESTED = auto()
    """An object behind its type."""
    CACHED = NESTED
    """The same: the cache of objects is never agreed on."""
    ARRAY = auto()
    """Objects behind a number of two bytes."""
    THROWABLE = auto()


EMPTY: Final = {Kind.BOOLEAN: False, Kind.BYTE: 0, Kind.INT: 0, Kind.LONG: 0}
"""What a field is of which nothing is said; that of any other kind is None."""


class DataType:
    """What a frame, or a field of one, holds."""

    __slots__ = ()


class Field(NamedTuple):
    """One of them.

    Attributes:
        name: of the attribute.
        kind: of its bytes.
        since: the first version that has it.
        nested: which objects may stand there.
    """

    name: str
    kind: Kind
    since: int
    nested: tuple[type[DataType], ...]


def field(kind: Kind, *, since: int = 1) -> Any:  # noqa: ANN401 - of the field's own type.
    """Declare a field; where nothing is said of it, it is null, false or 0."""
    return dataclasses.field(default=EMPTY.get(kind), metadata={"kind": kind, "since": since})


def fields_of(data_type: type[DataType]) -> tuple[Field, ...]:
    """Give the fields of a data type in the order of the bytes."""
    hints = get_type_hints(data_type)
    return tuple(
        Field(
            one.name,
            one.metadata["kind"],
            one.metadata["since"],
            tuple(_data_types(hints[one.name])),
        )
        for one in dataclasses.fields(data_type)  # type: ignore[arg-type]
        if one.metadata
    )


def _data_types(hint: object) -> Iterator[type[DataType]]:
    """Give those of an annotation."""
    if isinstance(hint, type) and issubclass(hint, DataType):
        yield hint
    for part in get_args(hint):
        yield from _data_types(part)
