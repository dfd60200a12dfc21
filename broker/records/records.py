"""Encodes and decodes the broker's records: objects to bodies of journal records, and back."""

from __future__ import annotations

from typing import Final

from broker.model.encoding import Body, BodyReader, BodyWriter, RecordFormatError
from broker.model.wire import RecordType, WireRecord
from broker.model.xid import Xid
from broker.records import binding_records as bindings
from broker.records import message_records as messages
from broker.records.address_settings import AddressSetting, AddressSettingJson
from broker.records.stored_messages import (
    LargeCoreMessage,
    StoredMessage,
    read_message,
    write_message,
)

__all__ = [
    "RecordFormatError",
    "RecordType",
    "WireRecord",
    "decode_prepared",
    "decode_record",
    "encode_prepared",
    "encode_record",
]

# By user type; a message (45) has no class of its own, its persister byte chooses one.
_CLASSES: Final[dict[int, type[WireRecord]]] = {
    kind.record_type: kind
    for kind in (
        bindings.GroupBinding,
        bindings.QueueBinding,
        bindings.QueueStatusRecord,
        bindings.IdCounter,
        AddressSetting,
        bindings.SecuritySetting,
        bindings.Divert,
        bindings.Bridge,
        messages.LargeMessagePending,
        LargeCoreMessage,
        messages.OldMessage,
        messages.AddRef,
        messages.AcknowledgeRef,
        messages.DeliveryCount,
        messages.PageTransaction,
        messages.ScheduledDelivery,
        messages.DuplicateId,
        messages.HeuristicCompletion,
        messages.AcknowledgeCursor,
        messages.PageCounterValue,
        messages.PageCounterInc,
        messages.PageComplete,
        messages.PageCounterPending,
        bindings.AddressBinding,
        bindings.AddressStatusRecord,
        bindings.User,
        bindings.Role,
        messages.MessageBodyChunk,
        bindings.KeyValuePair,
        bindings.Connector,
        AddressSettingJson,
        messages.AckRetry,
    )
}
# Where an update's body is laid out otherwise than an add's.
_UPDATE_CLASSES: Final[dict[int, type[WireRecord]]] = {
    RecordType.PAGE_TRANSACTION: messages.PageTransactionUpdate,
}


def decode_record(user_type: int, body: Body, *, is_update: bool) -> WireRecord | None:
    """Read the body of a journal record.

    Args:
        user_type: 0 … 255.
        body: the whole body.
        is_update: an update record; one type is laid out differently there.

    Returns:
        A frozen dataclass of this package, or None for a type the broker does not know.

    Raises:
        RecordFormatError: the body is not what its type says.
    """
    reader = BodyReader(body)
    if user_type == RecordType.ADD_MESSAGE_PROTOCOL:
        return read_message(reader)
    kind = _UPDATE_CLASSES.get(user_type) if is_update else None
    kind = kind or _CLASSES.get(user_type)
    return None if kind is None else kind.read(reader)


def encode_record(record: WireRecord) -> bytes:
    """Give the body of a journal record of type `record.record_type`.

    Raises:
        RecordFormatError: a value does not fit its encoding.
    """
    writer = BodyWriter()
    if isinstance(record, StoredMessage):
        write_message(writer, record)
    else:
        record.write(writer)
    return writer.getvalue()


def decode_prepared(extra: Body) -> Xid:
    """Read the extra data of a prepare record.

    Raises:
        RecordFormatError: it does not hold an Xid.
    """
    return Xid.read(BodyReader(extra))


def encode_prepared(xid: Xid) -> bytes:
    """Give the extra data of a prepare record."""
    writer = BodyWriter()
    xid.write(writer)
    return writer.getvalue()
