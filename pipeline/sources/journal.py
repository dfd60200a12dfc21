"""`journal`: every record of every file, or those that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from journal.reader import newest_with_data
from pipeline.live_journal import stable_plan
from pipeline.live_rows import live_batches
from pipeline.places import find_places
from pipeline.raw_rows import FileToRead, table_batches
from pipeline.schema import JOURNAL
from pipeline.sources.file_tasks import FileReader
from pipeline.sources.reading import FollowedSource, Reader, WholeJournal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from journal.remote import AnyPath
    from pipeline.columns import Column
    from pipeline.options import SourceOptions
    from pipeline.place import Place

__all__ = ["TESTED", "JournalSource"]

# Columns whose filters are taken: those of a whole task, then those of a record.
TESTED: Final = {
    "node": str,
    "journal": str,
    "kind": str,
    "user_type": int,
    "record_id": int,
}


class RawReader(FileReader):
    """Every record; a task some files, or a range of a table's ids."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...] = JOURNAL) -> None:
        super().__init__(options, {**TESTED, "file": str}, columns)

    def tasks(self) -> Iterator[InputPartition]:
        """The files that count, in the order of their ids."""
        for place in find_places(self.options, self.options.part, is_decoded=False):
            if place.folder is None:
                yield from self.parts_of(place)
            else:
                yield from self.file_tasks(place, self._files(place, place.folder))

    def _files(self, place: Place, folder: AnyPath) -> Iterator[FileToRead]:
        plan = stable_plan(folder, place.name)
        files = [file for file in plan.files if not file.is_short]
        newest = newest_with_data(files, self.options.user_version)
        for number, file in enumerate(files):
            yield FileToRead(
                place.node,
                place.journal,
                file.path,
                file.name,
                file.file_id,
                file.size,
                is_newest=number >= newest,
            )

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of files, or of a table."""
        if not isinstance(part, WholeJournal):
            return super().batches(part)
        return table_batches(
            part.place,
            self.columns,
            self.wanted,
            fails_on_data_loss=self.options.fails_on_data_loss,
        )


class LiveReader(Reader):
    """What a load would see; a task a journal, or a range of a table's ids."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...] = JOURNAL) -> None:
        super().__init__(options, TESTED, columns)

    def tasks(self) -> Iterator[InputPartition]:
        """The journals."""
        for place in find_places(self.options, self.options.part, is_decoded=False):
            yield from self.parts_of(place)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The live records of a journal."""
        assert isinstance(part, WholeJournal)
        return live_batches(
            part.place,
            self.wanted,
            user_version=self.options.user_version,
            fails_on_data_loss=self.options.fails_on_data_loss,
            columns=self.columns,
        )


class JournalSource(FollowedSource):
    """The records of journals. Option `records`: `raw`, the default, or `live`."""

    short_name: ClassVar[str] = "journal"
    columns: ClassVar[tuple[Column, ...]] = JOURNAL
    is_history: ClassVar[bool] = False

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        options, columns = self.read_options(), self.chosen(schema)
        kind = LiveReader if options.records == "live" else RawReader
        return kind(options, columns)
