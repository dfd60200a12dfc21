"""What is not as it should be with the messages of any number of brokers: a row for each finding.

    expired              past its time, and a queue has it still (waits); or it was moved to the
                         expiry address (moved)
    stuck                in a queue, and will not leave it by itself, because: it was delivered
                         often enough (redelivery), a transaction is not decided (prepared), its
                         time is far off (scheduled), the queue is paused (paused), or nobody took
                         anything from the queue since (no consumer)
    never acknowledged   in a queue for too long, while later ones were acknowledged (passed over)
    lost, out of order   told by histories: pipeline.audit_history
    duplicated           another message to the same address, on any node, has the same duplicate
                         id, or the same user id
    unreferenced         no queue has it
    unknown queue        a reference to a queue that has no binding
    damaged              cannot be read

A reference has one finding of the first three at most, the first that fits. Without histories all
is of one moment: what was acknowledged and deleted before it is not known, so nothing is said of
order, or of loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.audit_history import Cluster, findings_of_history, with_forwarding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pipeline.history import History

__all__ = ["FINDINGS", "NEEDED", "Limits", "findings", "summary"]

FINDINGS: Final = (
    *("expired", "stuck", "never acknowledged", "lost", "duplicated", "out of order"),
    *("unreferenced", "unknown queue", "damaged"),
)
# What is asked of `messages`; findings() goes through them several times.
NEEDED: Final = (
    *("node", "message_id", "state", "address", "timestamp_ms", "expiration_ms", "user_id"),
    *("duplicate_id", "properties", "references", "file", "offset", "damage"),
)
_COLUMNS: Final = (
    *("finding", "reason", "node", "address", "queue", "message_id", "timestamp_ms", "detail"),
)
# Set by a broker that moves a message to the expiry address.
_EXPIRED: Final = "_AMQ_ACTUAL_EXPIRY"
_ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
# Of the message that one was moved from.
_ORIGINAL_ID: Final = "_AMQ_ORIG_MESSAGE_ID"


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
    told: History | None = None,
    cluster: Cluster | None = None,
) -> DataFrame:
    """A row for each finding, with the evidence.

    Columns: finding, reason, node, address, queue (its name, or the id where nobody knows it; null
    of a whole message), message_id, timestamp_ms, detail.

    Args:
        messages: of the source `messages`; the columns in NEEDED. Persisted, or they are read
            again for each kind of finding.
        bindings: of the source `bindings`, of the same nodes.
        limits: see there.
        told: of pipeline.history, of all of these nodes; None where no histories are kept.
        cluster: what the nodes are to one another.
    """
    from pyspark.sql import functions as f

    cluster = cluster or Cluster()
    queues = with_forwarding(_queues(bindings), _bridges(bindings), cluster)
    references = _references(messages, queues)
    acknowledged = references.where("reference.state = 'acknowledged'").select(
        "node", f.col("reference.queue_id").alias("queue_id"), "message_id"
    )
    if told is not None:
        acknowledged = acknowledged.unionByName(told.acknowledged.drop("place"))
    found = (
        _of_references(references, acknowledged, limits)
        .unionByName(_unknown_queues(references))
        .unionByName(_of_messages(messages))
    )
    if told is None:
        kept = _kept(messages, references)
        return (
            found.unionByName(_duplicated(kept, "duplicate_id", "duplicate id"))
            .unionByName(_duplicated(kept, "user_id", "user id"))
            .select(*_COLUMNS)
        )
    return (
        found.unionByName(findings_of_history(told, queues, cluster))
        .unionByName(_of_copies(told))
        .select(*_COLUMNS)
    )


def summary(found: DataFrame) -> DataFrame:
    """How many findings of a kind each queue of each node has.

    Args:
        found: of findings().
    """
    keys = ("finding", "reason", "node", "address", "queue")
    return found.groupBy(*keys).count().orderBy(*keys)


def _queues(bindings: DataFrame) -> DataFrame:
    """node, queue_id, queue, address, is_exclusive, is_paused, is_multicast."""
    from pyspark.sql import functions as f

    def paused(kind: str, key: str) -> DataFrame:
        """The ids that the newest record says are paused."""
        status = f.struct(f.col("record_id"), f.get_json_object("json", "$.status").alias("status"))
        return (
            bindings.where(f.col("record_type") == kind)
            .groupBy(
                "node", f.get_json_object("json", f"$.{key}").cast("bigint").alias("paused_id")
            )
            .agg(f.max(status).alias("newest"))
            .where("newest.status = 'PAUSED'")
            .select("node", "paused_id")
        )

    addresses = (
        bindings.where("record_type = 'ADDRESS_BINDING_RECORD'")
        .withColumn("paused_id", f.col("record_id"))
        .join(paused("ADDRESS_STATUS_RECORD", "addressId"), ["node", "paused_id"])
        .select("node", "address", f.lit(True).alias("by_address"))
    )
    by_queue = paused("QUEUE_STATUS_RECORD", "queueId").withColumn("by_queue", f.lit(True))
    return (
        bindings.where("record_type = 'QUEUE_BINDING_RECORD'")
        .withColumn("paused_id", f.col("record_id"))
        .join(by_queue, ["node", "paused_id"], "left")
        .join(addresses, ["node", "address"], "left")
        .select(
            *(
                "node",
                "address",
                f.col("record_id").alias("queue_id"),
                f.col("name").alias("queue"),
            ),
            (f.get_json_object("json", "$.exclusive") == "true").alias("is_exclusive"),
            f.coalesce("by_queue", "by_address", f.lit(False)).alias("is_paused"),
            f.array_contains("routing_types", "MULTICAST").alias("is_multicast"),
        )
    )


def _bridges(bindings: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return bindings.where("record_type = 'BRIDGE_RECORD'").select(
        "node", f.get_json_object("json", "$.queueName").alias("queue")
    )


def _references(messages: DataFrame, queues: DataFrame) -> DataFrame:
    """A row for each queue that a message is or was in, with the queue's name."""
    from pyspark.sql import functions as f

    named = queues.select(
        *("node", "queue_id", "is_paused", "is_multicast", "forwards"),
        f.col("queue").alias("queue_name"),
    )
    return (
        messages.where("damage IS NULL")
        .select(
            *("node", "address", "message_id", "timestamp_ms", "expiration_ms", "state"),
            f.element_at("properties", _EXPIRED).alias("expired"),
            f.element_at("properties", _ORIGINAL_QUEUE).alias("original_queue"),
            f.explode("references").alias("reference"),
        )
        .withColumn("queue_id", f.col("reference.queue_id"))
        .join(named, ["node", "queue_id"], "left")
        .withColumn("queue", f.coalesce("queue_name", f.col("queue_id").cast("string")))
    )


