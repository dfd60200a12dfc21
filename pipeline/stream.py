"""Follows a growing journal or history: the position of a query, and its next segment.

Appends go to files whose ids grow, each file from its start to its end. So a position is a file and
an offset in it, and what is behind it in this order has not been read. Two things disturb that:

    reclaimed   a file in which nothing is live is used again under a new id: what was not read of
                it is gone, and was dead.
    compacted   what is live of some files is written into new ones that take the lowest of the old
                ids. Offsets mean nothing any more.

The compaction count in the records identifies the files that a compaction wrote. If a position's
file is gone, the unread records of the compacted files are those with an id above the greatest id
read. This holds because a broker gives ids to adds in the order of appends. An update of an unread
record has its id, and so was not read either. No record is read twice that way, and no live add is
missed. A delete, the end of a transaction, or an update of an older record is missed if its file
went before a batch was planned.

A history is never compacted: its files are copies, made in the order of their ids. Old ones are
removed. If no file up to a position is left, the records between it and the oldest file are taken
for lost, unless the ids go on without a gap. A broker may leave out ids, but nothing says which.

Ids only grow. If all of them are below a position, the position is of other data that was there
before: a new journal or a backup took its place.
"""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from journal.errors import JournalIOError
from journal.folder import order_files, read_header
from journal.reader import newest_with_data, read_bytes
from journal.retention import list_history
from pipeline.errors import DataLoss
from pipeline.filters import LONG_MAX
from pipeline.live_journal import stable_plan
from pipeline.raw_columns import NO_ID, PackedFile
from pipeline.raw_rows import FileToRead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pipeline.place import Place

__all__ = ["BEGIN", "DONE", "FileGone", "Follower", "Position", "Segment"]

log: Final = logging.getLogger("pipeline.stream")

