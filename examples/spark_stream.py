"""Spark follows an address of a running broker, and counts what is sent there.

    python examples/spark_stream.py

It needs Java 17 and `pip install 'quiver-mq[spark]'`, with PySpark 4.2. The stream has a queue of
its own with a copy of each message. Spark's checkpoint says what was read: a query that is started
again goes on there, and each message is counted once.
"""

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame

from broker.client import Client, Session
from broker.embedded import EmbeddedBroker
from pipeline.registration import register
from pipeline.session import open_session

COLOURS = ("red", "green", "blue", "red", "red", "blue")


def send(session: Session) -> None:
    """Send an order of each colour."""
    with session.producer("orders") as producer:
        for colour in COLOURS:
            producer.send(f"a {colour} crate", properties={"colour": colour})


def main() -> None:
    """Start the query, and again each time that something was sent."""
    with (
        tempfile.TemporaryDirectory() as name,
        EmbeddedBroker() as broker,
        Client(f"tcp://127.0.0.1:{broker.port}") as client,
        client.session() as session,
    ):
        url = f"tcp://127.0.0.1:{broker.port}"
        session.create_queue("orders")
        spark = open_session("local[2]", {"spark.local.dir": name})
        register(spark)
        stream = spark.readStream.format("broker")
        orders = stream.options(url=url, address="orders", queue="spark.orders").load()

        def show(batch: DataFrame, _: int) -> None:
            rows = batch.selectExpr("properties['colour'] AS colour").groupBy("colour").count()
            found = [f"{count} {colour}" for colour, count in sorted(rows.collect())]
            if found:
                print(f"a batch: {', '.join(found)}")

        query = orders.writeStream.foreachBatch(show).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(Path(name) / "checkpoint"))
        # From here on the stream has a queue.
        query.start().awaitTermination()
        for _ in range(2):
            send(session)
            query.start().awaitTermination()
        waiting = session.query_queue("orders").message_count
        print(f"waiting for other consumers: {waiting} messages")
        spark.stop()


if __name__ == "__main__":
    main()
