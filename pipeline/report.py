"""What `pipeline report` draws: figures over what brokers stored, small enough for one page.

Records say when a message was sent, as its sender's clock had it, and nothing of when it was
acknowledged. So a time is taken from the log: a record is as old as the youngest message of its
node that stands before it. What is derived of it, depth and latency, is exact to the distance
between two messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, Row

    from pipeline.history import History

__all__ = ["Report", "Series", "make_report"]

# Buckets of a page's time axis.
_BUCKETS: Final = 120
# Lines of one drawing: the addresses or queues with most in them.
_LINES: Final = 8

# (name, [(x, y)]), in the order of x.
Series = tuple[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Report:
    """The figures.

    Attributes:
        totals: (node, messages, acknowledged by a queue, deliveries to queues, bytes of bodies).
        bucket_s: seconds of one step of the time axis.
        rates: messages per second, by address; x in ms since 1970.
        depths: messages that a queue has, at the end of each step.
        sizes: (bytes at least, messages): each twice the one before.
        latencies: (ms at least, acknowledgements), likewise.
        files: (node, file, bytes of all records, bytes of live ones), in order of their ids.
        flows: (from node, to node, messages).
    """

    totals: list[tuple[str, int, int, int, int]]
    bucket_s: float
    rates: list[Series]
    depths: list[Series]
    sizes: list[tuple[float, int]]
    latencies: list[tuple[float, int]]
    files: list[tuple[str, str, int, int]]
    flows: list[tuple[str, str, int]]


def make_report(
    told: History,
    queues: DataFrame,
    raw: DataFrame,
    live: DataFrame,
    node_ids: Mapping[str, str],
) -> Report:
    """Ask Spark for the figures.

    Args:
        told: of pipeline.history.
        queues: node, queue_id, queue.
        raw: of the source `journal`; persisted.
        live: the same with `records` `live`.
        node_ids: of each node whose id is known, as UUID.
    """
    events = _events(told, queues).persist()
    low_ms, high_ms = _span(told.sent)
    bucket_ms = max(1, -(-(high_ms - low_ms + 1) // _BUCKETS))
    try:
        return Report(
            totals=_totals(told),
            bucket_s=bucket_ms / 1000,
            rates=_rates(told.sent, bucket_ms),
            depths=_depths(events, bucket_ms),
            sizes=_doubling(told.sent, "body_size"),
            latencies=_doubling(events.where("change < 0"), "age_ms"),
            files=_files(raw, live),
            flows=_flows(told.accepted, node_ids),
        )
    finally:
        events.unpersist()


def _span(sent: DataFrame) -> tuple[int, int]:
    from pyspark.sql import functions as f

    row = sent.where("timestamp_ms > 0").agg(f.min("timestamp_ms"), f.max("timestamp_ms")).first()
    return (0, 0) if row is None or row[0] is None else (row[0], row[1])


def _events(told: History, queues: DataFrame) -> DataFrame:
    """node, queue, change (1 routed, -1 acknowledged), at_ms by the log, age_ms of the message."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    sent = told.sent.select(
        *("node", "message_id", "place", "timestamp_ms"),
        f.lit(None).cast("bigint").alias("queue_id"),
        f.lit(0).alias("change"),
    )
    both = [
        rows.select(
            *("node", "message_id", "place", f.lit(None).cast("bigint").alias("timestamp_ms")),
            *("queue_id", f.lit(change).alias("change")),
        )
        for rows, change in ((told.routed.where("NOT is_paged"), 1), (told.acknowledged, -1))
    ]
    so_far = (
        Window.partitionBy("node")
        .orderBy("place")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    times = told.sent.select("node", "message_id", f.col("timestamp_ms").alias("sent_ms"))
    return (
        sent.unionByName(both[0])
        .unionByName(both[1])
        .withColumn("at_ms", f.max("timestamp_ms").over(so_far))
        .where("change <> 0 AND at_ms > 0")
        .join(times, ["node", "message_id"], "left")
        .join(queues.select("node", "queue_id", "queue"), ["node", "queue_id"], "left")
        .select(
            "node",
            f.coalesce("queue", f.col("queue_id").cast("string")).alias("queue"),
            "change",
            "at_ms",
            f.greatest(f.col("at_ms") - f.col("sent_ms"), f.lit(0)).alias("age_ms"),
        )
    )


def _totals(told: History) -> list[tuple[str, int, int, int, int]]:
    from pyspark.sql import functions as f

    counted = told.sent.groupBy("node").agg(
        f.count("*").alias("messages"), f.coalesce(f.sum("body_size"), f.lit(0)).alias("bytes")
    )
    # When paged ones are acknowledged is not known.
    routed = told.routed.where("NOT is_paged")
    for rows, name in ((told.acknowledged, "acknowledged"), (routed, "routed")):
        counts = rows.groupBy("node").agg(f.count("*").alias(name))
        counted = counted.join(counts, "node", "left")
    return [
        (row.node, row.messages, row.acknowledged or 0, row.routed or 0, row.bytes)
        for row in counted.orderBy("node").collect()
    ]


def _rates(sent: DataFrame, bucket_ms: int) -> list[Series]:
    from pyspark.sql import functions as f

    rows = (
        sent.where("timestamp_ms > 0")
        .groupBy("address", _bucket("timestamp_ms", bucket_ms))
        .agg(f.count("*").alias("value"))
    )
    return [
        (name, [(x, value * 1000 / bucket_ms) for x, value in points])
        for name, points in _lines(rows, "address", bucket_ms)
    ]


def _depths(events: DataFrame, bucket_ms: int) -> list[Series]:
    from pyspark.sql import functions as f

    named = events.withColumn("line", f.concat_ws(" · ", "node", "queue"))
    rows = named.groupBy("line", _bucket("at_ms", bucket_ms)).agg(f.sum("change").alias("value"))
    found = []
    for name, points in _lines(rows, "line", bucket_ms):
        depth, line = 0.0, []
        for x, change in points:
            depth += change
            line.append((x, depth))
        found.append((name, line))
    return found


def _bucket(column: str, bucket_ms: int) -> Column:
    from pyspark.sql import functions as f

    return (f.floor(f.col(column) / bucket_ms) * bucket_ms).cast("bigint").alias("at")


def _lines(rows: DataFrame, key: str, bucket_ms: int) -> list[Series]:
    """The lines that move most, with a point at every step; what does not happen is 0."""
    from pyspark.sql import functions as f

    most = (
        rows.groupBy(key)
        .agg(f.sum(f.abs("value")).alias("moves"))
        .orderBy(f.desc("moves"), key)
        .limit(_LINES)
        .collect()
    )
    names = [row[key] for row in most]
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    for row in rows.where(f.col(key).isin(names)).collect():
        found[row[key]][row["at"]] = float(row["value"])
    steps = [at for points in found.values() for at in points]
    if not steps:
        return []
    axis = range(min(steps), max(steps) + bucket_ms, bucket_ms)
    return [
        (name, [(float(at), points.get(at, 0.0)) for at in axis]) for name, points in found.items()
    ]


def _doubling(rows: DataFrame, column: str) -> list[tuple[float, int]]:
    """How many there are from each power of two to the next; 0 stands by itself."""
    from pyspark.sql import functions as f

    value = f.col(column)
    least = f.when(value < 1, 0).otherwise(f.pow(f.lit(2.0), f.floor(f.log2(value))))
    found = (
        rows.where(value.isNotNull())
        .groupBy(least.cast("double").alias("least"))
        .count()
        .orderBy("least")
        .collect()
    )
    return [(row["least"], row["count"]) for row in found]


def _files(raw: DataFrame, live: DataFrame) -> list[tuple[str, str, int, int]]:
    from pyspark.sql import functions as f

    keys = ["node", "file"]
    every = (
        raw.where("kind <> 'damage'")
        .groupBy(*keys)
        .agg(f.sum("size").alias("all_bytes"), f.min("file_id").alias("file_id"))
    )
    # By the records' ids, where they stand: an update is live as long as its record is.
    alive = (
        raw.where("kind IN ('add', 'update', 'add_tx', 'update_tx')")
        .join(live.select("node", "record_id").distinct(), ["node", "record_id"], "left_semi")
        .groupBy(*keys)
        .agg(f.sum("size").alias("live_bytes"))
    )

    def line(row: Row) -> tuple[str, str, int, int]:
        return row["node"], row["file"], row["all_bytes"], row["live_bytes"] or 0

    return [
        line(row)
        for row in every.join(alive, keys, "left").orderBy("node", "file_id", "file").collect()
    ]


def _flows(accepted: DataFrame, node_ids: Mapping[str, str]) -> list[tuple[str, str, int]]:
    names = {one.replace("-", "").lower(): node for node, one in node_ids.items()}
    rows = accepted.groupBy("source_id", "node").count().orderBy("source_id", "node").collect()
    return [
        (names.get(row["source_id"], row["source_id"]), row["node"], row["count"]) for row in rows
    ]
