"""Computes the figures of `pipeline report`, small enough for one page.

Records say when a message was sent, as its sender's clock had it, and nothing of when it was
acknowledged. So a time is taken from the log: a record is as old as the youngest message of its
node that stands before it. What is derived of it, depth and latency, is exact to the distance
between two messages. What went into a page has no place in the log: it counts from when it was
sent, and when it left its queue is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.side_by_side import side_by_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from pipeline.message_traces import Traces

__all__ = ["NEEDED", "Report", "Series", "Total", "make_report"]

# What is asked of `messages`.
NEEDED: Final = (
    *("node", "message_id", "address", "priority", "timestamp_ms", "user_id", "duplicate_id"),
    *("is_large", "body_size", "references"),
)
# Buckets of a page's time axis.
_BUCKETS: Final = 120
# Lines of one drawing: the addresses or queues with most in them.
_LINES: Final = 8
# What has a message now; what is prepared has come to no queue yet.
_WAITS: Final = ("live", "scheduled", "acknowledging")
# A file's id stands above an offset in a place.
_OFFSET_BITS: Final = 32

# (name, [(x, y)]), in the order of x.
Series = tuple[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Total:
    """The figures of one node.

    Attributes:
        node: its name.
        messages: sent, or found in pages.
        paged: of these those that went into pages.
        large: of these those whose body is a file, or rows, of its own.
        routed: deliveries to queues.
        acknowledged: by a queue; of what was paged all that no queue has any more.
        waiting: in queues now, what is prepared left out.
        bytes: of bodies, as far as their size is known.
    """

    node: str
    messages: int = 0
    paged: int = 0
    large: int = 0
    routed: int = 0
    acknowledged: int = 0
    waiting: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The figures.

    Attributes:
        totals: of each node.
        bucket_s: seconds of one step of the time axis.
        rates: messages per second, by address; x in ms since 1970.
        depths: messages that a queue has, at the end of each step.
        sizes: (bytes at least, messages): each twice the one before.
        latencies: (ms at least, acknowledgements), likewise.
        files: (node, file, bytes of all records, bytes of live ones), in order of their ids.
        flows: (from node, to node, messages).
    """

    totals: list[Total]
    bucket_s: float
    rates: list[Series]
    depths: list[Series]
    sizes: list[tuple[float, int]]
    latencies: list[tuple[float, int]]
    files: list[tuple[str, str, int, int]]
    flows: list[tuple[str, str, int]]


