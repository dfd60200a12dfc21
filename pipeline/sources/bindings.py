"""`bindings`: queues, addresses, diverts and whatever else a broker's bindings journal holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipeline.binding_rows import binding_batches
from pipeline.places import find_places
from pipeline.schema import BINDINGS
from pipeline.sources.reading import BatchSource, Reader, WholeJournal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from pipeline.columns import Column
    from pipeline.options import SourceOptions

__all__ = ["BindingsSource"]


class BindingsReader(Reader):
    """A task a journal, or a range of a table's ids."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...] = BINDINGS) -> None:
        super().__init__(options, {"node": str, "journal": str}, columns)

    def tasks(self) -> Iterator[InputPartition]:
        """The bindings journals."""
        for place in find_places(self.options, "bindings", is_decoded=True):
            yield from self.parts_of(place)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The bindings of a journal."""
        assert isinstance(part, WholeJournal)
        return binding_batches(
            part.place,
            user_version=self.options.user_version,
            fails_on_data_loss=self.options.fails_on_data_loss,
            columns=self.columns,
        )


class BindingsSource(BatchSource):
    """The live records of bindings journals."""

    short_name: ClassVar[str] = "bindings"
    columns: ClassVar[tuple[Column, ...]] = BINDINGS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return BindingsReader(self.read_options(), self.chosen(schema))
