"""The bindings of one broker as Arrow record batches: what a task gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker.model.encoding import RecordFormatError
from broker.model.wire import RecordType
from broker.printing.json_view import json_view
from broker.records.records import decode_record
from pipeline.columns import arrow_schema
from pipeline.errors import DataLoss
from pipeline.live_journal import FolderJournal, open_journal
from pipeline.raw_rows import ROWS_MAX, refuse_damage
from pipeline.schema import BINDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.printing.json_view import JSON
    from journal.delivery import LiveRecord
    from pipeline.columns import Column
    from pipeline.place import Place

__all__ = ["binding_batches"]

# The fields that name the subject of a record that is not a queue, an address or a divert.
_NAMES: Final = ("name", "username", "match", "parentName", "groupId", "mapId")
# Not for a table that many read.
_SECRET: Final = "password"


def binding_batches(
    place: Place,
    *,
    user_version: int,
    fails_on_data_loss: bool,
    columns: tuple[Column, ...] = BINDINGS,
) -> Iterator[pa.RecordBatch]:
    """Give the live records of a bindings journal, in the order of the log; then damage.

    Raises:
        DataLoss: something cannot be read, and that is asked for.
        UnsupportedFormat: something else wrote it.
        JournalIOError: it cannot be read.
    """
    schema = arrow_schema(columns)
    where = {"node": place.node, "journal": place.journal}
    rows: list[dict[str, Any]] = []
    with open_journal(place, user_version) as journal:
        if isinstance(journal, FolderJournal):
            refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        for record in journal.records():
            row = _row(record)
            if fails_on_data_loss and "damage" in row:
                reason = f"{record.file}:{record.offset}: {row['damage']}"
                raise DataLoss(place.journal, [reason])
            rows.append({**where, **row})
            if len(rows) >= ROWS_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
        refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        rows += [{**where, "damage": str(damage)} for damage in journal.damages]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _row(record: LiveRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"record_id": record.record_id, "user_type": record.user_type}
    try:
        found = decode_record(record.user_type, record.body, is_update=record.is_update)
        if found is None:
            return row
        view = json_view(found)
    except RecordFormatError as error:
        name = RecordType(record.user_type).name
        return {**row, "record_type": name, "damage": str(error)}
    return {
        **row,
        "record_type": view["recordType"],
        **_shared(view),
        "json": json.dumps(_without_secrets(view), ensure_ascii=False),
    }


def _shared(view: dict[str, JSON]) -> dict[str, JSON]:
    """The columns that several kinds of bindings have."""
    named = (view.get(name) for name in _NAMES)
    name = next((name for name in named if isinstance(name, str)), None)
    match view["recordType"]:
        case RecordType.QUEUE_BINDING_RECORD.name | RecordType.DIVERT_RECORD.name:
            return {
                "name": name,
                "address": view["address"],
                "routing_types": [view["routingType"]],
                "filter": view["filter"],
            }
        case RecordType.ADDRESS_BINDING_RECORD.name:
            return {"name": name, "address": name, "routing_types": view["routingTypes"]}
    return {"name": name}


def _without_secrets(view: dict[str, JSON]) -> dict[str, JSON]:
    return {name: value for name, value in view.items() if name != _SECRET}
