"""`readStream` of a running broker's queue: ids of messages in a checkpoint, a task a batch.

Needs PySpark 4.2, as streaming.py does.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from pipeline.broker_queue import StreamQueue, ids_of, runs_of
from pipeline.broker_rows import received_batches
from pipeline.schema import BROKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pipeline.broker_options import BrokerOptions
    from pipeline.broker_queue import Runs
    from pipeline.columns import Column

__all__ = ["QueueStreamReader"]

# In an offset: the batch that ends there, as runs of ids.
IDS = "ids"


@dataclass
class BatchPart(InputPartition):
    """A task.

    Attributes:
        runs: ids of its messages.
    """

    runs: Runs


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue that is the query's own; what a batch has is removed once it is done.

    Args:
        options: of the query.
        columns: those that are wanted, in their order.
    """

    def __init__(self, options: BrokerOptions, columns: tuple[Column, ...] = BROKER) -> None:
        self.options = options
        self.columns = columns
        # The last batch of which nothing is left in the queue.
        self._settled: Runs | None = None
        self._id_max: int | None = None

    @contextlib.contextmanager
    def _queue(self) -> Iterator[StreamQueue]:
        with self.options.client() as client, client.session() as session:
            yield StreamQueue(session, self.options)

    # --- positions --------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """No batch is done; the queue is there from now on."""
        with self._queue() as queue:
            queue.make()
        return {IDS: []}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What maxRecordsPerTrigger says."""
        return ReadMaxRows(self.options.max_records_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what is there; what comes later is not read."""
        with self._queue() as queue:
            # Of a new query it is not there yet.
            queue.make()
            self._id_max = queue.newest_id()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """What the next batch has; the start where there is nothing."""
        rows_max = self.options.max_records_per_trigger
        if isinstance(limit, ReadMaxRows):
            rows_max = limit.max_rows
        with self._queue() as queue:
            self._settle(queue, start[IDS])
            before = ids_of(start[IDS])
            found = queue.plan(before, count_max=rows_max, id_max=self._id_max)
        return {IDS: runs_of(found)} if found else start

    def commit(self, end: dict[str, Any]) -> None:
        """A batch is done: remove it, where planning the next one has not."""
        if end[IDS] != self._settled:
            with self._queue() as queue:
                self._settle(queue, end[IDS])

    def _settle(self, queue: StreamQueue, done: Runs) -> None:
        """Remove a batch that is done: Spark begins none at the end of one that is not."""
        if done == self._settled:
            return
        if self._settled is None:
            # A kill may have come before its removal, or in the middle of it, or behind.
            queue.check()
            queue.settle(ids_of(done))
        else:
            queue.remove(ids_of(done))
        self._settled = done

    # --- tasks ------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One task: a queue is looked through from its head."""
        if start != end:
            with self._queue() as queue:
                self._settle(queue, start[IDS])
        return [BatchPart(end[IDS])] if start != end else [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give a batch's messages as record batches."""
        if not isinstance(partition, BatchPart):
            return
        with self._queue() as queue:
            found = queue.read(ids_of(partition.runs))
            yield from received_batches(
                found, node=self.options.node, queue=queue.name, columns=self.columns
            )
