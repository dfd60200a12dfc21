"""`steps` and `journal_files`, for the jobs alone: what records say of messages, and of files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pipeline.journal_files import FILES, file_rows
from pipeline.options import SourceOptions
from pipeline.sources.journal import LiveReader, RawReader
from pipeline.sources.reading import BatchSource
from pipeline.sources.retention import HistoryReader
from pipeline.step_rows import STEPS, step_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pipeline.columns import Column

__all__ = ["HISTORIES", "FilesSource", "StepsSource"]

# The option that names folders of histories, as JSON.
HISTORIES: Final = "histories"


class StepsReader(DataSourceReader):
    """Tasks of the sources `journal`, raw, and `retention`, each with the reader of its own.

    Args:
        readers: of either; one at least.
    """

    def __init__(self, readers: tuple[RawReader | HistoryReader, ...]) -> None:
        self.readers = readers

    def partitions(self) -> list[InputPartition]:
        """Theirs."""
        return [part for one in self.readers for part in one.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What the records of a task say."""
        # Both read what they are given in the same way.
        return step_batches(self.readers[0].read(partition))


class StepsSource(BatchSource):
    """The steps of messages: see pipeline.step_rows."""

    short_name: ClassVar[str] = "steps"
    columns: ClassVar[tuple[Column, ...]] = STEPS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        given = dict(self.options)
        histories = json.loads(given.pop(HISTORIES, "[]"))
        readers: list[RawReader | HistoryReader] = []
        if "path" in given or "paths" in given:
            readers.append(RawReader(SourceOptions.read(given)))
        if histories:
            kept = {one: text for one, text in given.items() if one not in ("path", "paths")}
            options = SourceOptions.read({**kept, "paths": json.dumps(histories)})
            readers.append(HistoryReader(options))
        return StepsReader(tuple(readers))


@dataclass
class EveryFile(InputPartition):
    """A task that reads all files of a journal, twice.

    Attributes:
        raw: its tasks as the source `journal` has them, raw.
        live: likewise, `live`.
    """

    raw: tuple[InputPartition, ...]
    live: tuple[InputPartition, ...]


class FilesReader(DataSourceReader):
    """A task a journal: what counts is known only when all of its files were read.

    Args:
        options: of the query.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.raw, self.live = RawReader(options), LiveReader(options)

    def partitions(self) -> list[InputPartition]:
        """The journals."""
        tasks: dict[str, tuple[list[InputPartition], list[InputPartition]]] = {}
        for number, reader in enumerate((self.raw, self.live)):
            for part in reader.tasks():
                tasks.setdefault(getattr(part, "place").journal, ([], []))[number].append(part)  # noqa: B009
        return [EveryFile(tuple(raw), tuple(live)) for raw, live in tasks.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A row a file."""
        assert isinstance(partition, EveryFile)
        return file_rows(
            (batch for part in partition.raw for batch in self.raw.read(part)),
            (batch for part in partition.live for batch in self.live.read(part)),
        )


class FilesSource(BatchSource):
    """How much of each file of journals is live: see pipeline.journal_files."""

    short_name: ClassVar[str] = "journal_files"
    columns: ClassVar[tuple[Column, ...]] = FILES

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query."""
        return FilesReader(self.read_options())
