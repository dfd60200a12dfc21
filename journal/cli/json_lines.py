"""Records as JSON lines, losslessly: bodies whole, in lower-case hexadecimal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from journal.api import Progress, RecordDecoder
    from journal.delivery import LiveRecord
    from journal.loaded import FailedTransaction, PreparedTransaction
    from journal.reader import FileView, RawRecord
    from journal.tools.stored import StoredRecords

__all__ = ["live_objects", "raw_objects"]


def live_objects(
    records: StoredRecords, progress: Progress, decoder: RecordDecoder | None
) -> Iterator[str]:
    """The live view in load order: records, then prepared and failed transactions."""
    for record in records.records(progress):
        line = {
            "record": record.kind,
            "id": record.record_id,
            "user_type": record.user_type,
            "body": bytes(record.body).hex(),
            "file": record.file,
            "offset": record.offset,
            "checksum": record.checksum,
        }
        yield _dump(line | _decoded(record, decoder))
    for prepared in records.prepared:
        line = {"record": "prepared", "tx_id": prepared.tx_id, "extra": prepared.extra.hex()}
        yield _dump(line | _operations(prepared, decoder))
    for failed in records.failed:
        line = {"record": "failed", "tx_id": failed.tx_id}
        yield _dump(line | _operations(failed, decoder))


def _dump(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _operations(
    transaction: PreparedTransaction | FailedTransaction, decoder: RecordDecoder | None
) -> dict[str, Any]:
    return {
        "adds": [
            {
                "id": record.record_id,
                "user_type": record.user_type,
                "update": record.is_update,
                "body": bytes(record.body).hex(),
            }
            | _decoded(record, decoder)
            for record in transaction.records
        ],
        "deletes": [delete.record_id for delete in transaction.deletes],
    }


def raw_objects(view: FileView, decoder: RecordDecoder | None) -> Iterator[str]:
    """Every record of a file; one that does not count says so in `verdict`."""
    for record in view:
        line = {
            "file": view.name,
            "file_id": view.file_id,
            "offset": record.offset,
            "record": record.kind,
            "id": record.record_id,
            "tx_id": record.tx_id,
            "user_type": record.user_type,
            "compact_count": record.compact_count,
            "body": None if record.body is None else record.body.hex(),
            "records_in_file": record.records_in_file,
            "checksum": record.checksum,
        }
        if record.verdict != "live":
            line["verdict"] = record.verdict
        yield _dump(line | _decoded(record, decoder))


def _decoded(record: LiveRecord | RawRecord, decoder: RecordDecoder | None) -> dict[str, Any]:
    """`{"decoded": ...}` for what has a user type, if a decoder was asked for."""
    if decoder is None:
        return {}
    if record.user_type is None or record.record_id is None:
        return {"decoded": None}
    decoded = decoder.decode(
        record.user_type,
        bytes(record.body or b""),
        record_id=record.record_id,
        is_update=record.is_update,
    )
    return {"decoded": decoded}
