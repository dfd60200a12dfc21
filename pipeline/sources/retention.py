"""`retention`: every record of the files that were copied to a history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from journal.folder import order_files
from journal.retention import list_history
from pipeline.places import find_histories
from pipeline.raw_rows import FileToRead, file_batches
from pipeline.schema import RETENTION
from pipeline.sources.journal import TESTED, OneFile
from pipeline.sources.reading import FollowedSource, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from pipeline.columns import Column
    from pipeline.options import SourceOptions

__all__ = ["RetentionSource"]


class HistoryReader(Reader):
    """A task a copied file, oldest first."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, {**TESTED, "file": str, "copied": datetime})

    def tasks(self) -> Iterator[InputPartition]:
        """The copies."""
        for place in find_histories(self.options):
            assert place.folder is not None
            for copy in list_history(place.folder, place.name):
                (file,) = order_files([(copy.name, copy.path)])
                if file.is_short:
                    continue
                yield OneFile(
                    place,
                    FileToRead(
                        place.node,
                        place.journal,
                        copy.path,
                        copy.name,
                        file.file_id,
                        # It was full, or closed: nothing in it may be torn.
                        is_newest=False,
                        copied=copy.time,
                    ),
                )

    def may_hold(self, part: InputPartition) -> bool:
        """Also by the name of the file and the time of the copy."""
        assert isinstance(part, OneFile)
        is_wanted = self.wanted.fits(file=part.file.name, copied=part.file.copied)
        return is_wanted and super().may_hold(part)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a copy."""
        assert isinstance(part, OneFile)
        return file_batches(
            part.file,
            RETENTION,
            self.wanted,
            user_version=self.options.user_version,
            fails_on_data_loss=self.options.fails_on_data_loss,
        )


class RetentionSource(FollowedSource):
    """The records of histories (journal-retention-directory)."""

    short_name: ClassVar[str] = "retention"
    columns: ClassVar[tuple[Column, ...]] = RETENTION
    is_history: ClassVar[bool] = True

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return HistoryReader(self.read_options())
