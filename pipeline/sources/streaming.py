"""Streams of `journal` and `retention`: positions in a checkpoint, tasks of some files.

Needs PySpark 4.2, whose streams know limits; the rest of `sources` does not import this.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from journal.errors import OptionError
from pipeline.filters import LONG_MAX
from pipeline.places import find_histories, find_places
from pipeline.sources.file_tasks import shares
from pipeline.sources.plain_errors import with_plain_errors
from pipeline.stream import BEGIN, Follower, Position
from pipeline.stream_rows import segment_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pipeline.columns import Column
    from pipeline.options import SourceOptions
    from pipeline.stream import Segment

__all__ = ["StreamReader"]


def _local(timestamp_ms: int) -> datetime:
    """A moment as the names of copies have it: the broker's local time, taken for ours."""
    return datetime.fromtimestamp(timestamp_ms / 1000)  # noqa: DTZ006 - see above


@dataclass
class Part(InputPartition):
    """A task.

    Attributes:
        follower: reads its files.
        segments: what it reads, one after the other.
    """

    follower: Follower
    segments: tuple[Segment, ...]


@with_plain_errors
class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the journals, or histories, that a query names; new ones, too.

    An offset has a Position by folder, whole paths without links, so that a query may be started
    anywhere.

    Args:
        options: of the query.
        is_history: whether histories are followed.
        columns: those that are wanted, in their order.
    """

    def __init__(
        self, options: SourceOptions, *, is_history: bool, columns: tuple[Column, ...]
    ) -> None:
        if options.records == "live":
            raise OptionError("records=live: what counts changes; only raw records can be followed")
        for name, given in (
            ("startingTimestamp", options.starting_timestamp_ms),
            ("endingTimestamp", options.ending_timestamp_ms),
        ):
            if given is not None and not is_history:
                raise OptionError(
                    f"{name}: records of a journal have no time; the source retention has"
                )
        self.options = options
        self.is_history = is_history
        self.columns = columns
        self._followers: dict[str, Follower] = {}
        self._target: dict[str, Position] | None = None
        # What partitions() is asked for next, mostly: planned once.
        self._planned: tuple[dict[str, Any], dict[str, Any], list[Part]] | None = None

    # --- positions --------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins."""
        return {key: self._initial(key, one).json() for key, one in self._found().items()}

    def _initial(self, key: str, follower: Follower) -> Position:
        options = self.options
        if options.starting_timestamp_ms is not None:
            return follower.before(_local(options.starting_timestamp_ms))
        if isinstance(options.starting_offsets, dict):
            given = options.starting_offsets.get(key)
            return BEGIN if given is None else Position.of_json(given)
        return follower.end() if options.starting_offsets == "latest" else BEGIN

    def getDefaultReadLimit(self) -> ReadLimit:
        """What maxRecordsPerTrigger says."""
        rows_max = self.options.max_records_per_trigger
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what is there; no further is read."""
        self._target = {key: one.end() for key, one in self._found().items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes: each journal has the same share of a limit."""
        if self.options.ending_offsets == "latest" and self._target is None:
            self.prepareForTriggerAvailableNow()
        followers = self._found()
        rows_max = LONG_MAX
        if isinstance(limit, ReadMaxRows):
            rows_max = max(1, limit.max_rows // len(followers))
        end = dict(start)
        parts: list[Part] = []
        for key, follower in followers.items():
            if self._target is not None and key not in self._target:
                continue
            until = self._until(key, follower)
            # What came behind the start of the query is read from its beginning.
            at = Position.of_json(start[key]) if key in start else BEGIN
            segments, position = follower.advance(at, until=until, rows_max=rows_max)
            end[key] = position.json()
            parts += self._parts(follower, segments)
        self._planned = dict(start), end, parts
        return end

    def _until(self, key: str, follower: Follower) -> Position | None:
        """The position up to which a folder is read; None: to its present end."""
        ends = list[Position]()
        if self._target is not None:
            ends.append(self._target[key])
        if isinstance(self.options.ending_offsets, dict):
            given = self.options.ending_offsets.get(key)
            ends.append(BEGIN if given is None else Position.of_json(given))
        if self.options.ending_timestamp_ms is not None:
            ends.append(follower.before(_local(self.options.ending_timestamp_ms)))
        until: Position | None = None
        for end in ends:
            if until is None or until.is_behind(end):
                until = end
        return until

    def reportLatestOffset(self) -> dict[str, Any]:
        """What a query's lastProgress has as `latestOffset`.

        By folder its newest file (`file_id`), the offset in it behind its last record, and
        `lag_bytes`: bytes of files behind the batch that was planned last.
        """
        planned = {} if self._planned is None else self._planned[1]
        latest: dict[str, Any] = {}
        for key, follower in self._followers.items():
            at = Position.of_json(planned[key]) if key in planned else BEGIN
            found = follower.lag(at)
            if found is not None:
                file_id, offset, lag_bytes = found
                latest[key] = {"file_id": file_id, "offset": offset, "lag_bytes": lag_bytes}
        return latest

    # --- tasks ------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks between two offsets."""
        if self._planned is not None and self._planned[:2] == (start, end):
            return list(self._planned[2])
        parts: list[InputPartition] = []
        followers = self._found()
        for key, given in end.items():
            if key not in followers:
                continue  # Its folder is gone, and with it what was in it.
            at = Position.of_json(start[key]) if key in start else BEGIN
            segments, _ = followers[key].advance(at, until=Position.of_json(given))
            parts += self._parts(followers[key], segments)
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give a task's rows as record batches."""
        assert isinstance(partition, Part)
        for segment in partition.segments:
            yield from segment_batches(
                partition.follower,
                segment,
                self.columns,
                fails_on_data_loss=self.options.fails_on_data_loss,
            )

    def _parts(self, follower: Follower, segments: list[Segment]) -> Iterator[Part]:
        # What was compacted is of no one file: it counts as nothing, and goes with its neighbours.
        sizes = [0 if one.file is None else one.file.size - one.first for one in segments]
        for some in shares(segments, sizes, self.options.bytes_per_task):
            yield Part(follower, some)

    def _found(self) -> dict[str, Follower]:
        options = self.options
        places = (
            find_histories(options)
            if self.is_history
            else find_places(options, options.part, is_decoded=False)
        )
        found: dict[str, Follower] = {}
        for place in places:
            if place.folder is None:
                raise OptionError(f"{place.journal}: a database cannot be followed")
            key = os.path.realpath(place.folder)
            # One that is gone is left out, and keeps its position.
            found[key] = self._followers.get(key) or Follower(
                place,
                is_history=self.is_history,
                user_version=options.user_version,
                fails_on_data_loss=options.fails_on_data_loss,
            )
        self._followers = found
        return found
