"""Audits the histories of brokers: messages lost, duplicated, out of order.

    lost            acknowledged in a forwarding queue, and neither accepted by its target, nor
                    brought by a JMS bridge, nor moved elsewhere; or its record was deleted while a
                    queue had not acknowledged it
    duplicated      more messages with the same id were sent to an address than forwarding explains
    out of order    what one queue forwards to one address, or what belongs to one group or to an
                    exclusive queue, came, or was acknowledged, behind what was sent later with the
                    same priority

A forwarding queue is a cluster's (`$.artemis.internal.sf.…`) or a bridge's. What a JMS bridge has
brought is known by its duplicate id, or by the list of ids in its header. Nothing is said of
targets whose data are not there. What one message tells is found in its row; what takes others has
one shuffle of Spark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.finding_rules import DUPLICATED, IDS, LOST, OUT_OF_ORDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from pipeline.audit_queues import Cluster, Queue
    from pipeline.message_traces import Traces

__all__ = ["findings_of_history"]

_BETWEEN: Final = "between nodes"
_COLUMNS: Final = (
    *("finding", "reason", "node", "address", "queue", "message_id", "timestamp_ms", "detail"),
)


def findings_of_history(
    told: Traces, known: DataFrame, queues: Sequence[Queue], cluster: Cluster
) -> DataFrame:
    """A row for each finding; columns as of pipeline.audit.findings().

    Args:
        told: of pipeline.message_traces, persisted.
        known: of pipeline.audit_queues, the queues as a frame.
        queues: the same.
        cluster: what the nodes are to one another.
    """
    from pyspark.sql import functions as f

    # Nothing is known of a message whose send is not recorded.
    sent = told.rows.where("place IS NOT NULL")
    named = sent.where("queue_id IS NOT NULL").join(
        known.drop("address"), ["node", "queue_id"], "left"
    )
    lost = _lost(named, cluster)
    checked = {queue.node for queue in queues if queue.forwards and queue.is_checked}
    unknown = sorted(checked - set(cluster.node_ids))
    if unknown:
        lost = lost.unionByName(_not_seen_elsewhere(named.where(f.col("node").isin(unknown)), sent))
    if cluster.bridge_queues:
        lost = _not_by_jms_bridge(lost, told.given_ids, sent, cluster)
    return (
        lost.select(*_COLUMNS)
        .unionByName(_late(named, cluster))
        .unionByName(_duplicated(sent.where("number = 0")))
    )


# --- lost ---------------------------------------------------------------------------------------


def _is_gone() -> Column:
    """Acknowledged in a forwarding queue, and not moved out of it to another address."""
    from pyspark.sql import functions as f

    # Moved: dead, expired, or by somebody.
    return f.expr(
        "acknowledged IS NOT NULL AND forwards AND is_checked"
        " AND NOT array_contains(moved_from, queue)"
    )


def _never_accepted() -> Column:
    from pyspark.sql import functions as f

    return f.when(
        f.col("target").isNull(),
        f.format_string("acknowledged in %s, and no node has accepted it", "queue"),
    ).otherwise(
        f.format_string("acknowledged in %s, and %s has not accepted it", "queue", "target")
    )


def _lost(named: DataFrame, cluster: Cluster) -> DataFrame:
    """What one message tells: not accepted, or deleted too early; with its user_id."""
    from pyspark.sql import functions as f

    is_accepted = f.exists(
        "accepted", lambda one: f.col("target").isNull() | (f.col("target") == one["by"])
    )
    is_deleted = f.expr("routed IS NOT NULL AND is_deleted AND acknowledged IS NULL")
    name = f.coalesce("queue", f.col("queue_id").cast("string"))
    lost = f.array_compact(
        f.array(
            f.when(
                _is_gone() & f.col("node").isin(*cluster.node_ids) & ~is_accepted,
                f.struct(f.lit(_BETWEEN).alias("reason"), _never_accepted().alias("detail")),
            ),
            f.when(
                is_deleted,
                f.struct(
                    f.lit("deleted").alias("reason"),
                    f.format_string(
                        "its record was deleted, and %s had not acknowledged it", name
                    ).alias("detail"),
                ),
            ),
        )
    )
    return (
        named.withColumn("lost", f.explode(lost))
        .withColumn("queue", name)
        .select(
            *(f.lit(LOST).alias("finding"), "lost.reason", *_COLUMNS[2:-1], "lost.detail"),
            "user_id",
        )
    )


def _not_seen_elsewhere(named: DataFrame, sent: DataFrame) -> DataFrame:
    """Lost messages of nodes whose id is unknown: found by the ids that the sender gave."""
    from pyspark.sql import functions as f

    lost = named.where(_is_gone() & f.coalesce("user_id", "duplicate_id").isNotNull())
    for column in ("user_id", "duplicate_id"):
        others = sent.where("number = 0").select(
            f.col("node").alias("other_node"), f.col(column).alias("other_id")
        )
        is_elsewhere = (f.col(column) == f.col("other_id")) & (f.col("node") != f.col("other_node"))
        lost = lost.join(others, is_elsewhere, "left_anti")
    return lost.select(
        f.lit(LOST).alias("finding"),
        f.lit(_BETWEEN).alias("reason"),
        *_COLUMNS[2:-1],
        _never_accepted().alias("detail"),
        "user_id",
    )


def _not_by_jms_bridge(
    lost: DataFrame, given_ids: DataFrame, sent: DataFrame, cluster: Cluster
) -> DataFrame:
    """Those of the lost messages that no JMS bridge has brought anywhere.

    Its ids are those of broker.bridges.jms: of duplicate_ids.duplicate_id(), whose position is a
    queue and a message id, and of message.extended_ids().
    """
    from pyspark.sql import functions as f

    is_named = f.col("queue").isin(*cluster.bridge_queues) | f.concat(
        "node", f.lit(":"), "queue"
    ).isin(*cluster.bridge_queues)
    is_bridged = (f.col("reason") == _BETWEEN) & is_named
    node_id = f.lit(None).cast("string")
    for node, text in cluster.node_ids.items():
        node_id = f.when(f.col("node") == node, text).otherwise(node_id)
    position = f.concat(
        f.encode(f.concat(node_id, f.lit("\0"), "queue", f.lit("\0")), "UTF-8"),
        f.unhex(f.lpad(f.hex("message_id"), 16, "0")),
    )
    made_id = f.when(is_bridged, f.sha2(position, 256))
    own_id = f.when(is_bridged, _jms_id("user_id"))
    bridged = sent.where("bridged_id IS NOT NULL").select(_jms_id("bridged_id").alias("bridged_id"))
    return (
        lost.withColumn("made_id", made_id)
        .withColumn("own_id", own_id)
        .join(given_ids, f.col("made_id") == f.col("duplicate_id"), "left_anti")
        .join(bridged, f.col("own_id") == f.col("bridged_id"), "left_anti")
    )


def _jms_id(column: str) -> Column:
    """A JMSMessageID to be compared, without what Artemis sets in each: version and variant."""
    from pyspark.sql import functions as f

    plain = f.regexp_replace(column, "^ID:", "")
    return f.regexp_replace(plain, "^(.{8}-.{4}-).(.{3}-).(.{3}-.{12})$", "$1$2$3")


# --- duplicated ---------------------------------------------------------------------------------


def _duplicated(sent: DataFrame) -> DataFrame:
    """Messages of one id to one address, that are more than one sent and those forwarded.

    What was only in forwarding queues is on its way, and counts where it arrives: each of them but
    the first makes one more. Where a node kept the message, or had kept it before its
    redistribution, each forwarding makes one more.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def of(column: str, name: str) -> Column:
        return f.when(
            f.col(column).isNotNull(),
            f.struct(f.lit(name).alias("name"), f.col(column).alias("id")),
        )

    keys = ("address", "name", "id")
    same, same_here = Window.partitionBy(*keys), Window.partitionBy(*keys, "node")
    place = f.format_string("%s:%d", "node", "message_id")
    forwards = f.col("forward_count")
    counted = (
        # What was moved, or has died or expired, is another message with the same id.
        sent.where("NOT is_moved AND forward_count + kept_count > 0")
        .select(
            *("node", "message_id", "address", "timestamp_ms", "forward_count"),
            (f.col("kept_count") > 0).alias("is_kept"),
            f.inline(f.array_compact(f.array(*(of(column, name) for column, name in IDS.items())))),
        )
        .repartition(*keys)
        .withColumn("kept_here", f.max("is_kept").over(same_here))
        .withColumn(
            "explained",
            1
            + f.sum(
                f.when(f.col("kept_here"), forwards).otherwise(f.greatest(forwards - 1, f.lit(0)))
            ).over(same),
        )
        .withColumn("copies", f.collect_list(f.when(f.col("is_kept"), place)).over(same))
        .where(f.col("is_kept") & (f.size("copies") > f.col("explained")))
    )
    return counted.select(
        f.lit(DUPLICATED).alias("finding"),
        f.col("name").alias("reason"),
        *("node", "address", f.lit(None).cast("string").alias("queue"), "message_id"),
        "timestamp_ms",
        f.format_string("%s %s: %s", "name", "id", f.concat_ws(", ", f.sort_array("copies"))).alias(
            "detail"
        ),
    )


