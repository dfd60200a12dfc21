"""`broker`: a queue or address of a running broker, read, followed and written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from journal.errors import OptionError, WrongUse
from pipeline.broker_connection import BrokerConnection
from pipeline.broker_messages import check_columns
from pipeline.broker_options import BrokerOptions
from pipeline.broker_rows import received_rows, row_batches
from pipeline.columns import chosen, spark_schema
from pipeline.schema import BROKER
from pipeline.sources.broker_sink import BatchWriter, StreamWriter
from pipeline.sources.plain_errors import with_plain_errors
from pipeline.sources.reading import fields_of, refuse_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from broker.client import Received, Session
    from pipeline.columns import Column

__all__ = ["BrokerSource"]


@dataclass
class QueuePart(InputPartition):
    """A task.

    Attributes:
        queue: that it looks through.
    """

    queue: str


@with_plain_errors
class QueueReader(DataSourceReader):
    """A task a queue; nothing is taken out of it.

    Args:
        options: of the query.
        columns: those that are wanted, in their order.
    """

    def __init__(self, options: BrokerOptions, columns: tuple[Column, ...] = BROKER) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """The queue, or those of the address that are there now.

        Raises:
            WrongUse: there is none.
            ClientError: the broker cannot be asked.
        """
        options = self.options
        with BrokerConnection(options) as connection:
            return [QueuePart(name) for name in connection.run(self._queues)] or [
                InputPartition(None)
            ]

    def _queues(self, session: Session) -> list[str]:
        options = self.options
        if options.queue is not None:
            if not session.query_queue(options.queue).exists:
                raise WrongUse(f"{options.node}: queue {options.queue!r} does not exist")
            return [options.queue]
        assert options.address is not None, "the options have one of both"
        found = session.query_address(options.address)
        if not found.exists:
            raise WrongUse(f"{options.node}: address {options.address!r} does not exist")
        return list(found.queue_names)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the messages that are in a queue now as record batches."""
        if not isinstance(partition, QueuePart):
            return  # Of an address without queues: Spark asks for one task at least.
        options = self.options

        def look(session: Session, given: Collection[int]) -> Iterable[Received]:
            found = session.browse(partition.queue, options.selector)
            return (received for received in found if received.message_id not in given)

        with BrokerConnection(options) as connection:
            rows = received_rows(connection, look)
            yield from row_batches(
                rows, node=options.node, queue=partition.queue, columns=self.columns
            )


@with_plain_errors
class BrokerSource(DataSource):
    """A running broker; the only source that can be written to, and then the broker keeps it."""

    short_name: ClassVar[str] = "broker"

    @classmethod
    def name(cls) -> str:
        """What stands in `spark.read.format(...)`."""
        return cls.short_name

    def schema(self) -> str:
        """The columns of what is read, as DDL."""
        refuse_table(self.short_name, self.options, "url '...', queue '...'")
        return spark_schema(BROKER)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a query.

        Raises:
            OptionError: an option is wrong, or a column of the schema.
        """
        return QueueReader(BrokerOptions.of_read(self.options), self._chosen(schema))

    def _chosen(self, schema: StructType) -> tuple[Column, ...]:
        return chosen(self.short_name, BROKER, fields_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Plan a stream.

        Raises:
            WrongUse: this PySpark is too old for it.
        """
        try:
            from pipeline.sources.broker_stream import QueueStreamReader
        except ImportError as error:
            raise WrongUse(f"streams need PySpark 4.2 or later: {error}") from error
        return QueueStreamReader(BrokerOptions.of_stream(self.options), self._chosen(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Plan a write.

        Raises:
            OptionError: the frame is none of messages, or an option is wrong.
        """
        return BatchWriter(self._checked(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Plan the writes of a streaming query, or end one of its batches.

        Raises:
            OptionError: as for writer().
        """
        return StreamWriter(self._checked(schema, overwrite))

    def _checked(self, schema: StructType, overwrite: bool) -> BrokerOptions:
        if overwrite:
            raise OptionError("a broker cannot be overwritten: write with mode append")
        columns = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(columns)
        options = BrokerOptions.of_write(self.options)
        if options.address is None and "address" not in columns:
            raise OptionError("neither a column nor an option address: set one")
        return options
