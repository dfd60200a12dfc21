"""The text of the reference's `data print` around the records, line by line.

Functions over plain iterables, so that any reader of a journal can feed them: a record is anything
with the attributes of `PrintableRecord`, and what describes its body is passed in. Lines come as
they are asked for, without their line ends; a file's records are read only when their turn comes.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Protocol

from broker.storage.encoding import LONG, BodyReader, RecordFormatError
from broker.storage.java_text import hash_order, long_hash, signed_byte, text_of
from broker.storage.message_records import PageCounterInc, PageCounterValue
from broker.storage.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FRAME: Final = "*" * 44
_RECORD_ID_MASK: Final = 0x7FFF_FFFF
# How each kind of record is called; the rest of its line depends on the kind.
_OPERATIONS: Final = {
    "event": "operation@Event;",
    "add": "operation@AddRecord;",
    "update": "operation@Update;",
    "add_tx": "operation@AddRecordTX;",
    "update_tx": "operation@UpdateTX;",
    "delete_tx": "operation@DeleteRecordTX;",
}
_UPDATES: Final = ("update", "update_tx")
_MESSAGE_TYPES: Final = (RecordType.ADD_MESSAGE, RecordType.ADD_MESSAGE_PROTOCOL)


class PrintableRecord(Protocol):
    """One record of a journal file, or one that a load gave.

    Attributes:
        kind: add, update, delete, add_tx, update_tx, delete_tx, prepare, commit, rollback, event.
        record_id: None where the kind has none.
        tx_id: None where the kind has none.
        user_type: 0 … 255; None where the kind has none.
        compact_count: how often the record was compacted.
        body: the record's body; the extra data of a prepare.
        records_in_file: what a commit or prepare counts, else None.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102 - the attributes stand in the class's text.
    @property
    def record_id(self) -> int | None: ...  # noqa: D102
    @property
    def tx_id(self) -> int | None: ...  # noqa: D102
    @property
    def user_type(self) -> int | None: ...  # noqa: D102
    @property
    def compact_count(self) -> int: ...  # noqa: D102
    @property
    def body(self) -> bytes | None: ...  # noqa: D102
    @property
    def records_in_file(self) -> int | None: ...  # noqa: D102


class PrintableFile(Protocol):
    """One journal file: name, file id of its header, size in bytes; iterating gives its records."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def file_id(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    def __iter__(self) -> Iterator[PrintableRecord]: ...


class PrintableTransaction(Protocol):
    """A prepared or failed transaction: its adds and updates, and the ids it deletes."""

    @property
    def tx_id(self) -> int: ...  # noqa: D102
    @property
    def records(self) -> Iterable[PrintableRecord]: ...  # noqa: D102
    @property
    def deletes(self) -> Iterable[int]: ...  # noqa: D102


class PrintableLoad(Protocol):
    """What a load gives; `committed` is walked to its end before the others are looked at."""

    @property
    def committed(self) -> Iterable[PrintableRecord]: ...  # noqa: D102
    @property
    def prepared(self) -> Iterable[PrintableTransaction]: ...  # noqa: D102
    @property
    def failed(self) -> Iterable[PrintableTransaction]: ...  # noqa: D102


class Describer(Protocol):
    """What these lines need to know of a body; `records.JournalDecoder` is one."""

    def describe(
        self, user_type: int, body: bytes, *, record_id: int, is_update: bool, safe: bool = False
    ) -> str:
        """Give the text of the object in a body."""
        ...

    def describe_prepared(self, extra: bytes) -> str:
        """Give the text of a prepare record's extra data."""
        ...


def section_lines(title: str) -> Iterator[str]:
    """Give the frame that stands before a section, such as `M E S S A G E S   J O U R N A L`."""
    yield from ("", _FRAME, title, _FRAME)


def file_lines(
    path: str, files: Iterable[PrintableFile], decoder: Describer, *, safe: bool = False
) -> Iterator[str]:
    """Give the lines of a whole journal in file order.

    Args:
        path: the folder, as the user wrote it.
        files: in the order of their file ids.
        decoder: describes the bodies.
        safe: leave out users' data.
    """
    counters = _PageCounters()
    yield f"Journal path: {path}"
    for file in files:
        file_record_id = file.file_id & _RECORD_ID_MASK
        yield (
            f"#JournalFileImpl: ({file.name} id = {file.file_id}, recordID = {file_record_id}) "
            f"(size={file.size})"
        )
        for record in file:
            yield record_line(record, decoder, safe=safe)
            if record.kind in _UPDATES:
                yield from counters.update_lines(record)
    yield ""
    if counters:
        yield "#Counters during initial load:"
        yield from counters.lines()


