"""What an audit finds in the history of brokers: lost, duplicated, out of order.

    lost            acknowledged in a forwarding queue, and neither accepted by its target nor moved
                    elsewhere; or its record was deleted while a queue had not acknowledged it
    duplicated      more messages with the same id were sent to an address than forwarding explains
    out of order    what one queue forwards, or what belongs to one group or to an exclusive queue,
                    came, or was acknowledged, behind what was sent later with the same priority

A forwarding queue is a cluster's (`$.artemis.internal.sf.…`) or a bridge's. Nothing is said of
targets whose data are not there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from pipeline.history import History

__all__ = ["Cluster", "findings_of_history", "with_forwarding"]

# $.artemis.internal.sf.<cluster connection>.<node id of the target>
_STORE_AND_FORWARD: Final = r"^\$\.artemis\.internal\.sf\..*\.([0-9a-fA-F-]{36})$"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What brokers are to one another.

    Attributes:
        node_ids: of each node whose id is known (`server.lock`), as UUID.
        bridge_queues: queues that bridges of broker.xml consume from; those of the bindings, and a
            cluster's own, are known.
    """

    node_ids: Mapping[str, str] = field(default_factory=dict)
    bridge_queues: tuple[str, ...] = ()


def with_forwarding(queues: DataFrame, bridges: DataFrame, cluster: Cluster) -> DataFrame:
    """The queues with `forwards`, and `target`: the node that it forwards to, null for any.

    Args:
        queues: node, queue_id, queue.
        bridges: the bindings of bridges: node, and the queue's name.
        cluster: see there.
    """
    from pyspark.sql import functions as f

    target_id = f.lower(f.regexp_extract("queue", _STORE_AND_FORWARD, 1))
    nodes = f.create_map(
        *(f.lit(text) for node, one in cluster.node_ids.items() for text in (one.lower(), node))
    )
    target = f.element_at(nodes, target_id) if cluster.node_ids else f.lit(None).cast("string")
    named = bridges.select(
        f.col("node").alias("bridge_node"), f.col("queue").alias("bridge_queue")
    ).distinct()
    is_named = f.col("bridge_queue").isNotNull() | f.col("queue").isin(*cluster.bridge_queues)
    return (
        queues.join(
            named,
            (f.col("node") == f.col("bridge_node")) & (f.col("queue") == f.col("bridge_queue")),
            "left",
        )
        .withColumn("forwards", (f.length(target_id) > 0) | is_named)
        .withColumn("target", target)
        # Of a cluster's queue whose target is not among the nodes nothing can be said.
        .withColumn("is_judged", is_named | f.col("target").isNotNull())
        .drop("bridge_node", "bridge_queue")
    )


def findings_of_history(told: History, queues: DataFrame, cluster: Cluster) -> DataFrame:
    """A row for each finding; columns as of pipeline.audit.findings().

    Args:
        told: of pipeline.history.
        queues: of with_forwarding(), with `is_exclusive`.
        cluster: see there.
    """
    return (
        _not_forwarded(told, queues, cluster)
        .unionByName(_deleted_unacknowledged(told, queues))
        .unionByName(_duplicated(told, queues, "duplicate_id", "duplicate id"))
        .unionByName(_duplicated(told, queues, "user_id", "user id"))
        .unionByName(_forwarded_late(told, queues, cluster))
        .unionByName(_acknowledged_late(told, queues))
    )


def _finding(rows: DataFrame, name: str, reason: str, detail: Column) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.select(
        f.lit(name).alias("finding"),
        f.lit(reason).alias("reason"),
        *("node", "address", "queue", "message_id", "timestamp_ms"),
        detail.alias("detail"),
    )


def _node_ids(told: History, cluster: Cluster) -> DataFrame:
    """node, source_id: as it stands in the ids of bridges."""
    session = told.sent.sparkSession
    rows = [(node, one.replace("-", "").lower()) for node, one in cluster.node_ids.items()]
    return session.createDataFrame(rows, "node string, source_id string")


def _accepted(told: History) -> DataFrame:
    from pyspark.sql import functions as f

    return told.accepted.select(
        *("source_id", "message_id"),
        f.col("node").alias("accepted_by"),
        f.col("place").alias("accepted_place"),
    )


# --- lost ---------------------------------------------------------------------------------------


def _not_forwarded(told: History, queues: DataFrame, cluster: Cluster) -> DataFrame:
    from pyspark.sql import functions as f

    # Out of the forwarding queue to another address: dead, expired, or moved by somebody.
    moved = told.sent.select(
        "node",
        f.col("original_id").alias("moved_id"),
        f.col("original_queue").alias("queue"),
    ).where("moved_id IS NOT NULL AND queue IS NOT NULL")
    forwarded = (
        told.acknowledged.drop("place")
        .join(queues.where("forwards AND is_judged").drop("address"), ["node", "queue_id"])
        .join(told.sent.drop("place"), ["node", "message_id"])
        .withColumn("moved_id", f.col("message_id").cast("string"))
        .join(moved, ["node", "moved_id", "queue"], "left_anti")
        .join(_node_ids(told, cluster), "node", "left")
    )
    brought = told.accepted.select(
        f.col("source_id").alias("brought_from"),
        f.col("message_id").alias("brought_id"),
        f.col("node").alias("accepted_by"),
    )
    is_brought = (
        (f.col("source_id") == f.col("brought_from"))
        & (f.col("message_id") == f.col("brought_id"))
        & (f.col("target").isNull() | (f.col("target") == f.col("accepted_by")))
    )
    lost = forwarded.where("source_id IS NOT NULL").join(brought, is_brought, "left_anti")
    # Of a node whose id nobody knows: by the ids that the sender gave.
    unknown = forwarded.where(
        f.col("source_id").isNull() & f.coalesce("user_id", "duplicate_id").isNotNull()
    )
    for column in ("user_id", "duplicate_id"):
        others = told.sent.select(
            f.col("node").alias("other_node"), f.col(column).alias("other_id")
        ).distinct()
        is_elsewhere = (f.col(column) == f.col("other_id")) & (f.col("node") != f.col("other_node"))
        unknown = unknown.join(others, is_elsewhere, "left_anti")
    return _finding(
        lost.unionByName(unknown),
        "lost",
        "between nodes",
        f.format_string(
            "acknowledged in %s, and %s never accepted it",
            "queue",
            f.coalesce("target", f.lit("no node")),
        ),
    )