# --- out of order -------------------------------------------------------------------------------


def _late(named: DataFrame, cluster: Cluster) -> DataFrame:
    """What came (`came`) behind one that was surely sent later, in its lane.

    A message in transaction gets its place in the queue between its own record (`began`) and the
    commit (`went`). That of a page has it from its append on, which only its id tells: events are
    written with the commit. So of two messages the one with the higher id was sent later, if its
    own record stands behind the commit of the other, or behind the other's of one transaction.

    Messages for several addresses share a forwarding queue, and the target orders each address by
    itself: its commits wait for pages, and those of an address without pages do not.

    Of two that changed places this is one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    accepted = f.transform(
        f.filter("accepted", lambda one: f.col("target").isNull() | (f.col("target") == one["by"])),
        lambda one: f.struct(
            f.lit(_BETWEEN).alias("reason"),
            one["by"].alias("lane"),
            one["address"].alias("at"),
            one["place"].alias("came"),
        ),
    )
    acknowledged = f.array(
        f.struct(
            f.lit("acknowledged").alias("reason"),
            f.when(f.col("is_exclusive"), "").otherwise(f.col("group_id")).alias("lane"),
            f.lit("").alias("at"),
            f.col("acknowledged").alias("came"),
        )
    )
    is_in_line = f.expr("acknowledged IS NOT NULL AND (is_exclusive OR group_id IS NOT NULL)")
    # A queue without a binding has neither.
    lanes = f.when(f.col("forwards") & f.col("node").isin(*cluster.node_ids), accepted).otherwise(
        f.when(~f.col("forwards") & is_in_line, acknowledged)
    )
    went = f.coalesce("routed", "paged")

    def newest(*more: str) -> Column:
        keys = ("node", "queue_id", "reason", "lane", "at", "priority", *more)
        before = Window.partitionBy(*keys).orderBy("came")
        return f.max(f.struct("message_id", "began")).over(
            before.rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
        )

    behind = f.expr(
        "CASE WHEN newest.message_id > message_id AND newest.began > went THEN newest.message_id"
        " WHEN sibling.message_id > message_id AND sibling.began > began THEN sibling.message_id"
        " END"
    )
    return (
        named.where(went.isNotNull() & ~f.col("is_scheduled"))
        .select(
            *("node", "queue_id", "queue", "address", "message_id", "timestamp_ms", "priority"),
            *(went["own"].alias("began"), went["counts"].alias("went")),
            f.inline(lanes),
        )
        .withColumns({"newest": newest(), "sibling": newest("went")})
        .withColumn("behind", behind)
        .where("behind IS NOT NULL")
        .select(
            f.lit(OUT_OF_ORDER).alias("finding"),
            *_COLUMNS[1:-1],
            f.when(
                f.col("reason") == "acknowledged",
                f.format_string("acknowledged behind message %d", "behind"),
            )
            .otherwise(f.format_string("%s accepted it behind message %d", "lane", "behind"))
            .alias("detail"),
        )
    )