def record_line(record: PrintableRecord, decoder: Describer, *, safe: bool = False) -> str:
    """Give the line of one record of a journal file."""
    if record.kind == "delete":
        return f"operation@DeleteRecord;recordID={record.record_id}"
    if record.kind == "rollback":
        return f"operation@Rollback;txID={record.tx_id}"
    if record.kind == "commit":
        return f"operation@Commit;txID={record.tx_id},numberOfRecords={record.records_in_file}"
    if record.kind == "prepare":
        extra = record.body or b""
        encoded = base64.urlsafe_b64encode(extra).decode("ascii")
        return (
            f"operation@Prepare,txID={record.tx_id},numberOfRecords={record.records_in_file},"
            f"extraData={encoded}, xid={decoder.describe_prepared(extra)}"
        )
    transaction = f"txID={record.tx_id}," if record.kind.endswith("_tx") else ""
    return f"{_OPERATIONS[record.kind]}{transaction}{described(record, decoder, safe=safe)}"


def described(record: PrintableRecord, decoder: Describer, *, safe: bool = False) -> str:
    """Give the part of a line that says what an add, update or transactional delete holds."""
    record_id = record.record_id or 0
    if record.kind == "delete_tx":
        # It stores no user type; the reference prints it as an update of type 0.
        user_type, is_update = 0, True
    else:
        user_type, is_update = record.user_type or 0, record.kind in _UPDATES
    text = decoder.describe(
        user_type, record.body or b"", record_id=record_id, is_update=is_update, safe=safe
    )
    return _described_line(record_id, user_type, is_update, record.compact_count, text)


def _described_line(
    record_id: int, user_type: int, is_update: bool, compact_count: int, text: str
) -> str:
    return (
        f"recordID={record_id};userRecordType={signed_byte(user_type)};"
        f"isUpdate={text_of(is_update)};compactCount={compact_count};{text}"
    )


def surviving_lines(
    loaded: PrintableLoad, decoder: Describer, *, safe: bool = False
) -> Iterator[str]:
    """Give the lines of what a load gives: live records, transactions, message counts."""
    counts = MessageCounts()
    counters = _PageCounters()
    yield "### Surviving Records Summary ###"
    for record in loaded.committed:
        counts.add(record)
        yield described(record, decoder, safe=safe)
        yield from counters.surviving_lines(record)
    if counters:
        yield "### Page Counters"
        yield from counters.lines()
    yield ""
    yield "### Prepared TX ###"
    for transaction in loaded.prepared:
        yield str(transaction.tx_id)
        for record in transaction.records:
            counts.add_prepared(record)
        yield from _transaction_lines(transaction, decoder, safe=safe)
    yield from _failed_lines(loaded.failed, decoder, safe=safe)
    yield ""
    yield from counts.lines()


def _failed_lines(
    failed: Iterable[PrintableTransaction], decoder: Describer, *, safe: bool
) -> Iterator[str]:
    for index, transaction in enumerate(failed):
        if index == 0:
            yield ""
            yield "### Failed Transactions (Missing commit/prepare/rollback record) ###"
        yield f"Transaction {transaction.tx_id} failed with these records:"
        yield from _transaction_lines(transaction, decoder, safe=safe)


def _transaction_lines(
    transaction: PrintableTransaction, decoder: Describer, *, safe: bool
) -> Iterator[str]:
    for record in transaction.records:
        yield f"- {described(record, decoder, safe=safe)}"
    for record_id in transaction.deletes:
        text = decoder.describe(0, b"", record_id=record_id, is_update=True, safe=safe)
        yield f"- {_described_line(record_id, 0, True, 0, text)} <marked to delete>"


