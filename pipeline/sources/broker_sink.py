"""The sink of the source `broker`: each task sends its rows, a batch's end counts them.

Rows are with the broker, and may be consumed, before their batch is done; each is there once,
whatever is done again. Nothing can be taken back when a batch is given up.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pipeline.broker_sending import Sender, overloaded_id_caches
from pipeline.sources.plain_errors import with_plain_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from pipeline.broker_options import BrokerOptions

__all__ = ["BatchWriter", "StreamWriter"]

log: Final = logging.getLogger("pipeline.broker")

# Local properties of tasks of a micro-batch, which Spark sets for its own ends (StreamExecution,
# MicroBatchExecution); it has no other way to tell a Python writer its batch.
QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """What a task has sent.

    Attributes:
        counts: of rows by address.
        sizes: of the addresses' caches of duplicate ids.
    """

    counts: dict[str, int]
    sizes: dict[str, int]


def _write(
    batches: Iterator[pa.RecordBatch], options: BrokerOptions, prefix: str
) -> WriterCommitMessage:
    with Sender(options, prefix) as sender:
        for batch in batches:
            for row in batch.to_pylist():
                sender.send(row)
        sender.finish()
        return Sent(dict(sender.counts), sender.sizes)


def _commit(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Tell when more was sent than could safely be sent again."""
    counts, sizes = Counter[str](), dict[str, int]()
    for sent in messages:
        if isinstance(sent, Sent):
            counts.update(sent.counts)
            sizes.update(sent.sizes)
    for warning in overloaded_id_caches(counts, sizes):
        log.warning("%s", warning)


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "only tasks write"
    return task


@with_plain_errors
class BatchWriter(DataSourceArrowWriter):
    """Sends the rows of a frame.

    Args:
        options: of the write; their job id is the same in all of its tasks.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows; they are durable when this returns.

        Raises:
            ClientError: the broker cannot be reached, or refuses one.
            WrongUse: a row is not a valid message, or there are too many.
        """
        return _write(iterator, self.options, f"{self.options.job_id}:{_task().partitionId()}")

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        _commit(messages)


@with_plain_errors
class StreamWriter(DataSourceStreamArrowWriter):
    """Sends the rows of a query's batches.

    Args:
        options: of the query.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows; they are durable when this returns.

        Raises:
            ClientError: the broker cannot be reached, or refuses one.
            WrongUse: a row is not a valid message, or there are too many.
        """
        task = _task()
        query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError(f"Spark does not tell {QUERY_ID} and {BATCH_ID} to this task")
        return _write(iterator, self.options, f"{query}:{batch}:{task.partitionId()}")

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of a batch are done."""
        _commit(messages)
