"""Follow a journal and its history into Parquet until killed: a program of test_stream_restarts.

python -m tests.pipeline.followed ROOT forever | available-now
"""

import sys
from pathlib import Path

from tests.pipeline.small_spark import small_spark

# By how: a few records each, so that a kill falls between any two steps of a batch; at the end,
# when all is read that was written while Spark started again and again, more.
ROWS_MAX = {"forever": 1000, "available-now": 50_000}


def follow(spark, root, source, folder, trigger, rows_max):
    """Start a query that writes the ids of all adds."""
    frame = (
        spark.readStream.format(source).option("maxRecordsPerTrigger", rows_max).load(str(folder))
    )
    return (
        frame.where("kind IN ('add', 'damage')")
        .select("record_id", "compact_count", "damage")
        .writeStream.format("parquet")
        .option("path", str(root / f"{source}.parquet"))
        .option("checkpointLocation", str(root / f"{source}.checkpoint"))
        .trigger(**trigger)
        .start()
    )


def main(root, how):
    trigger = {"availableNow": True} if how == "available-now" else {"processingTime": "0 seconds"}
    spark = small_spark(root)
    queries = [
        follow(spark, root, "journal", root / "node" / "journal", trigger, ROWS_MAX[how]),
        follow(spark, root, "retention", root / "node" / "history", trigger, ROWS_MAX[how]),
    ]
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
