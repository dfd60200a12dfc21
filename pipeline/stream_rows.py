"""A segment of a followed journal, or history, as Arrow record batches: what a task gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from journal.errors import UnsupportedFormat
from pipeline.errors import DataLoss
from pipeline.filters import Wanted
from pipeline.raw_rows import lost_batches, packed_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pipeline.columns import Column
    from pipeline.stream import Follower, Segment

__all__ = ["segment_batches"]

# What of a compacted file is read: deletes and ends of transactions have no id that tells whether
# they were read.
MOVED_KINDS: Final = ("add", "update", "add_tx", "update_tx")
# Spark gives no filters to a stream.
EVERYTHING: Final = Wanted({})


def segment_batches(
    follower: Follower, segment: Segment, columns: tuple[Column, ...], *, fails_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """Give the records of a segment; of a file that is gone, what compactions have kept of it.

    Args:
        follower: of the journal, or history.
        segment: of it.
        columns: those wanted.
        fails_on_data_loss: see below.

    Raises:
        DataLoss: damage, or a copy of a history that was removed before it was read, and that is
            asked for.
        JournalIOError: a file cannot be read.
    """
    if segment.file is not None:
        file = segment.file
        try:
            packed = follower.open_original(file)
        except UnsupportedFormat as error:
            if fails_on_data_loss:
                raise DataLoss(file.journal, [str(error)]) from error
            yield from lost_batches(file, columns, EVERYTHING, str(error))
            return
        if packed is not None:
            packed.clip(segment.first, segment.end)
            inside = [
                damage for damage in packed.damages if segment.first <= damage.offset < segment.end
            ]
            yield from packed_batches(
                *(packed, file, columns, EVERYTHING, inside),
                fails_on_data_loss=fails_on_data_loss,
            )
            return
        if follower.is_history:
            reason = f"{file.name}: removed before it was read"
            if fails_on_data_loss:
                raise DataLoss(file.journal, [reason])
            yield from lost_batches(file, columns, EVERYTHING, reason)
            return
    for file, packed in follower.moved_files():
        packed.want(MOVED_KINDS, None, (segment.above_id + 1, segment.up_to_id))
        yield from packed_batches(
            *(packed, file, columns, EVERYTHING, ()), fails_on_data_loss=fails_on_data_loss
        )
