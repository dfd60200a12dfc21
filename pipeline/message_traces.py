"""Traces each message through the records of journals and histories.

    steps ─▶ those that counted ─▶ a row a message and queue
    (pipeline.step_rows)           (one shuffle)

A place in time is what Spark compares as (where it began to count, where it stands), each a file's
id above an offset. Of a record that compactions moved, the place counts where it was first written.
A record that was read twice, out of a journal and its history, counts once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from journal.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Traces", "read_steps", "trace_messages"]

_ENDS: Final = "('commit', 'rollback')"
_CONTENT: Final = (
    *("address", "priority", "timestamp_ms", "user_id", "duplicate_id", "bridged_id"),
    *("body_size", "is_large", "group_id", "is_scheduled", "is_moved"),
)


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of committed messages; rolled back and undecided transactions are left out.

    Attributes:
        rows: one row for each message and queue that it was in; one row for a message that was in
            no queue. The columns are listed below.
        steps: that it was made of.
        given_ids: duplicate_id, of those that a JMS bridge may have made and a node has accepted.

    Columns of the message: message_id, node, address, priority, timestamp_ms, user_id,
    duplicate_id, bridged_id, body_size, is_large, group_id, is_scheduled, is_deleted.
        number: 0, 1, … of its rows.
        place: where it was sent; null: its send is not recorded.
        is_moved: it came from another queue.
        moved_from: the queues that it was moved out of.
        accepted: by the nodes that a bridge brought it to, with the address and the place there.
        forward_count: of the queues that it was routed to and that forward.
        kept_count: of the other queues that it was routed to.
        is_stored: it is there now.

    Columns of the queue: queue_id, acknowledged (place).
        routed: place.
        paged: place; it went into a page, and no record tells when it left the queue.
        state: of the stored reference, as the source `messages` has it.
    """

    rows: DataFrame
    steps: DataFrame
    given_ids: DataFrame

    def persist(self) -> Traces:
        """The same, worked out once."""
        return replace(self, rows=self.rows.persist())

    def damages(self) -> DataFrame:
        """Of each damaged place: node, file, offset, damage."""
        return self.steps.where("step = 'damage'").selectExpr(
            "node", "file", "own & 4294967295 AS offset", "damage"
        )


