"""What the records of journals, and of their histories, tell of messages over time.

    records ─▶ each once, with what became of its transaction ─▶ sent, routed, acknowledged,
                                                                  deleted, accepted from bridges

A place in time is what Spark compares as (where it began to count, where it stands), each a file's
id above an offset. Of a record that compactions moved, the place counts where it was first written.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from broker.storage.encoding import RecordFormatError
from broker.storage.wire import RecordType
from pipeline.message_content import message_content

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["BODY_PART", "MESSAGES", "NEEDED", "SENT_KINDS", "History", "counted", "history", "once"]

# What is asked of `journal` and `retention`.
NEEDED: Final = (
    *("node", "file", "file_id", "offset", "kind", "record_id", "tx_id", "user_type"),
    *("compact_count", "body", "damage"),
)
# User types of messages.
MESSAGES: Final = tuple(
    map(
        int,
        (
            RecordType.ADD_LARGE_MESSAGE,
            RecordType.ADD_MESSAGE,
            RecordType.ADD_MESSAGE_PROTOCOL,
        ),
    )
)
# Of events with a part of a large message's body.
BODY_PART: Final = int(RecordType.ADD_MESSAGE_BODY)
# Of events that tell which transaction the other events of their message are of.
TRANSACTION: Final = int(RecordType.PAGE_TRANSACTION)
# Of messages that are no updates; what went into a page is an event, with an event a queue.
SENT_KINDS: Final = ("add", "add_tx", "event")
_REFERENCE: Final = int(RecordType.ADD_REF)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_REF)
_DUPLICATE_ID: Final = int(RecordType.DUPLICATE_ID)
_WANTED: Final = (*MESSAGES, _REFERENCE, _ACKNOWLEDGE, _DUPLICATE_ID)
_ENDS: Final = ("commit", "rollback")
# Before the address, in records of what bridges brought (PostOfficeImpl.BRIDGE_CACHE_STR).
BRIDGE_PREFIX: Final = "BRIDGE."
# A file's id above an offset in it, which has 31 bits.
_OFFSET_BITS: Final = 32
# Of a node, and of its message: what a bridge makes a duplicate id of.
_BRIDGE_ID_SIZE: Final = 24
_NODE_DIGITS: Final = 32
_FOUND: Final = (*("address", "priority", "timestamp_ms", "user_id", "duplicate_id", "body_size"),)
_PROPERTIES: Final = (
    *("_AMQ_GROUP_ID", "_AMQ_SCHED_DELIVERY", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ORIG_QUEUE"),
)
_CONTENT: Final = (
    "address string, priority int, timestamp_ms bigint, user_id string, duplicate_id string,"
    " body_size bigint, group_id string, scheduled_ms string, original_id string,"
    " original_queue string"
)


@dataclass(frozen=True, slots=True)
class History:
    """What counted, over time; what was rolled back, or never decided, is not there.

    Attributes:
        sent: a row a message: node, message_id, place, address, priority, timestamp_ms, user_id,
            duplicate_id, body_size, group_id, scheduled_ms, original_id and original_queue (of the
            one that it was moved from).
        routed: a row a message and queue that got it: node, message_id, queue_id, place; is_paged:
            it went into a page, and when it left the queue is told by its place there alone.
        acknowledged: the same, but is_paged, of queues that are done with it.
        deleted: a row a message whose record was deleted: node, message_id, place.
        accepted: what bridges brought: node, source_id (of the node that it came from, 32 hex
            digits), message_id (there), place.
        damages: rows of records that cannot be read.
    """

    sent: DataFrame
    routed: DataFrame
    acknowledged: DataFrame
    deleted: DataFrame
    accepted: DataFrame
    damages: DataFrame

    def persist(self) -> History:
        """The same, worked out once."""
        return History(**{one.name: getattr(self, one.name).persist() for one in fields(self)})


def history(*records: DataFrame) -> History:
    """Tell the story.

    Args:
        records: of the sources `journal` (raw) and `retention`, of the same nodes; the columns in
            NEEDED, persisted: they are gone through many times. A file may be in both.
    """
    from pyspark.sql import functions as f

    every = records[0].select(*NEEDED)
    for frame in records[1:]:
        every = every.unionByName(frame.select(*NEEDED))
    told = counted(once(every.where("kind <> 'damage'")))
    updates = told.where(f.col("user_type").isin(_REFERENCE, _ACKNOWLEDGE)).withColumn(
        "queue_id", _long(f.col("body"), 0)
    )
    return History(
        sent=_sent(told),
        routed=_first(
            updates.where(f.col("user_type") == _REFERENCE).withColumn(
                "is_paged", f.col("kind") == "event"
            ),
            "queue_id",
            "is_paged",
        ),
        acknowledged=_first(updates.where(f.col("user_type") == _ACKNOWLEDGE), "queue_id"),
        deleted=_first(told.where("kind IN ('delete', 'delete_tx')")),
        accepted=_accepted(told),
        damages=every.where("kind = 'damage'"),
    )


def once(records: DataFrame) -> DataFrame:
    """Each record once, with `own`, the place where it stands: a file may have been read twice."""
    from pyspark.sql import functions as f

    # A table is one file without an id.
    own = f.shiftleft(f.coalesce("file_id", f.lit(0)), _OFFSET_BITS) + f.col("offset")
    # What a compaction wrote has the id of a file that it read: the place alone does not do.
    same = ["node", "file_id", "offset", "kind", "record_id", "tx_id", "compact_count"]
    return records.dropDuplicates(same).withColumn("own", own)


def counted(records: DataFrame) -> DataFrame:
    """Records that counted, with `counts`, where they began to: in transaction, at its commit.

    Args:
        records: of once(); the ends of transactions among them, and what tells of which transaction
            events are (broker.storage.history).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    is_wanted = (
        f.col("user_type").isin(*_WANTED)
        | f.col("kind").isin("delete", "delete_tx")
        | f.col("kind").isin(*_ENDS)
    )
    wanted = records.where(is_wanted & (f.col("kind") != "event")).unionByName(
        _with_transaction(records).where(is_wanted)
    )
    # The id of a transaction may be used again after a restart: the next end is its own.
    after = (
        Window.partitionBy("node", "tx_id").orderBy("own").rowsBetween(0, Window.unboundedFollowing)
    )
    end = f.struct("kind", "own")
    in_transaction = (
        wanted.where(f.col("tx_id").isNotNull())
        .withColumn("end", f.first(f.when(f.col("kind").isin(*_ENDS), end), True).over(after))
        .where("kind NOT IN ('commit', 'rollback') AND end.kind = 'commit'")
        .withColumn("counts", f.col("end.own"))
        .drop("end")
    )
    alone = wanted.where(f.col("tx_id").isNull()).withColumn("counts", f.col("own"))
    return alone.unionByName(in_transaction)


