"""Relay what is sent to one address of a broker to another until killed: of test_broker_restarts.

python -m tests.pipeline.relayed ROOT PORT forever | available-now
"""

import sys
from pathlib import Path

from pipeline.session import open_session

# A few messages each, so that a kill falls between any two steps of a batch.
ROWS_MAX = 200


def main(root, port, how):
    trigger = {"availableNow": True} if how == "available-now" else {"processingTime": "0 seconds"}
    spark = open_session(
        "local[2]",
        {
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(root / "local"),
            "spark.sql.warehouse.dir": str(root / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
        },
    )
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