def read_steps(
    spark: SparkSession,
    sources: Sequence[str],
    histories: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """What records say of messages; read once, and persisted.

    Args:
        spark: a session.
        sources: as of the source `journal`.
        histories: as of the source `retention`, of the same nodes. A file may be in both.
        options: of both.
    """
    # Here, so that the rest needs no PySpark to be imported.
    from pipeline.sources.steps import HISTORIES, StepsSource

    spark.dataSource.register(StepsSource)
    reader = spark.read.format(StepsSource.short_name).options(**options)
    if histories:
        reader = reader.option(HISTORIES, json.dumps(list(histories)))
    return (reader.load(list(sources)) if sources else reader.load()).persist()


def trace_messages(
    steps: DataFrame,
    forwards: DataFrame,
    node_ids: Mapping[str, str],
    stored: DataFrame | None = None,
) -> Traces:
    """Make one row for each message and queue. Runs a job of Spark's, which looks for transactions.

    Args:
        steps: of read_steps().
        forwards: node, queue_id of the queues that forward to other nodes; a few.
        node_ids: of each node whose id is known, as UUID.
        stored: of the source `messages`, to be counted in: node, message_id, the content that a
            trace has of it but bridged_id, group_id, is_scheduled and is_moved, and references.

    Raises:
        WrongUse: two nodes have one id.
    """
    from pyspark.sql import functions as f

    counted = _counted(steps)
    is_given = (f.col("step") == "accepted") & f.col("source_id").isNull()
    rows = _of_nodes(counted.where(~is_given), _names(node_ids))
    if stored is not None:
        rows = rows.unionByName(_of_stored(stored))
    keys = ("message_id", "node")
    is_routed = f.col("step") == "routed"
    content = f.struct(*_CONTENT)
    copy = f.struct("compact_count", "counts", "own")
    by_queue = (
        rows.repartition(*keys)
        .groupBy(*keys, "queue_id", "accepted_by", "moved_from")
        .agg(
            f.min(f.when(is_routed & ~f.col("is_event"), copy)).alias("routed"),
            f.min(f.when(is_routed & f.col("is_event"), copy)).alias("paged"),
            f.min(f.when(f.col("step") == "acknowledged", copy)).alias("acknowledged"),
            f.min(
                f.when(
                    f.col("step") == "accepted",
                    f.struct("compact_count", "counts", "own", "address"),
                )
            ).alias("accepted"),
            f.min(
                f.when(
                    f.col("step") == "sent",
                    f.struct(copy.alias("copy"), "is_readable", content.alias("content")),
                )
            ).alias("sent"),
            f.max(f.when(f.col("step") == "stored", content)).alias("stored"),
            f.max(f.col("step") == "deleted").alias("is_deleted"),
            f.max("state").alias("state"),
        )
        .join(
            f.broadcast(forwards.select("node", "queue_id", f.lit(True).alias("forwards"))),
            ["node", "queue_id"],
            "left",
        )
    )
    ways = f.when(f.col("routed").isNotNull(), 1).otherwise(0) + f.when(
        f.col("paged").isNotNull(), 1
    ).otherwise(0)
    is_forward = f.col("forwards").isNotNull()
    queue = f.struct(
        "queue_id",
        *(_place(name).alias(name) for name in ("routed", "paged", "acknowledged")),
        "state",
    )
    by_message = by_queue.groupBy(*keys).agg(
        f.min("sent").alias("sent"),
        f.max("stored").alias("stored"),
        f.max("is_deleted").alias("is_deleted"),
        f.collect_list("moved_from").alias("moved_from"),
        f.collect_list(
            f.when(
                f.col("accepted_by").isNotNull(),
                f.struct(
                    f.col("accepted_by").alias("by"),
                    f.col("accepted.address").alias("address"),
                    _place("accepted").alias("place"),
                ),
            )
        ).alias("accepted"),
        f.sum(f.when(is_forward, ways).otherwise(0)).alias("forward_count"),
        f.sum(f.when(is_forward, 0).otherwise(ways)).alias("kept_count"),
        f.collect_list(f.when(f.col("queue_id").isNotNull(), queue)).alias("queues"),
    )
    is_told = f.col("sent.is_readable")
    found = by_message.select(
        *keys,
        f.when(is_told, f.struct("sent.copy.counts", "sent.copy.own")).alias("place"),
        *(
            f.coalesce(
                *(
                    (f.col("stored.body_size"), f.when(is_told, f.col("sent.content.body_size")))
                    if name == "body_size"
                    else (f.when(is_told, f.col(f"sent.content.{name}")), f.col(f"stored.{name}"))
                )
            ).alias(name)
            for name in _CONTENT
        ),
        f.col("stored").isNotNull().alias("is_stored"),
        *("is_deleted", "moved_from", "accepted", "forward_count", "kept_count"),
        f.posexplode_outer("queues").alias("number", "queue"),
    )
    found = found.select(
        *(name for name in found.columns if name not in ("number", "queue")),
        f.coalesce("number", f.lit(0)).alias("number"),
        *(
            f.col(f"queue.{name}").alias(name)
            for name in ("queue_id", "routed", "paged", "acknowledged", "state")
        ),
    )
    return Traces(found, steps, counted.where(is_given).select("duplicate_id"))


def _place(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(f.col(name).isNotNull(), f.struct(f"{name}.counts", f"{name}.own"))


def _names(node_ids: Mapping[str, str]) -> dict[str, str]:
    """The nodes by their ids, as they stand in the ids of bridges.

    Raises:
        WrongUse: two have one.
    """
    found: dict[str, str] = {}
    for node, text in node_ids.items():
        one = text.replace("-", "").lower()
        if one in found:
            raise WrongUse(f"{found[one]} and {node} have one node id, {text}: give one of them")
        found[one] = node
    return found


def _of_nodes(counted: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """The steps, each at the message that it is of: what was accepted at the node it came from.

    A node of which only the id is known is called by it.
    """
    from pyspark.sql import functions as f

    source = f.col("source_id")
    if names:
        known = f.create_map(*(f.lit(text) for pair in names.items() for text in pair))
        source = f.coalesce(f.element_at(known, source), source)
    is_accepted = f.col("step") == "accepted"
    return counted.select(
        "message_id",
        f.when(is_accepted, source).otherwise(f.col("node")).alias("node"),
        *("queue_id", "moved_from", "step", "is_event", "is_readable"),
        *("compact_count", "counts", "own", *_CONTENT),
        f.when(is_accepted, f.col("node")).alias("accepted_by"),
        f.lit(None).cast("string").alias("state"),
    )


def _of_stored(stored: DataFrame) -> DataFrame:
    """What is stored now, as steps: of the message, and of each of its queues."""
    from pyspark.sql import functions as f

    known = [name for name in _CONTENT if name in stored.columns]
    both = stored.select(
        *("message_id", "node", *known),
        f.explode(
            f.concat(
                f.array(
                    f.struct(
                        f.lit(None).cast("bigint").alias("queue_id"),
                        f.lit(None).cast("string").alias("state"),
                    )
                ),
                f.transform(
                    "references",
                    lambda one: f.struct(
                        one["queue_id"].alias("queue_id"), one["state"].alias("state")
                    ),
                ),
            )
        ).alias("reference"),
    )
    empty = {
        **dict.fromkeys(("moved_from", "accepted_by", "group_id", "bridged_id"), "string"),
        **dict.fromkeys(("is_event", "is_readable", "is_scheduled", "is_moved"), "boolean"),
        **dict.fromkeys(("counts", "own"), "bigint"),
        "compact_count": "int",
    }
    return both.select(
        *("message_id", "node", "reference.queue_id", "reference.state", *known),
        f.when(f.col("reference.queue_id").isNull(), "stored").otherwise("waits").alias("step"),
        *(f.lit(None).cast(kind).alias(name) for name, kind in empty.items() if name not in known),
    )


# --- what counted ---------------------------------------------------------------------------------


def _counted(steps: DataFrame) -> DataFrame:
    """Steps that counted; of transactions whose end is in another file, it is looked for."""
    from pyspark.sql import functions as f

    facts = steps.agg(
        f.count_if(f.expr(f"tx_id IS NOT NULL AND step NOT IN {_ENDS}")),
        f.count_if(f.col("step") == "told"),
    ).collect()
    ((open_count, told_count),) = facts
    known = steps.where("counts IS NOT NULL AND step NOT IN ('told', 'damage')")
    undecided = []
    if told_count:
        # The event that tells it is another record, perhaps in another file.
        told = (
            steps.where("step = 'told'")
            .groupBy("node", "message_id")
            .agg(f.max("queue_id").alias("told_id"))
        )
        events = known.where("is_event").join(told, ["node", "message_id"], "left")
        undecided.append(
            events.where("told_id IS NOT NULL")
            .withColumn("tx_id", f.col("told_id"))
            .drop("told_id")
        )
        known = known.where("NOT is_event").unionByName(
            events.where("told_id IS NULL").drop("told_id")
        )
    if open_count:
        undecided.append(steps.where(f"tx_id IS NOT NULL AND step NOT IN {_ENDS}"))
    for rows in undecided:
        known = known.unionByName(_decided(rows, steps))
    return known


def _decided(undecided: DataFrame, steps: DataFrame) -> DataFrame:
    """Those of the steps that were committed."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    # The id of a transaction may be used again after a restart: the next end is its own.
    after = (
        Window.partitionBy("node", "tx_id").orderBy("own").rowsBetween(0, Window.unboundedFollowing)
    )
    is_end = f.expr(f"step IN {_ENDS}")
    ends = steps.where(is_end & f.col("tx_id").isNotNull())
    return (
        undecided.unionByName(ends)
        .withColumn("end", f.first(f.when(is_end, f.struct("step", "own")), True).over(after))
        .where(~is_end & f.expr("end.step = 'commit'"))
        .withColumn("counts", f.col("end.own"))
        .drop("end")
    )
