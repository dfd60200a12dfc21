"""Audits the messages of any number of brokers: one row for each finding.

    expired              past its time, and a queue has it still (waits); or it was moved to the
                         expiry address (moved)
    stuck                in a queue that it will not leave by itself. It was delivered as often as
                         the limit says (redelivery). Its transaction is not decided (prepared).
                         Its delivery time is far off (scheduled). The queue is paused (paused).
                         No consumer took a message from the queue since (no consumer).
    never acknowledged   in a queue for too long, while later ones were acknowledged (passed over)
    lost, out of order   told by histories: pipeline.audit_history
    duplicated           another message to the same address, on any node, has the same duplicate
                         id, or the same user id, or is a JMS bridge's of the same message
    unreferenced         no queue has it
    unknown queue        a reference to a queue that has no binding
    damaged              cannot be read (unreadable), or is a large message whose body is not there
                         (no body)

A reference has one finding of the first three at most, the first that fits. Without histories all
is of one moment: what was acknowledged and deleted before it is not known, so nothing is said of
order, or of loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.audit_history import findings_of_history
from pipeline.audit_queues import Cluster, Queue, frame_of, queues_of
from pipeline.finding_rules import DUPLICATED, IDS, LOST, OUT_OF_ORDER
from pipeline.message_traces import trace_messages
from pipeline.side_by_side import side_by_side

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import Column, DataFrame

    from pipeline.message_traces import Traces

__all__ = ["FINDINGS", "NEEDED", "Limits", "findings", "summary"]

FINDINGS: Final = (
    *("expired", "stuck", "never acknowledged", LOST, DUPLICATED, OUT_OF_ORDER),
    *("unreferenced", "unknown queue", "damaged"),
)
# What is asked of `messages`.
NEEDED: Final = (
    *("node", "message_id", "state", "address", "is_large", "timestamp_ms", "expiration_ms"),
    *("user_id", "duplicate_id", "properties", "body_size", "references", "file", "offset"),
    "damage",
)
_COLUMNS: Final = (
    *("finding", "reason", "node", "address", "queue", "message_id", "timestamp_ms", "detail"),
)
# Set by a broker that moves a message to the expiry address.
_EXPIRED: Final = "_AMQ_ACTUAL_EXPIRY"
_ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
# Of the message that one was moved from.
_ORIGINAL_ID: Final = "_AMQ_ORIG_MESSAGE_ID"
# JMSMessageIDs, of which a JMS bridge appends one.
_BRIDGED: Final = "AMQ_BRIDGE_MSG_ID_LIST"
# Of messages that need their body.
_NEED_BODY: Final = "state IN ('live', 'scheduled', 'expired', 'prepared')"


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something is worth telling.

    Attributes:
        as_of_ms: the moment that is meant, ms since 1970; the one that `messages` was read with.
        age_ms: a message older than that should have been acknowledged.
        deliveries: so many deliveries without an acknowledgement are too many.
    """

    as_of_ms: int
    age_ms: int = 3_600_000
    deliveries: int = 3


def findings(
    messages: DataFrame,
    bindings: DataFrame,
    limits: Limits,
    steps: DataFrame | None = None,
    cluster: Cluster | None = None,
    has_bodies: Collection[str] = (),
) -> DataFrame:
    """A row for each finding, with the evidence.

    Columns: finding, reason, node, address, queue, message_id, timestamp_ms, detail. `queue` is the
    queue's name, or its id if the name is unknown; null if the finding is of a whole message.

    What is read is read once, by jobs that run here, two side by side, and stays in Spark's cache,
    disk included, until the session ends (or spark.catalog.clearCache()).

    Args:
        messages: of the source `messages`; the columns in NEEDED.
        bindings: of the source `bindings`, of the same nodes.
        limits: see there.
        steps: of pipeline.message_traces, of all of these nodes; None where no histories are kept.
        cluster: what the nodes are to one another.
        has_bodies: nodes whose rows in `messages` have the size of a large message's body; null
            means that the body is missing. These are nodes whose folder of large messages is
            known. With the option maxLargeBodyBytes databases are among them.
    """
    cluster = cluster or Cluster()
    spark = messages.sparkSession
    stored = _narrow(messages, has_bodies).persist()

    def trace() -> tuple[list[Queue], Traces | None]:
        queues = queues_of(bindings, cluster)
        if steps is None:
            return queues, None
        forwards = frame_of(spark, [queue for queue in queues if queue.forwards])
        return queues, trace_messages(steps, forwards, cluster.node_ids).persist()

    (queues, told), _ = side_by_side(spark, trace, stored.count)
    known = frame_of(spark, _with_newest(queues, stored, told))
    references = _references(stored, known)
    found = _of_references(references, limits).unionByName(_of_messages(stored))
    if told is None:
        return found.unionByName(_duplicated(stored, references)).select(*_COLUMNS)
    return (
        found.unionByName(
            findings_of_history(told, known.where("queue IS NOT NULL"), queues, cluster)
        )
        .unionByName(_of_copies(told))
        .select(*_COLUMNS)
    )


