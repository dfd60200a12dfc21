"""Every record of one file, or of one table, as Arrow record batches: what a task gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from journal.errors import Damage, JournalIOError, UnsupportedFormat
from journal.reader import read_bytes
from pipeline.columns import arrow_schema, stored, with_times
from pipeline.errors import DataLoss
from pipeline.live_journal import open_table
from pipeline.raw_columns import CHECKSUMS, KINDS, VERDICTS, PackedFile, RawColumns
from pipeline.schema import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from journal.reader import RawRecord
    from journal.remote import AnyPath
    from pipeline.columns import Column
    from pipeline.filters import Wanted
    from pipeline.place import Place

__all__ = [
    "BODIES_MAX",
    "DAMAGE",
    "ROWS_MAX",
    "TESTED",
    "FileToRead",
    "batch_of",
    "damage_batches",
    "file_batches",
    "fitting",
    "lost_batches",
    "packed_batches",
    "refuse_damage",
    "table_batches",
]

# Of one batch: rows, and bytes of their bodies. Large enough that a batch costs little beside its
# rows, small enough that several of them fit the memory of any worker.
ROWS_MAX: Final = 16_384
BODIES_MAX: Final = 8 << 20
# The columns of a record whose tests are made here.
TESTED: Final = ("kind", "user_type", "record_id")
# The kind of a row that stands for a damaged place.
DAMAGE: Final = "damage"
INT_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class FileToRead:
    """One journal file, as it was when the query was planned.

    Attributes:
        node: whose it is.
        journal: its folder, for people.
        path: of the file.
        name: of the file, as it will be called after recovery.
        file_id: of its header.
        size: bytes.
        is_newest: no file with a higher id holds data.
        copied: of a file of a history: when it was copied, by the broker's local time.
    """

    node: str
    journal: str
    path: AnyPath
    name: str
    file_id: int
    size: int
    is_newest: bool
    copied: datetime | None = None


def file_batches(
    file: FileToRead,
    columns: tuple[Column, ...],
    wanted: Wanted,
    *,
    user_version: int,
    fails_on_data_loss: bool,
) -> Iterator[pa.RecordBatch]:
    """Give the wanted records of a file in its order, then a row for each damaged place.

    Memory: the file, 80 bytes a record of it, and one batch.

    Args:
        file: to be read.
        columns: those wanted of pipeline.schema's JOURNAL or RETENTION; of others nothing is made.
        wanted: tests of kind, user_type and record_id are made here.
        user_version: what the header must say.
        fails_on_data_loss: raise for what is not a torn tail.

    Raises:
        DataLoss: see above; also where the file cannot be read, is of another format, or was used
            again since the query was planned.
    """
    try:
        packed = PackedFile(
            file.name, read_bytes(file.path), is_newest=file.is_newest, user_version=user_version
        )
    except (JournalIOError, UnsupportedFormat) as error:
        if fails_on_data_loss:
            raise DataLoss(file.journal, [str(error)]) from error
        yield from lost_batches(file, columns, wanted, str(error))
        return
    if packed.file_id != file.file_id:
        reason = f"{file.name} was used again since the query was planned"
        if fails_on_data_loss:
            raise DataLoss(file.journal, [reason])
        yield from lost_batches(file, columns, wanted, reason)
        return
    packed.want(*_conditions(wanted))
    yield from packed_batches(
        packed, file, columns, wanted, packed.damages, fails_on_data_loss=fails_on_data_loss
    )


def lost_batches(
    file: FileToRead, columns: tuple[Column, ...], wanted: Wanted, reason: str
) -> Iterator[pa.RecordBatch]:
    """Give a row of damage for a file of which nothing can be read."""
    lost = [Damage(file.name, 0, 0, reason)]
    yield from damage_batches(arrow_schema(columns), _constants(file), wanted, lost)


def packed_batches(
    packed: PackedFile,
    file: FileToRead,
    columns: tuple[Column, ...],
    wanted: Wanted,
    damages: Sequence[Damage],
    *,
    fails_on_data_loss: bool,
) -> Iterator[pa.RecordBatch]:
    """Give the records of a file that pack() gives, then a row for each damaged place.

    Args:
        packed: the file, told what is wanted of it.
        file: which it is.
        columns: those wanted of pipeline.schema's JOURNAL or RETENTION; of others nothing is made.
        wanted: tests that pack() makes in part.
        damages: of the file, those that concern the caller.
        fails_on_data_loss: raise for what is not a torn tail.

    Raises:
        DataLoss: see above.
    """
    constants = _constants(file)
    schema = arrow_schema(stored((*columns, *wanted.tested(JOURNAL, TESTED))))
    refuse_damage(file.journal, damages, fails_on_data_loss=fails_on_data_loss)
    place: int | None = 0
    while place is not None:
        found, place = packed.pack(
            place, rows_max=ROWS_MAX, bodies_max=BODIES_MAX, with_bodies="body" in schema.names
        )
        if found.row_count:
            # What was packed is within the ids that are wanted, and there may be gaps in those.
            for batch in fitting(_record_batch(schema, constants, found), wanted):
                yield with_times(batch, columns)
    yield from damage_batches(arrow_schema(columns), constants, wanted, damages)


def _constants(file: FileToRead) -> dict[str, Any]:
    """The columns that are the same in all rows of a file."""
    return {
        "node": file.node,
        "journal": file.journal,
        "copied": file.copied,
        "file": file.name,
        "file_id": file.file_id,
    }


def refuse_damage(journal: str, damages: Sequence[Damage], *, fails_on_data_loss: bool) -> None:
    """Raise DataLoss for damage other than a torn tail, if that is asked for."""
    lost = [str(damage) for damage in damages if not damage.torn]
    if lost and fails_on_data_loss:
        raise DataLoss(journal, lost)


def _conditions(
    wanted: Wanted,
) -> tuple[list[str] | None, list[int] | None, tuple[int, int] | None]:
    """The tests as PackedFile.want() takes them."""
    kinds, types, ids = (wanted.get(name) for name in ("kind", "user_type", "record_id"))
    return (
        None if kinds is None else [kind for kind in KINDS if kinds.fits(kind)],
        None if types is None else [number for number in range(256) if types.fits(number)],
        None if ids is None else ids.integers(),
    )


def _record_batch(
    schema: pa.Schema, constants: dict[str, Any], found: RawColumns
) -> pa.RecordBatch:
    count = found.row_count
    made: dict[str, Callable[[], pa.Array]] = {
        "offset": lambda: _numbers(pa.int64(), count, found.offsets),
        "size": lambda: _numbers(pa.int32(), count, found.sizes),
        "kind": lambda: _words(KINDS, count, found.kinds),
        "record_id": lambda: _numbers(pa.int64(), count, found.record_ids, found.has_record_id),
        "tx_id": lambda: _numbers(pa.int64(), count, found.tx_ids, found.has_tx_id),
        "user_type": lambda: _numbers(pa.int16(), count, found.user_types, found.has_user_type),
        "compact_count": lambda: _numbers(pa.int32(), count, found.compact_counts),
        "body": lambda: pa.Array.from_buffers(
            pa.binary(),
            count,
            [pa.py_buffer(one) for one in (found.has_body, found.body_offsets, found.bodies)],
        ),
        "records_in_file": lambda: _numbers(
            pa.int32(), count, found.records_in_file, found.has_records_in_file
        ),
        "checksum": lambda: _words(CHECKSUMS, count, found.checksums),
        "ordinal": lambda: _numbers(pa.int32(), count, found.ordinals, found.has_ordinal),
        "verdict": lambda: _words(VERDICTS, count, found.verdicts),
    }
    arrays = {name: make() for name, make in made.items() if name in schema.names}
    return batch_of(schema, constants, arrays, count)


def fitting(
    batch: pa.RecordBatch, wanted: Wanted, names: tuple[str, ...] = TESTED
) -> Iterator[pa.RecordBatch]:
    """Give the rows of a batch that are wanted, if there are any.

    Args:
        batch: of rows.
        wanted: the tests.
        names: of the columns whose tests are made here.
    """
    fits = pa.scalar(value=True)
    for name in names:
        tests = wanted.get(name)
        if tests is None:
            continue
        fits = pc.and_(fits, pc.is_valid(batch.column(name)))
        for sign, value in tests.tests:
            fits = pc.and_(fits, _COMPARISONS[sign](batch.column(name), value))
    if isinstance(fits, pa.Scalar):
        yield batch
        return
    batch = batch.filter(fits)
    if batch.num_rows:
        yield batch


_COMPARISONS: Final[dict[str, Callable[[pa.Array, Any], pa.Array]]] = {
    "=": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    "in": lambda column, values: pc.is_in(_wide(column), pa.array(values, _wide(column).type)),
}


def _wide(column: pa.Array) -> pa.Array:
    """Integers as 64-bit ones: what they are compared with may be greater than any of them."""
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def batch_of(
    schema: pa.Schema, constants: dict[str, Any], arrays: dict[str, pa.Array], count: int
) -> pa.RecordBatch:
    """A record batch of columns; of those that are not given each row has the same, or null."""
    return pa.RecordBatch.from_arrays(
        [
            arrays[field.name]
            if field.name in arrays
            else pa.repeat(pa.scalar(constants.get(field.name), field.type), count)
            for field in schema
        ],
        schema=schema,
    )


def _numbers(
    kind: pa.DataType, count: int, values: bytearray, bitmap: bytearray | None = None
) -> pa.Array:
    validity = None if bitmap is None else pa.py_buffer(bitmap)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(values)])


def _words(words: tuple[str, ...], count: int, codes: bytearray) -> pa.Array:
    indices = _numbers(pa.uint8(), count, codes)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string())).cast(pa.string())


def damage_batches(
    schema: pa.Schema, constants: dict[str, Any], wanted: Wanted, damages: Sequence[Damage]
) -> Iterator[pa.RecordBatch]:
    """Give a row for each damaged place, where the tests let it pass."""
    if not damages or not wanted.fits(kind=DAMAGE, user_type=None, record_id=None):
        return
    rows = [
        {
            **constants,
            "file": damage.file,
            "offset": damage.offset,
            "size": min(damage.size, INT_MAX),
            "kind": DAMAGE,
            "verdict": "torn" if damage.torn else "damaged",
            "damage": damage.reason,
        }
        for damage in damages
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=schema)


# --- databases ----------------------------------------------------------------------------------


def table_batches(
    place: Place, columns: tuple[Column, ...], wanted: Wanted, *, fails_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """Give the wanted rows of a table, or of a part of it, as they were at one moment, by seq.

    Damaged ones come last.

    Memory: one page of rows (jdbcstore.row_pages), and one batch.

    Raises:
        DataLoss: rows contradict each other, and that is asked for; known only at the end.
        JournalIOError: the database fails.
    """
    from jdbcstore.tools.records import TableRecords  # Here: files need no SQLAlchemy.

    schema = arrow_schema(columns)
    constants = {"node": place.node, "journal": place.journal, "file_id": 0}
    with open_table(place) as snapshot:
        records = TableRecords(snapshot)
        constants["file"] = records.name
        if not wanted.fits(file=records.name):
            return
        rows: list[dict[str, Any]] = []
        size = 0
        for record in records.raw(lambda *_: None):
            if not wanted.fits(
                kind=record.kind, user_type=record.user_type, record_id=record.record_id
            ):
                continue
            rows.append({**constants, **_table_row(record)})
            size += record.size
            if len(rows) >= ROWS_MAX or size >= BODIES_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows, size = [], 0
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
        refuse_damage(place.journal, records.damages, fails_on_data_loss=fails_on_data_loss)
        yield from damage_batches(schema, constants, wanted, records.damages)


def _table_row(record: RawRecord) -> dict[str, Any]:
    fields = record._asdict()
    return {name: fields[name] for name in fields.keys() & _RECORD_FIELDS}


_RECORD_FIELDS: Final = {
    *("kind", "offset", "size", "record_id", "tx_id", "user_type", "compact_count", "body"),
    *("records_in_file", "checksum", "ordinal", "verdict"),
}
