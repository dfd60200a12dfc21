"""What is not as it should be with the messages of any number of brokers: a row for each finding.

    expired              past its time, and a queue has it still
    stuck                delivered often enough, and not acknowledged
    never acknowledged   in a queue for too long, not delivered as far as was stored
    undecided            waits for the decision about a prepared transaction
    duplicated           another message to the same address, on any node, has the same duplicate
                         id, or the same user id
    unreferenced         no queue has it
    unknown queue        a reference to a queue that has no binding
    damaged              cannot be read

A reference has one finding of the first four at most, the first that fits. All is of one moment:
what was acknowledged and deleted before it is not known, so nothing is said of order, or of loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FINDINGS", "NEEDED", "Limits", "findings", "summary"]

FINDINGS: Final = (
    *("expired", "stuck", "never acknowledged", "undecided", "duplicated", "unreferenced"),
    *("unknown queue", "damaged"),
)
# What is asked of `messages`; findings() goes through them several times.
NEEDED: Final = (
    *("node", "message_id", "state", "address", "timestamp_ms", "expiration_ms", "user_id"),
    *("duplicate_id", "references", "file", "offset", "damage"),
)
_COLUMNS: Final = ("finding", "node", "address", "queue", "message_id", "timestamp_ms", "detail")


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


def findings(messages: DataFrame, bindings: DataFrame, limits: Limits) -> DataFrame:
    """A row for each finding, with the evidence.

    Columns: finding, node, address, queue (its name, or the id where nobody knows it; null of a
    whole message), message_id, timestamp_ms, detail.

    Args:
        messages: of the source `messages`; the columns in NEEDED. Persisted, or they are read
            again for each kind of finding.
        bindings: of the source `bindings`, of the same nodes.
        limits: see there.
    """
    references = _references(messages, bindings)
    found = (
        _of_references(references, limits)
        .unionByName(_unknown_queues(references))
        .unionByName(_duplicated(messages, "duplicate_id", "duplicate id"))
        .unionByName(_duplicated(messages, "user_id", "user id"))
        .unionByName(_of_messages(messages))
    )
    return found.select(*_COLUMNS)


def summary(found: DataFrame) -> DataFrame:
    """How many findings of a kind each queue of each node has.

    Args:
        found: of findings().
    """
    return (
        found.groupBy("finding", "node", "address", "queue")
        .count()
        .orderBy("finding", "node", "address", "queue")
    )


def _references(messages: DataFrame, bindings: DataFrame) -> DataFrame:
    """A row for each queue that a message is or was in, with the queue's name."""
    from pyspark.sql import functions as f

    queues = bindings.where("record_type = 'QUEUE_BINDING_RECORD'").select(
        f.col("node").alias("queue_node"),
        f.col("record_id").alias("bound_id"),
        f.col("name").alias("queue_name"),
    )
    exploded = messages.where("damage IS NULL").select(
        *("node", "address", "message_id", "timestamp_ms", "expiration_ms", "state"),
        f.explode("references").alias("reference"),
    )
    is_of_queue = (f.col("node") == f.col("queue_node")) & (
        f.col("reference.queue_id") == f.col("bound_id")
    )
    return exploded.join(queues, is_of_queue, "left").withColumn(
        "queue", f.coalesce("queue_name", f.col("reference.queue_id").cast("string"))
    )


def _of_references(references: DataFrame, limits: Limits) -> DataFrame:
    from pyspark.sql import functions as f

    state = f.col("reference.state")
    deliveries = f.col("reference.delivery_count")
    is_waiting = state == "live"
    is_old = f.col("timestamp_ms").between(1, limits.as_of_ms - limits.age_ms)
    # First that fits; what fits none is as it should be.
    rules: tuple[tuple[str, Column, Column], ...] = (
        (
            "undecided",
            state.isin("prepared", "acknowledging"),
            f.when(state == "prepared", "waits for the commit of its send").otherwise(
                "waits for the commit of its acknowledgement"
            ),
        ),
        (
            "expired",
            state.isin("live", "scheduled") & f.col("expiration_ms").between(1, limits.as_of_ms),
            f.format_string(
                "expired %d ms before", f.lit(limits.as_of_ms) - f.col("expiration_ms")
            ),
        ),
        (
            "stuck",
            is_waiting & (deliveries >= limits.deliveries),
            f.format_string("delivered %d times", deliveries),
        ),
        (
            "never acknowledged",
            is_waiting & is_old,
            f.format_string(
                "sent %d ms before, delivered %d times",
                f.lit(limits.as_of_ms) - f.col("timestamp_ms"),
                deliveries,
            ),
        ),
    )
    finding, detail = f.lit(None).cast("string"), f.lit(None).cast("string")
    for name, fits, text in reversed(rules):
        finding = f.when(fits, name).otherwise(finding)
        detail = f.when(fits, text).otherwise(detail)
    return (
        references.withColumn("finding", finding)
        .withColumn("detail", detail)
        .where("finding IS NOT NULL")
        .select(*_COLUMNS)
    )


def _unknown_queues(references: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        references.where("queue_name IS NULL AND reference.state <> 'acknowledged'")
        .withColumn("finding", f.lit("unknown queue"))
        .withColumn("detail", f.format_string("no queue has the id %s", "queue"))
        .select(*_COLUMNS)
    )


def _duplicated(messages: DataFrame, column: str, name: str) -> DataFrame:
    """Messages that share an id with another one to the same address, while queues have both."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    same = Window.partitionBy("address", column)
    place = f.format_string("%s:%d", f.col("node"), f.col("message_id"))
    return (
        messages.where(f.col(column).isNotNull() & f.col("state").isin("live", "scheduled"))
        .withColumn("others", f.sort_array(f.collect_list(place).over(same)))
        .where(f.size("others") > 1)
        .withColumn("finding", f.lit("duplicated"))
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
        .withColumn("queue", f.lit(None).cast("string"))
        .withColumn("detail", f.when(is_damaged, where).otherwise("the next start removes it"))
        .select(*_COLUMNS)
    )
