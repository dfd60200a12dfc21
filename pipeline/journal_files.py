"""How much of each file of a journal a start would load: what a task gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.columns import Column, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FILES", "file_rows"]

FILES: Final = (
    Column("node", "string", "name of the instance, or of the folder or database"),
    Column("file", "string", "name of the file; of a database the table"),
    Column("file_id", "bigint", "what orders the files"),
    Column("all_bytes", "bigint", "of all records"),
    Column("live_bytes", "bigint", "of those whose id is live"),
)
# Of what a start loads: an update is live as long as its record is.
_LOADED: Final = ("add", "update", "add_tx", "update_tx")


def file_rows(
    raw: Iterable[pa.RecordBatch], live: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give a row a file.

    Memory: 8 bytes for each live record, and a batch.

    Args:
        raw: every record of a journal, the columns of `journal`.
        live: those that count.
    """
    ids = pc.unique(
        pa.chunked_array(
            [pc.unique(batch.column("record_id").drop_null()) for batch in live], pa.int64()
        )
    )
    found: dict[tuple[str, str], list[int]] = {}
    for batch in raw:
        batch = batch.filter(pc.not_equal(batch.column("kind"), "damage"))
        if not batch.num_rows:
            continue
        sizes = batch.column("size")
        is_live = pc.and_(
            pc.is_in(batch.column("kind"), pa.array(_LOADED)),
            pc.is_in(batch.column("record_id"), ids, skip_nulls=True),
        )
        # A batch is of one file.
        key, file_id = (
            (batch.column("node")[0].as_py(), batch.column("file")[0].as_py()),
            batch.column("file_id")[0].as_py() or 0,
        )
        row = found.setdefault(key, [file_id, 0, 0])
        row[1] += pc.sum(sizes).as_py()
        row[2] += pc.sum(sizes.filter(is_live)).as_py() or 0
    rows = [
        dict(zip((one.name for one in FILES), (*key, *row), strict=True))
        for key, row in found.items()
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(FILES))
