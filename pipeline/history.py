"""Records of journals and their histories, each once, with the outcome of its transaction.

A place in time is a file's id above an offset. What jobs ask of messages over time is told by
pipeline.message_traces; this is for those that want the records themselves, with their bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.wire import RecordType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["BODY_PART", "MESSAGES", "NEEDED", "SENT_KINDS", "TRANSACTION", "counted", "once"]

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
# Of sent messages, not updates. A paged message is an event, with one more event for each queue.
SENT_KINDS: Final = ("add", "add_tx", "event")
_REFERENCE: Final = int(RecordType.ADD_REF)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_REF)
_DUPLICATE_ID: Final = int(RecordType.DUPLICATE_ID)
_WANTED: Final = (*MESSAGES, _REFERENCE, _ACKNOWLEDGE, _DUPLICATE_ID)
_ENDS: Final = ("commit", "rollback")
# A file's id above an offset in it, which has 31 bits.
_OFFSET_BITS: Final = 32


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


# --- bytes as columns: big-endian ---------------------------------------------------------------


def _slice(body: Column, at: Column, size: Column) -> Column:
    return body.substr(at + 1, size)


def _number(digits: Column) -> Column:
    from pyspark.sql import functions as f

    return f.conv(digits, 16, 10).cast("bigint")


def _long(body: Column, at: int) -> Column:
    from pyspark.sql import functions as f

    return _number(f.hex(_slice(body, f.lit(at), f.lit(8))))
