"""Broker objects and the bodies of journal records: the one door between the two.

`decode_record` and `encode_record` are what the broker uses. `JournalDecoder` is what the journal's
command line finds, by the entry point group `quiver.journal.decoders`, without ever importing the
broker: it reads bodies for people and never raises on damaged ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.storage import binding_records as bindings
from broker.storage import message_records as messages
from broker.storage import print_data
from broker.storage.address_settings import AddressSetting, AddressSettingJson
from broker.storage.describe import NULL_TEXT, describe, xid_text
from broker.storage.encoding import Body, BodyReader, BodyWriter, RecordFormatError
from broker.storage.json_view import JSON, json_view
from broker.storage.print_counts import MessageCounts
from broker.storage.stored_messages import (
    LargeCoreMessage,
    StoredMessage,
    read_message,
    write_message,
)
from broker.storage.wire import RecordType, WireRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.data_print import LiveRecord, RecordFile, Transaction

__all__ = [
    "JSON",
    "JournalDecoder",
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


def decode_prepared(extra: Body) -> messages.Xid:
    """Read the extra data of a prepare record.

    Raises:
        RecordFormatError: it does not hold an Xid.
    """
    return messages.Xid.read(BodyReader(extra))


def encode_prepared(xid: messages.Xid) -> bytes:
    """Give the extra data of a prepare record."""
    writer = BodyWriter()
    xid.write(writer)
    return writer.getvalue()


class JournalDecoder:
    """Reads record bodies for people; stateless, so one instance serves any number of threads.

    The journal's side of this seam is a Protocol of its own with these methods:

        decode(user_type, body, *, record_id, is_update) -> dict[str, JSON] | None
        describe(user_type, body, *, record_id, is_update) -> str
        describe_prepared(extra) -> str
        print_files(path, files) -> Iterator[str]
        print_surviving(committed, prepared, failed) -> Iterator[str]
        message_counts() -> MessageCounts

    None of them raises on damaged bytes, whatever they are.
    """

    def decode(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool
    ) -> dict[str, JSON] | None:
        """Give a body as JSON, `{"error": …}` when it is damaged, None when the type is unknown.

        Args:
            user_type: 0 … 255.
            body: the whole body.
            record_id: of the journal record; kept for decoders of other products.
            is_update: an update record.
        """
        try:
            record = decode_record(user_type, body, is_update=is_update)
            return None if record is None else json_view(record)
        except RecordFormatError as error:
            return {"recordType": RecordType(user_type).name, "error": str(error)}

    def describe(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool, safe: bool = False
    ) -> str:
        """Give the text that the reference's `data print` has for this record.

        `** null **` for what it does not look into, `** damaged: … **` where it would stop; 0 in
        place of identity hashes; dates in UTC. `safe` leaves out users' data.
        """
        try:
            record = decode_record(user_type, body, is_update=is_update)
            return NULL_TEXT if record is None else describe(record, record_id, safe=safe)
        except RecordFormatError as error:
            return f"** damaged: {error} **"

    def describe_prepared(self, extra: Body) -> str:
        """Give the text of a prepare record's Xid, `null` when there is none in it."""
        try:
            return xid_text(decode_prepared(extra))
        except RecordFormatError:
            return "null"

    def message_counts(self) -> MessageCounts:
        """Give an empty tally of messages and references, to be fed record by record."""
        return MessageCounts()

    def print_files(
        self, path: str, files: Iterable[RecordFile], *, safe: bool = False
    ) -> Iterator[str]:
        """Give the lines of `data print` for every record in file order.

        `files` are like `journal.reader.FileView`; see `print_data.file_lines`.
        """
        return print_data.file_lines(path, files, self, safe=safe)

    def print_surviving(
        self,
        committed: Iterable[LiveRecord],
        prepared: Iterable[Transaction],
        failed: Iterable[Transaction],
        *,
        safe: bool = False,
    ) -> Iterator[str]:
        """Give the lines of `data print` for what a load gives.

        Records and transactions are like those of `journal.loaded`; see
        `print_data.surviving_lines`.
        """
        return print_data.surviving_lines(committed, prepared, failed, self, safe=safe)
