"""The wording of Artemis's `data print`: the one place for all commands that print a journal.

Functions over plain iterables, so that any reader of a journal can feed them: what a record, a
file, a transaction must have is a Protocol below, and what describes a body is passed in. Lines
come as they are asked for, without their line ends; records are read only when their turn comes.

The attributes of a Protocol here are told in its docstring, not one by one (D102).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "PREPARED",
    "SURVIVING",
    "Deletion",
    "Describer",
    "FileRecord",
    "LiveRecord",
    "RecordFile",
    "Transaction",
    "failed_lines",
    "file_line",
    "file_record_line",
    "live_record_line",
    "path_line",
    "prepared_lines",
]

SURVIVING: Final = "### Surviving Records Summary ###"
PREPARED: Final = "### Prepared TX ###"
FAILED: Final = "### Failed Transactions (Missing commit/prepare/rollback record) ###"
RECORD_ID_MASK: Final = 0x7FFF_FFFF
# How each kind of record with a body is called in its line.
OPERATIONS: Final = {
    "event": "operation@Event;",
    "add": "operation@AddRecord;",
    "update": "operation@Update;",
    "add_tx": "operation@AddRecordTX;",
    "update_tx": "operation@UpdateTX;",
    "delete_tx": "operation@DeleteRecordTX;",
}
# A delete has no user type; Artemis prints it as an update of type 0.
UPDATES: Final = ("update", "update_tx", "delete_tx")


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
    def body(self) -> bytes | bytearray | memoryview | None: ...  # noqa: D102
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
    """An add or update that a load gave, as `journal.delivery.LiveRecord` is."""

    @property
    def record_id(self) -> int: ...  # noqa: D102
    @property
    def user_type(self) -> int: ...  # noqa: D102
    @property
    def is_update(self) -> bool: ...  # noqa: D102
    @property
    def compact_count(self) -> int: ...  # noqa: D102
    @property
    def body(self) -> bytes | bytearray | memoryview: ...  # noqa: D102


class Deletion(Protocol):
    """What a transaction deletes, and the body of that delete."""

    @property
    def record_id(self) -> int: ...  # noqa: D102
    @property
    def body(self) -> bytes | bytearray | memoryview: ...  # noqa: D102


class Transaction(Protocol):
    """A prepared or failed transaction: its adds and updates, and what it deletes."""

    @property
    def tx_id(self) -> int: ...  # noqa: D102
    @property
    def records(self) -> Iterable[LiveRecord]: ...  # noqa: D102
    @property
    def deletes(self) -> Iterable[Deletion]: ...  # noqa: D102


class Describer(Protocol):
    """What these lines need to know of a body."""

    def describe(
        self,
        user_type: int,
        body: bytes | bytearray | memoryview,
        *,
        record_id: int,
        is_update: bool,
    ) -> str:
        """Give the text of what a body holds."""
        ...

    def describe_prepared(self, extra: bytes | bytearray | memoryview) -> str:
        """Give the text of a prepare record's extra data."""
        ...


def path_line(path: str) -> str:
    """Give the line before all files."""
    return f"Journal path: {path}"


def file_line(file: RecordFile) -> str:
    """Give the line before a file's records."""
    return (
        f"#JournalFileImpl: ({file.name} id = {file.file_id},"
        f" recordID = {file.file_id & RECORD_ID_MASK}) (size={file.size})"
    )


def file_record_line(record: FileRecord, describer: Describer) -> str:
    """Give the line of one record of a journal file."""
    if record.kind == "delete":
        return f"operation@DeleteRecord;recordID={record.record_id}"
    if record.kind == "rollback":
        return f"operation@Rollback;txID={record.tx_id}"
    if record.kind == "commit":
        return f"operation@Commit;txID={record.tx_id},numberOfRecords={record.records_in_file}"
    if record.kind == "prepare":
        return (
            f"operation@Prepare,txID={record.tx_id},numberOfRecords={record.records_in_file},"
            f"extraData={describer.describe_prepared(record.body or b'')}"
        )
    transaction = "" if record.tx_id is None else f"txID={record.tx_id},"
    described = _described(
        describer,
        record_id=record.record_id or 0,
        user_type=record.user_type or 0,
        is_update=record.kind in UPDATES,
        compact_count=record.compact_count,
        body=record.body or b"",
    )
    return f"{OPERATIONS[record.kind]}{transaction}{described}"


def live_record_line(record: LiveRecord, describer: Describer) -> str:
    """Give the line of one record that a load gave."""
    return _described(
        describer,
        record_id=record.record_id,
        user_type=record.user_type,
        is_update=record.is_update,
        compact_count=record.compact_count,
        body=record.body,
    )


def prepared_lines(transaction: Transaction, describer: Describer) -> Iterator[str]:
    """Give the lines of one prepared transaction; PREPARED stands before the first."""
    yield str(transaction.tx_id)
    yield from _operation_lines(transaction, describer)


def failed_lines(failed: Iterable[Transaction], describer: Describer) -> Iterator[str]:
    """Give the lines of all transactions that will not apply; none where there are none."""
    for index, transaction in enumerate(failed):
        if index == 0:
            yield ""
            yield FAILED
        yield f"Transaction {transaction.tx_id} failed with these records:"
        yield from _operation_lines(transaction, describer)


def _operation_lines(transaction: Transaction, describer: Describer) -> Iterator[str]:
    for record in transaction.records:
        yield f"- {live_record_line(record, describer)}"
    for deletion in transaction.deletes:
        described = _described(
            describer,
            record_id=deletion.record_id,
            user_type=0,
            is_update=True,
            compact_count=0,
            body=deletion.body,
        )
        yield f"- {described} <marked to delete>"


def _described(
    describer: Describer,
    *,
    record_id: int,
    user_type: int,
    is_update: bool,
    compact_count: int,
    body: bytes | bytearray | memoryview,
) -> str:
    text = describer.describe(user_type, body, record_id=record_id, is_update=is_update)
    signed = (user_type + 128) % 256 - 128
    return (
        f"recordID={record_id};userRecordType={signed};isUpdate={str(is_update).lower()};"
        f"compactCount={compact_count};{text}"
    )
