"""The messages of one journal as Arrow record batches: what a task gives.

What has become of a message is known only when all files of its journal were read, so a journal is
one task. Core messages become columns at once (pipeline.message_columns), the others a Python
object each (pipeline.message_content).
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from broker.model.encoding import RecordFormatError
from pipeline.columns import arrow_schema, stored, with_times
from pipeline.errors import DataLoss
from pipeline.filters import LONG_MAX, LONG_MIN
from pipeline.large_bodies import body_size
from pipeline.live_journal import FolderJournal, open_journal, place_of
from pipeline.message_arrays import core_arrays, state_arrays
from pipeline.message_columns import MessagePacker
from pipeline.message_content import DUPLICATE_ID, message_content, property_text
from pipeline.message_states import MESSAGE_TYPES, REFERENCE_TYPES, MessageStates
from pipeline.raw_rows import BODIES_MAX, ROWS_MAX, batch_of, fitting, refuse_damage
from pipeline.schema import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from journal.delivery import LiveRecord
    from pipeline.columns import Column
    from pipeline.filters import Wanted
    from pipeline.live_journal import LiveJournal
    from pipeline.place import Place

__all__ = ["TESTED", "body_size_of", "message_batches"]

# What is tested once a batch is there; the ids also before a message is decoded.
TESTED = ("message_id", "address", "timestamp_ms")
# What is looked at of every row, whatever is wanted: its state, and where damage is.
_LOOKED_AT = ("message_id", "expiration_ms", "file", "offset", "damage")

_REFERENCES = arrow_schema(MESSAGES).field("references").type


def message_batches(
    place: Place,
    wanted: Wanted,
    *,
    user_version: int,
    fails_on_data_loss: bool,
    as_of_ms: int,
    columns: tuple[Column, ...] = MESSAGES,
) -> Iterator[pa.RecordBatch]:
    """Give the messages that a load finds, in the order of the log; prepared ones; damage.

    Args:
        place: of the journal.
        wanted: tests of message_id, address and timestamp_ms are made here.
        user_version: of every file's header.
        fails_on_data_loss: raise for what is not a torn tail, and for bodies that cannot be read.
        as_of_ms: what has expired and what is scheduled, seen from then; ms since 1970.
        columns: those wanted; of Core messages no others are made. The rows are the same, and what
            cannot be read is found, whatever is wanted.

    Raises:
        DataLoss: see above.
        UnsupportedFormat: something else wrote it.
        JournalIOError: it cannot be read.
    """
    with open_journal(place, user_version) as journal:
        if isinstance(journal, FolderJournal):
            refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        states = MessageStates()
        broken = _take_references(states, journal)
        # Of a table known only now.
        refuse_damage(place.journal, journal.damages, fails_on_data_loss=fails_on_data_loss)
        states.take_prepared(journal.prepared)
        maker = _BatchMaker(place, wanted, states, as_of_ms, columns)
        for batch in maker.batches(journal, broken):
            if fails_on_data_loss:
                _refuse_unreadable(place, batch)
            yield with_times(batch, columns)
        for batch in maker.damages(journal):
            yield with_times(batch, columns)


def _take_references(states: MessageStates, journal: LiveJournal) -> list[tuple[LiveRecord, str]]:
    """Take all references; those that cannot be read, and why."""
    if not isinstance(journal, FolderJournal):
        return states.take(journal.records())
    with journal.loader.cursor(REFERENCE_TYPES) as cursor:
        return states.take_from(cursor)


class _BatchMaker:
    """Makes the batches of one journal.

    Args:
        place: of the journal.
        wanted: what is tested here.
        states: of all its messages.
        as_of_ms: see message_batches().
        columns: those wanted; a batch has them, without times, and what is looked at beside.
    """

    def __init__(
        self,
        place: Place,
        wanted: Wanted,
        states: MessageStates,
        as_of_ms: int,
        columns: tuple[Column, ...],
    ) -> None:
        self._constants = {"node": place.node, "journal": place.journal}
        self._place = place
        self._wanted = wanted
        self._states = states
        self._as_of_ms = as_of_ms
        beside = [column for column in MESSAGES if column.name in _LOOKED_AT]
        self._schema = arrow_schema(stored((*columns, *beside, *wanted.tested(MESSAGES, TESTED))))
        ids = wanted.get("message_id")
        self._least, self._greatest = (LONG_MIN, LONG_MAX) if ids is None else ids.integers()

    def batches(
        self, journal: LiveJournal, broken: list[tuple[LiveRecord, str]]
    ) -> Iterator[pa.RecordBatch]:
        """The messages, then references that cannot be read."""
        names = self._schema.names
        packer = MessagePacker(property_text, DUPLICATE_ID, self._least, self._greatest, names)
        for others in _filled(packer, journal):
            core = core_arrays(packer.columns(), names)
            yield from self._wanted_of(self._batch(core, others, is_prepared=False))
        prepared = [
            record
            for transaction in journal.prepared
            for record in transaction.records
            if record.user_type in MESSAGE_TYPES
        ]
        if prepared:
            nothing = core_arrays(packer.columns(), names)
            others = list(enumerate(prepared))
            yield from self._wanted_of(self._batch(nothing, others, is_prepared=True))
        if broken:
            rows = [
                {
                    "message_id": record.record_id,
                    **place_of(record),
                    "damage": f"record of type {record.user_type}: {reason}",
                }
                for record, reason in broken
            ]
            yield from self._wanted_of(self._of_rows(rows))

    def damages(self, journal: LiveJournal) -> Iterator[pa.RecordBatch]:
        """A row for each damaged place."""
        rows = [
            {"file": damage.file, "offset": damage.offset, "damage": damage.reason}
            for damage in journal.damages
        ]
        if rows:
            yield from self._wanted_of(self._of_rows(rows))

    def _of_rows(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        rows = [{**self._constants, **row} for row in rows]
        return pa.RecordBatch.from_pylist(rows, schema=self._schema)

    def _wanted_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return fitting(batch, self._wanted, TESTED)

    def _batch(
        self,
        core: dict[str, pa.Array],
        others: list[tuple[int, LiveRecord]],
        *,
        is_prepared: bool,
    ) -> pa.RecordBatch:
        """The rows of Core messages, and of others, each where it stands in the log."""
        count = len(core["message_id"])
        if others:
            made = batch_of(self._schema, self._constants, core, count)
            rows = self._of_rows([self._row(record) for _, record in others])
            table = pa.Table.from_batches([made, rows])
            (made,) = table.take(_order(count, [number for number, _ in others])).to_batches()
            core = dict(zip(self._schema.names, made.columns, strict=True))
            count = made.num_rows
        if not {"state", "references"} & set(self._schema.names):
            return batch_of(self._schema, self._constants, core, count)
        found = self._states.columns(
            _longs(core["message_id"]),
            _longs(core["expiration_ms"].fill_null(0)),
            as_of_ms=self._as_of_ms,
            is_prepared=is_prepared,
        )
        states = state_arrays(found, count, _REFERENCES)
        return batch_of(self._schema, self._constants, {**core, **states}, count)

    def _row(self, record: LiveRecord) -> dict[str, Any]:
        """One message that is not a plain Core message."""
        row: dict[str, Any] = {"message_id": record.record_id, **place_of(record)}
        try:
            row |= message_content(record.user_type, record.body)
        except RecordFormatError as error:
            row["damage"] = str(error)
        if row.get("is_large"):
            row["body_size"] = body_size_of(self._place, record.record_id)
        return row


def body_size_of(place: Place, message_id: int) -> int | None:
    """Bytes of a large message's file; None: it is not there, as after the last acknowledgement.

    Raises:
        JournalIOError: it cannot be looked at.
    """
    return None if place.large_messages is None else body_size(place.large_messages, message_id)


def _filled(packer: MessagePacker, journal: LiveJournal) -> Iterator[list[tuple[int, LiveRecord]]]:
    """Fill the packer again and again; give what it did not take, by place."""
    with ExitStack() as stack:
        fill: Callable[..., list[tuple[int, LiveRecord]] | None]
        if isinstance(journal, FolderJournal):
            cursor = stack.enter_context(journal.loader.cursor(MESSAGE_TYPES))
            fill = partial(packer.fill_from, cursor)
        else:
            fill = partial(packer.fill, iter(journal.records()))
        while (others := fill(rows_max=ROWS_MAX, bodies_max=BODIES_MAX)) is not None:
            yield others


def _order(count: int, places: list[int]) -> pa.Array:
    """Where each row is taken from: `count` of the first kind, the others behind them."""
    order = iter(range(count))
    by_place = {place: count + number for number, place in enumerate(places)}
    return pa.array(
        [
            by_place[place] if place in by_place else next(order)
            for place in range(count + len(places))
        ],
        pa.int64(),
    )


def _longs(column: pa.Array) -> memoryview:
    """The values of a column of integers without nulls."""
    if not len(column):
        return memoryview(b"").cast("q")
    view = memoryview(column.buffers()[1]).cast("B").cast("q")
    return view[column.offset : column.offset + len(column)]


def _refuse_unreadable(place: Place, batch: pa.RecordBatch) -> None:
    """Raise DataLoss for the first row that could not be read."""
    damages = batch.column("damage")
    if damages.null_count == batch.num_rows:
        return
    row = batch.slice(damages.is_valid().index(pa.scalar(value=True)).as_py(), 1).to_pylist()[0]
    reason = f"{row['file']}:{row['offset']}: message {row['message_id']}: {row['damage']}"
    raise DataLoss(place.journal, [reason])
