"""`messages`: what is stored of messages, decoded, and what has become of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.datasource import InputPartition

from pipeline.large_bodies import LOOKED_AT, with_large_bodies
from pipeline.message_rows import message_batches
from pipeline.page_rows import has_pages, page_batches
from pipeline.places import find_places
from pipeline.schema import MESSAGES
from pipeline.sources.reading import BatchSource, Reader, WholeJournal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from pipeline.columns import Column
    from pipeline.options import SourceOptions
    from pipeline.place import Place

__all__ = ["MessagesSource"]

TESTED: Final = {
    "node": str,
    "journal": str,
    "message_id": int,
    "address": str,
    "timestamp_ms": int,
}


@dataclass
class AllPages(InputPartition):
    """A task that reads the pages of one broker.

    Attributes:
        place: of its message journal.
    """

    place: Place


class MessagesReader(Reader):
    """A task a journal, or a range of a table's ids, and one for the pages that go with it."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...] = MESSAGES) -> None:
        super().__init__(options, TESTED, columns)

    def tasks(self) -> Iterator[InputPartition]:
        """The message journals."""
        for place in find_places(self.options, "messages", is_decoded=True):
            yield from self.parts_of(place)
            pages = AllPages(place)
            if self.may_hold(pages) and has_pages(place, is_live=self.options.is_live):
                yield pages

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a journal, or of pages."""
        assert isinstance(part, WholeJournal | AllPages)
        options = self.options
        names = {column.name for column in self.columns}
        reads_bodies = options.large_body_bytes_max and names & {"body", "body_size"}
        made = self.columns
        if reads_bodies:
            beside = [one for one in MESSAGES if one.name in LOOKED_AT and one.name not in names]
            made = (*made, *beside)
        batches = (
            page_batches(
                part.place,
                self.wanted,
                user_version=options.user_version,
                is_live=options.is_live,
                fails_on_data_loss=options.fails_on_data_loss,
                as_of_ms=options.as_of_ms,
                columns=made,
            )
            if isinstance(part, AllPages)
            else message_batches(
                part.place,
                self.wanted,
                user_version=options.user_version,
                fails_on_data_loss=options.fails_on_data_loss,
                as_of_ms=options.as_of_ms,
                columns=made,
            )
        )
        if not reads_bodies:
            return batches
        found = with_large_bodies(batches, part.place, options.large_body_bytes_max)
        return (batch.select([column.name for column in self.columns]) for batch in found)


class MessagesSource(BatchSource):
    """The messages in message journals and in pages."""

    short_name: ClassVar[str] = "messages"
    columns: ClassVar[tuple[Column, ...]] = MESSAGES

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return MessagesReader(self.read_options(), self.chosen(schema))
