"""`readStream` of a running broker's queue: ids of messages in a checkpoint, tasks by batch.

Needs PySpark 4.2, as streaming.py does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from broker.client.errors import ClientError
from pipeline.broker_connection import BrokerConnection, is_transient
from pipeline.broker_queue import StreamQueue, ids_of, runs_of, shares_of
from pipeline.broker_rows import received_rows, row_batches
from pipeline.schema import BROKER
from pipeline.sources.plain_errors import with_plain_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import pyarrow as pa

    from broker.client import Received, Session
    from pipeline.broker_options import BrokerOptions
    from pipeline.broker_queue import Runs
    from pipeline.columns import Column

__all__ = ["QueueStreamReader"]

T = TypeVar("T")

# In an offset: the batch that ends there, as runs of ids; and how many tasks read it, where that
# is not one. Both stay when the query is started again with other options: a sink may tell rows
# apart by their task.
IDS = "ids"
PARTITIONS = "partitions"


@dataclass
class BatchPart(InputPartition):
    """A task.

    Attributes:
        runs: ids of its messages.
    """

    runs: Runs


@with_plain_errors
class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a queue that is the query's own; what a batch has is removed once it is done.

    Restarts of the broker delay it. All that is asked of the broker may be asked twice.

    Args:
        options: of the query.
        columns: those that are wanted, in their order.
    """

    def __init__(self, options: BrokerOptions, columns: tuple[Column, ...] = BROKER) -> None:
        self.options = options
        self.columns = columns
        self._connection = BrokerConnection(options)
        # The connection over which the queue was last seen to be there, by its number.
        self._checked = 0
        # The last batch of which nothing is left in the queue; None: not known.
        self._settled: Runs | None = None
        self._id_max: int | None = None
        # Messages of the batch that was planned last.
        self._planned = 0

    def _on_queue(self, work: Callable[[StreamQueue], T]) -> T:
        return self._connection.run(lambda session: work(StreamQueue(session, self.options)))

    # --- positions --------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """No batch is done; the queue is there from now on."""
        self._on_queue(self._make)
        return {IDS: []}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What maxRecordsPerTrigger says."""
        return ReadMaxRows(self.options.max_records_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note the present end of the queue; later messages are not read."""
        # Of a new query it is not there yet.
        self._on_queue(self._make)
        self._id_max = self._on_queue(lambda queue: queue.newest_id())

    def _make(self, queue: StreamQueue) -> None:
        queue.make()
        self._checked = self._connection.count

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """What the next batch has; the start where there is nothing."""
        rows_max = self.options.max_records_per_trigger
        if isinstance(limit, ReadMaxRows):
            rows_max = limit.max_rows
        before = ids_of(start[IDS])

        def plan(queue: StreamQueue) -> list[int]:
            self._settle(queue, start[IDS])
            return queue.plan(before, count_max=rows_max, id_max=self._id_max)

        found = self._on_queue(plan)
        self._planned = len(found)
        if not found:
            return start
        end: dict[str, Any] = {IDS: runs_of(found)}
        if self.options.min_partitions > 1:
            end[PARTITIONS] = self.options.min_partitions
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What a query's lastProgress has as `latestOffset`; None where the broker is away.

        `message_count`: messages in the queue; `lag`: those of them that are in no batch yet.
        """
        try:
            count = StreamQueue(self._connection.session, self.options).depth()
        except ClientError as error:
            if not is_transient(error):
                raise
            # It is asked again for the next batch, where it is waited for.
            return None
        return {"message_count": count, "lag": max(0, count - self._planned)}

    def commit(self, end: dict[str, Any]) -> None:
        """A batch is done: remove it, where planning the next one has not."""
        if end[IDS] != self._settled:
            self._on_queue(lambda queue: self._settle(queue, end[IDS]))

    def _settle(self, queue: StreamQueue, done: Runs) -> None:
        """Remove a batch that is done: Spark begins none at the end of one that is not."""
        if self._checked != self._connection.count:
            # A broker that was started again may be one without the queue.
            queue.check()
            self._checked = self._connection.count
        if done == self._settled:
            return
        is_known, self._settled = self._settled is not None, None
        if is_known:
            queue.remove(ids_of(done))
        else:
            # A kill may have come before its removal, or in the middle of it, or behind.
            queue.settle(ids_of(done))
        self._settled = done

    def stop(self) -> None:
        """Let the connection go."""
        self._connection.close()

    # --- tasks ------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch; each looks through the queue from its head."""
        if start == end:
            return [InputPartition(None)]
        self._on_queue(lambda queue: self._settle(queue, start[IDS]))
        return [BatchPart(runs) for runs in shares_of(end[IDS], end.get(PARTITIONS, 1))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give a task's messages as record batches."""
        if not isinstance(partition, BatchPart):
            return
        options = self.options
        assert options.queue is not None, "the options of a stream have one"
        ids = ids_of(partition.runs)

        def look(session: Session, given: Collection[int]) -> Iterable[Received]:
            return StreamQueue(session, options).read(ids.difference(given))

        with BrokerConnection(options) as connection:
            found = received_rows(connection, look)
            yield from row_batches(
                found, node=options.node, queue=options.queue, columns=self.columns
            )
