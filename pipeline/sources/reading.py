"""Base classes of the sources: columns, options, pushed-down filters, one task a journal."""

from __future__ import annotations

import errno
import json
import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from journal.errors import JournalIOError, WrongUse
from pipeline.columns import Column, chosen, spark_schema
from pipeline.filters import Wanted
from pipeline.live_journal import ATTEMPTS_MAX, table_parts
from pipeline.options import SourceOptions
from pipeline.sources.plain_errors import plain_errors, with_plain_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from pipeline.place import Place

__all__ = ["BatchSource", "FollowedSource", "Reader", "WholeJournal", "fields_of", "refuse_table"]


@dataclass
class WholeJournal(InputPartition):
    """A task that reads all of one journal, or a part of its table.

    Attributes:
        place: of the journal.
    """

    place: Place


@with_plain_errors
class Reader(DataSourceReader):
    """Plans the tasks of one query, and is sent to them.

    Args:
        options: of the query.
        tested: columns whose filters are taken, with the type that their values must have.
        columns: those that are wanted, in their order.

    Raises:
        OptionError: the option `where` cannot be taken.
    """

    def __init__(
        self,
        options: SourceOptions,
        tested: Mapping[str, type],
        columns: tuple[Column, ...],
    ) -> None:
        self.options = options
        self.columns = columns
        self.wanted = Wanted(tested)
        if options.where is not None:
            self.wanted.take_text(options.where)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that can be taken exactly; give the others back.

        All of them, unless the frame asks for it. Spark (4.1 to 4.3) keeps what a pushdown has
        planned, tasks and reader, in its PythonDataSourceV2 (setReadInfo, getOrCreateReadInfo).
        That is one object for all uses of a frame, not the scan that it was planned for. Every
        later use gets it, in this query or the next, with other filters or with none: rows are
        missing then. A use without filters does not call Python, so no source can be right; the
        option `where` belongs to the frame, and is.
        """
        return self.wanted.take(filters) if self.options.takes_filters else filters

    def partitions(self) -> list[InputPartition]:
        """One task for each thing that is read by itself and may hold wanted rows."""
        return [part for part in self.tasks() if self.may_hold(part)] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Give a task's rows as record batches."""
        if type(partition) is InputPartition:
            return iter(())  # Nothing is wanted: Spark asks for one task at least.
        return self._told_batches(partition)

    def _told_batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            yield from self._retried_batches(part)

    def _retried_batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task, begun again where a broker uses its files again before the first."""
        for _ in range(ATTEMPTS_MAX - 1):
            batches = iter(self.batches(part))
            try:
                first = next(batches, None)
            except JournalIOError as error:
                if error.errno != errno.ESTALE:
                    raise
                continue
            if first is not None:
                yield first
                yield from batches
            return
        yield from self.batches(part)

    def parts_of(self, place: Place) -> Iterator[WholeJournal]:
        """The single task of a journal whose records must be read together.

        Of files one; of a table one for each range of ids, if anything there may be wanted.

        Raises:
            JournalError: the database cannot be asked.
        """
        whole = WholeJournal(place)
        if place.folder is not None or not self.may_hold(whole):
            yield whole
            return
        yield from map(WholeJournal, table_parts(place, self.options.rows_per_task))

    def may_hold(self, part: InputPartition) -> bool:
        """Whether any row of a task can be wanted."""
        place: Place = getattr(part, "place")  # noqa: B009 - of every task of ours.
        return self.wanted.fits(node=place.node, journal=place.journal)

    @abstractmethod
    def tasks(self) -> Iterable[InputPartition]:
        """All tasks, before filters.

        Raises:
            JournalError: what the query names cannot be read.
        """

    @abstractmethod
    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task.

        Raises:
            JournalError: it cannot be read.
        """


def fields_of(schema: StructType) -> Iterator[tuple[str, str, bool]]:
    """Each column of a schema: name, type in the words of Spark's SQL, whether all may be null."""
    for field in schema.fields:
        parts = json.dumps(field.dataType.jsonValue())
        may_be_null = field.nullable and not _NOT_NULL.search(parts)
        yield field.name, field.dataType.simpleString(), may_be_null


# Of a type that has parts.
_NOT_NULL: Final = re.compile(r'"(?:nullable|containsNull|valueContainsNull)": false')


def refuse_table(source: str, options: Mapping[str, str], example: str) -> None:
    """Raise WrongUse for `CREATE TABLE`: Spark keeps its options, and hands none to a reader."""
    if "provider" in options:
        raise WrongUse(
            f"CREATE TABLE ... USING {source} makes a table that cannot be read: write CREATE"
            f" TEMPORARY VIEW name USING {source} OPTIONS ({example}), or CREATE TABLE name AS"
            " SELECT ... from that view"
        )


class BatchSource(DataSource):
    """A source of fixed columns."""

    short_name: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]

    def __init_subclass__(cls) -> None:
        with_plain_errors(cls)

    @classmethod
    def name(cls) -> str:
        """What stands in `spark.read.format(...)`."""
        return cls.short_name

    def schema(self) -> str:
        """The columns, as DDL.

        Raises:
            WrongUse: for a table of Spark SQL.
        """
        with plain_errors():
            refuse_table(self.short_name, self.options, "path '...'")
        return spark_schema(self.columns)

    def chosen(self, schema: StructType) -> tuple[Column, ...]:
        """The columns that the query's schema names: all, unless it gave one.

        Raises:
            OptionError: one of them is not there, or not like that.
        """
        return chosen(self.short_name, self.columns, fields_of(schema))

    def read_options(self) -> SourceOptions:
        """The query's options.

        Raises:
            OptionError: one is not known, or cannot have its value.
        """
        return SourceOptions.read(self.options)


class FollowedSource(BatchSource):
    """A source that `readStream` can follow, too."""

    is_history: ClassVar[bool]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Plan a stream.

        Raises:
            WrongUse: this PySpark is too old for it.
            OptionError: a column of the schema is not there, or not like that.
        """
        try:
            from pipeline.sources.streaming import StreamReader
        except ImportError as error:
            raise WrongUse(f"streams need PySpark 4.2 or later: {error}") from error
        options = SourceOptions.read(self.options, is_stream=True)
        return StreamReader(options, is_history=self.is_history, columns=self.chosen(schema))