def _deleted_unacknowledged(told: History, queues: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    keys = ["node", "message_id", "queue_id"]
    rows = (
        told.routed.where("NOT is_paged")
        .drop("place")
        .join(told.deleted.drop("place"), ["node", "message_id"], "left_semi")
        .join(told.acknowledged, keys, "left_anti")
        .join(queues.drop("address"), ["node", "queue_id"], "left")
        .join(told.sent.drop("place"), ["node", "message_id"])
        .withColumn("queue", f.coalesce("queue", f.col("queue_id").cast("string")))
    )
    return _finding(
        rows,
        "lost",
        "deleted",
        f.format_string("its record was deleted, and %s had not acknowledged it", "queue"),
    )


# --- duplicated ---------------------------------------------------------------------------------


def _duplicated(told: History, queues: DataFrame, column: str, name: str) -> DataFrame:
    """Messages of one id to one address, that are more than one sent and those forwarded.

    What was only in forwarding queues is on its way, and counts where it arrives. Where a node kept
    the message, or had kept it before its redistribution, each forwarding makes one more.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    forwards = told.routed.join(
        queues.select("node", "queue_id", "forwards"), ["node", "queue_id"], "left"
    )
    ways = forwards.groupBy("node", "message_id").agg(
        f.count_if(f.coalesce("forwards", f.lit(False))).alias("forward_count"),
        f.count_if(~f.coalesce("forwards", f.lit(False))).alias("kept_count"),
    )
    same_here = Window.partitionBy("node", "address", column)
    same = Window.partitionBy("address", column)
    is_kept = f.col("kept_count") > 0
    place = f.format_string("%s:%d", "node", "message_id")
    counted = (
        # What was moved, or has died or expired, is another message with the same id.
        told.sent.where(f.col(column).isNotNull() & f.col("original_id").isNull())
        .join(ways, ["node", "message_id"])
        .withColumn("is_kept", is_kept)
        .withColumn("kept_here", f.max(is_kept).over(same_here))
        .withColumn(
            "explained",
            1 + f.sum(f.when(f.col("kept_here"), f.col("forward_count")).otherwise(0)).over(same),
        )
        .withColumn("copies", f.sort_array(f.collect_list(f.when(is_kept, place)).over(same)))
    )
    rows = counted.where(is_kept & (f.size("copies") > f.col("explained")))
    return _finding(
        rows.withColumn("queue", f.lit(None).cast("string")),
        "duplicated",
        name,
        f.format_string(f"{name} %s: %s", f.col(column), f.concat_ws(", ", "copies")),
    )


# --- out of order -------------------------------------------------------------------------------


def _late(rows: DataFrame, *keys: str) -> DataFrame:
    """Rows that came (`came`) behind one that was sent (`went`) later; with `other_id`, that one.

    Of two that changed places this is one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    before = (
        Window.partitionBy(*keys)
        .orderBy("came")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    latest = f.max(f.struct("went", "message_id")).over(before)
    return (
        rows.withColumn("latest", latest)
        .where("latest.went > went")
        .withColumn("other_id", f.col("latest.message_id"))
    )


def _forwarded_late(told: History, queues: DataFrame, cluster: Cluster) -> DataFrame:
    from pyspark.sql import functions as f

    routed = (
        told.routed.withColumnRenamed("place", "went")
        .join(queues.where("forwards").drop("address"), ["node", "queue_id"])
        .join(told.sent.drop("place").where("scheduled_ms IS NULL"), ["node", "message_id"])
        .join(_node_ids(told, cluster), "node")
    )
    accepted = _accepted(told).withColumnRenamed("accepted_place", "came")
    rows = routed.join(accepted, ["source_id", "message_id"]).where(
        f.col("target").isNull() | (f.col("target") == f.col("accepted_by"))
    )
    return _finding(
        _late(rows, "node", "queue_id", "accepted_by", "priority"),
        "out of order",
        "between nodes",
        f.format_string("%s accepted it behind message %d", "accepted_by", "other_id"),
    )


def _acknowledged_late(told: History, queues: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    keys = ["node", "message_id", "queue_id"]
    rows = (
        told.routed.withColumnRenamed("place", "went")
        .join(told.acknowledged.withColumnRenamed("place", "came"), keys)
        .join(queues.where("NOT forwards").drop("address"), ["node", "queue_id"])
        .join(told.sent.drop("place").where("scheduled_ms IS NULL"), ["node", "message_id"])
        .where("is_exclusive OR group_id IS NOT NULL")
        .withColumn("line", f.when(f.col("is_exclusive"), "").otherwise(f.col("group_id")))
    )
    return _finding(
        _late(rows, "node", "queue_id", "line", "priority"),
        "out of order",
        "acknowledged",
        f.format_string("acknowledged behind message %d", "other_id"),
    )
