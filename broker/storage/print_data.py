"""The text of the reference's `data print` around the records, line by line.

Functions over plain iterables, so that any reader of a journal can feed them: what a record, a
file, a transaction must have is a Protocol below, and what describes a body is passed in. Lines
come as they are asked for, without their line ends; records are read only when their turn comes.

The attributes of a Protocol here are told in its docstring, not one by one (D102).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Protocol

from broker.storage.java_text import signed_byte, text_of
from broker.storage.print_counts import MessageCounts, PageCounters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.storage.encoding import Body

_FRAME: Final = "*" * 44
_RECORD_ID_MASK: Final = 0x7FFF_FFFF
# How each kind of record with a body is called in its line.
_OPERATIONS: Final = {
    "event": "operation@Event;",
    "add": "operation@AddRecord;",
    "update": "operation@Update;",
    "add_tx": "operation@AddRecordTX;",
    "update_tx": "operation@UpdateTX;",
    "delete_tx": "operation@DeleteRecordTX;",
}
_UPDATES: Final = ("update", "update_tx")


class FileRecord(Protocol):
    """One record of a journal file, as `journal.reader.RawRecord` is.

    Attributes:
        kind: add, update, delete, add_tx, update_tx, delete_tx, prepare, commit, rollback, event.
        record_id: None where the kind has none.
        tx_id: None where the kind has none.
        user_type: 0 … 255; None where the kind has none.
        compact_count: how often the record was compacted.
        body: the record's body, the extra data of a prepare; None where the kind has none.
        records_in_file: what a commit or prepare counts, else None.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def record_id(self) -> int | None: ...  # noqa: D102
    @property
    def tx_id(self) -> int | None: ...  # noqa: D102
    @property
    def user_type(self) -> int | None: ...  # noqa: D102
    @property
    def compact_count(self) -> int: ...  # noqa: D102
    @property
    def body(self) -> Body | None: ...  # noqa: D102
    @property
    def records_in_file(self) -> int | None: ...  # noqa: D102


class RecordFile(Protocol):
    """A journal file, as `journal.reader.FileView` is: iterating gives its records.

    Attributes:
        name: without the folder.
        file_id: of the header.
        size: bytes.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def file_id(self) -> int: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    def __iter__(self) -> Iterator[FileRecord]: ...


class LiveRecord(Protocol):
    """An add or update that a load gave, as `journal.loader.LiveRecord` is."""

    @property
    def record_id(self) -> int: ...  # noqa: D102
    @property
    def user_type(self) -> int: ...  # noqa: D102
    @property
    def is_update(self) -> bool: ...  # noqa: D102
    @property
    def compact_count(self) -> int: ...  # noqa: D102
    @property
    def body(self) -> Body: ...  # noqa: D102


class Deletion(Protocol):
    """What a transaction deletes."""

    @property
    def record_id(self) -> int: ...  # noqa: D102


class Transaction(Protocol):
    """A prepared or failed transaction: its adds and updates, and what it deletes."""

    @property
    def tx_id(self) -> int: ...  # noqa: D102
    @property
    def records(self) -> Iterable[LiveRecord]: ...  # noqa: D102
    @property
    def deletes(self) -> Iterable[Deletion]: ...  # noqa: D102


class Describer(Protocol):
    """What these lines need to know of a body; `records.JournalDecoder` is one."""

    def describe(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool, safe: bool = False
    ) -> str:
        """Give the text of the object in a body."""
        ...

    def describe_prepared(self, extra: Body) -> str:
        """Give the text of a prepare record's extra data."""
        ...


def section_lines(title: str) -> Iterator[str]:
    """Give the frame that stands before a section, such as `M E S S A G E S   J O U R N A L`."""
    yield from ("", _FRAME, title, _FRAME)