def make_report(traces: Traces, queues: DataFrame, files: DataFrame) -> Report:
    """Ask Spark for the figures.

    Args:
        traces: of pipeline.message_traces, with what is stored; persisted.
        queues: node, queue_id, queue; a few, to be broadcast.
        files: of the source `journal_files`.
    """
    from pyspark.sql import functions as f

    rows = traces.rows
    messages = rows.where("number = 0 AND (place IS NOT NULL OR is_stored)")
    logged = _logged(rows)
    # Whatever asks first works out the rows; what is asked of them then is small.
    spans, file_sizes = side_by_side(
        rows.sparkSession, lambda: _spans(logged), lambda: _files(files)
    )
    low_ms = min((span.low_ms for span in spans if span.low_ms is not None), default=0)
    high_ms = max((span.high_ms for span in spans if span.high_ms is not None), default=0)
    bucket_ms = max(1, -(-(high_ms - low_ms + 1) // _BUCKETS))
    events = _events(logged, spans, bucket_ms, queues).persist()
    try:
        totals, rates, depths, sizes, latencies, flows = side_by_side(
            rows.sparkSession,
            lambda: _totals(rows),
            lambda: _rates(messages, bucket_ms),
            lambda: _depths(events, bucket_ms),
            lambda: _counts(messages.select(_power("body_size")).groupBy("least").count()),
            lambda: _counts(
                events.where("change < 0").groupBy("least").agg(f.sum("count").alias("count"))
            ),
            lambda: _flows(rows),
        )
    finally:
        events.unpersist()
    return Report(
        totals=totals,
        bucket_s=bucket_ms / 1000,
        rates=rates,
        depths=depths,
        sizes=sizes,
        latencies=latencies,
        files=file_sizes,
        flows=flows,
    )


def _logged(rows: DataFrame) -> DataFrame:
    """What the log has of each message and queue, and what is in pages, which the log has not.

    node, queue_id, sent_ms, place (null: in a page), file_id (likewise), told_ms (of a message, its
    time), change (0: sent; 1: routed; -1: acknowledged).
    """
    from pyspark.sql import functions as f

    sent_ms, nothing = f.col("timestamp_ms"), f.lit(None).cast("bigint")

    def event(place: str, told_ms: Column, change: int) -> Column:
        return f.struct(
            f.col(place).alias("place"), told_ms.alias("told_ms"), f.lit(change).alias("change")
        )

    is_paged = f.col("routed").isNull() & f.col("state").isin(*_WAITS)
    return rows.select(
        *("node", "queue_id", sent_ms.alias("sent_ms")),
        f.inline(
            f.array_compact(
                f.array(
                    f.when(
                        f.expr("number = 0 AND (place IS NOT NULL OR is_stored)"),
                        event("place", sent_ms, 0),
                    ),
                    f.when(f.col("routed").isNotNull(), event("routed", nothing, 1)),
                    f.when(is_paged, event("routed", sent_ms, 1)),
                    f.when(f.col("acknowledged").isNotNull(), event("acknowledged", nothing, -1)),
                )
            )
        ),
    ).withColumn("file_id", f.shiftright("place.counts", _OFFSET_BITS))


def _spans(logged: DataFrame) -> list[Row]:
    """Of each node's file the times of its messages: node, file_id, low_ms, high_ms."""
    from pyspark.sql import functions as f

    told_ms = f.when(f.col("told_ms") > 0, f.col("told_ms"))
    return (
        logged.groupBy("node", "file_id")
        .agg(f.min(told_ms).alias("low_ms"), f.max(told_ms).alias("high_ms"))
        .collect()
    )


def _events(
    logged: DataFrame, spans: Sequence[Row], bucket_ms: int, queues: DataFrame
) -> DataFrame:
    """What queues got and lost, counted: line, at (of a bucket), change, least (of ages), count.

    The youngest message of all files before one is looked up, so that Spark sorts file by file.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    so_far = (
        Window.partitionBy("node", "file_id")
        .orderBy("place")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    in_log = (
        logged.where("place IS NOT NULL")
        .join(_before(logged.sparkSession, spans), ["node", "file_id"], "left")
        .withColumn("at_ms", f.greatest("before_ms", f.max("told_ms").over(so_far)))
        .where("change <> 0 AND at_ms > 0")
    )
    # As its sender's clock had it.
    in_pages = logged.where("place IS NULL AND change = 1 AND told_ms > 0").withColumn(
        "at_ms", f.col("told_ms")
    )
    # The send time of messages sent before the oldest record is unknown.
    age_ms = f.when(f.col("sent_ms") > 0, f.greatest(f.col("at_ms") - f.col("sent_ms"), f.lit(0)))
    kept = ("node", "queue_id", "change", "at_ms")
    return (
        in_log.select(*kept, age_ms.alias("age_ms"))
        .unionByName(in_pages.select(*kept, f.lit(None).cast("bigint").alias("age_ms")))
        .groupBy("node", "queue_id", _bucket("at_ms", bucket_ms), "change", _power("age_ms"))
        .count()
        .join(queues, ["node", "queue_id"], "left")
        .select(
            f.concat_ws(" · ", "node", f.coalesce("queue", f.col("queue_id").cast("string"))).alias(
                "line"
            ),
            *("at", "change", "least", "count"),
        )
    )


def _before(spark: SparkSession, spans: Sequence[Row]) -> DataFrame:
    """node, file_id, before_ms: of the youngest message in the files before it."""
    import pyarrow as pa
    from pyspark.sql import functions as f

    youngest: dict[str, int] = {}
    rows = []
    with_file = (span for span in spans if span.file_id is not None)
    for span in sorted(with_file, key=lambda one: (one.node, one.file_id)):
        before_ms = youngest.get(span.node)
        rows.append({"node": span.node, "file_id": span.file_id, "before_ms": before_ms})
        youngest[span.node] = max(span.high_ms or 0, before_ms or 0)
    schema = pa.schema([("node", pa.string()), ("file_id", pa.int64()), ("before_ms", pa.int64())])
    return f.broadcast(spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema)))


def _totals(rows: DataFrame) -> list[Total]:
    from pyspark.sql import functions as f

    is_message = f.expr("number = 0 AND (place IS NOT NULL OR is_stored)")
    is_paged = f.expr("paged IS NOT NULL OR (routed IS NULL AND state IS NOT NULL)")
    waits = f.coalesce(f.col("state").isin(*_WAITS), f.lit(False))
    is_routed = f.expr("routed IS NOT NULL") | is_paged
    # Of what was paged no record tells: what no queue has any more is done.
    is_done = f.expr("acknowledged IS NOT NULL") | (is_paged & ~waits)
    counted = rows.groupBy("node").agg(
        f.count_if(is_message).alias("messages"),
        f.count_if(is_message & is_paged).alias("paged"),
        f.count_if(is_message & f.col("is_large")).alias("large"),
        f.count_if(is_routed).alias("routed"),
        f.count_if(is_done).alias("acknowledged"),
        f.count_if(waits).alias("waiting"),
        f.coalesce(f.sum(f.when(is_message, f.col("body_size"))), f.lit(0)).alias("bytes"),
    )
    return [
        Total(**row.asDict())
        for row in sorted(counted.where("messages > 0").collect(), key=lambda row: str(row.node))
    ]


def _rates(messages: DataFrame, bucket_ms: int) -> list[Series]:
    from pyspark.sql import functions as f

    rows = (
        messages.where("timestamp_ms > 0")
        .groupBy(f.col("address").alias("line"), _bucket("timestamp_ms", bucket_ms))
        .agg(f.count("*").alias("value"))
    )
    return [
        (name, [(x, value * 1000 / bucket_ms) for x, value in points])
        for name, points in _lines(rows, bucket_ms)
    ]


def _depths(events: DataFrame, bucket_ms: int) -> list[Series]:
    from pyspark.sql import functions as f

    rows = events.groupBy("line", "at").agg(f.sum(f.col("change") * f.col("count")).alias("value"))
    found = []
    for name, points in _lines(rows, bucket_ms):
        depth, line = 0.0, []
        for x, change in points:
            depth += change
            line.append((x, depth))
        found.append((name, line))
    return found


def _bucket(column: str, bucket_ms: int) -> Column:
    from pyspark.sql import functions as f

    return (f.floor(f.col(column) / bucket_ms) * bucket_ms).cast("bigint").alias("at")


def _lines(rows: DataFrame, bucket_ms: int) -> list[Series]:
    """The lines that move most, with a point at every step; what does not happen is 0.

    Args:
        rows: line, at, value.
        bucket_ms: of a step.
    """
    from pyspark.sql import functions as f

    most = (
        rows.groupBy("line")
        .agg(
            f.sum(f.abs("value")).alias("moves"),
            f.collect_list(f.struct("at", "value")).alias("points"),
        )
        .orderBy(f.desc("moves"), "line")
        .limit(_LINES)
        .collect()
    )
    found = {row.line: {one.at: float(one.value) for one in row.points} for row in most}
    steps = [at for points in found.values() for at in points]
    if not steps:
        return []
    axis = range(min(steps), max(steps) + bucket_ms, bucket_ms)
    return [
        (name, [(float(at), points.get(at, 0.0)) for at in axis]) for name, points in found.items()
    ]


def _power(column: str) -> Column:
    """The power of two that a value reaches; 0 stands by itself."""
    from pyspark.sql import functions as f

    value = f.col(column)
    least = f.when(value < 1, 0).otherwise(f.pow(f.lit(2.0), f.floor(f.log2(value))))
    return least.cast("double").alias("least")


def _counts(rows: DataFrame) -> list[tuple[float, int]]:
    """How many there are from each power of two to the next, by its rows `least` and `count`."""
    return sorted(
        (row["least"], row["count"]) for row in rows.collect() if row["least"] is not None
    )


def _files(files: DataFrame) -> list[tuple[str, str, int, int]]:
    rows = sorted(files.collect(), key=lambda row: (row.node, row.file_id, row.file))
    return [(row.node, row.file, row.all_bytes, row.live_bytes) for row in rows]


def _flows(rows: DataFrame) -> list[tuple[str, str, int]]:
    """By the node that it came from; of one that is not among them only the id is known."""
    from pyspark.sql import functions as f

    counted = (
        rows.where("number = 0 AND size(accepted) > 0")
        .select("node", f.explode("accepted.by").alias("target"))
        .groupBy("node", "target")
        .count()
    )
    return sorted((row["node"], row["target"], row["count"]) for row in counted.collect())
