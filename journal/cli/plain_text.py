"""Records as lines in the reference's `data print` wording, bodies as hexadecimal bytes.

With a decoder the bodies are its business, and so are the lines around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.loader import DeletedRecord, LiveRecord, Loader, LoadResult
    from journal.reader import FileView, RawRecord

__all__ = ["file_lines", "live_lines"]

OPERATIONS = {
    "event": "Event",
    "add": "AddRecord",
    "update": "Update",
    "add_tx": "AddRecordTX",
    "update_tx": "UpdateTX",
    "delete_tx": "DeleteRecordTX",
}
RECORD_ID_MASK = 0x7FFF_FFFF


def live_lines(result: LoadResult, loader: Loader) -> Iterator[str]:
    """What a load gave: live records, then prepared and failed transactions."""
    yield "### Surviving Records Summary ###"
    for record in loader.records():
        yield live_line(record)
    yield ""
    yield "### Prepared TX ###"
    for transaction in result.prepared:
        yield str(transaction.tx_id)
        yield from transaction_lines(transaction.records, transaction.deletes)
    for index, failure in enumerate(result.failed):
        if index == 0:
            yield ""
            yield "### Failed Transactions (Missing commit/prepare/rollback record) ###"
        yield f"Transaction {failure.tx_id} failed with these records:"
        yield from transaction_lines(failure.records, failure.deletes)


def transaction_lines(
    records: Iterable[LiveRecord], deletes: Iterable[DeletedRecord]
) -> Iterator[str]:
    """An open transaction's operations."""
    for record in records:
        yield f"- {live_line(record)}"
    for delete in deletes:
        text = body_line(delete.record_id, 0, is_update=True, compact_count=0, body=delete.body)
        yield f"- {text} <marked to delete>"


def live_line(record: LiveRecord) -> str:
    """One live record."""
    return body_line(
        record.record_id,
        record.user_type,
        is_update=record.is_update,
        compact_count=record.compact_count,
        body=bytes(record.body),
    )


def file_lines(path: str, views: Iterable[FileView]) -> Iterator[str]:
    """Every record in file order."""
    yield f"Journal path: {path}"
    for view in views:
        record_id = view.file_id & RECORD_ID_MASK
        yield (
            f"#JournalFileImpl: ({view.name} id = {view.file_id}, recordID = {record_id})"
            f" (size={view.size})"
        )
        for record in view:
            yield raw_line(record)
    yield ""


def raw_line(record: RawRecord) -> str:
    """One record of a file."""
    if record.kind == "delete":
        return f"operation@DeleteRecord;recordID={record.record_id}"
    if record.kind == "rollback":
        return f"operation@Rollback;txID={record.tx_id}"
    if record.kind == "commit":
        return f"operation@Commit;txID={record.tx_id},numberOfRecords={record.records_in_file}"
    if record.kind == "prepare":
        return (
            f"operation@Prepare,txID={record.tx_id},numberOfRecords={record.records_in_file},"
            f"extraData={(record.body or b'').hex()}"
        )
    transaction = "" if record.tx_id is None else f"txID={record.tx_id},"
    text = body_line(
        record.record_id or 0,
        record.user_type or 0,
        is_update=record.is_update or record.kind == "delete_tx",
        compact_count=record.compact_count,
        body=record.body or b"",
    )
    return f"operation@{OPERATIONS[record.kind]};{transaction}{text}"


def body_line(
    record_id: int, user_type: int, *, is_update: bool, compact_count: int, body: bytes
) -> str:
    """The part of a line that says what a record holds; the user type as a signed byte."""
    signed = user_type - 256 if user_type > 127 else user_type
    return (
        f"recordID={record_id};userRecordType={signed};isUpdate={str(is_update).lower()};"
        f"compactCount={compact_count};body={body.hex()}"
    )