def _with_transaction(records: DataFrame) -> DataFrame:
    """The events, with the transaction that they are of."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    of_message = Window.partitionBy("node", "record_id")
    told = f.when(f.col("user_type") == TRANSACTION, _long(f.col("body"), 0))
    return records.where(
        (f.col("kind") == "event") & f.col("user_type").isin(*_WANTED, TRANSACTION)
    ).withColumn("tx_id", f.max(told).over(of_message))


def _first(records: DataFrame, *keys: str) -> DataFrame:
    """A row for each record id and keys, with the place where it was first written."""
    from pyspark.sql import functions as f

    copy = f.struct("compact_count", "counts", f.col("own").alias("stands"))
    named = records.withColumn("message_id", f.col("record_id"))
    return (
        named.groupBy("node", "message_id", *keys)
        .agg(f.min(copy).alias("copy"))
        .select("node", "message_id", *keys, f.struct("copy.counts", "copy.stands").alias("place"))
    )


def _sent(told: DataFrame) -> DataFrame:
    """Every message, decoded once; what cannot be decoded is told of by the source `messages`."""
    from pyspark.sql import functions as f

    is_message = f.col("user_type").isin(*MESSAGES)
    copy = f.struct("compact_count", "counts", f.col("own").alias("stands"), "user_type", "body")
    bodies = (
        told.where(is_message & f.col("kind").isin(*SENT_KINDS))
        .groupBy("node", f.col("record_id").alias("message_id"))
        .agg(f.min(copy).alias("copy"))
        .select("node", "message_id", "copy.*")
    )
    # Not by batches of Arrow: that would need pandas.
    decoded = f.udf(_decoded, _CONTENT, useArrow=False)
    return (
        bodies.withColumn("content", decoded("user_type", "body"))
        .where("content IS NOT NULL")
        .select("node", "message_id", f.struct("counts", "stands").alias("place"), "content.*")
    )


def _decoded(user_type: int, body: bytes) -> tuple[object, ...] | None:
    """What of a message is told; None where it cannot be read."""
    try:
        found = message_content(user_type, bytes(body))
    except RecordFormatError:
        return None
    properties = dict(found.get("properties") or ())
    return (
        *(found.get(name) for name in _FOUND),
        *(properties.get(name) for name in _PROPERTIES),
    )


def _accepted(told: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    body = f.col("body")
    address_size = _int(body, 0)
    address = f.decode(_slice(body, f.lit(4), address_size), "UTF-16LE")
    id_at = address_size + 4
    given = f.hex(_slice(body, id_at + 4, _int(body, id_at)))
    rows = (
        told.where((f.col("user_type") == _DUPLICATE_ID) & f.col("kind").isin("add", "add_tx"))
        .withColumn("given", given)
        .where(
            address.startswith(BRIDGE_PREFIX) & (f.length("given") == f.lit(2 * _BRIDGE_ID_SIZE))
        )
        .withColumn("source_id", f.lower(f.substring("given", 1, _NODE_DIGITS)))
        .withColumn("source_message_id", _number(f.substring("given", _NODE_DIGITS + 1, 16)))
    )
    # By what was brought, not by the record's id: the same may have been recorded again.
    return _first(
        rows.withColumn("record_id", f.col("source_message_id")),
        "source_id",
    )


# --- bytes as columns: big-endian ---------------------------------------------------------------


def _slice(body: Column, at: Column, size: Column) -> Column:
    return body.substr(at + 1, size)


def _number(digits: Column) -> Column:
    from pyspark.sql import functions as f

    return f.conv(digits, 16, 10).cast("bigint")


def _long(body: Column, at: int) -> Column:
    from pyspark.sql import functions as f

    return _number(f.hex(_slice(body, f.lit(at), f.lit(8))))


def _int(body: Column, at: Column | int) -> Column:
    from pyspark.sql import functions as f

    place = f.lit(at) if isinstance(at, int) else at
    return _number(f.hex(_slice(body, place, f.lit(4)))).cast("int")
