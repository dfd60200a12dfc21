"""The live records of one journal as Arrow record batches: what a task gives.

What counts is known only when all files of a journal were read, so a journal is one task.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pipeline.columns import arrow_schema, stored, with_times
from pipeline.live_journal import FolderJournal, open_journal, place_of
from pipeline.raw_rows import (
    BODIES_MAX,
    ROWS_MAX,
    TESTED,
    batch_of,
    damage_batches,
    fitting,
    refuse_damage,
)
from pipeline.schema import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from journal.delivery import LiveRecord
    from journal.loaded import FailedTransaction, PreparedTransaction, RecordColumns
    from pipeline.columns import Column
    from pipeline.filters import Wanted
    from pipeline.live_journal import LiveJournal
    from pipeline.place import Place

__all__ = ["live_batches"]

# Batches that may wait for the reader: one that is read, one that is ready.
WAITING_MAX: Final = 2


def live_batches(
    place: Place,
    wanted: Wanted,
    *,
    user_version: int,
    fails_on_data_loss: bool,
    columns: tuple[Column, ...] = JOURNAL,
) -> Iterator[pa.RecordBatch]:
    """Give what a load gives: live adds and updates, then open transactions, then damage.

    Of files the rows are columns throughout, no object a record, and so without what only the
    record as it stands has: file, offset, size, compact_count, checksum.

    Memory: the index of live records (journal.loader), and a few batches.

    Args:
        place: of the journal.
        wanted: tests of kind, user_type and record_id are made here.
        user_version: of every file's header.
        fails_on_data_loss: raise for what is not a torn tail.
        columns: those wanted.

    Raises:
        DataLoss: see above.
        UnsupportedFormat: something else wrote it.
        JournalIOError: it cannot be read.
    """
    schema = arrow_schema(columns)
    of_rows = arrow_schema(stored((*columns, *wanted.tested(JOURNAL, TESTED))))
    constants: dict[str, Any] = {"node": place.node, "journal": place.journal}
    with open_journal(place, user_version) as journal:
        if isinstance(journal, FolderJournal):
            refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
            constants_of_rows = {**constants, "verdict": "live"}
            for delivered in _iterate(journal.loader.deliver_columns):
                found = _column_batch(of_rows, constants_of_rows, delivered)
                for batch in fitting(found, wanted):
                    yield with_times(batch, columns)
        else:
            yield from _row_batches(schema, constants, wanted, journal)
            refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        # Of a table in parts the first one has what is of no record.
        has_prepares = place.ids is None or place.ids.first is None
        yield from _open_transactions(schema, constants, wanted, journal, has_prepares=has_prepares)
        yield from damage_batches(schema, constants, wanted, journal.damages)


def _column_batch(
    schema: pa.Schema, constants: dict[str, Any], columns: RecordColumns
) -> pa.RecordBatch:
    count = len(columns)
    updates = pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(columns.updates)])
    types = pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(columns.user_types)])
    words = pa.array(["add", "update"], pa.string())
    arrays = {
        "kind": pa.DictionaryArray.from_arrays(updates, words).cast(pa.string()),
        "record_id": pa.Array.from_buffers(
            pa.int64(), count, [None, pa.py_buffer(columns.record_ids)]
        ),
        "user_type": types.cast(pa.int16()),
        "body": pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(columns.offsets), pa.py_buffer(columns.bodies)]
        ),
    }
    return batch_of(schema, constants, arrays, count)


def _row_batches(
    schema: pa.Schema, constants: dict[str, Any], wanted: Wanted, journal: LiveJournal
) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    size = 0
    for record in journal.records():
        row = _row(record, record.kind, "live")
        if not _is_wanted(row, wanted):
            continue
        rows.append({**constants, **row})
        size += len(record.body)
        if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows, size = [], 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _is_wanted(row: dict[str, Any], wanted: Wanted) -> bool:
    return wanted.fits(**{name: row[name] for name in ("kind", "user_type", "record_id")})


def _row(record: LiveRecord, kind: str, verdict: str) -> dict[str, Any]:
    return {
        **place_of(record),
        "kind": kind,
        "record_id": record.record_id,
        "user_type": record.user_type,
        "compact_count": record.compact_count,
        "body": record.body,
        "checksum": getattr(record, "checksum", "none"),  # Tables have none.
        "verdict": verdict,
    }


def _open_transactions(
    schema: pa.Schema,
    constants: dict[str, Any],
    wanted: Wanted,
    journal: LiveJournal,
    *,
    has_prepares: bool,
) -> Iterator[pa.RecordBatch]:
    """Give the operations of prepared and failed transactions, and the prepares themselves."""
    rows = [*_operations(journal.prepared, "prepared"), *_operations(journal.failed, "failed")]
    rows = [
        {**constants, **row}
        for row in rows
        if _is_wanted(row, wanted) and (has_prepares or row["kind"] != "prepare")
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _operations(
    transactions: Iterable[PreparedTransaction | FailedTransaction], verdict: str
) -> Iterator[dict[str, Any]]:
    for one in transactions:
        tx = {"tx_id": one.tx_id}
        for record in one.records:
            yield {**_row(record, f"{record.kind}_tx", verdict), **tx}
        for delete in one.deletes:
            yield {
                "kind": "delete_tx",
                "record_id": delete.record_id,
                "user_type": None,
                "body": delete.body,
                "verdict": verdict,
                **tx,
            }
        extra = getattr(one, "extra", None)
        if extra is not None:
            yield {
                "kind": "prepare",
                "record_id": None,
                "user_type": None,
                "body": extra,
                "verdict": verdict,
                **tx,
            }


# --- from calls to a generator ------------------------------------------------------------------


class _GivenUp(Exception):
    """The reader wants no more."""


def _iterate(deliver: Callable[[Callable[[RecordColumns], object]], object]) -> Iterator[Any]:
    """Give, one by one, what `deliver(on_batch)` hands to its callback.

    It runs in a thread of its own, which waits where the reader is slow and ends where he ends.
    """
    handed: queue.Queue[RecordColumns | BaseException | None] = queue.Queue(WAITING_MAX)
    given_up = threading.Event()

    def hand(batch: RecordColumns) -> None:
        handed.put(batch)
        if given_up.is_set():
            raise _GivenUp

    def run() -> None:
        try:
            deliver(hand)
            handed.put(None)
        except _GivenUp:
            handed.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for.
            handed.put(error)

    thread = threading.Thread(target=run, name="pipeline-deliver", daemon=True)
    thread.start()
    try:
        while (found := handed.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        given_up.set()
        while thread.is_alive():
            try:
                handed.get(timeout=0.05)
            except queue.Empty:
                continue
        thread.join()