class MessageCounts:
    """Messages and references of a load, for `### Message Counts ###`.

    A reference counts for its queue until its acknowledgement; a damaged record counts nowhere.
    """

    def __init__(self) -> None:
        self.messages = 0
        self.large_messages = 0
        self.references: dict[int, int] = {}
        self.prepared_messages = 0
        self.prepared_large_messages = 0
        self.prepared_references: dict[int, int] = {}

    def add(self, record: PrintableRecord) -> None:
        """Count a live record."""
        if record.user_type in _MESSAGE_TYPES:
            self.messages += 1
        elif record.user_type == RecordType.ADD_LARGE_MESSAGE:
            self.large_messages += 1
        elif record.user_type == RecordType.ADD_REF:
            _change(self.references, record, 1)
        elif record.user_type == RecordType.ACKNOWLEDGE_REF:
            _change(self.references, record, -1)

    def add_prepared(self, record: PrintableRecord) -> None:
        """Count a record of a prepared transaction; its acknowledgements are not counted."""
        if record.user_type in _MESSAGE_TYPES:
            self.prepared_messages += 1
        elif record.user_type == RecordType.ADD_LARGE_MESSAGE:
            self.prepared_large_messages += 1
        elif record.user_type == RecordType.ADD_REF:
            _change(self.prepared_references, record, 1)

    def lines(self) -> Iterator[str]:
        """Give the section, heading first."""
        yield "### Message Counts ###"
        yield f"message count={self.messages}"
        yield f"large message count={self.large_messages}"
        yield "message reference count"
        yield from _count_lines(self.references)
        yield f"prepared message count={self.prepared_messages}"
        yield f"prepared large message count={self.prepared_large_messages}"
        yield "prepared message reference count"
        yield from _count_lines(self.prepared_references)


def _change(references: dict[int, int], record: PrintableRecord, change: int) -> None:
    try:
        queue_id = LONG.read(BodyReader(record.body or b""))
    except RecordFormatError:
        return  # The record's own line says that it is damaged.
    if queue_id in references:
        references[queue_id] += change
    else:
        # An acknowledgement whose reference is gone starts the queue at 0, as in the reference.
        references[queue_id] = max(change, 0)


def _count_lines(references: dict[int, int]) -> Iterator[str]:
    for queue_id in _walk_order(references):
        yield f"queue id {queue_id},count={references[queue_id]}"


def _walk_order(by_queue: Iterable[int]) -> Iterable[int]:
    return hash_order({queue_id: long_hash(queue_id) for queue_id in by_queue})


class _PageCounters:
    """Page counters by queue, as the reference follows them while it prints.

    Only values (type 40) count: it meets increments (type 41) without a store to apply them to, so
    they leave the counter as it is.
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def lines(self) -> Iterator[str]:
        """Give the state of each queue."""
        for queue_id in _walk_order(self._values):
            yield f"Queue {queue_id} value={self._values[queue_id][0]}"

    def surviving_lines(self, record: PrintableRecord) -> Iterator[str]:
        """Give what follows a live counter record, nothing for any other record."""
        counter = _counter_of(record)
        if counter is not None:
            value, _ = self._count(counter)
            yield f"##SubsCounter for queue={counter.queue_id}, value={value}"
            yield ""

    def update_lines(self, record: PrintableRecord) -> Iterator[str]:
        """Give what follows an update of a counter in file order, nothing for any other update."""
        counter = _counter_of(record)
        if counter is None:
            return
        queue_id = counter.queue_id
        if isinstance(counter, PageCounterValue):
            before, _ = self._values.get(queue_id, (0, 0))
            if before not in (0, counter.value):
                yield (
                    f"####### Counter replace wrongly on queue {queue_id} "
                    f"oldValue={before} newValue={counter.value}"
                )
        value, persistent_size = self._count(counter)
        if isinstance(counter, PageCounterValue):
            change = f", result={value}"
        else:
            change = f" increased by {counter.inc}"
        negative = " #NegativeCounter!!!!" if value < 0 else ""
        yield (
            f"#Counter queue {queue_id} value={value} persistentSize={persistent_size}"
            f"{change}{negative}"
        )
        yield ""

    def _count(self, counter: PageCounterValue | PageCounterInc) -> tuple[int, int]:
        if isinstance(counter, PageCounterValue):
            self._values[counter.queue_id] = (counter.value, counter.persistent_size)
        return self._values.setdefault(counter.queue_id, (0, 0))


def _counter_of(record: PrintableRecord) -> PageCounterValue | PageCounterInc | None:
    reader = BodyReader(record.body or b"")
    try:
        if record.user_type == RecordType.PAGE_CURSOR_COUNTER_VALUE:
            return PageCounterValue.read(reader)
        if record.user_type == RecordType.PAGE_CURSOR_COUNTER_INC:
            return PageCounterInc.read(reader)
    except RecordFormatError:
        return None  # The record's own line says that it is damaged.
    return None