def file_lines(
    path: str, files: Iterable[RecordFile], decoder: Describer, *, safe: bool = False
) -> Iterator[str]:
    """Give the lines of a whole journal in file order.

    Args:
        path: the folder, as the user wrote it.
        files: in the order of their file ids.
        decoder: describes the bodies.
        safe: leave out users' data.
    """
    counters = PageCounters()
    yield f"Journal path: {path}"
    for file in files:
        file_record_id = file.file_id & _RECORD_ID_MASK
        yield (
            f"#JournalFileImpl: ({file.name} id = {file.file_id}, recordID = {file_record_id}) "
            f"(size={file.size})"
        )
        for record in file:
            yield file_record_line(record, decoder, safe=safe)
            if record.kind in _UPDATES:
                yield from counters.update_lines(record.user_type or 0, record.body or b"")
    yield ""
    if counters:
        yield "#Counters during initial load:"
        yield from counters.lines()


def file_record_line(record: FileRecord, decoder: Describer, *, safe: bool = False) -> str:
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
    described = _described(
        decoder,
        record_id=record.record_id or 0,
        user_type=record.user_type or 0,
        # A delete has no user type; the reference prints it as an update of type 0.
        is_update=record.kind in _UPDATES or record.kind == "delete_tx",
        compact_count=record.compact_count,
        body=record.body or b"",
        safe=safe,
    )
    return f"{_OPERATIONS[record.kind]}{transaction}{described}"


def live_record_line(record: LiveRecord, decoder: Describer, *, safe: bool = False) -> str:
    """Give the line of one record that a load gave."""
    return _described(
        decoder,
        record_id=record.record_id,
        user_type=record.user_type,
        is_update=record.is_update,
        compact_count=record.compact_count,
        body=record.body,
        safe=safe,
    )


def _described(
    decoder: Describer,
    *,
    record_id: int,
    user_type: int,
    is_update: bool,
    compact_count: int,
    body: Body,
    safe: bool,
) -> str:
    text = decoder.describe(user_type, body, record_id=record_id, is_update=is_update, safe=safe)
    return (
        f"recordID={record_id};userRecordType={signed_byte(user_type)};"
        f"isUpdate={text_of(is_update)};compactCount={compact_count};{text}"
    )


def surviving_lines(
    committed: Iterable[LiveRecord],
    prepared: Iterable[Transaction],
    failed: Iterable[Transaction],
    decoder: Describer,
    *,
    safe: bool = False,
) -> Iterator[str]:
    """Give the lines of what a load gives: live records, transactions, message counts.

    Args:
        committed: in load order; walked once.
        prepared: in load order.
        failed: transactions left open, which will not apply.
        decoder: describes the bodies.
        safe: leave out users' data.
    """
    counts = MessageCounts()
    counters = PageCounters()
    yield "### Surviving Records Summary ###"
    for record in committed:
        counts.add(record.user_type, record.body)
        yield live_record_line(record, decoder, safe=safe)
        yield from counters.surviving_lines(record.user_type, record.body)
    if counters:
        yield "### Page Counters"
        yield from counters.lines()
    yield ""
    yield "### Prepared TX ###"
    for transaction in prepared:
        for record in transaction.records:
            counts.add_prepared(record.user_type, record.body)
        yield str(transaction.tx_id)
        yield from _transaction_lines(transaction, decoder, safe=safe)
    yield from _failed_lines(failed, decoder, safe=safe)
    yield ""
    yield from counts.lines()


def _failed_lines(
    failed: Iterable[Transaction], decoder: Describer, *, safe: bool
) -> Iterator[str]:
    for index, transaction in enumerate(failed):
        if index == 0:
            yield ""
            yield "### Failed Transactions (Missing commit/prepare/rollback record) ###"
        yield f"Transaction {transaction.tx_id} failed with these records:"
        yield from _transaction_lines(transaction, decoder, safe=safe)


def _transaction_lines(
    transaction: Transaction, decoder: Describer, *, safe: bool
) -> Iterator[str]:
    for record in transaction.records:
        yield f"- {live_record_line(record, decoder, safe=safe)}"
    for deletion in transaction.deletes:
        described = _described(
            decoder,
            record_id=deletion.record_id,
            user_type=0,
            is_update=True,
            compact_count=0,
            body=b"",
            safe=safe,
        )
        yield f"- {described} <marked to delete>"