def summary(found: DataFrame) -> DataFrame:
    """How many findings of a kind each queue of each node has.

    Args:
        found: of findings().
    """
    keys = ("finding", "reason", "node", "address", "queue")
    # A few rows: to sort them among partitions would read all of it once more.
    return found.groupBy(*keys).count().coalesce(1).sortWithinPartitions(*keys)


def _narrow(messages: DataFrame, has_bodies: Collection[str]) -> DataFrame:
    """What is asked of messages, and no more; with `has_no_body`."""
    from pyspark.sql import functions as f

    return messages.select(
        *("node", "message_id", "state", "address", "timestamp_ms", "expiration_ms"),
        *("user_id", "duplicate_id", "references", "file", "offset", "damage"),
        f.element_at("properties", _EXPIRED).alias("expired"),
        f.element_at("properties", _ORIGINAL_QUEUE).alias("original_queue"),
        f.element_at("properties", _ORIGINAL_ID).alias("original_id"),
        f.substring_index(f.element_at("properties", _BRIDGED), ",", -1).alias("bridged_id"),
        f.coalesce(
            f.col("is_large")
            & f.col("body_size").isNull()
            & f.col("node").isin(*has_bodies)
            & f.expr(_NEED_BODY),
            f.lit(False),
        ).alias("has_no_body"),
    )


def _with_newest(queues: Sequence[Queue], stored: DataFrame, told: Traces | None) -> list[Queue]:
    """The queues, those that have no binding too, with the newest that each acknowledged."""
    from pyspark.sql import functions as f

    acknowledged = (
        stored.where("damage IS NULL")
        .select("node", "message_id", f.inline("references"))
        .withColumnsRenamed({"state": "reference_state"})
        .where("reference_state = 'acknowledged'")
        .select("node", "queue_id", "message_id")
    )
    if told is not None:
        acknowledged = acknowledged.unionByName(
            told.rows.where("acknowledged IS NOT NULL").select("node", "queue_id", "message_id")
        )
    newest = {
        (row.node, row.queue_id): row.newest
        for row in acknowledged.groupBy("node", "queue_id")
        .agg(f.max("message_id").alias("newest"))
        .collect()
    }
    found = [
        replace(one, acknowledged_id=newest.pop((one.node, one.queue_id), None)) for one in queues
    ]
    unknown = [
        Queue(node, queue_id, acknowledged_id=one) for (node, queue_id), one in newest.items()
    ]
    return found + unknown


def _references(stored: DataFrame, known: DataFrame) -> DataFrame:
    """A row for each queue that a message is or was in, with what is known of the queue."""
    from pyspark.sql import functions as f

    named = known.select(
        *("node", "queue_id", "is_paused", "is_multicast", "forwards", "acknowledged_id"),
        f.col("queue").alias("queue_name"),
    )
    return (
        stored.where("damage IS NULL")
        .select(
            *("node", "address", "message_id", "timestamp_ms", "expiration_ms"),
            *("expired", "original_queue"),
            f.explode("references").alias("reference"),
        )
        .withColumn("queue_id", f.col("reference.queue_id"))
        .join(named, ["node", "queue_id"], "left")
        .withColumn("queue", f.coalesce("queue_name", f.col("queue_id").cast("string")))
    )


def _of_references(references: DataFrame, limits: Limits) -> DataFrame:
    from pyspark.sql import functions as f

    state = f.col("reference.state")
    deliveries = f.col("reference.delivery_count")
    due_ms = f.col("reference.scheduled_ms")
    now_ms = f.lit(limits.as_of_ms)
    waits = state.isin("live", "scheduled")
    is_old = f.col("timestamp_ms").between(1, limits.as_of_ms - limits.age_ms)
    age = f.format_string(
        "sent %d ms before, delivered %d times", now_ms - f.col("timestamp_ms"), deliveries
    )
    # First that fits; what fits none is as it should be.
    rules: tuple[tuple[str, str, Column, Column], ...] = (
        (
            *("stuck", "prepared"),
            state.isin("prepared", "acknowledging"),
            f.when(state == "prepared", "waits for the commit of its send").otherwise(
                "waits for the commit of its acknowledgement"
            ),
        ),
        (
            *("expired", "moved"),
            waits & f.col("expired").isNotNull(),
            f.format_string(
                "expired in %s at %s ms", f.coalesce("original_queue", f.lit("a queue")), "expired"
            ),
        ),
        (
            *("expired", "waits"),
            waits & f.col("expiration_ms").between(1, limits.as_of_ms),
            f.format_string("expired %d ms before", now_ms - f.col("expiration_ms")),
        ),
        (
            *("stuck", "redelivery"),
            waits & (deliveries >= limits.deliveries),
            f.format_string("delivered %d times", deliveries),
        ),
        (
            *("stuck", "scheduled"),
            (state == "scheduled") & is_old & (due_ms > limits.as_of_ms + limits.age_ms),
            f.format_string("due in %d ms", due_ms - now_ms),
        ),
        ("stuck", "paused", (state == "live") & is_old & f.col("is_paused"), age),
        (
            *("never acknowledged", "passed over"),
            (state == "live") & is_old & (f.col("acknowledged_id") > f.col("message_id")),
            f.concat(age, f.format_string("; message %d was acknowledged", "acknowledged_id")),
        ),
        ("stuck", "no consumer", (state == "live") & is_old, age),
    )
    first = f.lit(None)
    for name, why, fits, text in reversed(rules):
        first = f.when(fits, _found(name, why, text)).otherwise(first)
    unknown = f.when(
        f.col("queue_name").isNull() & (state != "acknowledged"),
        _found("unknown queue", "no binding", f.format_string("no queue has the id %s", "queue")),
    )
    return _each(references, first, unknown)