# Of a position: all of its file was read.
DONE: Final = -1
# A folder is listed again where a file went between its listing and its reading.
LISTINGS_MAX: Final = 10
# Of compacted files that are read together; more wait on disk.
SPOOLED_IN_MEMORY_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a journal was read.

    Attributes:
        file_id: of a file.
        offset: bytes from its start; what begins there was not read. DONE: all of it was.
        greatest_id: of the adds and updates that were read; NO_ID: there were none.
    """

    file_id: int
    offset: int
    greatest_id: int

    def json(self) -> dict[str, int]:
        """As Spark keeps it in a checkpoint."""
        return {"file_id": self.file_id, "offset": self.offset, "greatest_id": self.greatest_id}

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Position:
        """What json() gave."""
        return cls(given["file_id"], given["offset"], given["greatest_id"])

    def is_behind(self, other: Position) -> bool:
        """Whether it is at the other one, or behind it, in the order of appends."""
        return self._key() >= other._key()

    def _key(self) -> tuple[int, int]:
        return self.file_id, LONG_MAX if self.offset == DONE else self.offset


BEGIN: Final = Position(0, 0, NO_ID)


@dataclass(frozen=True, slots=True)
class Segment:
    """What one task reads.

    Attributes:
        file: its file; None: what compactions have moved.
        first: offset of the first record.
        end: offset before which records begin.
        above_id: adds and updates in it have ids above this, and no other segment has them.
        up_to_id: their greatest.
    """

    file: FileToRead | None
    first: int
    end: int
    above_id: int
    up_to_id: int


class FileGone(Exception):
    """A file was used again, or removed, since it was listed."""


class Follower:
    """Plans what is read of one journal, or history, and reads it.

    Args:
        place: of it.
        is_history: which of the two.
        user_version: of every file's header.
        fails_on_data_loss: raise where something else has taken the journal's place; else that is
            read from its beginning.
    """

    def __init__(
        self,
        place: Place,
        *,
        is_history: bool,
        user_version: int,
        fails_on_data_loss: bool = True,
    ) -> None:
        self.place = place
        self.is_history = is_history
        self.user_version = user_version
        self.fails_on_data_loss = fails_on_data_loss
        # The greatest id in the last listing, also of a file that holds nothing; LONG_MAX: no file.
        self._listed_id = LONG_MAX
        # By name, file id and time of the last change: None, or the greatest id in a compacted one.
        self._moved: dict[tuple[str, int, int], int | None] = {}

    # --- where to begin ---------------------------------------------------------------------------

    def end(self) -> Position:
        """Behind all that is there now."""
        for _ in range(LISTINGS_MAX):
            try:
                return self._end()
            except FileGone:
                continue
        raise self._changes_too_fast()

    def _end(self) -> Position:
        at = BEGIN
        for file in self._files():
            span = self.open(file).span(
                0, rows_max=LONG_MAX, end=LONG_MAX, is_growing=file.is_newest
            )
            offset = DONE if span.is_whole and not file.is_newest else span.end
            at = Position(file.file_id, offset, max(at.greatest_id, span.greatest_id))
        return at

    def before(self, time: datetime) -> Position:
        """Behind the copies of a history that were made before a local time."""
        earlier = [file.file_id for file in self._files() if file.copied and file.copied < time]
        return Position(max(earlier), DONE, NO_ID) if earlier else BEGIN

    def lag(self, position: Position) -> tuple[int, int, int] | None:
        """How much is behind a position now, which costs reading one file.

        Returns:
            The newest file's id; the offset behind its last record; and the bytes of files behind
            the position. None where there is no file, or it changed just now.
        """
        try:
            files = self._files()
            if not files:
                return None
            newest = files[-1]
            end = newest.size
            if newest.is_newest:
                span = self.open(newest).span(0, rows_max=LONG_MAX, end=LONG_MAX, is_growing=True)
                end = span.end
        except FileGone:
            return None
        behind = 0
        for file in files:
            size = end if file is newest else file.size
            if file.file_id > position.file_id:
                behind += size
            elif file.file_id == position.file_id and position.offset != DONE:
                behind += max(0, size - position.offset)
        return newest.file_id, end, behind

    # --- what comes next --------------------------------------------------------------------------

    def advance(
        self, start: Position, *, until: Position | None = None, rows_max: int = LONG_MAX
    ) -> tuple[list[Segment], Position]:
        """What is to be read from a position on, and where that ends.

        Args:
            start: where to begin.
            until: no further; None: up to what is there.
            rows_max: after so many records no further; what was compacted comes in one piece.

        Raises:
            DataLoss: all files are older than the position, and that is asked for.
            JournalIOError: a file cannot be read.
        """
        if until is not None and until.file_id < start.file_id:
            start = BEGIN  # So it was when this was planned: something else took its place.
        if until is not None and start.is_behind(until) and start.greatest_id >= until.greatest_id:
            return [], start
        for _ in range(LISTINGS_MAX):
            try:
                return self._advance(start, until, rows_max)
            except FileGone:
                continue
        raise self._changes_too_fast()

    def _advance(
        self, start: Position, until: Position | None, rows_max: int
    ) -> tuple[list[Segment], Position]:
        files = self._files()
        if self._listed_id < start.file_id:
            self._refuse_replaced(start)
            start = BEGIN
        at, segments = start, list[Segment]()
        if self.is_history and files and start != BEGIN:
            segments += self._removed(start, files[0].file_id, until)
        if until is not None:
            files = [file for file in files if file.file_id <= until.file_id]
        has_gap = not any(
            file.file_id == start.file_id and self._moved_id(file) is None for file in files
        )
        moved_id = NO_ID
        for file in files:
            if file.file_id < start.file_id and not has_gap:
                continue
            found = self._moved_id(file)
            if found is not None:
                moved_id = max(moved_id, found)
                continue
            if file.file_id < start.file_id:
                continue
            at = _with_moved(segments, at, moved_id, until)
            first = start.offset if file.file_id == start.file_id else 0
            if first == DONE:
                continue
            end = LONG_MAX
            if until is not None and file.file_id == until.file_id and until.offset != DONE:
                end = until.offset
            packed = self.open(file)
            span = packed.span(first, rows_max=rows_max, end=end, is_growing=file.is_newest)
            is_done = span.is_whole and not file.is_newest
            greatest = max(at.greatest_id, span.greatest_id)
            if span.row_count or (is_done and packed.damages):
                last = end if is_done else span.end
                segments.append(Segment(file, first, last, at.greatest_id, greatest))
            at = Position(file.file_id, DONE if is_done else span.end, greatest)
            rows_max -= span.row_count
            if not is_done:
                return segments, at
        return segments, _with_moved(segments, at, moved_id, until)

    def _refuse_replaced(self, start: Position) -> None:
        reason = f"all files are older than file {start.file_id}, which was read: they are others"
        otherwise = "they are read from the beginning"
        if self.fails_on_data_loss:
            raise DataLoss(self.place.journal, [reason], otherwise)
        log.warning("%s: %s; %s", self.place.journal, reason, otherwise)

    def _removed(self, start: Position, oldest: int, until: Position | None) -> Iterator[Segment]:
        """What was removed of a history behind a position: a file that no task will find."""
        first = start.file_id + (start.offset == DONE)
        if oldest <= first or (until is not None and until.file_id < first):
            return
        folder = self.place.folder
        assert folder is not None
        name = f"copies of files {first} to {oldest - 1}"
        gone = FileToRead(
            *(self.place.node, self.place.journal, folder / name, name, first, 0), is_newest=False
        )
        yield Segment(gone, 0, 0, start.greatest_id, start.greatest_id)

    # --- files ------------------------------------------------------------------------------------

    def open(self, file: FileToRead) -> PackedFile:
        """Read a file as it was listed.

        Raises:
            FileGone: it is another one now, or there is none.
            JournalIOError: it cannot be read.
            UnsupportedFormat: something else wrote it.
        """
        return self._packed(file, self._read(file))

    def _packed(self, file: FileToRead, data: bytes | memoryview) -> PackedFile:
        return PackedFile(file.name, data, is_newest=file.is_newest, user_version=self.user_version)

    def _read(self, file: FileToRead) -> memoryview:
        """All of a file as it was listed; FileGone if it is another one now."""
        try:
            data = read_bytes(file.path)
            # It may have been used again while it was read.
            header = read_header(file.name, file.path)
        except JournalIOError as error:
            if error.errno == errno.ENOENT:
                raise FileGone from error
            raise
        if {header.file_id, int.from_bytes(data[8:16], "big", signed=True)} != {file.file_id}:
            raise FileGone
        return data

    def open_original(self, file: FileToRead) -> PackedFile | None:
        """Read a file if it still holds what was appended to it, and no compaction's copies.

        Raises:
            JournalIOError: it cannot be read.
        """
        try:
            packed = self.open(file)
        except FileGone:
            return None
        return None if packed.is_moved and not self.is_history else packed

    def moved_files(self) -> Iterator[tuple[FileToRead, PackedFile]]:
        """What compactions have written, in the order of the file ids.

        Memory: a file. All are looked at before the first is given, and wait on disk where they
        are large: a compaction meanwhile would give their records again.

        Raises:
            JournalIOError: a file cannot be read.
            OSError: there is no room for temporary files.
        """
        for _ in range(LISTINGS_MAX):
            with tempfile.SpooledTemporaryFile(max_size=SPOOLED_IN_MEMORY_MAX) as held:
                found = list[tuple[FileToRead, int]]()
                try:
                    for file in self._files():
                        if self._moved_id(file) is not None:
                            data = self._read(file)
                            held.write(data)
                            found.append((file, len(data)))
                except FileGone:
                    continue
                held.seek(0)
                for file, size in found:
                    yield file, self._packed(file, held.read(size))
                return
        raise self._changes_too_fast()

    def _changes_too_fast(self) -> JournalIOError:
        what = f"{self.place.journal}: its files change faster than they are read"
        return JournalIOError(errno.EBUSY, what)

    def _moved_id(self, file: FileToRead) -> int | None:
        """Of a compacted file the greatest id in it, NO_ID if there is none; None of others."""
        if self.is_history:
            return None
        try:
            changed_ns = os.stat(file.path).st_mtime_ns
        except FileNotFoundError as error:
            raise FileGone from error
        key = (file.name, file.file_id, changed_ns)
        if key not in self._moved:
            packed = self.open(file)
            span = packed.span(0, rows_max=LONG_MAX, end=LONG_MAX, is_growing=False)
            self._moved[key] = span.greatest_id if packed.is_moved else None
        return self._moved[key]

    def _files(self) -> list[FileToRead]:
        """Those that hold data, in the order of their ids."""
        try:
            return self._copies() if self.is_history else self._journal_files()
        except JournalIOError as error:
            if error.errno == errno.ENOENT:
                raise FileGone from error
            raise

    def _journal_files(self) -> list[FileToRead]:
        place = self.place
        assert place.folder is not None
        files = [one for one in stable_plan(place.folder, place.name).files if not one.is_short]
        self._listed_id = max((file.file_id for file in files), default=LONG_MAX)
        newest = newest_with_data(files, self.user_version)
        return [
            FileToRead(
                *(place.node, place.journal, file.path, file.name, file.file_id, file.size),
                is_newest=number == newest,
            )
            for number, file in enumerate(files[: newest + 1])
        ]

    def _copies(self) -> list[FileToRead]:
        place = self.place
        assert place.folder is not None
        copies: dict[int, FileToRead] = {}
        for copy in list_history(place.folder, place.name):
            (file,) = order_files([(copy.name, copy.path)])
            if not file.is_short:
                # The first of two of the same file: Artemis may copy one again.
                copies.setdefault(
                    file.file_id,
                    FileToRead(
                        *(place.node, place.journal, copy.path, copy.name, file.file_id, file.size),
                        is_newest=False,
                        copied=copy.time,
                    ),
                )
        self._listed_id = max(copies, default=LONG_MAX)
        return [copies[file_id] for file_id in sorted(copies)]


def _with_moved(
    segments: list[Segment], at: Position, moved_id: int, until: Position | None
) -> Position:
    """Add what compactions moved, and was not read; the position with its ids."""
    if until is not None:
        moved_id = min(moved_id, until.greatest_id)
    if moved_id <= at.greatest_id:
        return at
    segments.append(Segment(None, 0, 0, at.greatest_id, moved_id))
    return Position(at.file_id, at.offset, moved_id)
