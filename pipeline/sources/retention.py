"""`retention`: every record of the files that were copied to a history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from journal.folder import order_files
from journal.retention import list_history
from pipeline.places import find_histories
from pipeline.raw_rows import FileToRead
from pipeline.schema import RETENTION
from pipeline.sources.file_tasks import FileReader
from pipeline.sources.journal import TESTED
from pipeline.sources.reading import FollowedSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from journal.remote import AnyPath
    from pipeline.columns import Column
    from pipeline.options import SourceOptions
    from pipeline.place import Place

__all__ = ["RetentionSource"]


class HistoryReader(FileReader):
    """A task some copied files, oldest first."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...] = RETENTION) -> None:
        super().__init__(options, {**TESTED, "file": str, "copied": datetime}, columns)

    def tasks(self) -> Iterator[InputPartition]:
        """The copies."""
        for place in find_histories(self.options):
            assert place.folder is not None
            yield from self.file_tasks(place, _copies(place, place.folder))


def _copies(place: Place, folder: AnyPath) -> Iterator[FileToRead]:
    for copy in list_history(folder, place.name):
        (file,) = order_files([(copy.name, copy.path)])
        if file.is_short:
            continue
        yield FileToRead(
            place.node,
            place.journal,
            copy.path,
            copy.name,
            file.file_id,
            file.size,
            # It was full, or closed: nothing in it may be torn.
            is_newest=False,
            copied=copy.time,
        )


class RetentionSource(FollowedSource):
    """The records of histories (journal-retention-directory)."""

    short_name: ClassVar[str] = "retention"
    columns: ClassVar[tuple[Column, ...]] = RETENTION
    is_history: ClassVar[bool] = True

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return HistoryReader(self.read_options(), self.chosen(schema))