def _of_references(references: DataFrame, acknowledged: DataFrame, limits: Limits) -> DataFrame:
    from pyspark.sql import functions as f

    newest = acknowledged.groupBy("node", "queue_id").agg(
        f.max("message_id").alias("acknowledged_id")
    )
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
    none = f.lit(None).cast("string")
    finding, reason, detail = none, none, none
    for name, why, fits, text in reversed(rules):
        finding = f.when(fits, name).otherwise(finding)
        reason = f.when(fits, why).otherwise(reason)
        detail = f.when(fits, text).otherwise(detail)
    return (
        references.join(newest, ["node", "queue_id"], "left")
        .withColumn("finding", finding)
        .withColumn("reason", reason)
        .withColumn("detail", detail)
        .where("finding IS NOT NULL")
        .select(*_COLUMNS)
    )


def _unknown_queues(references: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        references.where("queue_name IS NULL AND reference.state <> 'acknowledged'")
        .withColumn("finding", f.lit("unknown queue"))
        .withColumn("reason", f.lit("no binding"))
        .withColumn("detail", f.format_string("no queue has the id %s", "queue"))
        .select(*_COLUMNS)
    )


def _kept(messages: DataFrame, references: DataFrame) -> DataFrame:
    """Messages that queues have, with `among`: the node whose others alone may be duplicates.

    Null is any node. A message to multicast queues each node has that has a subscriber: which of
    them a bridge brought, only a history tells. What waits in a forwarding queue alone may have
    arrived already, and counts there; what was moved, or has died or expired, is another message
    with the same id, of each queue that it was in.
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
        messages.where(f.col("state").isin("live", "scheduled"))
        .where(f.element_at("properties", _ORIGINAL_ID).isNull())
        .join(queues, ["node", "message_id"])
        .where("NOT forwards")
        .withColumn("among", f.when(f.col("is_multicast"), f.col("node")))
    )


def _duplicated(kept: DataFrame, column: str, name: str) -> DataFrame:
    """Messages that share an id with another one to the same address, while queues have both."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    same = Window.partitionBy("address", column, "among")
    place = f.format_string("%s:%d", f.col("node"), f.col("message_id"))
    return (
        kept.where(f.col(column).isNotNull())
        .withColumn("others", f.sort_array(f.collect_list(place).over(same)))
        .where(f.size("others") > 1)
        .withColumn("finding", f.lit("duplicated"))
        .withColumn("reason", f.lit(name))
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn(
            "detail",
            f.format_string(f"{name} %s: %s", f.col(column), f.concat_ws(", ", "others")),
        )
        .select(*_COLUMNS)
    )


def _of_messages(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    is_damaged = f.col("damage").isNotNull()
    where = f.format_string("%s:%d: %s", f.col("file"), f.col("offset"), f.col("damage"))
    return (
        messages.where(is_damaged | (f.col("state") == "unreferenced"))
        .withColumn("finding", f.when(is_damaged, "damaged").otherwise("unreferenced"))
        .withColumn("reason", f.when(is_damaged, "unreadable").otherwise("no queue"))
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn("detail", f.when(is_damaged, where).otherwise("the next start removes it"))
        .select(*_COLUMNS)
    )


def _of_copies(told: History) -> DataFrame:
    """Damage in histories; that of journals is found with their messages."""
    from pyspark.sql import functions as f

    return (
        told.damages.where(f.col("file").rlike(r"-[0-9]{14}-[0-9]+\.[^.]+$"))
        .withColumn("finding", f.lit("damaged"))
        .withColumn("reason", f.lit("unreadable"))
        .withColumn("detail", f.format_string("%s:%d: %s", "file", "offset", "damage"))
        .withColumn("address", f.lit(None).cast("string"))
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn("message_id", f.lit(None).cast("bigint"))
        .withColumn("timestamp_ms", f.lit(None).cast("bigint"))
        .select(*_COLUMNS)
    )
