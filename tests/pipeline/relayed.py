"""Relay what is sent to one address of a broker to another until killed: of test_broker_restarts.

python -m tests.pipeline.relayed ROOT PORT forever | available-now
"""

import sys
from pathlib import Path

from tests.pipeline.small_spark import small_spark

# A few messages each, so that a kill falls between any two steps of a batch.
ROWS_MAX = 200


def main(root, port, how):
    trigger = {"availableNow": True} if how == "available-now" else {"processingTime": "0 seconds"}
    spark = small_spark(root)
    url = f"tcp://127.0.0.1:{port}"
    frame = (
        spark.readStream.format("broker")
        .options(url=url, address="in", queue="relay", maxRecordsPerTrigger=ROWS_MAX)
        .load()
    )
    query = (
        # Two tasks, behind a shuffle: rows come in any order.
        frame.selectExpr("text")
        .repartition(2, "text")
        .writeStream.format("broker")
        .options(url=url, address="out", routingType="ANYCAST")
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(**trigger)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
