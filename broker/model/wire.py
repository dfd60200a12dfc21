"""Records as dataclasses whose fields say how they stand in the bytes.

So no record needs a reader and a writer of its own:

    @dataclass(frozen=True, slots=True)
    class AddRef(WireRecord):
        record_type = RecordType.ADD_REF
        queue_id: int = wire(LONG)

Fields are read and written in the order of the class. A field with a default is optional when
reading: older writers left it out, so it is read only while bytes remain. Writing always gives the
full, newest form. A field `joined` to the one before it is there exactly when that one is.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar

from broker.model.encoding import BodyReader, BodyWriter, Codec

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
R = TypeVar("R", bound="WireRecord")


class RecordType(IntEnum):
    """The user type of a journal record, by Artemis's names."""

    GROUP_RECORD = 20
    QUEUE_BINDING_RECORD = 21
    QUEUE_STATUS_RECORD = 22
    ID_COUNTER_RECORD = 24
    ADDRESS_SETTING_RECORD = 25
    SECURITY_SETTING_RECORD = 26
    DIVERT_RECORD = 27
    BRIDGE_RECORD = 28
    ADD_LARGE_MESSAGE_PENDING = 29
    ADD_LARGE_MESSAGE = 30
    ADD_MESSAGE = 31
    ADD_REF = 32
    ACKNOWLEDGE_REF = 33
    UPDATE_DELIVERY_COUNT = 34
    PAGE_TRANSACTION = 35
    SET_SCHEDULED_DELIVERY_TIME = 36
    DUPLICATE_ID = 37
    HEURISTIC_COMPLETION = 38
    ACKNOWLEDGE_CURSOR = 39
    PAGE_CURSOR_COUNTER_VALUE = 40
    PAGE_CURSOR_COUNTER_INC = 41
    PAGE_CURSOR_COMPLETE = 42
    PAGE_CURSOR_PENDING_COUNTER = 43
    ADDRESS_BINDING_RECORD = 44
    ADD_MESSAGE_PROTOCOL = 45
    ADDRESS_STATUS_RECORD = 46
    USER_RECORD = 47
    ROLE_RECORD = 48
    ADD_MESSAGE_BODY = 49
    KEY_VALUE_PAIR_RECORD = 50
    CONNECTOR_RECORD = 51
    ADDRESS_SETTING_RECORD_JSON = 52
    ACK_RETRY = 53


_REQUIRED: Final = object()


class FieldLayout(NamedTuple):
    """Where one field of a record class stands in the bytes."""

    name: str
    codec: Codec[Any]
    optional: bool
    joined: bool


def wire(
    codec: Codec[T], *, default: T | object = _REQUIRED, joined: bool = False, label: str = ""
) -> Any:  # noqa: ANN401 - as dataclasses.field: the declared type of the field is what holds.
    """Declare a dataclass field that is stored with `codec`.

    Args:
        codec: how the value is read and written.
        default: the value when an older record ends before this field.
        joined: the field is there exactly when the one before it is.
        label: the field's name in JSON where it is not the camel case of its name here.
    """
    metadata: Mapping[str, object] = {"codec": codec, "joined": joined, "label": label}
    if default is _REQUIRED:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


# Filled as classes are used first; a class has one layout for good.
_LAYOUTS: Final[dict[type, tuple[FieldLayout, ...]]] = {}


def _layout_of(kind: type[WireRecord]) -> tuple[FieldLayout, ...]:
    """Give the fields of a record class in the order of the bytes."""
    layout = _LAYOUTS.get(kind)
    if layout is None:
        layout = _LAYOUTS[kind] = tuple(
            FieldLayout(
                name=item.name,
                codec=item.metadata["codec"],
                optional=item.default is not MISSING,
                joined=item.metadata["joined"],
            )
            for item in fields(kind)
        )
    return layout


def read_fields(kind: type[WireRecord], reader: BodyReader) -> dict[str, Any]:
    """Read the fields of a record class, up to the last one that the bytes hold."""
    values: dict[str, Any] = {}
    for item in _layout_of(kind):
        if item.optional and not item.joined and not reader.remaining:
            break
        values[item.name] = item.codec.read(reader)
    return values


def fixed_layout(kind: type[WireRecord]) -> tuple[int, dict[str, int]]:
    """Where the fields of a record class stand whose fields are all numbers.

    For those who read many records without an object each. The dict has the offset of each field,
    in bytes from the start of the body; before it stands how many bytes the body has at least.

    >>> from broker.records.message_records import DeliveryCount
    >>> fixed_layout(DeliveryCount)
    (12, {'queue_id': 0, 'count': 8})
    """
    writer = BodyWriter()
    offsets = {}
    for item in _layout_of(kind):
        offsets[item.name] = len(writer.getvalue())
        item.codec.write(writer, 0)
    return len(writer.getvalue()), offsets


@dataclass(frozen=True, slots=True)
class WireRecord:
    """Base of the record classes; a subclass is a frozen, slotted dataclass of `wire` fields."""

    record_type: ClassVar[RecordType]

    @classmethod
    def read(cls, reader: BodyReader) -> Self:
        """Read one value of this class; bytes behind the last known field are left unread.

        Raises:
            RecordFormatError: the bytes do not hold such a record.
        """
        return cls(**read_fields(cls, reader))

    def write(self, writer: BodyWriter) -> None:
        """Append all fields.

        Raises:
            RecordFormatError: a value does not fit its encoding.
        """
        for item in _layout_of(type(self)):
            item.codec.write(writer, getattr(self, item.name))


def nested(kind: type[R]) -> Codec[R]:
    """Give the codec of a record class inside another one."""
    return Codec(kind.read, lambda writer, value: value.write(writer))
