"""`messages`: what is stored of messages, decoded, and what has become of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from pipeline.message_rows import message_batches
from pipeline.places import find_places
from pipeline.schema import MESSAGES
from pipeline.sources.reading import BatchSource, Reader, WholeJournal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from pipeline.columns import Column
    from pipeline.options import SourceOptions

__all__ = ["MessagesSource"]

TESTED: Final = {
    "node": str,
    "journal": str,
    "message_id": int,
    "address": str,
    "timestamp_ms": int,
}


class MessagesReader(Reader):
    """A task a journal, or a range of a table's ids."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options, TESTED)

    def tasks(self) -> Iterator[InputPartition]:
        """The message journals."""
        for place in find_places(self.options, "messages", is_decoded=True):
            yield from self.parts_of(place)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a journal."""
        assert isinstance(part, WholeJournal)
        return message_batches(
            part.place,
            self.wanted,
            user_version=self.options.user_version,
            fails_on_data_loss=self.options.fails_on_data_loss,
            as_of_ms=self.options.as_of_ms,
        )


class MessagesSource(BatchSource):
    """The messages in message journals; those in pages are not among them."""

    short_name: ClassVar[str] = "messages"
    columns: ClassVar[tuple[Column, ...]] = MESSAGES

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return MessagesReader(self.read_options())