def _found(name: str, reason: str, detail: Column) -> Column:
    from pyspark.sql import functions as f

    return f.struct(
        f.lit(name).alias("finding"), f.lit(reason).alias("reason"), detail.alias("detail")
    )


def _each(rows: DataFrame, *found: Column) -> DataFrame:
    """A row for each of the findings of a row that are not null."""
    from pyspark.sql import functions as f

    kept = [name for name in _COLUMNS if name not in ("finding", "reason", "detail")]
    return rows.select(*kept, f.inline(f.array_compact(f.array(*found)))).select(*_COLUMNS)


def _kept(stored: DataFrame, references: DataFrame) -> DataFrame:
    """Messages that queues have, with `among`: the node whose others alone may be duplicates.

    Null is any node. Each node with a subscriber has a message to multicast queues: only a history
    tells which of them a bridge brought. A message that waits only in a forwarding queue may have
    arrived already, and counts where it arrived. A moved, dead or expired message is another
    message with the same id, one for each queue that it was in.
    """
    from pyspark.sql import functions as f

    queues = (
        references.where("reference.state <> 'acknowledged'")
        .groupBy("node", "message_id")
        .agg(
            f.max(f.coalesce("is_multicast", f.lit(False))).alias("is_multicast"),
            f.min(f.coalesce("forwards", f.lit(False))).alias("forwards"),
        )
    )
    return (
        stored.where("state IN ('live', 'scheduled') AND original_id IS NULL")
        .where(f"coalesce({', '.join(IDS)}) IS NOT NULL")
        .join(queues, ["node", "message_id"])
        .where("NOT forwards")
        .withColumn("among", f.when(f.col("is_multicast"), f.col("node")))
    )


def _duplicated(stored: DataFrame, references: DataFrame) -> DataFrame:
    """Messages that share an id with another one to the same address, while queues have both."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    def of(column: str, name: str) -> Column:
        return f.when(
            f.col(column).isNotNull(),
            f.struct(f.lit(name).alias("reason"), f.col(column).alias("id")),
        )

    same = Window.partitionBy("address", "reason", "id", "among")
    place = f.format_string("%s:%d", f.col("node"), f.col("message_id"))
    return (
        _kept(stored, references)
        .select(
            *("node", "address", "message_id", "timestamp_ms", "among"),
            f.inline(f.array_compact(f.array(*(of(column, name) for column, name in IDS.items())))),
        )
        .withColumn("others", f.collect_list(place).over(same))
        .where(f.size("others") > 1)
        .withColumn("finding", f.lit(DUPLICATED))
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn(
            "detail",
            f.format_string("%s %s: %s", "reason", "id", f.concat_ws(", ", f.sort_array("others"))),
        )
        .select(*_COLUMNS)
    )


def _of_messages(stored: DataFrame) -> DataFrame:
    """Findings about a message that do not depend on its queue."""
    from pyspark.sql import functions as f

    def at(text: Column) -> Column:
        return f.format_string("%s:%d: %s", f.col("file"), f.col("offset"), text)

    no_body = f.format_string("the body of large message %d is not there", f.col("message_id"))
    return _each(
        stored.withColumn("queue", f.lit(None).cast("string")),
        f.when(
            f.col("damage").isNotNull(), _found("damaged", "unreadable", at(f.col("damage")))
        ).otherwise(
            f.when(
                f.col("state") == "unreferenced",
                _found("unreferenced", "no queue", f.lit("the next start removes it")),
            )
        ),
        f.when(f.col("has_no_body"), _found("damaged", "no body", at(no_body))),
    )


def _of_copies(told: Traces) -> DataFrame:
    """Damage in histories; that of journals is found with their messages."""
    from pyspark.sql import functions as f

    return (
        told.damages()
        .where(f.col("file").rlike(r"-[0-9]{14}-[0-9]+\.[^.]+$"))
        .withColumn("finding", f.lit("damaged"))
        .withColumn("reason", f.lit("unreadable"))
        .withColumn("detail", f.format_string("%s:%d: %s", "file", "offset", "damage"))
        .withColumn("address", f.lit(None).cast("string"))
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn("message_id", f.lit(None).cast("bigint"))
        .withColumn("timestamp_ms", f.lit(None).cast("bigint"))
        .select(*_COLUMNS)
    )
